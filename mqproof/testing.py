"""A broker for tests: inside the process of the test, with its time and its faults under control.

    async with broker() as b, b.client() as session:
        await Producer(session).send_or_raise(new_message("Orders", b"one coffee"))
        (order,) = await b.expect("Orders")

docs/how-to/test-applications.md has examples. The names in `__all__` are public and stable.
"""

from mqproof.conformance.faults.chaos_session import Chaos, ThreadedChaos, UnlawfulError
from mqproof.impl.embedded.broker_process import BrokerProcess, ProcessError
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker, ExpectationError
from mqproof.impl.embedded.threaded_broker import ThreadedBroker
from mqproof.impl.embedded.virtual_time import TimeError, VirtualTime

broker = EmbeddedBroker

__all__ = [
    "broker",
    "EmbeddedBroker",
    "ExpectationError",
    "ThreadedBroker",
    "BrokerProcess",
    "ProcessError",
    "VirtualTime",
    "TimeError",
    "Chaos",
    "ThreadedChaos",
    "UnlawfulError",
]
