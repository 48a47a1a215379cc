"""A name server and a broker that a scenario can kill: ours, or those of a release of Apache RocketMQ."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from mqproof.conformance.adapters.apache import servers
from mqproof.conformance.adapters.apache.servers import ApacheServer
from mqproof.conformance.hosts.processes import Cluster, cluster

OURS: Final = "mqproof"

LEVELS_S: Final = (1, 3, 1, 2, 8, *(2,) * 13)
"""The delay of each level, in seconds. Redeliveries begin at level 3."""

_PROPERTIES: Final = {
    "messageDelayLevel": " ".join(f"{seconds}s" for seconds in LEVELS_S),
    "enablePropertyFilter": "true",
    "traceTopicEnable": "true",
    "transactionTimeOut": "3000",
    "transactionCheckInterval": "2000",
    "flushConsumerOffsetInterval": "200",
    "flushDelayOffsetInterval": "200",
}
_SINCE_5: Final = {"recallMessageEnable": "true"}


class Site(Protocol):
    """What a scenario may do with the servers."""

    @property
    def name_server(self) -> str: ...

    @property
    def has_timers(self) -> bool:
        """Whether the broker delivers at any time, which 4.9 does not."""
        ...

    def crash(self) -> None:
        """Send SIGKILL to the broker, start it again on its store, and return when it serves."""
        ...


class _OurSite:
    has_timers = True

    def __init__(self, processes: Cluster) -> None:
        self._processes = processes

    @property
    def name_server(self) -> str:
        return self._processes.name_server

    def crash(self) -> None:
        self._processes.kill_broker()
        self._processes.start_broker()


class _ApacheSite:
    def __init__(self, names: ApacheServer, broker: ApacheServer, has_timers: bool) -> None:
        self._names, self._broker = names, broker
        self.has_timers = has_timers

    @property
    def name_server(self) -> str:
        return str(self._names.address)

    def crash(self) -> None:
        self._broker.kill()
        self._broker.start()


@contextmanager
def site(broker: str, folder: Path) -> Iterator[Site]:
    """Start the servers: `mqproof`, or a release such as `5.5.0`. They are ended after the block.

    Raises:
        ApacheMissingError: the release is not available. ApacheServerError, ClusterError: no start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if broker == OURS:
        properties = folder / "broker.properties"
        properties.write_text(_text(_PROPERTIES | _SINCE_5), encoding="utf-8")
        with cluster(folder, "ASYNC_FLUSH") as processes:
            processes.broker_options = ("-c", str(properties))
            processes.keeps_events = False
            processes.start_name_server()
            processes.start_broker()
            yield _OurSite(processes)
        return
    is_5 = broker.startswith("5.")
    names = servers.name_server(broker, folder)
    made = servers.broker(broker, folder, names.address, properties=_PROPERTIES | (_SINCE_5 if is_5 else {}))
    with servers.running(names, made):
        yield _ApacheSite(names, made, is_5)


def _text(properties: dict[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in properties.items())
