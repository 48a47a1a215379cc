"""`mqproof bench replication`: the cost of a copy, the time of a change of masters, and a slave's first copy.

All sides run in one go on one machine, where their brokers share its cores and its disk. So the amount of
work is compared; on separate machines, the copies would be made in parallel. A single broker is the baseline.
Times are in seconds, rates in messages per second.
"""

import asyncio
import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.bench import load
from mqproof.conformance.bench.load import Address, LoadError, Messages
from mqproof.conformance.hosts.processes import Cluster, ClusterError, cluster, free_port, free_ports
from mqproof.conformance.hosts.sender import sender
from mqproof.report.measurements import described

IDS: Final = ("n0", "n1", "n2")
GIVE_UP_S: Final = 6.0
"""Time without a message from the master after which members stop following it."""
VOTE_WAIT_S: Final = 1.0
"""Maximum additional time until members start an election."""
_SECONDS_MAX: Final = 120.0
_POLL_S: Final = 0.02
_WARM_SENDS: Final = 500
_FRACTIONS: Final = {"median": 0.5, "p99": 0.99}

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Amount:
    """The amount of work that is measured."""

    sends: int = 10_000
    """Number of sends in each measurement of throughput."""
    seconds: float = 5.0
    """Duration of each measurement of latency."""
    kills: int = 100
    copied_mib: int = 256


class Site:
    """Brokers with one name, and their current master."""

    def __init__(self, made: Cluster) -> None:
        self.made = made
        self.commands: dict[str, tuple[str, ...]] = {}
        self.addresses: dict[str, Address] = {}

    def add(self, node: str, *options: str) -> None:
        """Start a broker, and store its command for restarts."""
        port = free_port()
        self.addresses[node] = Address("127.0.0.1", port)
        self.commands[node] = (
            *("broker", "--namesrv", self.made.name_server, "--port", str(port), "--name", "broker-a"),
            *("--store", str(self.made.folder / node), *options),
        )
        self.start(node)

    def start(self, node: str) -> None:
        self.made.start_server(node, *self.commands[node])

    def kill(self, node: str) -> None:
        self.made.kill(node)

    def master(self, messages: Messages) -> str:
        """Return the broker that stores a message, as soon as one does."""
        deadline = time.monotonic() + _SECONDS_MAX
        while time.monotonic() < deadline:
            for node in [node for node in self.addresses if node in self.made.processes]:
                try:
                    asyncio.run(load.send_rate(self.addresses[node], messages, 1, 1))
                except (LoadError, OSError):
                    continue
                return node
            time.sleep(_POLL_S)
        raise ClusterError(f"no broker accepted a message within {_SECONDS_MAX:.0f} s")


Side = Callable[[Path], AbstractContextManager[Site]]


@contextmanager
def _site(folder: Path) -> Iterator[Site]:
    with cluster(folder, "ASYNC_FLUSH") as made:
        made.keeps_events = False  # events cost more than the measured work
        made.start_name_server()
        yield Site(made)


@contextmanager
def single_broker(folder: Path) -> Iterator[Site]:
    with _site(folder) as site:
        site.add("alone", "--flush", "ASYNC_FLUSH")
        yield site


@contextmanager
def single_broker_synced(folder: Path) -> Iterator[Site]:
    with _site(folder) as site:
        site.add("alone", "--flush", "SYNC_FLUSH")
        yield site


@contextmanager
def pair(folder: Path) -> Iterator[Site]:
    with _site(folder) as site:
        _add_master(site)
        _add_slave(site)
        yield site


@contextmanager
def group(folder: Path) -> Iterator[Site]:
    with _site(folder) as site:
        peers = ";".join(
            f"{id_}-127.0.0.1:{port}" for id_, port in zip(IDS, free_ports(len(IDS)), strict=True)
        )
        for id_ in IDS:
            site.add(id_, "--self-id", id_, "--peers", peers)
        yield site


SIDES: Final[Mapping[str, Side]] = {
    "alone, ASYNC_FLUSH": single_broker,
    "alone, SYNC_FLUSH": single_broker_synced,
    "SYNC_MASTER and a slave": pair,
    "a group of three": group,
}
"""The first side is the baseline for the others."""


def _add_master(site: Site) -> None:
    site.add("master", "--flush", "ASYNC_FLUSH", "--role", "SYNC_MASTER", "--ha-port", str(free_port()))


def _add_slave(site: Site) -> None:
    site.add("slave", "--flush", "ASYNC_FLUSH", "--role", "SLAVE", "--broker-id", "1")


def measure(amount: Amount, rounds: int, directory: Path, progress: Progress) -> dict[str, Any]:
    """Run all measurements. `directory` is on the disk to measure.

    Raises:
        ClusterError: a broker did not start, or no broker accepted messages.
        LoadError: a broker refused a request.
    """
    rates: dict[str, list[float]] = {name: [] for name in SIDES}
    for number in range(rounds):
        for name, side in SIDES.items():
            progress(f"throughput, {name}, round {number + 1}/{rounds}")
            rates[name].append(_throughput(side, directory / "bench", amount))
    # A load that the slowest side handles easily.
    rate = min(statistics.median(each) for each in rates.values()) / 4
    waits = {}
    for name, side in SIDES.items():
        progress(f"latency, {name}")
        waits[name] = _latency(side, directory / "bench", rate, amount)
    progress("changes of masters")
    changes, clients_changes = _changes(directory / "bench", amount, progress)
    progress("a slave's first copy")
    copied_s, plain_s, copied_bytes = _first_copy(directory / "bench", amount)
    rows = [
        ("64 outstanding: sends/s", rates),
        *(
            (f"answered, {name}: ms", {side: [wait[name]] for side, wait in waits.items()})
            for name in _FRACTIONS
        ),
        ("change of masters: s", {"a group of three": changes}),
    ]
    return {
        **described("bench replication", [row for row in rows if all(row[1].values())]),
        "cores": os.cpu_count(),
        "rounds": rounds,
        "sends_per_second": rates,
        "latency_load_per_second": rate,
        "answered_ms": waits,
        "change_seconds": changes,
        "clients_change_seconds": clients_changes,
        "change_floor_seconds": GIVE_UP_S + VOTE_WAIT_S,
        "first_copy": {"bytes": copied_bytes, "slave_seconds": copied_s, "plain_seconds": plain_s},
    }


@contextmanager
def _fresh(side: Side, folder: Path) -> Iterator[tuple[Site, Address, Messages]]:
    """Yield a new side that accepts messages, and its master; its files are removed afterwards."""
    messages = Messages()
    try:
        with side(folder) as site:
            if "slave" in site.addresses:
                _wait_for_slave(site, messages)
            yield site, site.addresses[site.master(messages)], messages
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for_slave(site: Site, messages: Messages) -> None:
    """Wait until the master reports that the slave has a message.

    Before that, a send does not wait for a slave.
    """
    deadline = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            asyncio.run(load.send_rate(site.addresses["master"], messages, 1, 1))
        except LoadError:
            time.sleep(_POLL_S)
        else:
            return
    raise ClusterError("the slave did not follow")


def _throughput(side: Side, folder: Path, amount: Amount) -> float:
    with _fresh(side, folder) as (_, master, messages):
        asyncio.run(load.create_topics(master, messages))
        asyncio.run(load.send_rate(master, messages, _WARM_SENDS, 64))
        return asyncio.run(load.send_rate(master, messages, amount.sends, 64))


def _latency(side: Side, folder: Path, rate: float, amount: Amount) -> dict[str, float]:
    with _fresh(side, folder) as (_, master, _):
        for topic, seconds in (("warm", 1.0), ("timed", amount.seconds)):
            messages = Messages((topic,))
            asyncio.run(load.create_topics(master, messages))
            measured = asyncio.run(load.latencies(master, messages, rate, seconds))
    return {
        name: load.percentile(measured.answered, fraction) * 1000 for name, fraction in _FRACTIONS.items()
    }


def _changes(folder: Path, amount: Amount, progress: Progress) -> tuple[list[float], list[float]]:
    """Return the times from SIGKILL of the master to the next acknowledged message.

    The first list is for a message to any broker, with all brokers tried repeatedly. The second is for a
    client, which has to discover the new master.
    """
    found: list[float] = []
    clients: list[float] = []
    if not amount.kills:
        return found, clients
    with (
        _fresh(group, folder) as (site, _, messages),
        sender(site.made.name_server) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        for number in range(amount.kills):
            client.send_until_stored()
            master = site.master(messages)
            began = time.perf_counter()
            site.kill(master)
            sent = pool.submit(client.send_until_stored)
            site.master(messages)
            found.append(time.perf_counter() - began)
            clients.append(sent.result() - began)
            progress(f"changes of masters, {number + 1}/{amount.kills}")
            site.start(master)
    return found, clients


def _first_copy(folder: Path, amount: Amount) -> tuple[float, float, int]:
    """Return the times of an empty slave's copy of a full master's log, and of a plain synced copy.

    The third value is the number of bytes.
    """
    messages = Messages(size=4096)
    total = (amount.copied_mib << 20) // messages.size
    try:
        with _site(folder) as site:
            site.add("master", "--flush", "ASYNC_FLUSH", "--role", "ASYNC_MASTER")
            asyncio.run(load.create_topics(site.addresses["master"], messages))
            asyncio.run(load.send_rate(site.addresses["master"], messages, total, 64))
            log = site.made.folder / "master" / "commitlog"
            size = sum(file.stat().st_blocks * 512 for file in log.iterdir())
            began = time.perf_counter()
            _add_slave(site)
            _until_copied(site.made.folder / "slave" / "commitlog", size)
            copied_s = time.perf_counter() - began
            began = time.perf_counter()
            _copy(log, folder / "plain")
            plain_s = time.perf_counter() - began
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return copied_s, plain_s, size


def _copy(log: Path, to: Path) -> None:
    """Copy the written part of each segment durably; the rest of a segment is sparse."""
    to.mkdir()
    for segment in sorted(log.iterdir()):
        left = segment.stat().st_blocks * 512
        with segment.open("rb") as source, (to / segment.name).open("wb") as sink:
            while left > 0 and (chunk := source.read(min(left, 1 << 20))):
                sink.write(chunk)
                left -= len(chunk)
            os.fsync(sink.fileno())


def _until_copied(log: Path, size: int) -> None:
    """Wait until the slave's log occupies this many bytes."""
    deadline = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < deadline:
        files = list(log.iterdir()) if log.is_dir() else []
        if sum(file.stat().st_blocks * 512 for file in files) >= size:
            return
        time.sleep(_POLL_S)
    raise ClusterError(f"the slave did not copy {size} bytes within {_SECONDS_MAX:.0f} s")


def table(result: dict[str, Any]) -> str:
    """Return the result for people."""
    rates = {name: statistics.median(each) for name, each in result["sends_per_second"].items()}
    first = next(iter(rates.values()))
    waits, changes, copy = result["answered_ms"], result["change_seconds"], result["first_copy"]
    lines = [
        f"{result['cores']} cores shared by all brokers, {result['rounds']} rounds; sends of 1024 bytes",
        "",
        f"{'':26}{'64 at once, per s':>18}{'of alone':>10}{'median, ms':>12}{'p99, ms':>10}",
    ]
    for name, rate in rates.items():
        wait = waits[name]
        lines.append(
            f"{name:26}{rate:>18.0f}{rate / first:>10.2f}{wait['median']:>12.2f}{wait['p99']:>10.2f}"
        )
    lines += ["", f"Latencies at {result['latency_load_per_second']:.0f} sends a second."]
    if changes:
        floor = result["change_floor_seconds"]
        lines += [
            f"{len(changes)} masters killed, seconds to the next acknowledged send: {_percentiles(changes)};"
            f" the configured waits sum up to {floor:.1f}.",
            "Seconds to the next acknowledged send of a client:"
            f" {_percentiles(result['clients_change_seconds'])}.",
        ]
    mib = copy["bytes"] / (1 << 20)
    lines.append(
        f"A slave's first copy of {mib:.0f} MiB: {mib / copy['slave_seconds']:.0f} MiB/s, including its"
        f" start; a plain copy {mib / copy['plain_seconds']:.0f} MiB/s."
    )
    return "\n".join(lines)


def _percentiles(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    shown = ", ".join(
        f"{fraction:.0%} {load.percentile(ordered, fraction):.1f}" for fraction in (0.5, 0.9, 0.99)
    )
    return f"{shown}, maximum {ordered[-1]:.1f}"
