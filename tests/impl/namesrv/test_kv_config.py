"""Tests the key-value configuration alone:

its file and its limits. Source: docs/reference/protocol/name-server.md, "Administration of a name server".
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mqproof.impl.namesrv import kv_config
from mqproof.impl.namesrv.kv_config import KvConfig, KvFullError
from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

PATH = "/namesrv/kvConfig.json"


def play(scenario: Callable[[KvConfig], Awaitable[None]], disk: SimulatedDisk | None = None) -> SimulatedDisk:
    """Run a scenario on the given disk content. Returns the disk."""
    loop = SimulatedLoop()
    disk = disk or SimulatedDisk()

    async def main() -> None:
        kv = KvConfig(PATH, simulated(loop, SimulatedNetwork(), disk=disk))
        kv.load()
        await scenario(kv)

    run_simulated(main(), loop)
    return disk


async def put_one(kv: KvConfig) -> None:
    await kv.put("ORDER_TOPIC_CONFIG", "T", "b-a:4")


def test_the_file_has_the_format_of_rocketmq() -> None:
    assert read_whole(play(put_one), PATH) == b'{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"b-a:4"}}}'


def test_no_file_is_written_before_there_is_an_entry() -> None:
    async def nothing(kv: KvConfig) -> None:
        await kv.delete("N", "k")

    assert not play(nothing).exists(PATH)


def test_concurrent_changes_are_all_kept() -> None:
    async def change(kv: KvConfig) -> None:
        await kv.put("N", "0", "old")
        await asyncio.gather(
            *(kv.put("N", str(number), "new") for number in range(1, 5)), kv.delete("N", "0")
        )
        assert kv.namespace("N") == dict.fromkeys("1234", "new")

    assert read_whole(play(change), PATH).count(b'"new"') == 4


def test_deleting_the_last_key_deletes_its_namespace() -> None:
    async def delete(kv: KvConfig) -> None:
        await kv.delete("ORDER_TOPIC_CONFIG", "T")
        assert kv.namespace("ORDER_TOPIC_CONFIG") is None

    assert read_whole(play(delete, play(put_one)), PATH) == b'{"configTable":{}}'


def test_an_invalid_file_is_refused_by_name() -> None:
    disk = SimulatedDisk()
    write_durably(disk, PATH, b'{"configTable":7}')
    with pytest.raises(ConfigError, match=PATH):
        play(put_one, disk)


@pytest.mark.parametrize(("entries_max", "characters_max"), [(1, 1000), (10, 30)])
def test_the_size_of_the_configuration_is_limited(
    monkeypatch: pytest.MonkeyPatch, entries_max: int, characters_max: int
) -> None:
    monkeypatch.setattr(kv_config, "ENTRIES_MAX", entries_max)
    monkeypatch.setattr(kv_config, "CHARACTERS_MAX", characters_max)

    async def scenario(kv: KvConfig) -> None:
        await put_one(kv)
        with pytest.raises(KvFullError):
            await kv.put("N", "k", "12345678")
        assert kv.namespace("N") is None
        await kv.put("ORDER_TOPIC_CONFIG", "T", "b-a:5")  # existing entries can still be changed

    play(scenario)
