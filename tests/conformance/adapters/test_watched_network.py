"""Tests that a watched network passes everything on, and shows it to the watch."""

import asyncio

from mqproof.conformance.adapters.watched_network import WatchedNetwork
from mqproof.conformance.answers.watch import Watch
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.network import SimulatedNetwork


def test_answers_arrive_and_are_watched() -> None:
    def answer(request: Command, channel: Channel) -> Reply:
        return request.answer(1)

    async def run() -> None:
        network = SimulatedNetwork()
        address = await RemotingServer(network, answer).start("127.0.0.1", 10911)
        client = RemotingClient(WatchedNetwork(network, watch))
        assert (await client.invoke(address, new_request(999, {}), 3.0)).code == 1
        await client.close()

    watch = Watch(lambda: 0, is_exact=True)
    asyncio.run(run())
    assert watch.answers == 1
    assert [each.text for each in watch.wrong] == [
        "the answer with code 1 to request 999 : SYSTEM_ERROR without a remark"
    ]
