"""Deliberately broken variants of the reference models, each of which its named invariant must catch.

There is one module per model; `MUTANTS` here contains all of them by name. If spec/tla/mutants breaks the
same thing, the name is the same, without the model's name.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from mqproof.reference.explorer.lasso import Lasso, find_lasso, lasso_text
from mqproof.reference.explorer.search import Violation, explore, path_text
from mqproof.reference.explorer.state_graph import state_graph
from mqproof.reference.mutants import (
    broadcast,
    damage,
    delivery,
    election,
    flush,
    group,
    guarantee,
    leader_lease,
    order_lock,
    queue_choice,
    rebalance,
    replication,
    request_reply,
    retry,
    routing,
    selection,
    timers,
    tracing,
    transactions,
)
from mqproof.reference.mutants.mutant import Mutant as Mutant
from mqproof.report.model import Result, Verdict, Witness
from mqproof.spec.catalogue import id_of

_ALL: Final = (
    *flush.MUTANTS,
    *delivery.MUTANTS,
    *group.MUTANTS,
    *order_lock.MUTANTS,
    *guarantee.MUTANTS,
    *routing.MUTANTS,
    *queue_choice.MUTANTS,
    *replication.MUTANTS,
    *election.MUTANTS,
    *leader_lease.MUTANTS,
    *transactions.MUTANTS,
    *timers.MUTANTS,
    *request_reply.MUTANTS,
    *retry.MUTANTS,
    *rebalance.MUTANTS,
    *selection.MUTANTS,
    *tracing.MUTANTS,
    *broadcast.MUTANTS,
    *damage.MUTANTS,
)

MUTANTS: Final = {mutant.name: mutant for mutant in _ALL}
assert len(MUTANTS) == len(_ALL), "two mutants of the reference have one name"


def names() -> tuple[str, ...]:
    """Return the names of the mutants, in order."""
    return tuple(MUTANTS)


def run(chosen: Sequence[str] = ()) -> Iterator[Result]:
    """Explore each mutant, or each chosen one: HELD means that it was caught.

    Raises:
        KeyError: there is no mutant of a chosen name.
    """
    for mutant in (MUTANTS[name] for name in chosen or MUTANTS):
        started = time.perf_counter()
        states, witness = _explored(mutant)
        yield Result(
            id=id_of(mutant.model.name, mutant.invariant),
            name=mutant.name,
            layer="reference",
            verdict=Verdict.HELD if witness else Verdict.VIOLATED,
            counts={"states": states},
            witnesses=(witness,) if witness else (),
            detail=f"caught by {mutant.invariant}" if witness else f"survives {mutant.invariant}",
            replay=f"mqproof mutants --layer reference --only {mutant.name}",
            seconds=time.perf_counter() - started,
        )


def _explored(mutant: Mutant) -> tuple[int, Witness | None]:
    """Return the number of explored states, and the witness of the violation if there is one."""
    model = mutant.broken()
    if mutant.invariant in model.liveness:
        graph = state_graph(model, mutant.config)
        lasso = find_lasso(graph, model.liveness[mutant.invariant](mutant.config))
        return len(graph.states), _run(lasso) if lasso else None
    exploration = explore(model, mutant.config)
    violation = exploration.violation
    return len(exploration.parents), _witness(violation) if violation else None


def _run(lasso: Lasso[Any]) -> Witness:
    return Witness(lasso_text(lasso), {"steps": str(len(lasso.path) + len(lasso.cycle))})


def _witness(violation: Violation[Any]) -> Witness:
    return Witness(path_text(violation.path), {"steps": str(len(violation.path))})
