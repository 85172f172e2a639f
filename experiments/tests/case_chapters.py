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


class Order(Chapter, unittest.TestCase):
    chapter = "e07_order"

    def test_the_published_world_comes_out_to_the_penny(self) -> None:
        """O14: unknown with one row and 1500 held; one lookup; spent once, by one settlement."""
        before, after = self.result["before"], self.result["after"]
        self.assertEqual(self.result["dispatch"]["outcome"], "unknown")
        self.assertEqual((before["rows at the supplier"], before["sends"]), (1, 1))
        self.assertEqual(before["money"], {"reserved": 1500, "spent": 0, "written off": 0})
        self.assertEqual(self.result["reopened"]["money"], before["money"])
        self.assertEqual(after["money"], {"reserved": 0, "spent": 1500, "written off": 0})
        self.assertEqual((after["orders"], after["sends"], after["settlements"]), (1, 1, 1))

    def test_the_same_receipt_again_changes_nothing_and_one_for_seven_is_refused(self) -> None:
        """O8, O13, O14: repeated, and refused; the figures are those from before."""
        self.assertEqual(self.result["the same receipt again"], "repeated")
        self.assertEqual(self.result["a receipt for seven"], "ContradictingReceipt")

    def test_two_tubs_are_on_hand_until_a_delivery_is_recorded(self) -> None:
        """O14, O17: accepted is not delivered; then eight, and no money moves."""
        self.assertEqual((self.result["after"]["on hand"], self.result["delivered"]), (2, 8))
        self.assertEqual(self.result["money after the delivery"], self.result["after"]["money"])

    def test_both_files_side_by_side_say_that_a_receipt_was_lost(self) -> None:
        """O16: before anybody asked the supplier about the order."""
        self.assertEqual(self.result["diagnosis"], [["order", "lost_receipt"]])

    def test_the_published_identity_is_made_by_the_formula(self) -> None:
        """O1: of work, target and proposal."""
        self.assertIs(self.result["published identity made"], True)


class AskedInVain(Chapter, unittest.TestCase):
    chapter = "e08_blind_supplier"

    def test_it_gets_one_send_and_the_order_waits_for_a_person(self) -> None:
        """O10: held through revocation, cancellation and a year; then a receipt ends it."""
        later = self.result["a year later"]
        self.assertEqual(self.result["sends at the supplier"], 1)
        self.assertEqual((self.result["resend"], self.result["renew"]), ("NoGuarantee",) * 2)
        self.assertEqual((later["state"], later["needs an operator"]), ("unknown", True))
        self.assertEqual(later["money"]["reserved"], 1500)
        self.assertEqual(self.result["handed in"], "confirmed")


class Authority(Chapter, unittest.TestCase):
    chapter = "e09_authority"

    def test_revoking_ends_an_order_only_before_it_left(self) -> None:
        """O11: in time, money free; or perhaps too late, money held, and the receipt settles."""
        before, after = self.result["revoked before"], self.result["revoked after"]
        self.assertEqual((before["in time"], before["effects"]), (True, 0))
        self.assertEqual(before["money"]["reserved"], 0)
        self.assertEqual((after["in time"], after["held"]), (False, 1500))
        self.assertEqual((after["state"], after["effects"]), ("confirmed", 1))

    def test_what_was_true_when_it_was_approved_is_asked_again_when_it_leaves(self) -> None:
        """O7: expiry, list, ceiling, allowance, claim and lease."""
        self.assertEqual(self.result["expired"]["dispatch"], "ApprovalExpired")
        self.assertEqual(self.result["automatic"]["allowance lowered"], "AutomaticRefused")
        self.assertEqual(
            set(self.result["list and ceiling"].values()),
            {"NotListed", "CeilingExceeded", "StaleClaim", "LeaseTooShort"},
        )

    def test_a_renewed_order_is_asked_about_and_then_sent_again_as_it_was(self) -> None:
        """O9, O12: two sends, one effect, the same identity and the same money."""
        renewed = self.result["renewed"]
        self.assertEqual(renewed["resend before asking"], "ResendRefused")
        self.assertEqual(renewed["resend after asking"], "allowed")
        self.assertEqual((renewed["sends"], renewed["effects"]), (2, 1))
        self.assertIs(renewed["identity kept"], True)

    def test_each_renewal_is_refused_for_its_own_reason(self) -> None:
        """O12: eight conditions, eight refusals, and one renewal that has them all."""
        refused = dict(self.result["renewal refused"])
        self.assertEqual(refused.pop("nothing taken away"), "allowed")
        self.assertEqual(len(set(refused.values())), 8)
        self.assertNotIn("allowed", refused.values())

    def test_a_cancelled_order_that_left_still_settles(self) -> None:
        """O6, O11: its draft is revoked; what may have left is held until its receipt."""
        before, after = self.result["cancelled"]["before"], self.result["cancelled"]["after"]
        self.assertEqual((before["state"], before["money"]["reserved"]), ("revoked", 0))
        self.assertEqual((after["state"], after["money"]["reserved"]), ("unknown", 1500))
        self.assertEqual(after["receipt makes it"], "confirmed")


class ResponseFaults(Chapter, unittest.TestCase):
    chapter = "e10_response_faults"

    def test_every_broken_answer_leaves_it_unknown_with_its_money_held(self) -> None:
        """O15, C03, C12: twelve of them, each with one row at the supplier."""
        rows = [*self.result["faults"].values(), self.result["mismatch"]]
        self.assertEqual(len(rows), 12)
        for row in rows:
            self.assertEqual((row["outcome"], row["held"], row["effects"]), ("unknown", 1500, 1))

    def test_one_lookup_confirms_them_with_one_send_unless_it_is_not_ours(self) -> None:
        """O9, O15: the other proposal under our identity stays unknown."""
        for row in self.result["faults"].values():
            self.assertEqual((row["after the lookup"], row["sends"]), ("confirmed", 1))
        self.assertEqual(self.result["mismatch"]["after the lookup"], "unknown")

    def test_only_a_refused_connection_was_never_sent(self) -> None:
        """L13, O15: prepared again, with its money held, and sent later."""
        refused = self.result["refused connection"]
        self.assertEqual((refused["outcome"], refused["held"]), ("prepared", 1500))
        self.assertEqual((refused["sent later"], refused["effects"]), ("confirmed", 1))


class RestoredBackup(Chapter, unittest.TestCase):
    chapter = "e11_restored_backup"

    def test_a_backup_holds_what_was_committed_and_a_file_copy_does_not(self) -> None:
        """O19, C14: the commit stood only in the log."""
        self.assertEqual(self.result["copies"], {"by the library": 1, "by copying the file": 0})

    def test_a_restored_store_sends_nothing_and_says_what_it_does_not_know(self) -> None:
        """O19: paused, one stranger, the same identity again, one effect in total."""
        restored = self.result["restored"]
        self.assertEqual((restored["dispatch"], restored["sends"]), ("Paused", 0))
        self.assertEqual((restored["unannounced"], self.result["effects"]), (1, 1))
        self.assertIs(restored["same identity"], True)
        self.assertEqual(restored["effect seen"], "EffectSeen")

    def test_an_older_file_put_back_by_hand_is_noticed(self) -> None:
        """O19: by the marker outside of it."""
        self.assertEqual(self.result["put back by hand"], {"paused": True, "dispatch": "Paused"})


class CrashMatrix(Chapter, unittest.TestCase):
    chapter = "e14_crash_matrix"

    def test_each_of_eleven_rows_has_a_process_that_died_where_it_says(self) -> None:
        """S13: a real kill in each, asserted to have struck; and each ends as it must."""
        ends = {
            "M1 timeout to success": "confirmed",
            "M2 timeout to failure": "rejected",
            "M3 invoked once": "confirmed",
            "M4 settled once": "confirmed",
            "M5 released once": "rejected",
            "M6 marker race": "confirmed",
            "M7 stale lease": "confirmed",
            "M9 conflict": "unknown",
            "M11 restore": "unknown",
        }
        for name, state in ends.items():
            with self.subTest(name):
                self.assertTrue(self.result[name]["died"])
                self.assertEqual(self.result[name]["state"], state)
        self.assertEqual(self.result["M1 timeout to success"]["in between"], ["unknown"] * 2)
        self.assertEqual(self.result["M3 invoked once"]["sends"], 1)
        self.assertEqual(self.result["M4 settled once"]["settlements"], 1)
        self.assertEqual(self.result["M5 released once"]["settlements"], 1)
        self.assertIs(self.result["M6 marker race"]["paused"], False)
        self.assertEqual(self.result["M7 stale lease"]["with the old token"], ["StaleClaim"])
        self.assertEqual(self.result["M8 restart mid-sweep"]["states"], {"confirmed": 3})
        self.assertEqual(self.result["M8 restart mid-sweep"]["decisions"], 3)
        self.assertEqual(self.result["M9 conflict"]["found"], "duplicate_matches")
        self.assertEqual(self.result["M11 restore"]["sweep"], "Paused")

    def test_a_backlog_drains_as_the_receivers_file_predicts_while_workers_die(self) -> None:
        """S6, S11, S13: 501 questions, each answered once or left open; nothing else."""
        backlog = self.result["M10 backlog"]
        self.assertIs(backlog["killed ten or more"], True)
        self.assertEqual(
            (backlog["questions"], backlog["answered twice"], backlog["as predicted"]),
            (501, 0, True),
        )
        self.assertEqual(backlog["states"], {"confirmed": 168, "not_applied": 84, "unknown": 249})


class Sweep(Chapter, unittest.TestCase):
    chapter = "e12_sweep"

    def test_the_stub_keeps_everything_and_a_provider_resolves(self) -> None:
        """S2, S5: the summaries are exact, and one machine was started."""
        machine = self.result["review machine"]
        self.assertEqual((machine["stub"], machine["provider"]), ([1, 0, 1, 0], [1, 1, 0, 0]))
        self.assertEqual((machine["state"], machine["effects"]), ("confirmed", 1))
        self.assertEqual(set(map(tuple, self.result["no evidence"].values())), {(1, 0, 1, 0)})
        self.assertEqual(len(self.result["no evidence"]), 3)

    def test_a_sweep_decides_what_policies_list_and_closes_nothing(self) -> None:
        """S6: kept for a person otherwise."""
        kept = self.result["nobody may decide"]
        self.assertEqual((kept["receipts kept"], kept["state"]), (1, "unknown"))
        closed = self.result["closed"]
        self.assertEqual((closed["summary"], closed["closed by sweeps"]), ([3, 2, 1, 0], 0))

    def test_the_third_question_is_visited_by_the_second_sweep(self) -> None:
        """S11: by age alone it never is."""
        visits = self.result["visits of the third"]
        self.assertEqual(visits, {"by the library": 1, "by age alone": 0})


class Leases(Chapter, unittest.TestCase):
    chapter = "e13_leases"

    def test_a_killed_workers_question_returns_when_its_lease_ends(self) -> None:
        """S8: until then nobody works on it, and it is unknown all the time."""
        killed = self.result["killed"]
        self.assertIs(killed["died"], True)
        self.assertEqual(killed["before the lease ends"], [0, 0, 0, 0])
        self.assertEqual((killed["meanwhile"], killed["after it"]), ("unknown", [1, 1, 0, 0]))

    def test_a_stalled_worker_of_the_same_name_writes_nothing(self) -> None:
        """S7: with the receipt in its hands, and a clock that says that its lease is live."""
        stalled = self.result["stalled"]
        self.assertEqual(stalled["the stalled one"], [0, 0, 0, 0])
        self.assertEqual((stalled["meanwhile"], stalled["generations"]), ("unknown", 2))

    def test_two_processes_on_one_scope_answer_each_question_once(self) -> None:
        """S6, S7: nothing is lost, and nothing resolved twice."""
        both = self.result["two workers"]
        self.assertEqual(both, {"resolved": 20, "errors": 0, "decisions": 20})
