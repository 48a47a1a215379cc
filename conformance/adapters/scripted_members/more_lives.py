"""Scripts for a member whose fields are at their limits, whose log is long, and whose times are measured."""

import asyncio
from itertools import product
from typing import Any, Final

from mqproof.conformance.adapters.scripted_members import later_lives
from mqproof.conformance.adapters.scripted_members.ledger_files import LedgerFiles
from mqproof.conformance.adapters.scripted_members.scripted_group import (
    ABSENT,
    APPEND,
    BEAT,
    GET,
    METADATA,
    PUSH,
    TRANSFER,
    VOTE,
    Fields,
    Followers,
    Lives,
    ScriptedGroup,
    entry,
    push,
    silent,
    write_file,
)

_TERMS: Final = (-1, -2, 1 << 62, (1 << 62) + 1)
_INDEXES: Final = (-1, -2, 1 << 56, (1 << 56) + 1)
_COUNTS: Final = (0, -1, (1 << 31) - 1, 1 << 31)
_NAMES: Final = ("x" * 255, "x" * 256)
_NUMBERS: Final = (-(1 << 31), -(1 << 31) - 1, (1 << 31) - 1, 1 << 31)
_STRANGE: Final = (None, ABSENT, "2", 1.5)
_BATCH_MAX: Final = 10_000
_DIRECTORY: Final = "/store/dledger-n0"


async def _fields_at_limits(group: ScriptedGroup) -> None:
    ask = group.ask
    group.heading("each field at its limits, one beyond, null, absent, and of another type")
    await ask(BEAT, 2)
    await ask(BEAT, 2)
    compared, wrong = push("COMPARE", -1, 0), push("APPEND", -1, 0)
    fields: tuple[tuple[int, Fields, str, tuple[Any, ...]], ...] = (
        (BEAT, {}, "term", _TERMS[:2]), (BEAT, {}, "leaderId", _NAMES), (BEAT, {}, "localId", _NAMES),
        (BEAT, {}, "remoteId", _NAMES), (BEAT, {}, "group", (None, ABSENT)), (BEAT, {}, "term", _STRANGE),
        (BEAT, {}, "code", _STRANGE), (BEAT, {}, "leaderId", _STRANGE), (BEAT, {}, "localId", _STRANGE[:3]),
        (VOTE, {"ledgerEndIndex": 0}, "ledgerEndTerm", (*_TERMS, *_STRANGE)),
        (VOTE, {"ledgerEndTerm": 0}, "ledgerEndIndex", _STRANGE),
        (PUSH, compared, "preLogIndex", (*_INDEXES, *_STRANGE)),
        (PUSH, compared, "preLogTerm", (*_TERMS, *_STRANGE)),
        (PUSH, compared, "commitIndex", (*_INDEXES, *_STRANGE)),
        (PUSH, compared, "keptByAll", (*_INDEXES, *_STRANGE)),
        (PUSH, compared, "totalSize", (*_COUNTS, *_STRANGE)), (PUSH, compared, "count", (*_COUNTS, ABSENT)),
        (PUSH, wrong, "type", ("APPENDS", 7, None, ABSENT)), (PUSH, wrong, "batchEntry", (None, ABSENT, {})),
        (GET, {}, "beginIndex", (*_INDEXES, ABSENT)), (GET, {"beginIndex": 0}, "maxSize", (*_COUNTS, ABSENT)),
        (APPEND, {}, "body", (ABSENT, None, "?", "eA==")), (METADATA, {}, "leaderId", _NAMES),
        (TRANSFER, {"transferId": "n1", "transfereeId": "n0"}, "takeLeadershipLedgerIndex", _INDEXES[1:]),
        (TRANSFER, {"transferId": "n1"}, "transfereeId", (*_NAMES, *_STRANGE[:3])),
        (TRANSFER, {"transfereeId": "n0"}, "transferId", (*_NAMES, *_STRANGE[:3])),
    )  # fmt: skip
    for kind, others, name, values in fields:
        for value in values:
            sender = "n2" if kind == TRANSFER else "n1"
            await ask(kind, 2, sender, **{**others, name: value})
    await _entries_at_limits(group)
    group.heading("the most entries of a push, and one more")
    for count in (_BATCH_MAX, _BATCH_MAX + 1):
        await ask(PUSH, 2, **push("APPEND", -1, 0, [entry(1, 1, 48)] * count))


async def _entries_at_limits(group: ScriptedGroup) -> None:
    """No entry follows the one before it, so all that are valid are refused for that."""
    group.heading("each field of an entry at its limits and one beyond")
    fields: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("magic", (1, 2, 0, 3)), ("size", (48, 47, (1 << 31) - 1, 1 << 31)),
        ("index", (1 << 56, (1 << 56) + 1, -1)), ("term", (1, 0, 1 << 62, (1 << 62) + 1)),
        ("pos", (0, -1, 1 << 62, (1 << 62) + 1)), ("channel", (*_NUMBERS, *_STRANGE)),
        ("chainCrc", (*_NUMBERS, ABSENT)), ("bodyCrc", (*_NUMBERS, ABSENT)), ("body", (None, "?")),
    )  # fmt: skip
    for name, values in fields:
        for value in values:
            item = {key: each for key, each in {**entry(1, 1, 48), name: value}.items() if each is not ABSENT}
            await group.ask(PUSH, 2, **push("APPEND", -1, 0, [item], totalSize=48))


async def _early_pushes(group: ScriptedGroup) -> None:
    ask = group.ask
    group.heading("pushes that come early: of another term, at another place, instead of a committed entry")
    await ask(BEAT, 5)
    await ask(BEAT, 5)
    first, second, third = entry(0, 5, 0, b"a"), entry(1, 5, 49, b"b"), entry(2, 5, 98, b"c")
    await ask(PUSH, 5, **push("APPEND", 1, 4, [third]))
    await ask(PUSH, 5, **push("APPEND", 1, 5, [entry(2, 5, 99, b"c")]))
    await ask(PUSH, 5, **push("APPEND", -1, 0, [first, second], commitIndex=1))
    await ask(PUSH, 5, **push("COMPARE", 1, 5))
    early = [
        group.begin(PUSH, 5, **push("APPEND", 3, 5, [entry(4, 5, 196, b"e")])),
        group.begin(PUSH, 5, **push("APPEND", 2, 5, [entry(3, 5, 147, b"d")])),
    ]
    await asyncio.sleep(0.1)
    group.heading("two early pushes in the other order, then the one before them")
    await ask(PUSH, 5, **push("APPEND", 1, 5, [third], commitIndex=9))
    await asyncio.gather(*early)
    early = [group.begin(PUSH, 5, **push("APPEND", 5, 5, [entry(6, 5, 294, b"g")]))]
    await asyncio.sleep(0.1)
    group.heading("a comparison forgets an early push")
    await ask(PUSH, 5, **push("COMPARE", 4, 5))
    await ask(PUSH, 5, **push("APPEND", 4, 5, [entry(5, 5, 245, b"f")]))
    await asyncio.gather(*early)
    await ask(PUSH, 5, **push("APPEND", 5, 5, commitIndex=9, keptByAll=9))
    group.heading("a later leader must not replace committed entries")
    for _ in range(2):
        await ask(BEAT, 6, "n2")
    for at, term in ((3, 5), (4, 5), (5, 5)):
        item = entry(at + 1, 6, 49 * (at + 1), b"x")
        await ask(PUSH, 6, "n2", **push("APPEND", at, term, [item], commitIndex=9, keptByAll=4))
    await ask(PUSH, 6, "n2", **push("COMMIT", 6, 6, commitIndex=6, keptByAll=6))


async def _long_log(group: ScriptedGroup) -> None:
    """More entries than a push, a window, a transfer and the queue of a leader allow."""
    followers = Followers()
    group.heading("more entries than one push and one window have")
    group.script = followers.answer
    await asyncio.sleep(1.5)
    group.take(7)
    await asyncio.sleep(0.2)
    followers.away = {"n2"}
    group.take(1000)
    await asyncio.sleep(0.5)
    group.heading("a transfer to a member that lags by 1,000 entries, and by one more")
    followers.instead[TRANSFER] = [{"code": 418}]
    await group.ask(TRANSFER, 1, "c", timeout_s=4.0, transferId="n0", transfereeId="n2")
    group.take(1)
    await asyncio.sleep(0.2)
    await group.ask(TRANSFER, 1, "c", timeout_s=4.0, transferId="n0", transfereeId="n2")
    group.heading("as many entries as may wait for a quorum, and one more")
    group.script = silent
    group.take(_BATCH_MAX - 1)
    group.take(1)
    group.take(1)
    await group.ask(APPEND, -1, "c", body="eA==")
    await asyncio.sleep(3.0)


async def _oldest_deleted(group: ScriptedGroup) -> None:
    """The member starts with files whose first segments were deleted."""
    files = LedgerFiles(8192, 32768)
    for index in range(40):
        item = files.next(1 + index // 15, bytes(900))
        assert item is not None, "it fits a segment"
        files.items.append(item)
    files.begin = files.first_at(files.starts[2])
    await group.stop_member()
    for name, segments, size in (("data", files.data(), 8192), ("index", files.index(), 32768)):
        for start, content in segments.items():
            _write(group, f"{name}/{start:020d}", content.ljust(size, b"\0"))
    group.heading("a ledger without a vote, with an older vote, and with an unreadable one")
    texts = (
        None, "currTerm=2\n", "currTerm=x\n", "voteLeader=n1\n", f"currTerm={(1 << 62) + 1}\n",
        f"currTerm=3\nvoteLeader={'x' * 256}\n", f"currTerm={'9' * 5000}\n", "currTerm=-3\n",
    )  # fmt: skip
    for text in texts:
        if text is None:
            group.disk.lose(f"{_DIRECTORY}/currterm")
        else:
            _write(group, "currterm", text.encode())
        await group.start_member()
    _write(group, "currterm", b"# a comment\n!another\n currTerm = 3 \nvoteLeader=\nmore=1\n")
    await group.start_member()
    begin = files.begin
    await _follower_of_deleted(group, begin)
    await _leader_of_deleted(group, begin)


def _write(group: ScriptedGroup, path: str, content: bytes) -> None:
    write_file(group, f"{_DIRECTORY}/{path}", content)


async def _follower_of_deleted(group: ScriptedGroup, begin: int) -> None:
    ask = group.ask
    group.heading("a follower whose first entries were deleted")
    await ask(BEAT, 4)
    await ask(BEAT, 4)
    await ask(GET, -1, "c", beginIndex=begin - 1)
    for index, term in ((begin - 1, 1), (begin - 1, 9), (begin, 2), (begin, 1), (39, 3), (40, 3), (29, 2)):
        await ask(PUSH, 4, **push("COMPARE", index, term))
    for index in (begin, begin + 1):
        item = entry(index, 4, 8192 * 2 + 948 * (index - begin), b"x")
        await ask(PUSH, 4, **push("APPEND", index - 1, 2, [item]))


async def _leader_of_deleted(group: ScriptedGroup, begin: int) -> None:
    followers = Followers()
    group.heading("it leads, and one follower lacks entries that were deleted")
    followers.ends = {"n1": 39, "n2": 3}
    group.script = followers.answer
    await asyncio.sleep(9.0)
    for index in (0, begin - 1, begin, begin + 1, 99):
        await group.ask(GET, -1, "c", beginIndex=index)
    group.heading("the follower got the entries")
    followers.ends["n2"] = begin
    await asyncio.sleep(2.2)
    group.heading("an answer names an entry before the first one")
    followers.away = {"n2"}
    await asyncio.sleep(0.1)
    followers.instead[PUSH] = [{"code": 406, "endIndex": end, "xTerm": 1, "xIndex": x} for end, x in
                               ((39, 0), (begin, begin), (begin - 1, -1), (39, begin + 1))]  # fmt: skip
    await group.ask(APPEND, -1, "c", body="eA==", timeout_s=4.0)
    await asyncio.sleep(4.2)


async def _preferred(group: ScriptedGroup) -> None:
    """Another member should lead: n2, or n1 if n2 is away."""
    followers = Followers()
    group.heading("a leader that is not preferred transfers its leadership, first to the most preferred one")
    group.script = followers.answer
    followers.instead[TRANSFER] = [{"code": 418}] * 9
    await asyncio.sleep(3.6)
    group.heading("the most preferred one is away")
    followers.away = {"n2"}
    followers.instead[TRANSFER] = [{"code": 418}] * 9
    await asyncio.sleep(6.2)
    group.heading("a preferred one takes over")
    followers.instead[TRANSFER] = [{"code": 200}] * 3
    await asyncio.sleep(1.1)
    await group.ask(APPEND, -1, "c", body="eA==")
    await group.ask(BEAT, 2)
    await group.ask(BEAT, 2)
    await group.ask(APPEND, -1, "c", body="eA==")


async def _itself_preferred(group: ScriptedGroup) -> None:
    group.heading("a leader that is preferred itself keeps the leadership")
    group.script = Followers().answer
    await asyncio.sleep(4.0)


async def _transfers(group: ScriptedGroup) -> None:
    followers, ask = Followers(), group.ask
    group.script = followers.answer
    group.heading("transfers that a leader refuses")
    await ask(TRANSFER, -1, "c", transferId="n0", transfereeId="n1")
    await asyncio.sleep(1.5)
    requests: tuple[Fields, ...] = (
        {"group": "h"}, {"remoteId": "n1"}, {"transfereeId": None}, {"transfereeId": "n0"},
        {"transfereeId": ""}, {"transfereeId": "n9"},
    )  # fmt: skip
    followers.instead[TRANSFER] = [{"code": 418}]  # no name lets the leader choose
    for more in requests:
        await ask(TRANSFER, 1, "c", **{"transferId": "n0", "transfereeId": "n1", **more})
    group.heading("a transfer that is not answered: no client is served meanwhile, and the leader steps down")
    followers.away = {"n2"}
    waiting = group.begin(TRANSFER, 1, transferId="n0", transfereeId="n2")
    await asyncio.sleep(0.5)
    await ask(TRANSFER, 1, "c", transferId="n0", transfereeId="n1")
    await ask(APPEND, -1, "c", body="eA==")
    await ask(GET, -1, "c", beginIndex=0)
    group.take(1)
    await asyncio.sleep(2.4)
    await ask(GET, -1, "c", beginIndex=0)
    await ask(APPEND, -1, "c", body="eA==")
    await waiting
    await ask(APPEND, -1, "c", body="eA==")
    await asyncio.sleep(1.5)
    group.heading("a clean stop of the node without a suitable successor")
    followers.away = {"n1", "n2"}
    await asyncio.sleep(4.5)


async def _answers_at_limits(group: ScriptedGroup) -> None:
    """A leader gets answers that no correct follower sends; none of them commits an entry."""
    followers = Followers()
    group.script = followers.answer
    group.heading("answers to pushes that do not count")
    await asyncio.sleep(1.5)
    followers.away = {"n2"}
    for answer in (
        {"index": 99, "endIndex": 99}, {"index": 1, "term": 0}, {"index": 1, "term": 2},
        {"index": 1, "term": 1 << 30}, {"index": 1, "localId": "n9"}, {"index": 1, "code": 405},
        {"index": 1, "code": 411}, {"index": (1 << 56) + 1}, {"index": 1, "code": 406, "endIndex": 0},
        {"code": 406, "endIndex": 1 << 56, "xIndex": 1 << 56, "xTerm": 1}, {"code": 406, "endIndex": -1},
        {"code": 406, "endIndex": 0, "xIndex": -1}, {"index": "1"}, {"index": 0},
    ):  # fmt: skip
        followers.instead[PUSH] = [answer] * 2
        await group.ask(APPEND, -1, "c", body="eA==", timeout_s=4.0)
        await asyncio.sleep(1.2)
    group.heading("answers to heartbeats that do not count, then one of a later term")
    for answer in ({"term": 1 << 30, "code": 403}, {"code": 403}, {"code": 401}, {"localId": "n9"}, {}):
        followers.instead[BEAT] = [answer]
        await asyncio.sleep(2.0)
    followers.instead[BEAT] = [{"term": 7, "code": 403}]
    followers.instead[VOTE] = [{"voteResult": "ACCEPT", "term": 9}]
    await asyncio.sleep(3.5)


_WAITS: Final = {
    "at once": (0.0, 0.01),
    "in 0.3 to 1 s": (0.3, 1.0),
    "1 s later": (1.3, 2.0),
    "6 s later": (6.3, 7.0),
    "after the round": (2.3, 4.0),
    "1 s after the round": (3.3, 5.0),
}
"""When a candidate asks again; the last two if a member does not answer."""


async def _rounds(group: ScriptedGroup) -> None:
    """Each pair of answers to a candidate: it leads, asks again in the same term, or in the next one."""
    results = (
        "ACCEPT", "REJECT_ALREADY_VOTED", "REJECT_ALREADY_HAS_LEADER", "REJECT_EXPIRED_LEDGER_TERM",
        "REJECT_SMALL_LEDGER_END_INDEX", "REJECT_EXPIRED_VOTE_TERM", "REJECT_TERM_NOT_READY",
        "REJECT_TERM_SMALL_THAN_LEDGER", "REJECT_TAKING_LEADERSHIP", "REJECT_UNKNOWN_LEADER",
        "REJECT_UNEXPECTED_LEADER",
    )  # fmt: skip
    ended = False

    def answer(name: str, code: int, _request: Fields) -> Fields | None:
        nonlocal ended
        if code != VOTE or ended:
            return None
        ended = name == "n2"
        given = pair[0] if name == "n1" else pair[1]
        return {"voteResult": given} if given else None

    for pair in product(results, (*results[:7], "")):
        group.heading(f"votes {pair[0]} and {pair[1] or 'none'}")
        ended = False
        group.script = answer
        await group.until_sent(VOTE, to="n2")
        lines = len(group.lines)
        waited = await group.until_sent(VOTE, to="n2", most_s=10.5)
        ranges = (name for name, (least, most) in _WAITS.items() if least <= waited <= most)
        del group.lines[lines:]
        group.lines.append(f"it asks again: {next(ranges, f'after {waited:.3f} s')}")


async def _times(group: ScriptedGroup) -> None:
    """The times that do not depend on chance, and the ranges of the others."""
    followers = Followers()
    group.script = followers.answer
    group.heading("the first request for votes, heartbeats, and an idle follower's commit")
    group.timed("a vote", 0.3, await group.until_sent(VOTE), 1.0)
    await group.until_sent(PUSH)
    group.timed("an idle follower's commit", 1.0, await group.until_sent(PUSH))
    group.timed("a heartbeat", 1.0, await group.until_sent(BEAT))
    group.timed("the next heartbeat", 2.0, await group.until_sent(BEAT))
    group.heading("a push is repeated, and an entry without a quorum is given up")
    followers.away = {"n1", "n2"}
    waiting = group.begin(APPEND, -1, body="eA==")
    await asyncio.sleep(0)
    await group.until_sent(PUSH)
    group.timed("a comparison instead of the push", 1.0, await group.until_sent(PUSH))
    group.timed("the next comparison", 1.0, await group.until_sent(PUSH))
    await waiting
    group.heading("a leader without followers gives up")
    group.timed("its candidacy", 1.0, await group.until_sent(VOTE), 7.0)
    group.timed("the next round", 2.3, await group.until_sent(VOTE), 4.0)
    group.heading("a follower whose leader is silent")
    group.script = silent
    await group.ask(BEAT, 9)
    await group.ask(BEAT, 9)
    group.timed("its candidacy", 6.3, await group.until_sent(VOTE), 7.0)
    group.heading("a member that is to take over")
    await group.ask(BEAT, 19)
    await group.ask(BEAT, 19)
    waiting = group.begin(TRANSFER, 19, transferId="n1", transfereeId="n0")
    group.timed("its candidacy", 0.03, await group.until_sent(VOTE), 0.1)
    await waiting


async def _restarted(group: ScriptedGroup) -> None:
    """A member that voted for itself may have led in that term, so it stands in the next one."""
    for vote in ("n0", "n1", ""):
        group.heading(f"a start after a vote for {vote or 'none'}")
        await group.stop_member()
        _write(group, "currterm", f"currTerm=3\nvoteLeader={vote}\n".encode())
        await group.start_member()
        group.timed("its candidacy", 0.3, await group.until_sent(VOTE), 2.0)
        await group.ask(VOTE, 3, ledgerEndIndex=9, ledgerEndTerm=3)


LIVES: Final[Lives] = (
    (_fields_at_limits, {}),
    (_early_pushes, {}),
    (_long_log, {"segment_bytes": 1 << 16}),
    (_oldest_deleted, {}),
    (_preferred, {"preferred_leaders": ("n2", "n1")}),
    (_itself_preferred, {"preferred_leaders": ("n1", "n0")}),
    (_transfers, {}),
    (_answers_at_limits, {}),
    (_rounds, {}),
    (_times, {}),
    (_restarted, {}),
    *later_lives.LIVES,
)
"""The scripts, each with the configuration of its member."""
