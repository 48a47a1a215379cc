"""Scripts for a DLedger member as follower and as leader; compares what it sends with what is expected.

Times are not compared. `lives.txt` has every message that the member sends; a change of the protocol
changes it.
"""

import asyncio
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Final

from mqproof.conformance.adapters.scripted_members import more_lives
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
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from mqproof.impl.store.errors import StoreError

EXPECTED: Final = Path(__file__).with_suffix(".txt")
_APPENDED, _COMPARED, _COMMITTED, _TRUNCATED = ("APPEND", "COMPARE", "COMMIT", "TRUNCATE")
_FAR: Final = 1 << 40
_RAISED: Final = (StoreError, OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError)
"""What wrong code raises in the scripts, which call the member as its broker does."""
_LATE: Final = (1 << 24) + 2
"""The latest term that a new member enters: it is as far from its own as the limit allows."""


async def lived(loop: SimulatedLoop, lives: Lives) -> list[str]:
    """Run scripts in a loop, each with a member of its own, and return what the members send."""
    found: list[str] = []
    for life, config in lives:
        group = ScriptedGroup(loop, **config)
        await group.start()
        try:
            await life(group)
            await group.stop_member()
        except _RAISED as error:
            group.note(f"n0 raises {error!r}")
        finally:
            await group.stop()
        found += group.lines
    return found


def differences(observed: list[str], file: Path = EXPECTED) -> Iterator[str]:
    """Yield the lines that differ from the expected ones, with the expected ones."""
    heading = ""
    for line, expected in zip_longest(observed, file.read_text(encoding="utf-8").splitlines()):
        heading = expected if expected and expected.startswith("#") else heading
        if line != expected:
            yield f"{heading.lstrip('# ')}: the member sends {line}; expected {expected}"


async def _as_follower(group: ScriptedGroup) -> None:
    ask = group.ask
    group.heading("a heartbeat of a later term, twice")
    await ask(BEAT, 5)
    await ask(BEAT, 5)
    group.heading("heartbeats of an earlier term, of a second leader, and of strangers")
    await ask(BEAT, 4)
    await ask(BEAT, 5, "n2")
    await ask(BEAT, 5, group="h")
    await ask(BEAT, 5, remoteId="n1")
    await ask(BEAT, 5, "n9")
    await ask(BEAT, 5, "n0")
    await ask(BEAT, 5 + (1 << 24) + 1)
    await ask(BEAT, -2)
    await _entries(group)


async def _entries(group: ScriptedGroup) -> None:
    ask = group.ask
    group.heading("clients at a follower")
    await ask(METADATA, -1, "c")
    await ask(APPEND, -1, "c", body="eA==")
    await ask(GET, -1, "c", beginIndex=0)
    await ask(TRANSFER, 5, "c", transferId="n0", transfereeId="n1")
    group.heading("comparisons and entries")
    first, second = entry(0, 3, 0, b"a"), entry(1, 3, 49, b"bc")
    third, fourth = entry(2, 5, 99, magic=2), entry(3, 5, 147, b"d")
    await ask(PUSH, 5, **push(_COMPARED, 2, 5))
    await ask(PUSH, 5, **push(_COMPARED, -1, 0))
    await ask(PUSH, 5, **push(_APPENDED, -1, 0, [first, second]))
    await ask(PUSH, 5, **push(_APPENDED, -1, 0, [first, second]))
    await ask(PUSH, 5, **push(_COMPARED, 1, 4))
    await ask(PUSH, 5, **push(_COMPARED, 0, 4))
    await ask(PUSH, 5, **push(_COMPARED, 1, 3))
    early = group.begin(PUSH, 5, **push(_APPENDED, 2, 5, [fourth]))
    await asyncio.sleep(0.1)
    group.heading("an entry before the one that came early")
    await ask(PUSH, 5, **push(_APPENDED, 1, 3, [third], commitIndex=1, keptByAll=0))
    await early
    await _refused_pushes(group)


async def _refused_pushes(group: ScriptedGroup) -> None:
    ask = group.ask
    group.heading("pushes that are refused")
    await ask(PUSH, 4, **push(_APPENDED, 3, 5))
    await ask(PUSH, 6, **push(_APPENDED, 3, 5))
    await ask(PUSH, 5, "n2", **push(_APPENDED, 3, 5))
    await ask(PUSH, 5, **push(_TRUNCATED, 3, 5))
    await ask(PUSH, 5, **push(_APPENDED, 3, 5, [entry(5, 5, 196, b"e")]))
    await ask(PUSH, 5, **push(_APPENDED, 3, 5, [entry(4, 4, 196, b"e")]))
    await ask(PUSH, 5, **push(_APPENDED, 3, 5, [entry(4, 6, 196, b"e")]))
    await ask(PUSH, 5, **push(_APPENDED, 3, 5, [entry(4, 5, 196, b"e"), entry(6, 5, 245, b"f")]))
    await ask(PUSH, 5, **push(_APPENDED, 3, 5, [entry(4, 5, 100, b"e")]))
    await ask(PUSH, 5, **push(_APPENDED, 3, 5, [entry(4, 5, 196, b"e", size=48)]))
    await ask(PUSH, 5, **push(_APPENDED, 0, 3, [entry(1, 5, 49, b"x")]))
    await ask(PUSH, 5, **push(_APPENDED, -1, 0, [entry(0, 5, 0, b"x", magic=3)]))
    await _replaced_entries(group)


async def _replaced_entries(group: ScriptedGroup) -> None:
    ask = group.ask
    group.heading("a commit, then the leader of a later term replaces the last entry")
    await ask(PUSH, 5, **push(_COMMITTED, 3, 5, commitIndex=2, keptByAll=1))
    await ask(BEAT, 7, "n2")
    await ask(BEAT, 7, "n2")
    await ask(PUSH, 7, "n2", **push(_COMPARED, 3, 6))
    await ask(PUSH, 7, "n2", **push(_COMPARED, 2, 5, commitIndex=9))
    await ask(PUSH, 7, "n2", **push(_APPENDED, 2, 5, [entry(3, 7, 147, b"yy")]))
    await ask(PUSH, 7, "n2", **push(_APPENDED, 1, 3, [entry(2, 7, 99, b"z")]))
    group.heading("after a restart")
    group.kill_member()
    await group.start_member()
    await ask(METADATA, -1, "c")
    await ask(PUSH, 0, **push(_COMPARED, 0, 0))
    await ask(VOTE, 7, ledgerEndIndex=_FAR, ledgerEndTerm=7)
    await ask(BEAT, 8, "n2")
    await ask(BEAT, 8, "n2")
    await ask(PUSH, 8, "n2", **push(_COMPARED, 3, 7))


async def _at_limits(group: ScriptedGroup) -> None:
    ask = group.ask
    group.heading("values at their limits and one beyond")
    for term in (1 << 62, (1 << 62) + 1, 1 << 24, (1 << 24) + 1, (1 << 24) + 2):
        await ask(BEAT, term)
    for name in ("g" * 255, "g" * 256):
        await ask(BEAT, 1, group=name)
    for code in (-1, -2, (1 << 31) - 1, 1 << 31):
        await ask(BEAT, 1, code=code)
    for index in (-1, -2, 1 << 56, (1 << 56) + 1):
        await ask(VOTE, 1, ledgerEndIndex=index, ledgerEndTerm=1)
    await ask(BEAT, _LATE)
    for end in (1 << 56, (1 << 56) + 1):
        await ask(PUSH, _LATE, **push(_COMPARED, end, 1))
        await ask(PUSH, _LATE, **push(_COMMITTED, -1, 0, commitIndex=end, keptByAll=end - 1))
    for more in (
        {"magic": 0}, {"magic": 3}, {"size": 47}, {"index": -1}, {"term": 0}, {"pos": -1},
        {"pos": (1 << 62) + 1}, {"channel": -(1 << 31) - 1}, {"chainCrc": 1 << 31}, {"bodyCrc": 1 << 31},
        {"chainCrc": 7},
        {"channel": (1 << 31) - 1, "bodyCrc": -(1 << 31)},
    ):  # fmt: skip
        await ask(PUSH, _LATE, **push(_APPENDED, -1, 0, [{**entry(0, 1, 0, b"a"), **more}]))


async def _as_voter(group: ScriptedGroup) -> None:
    ask = group.ask
    group.heading("votes: a later term, a vote, another candidate, the same one again")
    await ask(VOTE, 3, ledgerEndIndex=-1, ledgerEndTerm=0)
    await ask(VOTE, 3, ledgerEndIndex=-1, ledgerEndTerm=0)
    await ask(VOTE, 3, "n2", ledgerEndIndex=5, ledgerEndTerm=2)
    await ask(VOTE, 3, ledgerEndIndex=0, ledgerEndTerm=1)
    await ask(VOTE, 2, "n2", ledgerEndIndex=5, ledgerEndTerm=2)
    group.heading("votes of strangers")
    await ask(VOTE, 3, "n9")
    await ask(VOTE, 3, group="h")
    await ask(VOTE, 3, "n0")
    await ask(VOTE, 3, remoteId="n2")
    await _votes_with_a_log(group)


async def _votes_with_a_log(group: ScriptedGroup) -> None:
    ask = group.ask
    group.heading("votes while a leader is known, and with a log")
    await ask(BEAT, 3)
    await ask(PUSH, 3, **push(_APPENDED, -1, 0, [entry(0, 1, 0, b"a"), entry(1, 3, 49, b"b")]))
    await ask(VOTE, 3, "n2", ledgerEndIndex=1, ledgerEndTerm=3)
    await ask(VOTE, 4, "n2", ledgerEndIndex=9, ledgerEndTerm=2)
    await ask(VOTE, 4, "n2", ledgerEndIndex=0, ledgerEndTerm=3)
    await ask(VOTE, 4, "n2", timeout_s=0.25, ledgerEndIndex=1, ledgerEndTerm=3)
    for _ in range(2):
        await ask(VOTE, 4, "n2", leaderId="n1", ledgerEndIndex=1, ledgerEndTerm=3)
    await ask(PUSH, 4, "n2", **push(_COMPARED, 1, 3))
    group.heading("a vote is kept over a restart")
    group.kill_member()
    await group.start_member()
    await ask(VOTE, 4, "n1", ledgerEndIndex=1, ledgerEndTerm=3)
    await ask(VOTE, 4, "n2", ledgerEndIndex=1, ledgerEndTerm=3)


async def _as_leader(group: ScriptedGroup) -> None:
    ask, followers = group.ask, Followers()
    group.heading("an election, and the entry that starts the term")
    group.script = followers.answer
    await asyncio.sleep(1.5)
    group.heading("entries of a client")
    await ask(APPEND, -1, "c", body="eA==")
    await ask(GET, -1, "c", beginIndex=1)
    await ask(GET, -1, "c", beginIndex=2)
    await ask(GET, -1, "c", beginIndex=-1)
    await ask(METADATA, -1, "c")
    group.heading("an idle follower learns the commit; then one member is away")
    await asyncio.sleep(1.2)
    followers.away = {"n2"}
    await ask(APPEND, -1, "c", body="eXk=")
    await ask(PUSH, 1, **push(_COMPARED, 0, 1))
    await ask(BEAT, 1)
    await ask(VOTE, 1, ledgerEndIndex=_FAR, ledgerEndTerm=1)
    group.heading("the member is back without entries")
    followers.away, followers.ends["n2"] = set(), -1
    await asyncio.sleep(1.2)
    group.heading("no member has the entry")
    followers.away = {"n1", "n2"}
    await ask(APPEND, -1, "c", timeout_s=4.0, body="eg==")
    followers.away = set()
    await asyncio.sleep(1.2)
    group.heading("a transfer that fails, and one that ends the leadership")
    followers.instead[TRANSFER] = [{"code": 418}] * 9
    await ask(TRANSFER, 1, "c", transferId="n0", transfereeId="n9")
    await ask(TRANSFER, 1, "c", timeout_s=4.0, transferId="n0", transfereeId="n1")
    await ask(APPEND, -1, "c", body="Zg==")
    followers.instead[BEAT] = [{"code": 409, "leaderId": "n1"}] * 9
    followers.instead[VOTE] = [{"voteResult": "REJECT_ALREADY_VOTED"}] * 9
    await asyncio.sleep(2.1)
    group.script = silent
    await ask(APPEND, -1, "c", body="Zg==")
    await ask(GET, -1, "c", beginIndex=1)


async def _as_successor(group: ScriptedGroup) -> None:
    """The member was a follower with entries of several terms, and leads after its leader fell silent."""
    ask, followers = group.ask, Followers()
    group.heading("a log of two terms, then the leader is silent")
    await ask(BEAT, 3)
    await ask(BEAT, 3)
    log = [entry(0, 1, 0, b"a"), entry(1, 1, 49, b"b"), entry(2, 3, 98, b"c"), entry(3, 3, 147, b"d")]
    await ask(PUSH, 3, **push(_APPENDED, -1, 0, log, commitIndex=1))
    group.script = followers.answer
    followers.ends["n1"] = 0
    followers.instead[PUSH] = [{"code": 406, "endIndex": 3, "xTerm": 2, "xIndex": 1}]
    await asyncio.sleep(7.2)
    group.heading("the logs agree after the conflict")
    await asyncio.sleep(1.2)
    await ask(GET, -1, "c", beginIndex=4)
    group.heading("followers that are not ready, and one of a later term")
    followers.instead[BEAT] = [{"code": 416, "leaderId": None}] * 2
    followers.instead[BEAT].append({"code": 403, "term": 9, "leaderId": "n2"})
    followers.away = {"n2"}
    followers.instead[VOTE] = [{"voteResult": "REJECT_SMALL_LEDGER_END_INDEX"}] * 9
    await asyncio.sleep(4.5)
    await ask(METADATA, -1, "c")


async def _as_chosen_one(group: ScriptedGroup) -> None:
    """The leader transfers its leadership to the member."""
    ask, followers = group.ask, Followers()
    group.heading("a request to take over from a stranger, and one that waits for an entry in vain")
    await ask(BEAT, 2)
    await ask(BEAT, 2)
    await ask(TRANSFER, 2, "n2", transferId="n2", transfereeId="n0")
    await ask(TRANSFER, 2, timeout_s=4.0, transferId="n1", transfereeId="n0", takeLeadershipLedgerIndex=1)
    group.heading("a request to take over that waits for an entry, then leads")
    chosen = group.begin(TRANSFER, 2, transferId="n1", transfereeId="n0", takeLeadershipLedgerIndex=0)
    await asyncio.sleep(0.1)
    group.script = followers.answer
    await ask(PUSH, 2, **push(_APPENDED, -1, 0, [entry(0, 2, 0, magic=2)]))
    await chosen
    await asyncio.sleep(0.5)
    group.heading("a leader that stands still is asked for a vote of a later term")
    await ask(VOTE, 4, "n2", ledgerEndIndex=9, ledgerEndTerm=3)
    await ask(VOTE, 4, "n2", ledgerEndIndex=9, ledgerEndTerm=3)
    await ask(APPEND, -1, "c", body="eA==")


LIVES: Final[Lives] = (
    *(
        (each, {})
        for each in (_as_follower, _at_limits, _as_voter, _as_leader, _as_successor, _as_chosen_one)
    ),
    *more_lives.LIVES,
)
"""All scripts, each with the configuration of its member."""
