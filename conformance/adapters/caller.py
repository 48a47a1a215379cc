"""Sends raw requests to a broker on behalf of the clients that the suites simulate.

None of our client code is between the request and the answer.
"""

import asyncio
import secrets
import zlib
from collections.abc import Collection
from typing import Final

from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.faults.controls import Place
from mqproof.impl.admin.brokers import properties_of
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import PERM_READ_WRITE, ClusterInfo, SubscriptionGroup
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.message import DELAY, KEYS, TAGS, UNIQUE_KEY
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime

TIMEOUT_S: Final = 30.0
_SERVES_S: Final = 120.0
_SERVES_ONE_S: Final = 3.0
_LOOK_S: Final = 0.05
_LOOKS: Final = 600
_BORN_MS: Final = 1_500_000_000_000
_OWN: Final = "of the suite"
"""A property that no broker knows."""
_SEPARATORS: Final = ("\x01", "\x02")


class Caller:
    """A client of one broker. Create it on a running event loop, then call `start`."""

    def __init__(self, name_server: Address, runtime: Runtime) -> None:
        self.name_server = name_server
        self.prefix = f"conform_{secrets.token_hex(6)}"
        self.broker_name = ""
        self._remoting = RemotingClient(runtime.remoting)

    async def start(self) -> None:
        """Find the broker. Raises TargetError if there is none."""
        answer = await self.request(RequestCode.GET_BROKER_CLUSTER_INFO, to=self.name_server)
        known = java_json.read(ClusterInfo, answer.body).broker_addr_table
        masters = {name: data.broker_addrs[0] for name, data in known.items() if 0 in data.broker_addrs}
        if not masters:
            raise TargetError(f"name server {self.name_server} knows no master")
        self.broker_name = min(masters)
        self.broker = Address.parse(masters[self.broker_name])

    @property
    def place(self) -> Place:
        """The place of the broker that was found."""
        return Place(self.broker_name, str(self.broker), str(self.name_server))

    async def settings(self) -> dict[str, str]:
        """Return the configuration that the broker reports; empty if it reports none."""
        answer = await self.request(RequestCode.GET_BROKER_CONFIG, accepts=())
        if answer.code != ResponseCode.SUCCESS:
            return {}
        try:
            return properties_of(answer.body)
        except ClientError:
            return {}

    async def until_it_serves(self) -> None:
        """Wait until the broker answers and its name server knows it.

        Raises TargetError when that takes too long.
        """
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _SERVES_S
        while not await self._serves():
            if loop.time() > end_s:
                raise TargetError(f"{self.broker_name} did not serve again within {_SERVES_S:.0f} s")
            await asyncio.sleep(_LOOK_S)

    async def _serves(self) -> bool:
        try:
            await self.request(RequestCode.GET_ALL_TOPIC_CONFIG, timeout_s=_SERVES_ONE_S)
            answer = await self.request(
                RequestCode.GET_BROKER_CLUSTER_INFO, to=self.name_server, timeout_s=_SERVES_ONE_S
            )
        except TargetError:
            return False
        known = java_json.read(ClusterInfo, answer.body).broker_addr_table.get(self.broker_name)
        return known is not None and 0 in known.broker_addrs

    async def stop(self) -> None:
        await self._remoting.close()

    async def request(
        self,
        code: RequestCode,
        header: headers.Header | None = None,
        body: bytes = b"",
        *,
        accepts: Collection[int] = (ResponseCode.SUCCESS,),
        to: Address | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Command:
        """Send one request, to the broker unless `to` is given.

        Raises TargetError for an answer not in `accepts`.
        """
        return await self.request_fields(
            code, headers.write(header) if header else {}, body, accepts=accepts, to=to, timeout_s=timeout_s
        )

    async def request_fields(
        self,
        code: RequestCode,
        fields: dict[str, str],
        body: bytes = b"",
        *,
        accepts: Collection[int] = (ResponseCode.SUCCESS,),
        to: Address | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Command:
        """Send one request with the given fields as its header."""
        server = to or self.broker
        try:
            answer = await self._remoting.invoke(server, new_request(code, fields, body), timeout_s)
        except RemotingError as error:
            raise TargetError(f"{server}: {error}") from None
        if accepts and answer.code not in accepts:
            refusal = f"code {answer.code}, {answer.remark}"
            raise TargetError(f"{server}: request {code.name} is refused: {refusal}")
        return answer

    async def request_oneway(
        self, code: RequestCode, header: headers.Header | None = None, body: bytes = b""
    ) -> None:
        """Send a one-way request."""
        try:
            request = new_request(code, headers.write(header) if header else {}, body, oneway=True)
            await self._remoting.send_oneway(self.broker, request)
        except RemotingError as error:
            raise TargetError(f"{self.broker}: {error}") from None

    # Operations that several suites need

    async def make_topic(self, topic: str, queues: int) -> None:
        header = headers.UpdateTopicRequest(
            topic=topic, default_topic="TBW102", read_queue_nums=queues, write_queue_nums=queues,
            perm=PERM_READ_WRITE,
        )  # fmt: skip
        await self.request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)

    async def make_group(self, group: SubscriptionGroup) -> None:
        body = java_json.write(group)
        await self.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)

    async def forget(self, topics: Collection[str], groups: Collection[str]) -> None:
        """Delete the topics and groups of the suite; ignore failures. Does nothing if no broker was found."""
        if not self.broker_name:
            return
        for topic in topics:
            header = headers.TopicRequest(topic)
            await self.request(RequestCode.DELETE_TOPIC_IN_BROKER, header, accepts=())
            await self.request(RequestCode.DELETE_TOPIC_IN_NAMESRV, header, accepts=(), to=self.name_server)
        for group in groups:
            fields = {"groupName": group, "removeOffset": "true", "cleanOffset": "true"}
            await self.request_fields(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields, accepts=())

    async def send(
        self,
        topic: str,
        queue_id: int,
        msg_id: str,
        *,
        tag: str = "",
        key: str = "",
        delay_level: int = 0,
        template: str = "TBW102",
    ) -> headers.SendResponse:
        """Send a message and wait until it is visible.

        A missing topic is created from the template, if that exists. Flag and time are different for each
        message.
        """
        values = {
            UNIQUE_KEY: msg_id, TAGS: tag, KEYS: key, DELAY: str(delay_level or ""), _OWN: f"= {msg_id} ü",
        }  # fmt: skip
        number = zlib.crc32(msg_id.encode())
        name_end, value_end = _SEPARATORS
        properties = "".join(f"{name}{name_end}{value}{value_end}" for name, value in values.items() if value)
        header = headers.SendRequest(
            producer_group="conform", topic=topic, default_topic=template, default_topic_queue_nums=4,
            queue_id=queue_id, sys_flag=0, born_timestamp=_BORN_MS + number, flag=number >> 1,
            properties=properties, reconsume_times=0, unit_mode=False, batch=False,
        )  # fmt: skip
        answer = await self.request_fields(
            RequestCode.SEND_MESSAGE_V2, headers.write_send_v2(header), msg_id.encode()
        )
        sent = headers.read(headers.SendResponse, answer.fields)
        if not delay_level:
            await self._visible(topic, queue_id, sent.queue_offset)
        return sent

    async def offset(self, code: RequestCode, topic: str, queue_id: int) -> int:
        """Return the answer to GET_MIN_OFFSET or GET_MAX_OFFSET."""
        answer = await self.request(code, headers.QueueRequest(topic, queue_id))
        return headers.read(headers.OffsetResponse, answer.fields).offset

    async def committed(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the answer to QUERY_CONSUMER_OFFSET; None for QUERY_NOT_FOUND."""
        header = headers.QueryOffsetRequest(group, topic, queue_id)
        codes = (ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND)
        answer = await self.request(RequestCode.QUERY_CONSUMER_OFFSET, header, accepts=codes)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return headers.read(headers.OffsetResponse, answer.fields).offset

    async def _visible(self, topic: str, queue_id: int, offset: int) -> None:
        """Wait until the message is visible, or should be.

        Brokers answer a send before its message is in the queue.
        """
        for _ in range(_LOOKS):
            if await self.offset(RequestCode.GET_MAX_OFFSET, topic, queue_id) > offset:
                return
            await asyncio.sleep(_LOOK_S)
