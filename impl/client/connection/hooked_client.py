"""A remoting client that calls the application's hooks around each request."""

import asyncio
from collections.abc import Callable

from mqproof.impl.client.connection.request_hooks import Hooks
from mqproof.impl.remoting.channel import Handler
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import Address, Network


class HookedClient(RemotingClient):
    """Without hooks it works as its base class. The hooks do not see the signature."""

    def __init__(
        self,
        network: Network,
        handle: Handler,
        on_connected: Callable[[Address], None],
        credentials: Credentials | None,
        hooks: Hooks,
    ) -> None:
        super().__init__(network, handle, on_connected=on_connected, credentials=credentials)
        self._hooks = hooks

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        if not self._hooks:
            return await super().invoke(address, request, timeout_s)
        began_s = asyncio.get_running_loop().time()
        summary = self._hooks.before(address, request)
        outcome: Command | BaseException | None = None
        try:
            outcome = await super().invoke(address, request, timeout_s)
        except BaseException as error:
            outcome = error
            raise
        finally:
            self._hooks.after(summary, outcome, asyncio.get_running_loop().time() - began_s)
        return outcome

    async def send_oneway(self, address: Address, request: Command) -> None:
        if not self._hooks:
            await super().send_oneway(address, request)
            return
        began_s = asyncio.get_running_loop().time()
        summary = self._hooks.before(address, request)
        outcome: BaseException | None = None
        try:
            await super().send_oneway(address, request)
        except BaseException as error:
            outcome = error
            raise
        finally:
            self._hooks.after(summary, outcome, asyncio.get_running_loop().time() - began_s)
