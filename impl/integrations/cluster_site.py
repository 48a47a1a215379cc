"""Requests of an administrator that integrations need: create a topic, move a group."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from mqproof.impl.admin.admin import MASTER_ID, Admin, address_of
from mqproof.impl.admin.groups import END, connection, reset_offsets
from mqproof.impl.admin.topics import update_topic
from mqproof.impl.client.model import ClientError, NoRouteError
from mqproof.impl.remoting.address_server import parse
from mqproof.impl.remoting.bodies import TopicConfig
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.impl.runtime.security.tls_file import load

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ClusterSite:
    """A cluster, and how to connect to it; the arguments are as in `connect`."""

    name_servers: str
    tls: str | None = None
    credentials: Credentials | None = None

    async def administer(self, work: Callable[[Admin], Awaitable[_T]]) -> _T:
        """Do some work with connections that are closed at its end."""
        runtime = production(AsyncioNetwork(), load(self.tls) if self.tls else None)
        async with Admin(parse(self.name_servers), runtime, self.credentials) as admin:
            return await work(admin)

    def administer_blocking(self, work: Callable[[Admin], Awaitable[_T]]) -> _T:
        """Do some work, from a thread that may run an event loop."""
        with ThreadPoolExecutor(1, "mqproof-admin") as threads:
            return threads.submit(asyncio.run, self.administer(work)).result()


async def ensure_topic(admin: Admin, topic: str, queues: int) -> None:
    """Create the topic at all masters, unless it has a route.

    A consumer looks for the route of a missing topic only every 30 seconds, and a cluster may not create
    topics at their first message.
    """
    try:
        await admin.route(topic)
    except NoRouteError:
        found = (await admin.cluster_info()).broker_addr_table.values()
        masters = [each.broker_addrs[MASTER_ID] for each in found if MASTER_ID in each.broker_addrs]
        if not masters:
            raise ClientError(f"topic {topic} is not created: the name server knows no master") from None
        config = TopicConfig(topic, read_queue_nums=queues, write_queue_nums=queues)
        await update_topic(admin, [address_of(text) for text in sorted(masters)], config)


async def move_members(admin: Admin, group: str, topic: str) -> None:
    """Move the members of the group, if it has any, to the end of each queue of the topic.

    Otherwise they would commit their positions over those that were just committed for them.
    """
    if await connection(admin, group) is not None:
        await reset_offsets(admin, group, topic, END)
