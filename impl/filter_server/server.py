"""A filter server: consumers upload functions, and pull through it what their functions select.

It passes each pull to its broker as it is, with the consumer's signature, so a consumer needs the same
permissions as without it. See docs/reference/protocol/filters.md, "Filter servers".
"""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

from msgspec import structs

from mqproof.impl.filter_server.decisions import RunError, selected
from mqproof.impl.filter_server.functions import Function, FunctionError, Functions, Limits
from mqproof.impl.filtering.function_names import function_name
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.budget import Percentages, server_budgets
from mqproof.impl.remoting.channel import Channel, Handler, RemotingError, Reply
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode, response_name
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.frame import FRAME_BYTES_MAX
from mqproof.impl.remoting.headers import (
    PULL_CLASS_FILTER,
    PULL_HAS_SUBSCRIPTION,
    PULL_MAY_SUSPEND,
    PullRequest,
    PullResponse,
    RegisterFilterServerRequest,
    RegisterFunctionRequest,
)
from mqproof.impl.remoting.request_handler import RefusedError, handler
from mqproof.impl.remoting.requests import BODIES_USED, limiting
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.notices import Notices
from mqproof.impl.runtime.runtime import Runtime

_log = logging.getLogger(__name__)

REGISTER_S: Final = 10.0
"""The pause between two registrations at the broker."""
_REGISTER_TIMEOUT_S: Final = 3.0
_PULL_TIMEOUT_S: Final = 5.0
_HOLD_MS_MAX: Final = 60_000


@dataclass(frozen=True, slots=True)
class FilterServerConfig:
    broker: Address
    """The broker whose messages it filters."""
    host: str = "127.0.0.1"
    port: int = 0
    advertised_host: str | None = None
    """The host in the address that consumers receive; None is the one on which it listens."""
    limits: Limits = field(default_factory=Limits)


class FilterServer:
    """It is constructed, started and stopped, in that order and once."""

    def __init__(
        self, config: FilterServerConfig, runtime: Runtime, credentials: Credentials | None = None
    ) -> None:
        """With credentials, which must be an administrator's, its registrations are signed."""
        self._config = config
        self._runtime = runtime
        self._credentials = credentials
        # Pulls have the consumers' signatures.
        self._client = RemotingClient(runtime.remoting)
        self._functions = Functions(config.limits)
        self._compiling = asyncio.Lock()
        self._notices = Notices(_log)
        self._registration: asyncio.Task[None] | None = None
        processors: dict[int, Handler] = {
            RequestCode.REGISTER_MESSAGE_FILTER_CLASS: self._upload,
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.LITE_PULL_MESSAGE: self._pull,
        }
        self._server = RemotingServer(
            runtime.remoting,
            limiting(handler(processors)),
            supervisor=runtime.supervisor,
            bodies_used=BODIES_USED,
            budgets=server_budgets(runtime.connections_max, FRAME_BYTES_MAX, Percentages()),
        )
        self.is_registered = False
        """Whether the broker accepted the last registration."""

    async def start(self) -> Address:
        """Accept connections and register at the broker; return the address. Raises OSError.

        A broker that does not answer is not an error: the registration is repeated.
        """
        bound = await self._server.start(self._config.host, self._config.port)
        address = Address(self._config.advertised_host or bound.host, bound.port)
        await self._register(address)
        run = self._runtime.supervisor.run
        self._registration = run("registration at the broker", self._register_again(address))
        return bound

    async def stop(self) -> None:
        """Stop accepting connections, and close all of them. The broker then forgets this server."""
        if self._registration is not None:
            self._registration.cancel()
            await asyncio.gather(self._registration, return_exceptions=True)
        await self._client.close()
        await self._server.stop()

    async def _register_again(self, address: Address) -> None:
        while True:
            await asyncio.sleep(REGISTER_S)
            await self._register(address)

    async def _register(self, address: Address) -> None:
        header = RegisterFilterServerRequest(str(address))
        request = new_request(RequestCode.REGISTER_FILTER_SERVER, headers.write(header))
        request = self._credentials.signed(request) if self._credentials else request
        try:
            answer = await self._client.invoke(self._config.broker, request, _REGISTER_TIMEOUT_S)
            refusal = "" if answer.code == ResponseCode.SUCCESS else _refusal(answer)
        except RemotingError as error:
            refusal = str(error)
        self.is_registered = not refusal
        if refusal:
            broker = self._config.broker
            self._notices.warn("registration", f"broker {broker} does not know this filter server: {refusal}")

    # The requests of consumers.

    async def _upload(self, request: Command, channel: Channel) -> Reply:  # noqa: ARG002
        """Compile an uploaded function, unless it is known."""
        header = headers.read(RegisterFunctionRequest, request.fields)
        name = function_name(request.body)
        if header.class_name != name:
            remark = f"function {header.class_name}, but the SHA-256 of its module is {name}"
            raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
        async with self._compiling:  # one at a time: it occupies a processor
            now_s = asyncio.get_running_loop().time()
            try:
                await self._runtime.offload(lambda: self._functions.add(request.body, now_s))
            except FunctionError as error:
                raise RefusedError(ResponseCode.SYSTEM_ERROR, f"function {name}: {error}") from None
        return request.answer(ResponseCode.SUCCESS)

    async def _pull(self, request: Command, channel: Channel) -> Reply:  # noqa: ARG002
        """Pass a pull to the broker, and answer with the messages that the function selects."""
        header = headers.read(PullRequest, request.fields)
        name = header.subscription or ""
        flags = PULL_CLASS_FILTER | PULL_HAS_SUBSCRIPTION
        if header.sys_flag & flags != flags:
            raise RefusedError(ResponseCode.SYSTEM_ERROR, "a filter server serves only pulls with a function")
        function = self._functions.get(name, asyncio.get_running_loop().time())
        if function is None:
            raise RefusedError(ResponseCode.FILTER_DATA_NOT_EXIST, f"function {name} is not known: upload it")
        answer = await self._passed(request, header)
        if answer.code != ResponseCode.SUCCESS:
            return request.answer(answer.code, answer.fields, answer.body, answer.remark)
        return await self._filtered(request, header, answer, function)

    async def _passed(self, request: Command, header: PullRequest) -> Command:
        hold_ms = header.suspend_timeout_millis if header.sys_flag & PULL_MAY_SUSPEND else 0
        timeout_s = min(max(hold_ms, 0), _HOLD_MS_MAX) / 1000 + _PULL_TIMEOUT_S
        passed = structs.replace(
            new_request(request.code, request.fields), language=request.language, version=request.version
        )
        try:
            return await self._client.invoke(self._config.broker, passed, timeout_s)
        except RemotingError as error:
            raise RefusedError(ResponseCode.SERVICE_NOT_AVAILABLE, f"the broker: {error}") from None

    async def _filtered(
        self, request: Command, header: PullRequest, answer: Command, function: Function
    ) -> Command:
        response = headers.read(PullResponse, answer.fields)

        def run() -> tuple[list[bytes], int | None]:
            return selected(answer.body, function.select)

        try:
            kept, failed_at = await self._runtime.offload(run)
        except RunError as error:
            where = (
                f"queue {header.queue_id} of topic {header.topic} at offset {header.queue_offset} or after"
            )
            remark = f"function {header.subscription} failed in {where}: {error}"
            self._notices.warn(header.subscription or "", remark)
            raise RefusedError(ResponseCode.SYSTEM_ERROR, remark) from None
        except ValueError as error:
            raise RefusedError(ResponseCode.SYSTEM_ERROR, f"the broker's answer: {error}") from None
        if failed_at is not None:
            response = structs.replace(response, next_begin_offset=failed_at)
        code = ResponseCode.SUCCESS if kept else ResponseCode.PULL_RETRY_IMMEDIATELY
        return request.answer(code, headers.write(response), b"".join(kept), answer.remark)


def _refusal(answer: Command) -> str:
    return f"{response_name(answer.code)}: {answer.remark or 'no remark'}"
