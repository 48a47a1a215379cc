"""The real run: brokers and clients as processes, kills, and event logs and stores for the audit.

There is one name server, a SYNC_MASTER with a slave, and a group of three members that elects its master. The
master and the leader are killed and restarted while producers and consumers of all kinds work.
"""

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from mqproof.conformance.hosts.processes import (
    MQPROOF,
    Cluster,
    ClusterError,
    LineCounter,
    cluster,
    free_port,
    free_ports,
)

Progress = Callable[[str], None]

KILLS: Final = 3
"""The number of kills; one of them hits the group's leader, the others the pair's master."""
_PRODUCERS: Final = tuple(f"producer-{n}" for n in (1, 2, 3))
_ORDERED: Final = ("ordered-1", "ordered-2")
_DELAYED: Final = ("delayed-1", "delayed-2")
_RETRIED: Final = "retried"
_SMALL: Final = 100
"""The number of messages of each producer of ordered, delayed or retried messages."""
_MASTER: Final = "broker-a"
_SLAVE: Final = "broker-a-1"
_MEMBERS: Final = ("n0", "n1", "n2")
_IDLE_MS: Final = "9000"
"""Consumers stop after so long without a message: longer than the group needs to elect a new leader."""
_SECONDS_MAX: Final = 120.0
_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class RealRun:
    """The results of a run."""

    counts: dict[str, int]
    """Messages acknowledged, deliveries, retries, kills."""
    master: Path
    """The event log of the pair's master."""
    stores: tuple[str, ...]
    """BROKER=DIR of each store, as `mqproof audit run --store` takes it."""


def real_run(folder: Path, messages: int, progress: Progress) -> RealRun:
    """Run the clusters and clients until every client has finished.

    Raises:
        ClusterError: a process did not start, failed, or did not finish in time.
    """
    with cluster(folder, "SYNC_FLUSH") as running:
        running.start_name_server()
        site = _Site(running)
        site.start_brokers()
        _create_topics(running)
        consumers = _start_consumers(running)
        producers = _start_producers(running, messages)
        _kill_and_restart(site, messages, progress)
        for name in (*producers, *consumers):
            progress(f"waiting for {name}")
            running.wait(name, _SECONDS_MAX)
        for name in (*site.commands, "namesrv"):
            running.stop(name)
    return RealRun(
        {
            "messages acknowledged": _count(running.events, producers, b'"kind":"send_ack"'),
            "deliveries": _count(running.events, consumers, b'"kind":"deliver"'),
            "kills": KILLS,
        },
        running.events / f"{_MASTER}.ndjson",
        site.stores,
    )


class _Site:
    """The brokers and the commands that start them, so that a killed broker can be restarted on its store."""

    def __init__(self, running: Cluster) -> None:
        self.running = running
        group = dict(zip(_MEMBERS, free_ports(len(_MEMBERS)), strict=True))
        peers = ";".join(f"{member}-127.0.0.1:{port}" for member, port in group.items())
        pair = ("--name", _MASTER, "--flush", "SYNC_FLUSH")
        self.commands = {
            _MASTER: self._command(_MASTER, *pair, "--role", "SYNC_MASTER", "--ha-port", str(free_port())),
            _SLAVE: self._command(_SLAVE, *pair, "--role", "SLAVE", "--broker-id", "1"),
            **{
                f"broker-b-{member}": self._command(
                    f"broker-b-{member}", "--name", "broker-b", "--self-id", member, "--peers", peers
                )
                for member in _MEMBERS
            },
        }

    @property
    def stores(self) -> tuple[str, ...]:
        brokers = dict(zip(self.commands, self.commands, strict=True)) | {_SLAVE: f"{_MASTER}:1"}
        return tuple(f"{broker}={self.running.folder / name}" for name, broker in brokers.items())

    def start_brokers(self) -> None:
        for name in self.commands:
            self.start(name)

    def start(self, name: str) -> None:
        self.running.start_server(name, *self.commands[name])

    def restart_after_kill(self, name: str) -> None:
        """Kill the broker with SIGKILL, then restart it on the same store."""
        self.running.kill(name)
        self.start(name)

    def leader(self) -> str:
        """Return the member that was elected last.

        Raises:
            ClusterError: no member becomes leader in time.
        """
        deadline = time.monotonic() + _SECONDS_MAX
        while time.monotonic() < deadline:
            if elected := [(ts, name) for name in _members(self) for ts in self._elections(name)]:
                return max(elected)[1]
            time.sleep(_POLL_S)
        raise ClusterError(f"the group has no leader after {_SECONDS_MAX:.0f} s")

    def _elections(self, name: str) -> Iterable[int]:
        """Return when the member became leader, in microseconds since the epoch."""
        for line in (self.running.events / f"{name}.ndjson").read_bytes().splitlines():
            if b'"kind":"become_leader"' in line:
                yield int(msgspec.json.decode(line)["ts"])

    def _command(self, store: str, *options: str) -> tuple[str, ...]:
        return (
            *("broker", "--namesrv", self.running.name_server, "--port", str(free_port())),
            *("--store", str(self.running.folder / store), *options),
        )


def _members(site: _Site) -> list[str]:
    return [name for name in site.commands if name not in (_MASTER, _SLAVE)]


def _create_topics(running: Cluster) -> None:
    """Create topics with four queues at every master, so that producers need no automatic creation."""
    for topic in ("Demo", "Orders", "Later", "Retried"):
        name = f"create-{topic}"
        running.start_program(
            name,
            *(*MQPROOF, "admin", "updateTopic", "-n", running.name_server, "-c", "DefaultCluster"),
            *("-t", topic, "-r", "4", "-w", "4"),
        )
        running.wait(name, _SECONDS_MAX)


def _start_producers(running: Cluster, messages: int) -> list[str]:
    """Start producers of plain, ordered and delayed messages. Each repeats a send until it is stored."""
    stored = ("--until-stored", "--quiet")
    for n, name in enumerate(_PRODUCERS):
        count = messages // len(_PRODUCERS) + (n < messages % len(_PRODUCERS))
        counts = ("--count", str(count), "--outstanding", "16")
        running.start_client(name, "send", "--topic", "Demo", "--size", "256", *counts, *stored)
    small = ("--size", "64", "--count", str(_SMALL), *stored)
    for name in _ORDERED:
        running.start_client(name, "send", "--topic", "Orders", "--sharding-key", name, *small)
    for level, name in enumerate(_DELAYED, start=1):
        running.start_client(name, "send", "--topic", "Later", "--delay-level", str(level), *small)
    running.start_client(_RETRIED, "send", "--topic", "Retried", *small)
    return [*_PRODUCERS, *_ORDERED, *_DELAYED, _RETRIED]


def _start_consumers(running: Cluster) -> list[str]:
    """Start two groups that read everything, an orderly one, one of delayed messages, and a failing one."""
    follow = ("--follow", "--idle-ms", _IDLE_MS, "--from-min")
    groups = {
        "consumer-1": ("--topic", "Demo", "--group", "group-1"),
        "consumer-2": ("--topic", "Demo", "--group", "group-2"),
        "consumer-orderly": ("--topic", "Orders", "--group", "group-orderly", "--share", "--orderly"),
        "consumer-later": ("--topic", "Later", "--group", "group-later", "--share"),
    }
    for name, options in groups.items():
        running.start_client(name, "consume", *options, *follow)
    failing = "consumer-failing"
    running.start_program(
        failing,
        *(
            sys.executable,
            "-m",
            "mqproof.demo.failing_consumer",
            running.name_server,
            "Retried",
            "group-failing",
        ),
        *(str(_SMALL), str(_SECONDS_MAX), "--events", str(running.events / f"{failing}.ndjson")),
    )
    return [*groups, failing]


def _kill_and_restart(site: _Site, messages: int, progress: Progress) -> None:
    """Kill the master whenever the next part of the messages has been appended, and the leader in between."""
    logs = [LineCounter(site.running.events / f"{name}.ndjson", b'"kind":"append"') for name in site.commands]
    deadline = time.monotonic() + _SECONDS_MAX
    for kill in range(1, KILLS + 1):
        while (appended := sum(log.update() for log in logs)) < kill * messages // (KILLS + 1):
            if time.monotonic() > deadline or not any(map(site.running.running, _PRODUCERS)):
                raise ClusterError(f"{appended} of {messages} messages were appended before kill {kill}")
            time.sleep(_POLL_S)
        victim = site.leader() if kill == KILLS - 1 else _MASTER
        progress(f"{appended} records appended, SIGKILL of {victim}")
        site.restart_after_kill(victim)


def _count(events: Path, names: Iterable[str], word: bytes) -> int:
    return sum(LineCounter(events / f"{name}.ndjson", word).update() for name in names)
