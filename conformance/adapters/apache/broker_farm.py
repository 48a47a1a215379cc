"""Several released brokers in one process, driven by `BrokerFarm.java`: a start there takes little time.

A campaign that starts thousands of brokers needs this. Each broker has a folder, a port and a log of its own.
"""

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.apache.artifacts import class_path, java
from mqproof.conformance.adapters.apache.java_clients import compiled
from mqproof.conformance.adapters.apache.servers import MODULE_FLAGS, SMALL_BROKER, ApacheServerError, home
from mqproof.conformance.hosts.processes import free_port
from mqproof.impl.runtime.network import Address

_SOURCE: Final = Path(__file__).with_name("BrokerFarm.java")
_JVM: Final = (
    *("-Xms256m", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss256k"),
    "-Dtls.server.mode=disabled",  # otherwise a start makes an RSA key, most of its processor time
)
_PROPERTIES: Final = {
    **SMALL_BROKER,
    "brokerFastFailureEnable": "false",  # a loaded machine must not cause refusals
    "transactionMetricFlushInterval": "100",  # 5.5.0 polls without a pause for the first interval
}
_TIMER_SLACK_NS: Final = 50_000_000
"""How late timers of the process may be. Each idle broker polls its log every millisecond."""
_ANSWER_SECONDS_MAX: Final = 120.0


class FarmBroker:
    """One broker of a farm; it can be started again on the same folder and port."""

    def __init__(self, farm: "BrokerFarm", name: str, properties: Mapping[str, str]) -> None:
        self.folder = farm.folder / name
        self.folder.mkdir()
        self.address = Address("127.0.0.1", farm.port())
        self.is_running = False
        self._farm = farm
        self._name = name
        self._properties = self.folder / "broker.properties"
        chosen = {
            **_PROPERTIES,
            "brokerName": name,
            "listenPort": str(self.address.port),
            "haListenPort": str(self.address.port - 1),
            "storePathRootDir": str(self.store),
            "storePathCommitLog": str(self.store / "commitlog"),
            **properties,
        }
        lines = (f"{key}={value}\n" for key, value in chosen.items())
        self._properties.write_text("".join(lines), encoding="utf-8")

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"

    def start(self) -> None:
        """Start the broker, and return when it serves. Raises as `BrokerFarm.ask`."""
        self._farm.ask(self._name, f"start {self._name} {self._properties} {self.log}")
        self.is_running = True

    def stop(self) -> None:
        """Stop the broker cleanly. Nothing happens if it does not run. Raises as `BrokerFarm.ask`."""
        if self.is_running:
            self.is_running = False
            self._farm.ask(self._name, f"stop {self._name}")

    def discard(self) -> None:
        """Stop the broker without waiting for it: its folder and port are not used again."""
        if self.is_running:
            self.is_running = False
            self._farm.tell(f"stop {self._name}")


class BrokerFarm:
    """One Java process with brokers, created by `farm`."""

    def __init__(self, folder: Path, process: "subprocess.Popen[str]") -> None:
        self.folder = folder
        self._process = process
        self._answers: dict[str, queue.Queue[str]] = {}
        self._ports: set[int] = set()
        self._write = threading.Lock()
        threading.Thread(target=self._read, name="answers of brokers", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs; a broker that ends it ends all others."""
        return self._process.poll() is None

    def port(self) -> int:
        """Return a port that no broker of this farm has.

        The one below is for replication, and the one below that for the second listener.
        """
        while True:
            port = free_port(below=2)
            if self._ports.isdisjoint(range(port - 2, port + 1)):
                self._ports.update(range(port - 2, port + 1))
                return port

    def broker(self, name: str, properties: Mapping[str, str]) -> FarmBroker:
        """Return a broker that is not started yet."""
        self._answers[name] = queue.Queue()
        return FarmBroker(self, name, properties)

    def ask(self, name: str, command: str) -> None:
        """Send a command for a broker, and wait until it is done.

        Raises:
            ApacheServerError: the broker refused. TimeoutError: it did not answer.
            OSError: the process has ended.
        """
        self.tell(command)
        try:
            answer = self._answers[name].get(timeout=_ANSWER_SECONDS_MAX)
        except queue.Empty:
            raise TimeoutError(f"{name}: no answer to {command.split(' ')[0]!r}") from None
        if answer.startswith("refused"):
            raise ApacheServerError(f"{name}: {answer}")

    def tell(self, command: str) -> None:
        """Send a command without waiting for its answer. Raises OSError: the process has ended."""
        assert self._process.stdin is not None, "made with a pipe"
        with self._write:
            self._process.stdin.write(f"{command}\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None, "made with a pipe"
        with self._process.stdout as lines:
            for line in lines:
                name, _, answer = line.strip().partition(" ")
                if (answers := self._answers.get(name)) is not None:
                    answers.put(answer)
        for answers in self._answers.values():
            answers.put("refused the process has ended")


@contextmanager
def farm(release: str, folder: Path) -> Iterator[BrokerFarm]:
    """Yield a process for brokers of a release; it is killed after the block.

    Raises:
        ApacheMissingError: Java or the release is not available. DriverError: the program does not compile.
    """
    installation = home(folder)
    command = [
        java(),
        *_JVM,
        *MODULE_FLAGS,
        f"-Duser.home={installation}",
        f"-Dlogback.configurationFile={installation}/conf/logback_broker.xml",
        f"-Drmq.logback.configurationFile={installation}/conf/5.xml",
        "-cp",
        f"{compiled(release, _SOURCE)}:{class_path(release)}",
        "BrokerFarm",
    ]
    with (folder / "farm.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=folder,
            env={**os.environ, "ROCKETMQ_HOME": str(installation)},
            text=True,
            start_new_session=True,
        )
    with suppress(OSError):  # Linux only
        Path(f"/proc/{process.pid}/timerslack_ns").write_text(str(_TIMER_SLACK_NS), encoding="ascii")
    try:
        yield BrokerFarm(folder, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdin is not None, "made with a pipe"
        with suppress(OSError):  # a command may be left in it
            process.stdin.close()
