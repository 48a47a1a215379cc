"""A name server and a broker as separate processes, with producers and consumers, and a SIGKILL.

Every process started here is also ended here, by its own process id. Everything listens on loopback.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

READY_SECONDS_MAX: Final = 120.0
STOP_SECONDS_MAX: Final = 60.0
MQPROOF: Final = (sys.executable, "-m", "mqproof")
_PORTS: Final = range(20_000, 32_000)


class ClusterError(RuntimeError):
    """A process did not start, ended too early, or did not end; the message names it and its log."""


@dataclass(slots=True)
class Cluster:
    """The processes of one run; logs, event logs and the store are in `folder`."""

    folder: Path
    flush: str
    broker_port: int
    name_server: str = ""
    broker_options: tuple[str, ...] = ()
    """More options of `mqproof broker`."""
    keeps_events: bool = True
    launchers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Process name to the command prefix that starts it, for example on a separate machine."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def events(self) -> Path:
        return self.folder / "events"

    def start_name_server(self) -> None:
        store = str(self.folder / "namesrv")
        ready = self.start_server("namesrv", "namesrv", "--port", "0", "--store", store)
        self.name_server = ready["namesrv"]

    def start_broker(self) -> None:
        """Start or restart the broker on its store, and wait until it serves."""
        self.start_server(
            "broker", "broker", "--namesrv", self.name_server, "--port", str(self.broker_port),
            "--store", str(self.folder / "store"), "--flush", self.flush, "--name", "broker-a",
            *self.broker_options,
        )  # fmt: skip

    def kill(self, name: str) -> None:
        """Send SIGKILL to the process: it gets no chance to do anything."""
        process = self.processes.pop(name)
        process.kill()
        process.wait(STOP_SECONDS_MAX)

    def kill_broker(self) -> None:
        """Kill the broker that `start_broker` started."""
        self.kill("broker")

    def start_client(self, name: str, command: str, *arguments: str) -> None:
        """Run `mqproof send` or `mqproof consume` in the background."""
        self._start(name, command, "--namesrv", self.name_server, *arguments)

    def start_program(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """Run any program in the background, with its own log."""
        self.events.mkdir(parents=True, exist_ok=True)
        with self._log(name).open("ab") as log:
            process = subprocess.Popen(
                [*self.launchers.get(name, ()), *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.processes[name] = process
        return process

    def running(self, name: str) -> bool:
        return self.processes[name].poll() is None

    def wait(self, name: str, seconds_max: float) -> None:
        """Wait for a client to end on its own, with exit code 0.

        Raises:
            ClusterError: it takes longer, or ends with another code than 0.
        """
        try:
            code = self.processes[name].wait(seconds_max)
        except subprocess.TimeoutExpired:
            raise ClusterError(
                f"{name} did not end within {seconds_max:.0f} s; see {self._log(name)}"
            ) from None
        if code != 0:
            raise ClusterError(f"{name} ended with code {code}; see {self._log(name)}")

    def stop(self, name: str) -> None:
        """Send SIGTERM and wait for the clean end."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS_MAX)

    def start_server(self, name: str, *arguments: str) -> dict[str, str]:
        """Start a server and return the fields of its `ready` line.

        For example: {"namesrv": "127.0.0.1:9876"}.
        """
        log = self._log(name)
        seen = log.stat().st_size if log.exists() else 0
        process = self._start(name, *arguments)
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline and process.poll() is None:
            for line in log.read_bytes()[seen:].decode().splitlines():
                if line.startswith("ready "):
                    return dict(part.split("=", 1) for part in line.split()[1:])
            time.sleep(0.02)
        raise ClusterError(f"{name} was not ready within {READY_SECONDS_MAX:.0f} s; see {log}")

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        events = ("--events", str(self.events / f"{name}.ndjson")) if self.keeps_events else ()
        return self.start_program(name, *MQPROOF, *arguments, *events)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@contextmanager
def cluster(folder: Path, flush: str) -> Iterator[Cluster]:
    """A cluster whose processes are all ended after the block, also after an error."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Cluster(folder, flush, free_port())
    try:
        yield made
    finally:
        for process in made.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait(STOP_SECONDS_MAX)


def free_port(below: int = 0) -> int:
    """Return a port for a broker that must restart at the same address; `below` ports below it are free too.

    It is below the range of ephemeral client ports. Otherwise a client that connects in vain could get the
    very port that it connects to, and the broker could not listen there.
    """
    for port in random.sample(_PORTS, 64):
        if all(map(_is_free, range(port - below, port + 1))):
            return port
    raise ClusterError(f"64 ports between {_PORTS.start} and {_PORTS.stop} are all in use")


def free_ports(count: int) -> list[int]:
    """Return as many different ports, in increasing order."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return sorted(ports)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@dataclass(slots=True)
class LineCounter:
    """Counts the lines that contain a word in a growing file."""

    path: Path
    word: bytes
    count: int = 0
    _read: int = 0
    _rest: bytes = b""

    def update(self) -> int:
        """Read the new part of the file; return the count so far."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._read, os.SEEK_SET)
                new = file.read()
            self._read += len(new)
            *lines, self._rest = (self._rest + new).split(b"\n")
            self.count += sum(self.word in line for line in lines)
        return self.count
