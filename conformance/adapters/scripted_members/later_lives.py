"""Scripts for a member whose disk is slow, and for one with an event log."""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.scripted_members.scripted_group import (
    APPEND,
    BEAT,
    PUSH,
    TRANSFER,
    VOTE,
    Followers,
    Lives,
    ScriptedGroup,
    entry,
    push,
)


async def _replaced(group: ScriptedGroup) -> None:
    """A later leader replaces durable entries while the disk is slow: the new ones are not durable yet."""
    ask = group.ask
    later: dict[str, Any] = {"localId": "n2", "leaderId": "n2"}
    group.heading("durable entries of one leader")
    for _ in range(2):
        await ask(BEAT, 5)
    bodies = (b"a", b"b", b"c")
    old = [entry(at, 5, 49 * at, body) for at, body in enumerate(bodies)]
    await ask(PUSH, 5, **push("APPEND", -1, 0, old, commitIndex=0))
    for number, term in enumerate((6, 7)):
        leader = later if term == 6 else {}
        for _ in range(2):
            await ask(BEAT, term, **leader)
        group.heading(f"the leader of term {term} replaces them while the disk is slow")
        new = [entry(at, term, 49 * at, body) for at, body in enumerate(bodies)][1:]
        group.fsync.hold()
        await ask(PUSH, term, **leader, **push("COMPARE", 0, 5))
        waiting = [
            group.begin(PUSH, term, **leader, **push("APPEND", 0, 5, new[: 2 - number], commitIndex=0)),
            group.begin(PUSH, term, **leader, **push("APPEND", 2 - number, term, commitIndex=0)),
        ]
        await asyncio.sleep(0.3)
        group.heading("the disk is synced")
        group.fsync.release()
        await asyncio.gather(*waiting)


async def _logged(group: ScriptedGroup) -> None:
    """Each kind of event of a member; see docs/reference/protocol/event-log.md."""
    ask, followers = group.ask, Followers()
    group.heading("the log of a voter and follower")
    await ask(VOTE, 2, ledgerEndIndex=-1, ledgerEndTerm=0)
    await ask(VOTE, 2, ledgerEndIndex=-1, ledgerEndTerm=0)
    await ask(VOTE, 2, "n2", ledgerEndIndex=-1, ledgerEndTerm=0)
    await ask(BEAT, 2)
    first, second = entry(0, 2, 0, b"a", magic=2), entry(1, 2, 49, b"b")
    await ask(PUSH, 2, **push("APPEND", -1, 0, [first, second], commitIndex=0))
    await asyncio.sleep(0.1)
    group.heading("the log when another leader replaces an entry")
    for _ in range(2):
        await ask(BEAT, 3, "n2")
    await ask(PUSH, 3, "n2", **push("APPEND", 0, 2, [entry(1, 3, 49, b"c")], commitIndex=0))
    await ask(PUSH, 3, "n2", **push("COMMIT", 1, 3, commitIndex=1))
    group.heading("the log of a leader, whose clients get answers")
    followers.ends = {"n1": 1, "n2": 1}
    group.script = followers.answer
    await asyncio.sleep(8.5)
    await ask(APPEND, -1, "c", body="eA==")
    await ask(APPEND, -1, "c", body="eXk=")
    group.take(2)
    await asyncio.sleep(0.1)
    group.heading("the log of a leadership that ends")
    followers.instead[TRANSFER] = [{"code": 200}]
    await ask(TRANSFER, -1, "c", timeout_s=4.0, transferId="n0", transfereeId="n1")
    await ask(BEAT, 5)
    await ask(BEAT, 5)
    group.heading("the log of a start")
    group.kill_member()
    await group.start_member()
    await ask(BEAT, 6)


LIVES: Final[Lives] = ((_replaced, {}), (_logged, {"has_log": True}))
"""The scripts, each with the configuration of its member."""
