"""The chapters, in reading order. Each is a module whose docstring is the chapter and whose `run`
is the proof.
"""

CHAPTERS = (
    "e01_lost_receipt",
    "e02_three_worlds",
    "e03_delayed_original",
    "e04_evidence",
    "e05_review",
    "e06_compensation",
)
