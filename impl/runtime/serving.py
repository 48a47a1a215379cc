"""Runs servers in a process: starts them together, announces them in one line, and stops them on a signal."""

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.ready_file import ReadyFile
from mqproof.impl.runtime.supervision import Supervisor, TaskFailedError

T = TypeVar("T")

_log = logging.getLogger(__name__)

STOP_AFTER_FAILURE_S: Final = 10.0
"""How long the servers may take to stop after a task has failed. Their stop may wait for that very task."""


class Server(Protocol):
    async def start(self) -> Address: ...
    async def stop(self) -> None: ...


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine on uvloop if it is installed, otherwise on asyncio's own loop."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)


async def until_signal(
    servers: dict[str, Callable[[dict[str, Address]], Server]],
    supervisor: Supervisor | None = None,
    ready_file: ReadyFile | None = None,
) -> None:
    """Start the servers in order, print their addresses, and stop them in reverse order on SIGTERM or SIGINT.

    They stop as well when a task of the supervisor fails.

    Each server is made with the addresses of those before it, by name. Prints `ready NAME=HOST:PORT ...`, and
    before that writes the ready file, which is removed when the servers begin to stop.

    Raises:
        TaskFailedError: a supervised task failed.
        OSError: the ready file cannot be written.
        any error that a server's start raises; the servers that run by then are stopped.
    """
    supervisor = supervisor or Supervisor()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    addresses: dict[str, Address] = {}
    running: list[Server] = []
    try:
        if ready_file is not None:
            ready_file.prepare()
        for name, make in servers.items():
            server = make(addresses)
            addresses[name] = await server.start()
            running.append(server)
            _log.info("%s listens on %s", name, addresses[name])
        _collect_less()
        if ready_file is not None:
            ready_file.write(addresses)
        print("ready", *(f"{name}={address}" for name, address in addresses.items()), flush=True)
        await _first(stopping, supervisor)
    finally:
        _log.info("stopping")
        if ready_file is not None:
            ready_file.remove()
        if supervisor.is_ready:
            for server in reversed(running):
                await server.stop()
        else:
            await _stop_after_failure(running)
        _log.info("stopped")


async def _first(stopping: asyncio.Event, supervisor: Supervisor) -> None:
    """Wait for the signal to stop. Raises TaskFailedError if a task fails before."""
    signalled = asyncio.ensure_future(stopping.wait())
    failed = asyncio.ensure_future(supervisor.failed())
    try:
        await asyncio.wait([signalled, failed], return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
    finally:
        signalled.cancel()
        failed.cancel()
        with suppress(asyncio.CancelledError, TaskFailedError):
            await failed


async def _stop_after_failure(running: list[Server]) -> None:
    """Stop the servers as far as they can be stopped, in a limited time; the process ends in any case."""
    try:
        async with asyncio.timeout(STOP_AFTER_FAILURE_S):
            for server in reversed(running):
                try:
                    await server.stop()
                except Exception:  # the failure that ends the process is reported, not what follows from it
                    _log.exception("a server did not stop cleanly")
    except TimeoutError:
        _log.error("the servers did not stop in %.0f s", STOP_AFTER_FAILURE_S)


def _collect_less() -> None:
    """Reduce the work of the cyclic garbage collector.

    Reference counts free nearly everything that a request needs. The objects that exist now stay, and
    searching them for cycles again and again took a fifth of a busy broker's time. The second number is small
    because one collection looks at that many times 20,000 objects, and no request is served meanwhile.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 2, 200)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes a loop: uvloop if it is installed, otherwise asyncio."""
    try:
        import uvloop  # not on every platform
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
