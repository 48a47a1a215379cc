"""The reference models by the name of their TLA+ module."""

from collections.abc import Collection
from typing import Any, Final

from mqproof.reference import (
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
from mqproof.reference.model import Model
from mqproof.report.console import stop
from mqproof.report.model import Exit

MODELS: Final[dict[str, Model[Any, Any]]] = {
    model.name: model
    for model in (
        flush.MODEL,
        delivery.MODEL,
        group.MODEL,
        order_lock.MODEL,
        routing.MODEL,
        queue_choice.MODEL,
        guarantee.MODEL,
        replication.MODEL,
        election.MODEL,
        leader_lease.MODEL,
        transactions.MODEL,
        timers.MODEL,
        request_reply.MODEL,
        retry.MODEL,
        rebalance.MODEL,
        selection.MODEL,
        tracing.MODEL,
        broadcast.MODEL,
        damage.MODEL,
    )
}


def expect_models(names: Collection[str]) -> None:
    """Stop the command, with one line, at the first name that is not a reference model's."""
    if unknown := [name for name in names if name not in MODELS]:
        stop(f"no reference model {unknown[0]!r}; there are {', '.join(MODELS)}", Exit.USAGE)
