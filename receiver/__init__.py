"""The other side: a process with its own file. It has no idea what the sender knows."""
