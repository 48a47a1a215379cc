"""Where topics live, as the name servers tell: asked when first needed, then every refresh interval, and at
once when a broker is not what its route says.

A topic that a name server does not know (any more) keeps the route it had.
"""

import asyncio
import logging
from functools import lru_cache, partial
from typing import Final

from mqproof.impl.client.model import MessageQueue, NoRouteError
from mqproof.impl.client.name_servers import NameServerChoice
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import PERM_READ, PERM_WRITE, QueueData, TopicRoute
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import RouteRequest
from mqproof.impl.runtime.network import Address

_log = logging.getLogger(__name__)

MASTER_ID: Final = 0
_QUEUES_MAX: Final = 65_536
"""Of one topic at one broker: what a wrong route can make us list."""
_DOUBT_INTERVAL_S: Final = 0.5
"""A doubted route is not asked for more often: a broker that stays away fails every call."""


class Routes:
    """Routes by topic, and the addresses of the brokers in them."""

    def __init__(self, name_servers: NameServerChoice) -> None:
        self._name_servers = name_servers
        self._routes: dict[str, TopicRoute] = {}
        self._asking: dict[str, asyncio.Task[TopicRoute | None]] = {}
        self._asked_s: dict[str, float] = {}
        """When each topic's route was last asked for."""

    async def get(self, topic: str) -> TopicRoute | None:
        """The topic's route, None when the name server knows none.

        Raises:
            RemotingError: no name server answers, and we never had a route.
        """
        return self._routes.get(topic) or await self.refresh(topic)

    def known(self, topic: str) -> TopicRoute | None:
        """The route we have, without asking anybody."""
        return self._routes.get(topic)

    async def refresh(self, topic: str) -> TopicRoute | None:
        """Ask again; as `get`. Callers that ask at the same time share one request."""
        return await asyncio.shield(self._asking.get(topic) or self._begin(topic))

    def doubt(self, topic: str) -> None:
        """A broker in the topic's route is gone, or is no master: ask again, in the background, unless that
        is being done or was done just now."""
        now_s = asyncio.get_running_loop().time()
        if topic not in self._asking and now_s - self._asked_s.get(topic, now_s) >= _DOUBT_INTERVAL_S:
            self._begin(topic)

    async def refresh_all(self) -> None:
        """Ask for every topic we have a route of; what fails keeps what it has."""
        for topic in list(self._routes):
            try:
                await self.refresh(topic)
            except RemotingError as error:
                _log.info("the route of %s is not refreshed: %s", topic, error)

    def topics(self) -> list[str]:
        return list(self._routes)

    def brokers(self) -> list[Address]:
        """Every broker address in any route."""
        found = {
            text
            for route in self._routes.values()
            for broker in route.broker_datas
            for text in broker.broker_addrs.values()
        }
        return [_address(text) for text in sorted(found)]

    def address(self, topic: str, broker_name: str, *, master_only: bool = True) -> Address | None:
        """Where the broker is: its master, or where that is gone and will do, any replica."""
        for route in [self._routes.get(topic), *self._routes.values()]:
            for broker in route.broker_datas if route else ():
                if broker.broker_name == broker_name and broker.broker_addrs:
                    least = min(broker.broker_addrs)
                    if least == MASTER_ID or not master_only:
                        return _address(broker.broker_addrs[least])
        return None

    def replicas(self, topic: str, broker_name: str) -> dict[int, Address]:
        """The addresses of a broker name by broker id, as the topic's route has them; the master's is 0."""
        route = self._routes.get(topic)
        for broker in route.broker_datas if route else ():
            if broker.broker_name == broker_name:
                return {broker_id: _address(text) for broker_id, text in broker.broker_addrs.items()}
        return {}

    def brokers_of(self, topic: str) -> list[Address]:
        """One address of each broker name in the topic's route: its master's, or of another replica."""
        route = self._routes.get(topic)
        replicas = [broker.broker_addrs for broker in route.broker_datas] if route else []
        return [_address(addresses[min(addresses)]) for addresses in replicas if addresses]

    def _begin(self, topic: str) -> "asyncio.Task[TopicRoute | None]":
        self._asked_s[topic] = asyncio.get_running_loop().time()
        task = self._asking[topic] = asyncio.create_task(self._ask(topic))
        task.add_done_callback(partial(self._asked, topic))
        return task

    def _asked(self, topic: str, task: asyncio.Task[TopicRoute | None]) -> None:
        del self._asking[topic]
        # Whoever asked may have given up before; asyncio would complain of an error that nobody saw.
        if not task.cancelled():
            task.exception()

    async def _ask(self, topic: str) -> TopicRoute | None:
        fields = headers.write(RouteRequest(topic))
        answer = await self._name_servers.invoke(RequestCode.GET_ROUTEINFO_BY_TOPIC, fields)
        if answer.code == ResponseCode.SUCCESS:
            self._routes[topic] = _read_route(topic, answer.body)
        return self._routes.get(topic)


def _read_route(topic: str, body: bytes) -> TopicRoute:
    try:
        route = java_json.read(TopicRoute, body)
        for broker in route.broker_datas:
            for text in broker.broker_addrs.values():
                _address(text)
    except ValueError as error:
        raise RemotingError(f"the route of {topic} makes no sense: {error}") from None
    return route


def publish_queues(topic: str, route: TopicRoute) -> list[MessageQueue]:
    """Queues to which the topic's messages may be sent: writable, and their broker has a master.

    A topic with an order has just the queues that its order names: whoever hashes keys on queues must find
    them unchanged, also while a broker is away.
    """
    if route.order_topic_conf:
        return [
            MessageQueue(topic, name, queue_id)
            for name, count in sorted(_order(route.order_topic_conf).items())
            for queue_id in range(min(count, _QUEUES_MAX))
        ]
    masters = {broker.broker_name for broker in route.broker_datas if MASTER_ID in broker.broker_addrs}
    return [
        MessageQueue(topic, data.broker_name, queue_id)
        for data in _sorted(route.queue_datas)
        if data.perm & PERM_WRITE and data.broker_name in masters
        for queue_id in range(min(data.write_queue_nums, _QUEUES_MAX))
    ]


def subscribe_queues(topic: str, route: TopicRoute) -> list[MessageQueue]:
    """Queues from which the topic's messages may be read; a slave will do."""
    known = {broker.broker_name for broker in route.broker_datas if broker.broker_addrs}
    return [
        MessageQueue(topic, data.broker_name, queue_id)
        for data in _sorted(route.queue_datas)
        if data.perm & PERM_READ and data.broker_name in known
        for queue_id in range(min(data.read_queue_nums, _QUEUES_MAX))
    ]


def require(topic: str, route: TopicRoute | None) -> TopicRoute:
    """The route. Raises NoRouteError when there is none."""
    if route is None:
        raise NoRouteError(f"no name server knows topic {topic}")
    return route


def _order(text: str) -> dict[str, int]:
    """`b-a:4;b-b:4`: how many queues each broker gives. What is not of this form gives none."""
    parts = (part.rpartition(":") for part in text.split(";"))
    return {name: int(count) for name, _, count in parts if name and count.isascii() and count.isdecimal()}


@lru_cache(maxsize=1024)
def _address(text: str) -> Address:
    return Address.parse(text)


def _sorted(queue_datas: list[QueueData]) -> list[QueueData]:
    return sorted(queue_datas, key=lambda data: data.broker_name)
