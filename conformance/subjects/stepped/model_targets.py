"""Finds the target on which behaviours of a model are replayed: the reference, or a step driver of ours."""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Final

from mqproof.conformance.behaviours.subject import BehaviourTarget, ReferenceTarget
from mqproof.spec.checkout import checkout

_OURS: Final = {
    "Flush": "mqproof.conformance.subjects.stepped.crashing_store:SteppedStore",
    "Routing": "mqproof.conformance.subjects.stepped.routing_nodes:SteppedNameServers",
    "Election": "mqproof.conformance.subjects.stepped.raft_members:SteppedGroup",
    "Replication": "mqproof.conformance.subjects.stepped.replicating_pair:SteppedPair",
    "QueueChoice": "mqproof.conformance.subjects.stepped.queue_choosing_producer:SteppedProducer",
    "OrderLock": "mqproof.conformance.subjects.stepped.orderly_consumers:SteppedLock",
    "Delivery": "mqproof.conformance.subjects.stepped.one_queue_broker:SteppedDelivery",
    "Group": "mqproof.conformance.subjects.stepped.consuming_group:SteppedConsumers",
    "Selection": "mqproof.conformance.subjects.stepped.filtered_pulls:SteppedSelection",
    "Broadcast": "mqproof.conformance.subjects.stepped.broadcast_consumers:SteppedBroadcast",
    "Rebalance": "mqproof.conformance.subjects.stepped.rebalancing_consumers:SteppedRebalance",
    "Transactions": "mqproof.conformance.subjects.stepped.ended_transactions:SteppedTransactions",
    "Timers": "mqproof.conformance.subjects.stepped.timed_deliveries:SteppedTimers",
    "Retry": "mqproof.conformance.subjects.stepped.redelivered_messages:SteppedRetries",
    "RequestReply": "mqproof.conformance.subjects.stepped.requesting_clients:SteppedRequests",
    "Tracing": "mqproof.conformance.subjects.stepped.traced_operations:SteppedTracing",
}
"""Import paths, since each driver imports much of our code. An installed package has no drivers."""
NOT_STEPPED: Final = {
    "Guarantee": "mqproof matrix --on impl runs it on our brokers",
    "LeaderLease": "its elections are one step each; the tests of the Raft core judge its rules",
    "Damage": "the suite damage does the faults to the files of our broker, and judges what clients see",
}
"""The models whose behaviours are not replayed on our code, with the reason: the result is "not tested"."""


def why_not(model: str) -> str:
    """Return the reason why the behaviours of a model are not replayed on our code."""
    return NOT_STEPPED.get(model, "only a checkout of mqproof's repository has what drives our code")


def resolve(name: str, model: str) -> Callable[[], BehaviourTarget] | None:
    """Return the target `reference` or `impl` for a model; None if there is none."""
    if name == "reference":
        return lambda: ReferenceTarget(model)
    if name != "impl" or model not in _OURS or checkout() is None:
        return None
    make: Callable[[], BehaviourTarget] = resolve_name(_OURS[model])
    return make
