"""Tests connections that end before they are established."""

import asyncio
from typing import Any

import pytest

from mqproof.impl.runtime.network import Address, AsyncioNetwork, Connection, Receiver


class _Transport:
    """A transport with given addresses, as when the peer is gone, or is the socket itself."""

    def __init__(self, **addresses: Any) -> None:
        self.addresses = addresses
        self.aborted = False

    def get_extra_info(self, name: str) -> Any:
        return self.addresses.get(name)

    def abort(self) -> None:
        self.aborted = True


def _never(_connection: Connection) -> Receiver:
    raise AssertionError("no receiver may be notified of such a connection")


@pytest.mark.parametrize(
    "addresses",
    [
        {"sockname": ("127.0.0.1", 40000)},
        {"sockname": ("127.0.0.1", 40000), "peername": ("127.0.0.1", 40000)},
    ],
    ids=["the peer is gone", "it leads back to itself"],
)
def test_a_connection_without_a_peer_is_refused(addresses: dict[str, Any]) -> None:
    made: list[_Transport] = []

    class Loop(asyncio.SelectorEventLoop):
        async def create_connection(self, *arguments: Any, **_: Any) -> Any:
            # It has a dozen optional arguments; only the protocol factory matters here.
            factory = arguments[0]
            protocol = factory()
            made.append(_Transport(**addresses))
            protocol.connection_made(made[0])
            protocol.connection_lost(None)
            return made[0], protocol

    with asyncio.Runner(loop_factory=Loop) as runner, pytest.raises(ConnectionResetError, match="at once"):
        runner.run(AsyncioNetwork().connect(Address("127.0.0.1", 1), _never))
    assert made[0].aborted


@pytest.mark.parametrize("host", ["a..b", "a\0b", "x" * 64, "."])
def test_an_invalid_host_name_is_an_os_error(host: str) -> None:
    async def main() -> None:
        network = AsyncioNetwork()
        with pytest.raises(OSError, match="is not a valid host name"):
            await network.connect(Address(host, 1), _never)
        with pytest.raises(OSError, match="is not a valid host name"):
            await network.listen(host, 0, _never)

    asyncio.run(main())
