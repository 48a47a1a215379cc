"""A chaos proxy inside the process of a test, whose run is judged when it ends."""

import tempfile
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from mqproof.conformance.faults.capture_file import new_capture
from mqproof.conformance.faults.chaos_history import history_of
from mqproof.conformance.history.judge import check
from mqproof.impl.chaos.capture import Injected
from mqproof.impl.chaos.plan import Plan, of_faults, parse
from mqproof.impl.chaos.proxy import ChaosConfig, ChaosProxy
from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.connection.group_claims import GroupClaims
from mqproof.impl.client.connection.session import Session
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.embedded.loop_thread import LoopThread
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.runtime import Runtime, production
from mqproof.report.model import Report, Table, Verdict

T = TypeVar("T")

_STOP_S: Final = 60.0
_SHOWN_MAX: Final = 5
_NO_FILE: Final = "FILE, after a run with --history FILE"


class UnlawfulError(AssertionError):
    """The clients saw something that the specification forbids. The message names the broken invariants."""


class Chaos:
    """A chaos proxy in front of a broker, in an `async with` block. The run is judged at the end of it."""

    def __init__(
        self,
        broker: EmbeddedBroker | str,
        *faults: str,
        plan: str | Path | None = None,
        seed: int = 0,
        lawful: bool = True,
    ) -> None:
        """Create a proxy that starts when the block is entered.

        Args:
            broker: an embedded broker that runs, or the address of a name server, as HOST:PORT.
            faults: the faults, as NAME or NAME=PROBABILITY; by default all lawful ones.
            plan: the text of a plan, or the path of its file, in place of `faults`.
            seed: with the same seed, the same requests meet the same faults.
            lawful: allow only faults that the specification permits, and fail if the clients saw anything
                that it forbids.

        Raises:
            PlanError: an unknown fault, a plan that cannot be used, or an unlawful fault in a lawful run.
            ValueError: the address is not HOST:PORT, or both faults and a plan are given.
            OSError: the file of the plan cannot be read.
        """
        if plan is not None and faults:
            raise ValueError("give faults or a plan, not both")
        self._plan = (
            of_faults(faults, seed=seed, lawful=lawful) if plan is None else _read(plan, seed, lawful)
        )
        self._broker = broker
        if isinstance(broker, str):
            Address.parse(broker)
        self._claims = GroupClaims()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._runtime: Runtime | None = None
        self._proxy: ChaosProxy | None = None
        self._address: Address | None = None
        self.report: Report | None = None
        """The verdicts on what the clients saw. It exists after the block has ended."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop(judge=kind is None)

    @property
    def name_server(self) -> str:
        """The address of the name server for the application, as HOST:PORT."""
        if self._address is None:
            raise RuntimeError("the chaos proxy is not running: use it inside `async with`")
        return str(self._address)

    @property
    def injected(self) -> list[Injected]:
        """The faults that took effect so far, in order."""
        return [] if self._proxy is None else list(self._proxy.injected)

    def client(self, client_id: str | None = None) -> Session:
        """Return a session through the proxy, to be used in `async with`. Each one is another client."""
        assert self._runtime is not None, "the chaos proxy is not running"
        return Session([Address.parse(self.name_server)], self._runtime, client_id, claims=self._claims)

    def calm(self) -> None:
        """Inject no more faults. The proxy goes on, so that the application can catch up."""
        assert self._proxy is not None, "the chaos proxy is not running"
        self._proxy.calm()

    async def start(self) -> None:
        """Start the proxy.

        Raises:
            UpstreamError: the name server does not answer.
        """
        broker = self._broker
        self._runtime = production(AsyncioNetwork()) if isinstance(broker, str) else broker.runtime
        upstream = Address.parse(broker if isinstance(broker, str) else broker.name_server)
        self._folder = folder = tempfile.TemporaryDirectory(prefix="mqproof-chaos-")
        capture = new_capture(_capture_in(folder))
        self._proxy = ChaosProxy(ChaosConfig(upstream), self._plan, self._runtime, capture)
        try:
            self._address = await self._proxy.start()
        except BaseException:
            capture.close()
            folder.cleanup()
            raise

    async def stop(self, *, judge: bool = True) -> None:
        """Stop the proxy, and judge what the clients saw.

        Raises:
            UnlawfulError: the run is lawful, and the specification forbids something that the clients saw.
        """
        if self._proxy is None or self._folder is None:
            return
        self._address = None
        await self._proxy.stop()
        folder, self._folder = self._folder, None
        with folder:
            if judge:
                self.report = judged(_capture_in(folder), self._plan.seed, self._proxy.draws.counts)
        if self.report is not None and self._plan.is_lawful:
            expect_lawful(self.report)


class ThreadedChaos:
    """A chaos proxy in a thread of its own, for tests with or without an event loop."""

    def __init__(
        self,
        name_server: str,
        *faults: str,
        plan: str | Path | None = None,
        seed: int = 0,
        lawful: bool = True,
    ) -> None:
        """Create a proxy that starts when the `with` block is entered; arguments as in Chaos."""
        self._inner = Chaos(name_server, *faults, plan=plan, seed=seed, lawful=lawful)
        self._thread = LoopThread("chaos")
        self.name_server = ""
        """The address of the name server for the application, as HOST:PORT; empty before the start."""

    def __enter__(self) -> Self:
        self._thread.start_with(self._inner.start())
        self.name_server = self._inner.name_server
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.end_after(self._inner.stop(judge=kind is None), _STOP_S)

    @property
    def injected(self) -> list[Injected]:
        """The faults that took effect so far, in order."""
        return self._thread.call(lambda: self._inner.injected)

    @property
    def report(self) -> Report | None:
        """The verdicts on what the clients saw. It exists after the block has ended."""
        return self._inner.report

    def client(self, consumer_group: str = "mqproof_consumer") -> BlockingClient:
        """Return a client through the proxy whose calls block, to be used in `with`."""
        return BlockingClient(self.name_server, consumer_group=consumer_group)

    def session(self) -> Session:
        """Return a session through the proxy for the caller's event loop, to be used in `async with`."""
        return connect(self.name_server)

    def calm(self) -> None:
        """Inject no more faults, as Chaos.calm."""
        self._thread.call(self._inner.calm)


def _capture_in(folder: "tempfile.TemporaryDirectory[str]") -> Path:
    return Path(folder.name) / "chaos.capture"


def judged(capture: Path, seed: int, counts: dict[str, int], name: str = _NO_FILE) -> Report:
    """Return the verdicts of the rules for histories on a capture, with a table of the faults.

    `name` is the file of the history, for the command that repeats the check.
    """
    report = check(history_of(capture, "chaos", seed), name)
    return replace(
        report,
        title="What the clients of the chaos proxy saw",
        facts={"seed": str(seed), **report.facts},
        tables=(*report.tables, fault_table(counts)),
    )


def fault_table(counts: dict[str, int]) -> Table:
    """Return how often each fault took effect."""
    rows = tuple((name, str(count)) for name, count in sorted(counts.items()))
    return Table("Faults that took effect", ("fault", "times"), rows)


def expect_lawful(report: Report) -> None:
    """Raise UnlawfulError if a verdict is `violated`."""
    found = [result for result in report.results if result.verdict is Verdict.VIOLATED]
    if found:
        texts = [f"{each.id} {each.name} ({each.detail}): {each.witnesses[0].text}" for each in found]
        more = f"; {len(texts) - _SHOWN_MAX} more" if len(texts) > _SHOWN_MAX else ""
        raise UnlawfulError(
            "the specification forbids what clients saw: " + "; ".join(texts[:_SHOWN_MAX]) + more
        )


def _read(plan: str | Path, seed: int, lawful: bool) -> Plan:
    if isinstance(plan, Path):
        return parse(plan.read_text(encoding="utf-8"), str(plan), seed=seed or None, lawful=lawful)
    return parse(plan, "plan", seed=seed or None, lawful=lawful)
