"""A broker or a cluster for tests: inside the test's process, with its time and faults under control.

    async with broker() as b, b.client() as session:
        await Producer(session).send_or_raise(new_message("Orders", b"one coffee"))
        (order,) = await b.expect("Orders")

docs/how-to/test-applications.md has examples. The names in `__all__` are public and stable.
"""

from mqproof.conformance.faults.chaos_session import Chaos, ThreadedChaos, UnlawfulError
from mqproof.impl.embedded.broker_process import BrokerProcess, ProcessError
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.embedded.embedded_cluster import ClusterError, EmbeddedCluster
from mqproof.impl.embedded.stored_messages import ExpectationError
from mqproof.impl.embedded.threaded_broker import ThreadedBroker
from mqproof.impl.embedded.threaded_cluster import ThreadedCluster
from mqproof.impl.embedded.virtual_time import TimeError, VirtualTime

broker = EmbeddedBroker
cluster = EmbeddedCluster

__all__ = [
    "broker",
    "cluster",
    "EmbeddedBroker",
    "EmbeddedCluster",
    "ClusterError",
    "ExpectationError",
    "ThreadedBroker",
    "ThreadedCluster",
    "BrokerProcess",
    "ProcessError",
    "VirtualTime",
    "TimeError",
    "Chaos",
    "ThreadedChaos",
    "UnlawfulError",
]
