"""Tests transferring the leadership of a group, with brokers in a simulated world."""

import asyncio

import pytest

from mqproof.impl.admin.admin import Admin, UnreachableError
from mqproof.impl.admin.members import transfer_leadership
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.model import ClientError
from mqproof.impl.runtime.network import Address
from tests.impl.broker.group import IDS, Group, play


def _broker(id_: str) -> Address:
    return Address("10.0.0.1", 10_911 + 10 * IDS.index(id_))


def test_an_administrator_can_choose_the_leader_of_a_group() -> None:
    async def scenario(group: Group) -> None:
        await group.send("one")
        before = await group.master()
        to, other = (id_ for id_ in IDS if id_ != before)
        async with Admin([group.names], group.runtime) as admin:
            assert await transfer_leadership(admin, _broker(other), to) == before
            async with asyncio.timeout(60):
                while group.masters() != [to]:
                    await asyncio.sleep(0.05)
            assert await transfer_leadership(admin, _broker(to), to) == to
        await group.send("two")
        assert group.masters() == [to]

    play(scenario)


def test_the_reason_why_the_leadership_stays_is_reported() -> None:
    async def scenario(group: Group) -> None:
        leader = await group.master()
        away = next(id_ for id_ in IDS if id_ != leader)
        alone = Broker(
            BrokerConfig(host="10.0.0.1", port=9999, store_directory="/alone"), group.runtimes[leader]
        )
        await alone.start()
        async with Admin([group.names], group.runtime) as admin:
            with pytest.raises(ClientError, match="not a member of a group"):
                await transfer_leadership(admin, Address("10.0.0.1", 9999), "n1")
            with pytest.raises(ClientError, match="does not transfer its leadership to n7: UNKNOWN_MEMBER"):
                await transfer_leadership(admin, _broker(leader), "n7")
            await group.stop(away)
            with pytest.raises(
                ClientError, match=f"does not transfer its leadership to {away}: TAKE_LEADERSHIP_FAILED"
            ):
                await transfer_leadership(admin, _broker(leader), away)
            assert group.masters() == [leader]
            with pytest.raises(UnreachableError):
                await transfer_leadership(admin, _broker(away), leader)
        await alone.stop()

    play(scenario)
