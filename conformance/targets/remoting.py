"""Any running cluster as a target, over its remoting protocol: `remoting://HOST:PORT` of a name server.

Nothing of the cluster is touched but topics of our own, a new one for each example; they stay behind. What
the wire cannot do (crashes, the choice of a flush mode) is not among the capabilities.
"""

import asyncio
import secrets
from collections.abc import Coroutine
from typing import Any, TypeVar

from conformance.target import Capability, Pulled, PulledMessage, Sent, Setup, WireOnly
from conformance.targets.client import Client
from impl.runtime.network import Address, AsyncioNetwork
from impl.runtime.runtime import production

T = TypeVar("T")

SCHEME = "remoting://"


class RemotingTarget(WireOnly):
    """Our client, talking to a cluster of somebody else."""

    capabilities = frozenset({Capability.COMMIT_OFFSET})

    def __init__(self, name_server: Address) -> None:
        self.name = f"{SCHEME}{name_server}"
        self._name_server = name_server
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self, setup: Setup) -> None:
        self._setup = setup
        self._loop = asyncio.new_event_loop()
        # A broker remembers: no two runs may share a topic, whatever their seed.
        self._topic = f"{setup.topic}_{secrets.token_hex(8)}"
        self._run(self._start())

    def send(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> Sent:  # noqa: ARG002
        return self._run(self._client.send(queue_id, msg_id, body))

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

    def close(self) -> None:
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        try:
            loop.run_until_complete(self._client.stop())
            loop.run_until_complete(asyncio.sleep(0))  # the transports hear that they are closed
        finally:
            loop.close()

    async def _start(self) -> None:
        self._client = Client(
            self._name_server, production(AsyncioNetwork()), self._topic, f"{self._setup.group}_{self._topic}"
        )
        await self._client.start()

    def _renamed(self, message: PulledMessage, topic: str) -> PulledMessage:
        """Our topic under the name that the caller gave it; a foreign one keeps its own."""
        told = topic if message.topic == self._topic else message.topic
        return PulledMessage(message.msg_id, message.body, told, message.queue_id, message.queue_offset)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None, "open comes first"
        return self._loop.run_until_complete(work)
