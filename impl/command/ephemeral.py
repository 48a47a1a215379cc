"""The servers of `mqproof serve --ephemeral`: a broker in memory, and the interface that controls it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from mqproof.impl.embedded.control_server import ControlServer
from mqproof.impl.embedded.controlled_broker import ControlledBroker
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.properties import parse
from mqproof.impl.terminal.inputs import read_text

LOOPBACK: Final = "127.0.0.1"


class _NameServerPart:
    """Starts and stops both servers; its address is that of the name server."""

    def __init__(self, broker: ControlledBroker) -> None:
        self._broker = broker

    async def start(self) -> Address:
        await self._broker.start()
        return self._broker.name_server

    async def stop(self) -> None:
        await self._broker.stop()


class _BrokerPart:
    """Stands for the broker, which the part of the name server has started."""

    def __init__(self, broker: ControlledBroker) -> None:
        self._broker = broker

    async def start(self) -> Address:
        return self._broker.address

    async def stop(self) -> None: ...


def servers(
    config: Path | None, name: str | None, namesrv_port: int, broker_port: int, control_port: int | None
) -> dict[str, Callable[[Any], Any]]:
    """Return how each server is made, as `serving.until_signal` takes them.

    Raises:
        ConfigError, OSError: the properties file cannot be used.
    """
    found_in_file = parse(read_text(config), str(config)) if config is not None else {}
    properties = {key: each.value for key, each in found_in_file.items()}
    if name is not None:
        properties["brokerName"] = name
    broker = ControlledBroker(properties, namesrv_port, broker_port)
    found: dict[str, Callable[[Any], Any]] = {
        "namesrv": lambda _: _NameServerPart(broker),
        "broker": lambda _: _BrokerPart(broker),
    }
    if control_port is not None:
        found["control"] = lambda _: ControlServer(broker, AsyncioNetwork(), control_port)
    return found
