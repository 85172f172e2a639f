"""Compensation: bound to one exact effect, approved once, sent once."""

from __future__ import annotations

from typing import Any

from experiments.harness import oracle
from experiments.harness.plain import IDENTITY, POLICY
from experiments.harness.scene import CHARGE, refusal
from experiments.tests.base import LabCase, LosesRequest
from reconcile import (
    Operation,
    Query,
    Receipt,
    Snapshot,
    approve_compensation,
    close,
    dispatch,
    look,
    observe,
    operation_identity,
    prepare,
    reconcile,
)


class Approval(LabCase):
    def setUp(self) -> None:
        super().setUp()
        self.scene = self.lab.scene()
        self.ledger = self.scene.ledger()
        self.charge = self.confirmed("charge")

    def tearDown(self) -> None:
        self.ledger.close()
        super().tearDown()

    def confirmed(self, role: str) -> Operation:
        """A charge whose receipt was lost, found out by a closing read."""
        charge, near = self.scene.unknown(self.ledger, role), self.scene.near()
        facts = close(
            self.ledger, charge.operation_id, near, purpose="find out", authorized_by="ada"
        )
        reconcile(
            self.ledger,
            charge.operation_id,
            facts,
            reviewer="ada",
            expected_version=charge.version,
        )
        return look(self.ledger, charge.operation_id)

    def approve(self, original: Operation | None = None, **changed: Any) -> Operation:
        """The exact approval of a refund of the charge, or one with something changed."""
        charge = original or self.charge
        exact = {
            "effect_id": charge.effect_id,
            "kind": "refund",
            "payload": {"pence": 1500},
            "approver": "ada",
            "expected_version": charge.version,
        }
        return approve_compensation(self.ledger, charge.operation_id, **{**exact, **changed})

    def test_one_effect_has_one_live_approval(self) -> None:
        """K1: asked for again it is the same one; anything else beside it is refused."""
        first = self.approve()
        self.assertEqual(self.approve(), first)
        self.assertEqual(first.binding and first.binding.approved_version, self.charge.version)
        for changed in ({"payload": {"pence": 1}}, {"kind": "credit"}, {"approver": "bob"}):
            self.assertEqual(refusal(self.approve, **changed), "AlreadyApproved")
        rows = oracle.rows(self.scene.sender, "SELECT count(*) FROM compensation")
        self.assertEqual(rows, [(1,)])

    def test_whatever_differs_from_the_approval_is_refused_before_contact(self) -> None:
        """K4: the receiver's own log does not grow."""
        self.approve()
        before = self.scene.contacts()
        by_hand = operation_identity(
            "by hand", "plain", {"kind": "refund", "payload": {"pence": 1500}}
        )
        for call, said in (
            (lambda: self.approve(effect_id="charge#2"), "Unbound"),
            (lambda: self.approve(payload={"pence": 15000}), "AlreadyApproved"),
            (lambda: self.approve(kind="credit note"), "AlreadyApproved"),
            (lambda: self.approve(expected_version=2), "StaleVersion"),
            (
                lambda: dispatch(self.ledger, by_hand.operation_id, self.scene.near()),
                "UnknownOperation",
            ),
        ):
            self.assertEqual(refusal(call), said)
        self.assertEqual(self.scene.contacts(), before)

    def test_a_used_approval_sends_nothing_again(self) -> None:
        """K4: also from a ledger opened anew, and whatever became of the first sending."""
        refund = self.approve()
        self.scene.name(refund, "refund")
        dispatch(self.ledger, refund.operation_id, self.scene.near())
        self.ledger.close()
        self.ledger = self.scene.ledger()
        said = refusal(lambda: dispatch(self.ledger, refund.operation_id, self.scene.near()))
        self.assertEqual(
            (said, self.scene.effects()), ("AlreadyAnnounced", {"charge": 1, "refund": 1})
        )

    def test_existence_is_not_enough(self) -> None:
        """K6: an effect that was seen, kept as evidence, and is not confirmed."""
        other = self.scene.unknown(self.ledger, "other")
        there = self.scene.near().snapshot(other.query)
        observe(self.ledger, other.operation_id, there)
        exists = there.effects[0].effect_id
        self.assertEqual(refusal(lambda: self.approve(other, effect_id=exists)), "Unbound")
        self.assertEqual(
            oracle.rows(self.scene.sender, "SELECT count(*) FROM compensation"), [(0,)]
        )

    def test_nobody_compensates_the_success_of_somebody_else(self) -> None:
        """K1, K4: the effect of another operation, payload and all the same, is not this one's."""
        other = self.confirmed("other")
        said = refusal(lambda: self.approve(effect_id=other.effect_id))
        self.assertEqual(said, "Unbound")
        self.assertEqual(
            refusal(lambda: self.approve(other, effect_id=self.charge.effect_id)), "Unbound"
        )

    def test_one_effect_of_two_operations_is_compensated_once(self) -> None:
        """K1: a receiver that gives one id to two operations cannot have it amended twice."""
        first, second = (
            self.confirmed_as(f"twin {number}", "their#1") for number in ("one", "two")
        )
        self.approve(first)
        self.assertEqual(refusal(self.approve, second), "AlreadyApproved")

    def test_a_compensation_is_never_confirmed_by_the_effect_that_it_amends(self) -> None:
        """K5: a receipt that names the amended effect is kept, and it stays unknown."""
        refund = self.approve()
        self.scene.name(refund, "refund")
        seen = dispatch(self.ledger, refund.operation_id, Names(str(self.charge.effect_id)))
        self.assertEqual(seen.outcome.value, "unknown")

    def confirmed_as(self, work_id: str, effect_id: str) -> Operation:
        """An operation that its receiver accepted under this effect id."""
        self.scene.unsafe = True  # the receiver's file knows nothing of it
        made = prepare(self.ledger, Names(effect_id), work_id=work_id, **CHARGE)
        dispatch(self.ledger, made.operation_id, Names(effect_id))
        return look(self.ledger, made.operation_id)

    def test_another_approval_follows_only_one_that_ended_without_effect(self) -> None:
        """K1: the next ordinal, and so another identity; after a confirmed one there is none."""
        refund = self.approve()
        self.scene.name(refund, "refund")
        dispatch(self.ledger, refund.operation_id, LosesRequest(self.scene.near()))
        self.assertEqual(refusal(lambda: self.approve(payload={"pence": 1})), "AlreadyApproved")
        version = look(self.ledger, refund.operation_id).version
        facts = close(
            self.ledger, refund.operation_id, self.scene.near(), purpose="end", authorized_by="ada"
        )
        reconcile(
            self.ledger, refund.operation_id, facts, reviewer="ada", expected_version=version
        )
        again = self.approve(payload={"pence": 1500})
        self.scene.name(again, "again")
        self.assertEqual(again.binding and again.binding.ordinal, 2)
        self.assertNotEqual(again.operation_id, refund.operation_id)
        dispatch(self.ledger, again.operation_id, self.scene.near())
        self.assertEqual(refusal(lambda: self.approve(payload={"pence": 1})), "AlreadyApproved")
        self.assertEqual(self.scene.effects(), {"charge": 1, "refund": 0, "again": 1})

    def test_a_compensation_is_compensated_like_any_effect(self) -> None:
        """K5: a refund taken back is a third effect, bound to the refund."""
        refund = self.approve()
        self.scene.name(refund, "refund")
        dispatch(self.ledger, refund.operation_id, self.scene.near())
        back = self.approve(look(self.ledger, refund.operation_id), kind="charge again")
        self.scene.name(back, "back")
        dispatch(self.ledger, back.operation_id, self.scene.near())
        self.assertEqual(self.scene.effects(), {"charge": 1, "refund": 1, "back": 1})

    def test_a_draft_without_an_approval_is_never_sent(self) -> None:
        """K4: a compensation row that somebody wrote by plain SQL has nothing that binds it."""
        with self.ledger.transaction() as tx:
            tx.execute(
                "INSERT INTO operation SELECT number + 100, 'forged', digest, work_id, target, "
                "epoch, 'refund', payload, effect_id, subject, scope, policy, prepared_ms, "
                "'prepared', 1, NULL FROM operation WHERE operation_id = ?",
                (self.charge.operation_id,),
            )
        before = self.scene.contacts()
        said = refusal(lambda: dispatch(self.ledger, "forged", self.scene.near()))
        self.assertEqual((said, self.scene.contacts()), ("Unbound", before))


class Names:
    """A receiver that accepts everything under one effect id."""

    identity, epoch, policy = IDENTITY, 1, POLICY

    def __init__(self, effect_id: str) -> None:
        self._effect_id = effect_id

    def send(self, query: Query) -> Receipt:
        return Receipt(
            operation_id=query.operation_id,
            status="accepted",
            effect_id=self._effect_id,
            kind=query.kind,
            payload=query.payload,
            compensates=query.compensates,
            receiver=IDENTITY,
            epoch=1,
        )

    def snapshot(self, query: Query, *, close: bool = False) -> Snapshot:
        raise NotImplementedError("nobody asks it")
