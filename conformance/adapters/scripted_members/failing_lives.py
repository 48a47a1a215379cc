"""Scripts for a member whose disk fails or is slow. `failing_lives.txt` has what the member sends.

See docs/reference/protocol/dledger.md, "Votes" and "Heartbeats and pushes".
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.scripted_members.scripted_group import (
    APPEND,
    BEAT,
    GET,
    METADATA,
    PUSH,
    TRANSFER,
    VOTE,
    Followers,
    Lives,
    ScriptedGroup,
    entry,
    push,
    silent,
)
from mqproof.impl.runtime.simulated_disk import Step

EXPECTED: Final = Path(__file__).with_suffix(".txt")
_BALLOT: Final = "currterm"
_NOTHING_SENT_S: Final = 9.0
"""Longer than any wait of a member."""


@contextmanager
def _failing(group: ScriptedGroup, kind: str, part: str) -> Iterator[None]:
    """Let each operation of a kind fail on files whose paths contain a text."""

    def on_step(step: Step) -> None:
        if step.kind == kind and part in step.path:
            raise OSError(f"the {kind} fails")

    def on_read(path: str) -> None:
        if part in path:
            raise OSError("the read fails")

    disk = group.disk
    if kind == "read":
        disk.on_read = on_read
    else:
        disk.on_step = on_step
    try:
        yield
    finally:
        disk.on_step = disk.on_read = None


async def _shown(group: ScriptedGroup) -> None:
    """Send each request to a member whose disk has failed; it sends nothing any more."""
    ask = group.ask
    await ask(METADATA, -1, "c")
    await ask(GET, -1, "c", beginIndex=0)
    await ask(APPEND, -1, "c", body="eA==")
    group.take(1)
    await ask(BEAT, 50, "n2")
    await ask(VOTE, 50, "n2", ledgerEndIndex=99, ledgerEndTerm=50)
    await ask(PUSH, 50, "n2", **push("COMPARE", 0, 5))
    await ask(TRANSFER, -1, "c", transferId="n0", transfereeId="n1")
    await asyncio.sleep(_NOTHING_SENT_S)


async def _again(group: ScriptedGroup) -> None:
    """Start the process again; the files have what was durable, and perhaps more."""
    group.script = silent
    group.kill_member()
    await group.start_member()
    await look(group)


async def look(group: ScriptedGroup) -> None:
    """Ask for the end of the log on a new connection."""
    await group.ask(METADATA, -1, "c")
    await group.ask(PUSH, 0, **push("COMPARE", 0, 0))


async def _failed_ballots(group: ScriptedGroup) -> None:
    """The ballot cannot be written: when a term is entered, in a vote, in a candidacy, and in a start."""
    for kind, part in (("create", _BALLOT), ("write", _BALLOT), ("sync", _BALLOT), ("replace", _BALLOT),
                       ("sync_directory", "dledger-n0")):  # fmt: skip
        group.heading(f"a heartbeat of a later term, and the {kind} of the ballot fails")
        with _failing(group, kind, part):
            await group.ask(BEAT, 5)
            await _shown(group)
        await _again(group)
    group.heading("a vote, and the write of the ballot fails")
    for _ in range(2):
        await group.ask(BEAT, 60)
    await group.ask(VOTE, 61, ledgerEndIndex=-1, ledgerEndTerm=0)
    with _failing(group, "write", _BALLOT):
        await group.ask(VOTE, 61, ledgerEndIndex=-1, ledgerEndTerm=0)
        await _shown(group)
    await _again(group)
    group.heading("its time to be a candidate comes, and the write of the ballot fails")
    with _failing(group, "write", _BALLOT):
        await asyncio.sleep(1.1)
        await _shown(group)
    group.heading("the ballot cannot be written in a start")
    group.kill_member()
    with _failing(group, "write", _BALLOT):
        await group.start_member()
    await group.start_member()
    await look(group)


async def _failed_follower(group: ScriptedGroup) -> None:
    """The ledger of a follower cannot be written, synced, or cut; the entries of a sync that failed last."""
    for number, (kind, part) in enumerate((("write", "/data/"), ("sync", "/data/"), ("create", "/data/"))):
        leader, term = f"n{1 + number % 2}", 5 + number
        group.heading(f"a push, and the {kind} of the ledger fails")
        for _ in range(2):
            await group.ask(BEAT, term, leader)
        before = {0: (-1, 0), 1: (-1, 0), 2: (0, 6)}[number]
        body = b"x" * (8100 if kind == "create" else 10)
        pos = {0: 0, 1: 0, 2: 8192}[number]
        item = entry(before[0] + 1, term, pos, body)
        with _failing(group, kind, part):
            await group.ask(PUSH, term, leader, **push("APPEND", *before, [item]))
            await _shown(group)
        await _again(group)
        if kind == "sync":
            group.heading("the power fails after a start behind a sync that failed")
            group.kill_member(power=True)
            await group.start_member()
            await look(group)
    group.heading("another leader replaces an entry, and the cut fails")
    for _ in range(2):
        await group.ask(BEAT, 70)
    await group.ask(PUSH, 70, **push("APPEND", 0, 6, [entry(1, 70, 58, b"a"), entry(2, 70, 107, b"b")]))
    for _ in range(2):
        await group.ask(BEAT, 71, "n2")
    with _failing(group, "sync", "/data/"):
        await group.ask(PUSH, 71, "n2", **push("APPEND", 1, 70, [entry(2, 71, 107, b"c")]))
        await _shown(group)
    await _again(group)


async def _failed_leader(group: ScriptedGroup) -> None:
    """The ledger of a leader cannot be written, synced or read while clients wait."""
    for kind, part in (("write", "/data/"), ("sync", "/data/")):
        followers = Followers()
        followers.ends = {"n1": 99, "n2": 99}
        group.heading(f"a leader with a client that waits, and the {kind} of the ledger fails")
        group.script = followers.answer
        await asyncio.sleep(2.2)
        followers.away = {"n1", "n2"}
        waiting = group.begin(APPEND, -1, body="eA==")
        await asyncio.sleep(0.1)
        group.take(2)
        with _failing(group, kind, part):
            await group.ask(APPEND, -1, "c", body="eQ==")
            await waiting
            await _shown(group)
        await _again(group)
    group.heading("a leader sends entries that it must read, and the read fails")
    followers = Followers()
    followers.ends = {"n1": -1, "n2": 99}
    with _failing(group, "read", "/data/"):
        group.script = followers.answer
        await asyncio.sleep(2.2)
        await _shown(group)
    await _again(group)
    group.heading("a stop in which the index cannot be written")
    group.script = Followers().answer
    followers.ends = {"n1": 99, "n2": 99}
    group.script = followers.answer
    await asyncio.sleep(2.2)
    with _failing(group, "write", "/index/"):
        await group.stop_member()
    await group.start_member()


async def _slow_ballots(group: ScriptedGroup) -> None:
    """While a ballot is written, a member accepts nothing from clients and answers no member."""
    ask, followers = group.ask, Followers()
    group.script = followers.answer
    group.heading("the ballot of a first candidacy is written")
    group.fsync.hold()
    await asyncio.sleep(1.1)
    await ask(APPEND, -1, "c", body="eA==")
    await ask(TRANSFER, -1, "c", transferId="n0", transfereeId="n1")
    await ask(METADATA, -1, "c")
    group.take(1)
    beat = group.begin(BEAT, 1)
    await asyncio.sleep(0.2)
    group.heading("it is written")
    group.fsync.release()
    await beat
    await asyncio.sleep(1.3)
    group.heading("a leader whose successor's ballot is written")
    await ask(BEAT, 4)
    await ask(BEAT, 4)
    await asyncio.sleep(5.0)
    group.fsync.hold()
    waiting = [group.begin(VOTE, 5, ledgerEndIndex=99, ledgerEndTerm=4), group.begin(BEAT, 5)]
    await asyncio.sleep(0.2)
    await ask(APPEND, -1, "c", body="eA==")
    group.take(1)
    await ask(TRANSFER, -1, "c", transferId="n0", transfereeId="n1")
    await ask(GET, -1, "c", beginIndex=0)
    waiting += [group.begin(BEAT, 5), group.begin(PUSH, 5, **push("COMPARE", -1, 0))]
    await asyncio.sleep(3.1)
    group.heading("it is written after 3 s")
    group.fsync.release()
    await asyncio.gather(*waiting)


async def _alone_and_slow(group: ScriptedGroup) -> None:
    """The only member of a group appends nothing before the first entry of its term."""
    group.heading("one member, whose ballot is written")
    group.fsync.hold()
    await asyncio.sleep(1.1)
    group.take(1)
    await group.ask(APPEND, -1, "c", body="eA==")
    group.fsync.release()
    await asyncio.sleep(0.1)
    group.take(1)
    await asyncio.sleep(0.1)
    for index in range(3):
        await group.ask(GET, -1, "c", beginIndex=index)


LIVES: Final[Lives] = (
    (_failed_ballots, {}), (_failed_follower, {}), (_failed_leader, {}), (_slow_ballots, {}),
    (_alone_and_slow, {"members": 1}),
)  # fmt: skip
"""Disks that fail or are slow, each script with the configuration of its member."""
