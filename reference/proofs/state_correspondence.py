"""Shows that a proof corresponds to the reference, by evaluating its invariant and transitions on its states.

On a reachable state everything is known, so the same functions that are given to Z3 compute plain values. The
invariant must hold, and each action must lead to exactly the states that the reference's action leads to.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from mqproof.reference import flush, replication
from mqproof.reference.explorer.search import explore
from mqproof.reference.model import Model
from mqproof.reference.proofs import flush as flush_proof
from mqproof.reference.proofs import replication as replication_proof
from mqproof.reference.proofs.logic import FLAG, Kind, Scope
from mqproof.reference.proofs.proof import Parameter, Proof, kinds_of
from mqproof.reference.proofs.variables import known, shape, variables

Shape = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Correspondence:
    proof: Proof
    model: Model[Any, Any]
    config: Any
    scope: Scope
    """A scope that is large enough for every state of the configuration."""
    from_reference: Callable[[Any, Any], dict[str, Any]]
    """Maps (config, state) to the state's shape in the proof."""
    unbounded: Any
    """The configuration without bounds on faults, which a proof does not have either."""

    def sample(self, count: int) -> list[Any]:
        """Return at most `count` reachable states: half are the first ones, half are spread over the rest."""
        states = list(explore(self.model, self.config).parents)
        if len(states) <= count:
            return states
        first, others = states[: count // 2], states[count // 2 :]
        return first + others[:: -(-2 * len(others) // count)]


@dataclass(frozen=True, slots=True)
class Mismatch:
    state: Any
    """The state of the reference."""
    what: str


_FORKS: Final = replication.Config(flush_modes=(replication.ASYNC_FLUSH,), roles=(replication.SYNC_MASTER,))
"""The smallest configuration in which a master restarts without records that its slave has."""

CORRESPONDENCES: Final = (
    Correspondence(
        proof=flush_proof.PROOF,
        model=flush.MODEL,
        config=flush.Config(messages=("m1",)),
        scope=Scope({"message": 1, "queue": 1, "length": 3, "index": 2}),
        from_reference=flush_proof.from_reference,
        unbounded=flush.Config(messages=("m1",), crashes_max=None),
    ),
    Correspondence(
        proof=flush_proof.PROOF,
        model=flush.MODEL,
        config=flush.Config(),
        scope=Scope({"message": 2, "queue": 1, "length": 4, "index": 3}),
        from_reference=flush_proof.from_reference,
        unbounded=flush.Config(crashes_max=None),
    ),
    Correspondence(
        proof=replication_proof.PROOF,
        model=replication.MODEL,
        config=replication.Config(messages=("m1",), commits=True),
        scope=Scope({"message": 1, "length": 2, "index": 1}),
        from_reference=replication_proof.from_reference,
        unbounded=replication.Config(
            messages=("m1",), crashes_max=None, cuts_max=None, strangers_max=None, commits=True
        ),
    ),
    Correspondence(
        proof=replication_proof.sent_in_order(replication_proof.PROOF),
        model=replication.MODEL,
        config=_FORKS,
        scope=Scope({"message": 2, "length": 3, "index": 2}),
        from_reference=replication_proof.from_reference,
        unbounded=replace(_FORKS, crashes_max=None, cuts_max=None, strangers_max=None, commits=True),
    ),
)


def mismatches(pair: Correspondence, states: Iterable[Any]) -> Iterator[Mismatch]:
    """Yield the differences between the proof and the reference in these reachable states."""
    for state in states:
        in_logic = known(pair.proof.state, pair.from_reference(pair.config, state))
        for name, holds in {**pair.proof.clauses, **pair.proof.safety}.items():
            if holds(pair.scope, in_logic) is not True:
                yield Mismatch(state, f"a reachable state does not satisfy {name}")
        theirs, mine = _reference_steps(pair, state), _proof_steps(pair, in_logic)
        for action in sorted({*theirs, *mine}):
            if theirs[action] != mine[action]:
                only_theirs, only_mine = theirs[action] - mine[action], mine[action] - theirs[action]
                what = (
                    f"{len(only_theirs)} next states are the reference's alone, {len(only_mine)} the proof's"
                )
                yield Mismatch(state, f"{action}: {what}")


def _reference_steps(pair: Correspondence, state: Any) -> dict[str, set[Shape]]:
    steps: dict[str, set[Shape]] = defaultdict(set)
    for name, _, after in pair.model.steps(pair.unbounded, state):
        steps[name].add(_real(pair.proof, pair.from_reference(pair.config, after)))
    return steps


def _proof_steps(pair: Correspondence, state: Any) -> dict[str, set[Shape]]:
    steps: dict[str, set[Shape]] = defaultdict(set)
    for action in pair.proof.actions:
        for chosen in product(*(_values(pair.scope, parameter) for parameter in action.parameters)):
            guard, after = action.apply(pair.scope, state, *chosen)
            assert isinstance(guard, bool), f"{action.name} is not decided on known values"
            if guard:
                steps[action.name].add(_real(pair.proof, shape(pair.scope, after)))
    return steps


def _values(scope: Scope, parameter: Parameter) -> Iterable[Any]:
    value, arguments = kinds_of(parameter)
    if arguments:
        (kind,) = arguments
        tables = product(_all(scope, value), repeat=len(_all(scope, kind)))
        return (lambda x, table=table: table[x] for table in tables)
    return _all(scope, value)


def _all(scope: Scope, kind: Kind) -> tuple[Any, ...]:
    if kind == FLAG:
        return (False, True)
    values = scope.values(kind)
    assert values is not None, f"{kind.name} has no size in this scope"
    return tuple(values)


def _real(proof: Proof, values: dict[str, Any]) -> Shape:
    return tuple((v.name, values[v.name]) for v in variables(proof.state) if not v.auxiliary)
