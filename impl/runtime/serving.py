"""Runs servers in a process: starts them together, announces them in one line, and stops them on a signal."""

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from mqproof.impl.runtime.network import Address

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Server(Protocol):
    async def start(self) -> Address: ...
    async def stop(self) -> None: ...


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine on uvloop if it is installed, otherwise on asyncio's own loop."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


async def until_signal(servers: dict[str, Callable[[dict[str, Address]], Server]]) -> None:
    """Start the servers in order, print their addresses, and stop them in reverse order on SIGTERM or SIGINT.

    Each server is made with the addresses of those before it, by name. Prints `ready NAME=HOST:PORT ...`.

    Raises:
        any error that a server's start raises; the servers that run by then are stopped.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    addresses: dict[str, Address] = {}
    running: list[Server] = []
    try:
        for name, make in servers.items():
            server = make(addresses)
            addresses[name] = await server.start()
            running.append(server)
            _log.info("%s listens on %s", name, addresses[name])
        _collect_less()
        print("ready", *(f"{name}={address}" for name, address in addresses.items()), flush=True)
        await stopping.wait()
    finally:
        _log.info("stopping")
        for server in reversed(running):
            await server.stop()
        _log.info("stopped")


def _collect_less() -> None:
    """Reduce the work of the cyclic garbage collector.

    Reference counts free nearly everything that a request needs. The objects that exist now stay, and
    searching them for cycles again and again took a fifth of a busy broker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # not on every platform
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
