"""Missions: what a task needs, what goes stale, and the gate that nothing unknown passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from experiments.harness import oracle, worker
from experiments.harness.faults import Fault
from experiments.harness.inprocess import InProcessSupplier
from experiments.harness.lossy import LosesReceipt
from experiments.tests.base import LabCase
from reconcile import Ledger, SweepSummary, approve_compensation, dispatch, look, reconcile_once
from reconcile.flows import mission as flows
from reconcile.ledger import copies, views
from reconcile.rules import errors, mission_errors
from reconcile.rules.mission import Evidence, Mission, Stage, TaskPlan
from reconcile.rules.operation import Scope

LIMIT_MS = 60_000
PROOF = (Evidence(reference="the log of the machine", digest="d1"),)
START: dict[str, Any] = {
    "kind": "start",
    "payload": {"machine": "review"},
    "subject": "review machine",
}


class MissionCase(LabCase):
    """A mission to have a change reviewed, on a machine that one of its tasks starts."""

    def setUp(self) -> None:
        super().setUp()
        self.scene = self.lab.scene("mission")
        with self.scene.ledger():
            pass
        self.ledger = Ledger(self.scene.sender, clock=self.lab.clock)
        self.account = InProcessSupplier(
            self.scene.receiver_file, identity="plain", policy=worker.ACCOUNT
        )

    def tearDown(self) -> None:
        self.ledger.close()
        super().tearDown()

    def opened(self, name: str = "op_synth_042") -> Mission:
        plans = [
            TaskPlan(name="start", limit_ms=LIMIT_MS),
            TaskPlan(name="tidy up", limit_ms=LIMIT_MS, mandatory=False),
        ]
        return flows.open_mission(self.ledger, name, contract={"goal": "review"}, tasks=plans)

    def look(self, name: str = "op_synth_042") -> Mission:
        return flows.look_mission(self.ledger, name)

    def held(self, mission: Mission) -> flows.TaskClaim:
        """The task `start`, claimed and observed."""
        held = flows.claim_task(self.ledger, mission, "start", worker="worker 1")
        return self.observed(held)

    def observed(self, held: flows.TaskClaim) -> flows.TaskClaim:
        return flows.observe_task(self.ledger, held, reference="the console", digest="d0")

    def succeeded(self, held: flows.TaskClaim) -> Mission:
        return flows.succeed(self.ledger, held, checked_by="check 7", evidence=PROOF)

    def passed(self, mission: Mission) -> Mission:
        """The mission as its verifier passed it."""
        seen = flows.verify(self.ledger, mission)
        return flows.judge(self.ledger, seen, verifier="vera", passed=True, digest=seen.digest)

    def finalize(self, seen: Mission) -> Mission:
        return flows.finalize(self.ledger, seen, actor="ada")


class TheGate(MissionCase):
    def test_the_synthetic_review_machine_is_finished_only_when_it_is_known(self) -> None:
        """M1, S2: op_synth_042: the honest stub first, a real provider after."""
        held = self.held(self.opened())
        lost = flows.command(self.ledger, held, LosesReceipt(self.account), **START)
        self.assertEqual(lost.outcome.value, "unknown")
        self.succeeded(self.observed(held))
        seen = self.passed(self.look())
        words: dict[str, Any] = {"worker": "worker 2", "scope": Scope()}

        def sums(done: SweepSummary) -> tuple[int, int, int, int]:
            return (done.claimed, done.resolved, done.unknown, done.errors)

        self.assertEqual(sums(reconcile_once(self.ledger, **words)), (1, 0, 1, 0))
        with self.assertRaises(mission_errors.UnknownEffect) as caught:
            self.finalize(seen)
        self.assertEqual(caught.exception.operation_id, lost.operation_id)
        self.lab.pass_time(LIMIT_MS)
        self.assertEqual(sums(reconcile_once(self.ledger, self.account, **words)), (1, 1, 0, 0))
        self.observed(held)
        self.assertIs(self.finalize(self.look()).stage, Stage.FINISHED)
        self.assertEqual(len(oracle.effects(self.scene.receiver_file)), 1)

    def test_each_missing_condition_is_its_own_refusal(self) -> None:
        """M1, M3: from a case that passes, one thing at a time; nothing is written."""
        for number, (name, refusal, spoil) in enumerate(self.spoils()):
            with self.subTest(name):
                called = f"mission {number}"
                held = self.held(self.opened(called))
                self.succeeded(held)
                seen = self.passed(self.look(called))
                seen = spoil(held, seen) or self.look(called)
                before = oracle.dump(self.scene.sender)
                with self.assertRaises(refusal):
                    self.finalize(seen)
                self.assertEqual(oracle.dump(self.scene.sender), before)
        whole = self.opened("whole")
        self.succeeded(self.held(whole))
        self.assertIs(self.finalize(self.passed(self.look("whole"))).stage, Stage.FINISHED)

    def spoils(
        self,
    ) -> list[tuple[str, type[Exception], Callable[[flows.TaskClaim, Mission], Mission | None]]]:
        def amended(held: flows.TaskClaim, seen: Mission) -> None:
            flows.amend(self.ledger, seen, contract={"goal": "another"})

        def resumed(held: flows.TaskClaim, seen: Mission) -> Mission:
            flows.resume(self.ledger, seen.name)
            return seen

        def verified_anew(held: flows.TaskClaim, seen: Mission) -> None:
            now = flows.resume(self.ledger, seen.name)
            flows.verify(self.ledger, now)

        def failed(held: flows.TaskClaim, seen: Mission) -> None:
            flows.judge(self.ledger, seen, verifier="vera", passed=False, digest=seen.digest)

        def gave_up(held: flows.TaskClaim, seen: Mission) -> None:
            flows.give_up(self.ledger, self.observed(held))
            now = self.look(seen.name)
            flows.judge(self.ledger, now, verifier="vera", passed=True, digest=now.digest)

        def grew_old(held: flows.TaskClaim, seen: Mission) -> None:
            self.lab.pass_time(LIMIT_MS + 1)

        def never_judged(held: flows.TaskClaim, seen: Mission) -> Mission:
            called = f"{seen.name}, never judged"
            self.succeeded(self.held(self.opened(called)))
            return flows.verify(self.ledger, self.look(called))

        def world_moved(held: flows.TaskClaim, seen: Mission) -> None:
            now = flows.resume(self.ledger, seen.name)
            flows.judge(self.ledger, now, verifier="vera", passed=True, digest=now.digest)

        def ended(held: flows.TaskClaim, seen: Mission) -> None:
            self.finalize(seen)

        return [
            ("it is not being verified", mission_errors.NotVerifying, amended),
            ("another looked meanwhile", mission_errors.StaleView, resumed),
            ("nobody passed it", mission_errors.NotPassed, never_judged),
            ("the last word is no PASS", mission_errors.NotPassed, failed),
            ("the PASS is about another", mission_errors.OtherDigest, verified_anew),
            ("a task is not done", mission_errors.TaskOpen, gave_up),
            ("what was seen is old", mission_errors.StaleObservation, grew_old),
            ("the world is another", mission_errors.StaleObservation, world_moved),
            ("it has ended", mission_errors.MissionEnded, ended),
        ]

    def test_a_mission_may_fail_over_an_unknown_which_stays_open(self) -> None:
        """M1: the operation, its question and its effect are as they were."""
        held = self.held(self.opened())
        lost = flows.command(self.ledger, held, LosesReceipt(self.account), **START)
        before = (look(self.ledger, lost.operation_id), views.obligations(self.ledger))
        done = flows.fail(self.ledger, "op_synth_042", actor="ada", reason="not wanted any more")
        self.assertIs(done.stage, Stage.FAILED)
        after = (look(self.ledger, lost.operation_id), views.obligations(self.ledger))
        self.assertEqual(after, before)
        with self.assertRaises(mission_errors.MissionEnded):
            flows.resume(self.ledger, "op_synth_042")

    def test_an_unknown_compensation_of_a_task_holds_the_mission_too(self) -> None:
        """M1: it belongs to the task whose effect it amends."""
        held = self.held(self.opened())
        done = flows.command(self.ledger, held, self.account, **START)
        assert done.receiver_reference is not None
        undo = approve_compensation(
            self.ledger,
            done.operation_id,
            effect_id=done.receiver_reference,
            kind="stop",
            payload={"machine": "review"},
            approver="ada",
            expected_version=look(self.ledger, done.operation_id).version,
        )
        dispatch(self.ledger, undo.operation_id, LosesReceipt(self.account))
        self.succeeded(self.observed(held))
        with self.assertRaises(mission_errors.UnknownEffect) as caught:
            self.finalize(self.passed(self.look()))
        self.assertEqual(caught.exception.operation_id, undo.operation_id)


class TheTask(MissionCase):
    def test_a_task_succeeds_only_with_a_check_and_evidence(self) -> None:
        """M2: neither may be missing, and nothing is written without them."""
        held = self.held(self.opened())
        before = oracle.dump(self.scene.sender)
        for checked_by, evidence in (("", PROOF), (" ", PROOF), ("check 7", ())):
            with self.assertRaises(mission_errors.NoEvidence):
                flows.succeed(self.ledger, held, checked_by=checked_by, evidence=evidence)
        self.assertEqual(oracle.dump(self.scene.sender), before)
        task = self.succeeded(held).task("start")
        self.assertEqual(
            (task.state, task.checked_by, task.evidence), ("succeeded", "check 7", PROOF)
        )

    def test_a_stale_view_is_refused_at_claim_task_and_command(self) -> None:
        """M3: an older world, contract or revision; each by its own name."""
        moves: dict[str, Callable[[Mission], object]] = {
            "world": lambda seen: flows.wake(self.ledger, seen.name),
            "contract_version": lambda seen: flows.amend(self.ledger, seen, contract={"a": 1}),
            "revision": lambda seen: flows.verify(self.ledger, seen),
        }
        for name, move in moves.items():
            with self.subTest(name):
                seen = self.opened(name)
                held = self.held(seen)
                move(seen)
                before = oracle.dump(self.scene.sender)
                for refused in self.stale_calls(seen, held):
                    self.assertEqual(refused.what, name)
                self.assertEqual(oracle.dump(self.scene.sender), before)
        self.assertEqual(oracle.contacts(self.scene.receiver_file), [])

    def stale_calls(self, seen: Mission, held: flows.TaskClaim) -> list[mission_errors.StaleView]:
        """The refusals of a claim, a success and a command by somebody who looked before."""
        found = []
        for call in (
            lambda: flows.claim_task(self.ledger, seen, "tidy up", worker="w"),
            lambda: self.succeeded(held),
            lambda: flows.command(self.ledger, held, self.account, **START),
        ):
            with self.assertRaises(mission_errors.StaleView) as caught:
                call()
            found.append(caught.exception)
        return found

    def test_resume_wake_and_dispatch_make_everything_be_observed_again(self) -> None:
        """M3: what was seen before is of an older world."""
        held = self.held(self.opened())
        changes: tuple[Callable[[flows.TaskClaim], object], ...] = (
            lambda held: flows.resume(self.ledger, "op_synth_042"),
            lambda held: flows.wake(self.ledger, "op_synth_042"),
            lambda held: flows.command(self.ledger, held, self.account, **START),
        )
        for change in changes:
            change(held)
            stale = replace(held, mission=self.look())
            with self.assertRaises(mission_errors.StaleObservation):
                self.succeeded(stale)
            with self.assertRaises(mission_errors.StaleObservation):
                flows.command(self.ledger, stale, self.account, **{**START, "subject": "other"})
            held = self.observed(held)
        self.succeeded(held)

    def test_an_observation_that_grew_old_commands_nothing(self) -> None:
        """M3: not older than the task's limit, and not from the future of a clock."""
        held = self.held(self.opened())
        for later_ms in (LIMIT_MS + 1, -2 * LIMIT_MS):
            self.lab._later_ms += later_ms
            with self.assertRaises(mission_errors.StaleObservation):
                flows.command(self.ledger, held, self.account, **START)
        self.assertEqual(oracle.contacts(self.scene.receiver_file), [])

    def test_a_command_is_sent_once_however_often_it_is_given(self) -> None:
        """M3, C50: a new run finds the same operation, and is refused."""
        held = self.held(self.opened())
        flows.command(self.ledger, held, LosesReceipt(self.account), **START)
        self.lab.pass_time(worker.LEASE_MS)  # the first worker is gone, and its lease has ended
        held = self.held(self.look())
        with self.assertRaises(errors.AlreadyAnnounced):
            flows.command(self.ledger, held, self.account, **START)
        self.assertEqual(len(oracle.effects(self.scene.receiver_file)), 1)

    def test_a_token_that_another_claim_followed_writes_nothing(self) -> None:
        """M3, S7: observing, succeeding, giving up and commanding are refused."""
        held = self.held(self.opened())
        self.lab.pass_time(worker.LEASE_MS)
        flows.claim_task(self.ledger, self.look(), "start", worker="worker 1")
        before = oracle.dump(self.scene.sender)
        for call in (
            lambda: self.observed(held),
            lambda: self.succeeded(held),
            lambda: flows.give_up(self.ledger, held),
            lambda: flows.command(self.ledger, held, self.account, **START),
        ):
            with self.assertRaises(errors.StaleClaim):
                call()
        self.assertEqual(oracle.dump(self.scene.sender), before)

    def test_a_claim_of_one_task_writes_nothing_about_another(self) -> None:
        """M3, S7: a live token of the other task is none of this one."""
        seen = self.opened()
        self.held(seen)
        other = flows.claim_task(self.ledger, seen, "tidy up", worker="worker 2")
        with self.assertRaises(errors.StaleClaim):
            self.observed(replace(other, task="start"))

    def test_opening_again_returns_it_and_another_is_refused(self) -> None:
        """M1, C50: one name is one mission."""
        first = self.opened()
        self.assertEqual(self.opened(), first)
        plan = TaskPlan(name="start", limit_ms=LIMIT_MS)
        for contract, tasks in (({"goal": "other"}, [plan]), ({"goal": "review"}, [plan])):
            with self.assertRaises(mission_errors.MissionTaken):
                flows.open_mission(self.ledger, first.name, contract=contract, tasks=tasks)

    def test_a_paused_store_moves_no_mission(self) -> None:
        """M1, O19: it is older than the world."""
        seen = self.opened()
        taken = copies.backup(self.ledger, self.scene.sender.with_name("backup.db"))
        with Ledger(taken, clock=self.lab.clock) as old:
            for call in (
                lambda: flows.claim_task(old, seen, "start", worker="worker 1"),
                lambda: flows.resume(old, seen.name),
                lambda: flows.fail(old, seen.name, actor="ada", reason="r"),
                lambda: flows.finalize(old, seen, actor="ada"),
            ):
                with self.assertRaises(errors.Paused):
                    call()


class FailingMissionStatements(MissionCase):
    def test_a_failing_statement_of_any_call_leaves_every_table_as_it_was(self) -> None:
        """R4: each statement of each writing call denied, then interrupted."""
        for name, call in self.calls():
            at = 0
            while True:
                with self.subTest(name, at=at):
                    before = oracle.dump(self.scene.sender)
                    if not self.breaks(call, at):
                        break
                    self.assertEqual(oracle.dump(self.scene.sender), before)
                at += 1
            self.assertGreater(at, 4, name)

    def breaks(self, call: Callable[[Ledger], object], at: int) -> bool:
        """Whether a call, both ways, met a fault at its how-many-th statement."""
        for how in ("deny", "interrupt"):
            fault = Fault(how=how)
            with Ledger(
                self.scene.sender, clock=self.lab.clock, factory=fault.connection()
            ) as ledger:
                fault.at = len(fault.points) + at
                try:
                    call(ledger)
                except errors.StorageFailed:
                    continue
                except errors.ReconcileError:
                    if not fault.delivered:
                        raise
                    continue
                if not fault.delivered:
                    return False
        return True

    def calls(self) -> list[tuple[str, Callable[[Ledger], object]]]:
        seen = self.opened()
        held = self.held(seen)
        plan = [TaskPlan(name="start", limit_ms=LIMIT_MS)]
        return [
            ("open", lambda to: flows.open_mission(to, "new", contract={}, tasks=plan)),
            ("claim", lambda to: flows.claim_task(to, self.look(), "tidy up", worker="w")),
            ("observe", lambda to: flows.observe_task(to, held, reference="r", digest="d")),
            ("succeed", lambda to: flows.succeed(to, held, checked_by="c", evidence=PROOF)),
            ("give up", lambda to: flows.give_up(to, held)),
            ("verify", lambda to: flows.verify(to, self.look())),
            (
                "judge",
                lambda to: flows.judge(
                    to, self.look(), verifier="v", passed=True, digest=self.look().digest
                ),
            ),
            ("amend", lambda to: flows.amend(to, self.look(), contract={"goal": "other"})),
            ("resume", lambda to: flows.resume(to, seen.name)),
            ("fail", lambda to: flows.fail(to, seen.name, actor="ada", reason="r")),
        ]
