"""The one door to every test: python3 test_reconciliation.py"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

HERE = str(Path(__file__).resolve().parent)
if HERE not in sys.path:  # PYTHONSAFEPATH leaves it out
    sys.path.insert(0, HERE)

from experiments.tests.case_chapters import (  # noqa: E402
    Compensation,
    DelayedOriginal,
    Evidence,
    LostReceipt,
    Review,
    ThreeWorlds,
)
from experiments.tests.case_claims import (  # noqa: E402
    Gate,
)
from experiments.tests.case_commands import (  # noqa: E402
    CommandsThatAreCutShort,
    FilesThatAreNoLedger,
    LookingWritesNothing,
    StorageThatFails,
    WhatTheCommandsSay,
    WhereLedgersMayStand,
)
from experiments.tests.case_compensation import (  # noqa: E402
    Approval,
)
from experiments.tests.case_course import (  # noqa: E402
    Chapters,
    FirstUse,
    Readme,
)
from experiments.tests.case_evidence import (  # noqa: E402
    ConstructionRefusesWhatCannotBeClassified,
    EvidenceAnswersItsOwnQuestion,
    FlagsAreNeverRaised,
    FortyEightCells,
    JsonIsReadStrictly,
    ReceiptsAndSnapshots,
    RulesStandAlone,
)
from experiments.tests.case_house import (  # noqa: E402
    House,
)
from experiments.tests.case_identity import (  # noqa: E402
    CanonicalText,
    FormulaOfIdentity,
    OneProposalOneOperation,
    SamePayloadIsOneRelation,
)
from experiments.tests.case_ledger import (  # noqa: E402
    EveryTriggerIsNeeded,
    FilesThatAreNotOurs,
    FirstOpens,
    NamesAndHandles,
    OneWayToAskSQLite,
    PlainSqlAgainstEveryTable,
    Refusals,
    Transactions,
    Waiting,
    WhatBecomesOfTheFile,
)
from experiments.tests.case_moves import (  # noqa: E402
    BadArguments,
    NeverSent,
    OneDoor,
    RefusedBeforeContact,
    RepeatedDecision,
    RepliesThatPretend,
    ReviewHasItsConditions,
    RulesAlone,
    TableOfMoves,
    TheEnd,
    TransportIsNotOutcome,
    WhatIsAllowedNow,
)
from experiments.tests.case_receiver import (  # noqa: E402
    CloseAgainstApply,
    ExitStatusDecidesNothing,
    Pipes,
    ReadingAndClosing,
    TheLostReceipt,
    TheReceiversFile,
    TheReceiversSources,
    TwoSides,
)
from experiments.tests.case_runner import (  # noqa: E402
    Commands,
    Comparison,
    FaultsStrike,
    Tests,
)
from experiments.tests.case_statements import (  # noqa: E402
    TheDyingProcess,
    TheFailingStatement,
    TheFullDisk,
    TheRefusedRow,
)

__all__ = [
    "Approval",
    "BadArguments",
    "CanonicalText",
    "Chapters",
    "CloseAgainstApply",
    "Commands",
    "CommandsThatAreCutShort",
    "Comparison",
    "Compensation",
    "ConstructionRefusesWhatCannotBeClassified",
    "DelayedOriginal",
    "EveryTriggerIsNeeded",
    "Evidence",
    "EvidenceAnswersItsOwnQuestion",
    "ExitStatusDecidesNothing",
    "FaultsStrike",
    "FilesThatAreNoLedger",
    "FilesThatAreNotOurs",
    "FirstOpens",
    "FirstUse",
    "FlagsAreNeverRaised",
    "FormulaOfIdentity",
    "FortyEightCells",
    "Gate",
    "House",
    "JsonIsReadStrictly",
    "LookingWritesNothing",
    "LostReceipt",
    "NamesAndHandles",
    "NeverSent",
    "OneDoor",
    "OneProposalOneOperation",
    "OneWayToAskSQLite",
    "Pipes",
    "PlainSqlAgainstEveryTable",
    "ReadingAndClosing",
    "Readme",
    "ReceiptsAndSnapshots",
    "Refusals",
    "RefusedBeforeContact",
    "RepeatedDecision",
    "RepliesThatPretend",
    "Review",
    "ReviewHasItsConditions",
    "RulesAlone",
    "RulesStandAlone",
    "SamePayloadIsOneRelation",
    "StorageThatFails",
    "TableOfMoves",
    "Tests",
    "TheDyingProcess",
    "TheEnd",
    "TheFailingStatement",
    "TheFullDisk",
    "TheLostReceipt",
    "TheReceiversFile",
    "TheReceiversSources",
    "TheRefusedRow",
    "ThreeWorlds",
    "Transactions",
    "TransportIsNotOutcome",
    "TwoSides",
    "Waiting",
    "WhatBecomesOfTheFile",
    "WhatIsAllowedNow",
    "WhatTheCommandsSay",
    "WhereLedgersMayStand",
]

if __name__ == "__main__":
    unittest.main()
