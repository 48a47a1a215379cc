"""A consumer without timers: it rebalances only when the script says so, and its requests are held.

The script determines, through the allocation strategy, which member gets the queue.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from mqproof.conformance.subjects.stepped.delayed_requests import Held, HeldRequests, at_rest, session
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.model import Listener, MessageQueue
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import PERM_READ_WRITE, BrokerData, ConsumerIds, QueueData, TopicRoute
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import OffsetResponse
from mqproof.impl.runtime.runtime import Runtime

GROUP: Final = "G"
QUEUE: Final = MessageQueue("T", "broker", 0)


class _Consumer(PushConsumer):
    """A push consumer without background tasks; the script starts their work."""

    def _background(self) -> list[Coroutine[Any, Any, None]]:
        return []


class SteppedMember:
    """A member of a group that has at most one queue to read."""

    def __init__(
        self,
        name: str,
        everybody: Sequence[str],
        runtime: Runtime,
        listener: Listener,
        config: PushConsumerConfig,
    ) -> None:
        self._everybody = list(everybody)
        self.assigned_queues: list[MessageQueue] = []
        """The queues that its next rebalance assigns to it."""
        self.requests = HeldRequests(self.at_once)
        config = replace(config, strategy=self.share)
        self.consumer = _Consumer(session(self.requests, runtime, name), GROUP, listener, config)
        self._round: asyncio.Task[bool] | None = None

    async def start(self) -> None:
        await self.consumer.start()
        await self.consumer.subscribe(QUEUE.topic)

    def share(self, _queues: Sequence[MessageQueue], _ids: Sequence[str], _own: str) -> list[MessageQueue]:
        """Return the queues of its next rebalance."""
        return self.assigned_queues

    @property
    def is_reading(self) -> bool:
        return QUEUE in self.consumer.owned()

    @property
    def is_leaving(self) -> bool:
        """True if the consumer has not finished leaving the queue that it dropped."""
        return QUEUE in self.consumer._leaving

    @property
    def is_rebalancing(self) -> bool:
        return self._round is not None and not self._round.done()

    def under_way(self, code: RequestCode) -> Held | None:
        """Return the last request with this code that is in progress; None if there is none."""
        return next((held for held in reversed(self.requests.held) if held.request.code == code), None)

    async def rebalance(self) -> None:
        """Apply the assignment `assigned_queues`: immediately, or after the current round has ended."""
        if not self.is_rebalancing:
            self._round = asyncio.create_task(self.consumer._rebalancer.once())
        await at_rest()

    def at_once(self, request: Command) -> Command | None:
        """Answer route queries, member list queries and heartbeats immediately."""
        match request.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC:
                if request.fields["topic"] != QUEUE.topic:
                    return request.answer(ResponseCode.TOPIC_NOT_EXIST)
                return request.answer(ResponseCode.SUCCESS, body=route())
            case RequestCode.GET_CONSUMER_LIST_BY_GROUP:
                ids = java_json.write(ConsumerIds(self._everybody))
                return request.answer(ResponseCode.SUCCESS, body=ids)
            case RequestCode.HEART_BEAT:
                return request.answer(ResponseCode.SUCCESS)
            case _:
                return None


def offset_answer(request: Command) -> Command | None:
    """Return the answer to an offset request, for models in which offsets do not matter."""
    match request.code:
        case RequestCode.QUERY_CONSUMER_OFFSET:
            return request.answer(ResponseCode.SUCCESS, headers.write(OffsetResponse(0)))
        case RequestCode.UPDATE_CONSUMER_OFFSET:
            return request.answer(ResponseCode.SUCCESS)
        case _:
            return None


async def killed(consumer: PushConsumer) -> None:
    """End the process of a consumer: nothing of it continues, and no peer is notified."""
    for task in consumer._leaving.values():
        task.cancel()
    consumer._queues.stop()
    await consumer._consumption.stop(timeout_s=0)
    await at_rest()


@lru_cache(maxsize=1)
def route() -> bytes:
    """Return the route of a topic with one queue."""
    broker = BrokerData({0: "127.0.0.1:10911"}, QUEUE.broker_name, "cluster")
    queues = QueueData(QUEUE.broker_name, PERM_READ_WRITE, 1, write_queue_nums=1)
    return java_json.write(TopicRoute([broker], [queues]))
