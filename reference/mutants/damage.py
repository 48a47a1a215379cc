"""Broken variants of a damaged store; spec/tla/mutants explains each bug under the same name."""

from collections.abc import Callable
from typing import Final

from mqproof.reference import damage
from mqproof.reference.damage import Config, Read, State
from mqproof.reference.mutants.mutant import Mutant


def _reads(config: Config, state: State, offset: int) -> bool:
    return damage.consume(config, state, offset) is not None and offset <= len(state.log)


def _body_not_checked(config: Config, state: State, offset: int) -> State | None:
    if not _reads(config, state, offset):
        return None
    return state._replace(read=Read(offset, *state.log[offset - 1]))


def _entry_not_compared(config: Config, state: State, offset: int) -> State | None:
    if not _reads(config, state, offset) or not damage.good(state.log, state.queue[offset - 1]):
        return None
    return state._replace(read=Read(offset, *state.log[state.queue[offset - 1] - 1]))


def _loss_not_reported(config: Config, state: State, offset: int) -> State | None:
    after = damage.consume(config, state, offset)
    return after and after._replace(reported=state.reported)


def _entry_not_repaired(config: Config, state: State, offset: int) -> State | None:
    after = damage.consume(config, state, offset)
    if after is None or offset > len(state.log) or state.queue[offset - 1] == offset:
        return after
    return after._replace(queue=state.queue, read=Read(offset))


def _first_damage(state: State) -> int:
    end = 0
    while damage.good(state.log, end + 1):
        end += 1
    return end


def _ends_log(config: Config, state: State) -> State | None:
    after = damage.recover(config, state)
    end = _first_damage(state)
    return after and damage.recovered(state, end, frozenset(), after.topic)


def _end_not_reported(config: Config, state: State) -> State | None:
    after = damage.recover(config, state)
    end = damage.end_of_log(state)
    cut = range(end + 1, len(state.log) + 1)
    named = frozenset(cut) if any(damage.good(state.log, place) for place in cut) else frozenset()
    return after and damage.recovered(state, end, named, after.topic)


def _offset_used_again(config: Config, state: State) -> State | None:
    after = damage.recover(config, state)
    end = _first_damage(state)
    cut = frozenset(range(end + 1, len(state.log) + 1))
    return after and damage.recovered(state, end, cut, after.topic)


def _missing_accepted(config: Config, state: State) -> State | None:
    if state.phase != "down" or damage.problem(state) != "log":
        return damage.recover(config, state)
    return damage.recovered(state, len(state.log), frozenset(), "new" in state.table)


def _old_table_taken(config: Config, state: State) -> State | None:
    main, backup = state.table
    wrong = (backup if main == "bad" else main) == "new"
    after = damage.recover(config, state)
    return after and after._replace(topic=wrong, table=("new", "new") if wrong else ("old", "old"))


def _checkpoint_believed(config: Config, state: State) -> State | None:
    believed = state._replace(checkpoint=state.checkpoint._replace(sound=True))
    return damage.refuse(config, believed)


def _refused_without_name(config: Config, state: State) -> State | None:
    after = damage.refuse(config, state)
    return after and after._replace(named="none")


def _peer_not_asked(_config: Config, _state: State, _position: int) -> State | None:
    return None


def _not_sought(config: Config, state: State, offset: int) -> State | None:
    if not damage.good(state.log, offset):
        return None
    return damage.consume(config, state, offset)


def _mutant(
    name: str, invariant: str, action: str, apply: Callable[..., State | None], config: Config
) -> Mutant:
    return Mutant(damage.MODEL, name, invariant=invariant, action=action, apply=apply, config=config)


def _alone(messages: int, *faults: str) -> Config:
    return Config(messages, faults, has_peer=False)


MUTANTS: Final[tuple[Mutant, ...]] = (
    _mutant("BodyNotChecked", "NeverSilentlyWrong", "Consume", _body_not_checked, _alone(1, "flip")),
    _mutant("EntryNotCompared", "NeverSilentlyWrong", "Consume", _entry_not_compared, _alone(2, "flip")),
    _mutant("LossNotReported", "NeverSilentlyLost", "Consume", _loss_not_reported, _alone(1, "flip")),
    _mutant("EntryNotRepaired", "NeverSilentlyLost", "Consume", _entry_not_repaired, _alone(1, "lost")),
    _mutant("EndsLog", "NeverSilentlyLost", "Recover", _ends_log, _alone(1, "flip")),
    _mutant("EndNotReported", "NeverSilentlyLost", "Recover", _end_not_reported, _alone(1, "flip")),
    _mutant("MissingAccepted", "NeverSilentlyLost", "Recover", _missing_accepted, _alone(1, "missing")),
    _mutant("OldTableTaken", "NeverSilentlyLost", "Recover", _old_table_taken, _alone(1, "lost")),
    _mutant("OffsetUsedAgain", "OffsetsNotReused", "Recover", _offset_used_again, _alone(2, "flip")),
    _mutant("CheckpointBelieved", "RefusedByName", "Refuse", _checkpoint_believed, _alone(1, "flip")),
    _mutant("RefusedWithoutName", "RefusedByName", "Refuse", _refused_without_name, _alone(1, "missing")),
    _mutant("PeerNotAsked", "DamageSettled", "Repair", _peer_not_asked, Config(1, ("flip",))),
    _mutant("NotSought", "DamageSettled", "Consume", _not_sought, _alone(1, "lost")),
)
