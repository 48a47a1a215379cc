"""Tests that hooks see each request of a client, its outcome and its duration, and change neither."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mqproof.impl.client.connection.hooked_client import HookedClient
from mqproof.impl.client.connection.request_hooks import Hooks, RequestSummary
from mqproof.impl.remoting.channel import ConnectError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.request_handler import refuse_everything
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.simulated_loop import run_simulated

BROKER = Address("b", 1)
REQUEST = new_request(RequestCode.PULL_MESSAGE)
ANSWER = REQUEST.answer(ResponseCode.PULL_NOT_FOUND)


class Seen:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, float]] = []

    def before(self, request: RequestSummary) -> None:
        self.seen.append((request.address, request.name, 0))

    def after(self, request: RequestSummary, outcome: str, seconds: float) -> None:
        self.seen.append((request.name, outcome, seconds))


def client_of(*hooks: Seen) -> HookedClient:
    return HookedClient(SimulatedNetwork(), refuse_everything, lambda _: None, None, Hooks(hooks))


async def send(client: HookedClient) -> Command | None:
    return await client.invoke(BROKER, REQUEST, 7.0)


async def send_oneway(client: HookedClient) -> None:
    await client.send_oneway(BROKER, REQUEST)


@pytest.mark.parametrize(("call", "method"), [(send, "invoke"), (send_oneway, "send_oneway")])
@pytest.mark.parametrize("error", [None, ConnectError("gone"), asyncio.CancelledError("stop")])
def test_a_request_is_seen_before_and_after_it_with_its_duration(
    call: Callable[[HookedClient], Awaitable[Command | None]],
    method: str,
    error: BaseException | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed: list[Any] = []

    async def plain(_self: RemotingClient, *arguments: Any) -> Command | None:
        passed[:] = arguments
        await asyncio.sleep(2)
        if error is not None:
            raise error
        return ANSWER if method == "invoke" else None

    async def main(client: HookedClient) -> object:
        await asyncio.sleep(5)
        try:
            return await call(client)
        except BaseException as raised:
            return raised

    monkeypatch.setattr(RemotingClient, method, plain)
    hook = Seen()
    result = error or (ANSWER if method == "invoke" else None)
    text = f"{type(error).__name__}: {error}" if error else "PULL_NOT_FOUND" if method == "invoke" else "SENT"
    for client in (client_of(hook), client_of()):  # the result is the same without hooks
        assert run_simulated(main(client)) is result
        assert passed == ([BROKER, REQUEST, 7.0] if method == "invoke" else [BROKER, REQUEST])
    assert hook.seen == [("b:1", "PULL_MESSAGE", 0), ("PULL_MESSAGE", text, 2)]
