"""Finds or starts the broker whose store the suite damage alters."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from mqproof.conformance.damage.damage_run import Broker, RefusedStartError
from mqproof.conformance.damage.observation import SECONDS_MAX
from mqproof.conformance.engine.fault_commands import run as run_command
from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.engine.targets import (
    APACHE,
    IMPL,
    MUTANT,
    REMOTING,
    TargetError,
    UnknownTargetError,
)
from mqproof.conformance.faults.collected_warnings import collected
from mqproof.conformance.faults.controls import Place
from mqproof.conformance.mutants.damage import MUTANTS, OF_PEERS
from mqproof.conformance.mutants.replacement import injected
from mqproof.conformance.wire.server_connection import Address, UnreachableError, connected
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.embedded.loop_thread import LoopThread
from mqproof.impl.store.errors import StoreError

if TYPE_CHECKING:
    from mqproof.conformance.adapters.apache.broker_farm import FarmBroker
    from mqproof.conformance.adapters.apache.servers import ApacheServer

EXPECTED: Final = "impl, mutant:NAME, apache:LINE, or remoting://BROKER with --store, --start and --stop"
_LOG_BYTES_MAX: Final = 1 << 24
SMALL_FILES: Final = {
    "flushDiskType": "SYNC_FLUSH",
    "mappedFileSizeCommitLog": str(1 << 20),
    "mappedFileSizeConsumeQueue": "6000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
}
_TRIES: Final = 20
_DISPATCH_S: Final = 3.0
"""Released brokers dispatch in the background. A loaded machine may delay each message by milliseconds."""


@contextmanager
def brokers(options: RunOptions) -> Iterator[Broker]:
    """Yield the broker of the target; it is stopped after the block.

    Raises:
        UnknownTargetError, TargetError.
    """
    target = options.target
    if target == IMPL:
        with embedded() as broker:
            yield broker
    elif (mutant := {**MUTANTS, **OF_PEERS}.get(target.removeprefix(MUTANT))) and target.startswith(MUTANT):
        with injected(mutant), embedded() as broker:
            yield broker
    elif target.startswith(APACHE):
        with _apache(target.removeprefix(APACHE)) as broker:
            yield broker
    elif target.startswith(REMOTING):
        yield RemoteBroker(options)
    else:
        raise UnknownTargetError(f"{target!r}: the suite damage needs {EXPECTED}")


class EmbeddedStore:
    """Our broker on a store of its own, in a thread of this process; its warnings are its log."""

    dispatch_s: Final = 0.0
    """A message of ours can be read when its send is answered."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self._lines: list[str] = []
        self._running: tuple[LoopThread, EmbeddedBroker] | None = None

    def start(self) -> Address:
        broker, thread = (
            EmbeddedBroker(store=self.store, sockets=True, properties=SMALL_FILES),
            LoopThread("damage"),
        )
        try:
            thread.start_with(broker.start())
        except (StoreError, OSError) as error:
            raise RefusedStartError(str(error)) from None
        self._running = thread, broker
        return Address.parse(broker.address)

    def stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            thread, broker = running
            thread.end_after(broker.stop())

    def report(self) -> str:
        lines = self._lines[:]
        del self._lines[: len(lines)]
        return "\n".join(lines)

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Collect the warnings of our broker within the block, instead of showing them."""
        with collected("mqproof.impl") as self._lines:
            yield


@contextmanager
def embedded() -> Iterator[Broker]:
    """Yield our broker with an empty store."""
    with TemporaryDirectory(prefix="mqproof-damage-") as folder:
        broker = EmbeddedStore(Path(folder) / "store")
        with broker.logged():
            try:
                yield broker
            finally:
                broker.stop()


class LogFile:
    """The growing log file of a broker."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = path.stat().st_size if path.exists() else 0

    def take(self) -> str:
        """Return what was added since the last call. A file that was rotated is read from its beginning."""
        if not self._path.exists():
            return ""
        size = self._path.stat().st_size
        begin, self._read = (self._read if self._read <= size else 0), size
        with self._path.open("rb") as file:
            file.seek(begin)
            return file.read(_LOG_BYTES_MAX).decode(errors="replace")


class RemoteBroker:
    """A running broker that shell commands start and stop, whose store directory we can write."""

    dispatch_s: Final = _DISPATCH_S

    def __init__(self, options: RunOptions) -> None:
        """Find the broker. Raises UnknownTargetError if an option is missing."""
        commands, store = options.controls, options.store
        if store is None or not (commands.start and commands.stop):
            raise UnknownTargetError("remoting://: the suite damage needs --store, --start and --stop")
        if not (store / "commitlog").is_dir():
            raise UnknownTargetError(f"--store {store}: there is no commitlog in it")
        given = options.target.removeprefix(REMOTING)
        try:
            self._address = Address.parse(given.rpartition(",")[2])
        except ValueError as error:
            raise UnknownTargetError(f"{options.target!r}: {error}") from None
        self.store = store
        self._commands = commands
        self._values = asdict(Place("", str(self._address), options.name_server.removeprefix(REMOTING)))
        self._log = LogFile(options.broker_log) if options.broker_log else None

    def start(self) -> Address:
        error = ""
        try:
            run_command("start", self._commands.start, self._values)
        except TargetError as failed:
            error = str(failed)
        for _ in range(_TRIES):
            if error:
                break
            try:
                with connected(self._address, SECONDS_MAX):
                    return self._address
            except UnreachableError as unreachable:
                error = str(unreachable)
        raise RefusedStartError(f"{error}\n{self._log.take() if self._log else ''}")

    def stop(self) -> None:
        run_command("stop", self._commands.stop, self._values)

    def report(self) -> str | None:
        return self._log.take() if self._log else None


class ApacheStore:
    """A released broker, started and stopped as a process of its own or in a farm."""

    dispatch_s: Final = _DISPATCH_S

    def __init__(self, server: "ApacheServer | FarmBroker") -> None:
        self.store = server.store
        self._server = server
        self._log = LogFile(server.log)

    def start(self) -> Address:
        from mqproof.conformance.adapters.apache.servers import ApacheServerError

        try:
            self._server.start()
        except ApacheServerError as error:
            raise RefusedStartError(f"{error}\n{self._log.take()}") from None
        return Address(*self._server.address)

    def stop(self) -> None:
        self._server.stop()

    def report(self) -> str:
        return self._log.take()


@contextmanager
def _apache(line: str) -> Iterator[Broker]:
    from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, release_of
    from mqproof.conformance.adapters.apache.servers import ApacheServerError, broker, name_server, running

    release = release_of(line)
    with TemporaryDirectory(prefix="mqproof-damage-") as folder:
        try:
            names = name_server(release, Path(folder))
            server = broker(release, Path(folder), names.address, properties={"flushDiskType": "SYNC_FLUSH"})
            with running(names):
                try:
                    yield ApacheStore(server)
                finally:
                    server.kill()
        except (ApacheMissingError, ApacheServerError) as error:
            raise TargetError(str(error)) from None
