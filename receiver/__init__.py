"""The other side: an independent process with its own file. It has no idea what the sender
knows.
"""
