"""Tests consumer groups: which are created, how many, for which peer, and when they are on disk.

Source: docs/reference/protocol/groups.md, "Subscription groups".
"""

from collections.abc import Awaitable, Callable
from contextlib import closing

import pytest

from mqproof.impl.broker.state.subscription_groups import SubscriptionGroupTable
from mqproof.impl.remoting.bodies import DataVersion, SubscriptionGroup, SubscriptionGroups
from mqproof.impl.remoting.budget import Percentages
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.errors import StoreError

PATH = "/store/config/subscriptionGroup.json"


class Client:
    """A connection from one address."""

    def __init__(self, host: str = "10.0.0.1") -> None:
        self.remote = (host, 1)


Scenario = Callable[[SubscriptionGroupTable], Awaitable[None]]


def play(scenario: Scenario, disk: SimulatedDisk | None = None, groups_max: int = 1000) -> None:
    """Run a scenario on the table of a disk."""
    loop = SimulatedLoop()

    async def main() -> None:
        await scenario(opened(loop, disk or SimulatedDisk(), groups_max))

    run_simulated(main(), loop)


def opened(
    loop: SimulatedLoop, disk: SimulatedDisk, groups_max: int = 1000, *, required: bool = False
) -> SubscriptionGroupTable:
    runtime = simulated(loop, SimulatedNetwork(), disk=disk)
    table = SubscriptionGroupTable(
        PATH, runtime, groups_max=groups_max, percent=Percentages(address=50, connection=100)
    )
    table.load(required=required)
    return table


def named(*names: str, **settings: int) -> list[SubscriptionGroup]:
    return [SubscriptionGroup(group_name=name, retry_max_times=settings.get("retries", 16)) for name in names]


@pytest.mark.parametrize(
    ("name", "auto_create", "is_made"),
    [
        ("G", True, True),
        ("G", False, False),
        ("TOOLS_CONSUMER", False, True),
        ("CID_RMQ_SYS_ANY", False, True),
        ("CID_RMQ", False, False),
    ],
)
def test_a_group_is_created_if_that_is_allowed_or_it_is_a_system_group(
    name: str, auto_create: bool, is_made: bool
) -> None:
    async def scenario(table: SubscriptionGroupTable) -> None:
        made = table.find_or_make(name, auto_create=auto_create)
        assert made == (SubscriptionGroup(group_name=name) if is_made else None)
        assert table.get(name) is made
        assert len(table) == is_made

    play(scenario)


def test_a_group_is_created_once_and_a_known_one_is_found_at_the_limit() -> None:
    async def scenario(table: SubscriptionGroupTable) -> None:
        first = table.find_or_make("G1", auto_create=True)
        version = table.snapshot().data_version
        assert table.find_or_make("G1", auto_create=False) is first
        assert table.snapshot().data_version == version
        table.find_or_make("G2", auto_create=True)
        with pytest.raises(RefusedError, match="there are 2 groups") as refused:
            table.find_or_make("G3", auto_create=True)
        assert refused.value.code == ResponseCode.SYSTEM_BUSY
        await table.put_all(named("G1", "G2", retries=3))
        with pytest.raises(RefusedError, match="there are 2 groups"):
            await table.put_all(named("G2", "G3"))
        await table.delete("G2")
        await table.put_all(named("G3"))
        assert table.snapshot().subscription_group_table.keys() == {"G1", "G3"}

    play(scenario, groups_max=2)


def test_new_groups_count_for_the_address_that_created_them_until_they_are_deleted() -> None:
    async def scenario(table: SubscriptionGroupTable) -> None:
        client, other = Client(), Client("10.0.0.2")
        for number in range(1000):
            table.find_or_make(f"G{number}", auto_create=True, by=client)
        with pytest.raises(RefusedError, match=r"1000 groups of address 10\.0\.0\.1") as refused:
            table.find_or_make("G", auto_create=True, by=client)
        assert refused.value.code == ResponseCode.SYSTEM_BUSY
        with pytest.raises(RefusedError, match="1000 groups"):
            await table.put_all(named("G0", "G"), client)
        await table.put_all(named("G0"), client)  # not a new one
        await table.put_all(named("H"), other)
        assert table.budget.used == 1001
        await table.delete("G7")
        assert table.budget.used == 1000
        await table.put_all(named("G"), client)
        with pytest.raises(RefusedError, match="1000 groups"):
            await table.put_all(named("G7"), client)

    play(scenario, groups_max=2000)


def test_a_change_is_on_disk_and_one_that_cannot_be_written_counts_for_no_client() -> None:
    disk = SimulatedDisk()

    def refuse(step: Step) -> None:
        raise OSError("injected")

    async def scenario(table: SubscriptionGroupTable) -> None:
        await table.put_all(named("G1", "G2"), Client())
        await table.put(SubscriptionGroup(group_name="G1", retry_max_times=3))
        await table.delete("G2")
        version = table.snapshot().data_version
        await table.delete("unknown")
        await table.put_all([])
        disk.on_step = refuse
        with pytest.raises(OSError, match="injected"):
            await table.put_all(named("G3"), Client())
        with pytest.raises(OSError, match="injected"):
            await table.delete("G1")
        disk.on_step = None
        assert table.snapshot().data_version == version
        assert table.budget.used == 1
        disk.lose_power()

    play(scenario, disk)

    async def again(table: SubscriptionGroupTable) -> None:
        assert table.snapshot().subscription_group_table == {"G1": named("G1", retries=3)[0]}
        assert table.snapshot().data_version.counter == 3

    play(again, disk)


def test_a_group_that_was_created_automatically_is_on_disk_after_the_next_persist() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        table = opened(loop, disk)
        table.find_or_make("G", auto_create=True)
        assert not disk.exists(PATH)
        await table.persist()
        assert opened(loop, disk, required=True).get("G") is not None

    run_simulated(main(), loop)


def test_the_first_persist_writes_the_file_so_that_its_absence_means_its_loss() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        table = opened(loop, disk)
        with pytest.raises(StoreError, match="subscriptionGroup"):
            opened(loop, disk, required=True)
        await table.persist()
        again = opened(loop, disk, required=True)
        disk.lose(PATH)
        await again.persist()
        assert not disk.exists(PATH), "nothing has changed"

    run_simulated(main(), loop)


def test_a_slave_adopts_the_table_of_its_master_once_for_each_version() -> None:
    disk = SimulatedDisk()
    masters = SubscriptionGroups(DataVersion(7, 5), {"G1": named("G1")[0]})

    async def scenario(table: SubscriptionGroupTable) -> None:
        table.find_or_make("own", auto_create=True)
        await table.adopt(masters)
        assert table.snapshot() == masters
        await table.adopt(SubscriptionGroups(masters.data_version, {}))
        assert table.snapshot() == masters, "the same version has the same groups"

    play(scenario, disk)

    async def again(table: SubscriptionGroupTable) -> None:
        assert table.snapshot() == masters

    play(again, disk)


def test_a_known_group_can_be_changed_although_there_are_more_than_the_limit() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        await opened(loop, disk).put_all(named("G1", "G2", "G3"))
        table = opened(loop, disk, groups_max=2)
        await table.put_all(named("G1", retries=3))
        assert table.get("G1") == named("G1", retries=3)[0]
        with pytest.raises(RefusedError, match="there are 3 groups"):
            table.find_or_make("G4", auto_create=True)

    run_simulated(main(), loop)


def test_one_connection_has_its_share_of_the_groups() -> None:
    with closing(SimulatedLoop()) as loop:
        limits = opened(loop, SimulatedDisk(), groups_max=100_000).budget.limits
    assert (limits.total, limits.address, limits.connection) == (100_000, 50_000, 100_000)
