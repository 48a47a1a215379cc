"""The reference models by the name of their TLA+ module, and where TLC finds the bounded module."""

from typing import Any, Final

from reference import delivery, election, flush, group, guarantee, queue_choice, replication, routing
from reference.model import Model

MODELS: Final[dict[str, Model[Any, Any]]] = {
    model.name: model
    for model in (
        flush.MODEL,
        delivery.MODEL,
        group.MODEL,
        routing.MODEL,
        queue_choice.MODEL,
        guarantee.MODEL,
        replication.MODEL,
        election.MODEL,
    )
}
