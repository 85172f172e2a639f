"""The chapters, in reading order: the docstring is the chapter, `run` is the proof."""

CHAPTERS = (
    "e01_lost_receipt",
    "e02_three_worlds",
    "e03_delayed_original",
    "e04_evidence",
    "e05_review",
    "e06_compensation",
    "e07_order",
    "e08_blind_supplier",
    "e09_authority",
    "e10_response_faults",
    "e11_restored_backup",
    "e15_completion_gate",
)
