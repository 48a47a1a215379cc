"""`mqproof bench broker`: compares our broker with Apache's, row by row, on one machine in one run.

This module has the rows of plain sends and pulls; `feature_rows.py` has those of features and of copies.

Each side is a separate process on a new store, and receives the same bytes from the same generator, the
module `mqproof.conformance.bench.load`. Each side also runs for a while before a row is measured: Java
compiles while it runs, and the first seconds of a broker that runs for months do not matter. Rounds alternate
between the sides, and the median counts. Memory and recovery take long and vary little, so they are measured
only in the first round. If Apache's artifacts are not available, only our side is measured.
"""

import asyncio
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.servers import ApacheServerError
from mqproof.conformance.bench import load
from mqproof.conformance.bench.load import Address, LoadError, Messages
from mqproof.conformance.hosts.processes import ClusterError, free_port
from mqproof.report.measurements import Row, described, ratio

ASYNC: Final = "ASYNC_FLUSH"
SYNC: Final = "SYNC_FLUSH"
T = TypeVar("T")

_JVM: Final = ("-Xms1g", "-Xmx1g")
_READY_SECONDS_MAX: Final = 600.0
_STOP_SECONDS_MAX: Final = 60.0
_MIB: Final = 1 << 20
_LARGE: Final = 4096
_WARM_SENDS: Final = 500
"""Number of sends in each step of the warm-up."""
_CONNECTIONS: Final = (2, 8, 64)
_MANY_TOPICS: Final = tuple(f"bench{number}" for number in range(100))


class BenchError(Exception):
    """A server of the benchmark failed. The message names it."""


@dataclass(frozen=True, slots=True)
class Amount:
    """The amount of work that is measured."""

    sends: int = 30_000
    """Number of sends in each measurement of throughput; a tenth of it with one outstanding send."""
    seconds: float = 5.0
    """Duration of each measurement of latency."""
    warm_seconds: float = 5.0
    """Duration of the warm-up load on each new broker."""
    memory_sends: int = 1_000_000
    recovery_mib: int = 4096


class Broker(Protocol):
    """A broker in a separate process."""

    @property
    def address(self) -> Address: ...

    @property
    def pid(self) -> int: ...

    def start(self) -> float:
        """Start the broker, for the first time or again; return the seconds until it answered."""

    def kill(self) -> None:
        """Send SIGKILL."""


class Copies(Enum):
    """The brokers that have a copy of each message."""

    SLAVE = "SYNC_MASTER and a slave"
    GROUP = "a group of three"


@dataclass(frozen=True, slots=True)
class Setup:
    """How a broker differs from one with the defaults."""

    properties: Mapping[str, str] = field(default_factory=dict)
    """RocketMQ's configuration properties; they have the same names on all sides."""
    tls: Path | None = None
    """A folder with `cert.pem` and `key.pem`; the broker then offers TLS."""


PLAIN: Final = Setup()


class Run(Protocol):
    """Runs a new broker on a folder, with a flush mode, and stops it afterwards."""

    def __call__(self, folder: Path, flush: str, setup: Setup = PLAIN) -> AbstractContextManager[Broker]: ...


@dataclass(frozen=True, slots=True)
class Side:
    """A system to compare."""

    run: Run
    run_copied: Callable[[Path, Copies], AbstractContextManager[Address]]
    """Runs brokers under ASYNC_FLUSH that copy each message; returns the address of the master."""


Rounds = dict[str, dict[str, list[float]]]
"""Maps a row to a side to the results of its rounds."""

Progress = Callable[[str], None]

FAILURES: Final = (BenchError, ApacheServerError, ClusterError, LoadError, OSError)
"""What a part raises if a server did not start, or a broker refused a request or stopped answering."""


class OurBroker:
    """Our broker. With `profile` its process is profiled, and writes that file when it stops."""

    def __init__(self, folder: Path, flush: str, profile: Path | None = None, setup: Setup = PLAIN) -> None:
        self.address = Address("127.0.0.1", free_port())
        self.name_server = ""
        """Address of the name server in the same process, once started."""
        self._log = folder / "mqproof.log"
        port = str(self.address.port)
        self._command = (
            *(sys.executable, *(("-m", "cProfile", "-o", str(profile)) if profile else ()), "-m", "mqproof"),
            *("serve", "--namesrv-port", "0", "--broker-port", port),
            *("--store", str(folder / "store"), "--flush", flush, *_options(folder, setup)),
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> float:
        began = time.perf_counter()
        skipped = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        while not (ready := re.search(rb"ready namesrv=(\S+) ", self._log.read_bytes()[skipped:])):
            code = self._process.poll()
            if code is not None or time.perf_counter() - began > _READY_SECONDS_MAX:
                last = _last_line(self._log)
                raise BenchError(f"mqproof serve did not become ready, exit code {code}: {last}")
            time.sleep(0.01)
        self.name_server = ready[1].decode()
        return time.perf_counter() - began

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Send SIGTERM: a clean exit."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(_STOP_SECONDS_MAX)
            self._process = None


def _options(folder: Path, setup: Setup) -> Iterator[str]:
    if setup.properties:
        config = folder / "broker.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in setup.properties.items()))
        yield from ("--config", str(config))
    if setup.tls is not None:
        yield from ("--tls", str(_tls_file(setup.tls)))


def _tls_file(folder: Path) -> Path:
    file = folder / "tls.properties"
    file.write_text(f"tls.server.certPath={folder}/cert.pem\ntls.server.keyPath={folder}/key.pem\n")
    return file


class ApacheBroker:
    def __init__(self, server: servers.ApacheServer) -> None:
        self.address = Address(server.address.host, server.address.port)
        self._server = server

    @property
    def pid(self) -> int:
        return self._server.pid

    def start(self) -> float:
        began = time.perf_counter()
        self._server.start()
        return time.perf_counter() - began

    def kill(self) -> None:
        self._server.kill()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), f"see {log}")


@contextmanager
def ours(folder: Path, flush: str, setup: Setup = PLAIN) -> Iterator[OurBroker]:
    broker = OurBroker(folder, flush, setup=setup)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def apache(release: str) -> Run:
    """Return Apache's broker with its own name server.

    Entering raises ApacheMissingError, ApacheServerError.
    """

    @contextmanager
    def side(folder: Path, flush: str, setup: Setup = PLAIN) -> Iterator[Broker]:
        names = servers.name_server(release, folder)
        properties = {"flushDiskType": flush, "mappedFileSizeCommitLog": str(1 << 30), **setup.properties}
        jvm = _JVM if setup.tls is None else (*_JVM, f"-Dtls.config.file={_tls_file(setup.tls)}")
        broker = servers.broker(release, folder, names.address, properties=properties, jvm=jvm)
        with servers.running(names, broker):
            yield ApacheBroker(broker)

    return side


def measure(
    sides: Mapping[str, Side],
    parts: Mapping[str, "Part"],
    amount: Amount,
    rounds: int,
    directory: Path,
    progress: Progress,
) -> dict[str, Any]:
    """Measure every round of every row. The parts of `ONCE` are measured in the first round only.

    If a part fails on a side, for example because a server did not start, its further rows are missing. The
    result names them under `missing`, and the other parts are measured.
    """
    found: Rounds = defaultdict(lambda: defaultdict(list))
    part_of: dict[str, str] = {}
    generator: dict[str, float] = defaultdict(float)
    missing: list[str] = []
    for number in range(1, rounds + 1):
        for part_name, part in parts.items():
            if number > 1 and part_name in ONCE:
                continue
            for name, side in sides.items():
                progress(f"{part_name}, {name}, round {number}/{rounds}")
                try:
                    with tempfile.TemporaryDirectory(dir=directory) as folder:
                        for row, value, used in part(side, Path(folder), amount, found):
                            found[row][name].append(value)
                            part_of[row] = part_name
                            generator[row] = max(generator[row], used)
                except FAILURES as error:
                    missing.append(f"{part_name}, {name}, round {number}: {error}")
    if not found:
        raise BenchError("; ".join(missing))
    baseline = next((side for side in sides if side.startswith("Apache")), None)
    measured = described("bench broker", ((row, by_side) for row, by_side in found.items()), baseline)
    return {
        **measured,
        "rounds": rounds,
        "missing": missing,
        "amount": {name: getattr(amount, name) for name in Amount.__slots__},
        "rows": [
            {**row, "part": part_of[row["row"]], "generator": round(generator[row["row"]], 3)}
            for row in measured["rows"]
        ],
    }


class Sample(NamedTuple):
    """What one measurement of a row found."""

    row: str
    value: float
    generator: float = 0.0
    """The part of one core that the generator used meanwhile. Near 1, the generator limits the row."""


Measured = Iterator[Sample]


def _sends(side: Side, folder: Path, amount: Amount, _found: Rounds) -> Measured:
    yield from _throughput(side, folder, amount, ASYNC)


def _sends_synced(side: Side, folder: Path, amount: Amount, _found: Rounds) -> Measured:
    yield from _throughput(side, folder, amount, SYNC)


def _throughput(side: Side, folder: Path, amount: Amount, flush: str) -> Measured:
    """Measure sends per second, and then pulls of the sent messages."""
    with side.run(folder, flush) as broker:
        messages = Messages()
        run(load.create_topics(broker.address, messages))
        stored = warm_up(broker.address, messages, amount)
        for outstanding in (1, 64, 512):
            total = amount.sends // 10 if outstanding == 1 else amount.sends
            sends = load.send_rate(broker.address, messages, total, outstanding)
            yield rate_of(f"{flush}, {outstanding} outstanding: sends/s", sends)
            stored += total
        for connections in _CONNECTIONS:
            sends = load.send_rate(broker.address, messages, amount.sends, 64, connections)
            yield rate_of(f"{flush}, 64 outstanding, {connections} connections: sends/s", sends)
            stored += amount.sends
        if flush == ASYNC:
            # Not more than was stored: the row would wait for messages that do not exist.
            pulled = min(stored, 3 * amount.sends)
            yield rate_of("pulled messages/s", load.pull_rate(broker.address, messages, pulled))
        for size in (128, _LARGE):
            sized = Messages((f"bench-{size}",), size=size)
            run(load.create_topics(broker.address, sized))
            sends = load.send_rate(broker.address, sized, amount.sends, 64)
            yield rate_of(f"{flush}, {size} bytes, 64 outstanding: sends/s", sends)


def _latencies(side: Side, folder: Path, amount: Amount, found: Rounds) -> Measured:
    """Measure latencies at half of the rate of the slower side."""
    rates = found[f"{ASYNC}, 64 outstanding: sends/s"].values()
    if not rates:
        raise BenchError("the part latencies needs the rates of the part sends")
    rate = min(statistics.median(each) for each in rates) / 2
    with side.run(folder, ASYNC) as broker:
        for topic, seconds_ in (("warm", amount.warm_seconds), ("bench", amount.seconds)):
            messages = Messages((topic,))
            run(load.create_topics(broker.address, messages))
            measured = run(load.latencies(broker.address, messages, rate, seconds_))
    for what, seconds in (("answered", measured.answered), ("delivered", measured.delivered)):
        yield Sample(f"half load, {what}, median: ms", load.percentile(seconds, 0.5) * 1000)
        yield Sample(f"half load, {what}, p99: ms", load.percentile(seconds, 0.99) * 1000)
    yield Sample("half load, refused: messages", len(measured.refused))


def _topics(side: Side, folder: Path, amount: Amount, _found: Rounds) -> Measured:
    messages = Messages(_MANY_TOPICS)
    with side.run(folder, ASYNC) as broker:
        run(load.create_topics(broker.address, messages))
        warm_up(broker.address, messages, amount)
        sends = load.send_rate(broker.address, messages, amount.sends, 64)
        yield rate_of("100 topics of 8 queues, 64 outstanding: sends/s", sends)


def _memory(side: Side, folder: Path, amount: Amount, _found: Rounds) -> Measured:
    with side.run(folder, ASYNC) as broker:
        yield Sample("memory at rest: MiB", _resident_mib(broker.pid))
        run(load.create_topics(broker.address, Messages()))
        run(load.send_rate(broker.address, Messages(), amount.memory_sends, 64))
        yield Sample(f"memory after {amount.memory_sends:,} messages: MiB", _resident_mib(broker.pid))


def _recovery(side: Side, folder: Path, amount: Amount, _found: Rounds) -> Measured:
    messages = Messages(size=_LARGE)
    with side.run(folder, ASYNC) as broker:
        broker.kill()
        yield Sample("start with a small store: s", broker.start())
        run(load.create_topics(broker.address, messages))
        total = amount.recovery_mib * _MIB // _LARGE
        run(load.send_rate(broker.address, messages, total, 64))
        broker.kill()
        yield Sample(f"start after SIGKILL with {amount.recovery_mib} MiB: s", broker.start())


Part = Callable[[Side, Path, Amount, Rounds], Measured]

PARTS: Final[dict[str, Part]] = {
    "sends": _sends,
    "sends-synced": _sends_synced,
    "latencies": _latencies,
    "topics": _topics,
    "memory": _memory,
    "recovery": _recovery,
}
"""Parts, each measured on a new broker, by name."""

ONCE: Final = frozenset({"memory", "recovery"})
"""Parts measured only in the first round."""


def warm_up(address: Address, messages: Messages, amount: Amount) -> int:
    """Send for the time of the warm-up; return the number of messages."""
    end, sent = time.perf_counter() + amount.warm_seconds, 0
    while time.perf_counter() < end:
        run(load.send_rate(address, messages, _WARM_SENDS, 64))
        sent += _WARM_SENDS
    return sent


def rate_of(row: str, work: Coroutine[Any, Any, float]) -> Sample:
    cpu_s, began_s = time.process_time(), time.perf_counter()
    rate = run(work)
    return Sample(row, rate, (time.process_time() - cpu_s) / (time.perf_counter() - began_s))


def run(work: Coroutine[Any, Any, T]) -> T:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


def _resident_mib(pid: int) -> float:
    """Return the anonymous memory: mapped pages in the page cache do not belong to the process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (kib,) = (line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:"))
    return int(kib) / 1024


def table(result: dict[str, Any]) -> str:
    """Return the result for people: medians, and the ratio by which the first side is better."""
    amount = ", ".join(f"{name} {value}" for name, value in result["amount"].items())
    first, *others = _side_names(result)
    width = max(len(row["row"]) for row in result["rows"])
    head = f"{'':{width}}{first:>12}" + "".join(f"{side:>14}{'ratio':>8}" for side in others)
    lines = [f"{result['machine']}; rounds: {result['rounds']}; {amount}", "", head]
    for row in result["rows"]:
        line = f"{row['row']:{width}}{_median(row, first):>12}"
        for side in others:
            better = _ratio(row, first, side)
            line += f"{_median(row, side):>14}" + (f"{'-':>8}" if better is None else f"{better:>8.2f}")
        lines.append(line)
    busiest = max(result["rows"], key=lambda row: float(row["generator"]))
    lines += ["", f"The generator used at most {busiest['generator']:.0%} of a core: {busiest['row']}"]
    if others:
        lines += ["", f"A ratio above 1 means that {first} is better. Rows in which it is not:"]
        named = [f"  {row['row']} ({', '.join(sides)})" for row, sides in behind(result)]
        lines += named or ["  nowhere"]
    lines += [f"Missing: {each}" for each in result["missing"]]
    return "\n".join(lines)


def _side_names(result: dict[str, Any]) -> list[str]:
    """Return the sides in the order of their measurement; a row may lack a side that failed."""
    return list(dict.fromkeys(side for row in result["rows"] for side in row["sides"]))


def _median(row: dict[str, Any], side: str) -> str:
    return f"{row['sides'][side]['median']:,.1f}" if side in row["sides"] else "-"


def behind(result: dict[str, Any]) -> list[tuple[dict[str, Any], list[str]]]:
    """Return the rows in which another side is better than the first one, with these sides."""
    first, *others = _side_names(result)
    found = []
    for row in result["rows"]:
        ratios = {side: _ratio(row, first, side) for side in others}
        if sides := [side for side, better in ratios.items() if better is not None and better < 1]:
            found.append((row, sides))
    return found


def _ratio(row: dict[str, Any], first: str, side: str) -> float | None:
    """Return the ratio by which the first side is better; None if one of them was not measured."""
    return ratio(msgspec.convert(row, Row), first, side)
