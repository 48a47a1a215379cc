"""Intercepts a client's requests and delays each response until the test script releases it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from mqproof.conformance.behaviours.subject import DeviationError
from mqproof.impl.client.connection.name_server_choice import NameServerChoice
from mqproof.impl.client.connection.routes import Routes
from mqproof.impl.client.connection.session import Session
from mqproof.impl.remoting.channel import ConnectionLostError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.command import Command
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.runtime.simulated_loop import SimulatedLoop

NAME_SERVER: Final = Address("127.0.0.1", 9876)
_TURNS_MAX: Final = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A request that is in progress."""

    address: Address
    request: Command
    _answer: "asyncio.Future[Command]"

    def answer(self, answer: Command) -> None:
        self._answer.set_result(answer)

    def lose(self) -> None:
        """Break the connection: whether the request arrived is unknown."""
        self._answer.set_exception(ConnectionLostError(f"{self.address} did not answer"))


class HeldRequests:
    """Replaces a client's connections.

    `at_once` returns the answer to requests that no script delays; if it returns None, the request is held.
    """

    def __init__(self, at_once: Callable[[Command], Command | None]) -> None:
        self._at_once = at_once
        self.held: list[Held] = []
        """The held requests, oldest first."""

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        del timeout_s  # the script decides how long it takes
        if (answer := self._at_once(request)) is not None:
            return answer
        held = Held(address, request, asyncio.get_running_loop().create_future())
        self.held.append(held)
        try:
            return await held._answer
        finally:
            self.held.remove(held)

    def is_connected(self, address: Address) -> bool:  # noqa: ARG002  # a connection's signature
        return True

    def channel(self, address: Address) -> object:  # noqa: ARG002  # a connection's signature
        """Return the same channel every time, so that no client has to register again."""
        return self


def session(requests: HeldRequests, runtime: Runtime, client_id: str) -> Session:
    """Return a client that uses these connections."""
    made = Session([NAME_SERVER], runtime, client_id)
    made.remoting = cast(RemotingClient, requests)
    made.name_servers = NameServerChoice(made.remoting, runtime.network, [NAME_SERVER], runtime.random)
    made.routes = Routes(made.name_servers)
    return made


async def at_rest() -> None:
    """Return when nothing more happens unless time passes or a request is answered."""
    loop = cast(SimulatedLoop, asyncio.get_running_loop())
    for _ in range(_TURNS_MAX):
        await asyncio.sleep(0)
        if not loop._ready:
            return
    raise DeviationError("the client did not become idle")


async def all_ended() -> None:
    """Cancel all tasks that still wait for an answer."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
