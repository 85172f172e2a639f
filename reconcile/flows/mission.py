"""Missions: opened, amended, resumed, verified, judged; and finished by one gate, or failed.

Whoever names a mission's contract, world and revision (`Mission.seen`) is refused if one of them
moved since. A call whose acknowledgement was lost may be made again: each says what that does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ledger import decisions, missions
from ..ledger import work as items
from ..ledger.store import Ledger
from ..ledger.tx import Tx
from ..rules import admission, checks, completion, contact, mission_errors
from ..rules.identity import payload_text
from ..rules.mission import Aim, Judgement, Mission, MissionState, Seen, Terms, seen_of


def open_mission(
    ledger: Ledger, name: str, *, contract: dict[str, object], aims: Sequence[Aim], by: str
) -> Mission:
    """Write down what is to be reached, and the tasks that lead there; at least one is mandatory.

    Opening the same again returns the stored mission, wherever it stands. Raises NoMandatoryTask,
    Malformed, Paused, or MissionTaken if the name stands for something else.
    """
    _named(ledger, mission=name, by=by)
    terms = _terms(contract, aims, by)
    if not any(aim.mandatory for aim in terms.aims):
        raise mission_errors.NoMandatoryTask(name)
    with ledger.transaction() as tx:
        contact.store_is_live(items.paused_why(tx))
        stored = missions.find(tx, name)
        if stored is None:
            missions.add(tx, name, terms)
        elif missions.terms_of(tx, stored, 1) != terms:
            raise mission_errors.MissionTaken(name, "another contract, other tasks or names")
        return missions.read(tx, name)


def amend(
    ledger: Ledger,
    name: str,
    *,
    contract: dict[str, object],
    seen: Seen,
    by: str,
    aims: Sequence[Aim] = (),
) -> Mission:
    """Set the next contract, with further tasks if it needs them; work begins again.

    How a task ended under an older contract, and what was seen of it, do not count any more. The
    same again, as seen before, returns the mission. Raises what `completion.looked_at` raises,
    MissionTaken for a task that stands, or Malformed.
    """
    _named(ledger, mission=name, by=by)
    seen_of(seen)
    terms = _terms(contract, aims, by)
    with ledger.transaction() as tx:
        mission = missions.read(tx, name)
        newest = mission.contract_version
        if seen.contract_version + 1 == newest and missions.terms_of(tx, mission, newest) == terms:
            return mission
        completion.looked_at(mission, seen)
        missions.amend(tx, mission, terms)
        return missions.read(tx, name)


def resume(ledger: Ledger, name: str) -> Mission:
    """Go on after a break of unknown length: another generation of the world, to be observed.

    Again, it is one more: that costs another look, and nothing else. Raises UnknownMission,
    Paused or MissionEnded.
    """
    _named(ledger, mission=name)
    with ledger.transaction() as tx:
        mission = missions.read(tx, name)
        completion.moves(mission)
        missions.raise_world(tx, mission)
        return missions.read(tx, name)


def wake(ledger: Ledger, name: str) -> Mission:
    """Go on since something outside called: as `resume`, for the caller may have changed it."""
    return resume(ledger, name)


def verify(ledger: Ledger, name: str) -> Mission:
    """Hand a running mission over to its verifier: nothing is worked on meanwhile.

    Again, it returns the mission. Raises UnknownMission, Paused or MissionEnded.
    """
    _named(ledger, mission=name)
    with ledger.transaction() as tx:
        mission = missions.read(tx, name)
        completion.moves(mission)
        if mission.state is not MissionState.VERIFYING:
            missions.turn(tx, mission, MissionState.VERIFYING)
        return missions.read(tx, name)


def judge(ledger: Ledger, name: str, *, verifier: str, passed: bool, judged_hash: str) -> Mission:
    """Write a verifier's word about the mission that had this hash; after a FAIL work goes on.

    A word about another hash than stands is kept, and finishes nothing. The last word again
    returns the mission. Raises UnknownMission, or what `completion.judges` raises.
    """
    _named(ledger, mission=name, verifier=verifier, judged_hash=judged_hash)
    checks.flag("passed", passed)
    with ledger.transaction() as tx:
        mission = missions.read(tx, name)
        said = Judgement(
            verifier=verifier, passed=passed, hash=judged_hash, revision=mission.revision
        )
        spoke_at = mission.revision - (not passed)  # a FAIL was followed by another revision
        repeated = mission.judgement == replace(said, revision=spoke_at)
        if repeated and passed is (mission.state is MissionState.VERIFYING):
            return mission
        completion.judges(mission, verifier)
        missions.judge(tx, mission, said)
        if not passed:
            missions.turn(tx, mission, MissionState.RUNNING)
        return missions.read(tx, name)


def finalize(ledger: Ledger, name: str, *, by: str) -> Mission:
    """Finish a mission: everything that M1 asks for holds at this moment, or it is refused.

    What was prepared and never left is withdrawn. Again, it returns the finished mission. Raises
    UnknownMission, or what `completion.finishes` raises, in the order that it says.
    """
    _named(ledger, mission=name, by=by)
    with ledger.transaction() as tx:
        mission = missions.read(tx, name)
        if mission.state is MissionState.FINISHED:
            return mission
        completion.finishes(mission, tx.now_ms)
        _withdraw(tx, mission, by, "the mission finished")
        missions.end(tx, mission, MissionState.FINISHED, by=by)
        return missions.read(tx, name)


def fail(ledger: Ledger, name: str, *, by: str, reason: str) -> Mission:
    """Fail a mission, at any time and whatever is open: an unknown effect stays unknown.

    Its operation, its open question and its money stay as they are, and settle when evidence
    comes. What was prepared and never left is withdrawn; again, so is what came back since.
    Raises UnknownMission, Paused, or MissionEnded if it finished.
    """
    _named(ledger, mission=name, by=by, reason=reason)
    with ledger.transaction() as tx:
        mission = missions.read(tx, name)
        again = mission.state is MissionState.FAILED
        contact.store_is_live(mission.paused)
        if not again:
            completion.not_ended(mission)
        _withdraw(tx, mission, by, reason)
        if not again:
            missions.end(tx, mission, MissionState.FAILED, by=by, reason=reason)
        return missions.read(tx, name)


def look_mission(ledger: Ledger, name: str) -> Mission:
    """A mission at one moment, with its tasks. Raises UnknownMission if there is none."""
    _named(ledger, mission=name)
    with ledger.reading() as tx:
        return missions.read(tx, name)


def _withdraw(tx: Tx, mission: Mission, by: str, reason: str) -> None:
    for draft in completion.drafts(mission):
        decisions.record(tx, admission.withdraw(draft, actor=by, reason=reason))


def _terms(contract: dict[str, object], aims: Sequence[Aim], by: str) -> Terms:
    checks.instance("contract", contract, dict)
    wanted = checks.several("aims", aims, Aim)
    return Terms(contract=payload_text(contract), aims=wanted, set_by=by)


def _named(ledger: object, **words: object) -> None:
    checks.instance("ledger", ledger, Ledger)
    for name, value in words.items():
        checks.text(name, value)
