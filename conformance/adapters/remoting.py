"""A running cluster as a target, over its remoting protocol: `remoting://HOST:PORT` of a name server.

Only our own topics in the cluster are changed, a new one for each example; they are not deleted. Our client
uses links on loopback that can cut connections, delay them, and lose bytes in one direction. The broker
reports its own flush mode. Operations that neither the wire nor a fault control can do (power loss, the
choice of a flush mode) are not among the capabilities.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeVar

from mqproof.conformance.adapters.caller import Caller
from mqproof.conformance.adapters.client import Client
from mqproof.conformance.engine.targets import REMOTING, TargetError
from mqproof.conformance.faults import controls
from mqproof.conformance.faults.controls import FaultControl, FaultControls
from mqproof.conformance.faults.link import FAULTS, Link, LinkedNetwork
from mqproof.conformance.suites.flush.target import (
    Capability,
    Fault,
    Pulled,
    PulledMessage,
    RestartFailedError,
    Sent,
    Setup,
    WireOnly,
)
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.reference.flush import ASYNC_FLUSH, SYNC_FLUSH

T = TypeVar("T")

_DISTURBED_MS: Final = 500
"""The timeout of a send while a fault is active."""
_SERVES_SECONDS_MAX: Final = 120.0
_LOOK_S: Final = 0.1
_UNDONE: Final = {
    Fault.ISOLATE: (FaultControl.ISOLATE, FaultControl.REJOIN),
    Fault.FREEZE: (FaultControl.FREEZE, FaultControl.THAW),
}


def read_flush_mode(name_server: Address) -> Callable[[], str]:
    """Return a function that returns the flush mode reported by the broker; "" if it does not report it.

    The broker is queried only once.
    """

    @cache
    def mode() -> str:
        return asyncio.run(_flush_mode(name_server))

    return mode


async def _flush_mode(name_server: Address) -> str:
    caller = Caller(name_server, production(AsyncioNetwork()))
    try:
        await caller.start()
        mode = (await caller.settings()).get("flushDiskType", "")
    except TargetError:
        return ""  # opening the target reports the error
    finally:
        await caller.stop()
    return mode if mode in (SYNC_FLUSH, ASYNC_FLUSH) else ""


class RemotingTarget(WireOnly):
    """Our client, connected to a cluster that was already running."""

    def __init__(
        self,
        name_server: Address,
        name: str = "",
        fault_controls: FaultControls = MappingProxyType({}),
        flush_mode: Callable[[], str] = str,
    ) -> None:
        """`flush_mode` returns the broker's flush mode, or "" if it is unknown."""
        self.name = name or f"{REMOTING}{name_server}"
        self._flush_mode = flush_mode
        self._name_server = name_server
        self._fault_controls = fault_controls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fault: Fault | None = None
        self._is_down = False

    @property
    def capabilities(self) -> frozenset[Capability]:
        mode = self._flush_mode()
        return (
            frozenset({Capability.COMMIT_OFFSET, *([Capability[mode]] if mode else ())})
            | {Capability(fault) for fault in FAULTS}
            | controls.capabilities(self._fault_controls)
        )

    def open(self, setup: Setup) -> None:
        self._setup = setup
        self._loop = asyncio.new_event_loop()
        self._network = LinkedNetwork(AsyncioNetwork())
        # A broker keeps its data, so two runs must not share a topic, whatever their seeds.
        self._topic = f"{setup.topic}_{secrets.token_hex(8)}"
        self._run(self._start())

    def send(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> Sent:  # noqa: ARG002
        timeout_ms = _DISTURBED_MS if self._fault else None
        return self._run(self._client.send(queue_id, msg_id, body, timeout_ms=timeout_ms))

    def pull(self, topic: str, queue_id: int, offset: int, max_count: int) -> Pulled:
        pulled = self._run(self._client.pull(queue_id, offset, max_count))
        messages = tuple(self._renamed(message, topic) for message in pulled.messages)
        return Pulled(pulled.status, messages, pulled.next_offset, pulled.min_offset, pulled.max_offset)

    def commit_offset(self, topic: str, queue_id: int, offset: int) -> bool:  # noqa: ARG002
        return self._run(self._client.commit(queue_id, offset))

    def query_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return self._run(self._client.committed(queue_id))

    def min_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return self._run(self._client.min_offset(queue_id))

    def max_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return self._run(self._client.max_offset(queue_id))

    def kill(self) -> None:
        self._is_down = True
        self._apply(FaultControl.KILL)

    def shutdown(self) -> None:
        self._is_down = True
        self._apply(FaultControl.STOP)

    def restart(self) -> None:
        self._is_down = False
        self._apply(FaultControl.START)
        if not self._serves():
            raise RestartFailedError(f"{self._client.place.broker} did not serve after its start")

    def disturb(self, fault: Fault) -> None:
        self._fault = fault
        if fault in FAULTS:
            self._link().disturb(fault)
        else:
            self._apply(_UNDONE[fault][0])

    def calm(self) -> None:
        fault, self._fault = self._fault, None
        if fault in FAULTS:
            self._link().calm()
        elif fault is not None:
            self._apply(_UNDONE[fault][1])
        if not self._serves():
            raise TargetError(f"{self._client.place.broker} did not serve after {fault}")

    def close(self) -> None:
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        try:
            self._leave_as_it_was()
            loop.run_until_complete(self._client.stop())
            loop.run_until_complete(asyncio.sleep(0))  # let the transports process the close
        finally:
            self._network.close()
            loop.close()

    async def _start(self) -> None:
        runtime = production(self._network)
        self._client = Client(self._name_server, runtime, self._topic, f"{self._setup.group}_{self._topic}")
        await self._client.start()
        self._link()  # before the first connection to the broker

    def _serves(self) -> bool:
        """Wait until the broker serves; return False if it takes too long."""
        deadline = time.monotonic() + _SERVES_SECONDS_MAX
        while not self._run(self._client.serves()):
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S)
        return True

    def _leave_as_it_was(self) -> None:
        """Undo the current fault and restart a stopped broker.

        An example may have been interrupted at any point.
        """
        if self._fault in _UNDONE:
            self._apply(_UNDONE[self._fault][1])
        if self._is_down:
            self._apply(FaultControl.START)
        self._fault, self._is_down = None, False

    def _link(self) -> Link:
        return self._network.link(Address.parse(self._client.place.address))

    def _apply(self, control: FaultControl) -> None:
        self._fault_controls[control](self._client.place)

    def _renamed(self, message: PulledMessage, topic: str) -> PulledMessage:
        """Return the message with the caller's name for our topic; other topics keep their names."""
        name = topic if message.topic == self._topic else message.topic
        return PulledMessage(message.msg_id, message.body, name, message.queue_id, message.queue_offset)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None, "call open first"
        return self._loop.run_until_complete(work)
