"""Finds the target on which behaviours of a model are replayed: the reference, or a step driver of ours."""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Final

from mqproof.conformance.behaviours.subject import BehaviourTarget, ReferenceTarget

_OURS: Final = {
    "Flush": "mqproof.conformance.subjects.stepped_store:SteppedStore",
    "Routing": "mqproof.conformance.subjects.stepped_name_servers:SteppedNameServers",
    "Election": "mqproof.conformance.subjects.stepped_group:SteppedGroup",
    "Replication": "mqproof.conformance.subjects.stepped_pair:SteppedPair",
    "QueueChoice": "mqproof.conformance.subjects.stepped_producer:SteppedProducer",
    "OrderLock": "mqproof.conformance.subjects.stepped_lock:SteppedLock",
    "Delivery": "mqproof.conformance.subjects.stepped_delivery:SteppedDelivery",
    "Group": "mqproof.conformance.subjects.stepped_consumers:SteppedConsumers",
    "Selection": "mqproof.conformance.subjects.stepped_selection:SteppedSelection",
    "Broadcast": "mqproof.conformance.subjects.stepped_broadcast:SteppedBroadcast",
    "Rebalance": "mqproof.conformance.subjects.stepped_rebalance:SteppedRebalance",
    "RequestReply": "mqproof.conformance.subjects.stepped_requests:SteppedRequests",
}
"""Import paths, since each driver imports much of our code."""
NOT_STEPPED: Final = {
    "Guarantee": "mqproof matrix --on impl runs it on our brokers",
    "Retry": "no stepped target yet; the suite retry tests our broker",
    "Transactions": "no stepped target yet; the suite transactions tests our broker",
    "Timers": "no stepped target yet; the suite timers tests our broker",
    "Damage": "no stepped target yet; the suite damage tests our broker",
}
"""The models whose behaviours are not replayed on our code, with the reason: the result is "not tested"."""


def resolve(name: str, model: str) -> Callable[[], BehaviourTarget] | None:
    """Return the target `reference` or `impl` for a model; None if there is none."""
    if name == "reference":
        return lambda: ReferenceTarget(model)
    if name != "impl" or model not in _OURS:
        return None
    make: Callable[[], BehaviourTarget] = resolve_name(_OURS[model])
    return make
