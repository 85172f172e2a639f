"""Every claim as data: its sentence, what proves it, and the fault that must break the proof.

A claim is proved by tests, by keys of `results.json`, or by both. Where a fault is named, it is
one of `experiments/harness/removals.py`, and the first test of the claim must fail under it; a
test tries them all. Claims without a fault are asserted only.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """`tests` are named within `experiments.tests`, `results` from the top of `results.json`."""

    id: str
    says: str
    tests: tuple[str, ...]
    results: tuple[str, ...] = ()
    fault: str | None = None


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "P1",
        "Python 3.10 or later and the standard library alone are enough.",
        tests=("case_house.House.test_everything_imported_is_of_the_standard_library_or_ours",),
    ),
    Claim(
        "P2",
        "The runner runs every experiment on real processes and files, compares the whole "
        "result with a file, and says by its exit status what came of it.",
        tests=(
            "case_runner.Commands.test_check_reproduces_the_results_beside_the_script",
            "case_runner.Commands."
            "test_check_against_a_file_that_differs_says_where_and_keeps_the_reproduction",
            "case_runner.Commands.test_what_cannot_be_done_is_said_in_one_line",
        ),
    ),
    Claim(
        "P3",
        "The comparison counts every key, type and order, and names each difference by its path.",
        tests=("case_runner.Comparison.test_it_is_stricter_than_equality",),
        fault="results are compared by ==",
    ),
    Claim(
        "P4",
        "The results hold nothing of one run, machine or Python.",
        tests=(
            "case_runner.Commands.test_two_pythons_give_the_same_bytes",
            "case_runner.Commands.test_the_results_hold_nothing_of_one_run_or_one_machine",
        ),
    ),
    Claim(
        "P5",
        "One command runs every test, and every finder finds each once.",
        tests=("case_runner.Tests.test_unittest_and_pytest_find_the_same_tests_each_once",),
    ),
    Claim(
        "P6",
        "Pipes and permits order events, and no sleep does.",
        tests=("case_house.House.test_no_sleep_orders_anything",),
    ),
    Claim(
        "P7",
        "No command leaves a process, file, socket or connection behind, also when it is "
        "interrupted.",
        tests=(
            "case_runner.Commands.test_an_interrupt_leaves_nothing_behind",
            "case_receiver.Pipes."
            "test_an_interrupt_of_the_caller_leaves_no_process_and_an_honest_unknown",
        ),
    ),
    Claim(
        "P8",
        "The README says what the library is not.",
        tests=("case_course.Readme.test_the_list_of_what_it_is_not_is_complete",),
    ),
    Claim(
        "P9",
        "Every word of the field for an outcome has one of our states, or is recorded apart.",
        tests=("case_course.Readme.test_every_outcome_word_of_the_field_has_one_of_our_states",),
    ),
    Claim(
        "L1",
        "Sender and receiver own separate files, and no transaction spans both.",
        tests=(
            "case_receiver.TwoSides."
            "test_sender_and_receiver_own_separate_files_with_no_table_in_common",
            "case_receiver.TwoSides."
            "test_no_transaction_of_the_sender_is_open_while_a_receiver_is_asked",
        ),
    ),
    Claim(
        "L2",
        "`unknown` is committed before the receiver's process is started.",
        tests=(
            "case_moves.TransportIsNotOutcome."
            "test_unknown_and_its_question_and_its_attempt_are_committed_before_the_request",
            "case_statements.TheDyingProcess."
            "test_unknown_is_in_the_file_before_the_receiver_process_is_started",
        ),
        results=("e01_lost_receipt.trace",),
        fault="announce-before-act",
    ),
    Claim(
        "L3",
        "The effect is committed, the process ends, and not one byte of a receipt arrives.",
        tests=(
            "case_chapters.LostReceipt."
            "test_no_byte_of_the_receipt_arrives_and_the_same_pipe_would_have_carried_it",
            "case_receiver.TheLostReceipt.test_not_one_byte_of_a_lost_receipt_reaches_the_sender",
        ),
        results=("e01_lost_receipt.receipt bytes", "e01_lost_receipt.control"),
        fault="the crash is left out",
    ),
    Claim(
        "L4",
        "The sender's file, opened again, still says unknown.",
        tests=("case_chapters.LostReceipt.test_the_file_opened_again_still_says_unknown",),
        results=("e01_lost_receipt.reopened",),
        fault="the crash is left out",
    ),
    Claim(
        "L5",
        "A second dispatch is refused before the receiver is contacted.",
        tests=(
            "case_receiver.TwoSides."
            "test_a_second_dispatch_is_refused_before_the_receiver_is_contacted",
            "case_chapters.LostReceipt."
            "test_a_second_dispatch_is_refused_before_the_receiver_is_contacted",
        ),
        results=("e01_lost_receipt.second dispatch", "e01_lost_receipt.contacts after refusal"),
        fault="one-effect",
    ),
    Claim(
        "L6",
        "The plain receiver is truly not idempotent.",
        tests=(
            "case_receiver.TwoSides.test_a_second_direct_call_makes_a_second_effect",
            "case_receiver.TwoSides."
            "test_no_unique_key_of_the_receiver_is_the_operation_or_its_payload",
        ),
        results=("e01_lost_receipt.twin.blind retry.effects",),
        fault="the receiver knows identities",
    ),
    Claim(
        "L7",
        "Unknown does not mean that it happened: the same row stands over no effect.",
        tests=("case_chapters.ThreeWorlds.test_three_worlds_leave_one_sender_file",),
        results=("e02_three_worlds.worlds",),
        fault="the crash is left out",
    ),
    Claim(
        "L8",
        "How a process exits decides nothing: the state depends on the reply alone.",
        tests=(
            "case_receiver.ExitStatusDecidesNothing.test_the_state_depends_on_the_reply_alone",
        ),
        fault="mismatch-never-resolves, receipts",
    ),
    Claim(
        "L9",
        "Three worlds leave one sender file, equal in every row, over zero, zero and one effect.",
        tests=("case_chapters.ThreeWorlds.test_three_worlds_leave_one_sender_file",),
        results=("e02_three_worlds.worlds", "e02_three_worlds.sender files identical"),
        fault="the crash is left out",
    ),
    Claim(
        "L10",
        "Without a close, a delayed original makes a duplicate of the retry.",
        tests=(
            "case_chapters.DelayedOriginal."
            "test_without_a_close_the_same_read_says_nothing_then_one_then_two",
        ),
        results=("e03_delayed_original.open",),
        fault="the crash is left out",
    ),
    Claim(
        "L11",
        "With a close, the late original is refused.",
        tests=("case_chapters.DelayedOriginal.test_with_a_close_the_late_original_is_refused",),
        results=("e03_delayed_original.closed",),
        fault="the receiver forgets its close marks",
    ),
    Claim(
        "L12",
        "Only the exact permit line lets a held process go on.",
        tests=("case_receiver.Pipes.test_only_the_exact_permit_lets_a_held_receiver_go_on",),
        fault="any line is a permit",
    ),
    Claim(
        "L13",
        "That nothing was ever sent is proved only by the call that owns the unused permission.",
        tests=(
            "case_moves.NeverSent.test_never_while_an_earlier_attempt_may_have_left",
            "case_moves.NeverSent.test_a_recovered_process_can_never_claim_it",
        ),
        fault="an earlier attempt is forgotten",
    ),
    Claim(
        "E1",
        "A snapshot has exactly one of seven verdicts.",
        tests=(
            "case_evidence.FortyEightCells."
            "test_the_seven_verdicts_are_these_and_two_of_them_resolve",
        ),
        results=("e04_evidence.cells.by verdict",),
        fault="absence-needs-closure",
    ),
    Claim(
        "E2",
        "Number comes before payload, payload before scope, scope before flags; the order of "
        "rows counts for nothing, and no row of several is named.",
        tests=(
            "case_evidence.FortyEightCells.test_payload_comes_before_scope_and_number_before_both",
            "case_evidence.FortyEightCells.test_the_order_of_rows_changes_nothing",
            "case_evidence.EvidenceAnswersItsOwnQuestion."
            "test_duplicates_and_mismatches_are_kept_and_name_no_row",
        ),
    ),
    Claim(
        "E3",
        "Of 48 cells exactly two resolve anything.",
        tests=(
            "case_evidence.FortyEightCells.test_every_cell_has_its_verdict",
            "case_chapters.Evidence.test_two_of_forty_eight_cells_resolve",
        ),
        results=("e04_evidence.cells",),
        fault="uniqueness-needs-closure",
    ),
    Claim(
        "E4",
        "A snapshot carries its question, and one that answers another is refused.",
        tests=(
            "case_evidence.EvidenceAnswersItsOwnQuestion."
            "test_another_question_is_refused_by_both_and_nothing_is_written",
            "case_evidence.ConstructionRefusesWhatCannotBeClassified."
            "test_a_flag_is_a_boolean_and_nothing_that_looks_like_one",
        ),
        results=("e04_evidence.malformed", "e04_evidence.foreign"),
        fault="mismatch-never-resolves",
    ),
    Claim(
        "E5",
        "Empty is never absence unless complete, authoritative and closed.",
        tests=(
            "case_evidence.FortyEightCells."
            "test_empty_is_never_absence_unless_all_three_flags_stand",
        ),
        results=("e04_evidence.cells",),
        fault="absence-needs-closure",
    ),
    Claim(
        "E6",
        "One match is never the only one unless complete, authoritative and closed.",
        tests=(
            "case_evidence.FortyEightCells."
            "test_one_match_is_never_unique_unless_all_three_flags_stand",
        ),
        results=("e04_evidence.cells",),
        fault="uniqueness-needs-closure",
    ),
    Claim(
        "E7",
        "Closing and reading are one transaction: an original is in the answer or refused, in "
        "both orders.",
        tests=(
            "case_chapters.DelayedOriginal."
            "test_an_apply_that_races_a_close_is_in_the_answer_or_refused",
            "case_receiver.CloseAgainstApply."
            "test_an_original_that_comes_after_the_close_is_refused",
        ),
        results=("e03_delayed_original.race",),
        fault="the receiver ignores close marks",
    ),
    Claim(
        "E8",
        "A plain read changes nothing; a close is asked for by name, purpose and permission, "
        "written before it leaves.",
        tests=(
            "case_moves.RulesAlone.test_closing_needs_both_policies_and_an_open_question",
            "case_receiver.ReadingAndClosing.test_a_plain_read_changes_nothing_and_logs_nothing",
            "case_receiver.ReadingAndClosing."
            "test_the_request_to_close_is_committed_before_the_receiver_is_contacted",
        ),
        fault="closing-needs-permission",
    ),
    Claim(
        "E9",
        "A close mark outlives every late original; a receiver that purges it shows the damage.",
        tests=(
            "case_chapters.DelayedOriginal.test_a_year_later_the_late_original_is_still_refused",
            "case_receiver.ReadingAndClosing.test_a_late_original_is_refused_a_year_later",
        ),
        results=("e03_delayed_original.a year later", "e03_delayed_original.twin.forgotten close"),
        fault="the receiver forgets its close marks",
    ),
    Claim(
        "E10",
        "A close may lose its own reply; closing again gives the same answer.",
        tests=(
            "case_receiver.ReadingAndClosing."
            "test_a_close_whose_reply_was_lost_is_harmless_to_repeat",
        ),
        fault="the receiver refuses a second close",
    ),
    Claim(
        "E11",
        "Closing an operation does not close its compensation, nor the reverse.",
        tests=(
            "case_receiver.ReadingAndClosing."
            "test_closing_an_operation_does_not_close_its_compensation",
            "case_receiver.ReadingAndClosing."
            "test_closing_a_compensation_does_not_close_its_original",
        ),
        fault="the receiver closes everything at once",
    ),
    Claim(
        "E13",
        "A receipt is conclusive only as the direct reply to our own single send; every read "
        "is a snapshot.",
        tests=(
            "case_evidence.ReceiptsAndSnapshots."
            "test_only_a_receipt_for_exactly_this_effect_settles",
            "case_evidence.ReceiptsAndSnapshots."
            "test_a_reply_does_not_speak_where_two_sends_may_have_left",
            "case_evidence.ReceiptsAndSnapshots.test_a_plain_read_never_yields_a_receipt",
        ),
        fault="mismatch-never-resolves, receipts",
    ),
    Claim(
        "E14",
        "A caller may lower a flag and never raise one above the pinned policy.",
        tests=(
            "case_evidence.FlagsAreNeverRaised."
            "test_each_flag_is_bound_by_its_own_line_of_the_policy",
            "case_chapters.Evidence.test_a_lookup_that_claims_more_than_its_policy_is_refused",
        ),
        results=("e04_evidence.overclaim",),
        fault="evidence is trusted beyond its policy",
    ),
    Claim(
        "R1",
        "A decision needs reviewer, question, version, verdict and state; each missing one "
        "has its own refusal, and nothing is written.",
        tests=(
            "case_moves.ReviewHasItsConditions."
            "test_each_missing_condition_has_its_own_refusal_and_writes_nothing",
        ),
        fault="silence-decides-nothing",
    ),
    Claim(
        "R2",
        "State, version and evidence commit together.",
        tests=(
            "case_statements.TheFailingStatement."
            "test_reconcile_writes_state_version_and_evidence_or_nothing",
            "case_moves.ReviewHasItsConditions.test_state_version_and_evidence_are_one_row",
            "case_chapters.Review.test_no_failing_statement_leaves_half_a_decision",
        ),
        results=("e05_review.every statement", "e05_review.trigger on the evidence"),
        fault="the file commits every statement",
    ),
    Claim(
        "R3",
        "A stale reviewer changes nothing, whichever of two began first.",
        tests=(
            "case_chapters.Review.test_a_stale_reviewer_changes_nothing_in_either_order",
            "case_moves.ReviewHasItsConditions."
            "test_a_reviewer_who_began_before_the_other_committed_is_stale_too",
        ),
        results=("e05_review.orders",),
        fault="one-decision-per-version",
    ),
    Claim(
        "R4",
        "Whichever statement of a writing call fails, nothing of that transaction is left.",
        tests=(
            "case_statements.TheFailingStatement."
            "test_reconcile_writes_state_version_and_evidence_or_nothing",
            "case_statements.TheFailingStatement."
            "test_dispatch_with_a_receipt_leaves_what_its_last_commit_left",
        ),
        results=("e05_review.every statement",),
        fault="the file commits every statement",
    ),
    Claim(
        "R5",
        "Not applied ends the flow, and nothing issues a replacement by itself.",
        tests=("case_moves.TheEnd.test_not_applied_ends_the_flow",),
        fault="one-effect",
    ),
    Claim(
        "R6",
        "Decisions, observations, receipts and effects resist UPDATE, DELETE and every REPLACE.",
        tests=(
            "case_ledger.PlainSqlAgainstEveryTable."
            "test_no_attack_on_any_table_changes_a_byte_of_a_row",
            "case_receiver.TheReceiversFile.test_no_attack_on_any_table_changes_a_byte_of_a_row",
        ),
        fault="rows are not sealed",
    ),
    Claim(
        "R9",
        "A commit whose acknowledgement was lost is seen as done by the same reviewer, and is "
        "stale for others.",
        tests=(
            "case_chapters.Review.test_a_commit_whose_acknowledgement_was_lost_is_seen_as_done",
            "case_moves.RepeatedDecision.test_any_difference_is_a_stale_version",
        ),
        results=("e05_review.lost acknowledgement",),
        fault="a lost acknowledgement is not recognised",
    ),
    Claim(
        "R10",
        "Every move passes one door with a cause and an actor.",
        tests=(
            "case_moves.TableOfMoves.test_no_plain_update_moves_a_state_or_a_version",
            "case_moves.OneDoor.test_a_decision_is_written_in_exactly_one_place",
        ),
        fault="the file has no triggers",
    ),
    Claim(
        "R11",
        "Evidence that cannot hold at a final state is an incident, once; it raises the "
        "version and leaves the state.",
        tests=("case_moves.TheEnd.test_an_incident_raises_the_version_once_for_each_evidence",),
        results=("e06_compensation.incident",),
        fault="final-stays-final",
    ),
    Claim(
        "K1",
        "A confirmed original can get one live approval per effect, bound to effect, "
        "operation and version.",
        tests=(
            "case_compensation.Approval.test_one_effect_has_one_live_approval",
            "case_chapters.Compensation."
            "test_whatever_is_not_the_exact_approval_is_refused_before_contact",
        ),
        results=("e06_compensation.refused",),
        fault="every approval is superseded",
    ),
    Claim(
        "K2",
        "Approval and the prepared compensation commit together.",
        tests=(
            "case_statements.TheFailingStatement."
            "test_approve_compensation_writes_approval_and_intent_or_nothing",
        ),
        fault="the file commits every statement",
    ),
    Claim(
        "K3",
        "Dispatch checks again that the original stands as it was approved; an incident "
        "stales the approval.",
        tests=(
            "case_chapters.Compensation."
            "test_an_incident_stales_the_approval_and_a_new_one_withdraws_the_draft",
        ),
        results=("e06_compensation.incident",),
        fault="compensation-is-bound",
    ),
    Claim(
        "K4",
        "Another effect, kind or amount, no approval, a used approval: each is refused before "
        "contact.",
        tests=(
            "case_compensation.Approval."
            "test_whatever_differs_from_the_approval_is_refused_before_contact",
            "case_chapters.Compensation."
            "test_whatever_is_not_the_exact_approval_is_refused_before_contact",
        ),
        results=("e06_compensation.refused", "e06_compensation.contacts before the refund"),
        fault="every approval is superseded",
    ),
    Claim(
        "K5",
        "A compensation is a new effect that can be unknown itself and is reconciled by the "
        "same door.",
        tests=(
            "case_chapters.LostReceipt."
            "test_the_compensation_is_unknown_itself_and_reconciled_by_the_same_door",
            "case_chapters.Compensation."
            "test_the_compensation_is_a_new_effect_and_the_original_still_stands",
        ),
        results=("e01_lost_receipt.refund", "e06_compensation.refund"),
        fault="the crash is left out",
    ),
    Claim(
        "K6",
        "Under existence-only evidence nothing may be compensated.",
        tests=(
            "case_compensation.Approval.test_existence_is_not_enough",
            "case_chapters.Compensation."
            "test_whatever_is_not_the_exact_approval_is_refused_before_contact",
        ),
        results=("e06_compensation.refused.before it is confirmed",),
        fault="any effect may be bound",
    ),
    Claim(
        "O1",
        "One formula gives identity and digest, and a charge and its refund never share them.",
        tests=(
            "case_identity.FormulaOfIdentity.test_the_published_identity_is_reproduced",
            "case_identity.FormulaOfIdentity.test_joined_parts_come_apart_in_one_way_only",
        ),
        fault="the digest forgets the target",
    ),
    Claim(
        "O2",
        "One relation decides 'same payload' in the sender, at the receiver and after "
        "storage; what has no single text is refused with its path.",
        tests=(
            "case_identity.CanonicalText.test_floats_are_refused_naming_their_path",
            "case_identity.SamePayloadIsOneRelation."
            "test_sender_receiver_and_storage_agree_for_every_pair",
        ),
        fault="any value has a canonical text",
    ),
    Claim(
        "O3",
        "No ordinary SQL changes what identifies an operation.",
        tests=(
            "case_ledger.PlainSqlAgainstEveryTable."
            "test_the_identity_of_an_operation_outlives_every_ordinary_update",
        ),
        fault="the file guards nothing",
    ),
    Claim(
        "O4",
        "One proposal in one work item is one operation; while an equivalent one is unresolved a "
        "new one is refused, by prepare and at admission, unless a person declares a distinct "
        "need.",
        tests=(
            "case_orders.NoNewWhileUnknown."
            "test_an_equivalent_order_is_refused_in_any_work_item_while_one_is_unresolved",
            "case_orders.NoNewWhileUnknown."
            "test_of_two_drafts_the_second_is_refused_at_admission_while_the_first_is_unknown",
            "case_orders.NoNewWhileUnknown."
            "test_a_distinct_need_goes_beside_it_by_name_and_reason_which_are_kept",
            "case_orders.NoNewWhileUnknown."
            "test_every_unresolved_state_is_in_its_way_and_no_other_is",
            "case_orders.NoNewWhileUnknown.test_a_stored_order_keeps_the_policy_that_was_pinned",
        ),
        fault="no-new-while-unknown",
    ),
    Claim(
        "O5",
        "An approval names the exact digest, a listed actor and an end within a day; it reserves "
        "once, within the ceiling.",
        tests=(
            "case_orders.ApprovalHasItsConditions."
            "test_from_an_approval_that_passes_one_condition_is_taken_at_a_time",
            "case_orders.ApprovalHasItsConditions."
            "test_money_is_reserved_within_the_ceiling_and_not_a_penny_more",
            "case_orders.ApprovalHasItsConditions."
            "test_approving_again_is_the_newest_approval_and_reserves_nothing_more",
        ),
        fault="any digest is approved",
    ),
    Claim(
        "O6",
        "An uncertain order keeps its money through expiry, revocation, cancellation and "
        "interrupt.",
        tests=(
            "case_orders.MoneyIsHeld."
            "test_an_interrupt_after_admission_leaves_it_unknown_and_its_money_held",
            "case_chapters.Authority.test_a_cancelled_order_that_left_still_settles",
        ),
        results=("e09_authority.cancelled.after.money",),
        fault="unknown-holds-money",
    ),
    Claim(
        "O7",
        "Admission asks for authority, money, target and lease again, in the transaction that "
        "announces; no lock is held during the call, and none of it stops a receipt.",
        tests=(
            "case_orders.Admission."
            "test_from_a_dispatch_that_passes_one_condition_is_taken_at_a_time",
            "case_orders.Admission.test_no_lock_is_held_while_the_request_is_under_way",
            "case_orders.Admission.test_nothing_that_stops_a_send_stops_a_receipt_from_settling",
        ),
        results=("e09_authority.list and ceiling", "e09_authority.automatic"),
        fault="admission-rechecks-authority",
    ),
    Claim(
        "O8",
        "A receipt settles only its exact, admitted order, and moves the money once; the same "
        "again is the stored one, and a contradicting one is refused and kept.",
        tests=(
            "case_resend.HandedIn.test_a_receipt_for_seven_is_refused_and_kept",
            "case_resend.HandedIn.test_it_settles_once_and_again_it_is_the_stored_decision",
            "case_resend.HandedIn.test_a_paused_store_and_an_order_never_admitted_take_none",
            "case_resend.AskFirst.test_not_found_never_ends_the_question",
            "case_supplier.KnowsOrdersAgain."
            "test_a_rejection_is_stored_and_closes_the_operation_to_late_originals",
            "case_chapters.Order."
            "test_the_same_receipt_again_changes_nothing_and_one_for_seven_is_refused",
        ),
        results=("e07_order.a receipt for seven", "e07_order.the same receipt again"),
        fault="mismatch-never-resolves, receipts",
    ),
    Claim(
        "O9",
        "An uncertain order is asked about first, and sent again only under its own identity and "
        "a declared guarantee.",
        tests=(
            "case_resend.AskFirst."
            "test_an_uncertain_order_is_not_sent_again_before_its_receipt_was_asked_for",
            "case_resend.AskFirst.test_neither_lookup_nor_send_reaches_another_supplier",
            "case_resend.AskFirst.test_from_a_resend_that_passes_one_condition_is_taken_at_a_time",
            "case_resend.AskFirst.test_no_resend_after_a_close_was_asked_for",
            "case_chapters.Authority."
            "test_a_renewed_order_is_asked_about_and_then_sent_again_as_it_was",
        ),
        results=("e09_authority.renewed",),
        fault="same-identity-only",
    ),
    Claim(
        "O10",
        "A supplier without that guarantee gets one send; the order stays unknown, asks for a "
        "person, and holds its money.",
        tests=(
            "case_resend.BlindSupplier.test_it_gets_one_send_and_the_order_needs_a_person",
            "case_chapters.AskedInVain.test_it_gets_one_send_and_the_order_waits_for_a_person",
        ),
        results=("e08_blind_supplier.a year later", "e08_blind_supplier.sends at the supplier"),
        fault="same-identity-only",
    ),
    Claim(
        "O11",
        "Revocation before admission ends the order; after it, it says that it may be too late, "
        "and an accepted receipt still settles.",
        tests=(
            "case_resend.Revocation.test_after_admission_it_says_that_it_may_be_too_late",
            "case_resend.Revocation."
            "test_before_admission_it_ends_the_order_and_frees_the_money_once",
            "case_resend.Revocation."
            "test_a_receipt_settles_revoked_and_cancelled_work_and_gives_no_authority",
        ),
        results=("e09_authority.revoked before", "e09_authority.revoked after"),
        fault="revoking is always in time",
    ),
    Claim(
        "O12",
        "Renewal keeps identity, digest, reservation and the duty to ask, and is refused for each "
        "reason by its own name.",
        tests=(
            "case_resend.Renewal.test_from_a_renewal_that_passes_one_condition_is_taken_at_a_time",
            "case_resend.Renewal.test_identity_digest_reservation_and_the_duty_to_look_stay",
        ),
        results=("e09_authority.renewal refused",),
        fault="a guarantee is taken for declared",
    ),
    Claim(
        "O13",
        "A listed person hands in a receipt with a reference, in one transaction; twice is once, "
        "no agent has it, and a paused store refuses it.",
        tests=(
            "case_resend.HandedIn.test_a_paused_store_and_an_order_never_admitted_take_none",
            "case_resend.HandedIn."
            "test_from_a_receipt_that_settles_one_condition_is_taken_at_a_time",
            "case_resend.HandedIn.test_a_reference_has_one_to_five_hundred_characters",
            "case_resend.HandedIn.test_no_list_of_actions_for_an_agent_has_it",
            "case_order_statements.TheFailingStatementOfAnOrder."
            "test_resolve_order_writes_receipt_decision_and_money_or_nothing",
            "case_order_commands.AskingByCommand.test_a_receipt_is_read_as_its_reply_brought_it",
        ),
        results=("e08_blind_supplier.handed in",),
        fault="restored-starts-paused",
    ),
    Claim(
        "O14",
        "The supplier's process commits and drops its first answer; the published world comes out "
        "to the penny.",
        tests=(
            "case_chapters.Order.test_the_published_world_comes_out_to_the_penny",
            "case_chapters.Order.test_two_tubs_are_on_hand_until_a_delivery_is_recorded",
        ),
        results=("e07_order.before", "e07_order.after"),
        fault="the crash is left out",
    ),
    Claim(
        "O15",
        "Every broken answer leaves the order unknown with its money held; only a refused "
        "connection was never sent.",
        tests=(
            "case_chapters.ResponseFaults."
            "test_every_broken_answer_leaves_it_unknown_with_its_money_held",
            "case_chapters.ResponseFaults.test_only_a_refused_connection_was_never_sent",
            "case_http.AgainstTheSupplier."
            "test_every_broken_reply_is_no_reply_and_the_lookup_finds_the_effect",
        ),
        results=("e10_response_faults.faults", "e10_response_faults.refused connection"),
        fault="silence is taken for never sent",
    ),
    Claim(
        "O16",
        "Both files side by side tell a lost receipt, a fault before the supplier, a confirmation "
        "without a row and a row that nobody announced.",
        tests=(
            "case_orders.TwoFilesTogether."
            "test_a_lost_receipt_and_a_fault_before_the_supplier_are_told_apart",
            "case_orders.TwoFilesTogether."
            "test_a_confirmed_order_without_a_row_shows_that_the_evidence_path_is_wrong",
            "case_orders.TwoFilesTogether.test_a_row_that_nobody_announced_is_found",
            "case_orders.TwoFilesTogether.test_every_state_and_every_account_has_its_diagnosis",
        ),
        results=("e07_order.diagnosis",),
        fault="an account is read as empty",
    ),
    Claim(
        "O17",
        "Accepted is not delivered: stock moves on a recorded delivery, once for each reference.",
        tests=(
            "case_orders.Deliveries.test_a_delivery_counts_once_for_its_reference",
            "case_orders.Deliveries.test_no_more_arrives_than_was_ordered",
            "case_orders.Deliveries."
            "test_a_receipt_moves_no_stock_and_a_delivery_moves_nothing_else",
        ),
        results=("e07_order.delivered", "e07_order.money after the delivery"),
        fault="a delivery is known by nothing",
    ),
    Claim(
        "O18",
        "A supplier's memory is data: the same identity is offered again only inside it, counted "
        "from the first send.",
        tests=(
            "case_resend.MemoryOfKeys.test_it_is_offered_inside_the_window_and_never_outside_it",
            "case_resend.MemoryOfKeys.test_it_counts_from_the_first_send_and_not_from_the_latest",
            "case_resend.MemoryOfKeys.test_without_a_declared_memory_it_is_never_offered",
            "case_resend.MemoryOfKeys."
            "test_without_a_declared_scope_of_identities_it_is_never_offered",
            "case_resend.MemoryOfKeys.test_the_memory_of_today_counts_as_well_as_the_pinned_one",
            "case_supplier.KnowsOrdersAgain."
            "test_an_identity_is_known_for_its_retention_and_not_a_moment_longer",
        ),
        fault="a memory never ends",
    ),
    Claim(
        "O19",
        "A restored store is noticed from outside, starts paused, sends nothing, and lists what "
        "it never announced; a backup holds what was committed.",
        tests=(
            "case_copies.TheRestoredStore."
            "test_a_backup_and_a_restored_store_write_send_and_decide_nothing",
            "case_copies.TheMarker.test_an_older_file_put_back_over_its_ledger_is_noticed",
            "case_copies.TheMarker."
            "test_a_ledger_moved_without_its_marker_is_noticed_and_with_it_is_live",
            "case_copies.TheRestoredStore."
            "test_the_account_lists_what_no_row_of_the_restored_store_announced",
            "case_copies.TheBackup."
            "test_a_backup_holds_what_is_only_in_the_log_and_a_file_copy_does_not",
            "case_copies.NothingUnpauses.test_no_plain_statement_ends_a_pause",
        ),
        results=("e11_restored_backup.restored", "e11_restored_backup.copies"),
        fault="restored-starts-paused",
    ),
    Claim(
        "O20",
        "No layer below the sender sends again, follows a redirect, or asks a proxy: requests "
        "received are sends recorded.",
        tests=(
            "case_http.AgainstTheSupplier."
            "test_requests_received_equal_sends_made_whatever_the_environment_says",
            "case_http.AgainstAnyServer."
            "test_a_connection_that_was_closed_after_the_greeting_is_not_made_anew",
        ),
        results=("e07_order.after.sends", "e07_order.after.orders"),
        fault="a lower layer sends again",
    ),
    Claim(
        "S1",
        "Recording unknown opens one question with all that a worker needs; it ends with the "
        "answer, in that commit, and with nothing else.",
        tests=(
            "case_sweeps.Questions.test_a_question_ends_with_its_answer_and_with_nothing_else",
            "case_sweeps.Questions.test_a_question_knows_all_that_a_worker_needs",
            "case_sweeps.Claims.test_a_question_asked_anew_is_another_generation",
        ),
        fault="an answered question stays open",
    ),
    Claim(
        "S2",
        "One sweep claims, observes and resolves, and says in four numbers what came of it.",
        tests=(
            "case_sweeps.Summaries."
            "test_the_stub_leaves_the_review_machine_open_and_a_receipt_answers_it",
            "case_sweeps.Summaries."
            "test_a_batch_is_ten_and_a_lease_two_minutes_unless_told_otherwise",
            "case_chapters.Sweep.test_the_stub_keeps_everything_and_a_provider_resolves",
        ),
        results=("e12_sweep.review machine",),
        fault="a sweep decides nothing",
    ),
    Claim(
        "S3",
        "If the listing fails, a sweep is one error and has looked at nothing.",
        tests=(
            "case_sweeps.Summaries.test_a_listing_that_fails_is_one_error_and_nobody_was_asked",
        ),
        fault="a failed listing passes on",
    ),
    Claim(
        "S4",
        "A lost race is skipped in silence, any other failure of a claim is one error, and "
        "one bad row never stops the rest.",
        tests=(
            "case_sweeps.BadRows.test_a_bad_row_is_one_error_and_stops_no_other",
            "case_sweeps.BadRows.test_a_row_that_the_file_refuses_is_one_error_and_stops_no_other",
            "case_sweeps.BadRows."
            "test_an_answer_that_cannot_be_written_is_one_error_and_stops_no_other",
            "case_sweeps.BadRows."
            "test_an_answer_that_is_refused_again_and_again_rests_and_calls_a_person",
            "case_sweeps.Claims.test_a_lost_race_counts_nowhere",
        ),
        fault="one bad row ends the sweep",
    ),
    Claim(
        "S5",
        "Whatever is no evidence leaves the question open; the provider by default is the "
        "honest stub.",
        tests=(
            "case_sweeps.Summaries.test_whatever_a_provider_does_its_question_stays_open",
            "case_sweeps.Summaries.test_no_kind_of_exception_or_disguised_answer_is_evidence",
            "case_sweeps.Summaries."
            "test_the_stub_leaves_the_review_machine_open_and_a_receipt_answers_it",
            "case_sweeps.Decisions.test_a_receiver_that_contradicts_itself_answers_nothing",
            "case_chapters.Sweep.test_the_stub_keeps_everything_and_a_provider_resolves",
        ),
        results=("e12_sweep.no evidence",),
        fault="an answer of any type counts",
    ),
    Claim(
        "S6",
        "Only conclusive evidence that the policies let a sweep decide on resolves, and it "
        "resolves once; a sweep closes nothing.",
        tests=(
            "case_sweeps.Decisions.test_what_no_policy_lists_is_kept_for_a_person",
            "case_sweeps.Decisions.test_what_is_closed_is_answered_and_what_is_open_is_not",
            "case_chapters.CrashMatrix."
            "test_a_backlog_drains_as_the_receivers_file_predicts_while_workers_die",
            "case_chapters.Sweep.test_a_sweep_decides_what_policies_list_and_closes_nothing",
        ),
        results=(
            "e12_sweep.closed",
            "e14_crash_matrix.M10 backlog",
        ),
        fault="a sweep decides everything",
    ),
    Claim(
        "S7",
        "A fresh token for each claim, compared in the writing transaction, fences every "
        "worker before it, whatever its name and the clock.",
        tests=(
            "case_sweeps.Claims."
            "test_a_stalled_workers_token_is_refused_whatever_its_name_and_the_clock",
            "case_sweeps.Claims.test_of_three_workers_slower_than_their_leases_one_lands",
            "case_chapters.Leases.test_a_stalled_worker_of_the_same_name_writes_nothing",
        ),
        results=(
            "e13_leases.stalled",
            "e14_crash_matrix.M7 stale lease",
        ),
        fault="token-fences-worker",
    ),
    Claim(
        "S8",
        "A lease that ends returns the question and is evidence of nothing.",
        tests=(
            "case_sweeps.Questions.test_an_order_keeps_its_money_over_a_year_of_visits",
            "case_sweeps.Claims.test_a_lease_that_ends_gives_the_question_back_and_proves_nothing",
            "case_chapters.Leases.test_a_killed_workers_question_returns_when_its_lease_ends",
        ),
        results=(
            "e13_leases.killed",
            "e14_crash_matrix.twin.no lease holder, so it failed",
        ),
        fault="unknown-holds-money",
    ),
    Claim(
        "S9",
        "A newer generation of a question stales the older, and they are never merged.",
        tests=(
            "case_sweeps.Claims.test_a_repair_fences_what_was_claimed_before_it",
            "case_sweeps.Claims.test_a_question_asked_anew_is_another_generation",
        ),
        fault="two generations are merged",
    ),
    Claim(
        "S10",
        "A fresh process sees the same questions: all truth is in committed rows.",
        tests=("case_sweeps.Questions.test_a_fresh_process_sees_the_same_questions",),
    ),
    Claim(
        "S11",
        "Every question is visited once before any is visited twice, and a sweep takes the "
        "same steps whatever stands beside it.",
        tests=(
            "case_sweeps.FairOrder.test_hopeless_rows_do_not_block_and_new_rows_do_not_starve",
            "case_sweeps.FairOrder.test_each_of_501_is_visited_once_before_any_is_visited_twice",
            "case_sweeps.FairOrder."
            "test_what_a_slow_provider_left_unvisited_comes_before_what_was_visited",
            "case_sweeps.Flatness.test_a_sweep_takes_the_same_steps_whatever_stands_beside_it",
            "case_chapters.Sweep.test_the_third_question_is_visited_by_the_second_sweep",
        ),
        results=(
            "e12_sweep.visits of the third",
            "e14_crash_matrix.M10 backlog.questions",
        ),
        fault="questions are ordered by age alone",
    ),
    Claim(
        "S12",
        "A passed deadline, or enough visits in vain, calls a person once and slows the "
        "visits; it never changes the outcome.",
        tests=(
            "case_sweeps.Questions."
            "test_a_deadline_and_visits_in_vain_call_a_person_once_and_slow_the_visits",
            "case_sweeps.Questions.test_rests_grow_to_a_bound",
        ),
        fault="nobody is called",
    ),
    Claim(
        "S13",
        "The crash matrix M1 to M11 runs with real kills, each of which says where it struck.",
        tests=(
            "case_chapters.CrashMatrix."
            "test_each_of_eleven_rows_has_a_process_that_died_where_it_says",
            "case_chapters.CrashMatrix."
            "test_a_backlog_drains_as_the_receivers_file_predicts_while_workers_die",
        ),
        results=("e14_crash_matrix.M1 timeout to success",),
        fault="the crash is left out",
    ),
    Claim(
        "M1",
        "A mission finishes only while verifying, with a verifier's PASS, matching hashes, fresh "
        "observations, every mandatory task succeeded and no unknown effect; each missing one is "
        "its own refusal. It may fail while an unknown is open; the unknown and its obligation "
        "stay.",
        tests=(
            "case_missions.TheCompletionGate."
            "test_from_a_case_that_passes_each_missing_condition_is_its_own_refusal",
            "case_missions.TheCompletionGate.test_what_is_missing_is_told_in_one_order",
            "case_missions.TheCompletionGate."
            "test_op_synth_042_starts_a_machine_and_finishes_once_its_lost_receipt_is_found",
            "case_missions.TheCompletionGate."
            "test_a_failed_mission_keeps_the_unknown_and_its_obligation",
            "case_missions.TheCompletionGate."
            "test_evidence_makes_another_world_than_the_verifier_saw",
            "case_missions.TheCompletionGate."
            "test_an_unknown_compensation_counts_however_long_the_chain_is",
            "case_missions.TheCompletionGate."
            "test_the_file_alone_refuses_to_finish_what_a_rule_would_let_pass",
        ),
        results=(
            "e15_completion_gate.walk",
            "e15_completion_gate.missing",
            "e15_completion_gate.failed",
        ),
        fault="completed-means-known",
    ),
    Claim(
        "M2",
        "A task succeeds only with a check reference and evidence references.",
        tests=(
            "case_missions.TasksAndWhatTheyShow."
            "test_a_task_succeeds_only_with_a_check_and_with_evidence",
            "case_missions.TasksAndWhatTheyShow."
            "test_the_file_takes_no_success_without_a_check_or_evidence",
            "case_missions.TasksAndWhatTheyShow."
            "test_a_task_ends_once_under_a_contract_and_anew_under_the_next",
        ),
        fault="a task is taken at its word",
    ),
    Claim(
        "M3",
        "Stale observations, generations, revisions and contract versions are refused at claim, "
        "task and command; resume, wake and dispatch observe again.",
        tests=(
            "case_missions.StaleMissions."
            "test_stale_observations_are_refused_at_claim_task_and_command",
            "case_missions.StaleMissions."
            "test_stale_generations_revisions_and_contracts_are_refused_each_by_its_own_error",
            "case_missions.StaleMissions."
            "test_resume_wake_dispatch_and_evidence_make_what_was_seen_stale",
            "case_missions.StaleMissions."
            "test_what_moves_between_command_and_announcement_is_noticed",
            "case_missions.StaleMissions."
            "test_what_an_older_contract_commanded_is_not_sent_until_it_is_commanded_again",
        ),
        results=(
            "e15_completion_gate.resumed",
            "e15_completion_gate.stale",
        ),
        fault="what was seen stays true",
    ),
    Claim(
        "A1",
        "How a call went and what is known of the effect are two separate facts.",
        tests=(
            "case_moves.TransportIsNotOutcome."
            "test_whatever_a_receiver_raises_the_outcome_is_unknown",
            "case_moves.TransportIsNotOutcome.test_every_transport_can_go_with_every_outcome",
        ),
        results=("e01_lost_receipt.dispatch",),
        fault="silence is taken for never sent",
    ),
    Claim(
        "A2",
        "One table of states and causes is obeyed by the code and by the file.",
        tests=(
            "case_moves.TableOfMoves.test_every_illegal_move_is_refused_by_the_file",
            "case_moves.TableOfMoves.test_the_table_is_the_one_of_the_design",
            "case_moves.TableOfMoves.test_every_illegal_move_is_refused_by_the_code",
        ),
        fault="the file has no triggers",
    ),
    Claim(
        "A11",
        "A history with a lost reply stays unknown until evidence comes, whatever came after.",
        tests=(
            "case_resend.HistoriesOfAttempts."
            "test_a_history_with_a_lost_reply_stays_unknown_whatever_follows",
            "case_resend.HistoriesOfAttempts."
            "test_a_rejection_by_a_supplier_that_keeps_no_receipts_speaks_for_a_single_send_only",
        ),
        fault="an earlier attempt is forgotten",
    ),
    Claim(
        "A12",
        "Every unresolved state has an action that resolves or calls a person: nothing wedges, "
        "and one unknown blocks no unrelated operation.",
        tests=(
            "case_moves.WhatIsAllowedNow.test_nothing_wedges",
            "case_sweeps.Decisions.test_what_evidence_may_not_end_rests_like_everything_else",
            "case_sweeps.Decisions.test_a_receiver_that_contradicts_itself_answers_nothing",
            "case_orders.NoNewWhileUnknown."
            "test_another_subject_kind_target_or_scope_is_not_in_its_way",
        ),
        fault="an unresolved state has no action",
    ),
    Claim(
        "V6",
        "An independent reader of both files accepts every run and rejects every unsafe twin.",
        tests=(
            "case_chapters.LostReceipt."
            "test_the_oracle_accepts_every_run_and_rejects_every_unsafe_twin",
            "case_statements.TheFailingStatement."
            "test_the_second_reader_of_the_files_finds_every_commit_lawful",
        ),
        results=(
            "e01_lost_receipt.twin.blind retry.oracle",
            "e06_compensation.twin.status flip.oracle",
        ),
        fault="the oracle sees nothing",
    ),
    Claim(
        "C1",
        "Chapters have one shape, and each step names what exists.",
        tests=(
            "case_course.Chapters.test_every_chapter_has_its_sections_in_order",
            "case_course.Chapters.test_every_step_names_a_file_and_a_function_that_exist",
        ),
    ),
    Claim(
        "C2",
        "Every listing is cut from a file that runs, and every number is read from the results.",
        tests=(
            "case_course.Chapters.test_every_number_of_a_chapter_is_read_from_the_results",
            "case_course.Readme.test_the_output_shown_is_what_the_runner_prints",
            "case_course.Readme.test_every_listing_is_cut_from_a_file_that_runs",
        ),
    ),
)


def proved_by(chapter: str) -> list[str]:
    """The ids of the claims that a chapter's result helps to prove, in order."""
    return [
        claim.id for claim in CLAIMS if any(key.split(".")[0] == chapter for key in claim.results)
    ]
