"""A session sends heartbeats on new connections, and opens no connection for one that is lost again."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from mqproof.impl.client.connection.session import Session
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.runtime import production

BROKER = Address("127.0.0.1", 10911)


@pytest.mark.parametrize("is_lost_again", [False, True])
def test_a_connection_that_is_lost_again_at_once_gets_no_heartbeat(is_lost_again: bool) -> None:
    beats: list[Address] = []

    async def invoke(address: Address, *_: Any) -> None:
        beats.append(address)
        raise RemotingError("lost")

    async def run() -> None:
        session = Session([Address("127.0.0.1", 9876)], production(AsyncioNetwork()))
        session.remoting = SimpleNamespace(  # type: ignore[assignment]
            is_connected=lambda _: not is_lost_again, invoke=invoke, channel=lambda _: None
        )
        session._greeted[BROKER] = None
        session._greet_again(BROKER)
        await asyncio.gather(*session._greetings)

    asyncio.run(run())
    assert beats == ([] if is_lost_again else [BROKER])
