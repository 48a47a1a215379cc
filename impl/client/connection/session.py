"""The connections, routes and heartbeats that the producers and consumers of one application share."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from mqproof.impl.client.connection.group_claims import GroupClaims, Identity
from mqproof.impl.client.connection.hooked_client import HookedClient
from mqproof.impl.client.connection.inbound_requests import Checked, Member, processors
from mqproof.impl.client.connection.name_server_choice import NameServerChoice
from mqproof.impl.client.connection.periodic import repeat
from mqproof.impl.client.connection.request_hooks import Hooks, RequestHook
from mqproof.impl.client.connection.routes import Routes
from mqproof.impl.client.connection.sole_member import require_sole
from mqproof.impl.client.connection.waiting_replies import WaitingReplies
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.address_server import FETCH_INTERVAL_S, NameServers
from mqproof.impl.remoting.bodies import ConsumerData, Heartbeat, ProducerData
from mqproof.impl.remoting.channel import Channel, RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode, response_name
from mqproof.impl.remoting.command import VERSION_NAME, Command, new_request
from mqproof.impl.remoting.headers import UnregisterClientRequest
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime

_log = logging.getLogger(__name__)

_TIMEOUT_S = 3.0
_GREET_S = 1.0
"""The pause between two checks of the connections while a request waits for its reply."""


@dataclass(frozen=True, slots=True)
class SessionConfig:
    route_refresh_ms: int = 30_000
    """The pause between two requests for the routes."""
    heartbeat_ms: int = 30_000
    """The pause between two heartbeats to the brokers."""


class Session:
    """One client instance. Groups join it, and its heartbeats register them at the brokers.

    `client_id` must be unique among all clients of a group. A broadcast consumer that must continue at its
    last offset needs the same id after a restart.
    """

    def __init__(
        self,
        name_servers: NameServers,
        runtime: Runtime,
        client_id: str | None = None,
        config: SessionConfig | None = None,
        credentials: Credentials | None = None,
        claims: GroupClaims | None = None,
        hooks: Sequence[RequestHook] = (),
        *,
        is_id_chosen: bool = False,
    ) -> None:
        """Create a session. `claims` is shared with the other sessions of the process.

        `is_id_chosen` says that the client id is not unique by its construction, so that another process may
        have it too.
        """
        self.runtime = runtime
        self._claims = claims or GroupClaims()
        self._is_id_chosen = is_id_chosen
        self._name_servers_text = str(name_servers)
        self._members: dict[str, Member] = {}
        self._checked: dict[str, Checked] = {}
        self.replies = WaitingReplies(runtime.clock)
        self.remoting: RemotingClient = HookedClient(
            runtime.remoting,
            handler(processors(self._members, self._checked, self.replies)),
            self._greet_again,
            credentials,
            Hooks(hooks),
        )
        self.name_servers = NameServerChoice(self.remoting, runtime.network, name_servers, runtime.random)
        self.routes = Routes(self.name_servers)
        self.client_id = client_id or f"127.0.0.1@{runtime.random.getrandbits(48):012x}"
        self._config = config or SessionConfig()
        self._producers: dict[str, ProducerData] = {}
        self._consumers: dict[str, ConsumerData] = {}
        self._greeted: dict[Address, Channel | None] = {}
        """The connection on which each broker last accepted a heartbeat.

        The broker forgets this client when it closes.
        """
        self._refused: set[Address] = set()
        """Brokers that refused the last heartbeat."""
        self._greetings: set[asyncio.Task[None]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._greeter: asyncio.Task[None] | None = None
        self._at_stop: list[Callable[[], Awaitable[None]]] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start to refresh routes and send heartbeats."""
        self._every(self._config.route_refresh_ms / 1000, self.routes.refresh_all)
        self._every(self._config.heartbeat_ms / 1000, self.heartbeat)
        if self.name_servers.is_fetched:
            self._every(FETCH_INTERVAL_S, self.name_servers.refresh)

    async def stop(self) -> None:
        """Leave the groups and close all connections. Pending requests fail. Stop push consumers first."""
        for work in self._at_stop:
            await work()
        greeter = [self._greeter] if self._greeter is not None else []
        tasks = (*self._tasks, *self._greetings, *greeter)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        for group in list(self._producers):
            await self._leave(UnregisterClientRequest(self.client_id, producer_group=group))
        for group in list(self._consumers):
            await self.leave_as_consumer(group)
        await self.remoting.close()

    def at_stop(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do some work when the session stops, before the connections are closed. It must not raise."""
        self._at_stop.append(work)

    def join_as_producer(self, group: str, checked: Checked | None = None) -> None:
        """Register the producer group at brokers from the next heartbeat on. `checked` answers their checks.

        Raises:
            ClientError: another producer of this session answers the checks of the group.
        """
        if checked is not None:
            if group in self._checked:
                raise ClientError(f"group {group} has a transaction producer in this session already")
            self._checked[group] = checked
        if group not in self._producers:
            self._producers[group] = ProducerData(group)
            self._greeted.clear()  # no broker has the new group yet

    def leave_checks(self, group: str, checked: Checked) -> None:
        """Answer no more checks of the group's transactions, unless another producer answers them now."""
        if self._checked.get(group) == checked:
            del self._checked[group]

    async def require_sole(self, group: str, topics: Iterable[str]) -> None:
        """Check that no other process is the member of the group under this client id.

        Brokers that know this session as a member of the group are not asked.

        Raises:
            ClientError: there is another one.
        """
        if not self._is_id_chosen:
            return
        for topic in topics:
            with contextlib.suppress(RemotingError):
                await self.routes.get(topic)
        known = self._greeted if group in self._consumers else {}
        brokers = [address for address in self.routes.brokers() if address not in known]
        await require_sole(self.remoting, brokers, group, self.client_id)

    def join_as_consumer(self, data: ConsumerData, member: Member | None = None) -> None:
        """Register the group at brokers from the next heartbeat on. `member` answers requests of brokers.

        A consumer without a member only pulls. It shares the registration of a member of the same group.

        Raises:
            ClientError: the group already has another member with this client id.
        """
        group = data.group_name
        if member is None and group in self._members:
            return
        if member is not None:
            self._claims.claim(self._identity, group, member)
            self._members[group] = member
        self._consumers[group] = data
        self._greeted.clear()  # no broker has the new group yet

    async def leave_as_consumer(self, group: str) -> None:
        """Unregister the group at every connected broker."""
        if self._members.pop(group, None) is not None:
            self._claims.release(self._identity, group)
        if self._consumers.pop(group, None):
            await self._leave(UnregisterClientRequest(self.client_id, consumer_group=group))

    @property
    def _identity(self) -> Identity:
        return self._name_servers_text, self.client_id

    def properties(self, consume_type: str) -> dict[str, str]:
        """Return the properties of a consumer that administrators see, under RocketMQ's names."""
        return {
            "PROP_CLIENT_VERSION": VERSION_NAME,
            "PROP_CONSUME_TYPE": consume_type,
            "PROP_NAMESERVER_ADDR": ";".join(map(str, self.name_servers.addresses)),
        }

    async def heartbeat(self) -> None:
        """Send one heartbeat to every broker in the routes. Failures are only logged."""
        await self._beat(self.routes.brokers())

    async def greet(self) -> None:
        """Send a heartbeat to brokers that do not know this client: new ones, or reconnected ones."""
        channel = self.remoting.channel
        await self._beat(
            address
            for address in self.routes.brokers()
            if channel(address) is None or self._greeted.get(address) is not channel(address)
        )

    def greet_while_waiting(self) -> None:
        """While a request waits for its reply, send heartbeats on new connections to brokers.

        Without this, a broker that restarted would not know this client until the next heartbeat.
        """
        if self._greeter is None or self._greeter.done():
            self._greeter = asyncio.create_task(self._keep_greeted())

    async def _keep_greeted(self) -> None:
        while self.replies.are_awaited:
            await asyncio.sleep(_GREET_S)
            await self.greet()

    def _greet_again(self, address: Address) -> None:
        """Send a heartbeat to a broker after a reconnect, if it had accepted one before.

        The broker has forgotten this client and assigns its queues to other members. A connection that is
        lost again at once gets no heartbeat: it would open the next connection, which may be lost, too.
        """
        if address in self._greeted:
            task = asyncio.create_task(self._beat_if_connected(address))
            self._greetings.add(task)
            task.add_done_callback(self._greetings.discard)

    async def _beat_if_connected(self, address: Address) -> None:
        # Nothing may run between this check and the request, which would open a new connection.
        if self.remoting.is_connected(address):
            await self._beat_at(address, self._heartbeat())

    async def _beat(self, addresses: Iterable[Address]) -> None:
        body = self._heartbeat()
        await asyncio.gather(*(self._beat_at(address, body) for address in addresses))

    def _heartbeat(self) -> bytes:
        groups = list(self._consumers.values()), list(self._producers.values())
        return java_json.write(Heartbeat(self.client_id, *groups), standard=True)

    async def _beat_at(self, address: Address, body: bytes) -> None:
        try:
            request = new_request(RequestCode.HEART_BEAT, body=body)
            answer = await self.remoting.invoke(address, request, _TIMEOUT_S)
            self._greeted[address] = self.remoting.channel(address)
            self._note_refusal(address, answer)
        except RemotingError as error:
            _log.info("a heartbeat failed: %s", error)

    def _note_refusal(self, address: Address, answer: Command) -> None:
        """Log once that a broker refuses the heartbeats, and so does not count this client as a member."""
        if answer.code == ResponseCode.SUCCESS:
            self._refused.discard(address)
        elif address not in self._refused:
            self._refused.add(address)
            reason = f"{response_name(answer.code)}: {answer.remark or 'no remark'}"
            _log.warning("broker %s refuses the heartbeats: %s", address, reason)

    async def _leave(self, header: UnregisterClientRequest) -> None:
        for address in self.routes.brokers():
            if self.remoting.is_connected(address):
                try:
                    request = new_request(RequestCode.UNREGISTER_CLIENT, headers.write(header))
                    await self.remoting.invoke(address, request, _TIMEOUT_S)
                except RemotingError as error:
                    _log.info("unregistering failed: %s", error)

    def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.create_task(repeat(work, seconds)))
