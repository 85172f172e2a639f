"""One identity for one proposal, and one relation that says "the same payload": in the sender, at
a real receiver, and in both files.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import unittest
import uuid
from dataclasses import replace
from enum import IntEnum
from types import MappingProxyType
from typing import Any

from experiments.harness import oracle
from experiments.harness.plain import IDENTITY, POLICY
from experiments.harness.scene import Scene
from experiments.tests.base import ORDER, LabCase, LosesReceipt, LosesRequest
from reconcile import (
    Ledger,
    Operation,
    Query,
    Receipt,
    Receiver,
    State,
    Verdict,
    approve_compensation,
    canonical_json,
    classify,
    close,
    dispatch,
    look,
    operation_identity,
    prepare,
    reconcile,
)
from reconcile.rules.errors import IdentityTaken, Malformed, UnknownOperation
from reconcile.rules.identity import DEEPEST, proposal_of

PROPOSAL: dict[str, Any] = {
    "sku": "SKU-VANILLA",
    "quantity": 6,
    "unit_cost_pence": 250,
    "supplier": "lucy-local",
    "currency": "GBP",
}


class Number(IntEnum):
    ONE = 1


class Text(str):
    """A text of another type: it may print as anything."""


class FormulaOfIdentity(unittest.TestCase):
    """What an operation is called, and that no two share a name."""

    def test_the_published_identity_is_reproduced(self) -> None:
        """O1: the one identity that is published comes out of the formula."""
        identity = operation_identity("morning-work", "lucy-local", PROPOSAL)
        self.assertEqual(identity.operation_id, "ceb546fd645b56efac7a081a836c4abb")

    def test_identity_and_digest_follow_the_written_formula(self) -> None:
        """O1: digest and identity, computed here a second time from the sentence of the claim."""
        text = json.dumps(PROPOSAL, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(b"lucy-local\n" + text.encode()).hexdigest()
        name = uuid.uuid5(uuid.NAMESPACE_URL, "morning-work:" + digest).hex
        self.assertEqual(
            operation_identity("morning-work", "lucy-local", PROPOSAL), (name, digest)
        )

    def test_key_order_changes_nothing(self) -> None:
        """O1: every order of the same keys is the same proposal."""
        wanted = operation_identity("w", "t", PROPOSAL)
        for order in itertools.permutations(PROPOSAL.items()):
            self.assertEqual(operation_identity("w", "t", dict(order)), wanted)

    def test_each_changed_field_changes_identity_and_digest(self) -> None:
        """O1, C33: target and every business field, one at a time."""
        first = operation_identity("w", "t", PROPOSAL)
        others = [operation_identity("w", "t2", PROPOSAL)]
        for field, value in PROPOSAL.items():
            other: object = value + 1 if isinstance(value, int) else value + "x"
            others.append(operation_identity("w", "t", {**PROPOSAL, field: other}))
            without = {name: v for name, v in PROPOSAL.items() if name != field}
            others.append(operation_identity("w", "t", without))
        others.append(operation_identity("w", "t", {**PROPOSAL, "more": None}))
        self.assertEqual(len({i.operation_id for i in (first, *others)}), len(others) + 1)
        self.assertEqual(len({i.digest for i in (first, *others)}), len(others) + 1)

    def test_another_work_item_is_another_operation_of_the_same_digest(self) -> None:
        """O1, C33: the digest names what is proposed, the identity also for which work."""
        first = operation_identity("w1", "t", PROPOSAL)
        second = operation_identity("w2", "t", PROPOSAL)
        self.assertNotEqual(first.operation_id, second.operation_id)
        self.assertEqual(first.digest, second.digest)

    def test_a_charge_and_a_refund_of_one_sum_share_nothing(self) -> None:
        """O1, C32: the proposal carries its kind, and the effect that it amends."""
        sum_ = {"pence": 1500}
        proposals = [
            proposal_of("charge", sum_, None),
            proposal_of("refund", sum_, None),
            proposal_of("refund", sum_, "charge#1"),
            proposal_of("refund", sum_, "charge#2"),
        ]
        identities = [operation_identity("w", "t", proposal) for proposal in proposals]
        self.assertEqual(len({identity.operation_id for identity in identities}), 4)
        self.assertEqual(len({identity.digest for identity in identities}), 4)

    def test_joined_parts_come_apart_in_one_way_only(self) -> None:
        """O1, C32: colon, newline, NUL and bar inside the parts never make two names one."""
        parts: tuple[str, ...] = (
            "a",
            "b",
            "c",
            "ab",
            "bc",
            "a:b",
            "b:c",
            "a\nb",
            "b\nc",
            "a\0b",
            "b\0c",
            "a|b",
        )
        parts += ("b|c", 'a\n{"p":"b"}', '{"p":"a"}', ":a", "a:", "\na", "a\n", "\0", "|", "::")
        triples = list(itertools.product(parts, parts, parts))
        names = {operation_identity(w, t, {"p": p}).operation_id for w, t, p in triples}
        self.assertEqual(len(names), len(triples))

    def test_a_work_item_that_imitates_a_digest_is_another_work_item(self) -> None:
        """O1, C32: a work id may hold a colon and a whole digest, and still ends at the last."""
        first = operation_identity("w", "t", {"p": 1})
        imitation = operation_identity(f"w:{first.digest}", "t", {"p": 1})
        self.assertNotEqual(first.operation_id, imitation.operation_id)
        inside = operation_identity("w", 't\n{"p":1}', {"p": 1})
        self.assertNotEqual(first.digest, inside.digest)

    def test_case_and_trailing_space_are_distinct(self) -> None:
        """O1, C32: names are compared to the letter."""
        for one, other in (("work", "Work"), ("work", "work "), ("work", " work")):
            for first, second in (
                (operation_identity(one, "t", {}), operation_identity(other, "t", {})),
                (operation_identity("w", one, {}), operation_identity("w", other, {})),
                (
                    operation_identity("w", "t", {"p": one}),
                    operation_identity("w", "t", {"p": other}),
                ),
            ):
                self.assertNotEqual(first.operation_id, second.operation_id, (one, other))

    def test_an_empty_or_ill_typed_part_is_no_part(self) -> None:
        """O1, C32: an empty part is refused by name, so that none can stand for another."""
        for bad in ("", " ", "\n", None, 5, b"w", Text("w"), "\ud800"):
            with self.subTest(bad=bad):
                self.assertEqual(place_of(lambda b=bad: operation_identity(b, "t", {})), "work_id")
                self.assertEqual(place_of(lambda b=bad: operation_identity("w", b, {})), "target")
        wrong: tuple[Any, ...] = (None, [], "p", 5)
        for no_mapping in wrong:
            self.assertEqual(
                place_of(lambda b=no_mapping: operation_identity("w", "t", b)), "proposal"
            )
            self.assertEqual(place_of(lambda b=no_mapping: proposal_of("k", b, None)), "payload")


class CanonicalText(unittest.TestCase):
    """One value has one text, or none and is refused."""

    def test_one_value_has_one_text(self) -> None:
        """O2: sorted keys, no spaces, plain ASCII."""
        self.assertEqual(
            canonical_json({"b": [1, True, None, "é\n"], "a": {"d": -1, "c": ""}}),
            '{"a":{"c":"","d":-1},"b":[1,true,null,"\\u00e9\\n"]}',
        )

    def test_its_text_reads_back_as_itself(self) -> None:
        """O2: a text that was written and read gives the same text again."""
        for value in REPRESENTABLE:
            text = canonical_json(value)
            self.assertEqual(canonical_json(json.loads(text)), text)

    def test_true_is_never_one(self) -> None:
        """O2, C04: nor is false zero, nor a digit a number, at any depth."""
        for one, other in ((True, 1), (False, 0), ("1", 1), (None, "null"), (None, 0), ("", None)):
            self.assertNotEqual(canonical_json(one), canonical_json(other))
            self.assertNotEqual(canonical_json({"n": [one]}), canonical_json({"n": [other]}))
            self.assertNotEqual(
                operation_identity("w", "t", {"n": one}),
                operation_identity("w", "t", {"n": other}),
            )

    def test_different_code_points_are_different_text(self) -> None:
        """O2: what looks alike is not made alike."""
        self.assertNotEqual(canonical_json("\u00e9"), canonical_json("e\u0301"))

    def test_floats_are_refused_naming_their_path(self) -> None:
        """O2, C04: whole or not, finite or not, from a program or from JSON text."""
        floats = [6.0, -0.0, 0.0, 1e16, 1e-5, float(2**53 + 1), 2.5]
        floats += [float("nan"), float("inf"), float("-inf")]
        texts = ("2.50", "2.5", "1.0", "1e5", "NaN", "Infinity", "-Infinity", "1e400")
        for value in floats + [json.loads(text) for text in texts]:
            with self.subTest(value=value):
                self.refused(value)

    def test_over_long_integers_are_refused_naming_their_path(self) -> None:
        """O2, C04: 64 bits are the bound, and 5000 digits are refused as calmly as 20."""
        for value in (2**63, -(2**63) - 1, 10**19, 10**5000, -(10**5000)):
            self.refused(value)
        for value in (2**63 - 1, -(2**63), 2**53 + 1):
            self.assertEqual(canonical_json(value), str(value))

    def test_lone_surrogates_are_refused_naming_their_path(self) -> None:
        """O2: half of a pair is no character, as a value and within a key."""
        for value in ("\ud800", "a\udfffb", json.loads('"\\ud83d"')):
            self.refused(value)
            with self.assertRaises(Malformed) as caught:
                canonical_json({"a": {value: 1}})
            self.assertEqual(caught.exception.place, "$.a")
        self.assertEqual(canonical_json("\U0001f600"), '"\\ud83d\\ude00"')

    def test_keys_that_are_not_text_are_refused_naming_their_path(self) -> None:
        """O2: a number as a key would become text, and two keys one."""
        for key in (1, 1.5, True, None, b"k", ("k",), Text("k"), Number.ONE):
            with self.subTest(key=key), self.assertRaises(Malformed) as caught:
                canonical_json({"a": [{key: 1}]})
            self.assertEqual(caught.exception.place, "$.a[0]")

    def test_a_key_too_long_to_print_is_refused_like_any_other_key(self) -> None:
        """O2: 5000 digits as a key end in Malformed, not in an error of Python's own."""
        with self.assertRaises(Malformed) as caught:
            canonical_json({"a": {10**5000: 1}})
        self.assertEqual(caught.exception.place, "$.a")

    def test_values_that_are_no_json_are_refused_naming_their_path(self) -> None:
        """O2: bytes, sets, and everything that only looks like text, a number or an object."""
        for value in (b"x", bytearray(b"x"), {1}, frozenset(), object(), 1j, range(3), iter(())):
            self.refused(value)
        for value in (Text("x"), Number.ONE, MappingProxyType({"a": 1}), Scene, Ellipsis):
            self.refused(value)

    def test_deep_nesting_is_refused_before_the_parser_would_fail(self) -> None:
        """O2: the bound is ours, the same on every Python, for lists, objects and circles."""
        self.assertIn("[", canonical_json(nested(DEEPEST)))
        circle: list[object] = []
        circle.append(circle)
        objects: dict[str, object] = {}
        for _ in range(50_000):
            objects = {"a": objects}
        for deep in (nested(DEEPEST + 1), nested(50_000), circle, objects):
            with self.assertRaises(Malformed) as caught:
                canonical_json(deep)
            self.assertIn("deeper", caught.exception.why)
            self.assertTrue(caught.exception.place.startswith("$"))

    def refused(self, value: object) -> None:
        for whole, path in (
            (value, "$"),
            ({"a": [0, value]}, "$.a[1]"),
            ([{"b": value}], "$[0].b"),
        ):
            with self.assertRaises(Malformed) as caught:
                canonical_json(whole)
            self.assertEqual(caught.exception.place, path)


class SamePayloadIsOneRelation(LabCase):
    """Sender, receiver process and storage agree on what is the same payload."""

    def test_sender_receiver_and_storage_agree_for_every_pair(self) -> None:
        """O2, C04: the relation after a real process and after a reload is the sender's own."""
        scene = self.lab.scene()
        receiver = scene.receiver()
        with scene.ledger() as ledger:
            sent = [
                prepare(
                    ledger, receiver, **{**ORDER, "work_id": f"w{at}", "payload": {"n": value}}
                )
                for at, value in enumerate(REPRESENTABLE)
            ]
            for operation in sent:
                seen = dispatch(ledger, operation.operation_id, receiver)
                self.assertIs(seen.outcome, State.CONFIRMED)
        with scene.ledger() as ledger:
            stored = [look(ledger, operation.operation_id) for operation in sent]
            there = [receiver.snapshot(operation.query).effects[0] for operation in stored]
        for at, one in enumerate(REPRESENTABLE):
            for other_at, other in enumerate(REPRESENTABLE):
                texts = [where[at].payload for where in (sent, stored)] + [there[at].payload]
                others = [where[other_at].payload for where in (sent, stored)]
                others.append(there[other_at].payload)
                for text, other_text in itertools.product(texts, others):
                    self.assertIs(text == other_text, same(one, other), (one, other))

    def test_another_payload_under_the_same_identity_is_a_mismatch(self) -> None:
        """O2, C04: the second member of each pair, committed in the place of the first."""
        pairs = ((True, 1), (1, True), (False, 0), ("1", 1), (None, "null"), (2**53 + 1, 2**53))
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            for at, (mine, theirs) in enumerate(pairs):
                order = {**ORDER, "subject": f"invoice-{at}", "payload": {"n": mine}}
                operation = prepare(ledger, scene.near(), **order)
                other = Replaces(scene.near(), payload=canonical_json({"n": theirs}))
                dispatch(ledger, operation.operation_id, other)
                facts = close(
                    ledger,
                    operation.operation_id,
                    scene.near(),
                    purpose="look",
                    authorized_by="ann",
                )
                self.assertIs(classify(facts), Verdict.PAYLOAD_MISMATCH, (mine, theirs))

    def test_a_real_process_gives_back_the_payload_to_the_letter(self) -> None:
        """O2, C04: a match by process is a match, key order and all."""
        scene = self.lab.scene()
        payload = {"b": [1, {"z": None, "é": "\U0001f600\n\0"}], "a": 2**63 - 1}
        with scene.ledger() as ledger:
            operation = prepare(ledger, scene.receiver(), **{**ORDER, "payload": payload})
            dispatch(ledger, operation.operation_id, LosesReceipt(scene.receiver()))
            facts = scene.receiver().snapshot(operation.query, close=True)
            self.assertIs(classify(facts), Verdict.UNIQUE_EXACT_MATCH)
            self.assertEqual(json.loads(facts.effects[0].payload), payload)

    def test_what_has_no_single_text_is_refused_before_any_row_is_written(self) -> None:
        """O2, C04: by prepare and by the approval of a compensation; both files stay as they
        were.
        """
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            original = prepare(ledger, scene.near(), **ORDER)
            dispatch(ledger, original.operation_id, scene.near())
            before = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
            for value in (6.0, -0.0, float("nan"), json.loads("1e400"), 10**5000, 2**63):
                self.assertEqual(prepared_place(ledger, scene, {"n": value}), "$.payload.n")
            for value in ("\ud800", b"x", {1}, Text("x"), {"k": {1: 2}}, nested(100)):
                self.assertIn("$.payload.n", prepared_place(ledger, scene, {"n": value}))
            with self.assertRaises(Malformed) as caught:
                approve_compensation(
                    ledger,
                    original.operation_id,
                    effect_id=f"{original.operation_id}#1",
                    kind="refund",
                    payload={"pence": 15.0},
                    approver="ann",
                    expected_version=3,
                )
            self.assertEqual(caught.exception.place, "$.payload.pence")
            after = oracle.dump(scene.sender), oracle.dump(scene.receiver_file)
            self.assertEqual(before, after)


class OneProposalOneOperation(LabCase):
    """The same proposal in the same work item is one operation, wherever it stands."""

    def test_preparing_the_same_again_is_one_operation(self) -> None:
        """O1, C33: also in another key order, and through a file opened again."""
        scene = self.lab.scene()
        payload = {"pence": 1500, "currency": "GBP"}
        turned = dict(reversed(payload.items()))
        with scene.ledger() as ledger:
            first = prepare(ledger, scene.near(), **{**ORDER, "payload": payload})
            self.assertEqual(prepare(ledger, scene.near(), **{**ORDER, "payload": payload}), first)
        with scene.ledger() as ledger:
            self.assertEqual(prepare(ledger, scene.near(), **{**ORDER, "payload": turned}), first)
        self.assertEqual(len(oracle.states(scene.sender)), 1)

    def test_another_work_item_is_another_operation_wherever_the_first_stands(self) -> None:
        """O1, C33: under w2 after w1 was confirmed, and after it was not applied."""
        for end in (State.CONFIRMED, State.NOT_APPLIED):
            scene = self.lab.scene(end.value)
            with scene.ledger() as ledger:
                first = self.ended(scene, ledger, end)
                second = prepare(ledger, scene.near(), **{**ORDER, "work_id": "w-2"})
                self.assertNotEqual(second.operation_id, first.operation_id)
                self.assertIs(second.state, State.PREPARED)
                self.assertEqual(look(ledger, first.operation_id), first)

    def test_preparing_again_after_the_end_returns_the_stored_operation(self) -> None:
        """O1, C33, R5: confirmed or not applied, no second one is begun."""
        for end in (State.CONFIRMED, State.NOT_APPLIED):
            scene = self.lab.scene(end.value)
            with scene.ledger() as ledger:
                ended = self.ended(scene, ledger, end)
                before = oracle.dump(scene.sender)
                again = prepare(ledger, scene.near(), **ORDER)
                self.assertEqual(again, ended)
                self.assertIs(again.state, end)
                self.assertEqual(oracle.dump(scene.sender), before)

    def test_each_changed_field_is_a_new_operation(self) -> None:
        """O1, C33: kind, each part of the payload, the work item and the target, one at a time."""
        scene = self.lab.scene()
        changes: tuple[dict[str, Any], ...] = (
            {},
            {"work_id": "w-2"},
            {"work_id": "W-1"},
            {"work_id": "w-1 "},
            {"kind": "refund"},
            {"payload": {"pence": 1501}},
            {"payload": {"pence": "1500"}},
            {"payload": {"pence": 1500, "note": None}},
            {"payload": {"Pence": 1500}},
        )
        with scene.ledger() as ledger:
            made = [prepare(ledger, scene.near(), **{**ORDER, **change}) for change in changes]
            made.append(prepare(ledger, Renamed(scene.near(), identity="other"), **ORDER))
            self.assertEqual(len({operation.operation_id for operation in made}), len(made))
        self.assertEqual(len(oracle.states(scene.sender)), len(made))

    def test_the_same_identity_about_something_else_is_refused(self) -> None:
        """O1, C33: another subject, scope or epoch is IdentityTaken, and names which."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            first = prepare(ledger, scene.near(), **ORDER)
            before = oracle.dump(scene.sender)
            later = Renamed(scene.near(), epoch=2)
            for differs, receiver, change in (
                ("subject", scene.near(), {"subject": "invoice-2"}),
                ("scope", scene.near(), {"scope": ("t", "p", "e")}),
                ("scope", scene.near(), {"scope": ("default", "default", "live")}),
                ("epoch", later, {}),
            ):
                with self.subTest(differs), self.assertRaises(IdentityTaken) as caught:
                    prepare(ledger, receiver, **{**ORDER, **change})
                self.assertEqual(caught.exception.differs, differs)
                self.assertEqual(caught.exception.operation_id, first.operation_id)
            self.assertEqual(oracle.dump(scene.sender), before)

    def test_a_newer_policy_leaves_the_stored_operation_under_its_own(self) -> None:
        """O1, C33: what was pinned stays pinned, in memory, in the file, and after a reload."""
        scene = self.lab.scene()
        newer = replace(POLICY, version=2, resend_same=True, deadline_ms=1)
        with scene.ledger() as ledger:
            first = prepare(ledger, scene.near(), **ORDER)
            before = oracle.dump(scene.sender)
            again = prepare(ledger, scene.near(policy=newer), **ORDER)
            self.assertEqual((again, again.policy), (first, POLICY))
            self.assertEqual(oracle.dump(scene.sender), before)
            fresh = prepare(ledger, scene.near(policy=newer), **{**ORDER, "work_id": "w-2"})
            self.assertEqual(fresh.policy, newer)
        with scene.ledger() as ledger:
            self.assertEqual(look(ledger, first.operation_id).policy, POLICY)

    def test_a_compensation_of_the_same_kind_and_sum_is_another_operation(self) -> None:
        """O1, C32: even one that repeats its original to the letter."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            original = self.ended(scene, ledger, State.CONFIRMED)
            compensation = approve_compensation(
                ledger,
                original.operation_id,
                effect_id=f"{original.operation_id}#1",
                kind=original.kind,
                payload=ORDER["payload"],
                approver="ann",
                expected_version=original.version,
            )
            self.assertNotEqual(compensation.operation_id, original.operation_id)
            self.assertNotEqual(compensation.digest, original.digest)

    def test_look_ups_are_exact(self) -> None:
        """O1, C32: no wildcard, prefix, other case or space finds an operation."""
        scene = self.lab.scene()
        with scene.ledger() as ledger:
            identity = prepare(ledger, scene.near(), **ORDER).operation_id
            for near_miss in (
                "%",
                "_" * 32,
                identity[:-1] + "_",
                identity[:8] + "%",
                identity.upper(),
                identity + " ",
                identity[:-1],
            ):
                with self.subTest(near_miss), self.assertRaises(UnknownOperation):
                    look(ledger, near_miss)

    def ended(self, scene: Scene, ledger: Ledger, end: State) -> Operation:
        """The order of `ORDER`, brought to its end by a closing read."""
        operation = prepare(ledger, scene.near(), **ORDER)
        silent = (
            LosesReceipt(scene.near()) if end is State.CONFIRMED else LosesRequest(scene.near())
        )
        dispatch(ledger, operation.operation_id, silent)
        facts = close(
            ledger, operation.operation_id, scene.near(), purpose="end", authorized_by="ann"
        )
        reconcile(ledger, operation.operation_id, facts, reviewer="rita", expected_version=2)
        found = look(ledger, operation.operation_id)
        self.assertIs(found.state, end)
        return found


class Replaces(LosesReceipt):
    """Another payload is committed under the same identity, and no receipt comes back."""

    def __init__(self, inner: Receiver, *, payload: str) -> None:
        super().__init__(inner)
        self._payload = payload

    def send(self, query: Query) -> Receipt | None:
        self._inner.send(replace(query, payload=self._payload))
        return None


class Renamed(LosesReceipt):
    """A receiver that says it is another, or in another epoch."""

    def __init__(self, inner: Receiver, *, identity: str = IDENTITY, epoch: int = 1) -> None:
        super().__init__(inner)
        self.identity, self.epoch = identity, epoch


REPRESENTABLE: tuple[Any, ...] = (
    1,
    True,
    0,
    False,
    None,
    "1",
    "null",
    "",
    2**53,
    2**53 + 1,
    10**16,
    [1, 2],
    [2, 1],
    {"a": 1, "b": 2},
    {"b": 2, "a": 1},
    "\u00e9",
    "e\u0301",
)


def same(one: object, other: object) -> bool:
    """Whether two JSON values are the same, said here a second time: types count."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def nested(depth: int) -> object:
    value: object = 0
    for _ in range(depth):
        value = [value]
    return value


def place_of(call: Any) -> str:
    """The place that a call's Malformed names."""
    try:
        call()
    except Malformed as error:
        return error.place
    return "not refused"


def prepared_place(ledger: Ledger, scene: Scene, payload: dict[str, Any]) -> str:
    return place_of(lambda: prepare(ledger, scene.near(), **{**ORDER, "payload": payload}))
