"""The one door to every test: python3 test_reconciliation.py

Without words it runs every test, on every core. With words it takes those of
`python3 -m unittest`, such as the name of a class, and runs in this process.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

HERE = str(Path(__file__).resolve().parent)
if HERE not in sys.path:  # PYTHONSAFEPATH leaves it out
    sys.path.insert(0, HERE)

from experiments.tests import side_by_side  # noqa: E402
from experiments.tests.case_chapters import (  # noqa: E402
    AskedInVain,
    Authority,
    Compensation,
    CrashMatrix,
    DelayedOriginal,
    Evidence,
    Leases,
    LostReceipt,
    Order,
    ResponseFaults,
    RestoredBackup,
    Review,
    Sweep,
    ThreeWorlds,
)
from experiments.tests.case_claims import Gate  # noqa: E402
from experiments.tests.case_commands import (  # noqa: E402
    CommandsThatAreCutShort,
    FilesThatAreNoLedger,
    LookingWritesNothing,
    StorageThatFails,
    WhatTheCommandsSay,
    WhereLedgersMayStand,
)
from experiments.tests.case_compensation import Approval  # noqa: E402
from experiments.tests.case_copies import (  # noqa: E402
    NothingUnpauses,
    TheBackup,
    TheCrash,
    TheMarker,
    TheRestoredStore,
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
from experiments.tests.case_exercises import (  # noqa: E402
    OneConflictOfThree,
    TheThreeExercises,
)
from experiments.tests.case_house import House  # noqa: E402
from experiments.tests.case_http import (  # noqa: E402
    AgainstAnyServer,
    AgainstTheSupplier,
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
    TheJournalOfMoney,
    Transactions,
    Waiting,
    WhatBecomesOfTheFile,
)
from experiments.tests.case_missions import (  # noqa: E402
    CompletionGate,
    StaleMissions,
    TasksAndWhatTheyShow,
    TheCompletionGate,
    TheFailingStatementOfAMission,
    TheWorldOfAMission,
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
from experiments.tests.case_order_commands import (  # noqa: E402
    ApprovingByCommand,
    AskingByCommand,
    ReceiptFiles,
    ResolvingByCommand,
    RevokingByCommand,
    TheDiagnosis,
    TheFileOfACommand,
    WhatIsSaidOfOrders,
)
from experiments.tests.case_order_statements import (  # noqa: E402
    TheFailingStatementOfAnOrder,
    TheInterruptedOrder,
)
from experiments.tests.case_orders import (  # noqa: E402
    Admission,
    ApprovalHasItsConditions,
    Deliveries,
    IdentityOfAnOrder,
    MoneyIsHeld,
    NoNewWhileUnknown,
    Superseding,
    TwoFilesTogether,
    WorkAndLeases,
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
from experiments.tests.case_resend import (  # noqa: E402
    AskFirst,
    BlindSupplier,
    HandedIn,
    HistoriesOfAttempts,
    MemoryOfKeys,
    Renewal,
    Revocation,
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
from experiments.tests.case_supplier import (  # noqa: E402
    AtTheSameMoment,
    KnowsOrdersAgain,
    RepliesThatBreak,
    RequestsThatAreNone,
    TheProcess,
)
from experiments.tests.case_sweep_commands import (  # noqa: E402
    OpenQuestions,
    SweepsOverHttp,
)
from experiments.tests.case_sweeps import (  # noqa: E402
    BadRows,
    Claims,
    Decisions,
    FailingStatements,
    FairOrder,
    Flatness,
    Questions,
    Summaries,
)

__all__ = [
    "Admission",
    "AgainstAnyServer",
    "AgainstTheSupplier",
    "Approval",
    "ApprovalHasItsConditions",
    "ApprovingByCommand",
    "AskFirst",
    "AskedInVain",
    "AskingByCommand",
    "AtTheSameMoment",
    "Authority",
    "BadArguments",
    "BadRows",
    "BlindSupplier",
    "CanonicalText",
    "Chapters",
    "Claims",
    "CloseAgainstApply",
    "Commands",
    "CommandsThatAreCutShort",
    "Comparison",
    "Compensation",
    "CompletionGate",
    "ConstructionRefusesWhatCannotBeClassified",
    "CrashMatrix",
    "Decisions",
    "DelayedOriginal",
    "Deliveries",
    "EveryTriggerIsNeeded",
    "Evidence",
    "EvidenceAnswersItsOwnQuestion",
    "ExitStatusDecidesNothing",
    "FailingStatements",
    "FairOrder",
    "FaultsStrike",
    "FilesThatAreNoLedger",
    "FilesThatAreNotOurs",
    "FirstOpens",
    "FirstUse",
    "FlagsAreNeverRaised",
    "Flatness",
    "FormulaOfIdentity",
    "FortyEightCells",
    "Gate",
    "HandedIn",
    "HistoriesOfAttempts",
    "House",
    "IdentityOfAnOrder",
    "JsonIsReadStrictly",
    "KnowsOrdersAgain",
    "Leases",
    "LookingWritesNothing",
    "LostReceipt",
    "MemoryOfKeys",
    "MoneyIsHeld",
    "NamesAndHandles",
    "NeverSent",
    "NoNewWhileUnknown",
    "NothingUnpauses",
    "OneConflictOfThree",
    "OneDoor",
    "OneProposalOneOperation",
    "OneWayToAskSQLite",
    "OpenQuestions",
    "Order",
    "Pipes",
    "PlainSqlAgainstEveryTable",
    "Questions",
    "ReadingAndClosing",
    "Readme",
    "ReceiptFiles",
    "ReceiptsAndSnapshots",
    "Refusals",
    "RefusedBeforeContact",
    "Renewal",
    "RepeatedDecision",
    "RepliesThatBreak",
    "RepliesThatPretend",
    "RequestsThatAreNone",
    "ResolvingByCommand",
    "ResponseFaults",
    "RestoredBackup",
    "Review",
    "ReviewHasItsConditions",
    "Revocation",
    "RevokingByCommand",
    "RulesAlone",
    "RulesStandAlone",
    "SamePayloadIsOneRelation",
    "StaleMissions",
    "StorageThatFails",
    "Summaries",
    "Superseding",
    "Sweep",
    "SweepsOverHttp",
    "TableOfMoves",
    "TasksAndWhatTheyShow",
    "Tests",
    "TheBackup",
    "TheCompletionGate",
    "TheCrash",
    "TheDiagnosis",
    "TheDyingProcess",
    "TheEnd",
    "TheFailingStatement",
    "TheFailingStatementOfAMission",
    "TheFailingStatementOfAnOrder",
    "TheFileOfACommand",
    "TheFullDisk",
    "TheInterruptedOrder",
    "TheJournalOfMoney",
    "TheLostReceipt",
    "TheMarker",
    "TheProcess",
    "TheReceiversFile",
    "TheReceiversSources",
    "TheRefusedRow",
    "TheRestoredStore",
    "TheThreeExercises",
    "TheWorldOfAMission",
    "ThreeWorlds",
    "Transactions",
    "TransportIsNotOutcome",
    "TwoFilesTogether",
    "TwoSides",
    "Waiting",
    "WhatBecomesOfTheFile",
    "WhatIsAllowedNow",
    "WhatIsSaidOfOrders",
    "WhatTheCommandsSay",
    "WhereLedgersMayStand",
    "WorkAndLeases",
]

if __name__ == "__main__":
    if len(sys.argv) > 1:
        unittest.main()
    sys.exit(side_by_side.run([globals()[name] for name in __all__]))
