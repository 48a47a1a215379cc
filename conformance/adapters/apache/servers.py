"""Apache's name server and broker as processes with small heaps, on free loopback ports, in a folder.

Every process started here is also ended here, each by its own process group. The listening address of 4.9 and
the replication port of all releases cannot be configured: those listen on all interfaces while they run.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.apache.artifacts import class_path, java
from mqproof.conformance.adapters.apache.single_request import send_request
from mqproof.conformance.hosts.processes import free_port
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.runtime.network import Address

READY_SECONDS_MAX: Final = 120.0
STOP_SECONDS_MAX: Final = 60.0
_REQUEST_SECONDS_MAX: Final = 2.0
_POLL_SECONDS: Final = 0.1

SMALL_JVM: Final = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""JVM options for a fast start and little memory; not suitable for measurements."""

MODULE_FLAGS: Final = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
)
"""4.9 unmaps its files by reflection.

On JDK 17 without these flags its clean exit fails and looks like a crash.
"""

_NAME_SERVER: Final = "org.apache.rocketmq.namesrv.NamesrvStartup"
_BROKER: Final = "org.apache.rocketmq.broker.BrokerStartup"

SMALL_BROKER: Final = {
    "mappedFileSizeCommitLog": str(1 << 24),
    "brokerClusterName": "DefaultCluster",
    "bindAddress": "127.0.0.1",
    "brokerIP1": "127.0.0.1",
    "brokerIP2": "127.0.0.1",
    "deleteWhen": "04",
    # The broker must not refuse requests because the machine is loaded.
    "osPageCacheBusyTimeOutMills": "10000",
    "waitTimeMillsInSendQueue": "10000",
    "diskMaxUsedSpaceRatio": "95",
    "recallMessageEnable": "true",  # the default of 5.5.0 refuses recalls; 4.9.5 has none
}

_LOGBACK: Final = """<configuration>
  <appender name="out" class="{prefix}ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %c - %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


class ApacheServerError(RuntimeError):
    """An Apache server did not start or did not end; the message names it and its log."""


class ApacheServer:
    """A server that can be started, stopped, killed, and restarted at the same address.

    It is created by the functions below.
    """

    def __init__(
        self,
        name: str,
        command: list[str],
        environment: Mapping[str, str],
        folder: Path,
        address: Address,
        is_ready: Callable[[], bool],
    ) -> None:
        self.name = name
        self.folder = folder
        self.address = address
        self._command = command
        self._environment = environment
        self._is_ready = is_ready
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def store(self) -> Path:
        """The store directory of a broker."""
        return self.folder / f"{self.name}-store"

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    def start(self) -> None:
        """Start the server and return when it answers. Raises ApacheServerError."""
        assert self._process is None, f"{self.name} is already running"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ApacheServerError(f"{self.name} did not start; see {self.log}")
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Send SIGTERM and wait for the clean end.

        If it does not end, kill it and raise ApacheServerError.
        """
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ApacheServerError(
                f"{self.name} did not stop within {STOP_SECONDS_MAX:.0f} s; see {self.log}"
            ) from None
        self._process = None

    def kill(self) -> None:
        """Send SIGKILL to its process group. Does nothing if the server is not running."""
        if self._process is None:
            return
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(STOP_SECONDS_MAX)
        self._process = None


def name_server(
    release: str, folder: Path, *, name: str = "apache-namesrv", jvm: tuple[str, ...] = SMALL_JVM
) -> ApacheServer:
    """Return a name server that is not started yet. Raises ApacheMissingError."""
    address = Address("127.0.0.1", free_port())
    properties = {
        "listenPort": str(address.port),
        "bindAddress": "127.0.0.1",
        "kvConfigPath": str(folder / f"{name}-kv.json"),
    }
    return _server(release, folder, name, _NAME_SERVER, jvm, properties, address, lambda: _answers(address))


def broker(
    release: str,
    folder: Path,
    name_servers: Address,
    *,
    name: str = "apache-a",
    properties: Mapping[str, str] | None = None,
    jvm: tuple[str, ...] = SMALL_JVM,
) -> ApacheServer:
    """Return a broker of one name server that is not started yet. Raises ApacheMissingError.

    `properties` override the defaults. The broker is ready when it answers and its name server knows it.
    """
    # The two ports below are used for replication and for the second listener, which is always two ports
    # below.
    address = Address("127.0.0.1", free_port(below=2))
    chosen = {
        **SMALL_BROKER,
        "brokerName": name,
        "listenPort": str(address.port),
        "haListenPort": str(address.port - 1),
        "namesrvAddr": str(name_servers),
        "storePathRootDir": str(folder / f"{name}-store"),
        **(properties or {}),
    }
    is_ready = lambda: _answers(address) and _is_known(address, name_servers)  # noqa: E731
    return _server(release, folder, name, _BROKER, jvm, chosen, address, is_ready)


def group(
    release: str,
    folder: Path,
    name_servers: Address,
    name: str,
    ports: Mapping[str, int],
    *,
    properties: Mapping[str, str] | None = None,
    jvm: tuple[str, ...] = SMALL_JVM,
) -> dict[str, ApacheServer]:
    """Return the brokers of a DLedger group by the ids of its members, whose ports are given."""
    common = {
        "brokerName": name,
        "enableDLegerCommitLog": "true",
        "dLegerGroup": name,
        "dLegerPeers": ";".join(f"{member}-127.0.0.1:{port}" for member, port in ports.items()),
        **(properties or {}),
    }
    return {
        member: broker(
            release, folder, name_servers, name=member, properties={**common, "dLegerSelfId": member}, jvm=jvm
        )
        for member in ports
    }


@contextmanager
def running(*servers: ApacheServer) -> Iterator[None]:
    """Start the servers in order; after the block all of them are killed, also after an error."""
    try:
        for server in servers:
            server.start()
        yield
    finally:
        for server in reversed(servers):
            server.kill()


def _server(
    release: str,
    folder: Path,
    name: str,
    main_class: str,
    jvm: tuple[str, ...],
    properties: Mapping[str, str],
    address: Address,
    is_ready: Callable[[], bool],
) -> ApacheServer:
    installation = home(folder)
    configuration = folder / f"{name}.properties"
    configuration.write_text(
        "".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8"
    )
    flags = (
        *jvm,
        *MODULE_FLAGS,
        f"-Duser.home={installation}",
        f"-Drmq.logback.configurationFile={installation}/conf/5.xml",
    )
    command = [java(), *flags, "-cp", class_path(release), main_class, "-c", str(configuration)]
    return ApacheServer(name, command, {"ROCKETMQ_HOME": str(installation)}, folder, address, is_ready)


def home(folder: Path) -> Path:
    """Create and return the folder that Apache uses as its installation.

    It contains only the log configuration.
    """
    conf = folder / "home" / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    for name in ("logback_namesrv", "logback_broker", "logback_tools"):
        (conf / f"{name}.xml").write_text(_LOGBACK.format(prefix=""), encoding="utf-8")
    (conf / "5.xml").write_text(_LOGBACK.format(prefix="org.apache.rocketmq.logging."), encoding="utf-8")
    return conf.parent


def _answers(address: Address) -> bool:
    """Return whether a server answers.

    A broker answers that it does not support this request, which is sufficient.
    """
    return (
        send_request(address, new_request(RequestCode.GET_BROKER_CLUSTER_INFO), _REQUEST_SECONDS_MAX)
        is not None
    )


def _is_known(address: Address, name_server: Address) -> bool:
    answer = send_request(name_server, new_request(RequestCode.GET_BROKER_CLUSTER_INFO), _REQUEST_SECONDS_MAX)
    return (
        answer is not None and answer.code == ResponseCode.SUCCESS and f'"{address}"'.encode() in answer.body
    )
