"""Hand-written segments, and the store directories of released brokers."""

import asyncio
import tarfile
from pathlib import Path

from mqproof.impl.dledger import entry_format
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.entry_format import HEADER_BYTES
from mqproof.impl.dledger.ledger_store import LedgerStore
from mqproof.impl.dledger.rpc_bodies import NO_OP, NORMAL
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.disk import RealDisk
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.files import record
from mqproof.impl.store.results import PutStatus
from tests.impl.store.test_golden import CONFIG

GOLDEN = Path(__file__).parents[2] / "impl" / "store" / "golden"
BASE = 16384
"""Commit offset of the segment's first byte."""


def golden(name: str, folder: Path) -> Path:
    with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
        archive.extractall(folder / name, filter="data")
    return folder / name


def message(number: int, **properties: str) -> Message:
    return Message(
        "T" * (1 + number % 200),  # some too long for version 1
        b"b" * (number * 7 % 90),
        {"UNIQ_KEY": f"m_{number}", "KEYS": "k", "TAGS": "TagA", **properties},
        number % 3,
        born_host=("::1", 5) if number % 5 == 0 else ("10.0.0.1", 6),
        store_host=("fe80::2", 7) if number % 7 == 0 else ("10.0.0.2", 8),
        born_timestamp_ms=1_700_000_000_000 + number,
    )


def placed(one: Message, position: int, queue_offset: int = 0) -> bytes:
    encoded = record.encode(one)
    record.place(encoded, queue_offset, position, 1_700_000_000_500)
    return bytes(encoded)


def entry(index: int, position: int, one: Message | None) -> bytes:
    """Return an entry of a ledger; without a message, it is a no-op."""
    body = placed(one, position + HEADER_BYTES, index) if one else b""
    return entry_format.encode(entry_format.make(index, 1, NORMAL if one else NO_OP, position, body))


def ledger(messages: list[Message | None], size: int | None = None, *, full: bool = False) -> bytes:
    """Return a segment of a ledger; see `segment`."""
    data = b""
    for index, one in enumerate(messages):
        data += entry(index, BASE + len(data), one)
    if size is None:
        return data
    return (data + entry_format.filler(size - len(data)) if full else data).ljust(size, b"\0")


def segment(messages: list[Message], size: int | None = None, *, full: bool = False) -> bytes:
    """Return the records one after the other, then a filler or preallocated zeros up to `size`."""
    data = b""
    for number, one in enumerate(messages):
        data += placed(one, BASE + len(data), number)
    if size is None:
        return data
    return (data + record.filler(size - len(data)) if full else data).ljust(size, b"\0")


def write_member(folder: Path, count: int) -> None:
    """Write the store of the single member of a group that stored `count` messages and was stopped."""
    loop = SimulatedLoop()

    async def run_member() -> None:
        addresses = {"n0": Address("10.0.0.1", 40_911)}
        runtime = simulated(loop, SimulatedNetwork(), 1, RealDisk())
        store = LedgerStore(str(folder), CONFIG, GroupConfig("g", "n0", ("n0",)), addresses, runtime)
        store.load()
        await store.start()
        async with asyncio.timeout(60):
            while not store.leads:
                await asyncio.sleep(0.1)
        for number in range(count):
            put = await store.put(message(number))
            assert put.status is PutStatus.PUT_OK
        await store.stop()

    run_simulated(run_member(), loop)
