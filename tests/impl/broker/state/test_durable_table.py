"""Tests tables in files: durability, versions, and the `.bak` files of released brokers.

Source: docs/reference/protocol/storing.md, "Configuration files".
"""

import asyncio

import pytest

from mqproof.impl.broker.state.durable_table import DurableTable, read_config
from mqproof.impl.remoting.bodies import SubscriptionGroup, SubscriptionGroups
from mqproof.impl.runtime.disk import read_whole
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.errors import StoreError

PATH = "/store/config/subscriptionGroup.json"
ONE = SubscriptionGroup(group_name="one")
TWO = SubscriptionGroup(group_name="two")
GOOD = b'{"dataVersion":{},"subscriptionGroupTable":{"one":{"groupName":"one"}}}'


def table(loop: SimulatedLoop, disk: SimulatedDisk) -> DurableTable[SubscriptionGroup]:
    return DurableTable(PATH, simulated(loop, SimulatedNetwork(), disk=disk), SubscriptionGroups)


def on_disk(disk: SimulatedDisk) -> set[str]:
    stored = read_config(disk, PATH, SubscriptionGroups)
    return set(stored.subscription_group_table) if stored else set()


def put(disk: SimulatedDisk, path: str, data: bytes) -> None:
    disk.create(path, len(data)).write(0, data)


def test_a_change_takes_effect_only_when_it_is_durable() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        groups = table(loop, disk)
        changing = asyncio.create_task(groups.change({"one": ONE}))
        await asyncio.sleep(0)
        assert (groups.get("one"), groups.version.counter) == (None, 0)
        await changing
        disk.lose_power()
        assert groups.get("one") == ONE
        assert on_disk(disk) == {"one"}

    run_simulated(main(), loop)


def test_concurrent_changes_are_written_together_and_fail_together() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()
    writes = 0

    def count(step: Step) -> None:
        nonlocal writes
        writes += step.kind == "replace" and not step.path.endswith(".bak")

    def refuse(step: Step) -> None:
        raise OSError("injected")

    async def main() -> None:
        groups = table(loop, disk)
        disk.on_step = count
        names = [f"g{number}" for number in range(50)]
        await asyncio.gather(*(groups.change({name: ONE}) for name in names))
        assert set(groups.values()) == on_disk(disk) == set(names)
        assert writes <= 2
        disk.on_step = refuse
        changes = [groups.change({name: None}) for name in names]
        outcomes = await asyncio.gather(*changes, return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["injected"] * 50
        disk.on_step = None
        assert set(groups.values()) == set(names)
        await groups.change({"g0": None})
        assert len(groups) == len(on_disk(disk)) == 49

    run_simulated(main(), loop)


def test_an_entry_added_during_a_change_is_not_lost() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        groups = table(loop, disk)
        changing = asyncio.create_task(groups.change({"one": ONE}))
        await asyncio.sleep(0)
        groups.add_now({"two": TWO})
        await changing
        assert groups.values() == {"one": ONE, "two": TWO}
        await groups.persist()
        assert on_disk(disk) == {"one", "two"}
        data = read_whole(disk, PATH)
        await groups.persist()
        assert read_whole(disk, PATH) == data

    run_simulated(main(), loop)


def test_a_failed_change_changes_nothing_and_other_changes_are_still_written() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    def refuse(step: Step) -> None:
        raise OSError("injected")

    async def main() -> None:
        groups = table(loop, disk)
        groups.add_now({"two": TWO})
        version = groups.version
        disk.on_step = refuse
        with pytest.raises(OSError, match="injected"):
            await groups.change({"one": ONE, "two": None})
        with pytest.raises(OSError, match="injected"):
            await groups.persist()
        disk.on_step = None
        assert (groups.values(), groups.version) == ({"two": TWO}, version)
        await groups.persist()
        assert on_disk(disk) == {"two"}

    run_simulated(main(), loop)


@pytest.mark.parametrize("broken", [None, b"", b" \n", b"{x}", GOOD[:20]])
def test_the_backup_is_read_if_the_file_is_missing_empty_or_broken(broken: bytes | None) -> None:
    disk = SimulatedDisk()
    if broken is not None:
        put(disk, PATH, broken)
    put(disk, f"{PATH}.bak", GOOD)
    assert on_disk(disk) == {"one"}


@pytest.mark.parametrize(("data", "bak"), [(b"{x}", None), (None, b"{x}"), (b"{x}", b"{y}"), (b"", b"{y}")])
def test_a_broken_file_without_a_good_backup_is_refused(data: bytes | None, bak: bytes | None) -> None:
    disk = SimulatedDisk()
    for path, content in ((PATH, data), (f"{PATH}.bak", bak)):
        if content is not None:
            put(disk, path, content)
    with pytest.raises(StoreError, match="subscriptionGroup"):
        on_disk(disk)


def test_without_files_the_table_is_empty() -> None:
    assert on_disk(SimulatedDisk()) == set()


def test_a_cancelled_write_is_made_up_by_the_next_one() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        groups = table(loop, disk)
        groups.add_now({"one": ONE})
        periodic = asyncio.create_task(groups.persist())
        await asyncio.sleep(0)
        periodic.cancel()
        await asyncio.wait([periodic])
        assert on_disk(disk) == set()
        await groups.persist()
        assert on_disk(disk) == {"one"}

    run_simulated(main(), loop)


def test_an_immediate_write_has_the_version_and_the_values_and_is_made_once() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        groups = table(loop, disk)
        groups.persist_now()
        assert not disk.exists(PATH), "nothing has changed"
        groups.add_now({"one": ONE})
        groups.add_now({})
        groups.add_now({"two": TWO})
        groups.persist_now()
        stored = read_config(disk, PATH, SubscriptionGroups)
        assert stored == SubscriptionGroups(groups.version, {"one": ONE, "two": TWO})
        assert groups.version.counter == 2
        disk.lose(PATH)
        groups.persist_now()
        assert not disk.exists(PATH)
        groups.write_at_next_persist()
        groups.persist_now()
        assert on_disk(disk) == {"one", "two"}

    run_simulated(main(), loop)


def test_the_length_counts_changes_that_are_not_written_yet() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> list[int]:
        groups = table(loop, disk)
        groups.add_now({"zero": ONE})
        lengths = [len(groups)]
        changes = []
        for name in ("one", "two", "three"):
            changes.append(asyncio.create_task(groups.change({name: ONE})))
            await asyncio.sleep(0)
            lengths.append(len(groups))
        await asyncio.gather(*changes)
        return [*lengths, len(groups)]

    assert run_simulated(main(), loop) == [1, 2, 3, 4, 4]


def test_the_file_has_only_ascii_characters() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        groups = table(loop, disk)
        groups.add_now({"gr\u00fcn": ONE})
        await groups.persist()
        assert read_whole(disk, PATH).isascii()
        assert on_disk(disk) == {"gr\u00fcn"}

    run_simulated(main(), loop)
