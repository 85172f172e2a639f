"""Missions: one gate to "finished", tasks that show what they say, and worlds that go stale."""

from __future__ import annotations

import sqlite3
import unittest
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

from experiments.e15_completion_gate import MISSING, sweep
from experiments.harness import oracle, unsafe
from experiments.harness.errand import (
    AIM,
    CONTRACT,
    LIMIT_MS,
    MISSION,
    START,
    TASK,
    Errand,
    find_out,
    shown,
)
from experiments.harness.inprocess import InProcessSupplier
from experiments.harness.lossy import LosesReceipt, LosesRequest
from experiments.harness.scene import refusal
from experiments.harness.worker import PLAIN
from experiments.tests.base import LabCase
from experiments.tests.case_chapters import Chapter
from experiments.tests.case_order_statements import TOKEN, OrderCase
from experiments.tests.case_statements import NeverSends
from reconcile import (
    Action,
    Ledger,
    Operation,
    Receiver,
    ReconcileError,
    State,
    approve_compensation,
    close,
    dispatch,
    look,
    next_actions,
    observe,
    open_questions,
    prepare,
    resend,
)
from reconcile.flows import mission, tasks, work
from reconcile.ledger import copies
from reconcile.rules import completion, errors, mission_errors, sending, sweeping
from reconcile.rules.claim import Claim
from reconcile.rules.identity import canonical_json
from reconcile.rules.mission import (
    Aim,
    MissionState,
    Reference,
    Seen,
    Sighting,
    TaskState,
    work_of,
)

SPARE = Aim(name="spare", limit_ms=LIMIT_MS, mandatory=False)


class MissionCase(LabCase):
    """One scene, its ledger, and a mission on it."""

    aims = (AIM,)

    def setUp(self) -> None:
        super().setUp()
        self.scene = self.lab.scene()
        self.near = self.scene.near()
        self.ledger = self.scene.ledger()
        self.addCleanup(self.ledger.close)
        self.errand = Errand(self.ledger, aims=self.aims)

    def tearDown(self) -> None:
        self.ledger.close()
        super().tearDown()

    def writes_nothing(self, kind: type[ReconcileError], call: Callable[[], object]) -> None:
        """The call is refused by this error, and every table stays as it was."""
        before = oracle.dump(self.scene.sender)
        with self.assertRaises(kind) as caught:
            call()
        self.assertIs(type(caught.exception), kind)
        self.assertEqual(oracle.dump(self.scene.sender), before)

    def again(self, call: Callable[[], object]) -> None:
        """The call, made a second time, gives the same answer and writes nothing."""
        first = call()
        before = oracle.dump(self.scene.sender)
        self.assertEqual(call(), first)
        self.assertEqual(oracle.dump(self.scene.sender), before)

    def refund(self, original: Operation, ledger: Ledger | None = None) -> Operation:
        """A compensation of an operation, approved."""
        assert original.effect_id is not None
        return approve_compensation(
            ledger or self.ledger,
            original.operation_id,
            effect_id=original.effect_id,
            kind="stop",
            payload={"machine": "review-3"},
            approver="ada",
            expected_version=original.version,
        )


class TheCompletionGate(MissionCase):
    def test_from_a_case_that_passes_each_missing_condition_is_its_own_refusal(self) -> None:
        """M1: one thing is taken away at a time, and nothing else is the matter."""
        wanted = {
            "nothing": None,
            "verifying": mission_errors.NotVerifying,
            "a verdict": mission_errors.NotPassed,
            "a PASS": mission_errors.NotPassed,
            "the same hash": mission_errors.HashMismatch,
            "a fresh observation": mission_errors.StaleObservation,
            "a task": mission_errors.TaskNotSucceeded,
            "a known effect": mission_errors.UnknownEffect,
        }
        self.assertEqual(list(MISSING), list(wanted))
        for name, kind in wanted.items():
            scene = self.lab.scene(name)
            with self.subTest(name), scene.ledger() as ledger:
                errand = MISSING[name](self.lab, scene, ledger)
                before = oracle.dump(scene.sender)
                said = refusal(errand.finalize)
                self.assertEqual(said, "allowed" if kind is None else kind.__name__)
                if kind is not None:
                    self.assertEqual(oracle.dump(scene.sender), before)

    def test_what_is_missing_is_told_in_one_order(self) -> None:
        """M1: with all of it missing, each repair brings the next refusal, and then it passes."""
        lossy, errand = LosesReceipt(self.near), self.errand
        operation, _ = errand.start(lossy)
        self.lab.pass_time(LIMIT_MS + 1)
        told = [refusal(errand.finalize)]
        mission.verify(self.ledger, MISSION)
        told.append(refusal(errand.finalize))
        errand.judge(judged_hash="0" * 64)
        told.append(refusal(errand.finalize))
        errand.judge()
        told.append(refusal(errand.finalize))
        errand.observe()
        told.append(refusal(errand.finalize))
        errand.judge(passed=False)
        errand.observe()
        errand.succeed(errand.claim(), evidence=(shown("photograph"),))
        errand.verify()
        told.append(refusal(errand.finalize))
        find_out(self.ledger, operation.operation_id, self.near)
        errand.observe()
        errand.judge()
        told.append(refusal(errand.finalize))
        self.assertEqual(
            told,
            [
                "NotVerifying",
                "NotPassed",
                "HashMismatch",
                "StaleObservation",
                "TaskNotSucceeded",
                "UnknownEffect",
                "allowed",
            ],
        )

    def test_op_synth_042_starts_a_machine_and_finishes_once_its_lost_receipt_is_found(
        self,
    ) -> None:
        """M1: a real process dies; the stub leaves the mission waiting, a provider resolves."""
        errand = self.errand
        claim = errand.begin()
        operation = errand.command(self.scene.near(policy=PLAIN), claim)
        self.scene.name(operation, "start")
        crashing = self.scene.receiver(crash="after_commit", policy=PLAIN)
        self.assertIs(errand.send(operation, crashing, claim).outcome, State.UNKNOWN)
        self.assertEqual(self.scene.effects(), {"start": 1})
        errand.observe(what="the lamp is green")
        errand.succeed(claim)
        errand.verify()
        self.writes_nothing(mission_errors.UnknownEffect, errand.finalize)
        self.assertEqual(sweep(errand, None), "unknown")
        self.writes_nothing(mission_errors.UnknownEffect, errand.finalize)
        self.lab.pass_time(sweeping.BACK_OFF_MS[0])
        answers, by = self.scene.receiver(policy=PLAIN), ("find out", "ada")
        close(self.ledger, operation.operation_id, answers, purpose=by[0], authorized_by=by[1])
        self.assertEqual(sweep(errand, answers), "resolved")
        self.assertIs(look(self.ledger, operation.operation_id).state, State.CONFIRMED)
        errand.observe(what="the lamp is green")
        errand.judge()
        self.assertIs(errand.finalize().state, MissionState.FINISHED)
        self.assertEqual(self.scene.effects(), {"start": 1})

    def test_evidence_makes_another_world_than_the_verifier_saw(self) -> None:
        """M1: whichever way it goes, a PASS from before it finishes nothing."""
        for name, lossy, state in (
            ("done", LosesReceipt, "confirmed"),
            ("absent", LosesRequest, "not_applied"),
        ):
            scene = self.lab.scene(name)
            with self.subTest(name), scene.ledger() as ledger:
                errand = Errand(ledger)
                operation = errand.done(lossy(scene.near()))
                self.assertEqual(find_out(ledger, operation.operation_id, scene.near()), state)
                self.assertEqual(refusal(errand.finalize), "HashMismatch")
                errand.judge()
                self.assertEqual(refusal(errand.finalize), "StaleObservation")
                errand.observe()
                self.assertEqual(refusal(errand.finalize), "HashMismatch")

    def test_a_word_from_before_the_work_finishes_nothing(self) -> None:
        """M1: whoever foresaw the hash has judged nothing, and then worked on it herself."""
        errand = self.errand
        contract: dict[str, object] = {"machine": "review-4"}
        mission.verify(self.ledger, MISSION)
        now = errand.look()
        there = Sighting(
            what=shown("the panel"), contract_version=2, world=1, observer="cam", observed_ms=1
        )
        done = replace(
            now.tasks[0],
            state=TaskState.SUCCEEDED,
            check=shown("panel test"),
            evidence=(shown("photograph of the panel"),),
            sighting=there,
        )
        text = canonical_json(contract)
        ahead = replace(now, contract=text, contract_version=2, tasks=(done,)).hash
        errand.judge(judged_hash=ahead)
        mission.amend(self.ledger, MISSION, contract=contract, seen=errand.seen, by="ada")
        errand.observe()
        errand.succeed(errand.claim(owner="vera"))
        mission.verify(self.ledger, MISSION)
        self.assertEqual(errand.look().hash, ahead)
        self.writes_nothing(mission_errors.NotPassed, errand.finalize)
        self.writes_nothing(mission_errors.OwnWork, errand.judge)
        with mock.patch.object(completion, "word_is_of_today", lambda *_: None):
            self.writes_nothing(mission_errors.OwnWork, errand.finalize)
        errand.judge(verifier="vic")
        self.assertIs(errand.finalize().state, MissionState.FINISHED)

    def test_a_failed_mission_keeps_the_unknown_and_its_obligation(self) -> None:
        """M1: it fails for another reason; the question stays open until evidence comes."""
        operation = self.errand.done(LosesReceipt(self.near))
        (before,) = open_questions(self.ledger)
        ended = mission.fail(self.ledger, MISSION, by="ada", reason="no power")
        self.assertEqual((ended.state, ended.reason), (MissionState.FAILED, "no power"))
        self.assertEqual(open_questions(self.ledger), [before])
        self.assertEqual(look(self.ledger, operation.operation_id), operation)
        self.writes_nothing(mission_errors.MissionEnded, self.errand.finalize)
        self.assertEqual(find_out(self.ledger, operation.operation_id, self.near), "confirmed")
        self.assertEqual(open_questions(self.ledger), [])
        self.assertEqual(self.errand.look(), replace(ended, tasks=self.errand.look().tasks))

    def test_it_may_fail_while_it_runs_and_while_it_is_verified(self) -> None:
        """M1: failing asks for nothing but a name and a reason."""
        for name, verifying in (("runs", False), ("is verified", True)):
            with self.subTest(name):
                errand = Errand(self.ledger, name)
                if verifying:
                    mission.verify(self.ledger, name)
                self.assertIs(
                    mission.fail(self.ledger, name, by="ada", reason="why").state,
                    MissionState.FAILED,
                )
                self.assertEqual(refusal(mission.verify, self.ledger, name), "MissionEnded")
                self.assertEqual(refusal(errand.observe), "MissionEnded")

    def test_every_unresolved_state_and_every_task_counts(self) -> None:
        """M1: pending, partial and conflict too; also of a task that need not succeed."""
        errand = Errand(self.ledger, "two", aims=(AIM, SPARE))
        errand.observe(SPARE.name)
        spare = errand.claim(SPARE.name)
        operation = errand.command(self.near, spare)
        errand.send(operation, LosesReceipt(self.near), spare)
        errand.succeed(errand.begin())
        errand.verify()
        self.assertEqual(refusal(errand.finalize), "UnknownEffect")
        stands = errand.look()
        for state in State:
            (one,) = stands.tasks[1].operations
            other = replace(stands.tasks[1], operations=(replace(one, state=state),))
            changed = replace(stands, tasks=(stands.tasks[0], other))
            with self.subTest(state):
                said = refusal(completion.completed_means_known, changed)
                open_ones = (State.UNKNOWN, State.PENDING, State.PARTIAL, State.CONFLICT)
                self.assertEqual(said, "UnknownEffect" if state in open_ones else "allowed")

    def test_an_unknown_compensation_counts_however_long_the_chain_is(self) -> None:
        """M1: the stop of a start, and the stop of that stop."""
        operation, claim = self.errand.start(self.near)
        first = self.refund(operation)
        dispatch(self.ledger, first.operation_id, self.near)
        second = self.refund(look(self.ledger, first.operation_id))
        dispatch(self.ledger, second.operation_id, LosesReceipt(self.near))
        self.errand.observe()
        self.errand.succeed(claim)
        self.errand.verify()
        with self.assertRaises(mission_errors.UnknownEffect) as caught:
            self.errand.finalize()
        self.assertEqual(caught.exception.operation_id, second.operation_id)
        find_out(self.ledger, second.operation_id, self.near)
        self.errand.observe()
        self.errand.judge()
        self.assertIs(self.errand.finalize().state, MissionState.FINISHED)

    def test_what_is_unknown_elsewhere_does_not_hold_a_mission_up(self) -> None:
        """M1, A12: another mission's unknown, and one of no mission."""
        Errand(self.ledger, "other").done(LosesReceipt(self.near), subject="another")
        self.unknown(self.scene, self.ledger)
        self.errand.done(self.near)
        self.assertIs(self.errand.finalize().state, MissionState.FINISHED)

    def test_a_draft_whose_effect_was_seen_is_no_known_one(self) -> None:
        """M1: it was never sent from here, and an effect of it stands."""
        claim = self.errand.begin()
        draft = self.errand.command(self.near, claim)
        self.near.send(draft.query)
        observe(self.ledger, draft.operation_id, self.near.snapshot(draft.query))
        self.scene.unsafe = True  # the oracle rightly finds an effect that nobody announced
        self.errand.succeed(claim)
        self.errand.verify()
        self.writes_nothing(mission_errors.UnknownEffect, self.errand.finalize)
        mission.fail(self.ledger, MISSION, by="ada", reason="why")
        self.assertIs(look(self.ledger, draft.operation_id).state, State.PREPARED)

    def test_what_never_left_is_withdrawn_with_the_end_of_its_mission(self) -> None:
        """M1: by finishing and by failing; a compensation that a person approved stays."""
        for name in ("finishes", "fails"):
            with self.subTest(name):
                errand = Errand(self.ledger, name)
                operation, claim = errand.start(self.near, subject=name)
                draft = errand.command(self.near, claim, payload={"machine": name}, subject=name)
                stop = self.refund(operation)
                errand.succeed(claim)
                errand.verify()
                if name == "finishes":
                    errand.finalize()
                else:
                    mission.fail(self.ledger, name, by="ada", reason="why")
                self.assertIs(look(self.ledger, draft.operation_id).state, State.REVOKED)
                self.assertIs(look(self.ledger, stop.operation_id).state, State.PREPARED)
                sent = dispatch(self.ledger, stop.operation_id, LosesReceipt(self.near))
                self.assertIs(sent.outcome, State.UNKNOWN)
                self.assertEqual(self.scene.findings(), [])  # it was sent after the end

    def test_what_comes_back_after_a_failure_is_withdrawn_by_failing_again(self) -> None:
        """M1: its send was under way when the mission failed, and proves that nothing left."""
        claim = self.errand.begin()
        operation = self.errand.command(self.near, claim)

        class FailsMeanwhile(NeverSends):
            def send(self, query: Any) -> None:
                mission.fail(ledger, MISSION, by="ada", reason="why")
                super().send(query)

        ledger = self.ledger
        self.errand.send(operation, FailsMeanwhile(self.near), claim)
        self.assertIs(look(self.ledger, operation.operation_id).state, State.PREPARED)
        with mock.patch.object(sending, "sent_by_its_own", lambda _: None):
            said = refusal(dispatch, self.ledger, operation.operation_id, self.near)
        self.assertEqual(said, "StorageFailed")  # the file sends nothing of a mission that ended
        mission.fail(self.ledger, MISSION, by="ada", reason="why")
        self.assertIs(look(self.ledger, operation.operation_id).state, State.REVOKED)

    def test_evidence_against_a_final_state_needs_another_verdict(self) -> None:
        """M1: the incident is another world."""
        operation = self.errand.done(self.near)
        facts = self.near.snapshot(operation.query, close=True)
        observe(self.ledger, operation.operation_id, replace(facts, effects=()))
        self.assertEqual(look(self.ledger, operation.operation_id).version, operation.version + 1)
        self.assertEqual(refusal(self.errand.finalize), "HashMismatch")

    def test_a_task_that_need_not_succeed_may_stay_open_and_if_it_did_must_be_fresh(self) -> None:
        """M1: its success is part of what "finished" says."""
        for name, succeeds in (("stays open", False), ("succeeds", True)):
            with self.subTest(name):
                errand = Errand(self.ledger, name, aims=(AIM, SPARE))
                errand.succeed(errand.begin())
                if succeeds:
                    early = self.ledger.now_ms()
                    self.lab.pass_time(LIMIT_MS // 2)
                    errand.observe(SPARE.name, observed_ms=early)
                    errand.succeed(errand.claim(SPARE.name))
                self.lab.pass_time(LIMIT_MS // 2 + 1)
                errand.observe()
                errand.verify()
                said = refusal(errand.finalize)
                self.assertEqual(said, "StaleObservation" if succeeds else "allowed")

    def test_a_hash_covers_all_that_a_verifier_is_shown(self) -> None:
        """M1: any part of it changed is another hash; when and by whom it was seen is not."""
        self.errand.done(self.near)
        now = self.errand.look()
        (task,) = now.tasks
        assert task.sighting is not None
        other, digest = shown("other"), "1" * 64
        seen = task.sighting
        same = [
            replace(now, tasks=(replace(task, sighting=replace(seen, observed_ms=1)),)),
            replace(now, tasks=(replace(task, sighting=replace(seen, observer="eve")),)),
            replace(now, revision=9),
        ]
        changed = [
            replace(now, contract="{}"),
            replace(now, contract_version=9),
            replace(now, world=9),
            replace(now, tasks=()),
            replace(now, tasks=(task, task)),
            *(
                replace(now, tasks=(replace(task, **part),))
                for part in (
                    {"state": TaskState.FAILED},
                    {"check": other},
                    {"check": None},
                    {"evidence": ()},
                    {"evidence": (*task.evidence, other)},
                    {"evidence": (replace(task.evidence[0], digest=digest),)},
                    {"sighting": None},
                    {"sighting": replace(seen, what=other)},
                    {"sighting": replace(seen, world=9)},
                    {"aim": replace(AIM, name="x")},
                    {"aim": replace(AIM, limit_ms=9)},
                    {"aim": replace(AIM, mandatory=False)},
                )
            ),
        ]
        self.assertEqual({one.hash for one in same}, {now.hash})
        hashes = [one.hash for one in changed]
        self.assertEqual(len({now.hash, *hashes}), len(changed) + 1)

    def test_nobody_verifies_a_success_of_their_own(self) -> None:
        """M1: by name; under another name it is somebody else."""
        operation, claim = self.errand.start(self.near)
        self.errand.succeed(claim)
        mission.verify(self.ledger, MISSION)
        self.writes_nothing(
            mission_errors.OwnWork, lambda: self.errand.judge(verifier=claim.owner)
        )
        self.assertIs(operation.state, State.CONFIRMED)

    def test_a_word_without_verification_and_work_under_it_are_refused(self) -> None:
        """M1: what is judged stands still; after a FAIL work goes on."""
        claim = self.errand.begin()
        operation = self.errand.command(self.near, claim)
        self.writes_nothing(mission_errors.NotVerifying, self.errand.judge)
        mission.verify(self.ledger, MISSION)
        for call in (
            lambda: self.errand.claim(),
            lambda: self.errand.command(self.near, claim),
            lambda: self.errand.send(operation, self.near, claim),
            lambda: self.errand.succeed(claim),
            lambda: tasks.give_up(self.ledger, claim=claim, seen=self.errand.seen, reason="w"),
        ):
            self.writes_nothing(mission_errors.NotRunning, call)
        self.assertEqual(self.scene.contacts(), [])
        self.errand.judge(passed=False)
        self.assertIs(self.errand.succeed(claim).tasks[0].state, TaskState.SUCCEEDED)

    def test_finished_and_failed_are_final(self) -> None:
        """M1: nothing of them moves, whatever is called; the end itself may be asked for again."""
        operation = self.errand.done(self.near)
        seen = self.errand.seen
        self.again(self.errand.finalize)
        over = Errand(self.ledger, "over")
        self.again(lambda: mission.fail(self.ledger, "over", by="ada", reason="why"))
        for name, errand in ((MISSION, self.errand), ("over", over)):
            for call in (
                lambda name=name: mission.resume(self.ledger, name),
                lambda name=name: mission.wake(self.ledger, name),
                lambda name=name: mission.verify(self.ledger, name),
                lambda errand=errand: errand.judge(),
                lambda errand=errand: errand.observe(),
                lambda errand=errand: errand.claim(),
                lambda name=name, errand=errand: mission.amend(
                    self.ledger, name, contract={}, seen=errand.seen, by="ada"
                ),
            ):
                self.writes_nothing(mission_errors.MissionEnded, call)
        self.writes_nothing(
            mission_errors.MissionEnded,
            lambda: mission.fail(self.ledger, MISSION, by="ada", reason="why"),
        )
        self.writes_nothing(mission_errors.MissionEnded, over.finalize)
        self.assertLess(seen.revision, self.errand.seen.revision)
        self.assertIs(look(self.ledger, operation.operation_id).state, State.CONFIRMED)

    def test_a_paused_store_acts_on_no_mission(self) -> None:
        """M1, M3: a restored copy is older than the world, and every call says so."""
        claim = self.errand.begin()
        operation = self.errand.command(self.near, claim)
        ripe = Errand(self.ledger, "ripe")
        ripe.done(self.near, subject="ripe")
        over = Errand(self.ledger, "over")
        mission.fail(self.ledger, "over", by="ada", reason="why")
        backup = copies.backup(self.ledger, self.scene.sender.with_name("backup.db"))
        for place in (backup, copies.restore(backup, backup.with_name("restored.db"))):
            with Ledger(place, clock=self.lab.clock) as ledger:
                before = oracle.dump(place)
                for name, call in self.on_a_copy(ledger, claim, operation).items():
                    with (
                        self.subTest(name, place=place.name),
                        self.assertRaises(errors.Paused),
                    ):
                        call()
                self.assertEqual(oracle.dump(place), before)
                there, here = mission.look_mission(ledger, "over"), over.look()
                self.assertEqual(there, replace(here, paused=there.paused))
        self.assertEqual(len(self.scene.contacts()), 1)

    def on_a_copy(
        self, ledger: Ledger, claim: Claim, operation: Operation
    ) -> dict[str, Callable[[], object]]:
        """Every call that writes, on a copy of the ledger."""
        copy, ripe = Errand(ledger, aims=()), Errand(ledger, "ripe", aims=())
        seen = self.errand.seen
        fail = partial(mission.fail, ledger, by="ada", reason="why")
        return {
            "open": lambda: Errand(ledger, "new"),
            "open again": lambda: Errand(ledger),
            "amend": lambda: mission.amend(ledger, MISSION, contract={}, seen=seen, by="ada"),
            "resume": lambda: mission.resume(ledger, MISSION),
            "wake": lambda: mission.wake(ledger, MISSION),
            "verify": lambda: mission.verify(ledger, MISSION),
            "judge": lambda: ripe.judge(verifier="victor"),
            "finalize": ripe.finalize,
            "fail": lambda: fail(MISSION),
            "fail again": lambda: fail("over"),
            "observe": copy.observe,
            "claim": copy.claim,
            "command": lambda: copy.command(self.near, claim),
            "dispatch": lambda: copy.send(operation, self.near, claim),
            "succeed": lambda: copy.succeed(claim),
            "give up": lambda: tasks.give_up(ledger, claim=claim, seen=seen, reason="why"),
        }

    def test_the_oracle_finds_a_mission_finished_over_an_unknown_or_its_compensation(self) -> None:
        """M1, V6: past the triggers, because every task says done."""
        for name in ("start", "compensation"):
            scene = self.lab.scene(name, unsafe=True)
            with self.subTest(name), scene.ledger() as ledger:
                errand, near = Errand(ledger), scene.near()
                lossy = LosesReceipt(near) if name == "start" else near
                operation, claim = errand.start(lossy)
                if name == "compensation":
                    stop = self.refund(operation, ledger)
                    dispatch(ledger, stop.operation_id, LosesReceipt(near))
                    errand.observe()
                errand.succeed(claim)
                self.assertEqual(scene.findings(), [])
                unsafe.finish(scene.sender, MISSION)
                (found,) = scene.findings()
                self.assertIn("completed-means-known", found)

    def test_the_file_alone_refuses_to_finish_what_a_rule_would_let_pass(self) -> None:
        """M1, A2: with each rule taken away that the file can say, its trigger holds."""
        for missing, rules in {
            "verifying": ("is_verifying", "verifier_passed"),
            "a PASS": ("verifier_passed", "word_is_of_today"),
            "a fresh observation": ("seen_lately",),
            "a task": ("tasks_succeeded",),
            "a known effect": ("completed_means_known",),
        }.items():
            scene = self.lab.scene(missing)
            with self.subTest(missing), scene.ledger() as ledger:
                errand = MISSING[missing](self.lab, scene, ledger)
                patches = [mock.patch.object(completion, rule, lambda *_: None) for rule in rules]
                for patch in patches:
                    patch.start()
                    self.addCleanup(patch.stop)
                said = refusal(errand.finalize)
                for patch in patches:
                    patch.stop()
                self.assertEqual(said, "StorageFailed")


class TasksAndWhatTheyShow(MissionCase):
    def test_a_task_succeeds_only_with_a_check_and_with_evidence(self) -> None:
        """M2: each missing one is its own refusal, and nothing is written."""
        claim = self.errand.begin()
        for given, kind in (
            ({"check": None}, mission_errors.NoCheck),
            ({"evidence": ()}, mission_errors.NoEvidence),
            ({"check": None, "evidence": ()}, mission_errors.NoCheck),
            ({"check": "panel test"}, errors.Malformed),
            ({"evidence": ("photograph",)}, errors.Malformed),
            ({"evidence": None}, errors.Malformed),
            ({"evidence": "photograph"}, errors.Malformed),
        ):
            with self.subTest(given):
                self.writes_nothing(kind, partial(self.errand.succeed, claim, **given))
        (task,) = self.errand.succeed(claim).tasks
        self.assertEqual(task.state, TaskState.SUCCEEDED)
        self.assertEqual(task.check, shown("panel test"))
        self.assertEqual(task.evidence, (shown("photograph of the panel"),))

    def test_a_reference_names_something_and_its_digest(self) -> None:
        """M2: from one to five hundred characters, and sixty-four hex digits."""
        good = shown("x").digest
        self.assertEqual(len(Reference(reference="x" * 500, digest=good).reference), 500)
        for reference, digest in (
            ("", good),
            (" ", good),
            ("x" * 501, good),
            (7, good),
            ("x", ""),
            ("x", good[:-1]),
            ("x", good.upper()),
            ("x", "g" * 64),
        ):
            with (
                self.subTest(reference=reference, digest=digest),
                self.assertRaises(errors.Malformed),
            ):
                Reference(reference=reference, digest=digest)  # type: ignore[arg-type]

    def test_the_file_takes_no_success_without_a_check_or_evidence(self) -> None:
        """M2, A2: with the rules taken away, its triggers and checks hold."""
        claim = self.errand.begin()
        with mock.patch.object(completion, "has_evidence", lambda *_: None):
            self.writes_nothing(
                errors.StorageFailed, partial(self.errand.succeed, claim, evidence=())
            )
        sql = "INSERT INTO task_end VALUES (1, 1, 'succeeded', {}, NULL, 'worker', 0)"
        with closing(sqlite3.connect(self.scene.sender, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("INSERT INTO evidence VALUES (1, 1, 1, 'r', 'd')")
            for check in ("NULL, NULL", "'', 'd'", f"'{'x' * 501}', 'd'", "'c', NULL"):
                with self.subTest(check), self.assertRaisesRegex(sqlite3.Error, "CHECK"):
                    other.execute(sql.format(check))
            self.assertEqual(other.execute(sql.format("'c', 'd'")).rowcount, 1)
            other.execute("ROLLBACK")

    def test_a_task_ends_once_under_a_contract_and_anew_under_the_next(self) -> None:
        """M2, M3: a success does not become another one, nor a failure, until it is amended."""
        claim = self.errand.begin()
        self.again(lambda: self.errand.succeed(claim))

        def give_up() -> object:
            seen = self.errand.seen
            return tasks.give_up(self.ledger, claim=claim, seen=seen, reason="no power")

        for call in (
            lambda: self.errand.succeed(claim, check=shown("another check")),
            lambda: self.errand.succeed(claim, evidence=(shown("another photograph"),)),
            give_up,
            lambda: self.errand.command(self.near, claim),
        ):
            self.writes_nothing(mission_errors.TaskEnded, call)
        self.amend()
        self.assertEqual(self.errand.look().tasks[0].state, TaskState.OPEN)
        self.errand.observe()
        self.again(give_up)
        self.writes_nothing(mission_errors.TaskEnded, lambda: self.errand.succeed(claim))
        self.amend()  # the same words again are another contract, for whoever saw the last one
        self.errand.observe()
        self.assertEqual(self.errand.succeed(claim).tasks[0].state, TaskState.SUCCEEDED)

    def amend(self) -> None:
        mission.amend(self.ledger, MISSION, contract={"now": 2}, seen=self.errand.seen, by="ada")

    def test_a_mission_asks_for_something_and_its_name_stands_for_one_thing(self) -> None:
        """M1: no empty mission finishes by itself; opening the same again is harmless."""
        opens = mission.open_mission
        given: dict[str, Any] = {"contract": CONTRACT, "aims": (AIM,), "by": "ada"}
        self.again(lambda: opens(self.ledger, MISSION, **given))
        changes: tuple[dict[str, Any], ...] = (
            {"contract": {}},
            {"aims": (SPARE, AIM)},
            {"aims": (replace(AIM, limit_ms=1),)},
            {"by": "bob"},
        )
        for changed in changes:
            with self.subTest(changed):
                self.writes_nothing(
                    mission_errors.MissionTaken,
                    partial(opens, self.ledger, MISSION, **{**given, **changed}),
                )
        for aims in ((), (SPARE,)):
            with self.subTest(aims), self.assertRaises(mission_errors.NoMandatoryTask):
                opens(self.ledger, "empty", contract={}, aims=aims, by="ada")
        with self.assertRaises(mission_errors.MissionTaken):
            opens(self.ledger, "twice", contract={}, aims=(AIM, AIM), by="ada")
        prepare(self.ledger, self.near, work_id=work_of("used", TASK), **{**START, "subject": "u"})
        with self.assertRaises(mission_errors.MissionTaken):
            opens(self.ledger, "used", contract={}, aims=(AIM,), by="ada")
        for name in ("empty", "twice", "used"):
            self.assertEqual(refusal(mission.look_mission, self.ledger, name), "UnknownMission")

    def test_the_work_item_of_a_task_is_taken_apart_in_one_way(self) -> None:
        """M2: names that could run together do not."""
        pairs = [("a", "b,c"), ("a,b", "c"), ('a","b', "c"), ("a", 'b","c')]
        self.assertEqual(len({work_of(*pair) for pair in pairs}), len(pairs))


class StaleMissions(MissionCase):
    """Claim, task and command, each with everything that can be stale."""

    def setUp(self) -> None:
        super().setUp()
        self.claimed = self.errand.begin()
        self.draft = self.errand.command(self.near, self.claimed)

    def calls(self) -> dict[str, Callable[..., object]]:
        """Every call that acts on what its caller saw."""
        return {
            "claim": lambda **s: self.errand.claim(**s),
            "command": lambda **s: self.errand.command(self.near, self.claimed, **s),
            "dispatch": lambda **s: self.errand.send(self.draft, self.near, self.claimed, **s),
            "succeed": lambda **s: self.errand.succeed(self.claimed, **s),
        }

    def test_stale_observations_are_refused_at_claim_task_and_command(self) -> None:
        """M3: of another contract or world, too old, and of a moment that has not come."""
        spoilt: dict[str, Callable[[], object]] = {  # a new contract leaves the world as it is
            "another world": lambda: mission.resume(self.ledger, MISSION),
            "another contract": self.amend,
            "too old": lambda: self.lab.pass_time(LIMIT_MS),
        }
        for why, spoil in spoilt.items():
            self.errand.observe()
            spoil()
            self.claimed = work.extend(self.ledger, self.claimed, lease_ms=3 * LIMIT_MS)
            for name, call in self.calls().items():
                with self.subTest(why, call=name):
                    self.writes_nothing(mission_errors.StaleObservation, call)
        self.writes_nothing(mission_errors.StaleObservation, Errand(self.ledger, "blind").claim)
        self.assertEqual(self.scene.contacts(), [])

    def test_the_limit_is_the_last_moment_and_the_future_counts_for_nothing(self) -> None:
        """M3: to the millisecond, and after a clock that stepped back."""
        now = self.errand.look()
        (task,) = now.tasks
        assert task.sighting is not None
        at_ms = task.sighting.observed_ms
        for now_ms, said in (
            (at_ms - 1, "StaleObservation"),
            (at_ms, "allowed"),
            (at_ms + LIMIT_MS, "allowed"),
            (at_ms + LIMIT_MS + 1, "StaleObservation"),
        ):
            with self.subTest(now_ms - at_ms):
                self.assertEqual(refusal(completion.seen_lately, now, task, now_ms), said)
        self.writes_nothing(
            errors.Malformed,
            lambda: self.errand.observe(observed_ms=self.ledger.now_ms() + LIMIT_MS),
        )

    def test_stale_generations_revisions_and_contracts_are_refused_each_by_its_own_error(
        self,
    ) -> None:
        """M3: at claim, command, dispatch, success, giving up, observing and amending."""
        seen = self.errand.seen
        calls: dict[str, Callable[..., object]] = {
            **self.calls(),
            "observe": lambda **s: self.errand.observe(**s),
            "give up": lambda **s: tasks.give_up(
                self.ledger, claim=self.claimed, reason="why", **s
            ),
            "amend": lambda **s: mission.amend(
                self.ledger, MISSION, contract={"x": 1}, by="ada", **s
            ),
        }
        for kind, stale in (
            (mission_errors.StaleContract, Seen(9, 9, 9)),
            (mission_errors.StaleWorld, Seen(seen.contract_version, 9, 9)),
            (mission_errors.StaleRevision, Seen(seen.contract_version, seen.world, 9)),
        ):
            for name, call in calls.items():
                with self.subTest(name, kind=kind):
                    self.writes_nothing(kind, partial(call, seen=stale))
        self.assertEqual(self.scene.contacts(), [])

    def test_a_look_from_before_this_world_or_contract_is_not_kept(self) -> None:
        """M3, M1: however late it is reported, and by whoever looked again since."""
        errand = self.errand
        changes: tuple[Callable[[], object], ...] = (
            lambda: errand.send(self.draft, self.near, self.claimed),
            lambda: mission.resume(self.ledger, MISSION),
            lambda: mission.amend(self.ledger, MISSION, contract={}, seen=errand.seen, by="ada"),
        )
        for change in changes:
            errand.observe()
            looked_ms = self.ledger.now_ms()
            change()
            early = partial(errand.observe, observed_ms=looked_ms)
            self.writes_nothing(mission_errors.StaleObservation, early)
            errand.observe(observed_ms=self.ledger.now_ms())

    def test_what_a_task_commands_is_sent_by_its_task_alone(self) -> None:
        """M3: neither a plain dispatch nor a second sending goes past its world and contract."""
        operation_id, contacts = self.draft.operation_id, len(self.scene.contacts())
        supplier = InProcessSupplier(self.scene.receiver_file, identity=self.near.identity)
        for by in (dispatch, resend):
            with self.subTest(by.__name__), self.assertRaises(errors.UnderTask):
                by(self.ledger, operation_id, supplier)
        lossy = LosesReceipt(self.near)
        self.errand.send(self.draft, lossy, self.claimed)
        for by in (dispatch, resend):
            with self.subTest(by.__name__), self.assertRaises(errors.UnderTask):
                by(self.ledger, operation_id, supplier)
        self.assertEqual(len(self.scene.contacts()), contacts + 1)
        self.assertNotIn(Action.RESEND, next_actions(look(self.ledger, operation_id), now_ms=0))

    def test_resume_wake_dispatch_and_evidence_make_what_was_seen_stale(self) -> None:
        """M3: each is another world, in silence and in answer alike; observing brings it back."""
        operation, claim = self.draft, self.claimed
        calls: dict[str, Callable[[], object]] = {
            "resume": lambda: mission.resume(self.ledger, MISSION),
            "wake": lambda: mission.wake(self.ledger, MISSION),
            "dispatch": lambda: self.errand.send(operation, LosesReceipt(self.near), claim),
            "evidence": lambda: find_out(self.ledger, operation.operation_id, self.near),
        }
        for name, call in calls.items():
            with self.subTest(name):
                before = self.errand.seen
                call()
                self.assertEqual(self.errand.seen.world, before.world + 1)
                self.assertEqual(refusal(self.errand.succeed, claim, seen=before), "StaleWorld")
                self.assertEqual(refusal(self.errand.succeed, claim), "StaleObservation")
                self.errand.observe()
        self.assertEqual(refusal(self.errand.succeed, claim), "allowed")

    def test_reading_closing_and_observing_an_operation_is_no_other_world(self) -> None:
        """M3: only what is sent and what is decided is."""
        self.errand.send(self.draft, LosesReceipt(self.near), self.claimed)
        self.errand.observe()
        seen = self.errand.seen
        at = self.draft.operation_id
        facts = close(self.ledger, at, self.near, purpose="find out", authorized_by="ada")
        observe(self.ledger, at, facts)
        look(self.ledger, at)
        self.assertEqual(self.errand.seen, seen)

    def test_what_an_older_contract_commanded_is_not_sent_until_it_is_commanded_again(
        self,
    ) -> None:
        """M3: S9's rule for a mission: the newer contract stales what the older one intended."""
        self.amend()
        self.errand.observe()
        send = partial(self.errand.send, self.draft, self.near, self.claimed)
        self.writes_nothing(mission_errors.StaleContract, send)
        with mock.patch.object(completion, "commanded_today", lambda *_: None):
            self.writes_nothing(errors.StorageFailed, send)
        self.assertEqual(self.scene.contacts(), [])
        again = self.errand.command(self.near, self.claimed)
        self.assertEqual(again, self.draft)
        self.assertIs(send().outcome, State.CONFIRMED)

    def test_a_claim_is_fenced_and_is_of_this_task(self) -> None:
        """M3: after another claim, of another task, and of a work item."""
        work.release(self.ledger, self.claimed)
        newer = self.errand.claim(owner="another")
        self.assertEqual(newer.generation, self.claimed.generation + 1)
        other = Errand(self.ledger, "other")
        foreign = other.begin()
        work.enqueue(self.ledger, work_of(MISSION, TASK))
        item = work.claim(self.ledger, work_of(MISSION, TASK), owner="worker")
        for name, claim in (("old", self.claimed), ("of work", item)):
            for call, at in (
                ("command", lambda claim=claim: self.errand.command(self.near, claim)),
                ("send", lambda claim=claim: self.errand.send(self.draft, self.near, claim)),
                ("succeed", lambda claim=claim: self.errand.succeed(claim)),
            ):
                with self.subTest(name, call=call):
                    self.writes_nothing(errors.StaleClaim, at)
        self.writes_nothing(
            errors.StaleClaim,
            lambda: self.errand.send(self.draft, self.near, foreign, seen=other.seen),
        )
        self.writes_nothing(errors.AlreadyClaimed, self.errand.claim)
        self.assertEqual(self.scene.contacts(), [])

    def test_a_plain_dispatch_past_its_mission_is_refused_by_the_file(self) -> None:
        """M3: nobody looked, nobody commanded it, or a verifier looks: nothing leaves."""
        at = self.draft.operation_id
        other = {**START, "subject": "stray", "payload": {"machine": "stray"}}
        stray = prepare(self.ledger, self.near, work_id=self.draft.work_id, **other)
        self.assertEqual(self.plainly(stray.operation_id), "StorageFailed")
        mission.resume(self.ledger, MISSION)
        self.assertEqual(self.plainly(at), "StorageFailed")
        self.errand.observe()
        mission.verify(self.ledger, MISSION)
        self.assertEqual(self.plainly(at), "StorageFailed")
        self.assertEqual(self.scene.contacts(), [])
        self.errand.judge(passed=False)
        self.assertEqual(self.plainly(at), "allowed")

    def plainly(self, operation_id: str) -> str:
        """What becomes of a dispatch that asks no mission, with the rule taken away."""
        with mock.patch.object(sending, "sent_by_its_own", lambda _: None):
            return refusal(dispatch, self.ledger, operation_id, self.near)

    def test_what_moves_between_command_and_announcement_is_noticed(self) -> None:
        """M3: the last look is taken in the transaction that announces, and not before it."""
        seen = self.errand.seen
        reads: list[str] = []

        class Moved(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                if sql == "BEGIN IMMEDIATE" and not reads:
                    reads.append(sql)
                    mission.resume(ledger, MISSION)
                return super().execute(sql, *values)

        ledger = self.ledger
        with self.scene.ledger(factory=Moved) as other:
            reads.clear()
            errand = Errand(other, aims=())
            with self.assertRaises(mission_errors.StaleWorld):
                errand.send(self.draft, self.near, self.claimed, seen=seen)
        self.assertEqual((len(reads), self.scene.contacts()), (1, []))

    def test_a_send_that_is_refused_by_the_receiver_s_own_rules_leaves_the_world(self) -> None:
        """M3: nothing was announced, so nothing is stale."""
        other = self.lab.scene("other", identity="another").near()
        before = self.errand.seen
        elsewhere = mock.Mock(wraps=other, identity="another", epoch=1, policy=other.policy)
        with self.assertRaises(errors.WrongReceiver):
            self.errand.send(self.draft, elsewhere, self.claimed)
        self.assertEqual(self.errand.seen, before)

    def test_calls_made_twice_are_harmless(self) -> None:
        """M3: an acknowledgement may be lost at each of them."""
        errand, seen = self.errand, self.errand.seen
        looked_ms = self.ledger.now_ms()
        self.again(lambda: errand.observe(observed_ms=looked_ms, seen=seen))
        errand.observe()
        self.again(lambda: errand.command(self.near, self.claimed))
        errand.send(self.draft, self.near, self.claimed, seen=seen)
        self.writes_nothing(
            mission_errors.StaleWorld,
            lambda: errand.send(self.draft, self.near, self.claimed, seen=seen),
        )
        self.writes_nothing(
            mission_errors.StaleObservation,
            lambda: errand.send(self.draft, self.near, self.claimed),
        )
        errand.observe()
        self.writes_nothing(
            errors.AlreadyAnnounced, lambda: errand.send(self.draft, self.near, self.claimed)
        )
        now = errand.seen
        self.again(
            lambda: mission.amend(
                self.ledger, MISSION, contract={"x": 1}, seen=now, by="ada", aims=(SPARE,)
            )
        )
        self.writes_nothing(
            mission_errors.StaleContract,
            lambda: mission.amend(self.ledger, MISSION, contract={"y": 1}, seen=now, by="ada"),
        )
        errand.observe()
        errand.succeed(self.claimed)
        self.again(lambda: mission.verify(self.ledger, MISSION))
        self.again(lambda: errand.judge(passed=True))
        self.again(lambda: errand.judge(passed=False))
        mission.verify(self.ledger, MISSION)
        errand.judge()
        self.again(errand.finalize)
        self.assertEqual(len(self.scene.contacts()), 1)

    def amend(self) -> None:
        mission.amend(self.ledger, MISSION, contract={"now": 2}, seen=self.errand.seen, by="ada")


class TheWorldOfAMission(MissionCase):
    """The rows that the file itself writes: what belongs to a task, and another world."""

    def test_what_the_file_writes_by_itself_it_does_not_write_without_its_trigger(self) -> None:
        """A2, M3: membership of operations and compensations, and another world for each move."""
        operation, _ = self.errand.start(LosesReceipt(self.near))
        belongs = "SELECT count(*) FROM task_operation"
        world = "SELECT world FROM mission"
        version = "SELECT contract_version, state FROM mission"
        adds = (
            "INSERT INTO operation SELECT 100, 'x', digest, work_id, target, epoch, kind, "
            "payload, 'e', 'y', scope, policy, 0, 'prepared', 1, NULL FROM operation "
            "WHERE number = 1"
        )
        binds = "INSERT INTO compensation VALUES (100, 1, 'e', 1, 9, 'eve', 0)"
        sends = "INSERT INTO attempt VALUES (1, 9, 0, NULL, NULL)"
        decides = (
            "INSERT INTO decision VALUES (1, 3, 'unknown', 'written_off', 'authority', 'eve', "
            "NULL, NULL, NULL, NULL, 'why', 0)"
        )
        amends = "INSERT INTO contract VALUES (1, 2, '{}', 'eve', 0)"
        before = (
            "DROP TRIGGER compensation_binds_a_confirmed_effect",
            "DROP TRIGGER compensation_is_the_only_live_one",
        )
        apart = adds.replace("work_id, target", "'apart', target")
        for trigger, steps, asks, without, with_it in (
            ("operation_joins_its_task", (adds,), belongs, (1,), (2,)),
            ("compensation_joins_its_task", (*before, apart, binds), belongs, (1,), (2,)),
            ("attempt_changes_the_world", (sends,), world, (2,), (3,)),
            ("operation_changes_the_world", (decides,), world, (2,), (3,)),
            ("contract_begins_the_work_again", (amends,), version, (1, "running"), (2, "running")),
        ):
            for drop, wanted in ((False, with_it), (True, without)):
                with (
                    self.subTest(trigger, drop=drop),
                    closing(sqlite3.connect(self.scene.sender, isolation_level=None)) as other,
                ):
                    other.execute("BEGIN")
                    if drop:
                        other.execute(f"DROP TRIGGER {trigger}")
                    for sql in steps:
                        other.execute(sql)
                    self.assertEqual(other.execute(asks).fetchone(), wanted)
                    other.execute("ROLLBACK")
        self.assertIs(operation.state, State.UNKNOWN)

    def test_an_amended_mission_works_again_and_an_ended_one_keeps_its_world(self) -> None:
        """M3: from verification back to work; what comes later moves no ended mission."""
        operation = self.errand.done(LosesReceipt(self.near))
        mission.amend(self.ledger, MISSION, contract={"now": 2}, seen=self.errand.seen, by="ada")
        self.assertIs(self.errand.look().state, MissionState.RUNNING)
        mission.fail(self.ledger, MISSION, by="ada", reason="why")
        world = self.errand.seen
        find_out(self.ledger, operation.operation_id, self.near)
        self.assertEqual(self.errand.seen, world)


class TheFailingStatementOfAMission(OrderCase):
    """R4: the k-th statement of a call fails, or is interrupted, for every k."""

    def begun(self) -> tuple[Claim, Seen]:
        with self.start.ledger() as ledger:
            errand = Errand(ledger)
            return errand.begin(), errand.seen

    def commanded(self) -> tuple[Operation, Claim, Seen]:
        claim, seen = self.begun()
        with self.start.ledger() as ledger:
            return Errand(ledger).command(self.supplier, claim), claim, seen

    def ripe(self, by: Receiver | None = None) -> None:
        """All but finished, with a draft that never left."""
        with self.start.ledger() as ledger:
            errand = Errand(ledger)
            _, claim = errand.start(by or self.supplier)
            errand.command(self.supplier, claim, payload={"more": 1}, subject="more")
            errand.succeed(claim)
            errand.verify()

    def test_opening_writes_mission_contract_and_tasks_or_nothing(self) -> None:
        """R4, M1: three rows and more are one commit."""
        self.swept(lambda ledger, _: Errand(ledger, aims=(AIM, SPARE)))

    def test_amending_writes_contract_tasks_and_state_or_nothing(self) -> None:
        """R4, M3: with a further task."""
        _, seen = self.begun()
        self.swept(
            lambda ledger, _: mission.amend(
                ledger, MISSION, contract={}, seen=seen, by="ada", aims=(SPARE,)
            )
        )

    def test_resuming_handing_over_and_failing_write_the_mission_or_nothing(self) -> None:
        """R4, M1: failing withdraws the draft in the same commit, and holds the unknown."""
        self.commanded()
        self.swept(lambda ledger, _: mission.resume(ledger, MISSION))
        self.swept(lambda ledger, _: mission.wake(ledger, MISSION))
        self.swept(lambda ledger, _: mission.verify(ledger, MISSION))
        self.swept(lambda ledger, _: mission.fail(ledger, MISSION, by="ada", reason="why"))

    def test_failing_over_an_unknown_writes_the_mission_or_nothing(self) -> None:
        """R4, M1: the operation, its obligation and its attempt are not touched."""
        self.ripe(LosesReceipt(self.supplier))
        self.swept(lambda ledger, _: mission.fail(ledger, MISSION, by="ada", reason="why"))

    def test_a_verdict_is_written_with_what_follows_or_not(self) -> None:
        """R4, M1: a FAIL and the return to work are one commit."""
        self.ripe()
        for passed in (True, False):
            with self.subTest(passed=passed):
                self.swept(partial(judged, passed=passed))

    def test_finalizing_withdraws_and_finishes_or_does_nothing(self) -> None:
        """R4, M1: the draft that never left goes with it."""
        self.ripe()
        self.swept(lambda ledger, _: mission.finalize(ledger, MISSION, by="ada"))

    def test_claiming_and_observing_write_one_row_or_none(self) -> None:
        """R4, M3: with a token that is the same in each run."""
        claim, seen = self.begun()
        with self.start.ledger() as ledger:
            work.release(ledger, claim)
            now_ms = ledger.now_ms()
        with mock.patch(TOKEN, return_value="another"):
            self.swept(
                lambda ledger, _: tasks.claim_task(ledger, MISSION, TASK, seen=seen, owner="w")
            )
        self.swept(
            lambda ledger, _: tasks.observe_task(
                ledger, MISSION, TASK, what=shown("x"), seen=seen, observer="o", observed_ms=now_ms
            )
        )

    def test_commanding_writes_operation_membership_and_command_or_nothing(self) -> None:
        """R4, M3: an operation that nobody commanded never stands under a task."""
        claim, seen = self.begun()
        self.swept(lambda ledger, r: tasks.command(ledger, r, claim=claim, seen=seen, **START))

    def test_dispatch_of_a_task_leaves_what_its_last_commit_left(self) -> None:
        """R4, M3: unknown with another world, then confirmed with yet another."""
        operation, claim, seen = self.commanded()
        self.swept(
            lambda ledger, r: tasks.dispatch(
                ledger, operation.operation_id, r, claim=claim, seen=seen
            ),
            commits=2,
        )

    def test_succeeding_writes_evidence_and_end_and_giving_up_its_end_or_nothing(self) -> None:
        """R4, M2: no evidence without its success."""
        claim, seen = self.begun()
        shows = (shown("a"), shown("b"))
        self.swept(
            lambda ledger, _: tasks.succeed(
                ledger, claim=claim, seen=seen, check=shown("c"), evidence=shows
            )
        )
        self.swept(lambda ledger, _: tasks.give_up(ledger, claim=claim, seen=seen, reason="why"))

    def test_looking_at_a_mission_changes_nothing_wherever_it_fails(self) -> None:
        """R4: and leaves no transaction open."""
        self.ripe()
        self.sweep(
            lambda ledger, _: mission.look_mission(ledger, MISSION),
            commits=0,
            since=self.opening(),
        )


class CompletionGate(Chapter, unittest.TestCase):
    chapter = "e15_completion_gate"

    def test_the_walk_ends_finished_with_one_effect_and_not_before_the_evidence(self) -> None:
        """M1: op_synth_042."""
        walk = self.result["walk"]
        self.assertEqual(walk["finalize over the unknown"], "UnknownEffect")
        self.assertEqual((walk["finalize at last"], walk["effects"]), ("finished", {"start": 1}))

    def test_each_missing_condition_has_its_refusal(self) -> None:
        """M1: and with nothing missing it is allowed."""
        said = dict(self.result["missing"])
        self.assertEqual(said.pop("nothing"), "allowed")
        self.assertEqual((len(said), len(set(said.values()))), (7, 6))

    def test_stale_worlds_contracts_and_revisions_reach_nobody(self) -> None:
        """M3: the receiver's own log is empty."""
        self.assertEqual(self.result["stale"]["contacts"], 0)
        self.assertEqual(self.result["resumed"]["with what was seen"], "StaleWorld")


def judged(ledger: Ledger, _: Receiver, *, passed: bool) -> object:
    return mission.judge(ledger, MISSION, verifier="vic", passed=passed, judged_hash="0" * 64)


if __name__ == "__main__":
    unittest.main()
