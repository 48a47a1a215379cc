"""The brokers and queues of each topic, as the name servers report them.

A route is requested when it is first needed, then at every refresh interval. It is also requested soon after
a broker turns out not to match its route. A topic that a name server does not know, or no longer knows, keeps
the route it had.
"""

import asyncio
import logging
from functools import lru_cache, partial
from typing import Final

from mqproof.impl.client.connection.name_server_choice import NameServerChoice
from mqproof.impl.client.model import MessageQueue, NoRouteError
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import PERM_READ, PERM_WRITE, QueueData, TopicRoute
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import RouteRequest
from mqproof.impl.runtime.network import Address

_log = logging.getLogger(__name__)

MASTER_ID: Final = 0
_QUEUES_MAX: Final = 65_536
"""The maximum number of queues of one topic at one broker.

It limits what a wrong route can make the client list.
"""
_DOUBT_INTERVAL_S: Final = 0.5
"""The minimum interval between requests for a doubted route. Without it, each failed call would cause one."""


class Routes:
    """Routes by topic, and the addresses of the brokers in them."""

    def __init__(self, name_servers: NameServerChoice) -> None:
        self._name_servers = name_servers
        self._routes: dict[str, TopicRoute] = {}
        self._asking: dict[str, asyncio.Task[TopicRoute | None]] = {}
        self._asked_s: dict[str, float] = {}
        """When each topic's route was last requested."""

    async def get(self, topic: str) -> TopicRoute | None:
        """Return the topic's route, or None when the name server has none.

        Raises:
            RemotingError: no name server responds, and no route is known.
        """
        return self._routes.get(topic) or await self.refresh(topic)

    def known(self, topic: str) -> TopicRoute | None:
        """Return the known route without any request."""
        return self._routes.get(topic)

    async def refresh(self, topic: str) -> TopicRoute | None:
        """Request the route again, as `get` does. Concurrent callers share one request."""
        return await asyncio.shield(self._asking.get(topic) or self._begin(topic))

    def doubt(self, topic: str) -> None:
        """Report that a broker in the topic's route is gone, or is no longer a master.

        The route is requested again in the background, unless a request is in progress or was sent just
        before.
        """
        now_s = asyncio.get_running_loop().time()
        if topic not in self._asking and now_s - self._asked_s.get(topic, now_s) >= _DOUBT_INTERVAL_S:
            self._begin(topic)

    async def refresh_all(self) -> None:
        """Request the route of every known topic. A topic whose request fails keeps its route."""
        for topic in list(self._routes):
            try:
                await self.refresh(topic)
            except RemotingError as error:
                _log.info("the route of %s is not refreshed: %s", topic, error)

    def topics(self) -> list[str]:
        return list(self._routes)

    def brokers(self) -> list[Address]:
        """Return every broker address in any route."""
        found = {
            text
            for route in self._routes.values()
            for broker in route.broker_datas
            for text in broker.broker_addrs.values()
        }
        return [_address(text) for text in sorted(found)]

    def address(self, topic: str, broker_name: str, *, master_only: bool = True) -> Address | None:
        """Return the address of the broker's master.

        Without a master, returns any replica if `master_only` is False.
        """
        for route in [self._routes.get(topic), *self._routes.values()]:
            for broker in route.broker_datas if route else ():
                if broker.broker_name == broker_name and broker.broker_addrs:
                    least = min(broker.broker_addrs)
                    if least == MASTER_ID or not master_only:
                        return _address(broker.broker_addrs[least])
        return None

    def replicas(self, topic: str, broker_name: str) -> dict[int, Address]:
        """Return the addresses of a broker name by broker id, from the topic's route. The master has id 0."""
        route = self._routes.get(topic)
        for broker in route.broker_datas if route else ():
            if broker.broker_name == broker_name:
                return {broker_id: _address(text) for broker_id, text in broker.broker_addrs.items()}
        return {}

    def filter_servers(self, topic: str, broker: Address) -> list[Address]:
        """Return the filter servers of a broker, from the topic's route."""
        route = self._routes.get(topic)
        listed = route.filter_server_table.get(str(broker)) if route else None
        return [_address(text) for text in listed or ()]

    def brokers_of(self, topic: str) -> list[Address]:
        """Return one address per broker name in the topic's route: its master's, or another replica's."""
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
        # Retrieve the exception even if all callers have gone: otherwise asyncio logs it as never retrieved.
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
        for servers in route.filter_server_table.values():
            for text in servers or ():
                _address(text)
    except ValueError as error:
        raise RemotingError(f"the route of {topic} is invalid: {error}") from None
    return route


def publish_queues(topic: str, route: TopicRoute) -> list[MessageQueue]:
    """Return the queues to which the topic's messages may be sent: writable, and their broker has a master.

    A topic with an order configuration has exactly the queues that it names. A producer that hashes keys to
    queues needs the same queues while a broker is away.
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
    """Return the queues from which the topic's messages may be read. A slave is sufficient."""
    known = {broker.broker_name for broker in route.broker_datas if broker.broker_addrs}
    return [
        MessageQueue(topic, data.broker_name, queue_id)
        for data in _sorted(route.queue_datas)
        if data.perm & PERM_READ and data.broker_name in known
        for queue_id in range(min(data.read_queue_nums, _QUEUES_MAX))
    ]


def require(topic: str, route: TopicRoute | None) -> TopicRoute:
    """Return the route. Raises NoRouteError when there is none."""
    if route is None:
        raise NoRouteError(f"no name server knows topic {topic}")
    return route


def _order(text: str) -> dict[str, int]:
    """Return the number of queues per broker in `b-a:4;b-b:4`, ignoring parts of another form."""
    parts = (part.rpartition(":") for part in text.split(";"))
    return {name: int(count) for name, _, count in parts if name and count.isascii() and count.isdecimal()}


@lru_cache(maxsize=1024)
def _address(text: str) -> Address:
    return Address.parse(text)


def _sorted(queue_datas: list[QueueData]) -> list[QueueData]:
    return sorted(queue_datas, key=lambda data: data.broker_name)
