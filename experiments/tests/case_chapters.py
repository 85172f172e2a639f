"""One class for each chapter: what its run must show, and what its fault alone changes."""

from __future__ import annotations

import importlib
import unittest
from typing import Any, ClassVar

from experiments.harness.runner import run_one


class Chapter:
    """What the classes below share: `result`, the chapter run once with its fault."""

    chapter: ClassVar[str]
    result: ClassVar[dict[str, Any]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.result = run_one(cls.chapter)

    def test_leaving_the_fault_out_changes_the_keys_it_says_and_only_them(self) -> None:
        """C1: the fault of the chapter is what its result depends on."""
        module = importlib.import_module(f"experiments.{self.chapter}")
        neutral = run_one(self.chapter, neutral=True)
        changed = {key for key in neutral if neutral[key] != self.result[key]}
        self.assertEqual((list(neutral), changed), (list(self.result), set(module.FAULT_SHOWS)))

    def test_the_oracle_accepts_every_run_and_rejects_every_unsafe_twin(self) -> None:
        """V6: a reader that imports neither side tells the one from the other."""
        self.assertEqual(self.result["oracle"], [])
        for name, twin in self.result["twin"].items():
            rejected = twin.get("oracle", twin.get("rejected by the oracle"))
            self.assertTrue(rejected, f"{name}: the oracle accepts its files")

    # Given by unittest.TestCase, which this class is no subclass of: it would be run by itself.
    assertEqual: Any
    assertTrue: Any


class LostReceipt(Chapter, unittest.TestCase):
    chapter = "e01_lost_receipt"

    def test_no_byte_of_the_receipt_arrives_and_the_same_pipe_would_have_carried_it(self) -> None:
        """L3: no byte with the crash after the commit, a receipt with it after the reply."""
        self.assertEqual(self.result["receipt bytes"], 0)
        self.assertEqual(self.result["control"], "confirmed")

    def test_the_file_opened_again_still_says_unknown(self) -> None:
        """L2, L4: `unknown` was committed before the process was started."""
        self.assertEqual(self.result["reopened"], "unknown")
        says = [event["says"] for event in self.result["trace"]]
        self.assertLess(says.index("charge: unknown, version 2"), says.index("apply charge"))

    def test_a_second_dispatch_is_refused_before_the_receiver_is_contacted(self) -> None:
        """L5: the receiver's own log holds one apply."""
        self.assertEqual(self.result["second dispatch"], "AlreadyAnnounced")
        self.assertEqual(self.result["contacts after refusal"], 1)

    def test_the_compensation_is_unknown_itself_and_reconciled_by_the_same_door(self) -> None:
        """K5: dispatch, refusal, closing read, decision, as for the charge."""
        refund = self.result["refund"]
        self.assertEqual(
            (refund["dispatch"], refund["blind retry"]), ("unknown", "AlreadyAnnounced")
        )
        self.assertEqual(refund["decision"], "confirmed")
        self.assertEqual(self.result["effects"], {"charge": 1, "refund": 1})

    def test_a_blind_retry_makes_a_second_effect(self) -> None:
        """L6: the receiver is truly not idempotent."""
        self.assertEqual(self.result["twin"]["blind retry"]["effects"], {"charge": 2})


class ThreeWorlds(Chapter, unittest.TestCase):
    chapter = "e02_three_worlds"

    def test_three_worlds_leave_one_sender_file(self) -> None:
        """L7, L9: zero, zero and one effect behind files that are the same in every row."""
        effects = [world["effects"] for world in self.result["worlds"].values()]
        self.assertEqual(effects, [0, 0, 1])
        self.assertIs(self.result["sender files identical"], True)
        self.assertEqual(self.result["states"], ["unknown"])

    def test_either_word_for_silence_is_wrong_in_some_world(self) -> None:
        """L9: "timeout means failed" and "timeout means done" are both refuted."""
        wrong = {name: len(twin["wrong in"]) for name, twin in self.result["twin"].items()}
        self.assertEqual(wrong, {"timeout means failed": 1, "timeout means done": 2})


class DelayedOriginal(Chapter, unittest.TestCase):
    chapter = "e03_delayed_original"

    def test_without_a_close_the_same_read_says_nothing_then_one_then_two(self) -> None:
        """L10: the delayed original makes a duplicate of the retry."""
        reads = ["inconclusive", "exact_match_existence_only", "duplicate_matches"]
        self.assertEqual(self.result["open"]["reads"], reads)
        self.assertEqual(self.result["open"]["effects"], {"order": 2})

    def test_with_a_close_the_late_original_is_refused(self) -> None:
        """L11: not applied, and no effect, ever."""
        closed = self.result["closed"]
        self.assertEqual(
            (closed["verdict"], closed["late original"]), ("terminal_absence", "closed")
        )
        self.assertEqual(
            (closed["effects"], closed["states"]), ({"order": 0}, {"order": "not_applied"})
        )

    def test_an_apply_that_races_a_close_is_in_the_answer_or_refused(self) -> None:
        """E7: both orders, with two real processes."""
        first, second = self.result["race"]["apply first"], self.result["race"]["close first"]
        self.assertEqual((first["apply"], first["verdict"]), ("receipt", "unique_exact_match"))
        self.assertEqual((second["apply"], second["verdict"]), ("closed", "terminal_absence"))
        self.assertEqual((first["effects"], second["effects"]), ({"order": 1}, {"order": 0}))

    def test_a_year_later_the_late_original_is_still_refused(self) -> None:
        """E9: the mark outlives every late original, unless a receiver purges it."""
        self.assertEqual(self.result["a year later"]["late original"], "closed")
        self.assertEqual(self.result["twin"]["forgotten close"]["effects"], {"order": 1})


class Evidence(Chapter, unittest.TestCase):
    chapter = "e04_evidence"

    def test_two_of_forty_eight_cells_resolve(self) -> None:
        """E3: one to confirmed and one to not applied; the other 46 are refused."""
        cells = self.result["cells"]
        self.assertEqual((cells["asked"], cells["resolving"]), (48, 2))
        self.assertEqual(cells["became"], {"confirmed": 1, "not_applied": 1})
        self.assertEqual(cells["refused"], {"Unresolving": 46})

    def test_malformed_and_foreign_answers_leave_the_operation_unknown(self) -> None:
        """E4: each is refused where it enters, and only the good answer is allowed."""
        malformed = self.result["malformed"]
        self.assertEqual([name for name, said in malformed.items() if said == "allowed"], ["good"])
        self.assertEqual(set(self.result["foreign"].values()), {"WrongQuestion"})
        self.assertEqual(self.result["state after"], "unknown")

    def test_a_lookup_that_claims_more_than_its_policy_is_refused(self) -> None:
        """E14: and kept once its flags are lowered."""
        told = self.result["overclaim"]
        self.assertEqual((told["observe"], told["lowered"]), ("Overclaimed", "inconclusive"))


class Review(Chapter, unittest.TestCase):
    chapter = "e05_review"

    def test_a_stale_reviewer_changes_nothing_in_either_order(self) -> None:
        """R3: one decision, by whoever came first; the other finds no way round the version."""
        for first, told in (("ada", "ada first"), ("bob", "bob first")):
            order = self.result["orders"][told]
            self.assertEqual((order["second"], order["decided by"]), ("StaleVersion", [first]))
            self.assertEqual(order["with the current version"], "IllegalMove")
            self.assertEqual(order["oracle"], [])

    def test_no_failing_statement_leaves_half_a_decision(self) -> None:
        """R2, R4: every statement, and a trigger on the insert of the evidence."""
        self.assertEqual(set(self.result["every statement"].values()), {True})
        self.assertIs(self.result["trigger on the evidence"]["nothing written"], True)

    def test_a_commit_whose_acknowledgement_was_lost_is_seen_as_done(self) -> None:
        """R9: a process died after its commit; the same again is repeated, others are stale."""
        lost = self.result["lost acknowledgement"]
        self.assertEqual((lost["process"], lost["same again"]), ("died unheard", "repeated"))
        self.assertEqual(lost["somebody else"], "StaleVersion")


class Compensation(Chapter, unittest.TestCase):
    chapter = "e06_compensation"

    def test_whatever_is_not_the_exact_approval_is_refused_before_contact(self) -> None:
        """K1, K4, K6: another effect, amount, kind, version, no approval, a used one."""
        refused = dict(self.result["refused"])
        self.assertEqual(refused.pop("the same approval again"), "allowed")
        self.assertNotIn("allowed", refused.values())
        self.assertEqual(self.result["contacts before the refund"], 2)

    def test_the_compensation_is_a_new_effect_and_the_original_still_stands(self) -> None:
        """K5: one charge and one refund at the receiver, both confirmed."""
        self.assertEqual(self.result["effects"], {"charge": 1, "refund": 1})
        self.assertEqual(self.result["refund"]["charge meanwhile"], "confirmed")

    def test_an_incident_stales_the_approval_and_a_new_one_withdraws_the_draft(self) -> None:
        """K3: refused at dispatch, and approved again at the new version."""
        told = self.result["incident"]
        self.assertEqual((told["charge"], told["dispatch"]), ("confirmed", "Unbound"))
        self.assertEqual(told["states"]["refund"], "revoked")
        self.assertEqual(told["states"]["refund approved again"], "prepared")
