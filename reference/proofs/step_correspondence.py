"""Shows that the election proof corresponds to the reference: takes the steps of both in parallel.

Some auxiliary variables record the past, so no single state determines them. The proof's transitions are
taken together with the reference's, from the beginning. Each step of the reference must be one of the proof,
with the same state after it, and the invariant must always hold. The reverse is not shown: the proof allows
more.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from mqproof.reference import election
from mqproof.reference.model import Parameters
from mqproof.reference.proofs.election import PROOFS, State, from_reference
from mqproof.reference.proofs.logic import Function, Scope, constant
from mqproof.reference.proofs.proof import Proof
from mqproof.reference.proofs.variables import known, shape, variables

PROOF: Final = PROOFS[0]
CONFIG: Final = election.Config(candidates=("n1", "n2", "n3"), terms_max=2, crashes_max=3, losses_max=1)
SCOPE: Final = Scope({"node": 3, "term": 4, "length": 5, "index": 4, "message": 2})
STUTTERS: Final = ("Calm", "Lose", "Refuse", "Acknowledge", "Fail")

_RELATIONS: Final = ("winner", "vote_sent", "heart_beat_sent", "push_sent", "commit_sent")
"""Names of the state's relations, which are sets of tuples in the reference.

Of the network, only the sent messages are compared, because the proof's network only grows.
"""
_BEGINNING: Final = {"vote": -1, "leader_of": -1, "canon_length": 0, "reached": 0, "point": 0}


def walk(seed: int, steps: int, proof: Proof = PROOF) -> Iterator[str]:
    """Take one random walk, and describe in words every difference."""
    choice = random.Random(seed)
    (state,) = election.initial(CONFIG)
    values = from_reference(CONFIG, state)
    in_logic = _state(values, {})
    for _ in range(steps):
        enabled = list(election.MODEL.steps(CONFIG, state))
        if not enabled:
            return
        name, parameters, after = choice.choice(enabled)
        wanted = from_reference(CONFIG, after)
        if name not in STUTTERS:
            action = next(action for action in proof.actions if action.name == name)
            guard, reached = action.apply(SCOPE, in_logic, *_arguments(state, after, name, parameters))
            if guard is not True:
                yield f"{name}{parameters} is enabled in the reference alone"
                return
        else:
            reached = in_logic
        yield from (f"{name}{parameters} leads to another {each}" for each in _different(reached, wanted))
        in_logic = _state(wanted, _auxiliary(reached))
        for clause, holds in {**proof.clauses, **proof.safety}.items():
            if holds(SCOPE, in_logic) is not True:
                yield f"after {name}{parameters} {clause} does not hold"
        state = after


def _state(values: dict[str, Any], auxiliary: dict[str, Any]) -> State:
    """Return the state of the proof; without auxiliary values it is the initial one."""
    plain = {v.name: auxiliary.get(v.name, values.get(v.name, ())) for v in variables(State)}
    relations = {name: _is_in(values[name]) for name in _RELATIONS}
    beginning = {} if auxiliary else {name: constant(value) for name, value in _BEGINNING.items()}
    return replace(known(State, {**plain, **dict.fromkeys(_RELATIONS, ())}), **relations, **beginning)


def _is_in(facts: set[tuple[int, ...]]) -> Function:
    return lambda *at: at in facts


def _auxiliary(state: State) -> dict[str, Any]:
    values = _shape(state)
    return {v.name: values[v.name] for v in variables(State) if v.auxiliary}


def _shape(state: State) -> dict[str, Any]:
    """Return the shape without the relations, whose shapes are large."""
    return shape(SCOPE, replace(state, **dict.fromkeys(_RELATIONS, _nothing)))


def _nothing(*_at: int) -> bool:
    return False


def _different(state: State, wanted: dict[str, Any]) -> Iterator[str]:
    values = _shape(state)
    for v in variables(State):
        if v.name in _RELATIONS:
            same = all(getattr(state, v.name)(*fact) for fact in wanted[v.name])
        else:
            same = v.auxiliary or values[v.name] == wanted[v.name]
        if not same:
            yield v.name


def _arguments(
    state: election.State, after: election.State, name: str, parameters: Parameters
) -> tuple[Any, ...]:
    """Return the reference's parameters in the proof's order, with a message as its fields."""
    nodes = CONFIG.nodes
    match name:
        case "HandleVote" | "HandleHeartBeat" | "HandlePush" | "HandleCommit":
            kind = {"Vote": "VOTE", "HeartBeat": "HEART_BEAT", "Push": "PUSH", "Commit": "COMMIT"}[name[6:]]
            message = next(m for m in state.network if m[: 1 + len(parameters)] == (kind, *parameters))
            fields: tuple[Any, ...] = (message.entry_index, message.entry_term)
            if message.entry is not None:
                entry = message.entry
                number = 0 if entry.message == election.NO_OP else 1 + CONFIG.messages.index(entry.message)
                fields = (*fields, entry.term, number)
            shown = () if kind == "HEART_BEAT" else fields
            return (nodes.index(message.source), nodes.index(message.target), message.term, *shown)
        case "EndRound":
            node, heard = parameters
            return nodes.index(node), lambda p: nodes[p] in heard
        case "AdvanceCommit":
            n = nodes.index(parameters[0])
            return n, after.commit[n]
        case "AppendEntry":
            return nodes.index(parameters[0]), 1 + CONFIG.messages.index(parameters[1])
    return (nodes.index(parameters[0]), *parameters[1:])
