"""Scripts for a member whose every message is compared with its time, to a tenth of a millisecond.

Each runs twice: the member waits as short as it may, and as long as it may. `timed_lives.txt` has the
messages and times. See docs/reference/protocol/dledger.md, "Votes", "Heartbeats and pushes", "Leadership".
"""

import asyncio
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.adapters.scripted_members.scripted_group import (
    APPEND,
    BEAT,
    GET,
    METADATA,
    PUSH,
    TRANSFER,
    VOTE,
    Fields,
    Followers,
    Life,
    Lives,
    ScriptedGroup,
    entry,
    push,
    silent,
)

EXPECTED: Final = Path(__file__).with_suffix(".txt")


async def _leads(group: ScriptedGroup) -> None:
    """A leader sends heartbeats and entries, and gives up without a quorum."""
    ask, followers = group.ask, Followers()
    group.heading("an election, heartbeats, and the commit that an idle follower receives")
    group.script = followers.answer
    await asyncio.sleep(6.5)
    group.heading("a follower is away: entries are sent to it again")
    followers.away = {"n2"}
    await ask(APPEND, -1, "c", body="eA==")
    await asyncio.sleep(2.6)
    group.heading("no follower answers: an entry has no quorum, then the leader gives up")
    followers.away = {"n1", "n2"}
    waiting = group.begin(APPEND, -1, body="eQ==")
    await asyncio.sleep(2.6)
    await waiting
    last = group.begin(APPEND, -1, body="eg==")
    for _ in range(11):
        await ask(GET, -1, "c", beginIndex=1)
        await asyncio.sleep(0.4)
    await last
    await asyncio.sleep(4.1)
    group.heading("one follower votes again and answers")
    followers.away = {"n2"}
    await asyncio.sleep(4.5)
    await ask(GET, -1, "c", beginIndex=1)


async def _without_beats(group: ScriptedGroup) -> None:
    """Votes and entries prove no leadership: without an answer to a heartbeat a leader answers no client."""
    followers = Followers()

    def answer(name: str, code: int, request: Fields) -> Fields | None:
        return None if code == BEAT else followers.answer(name, code, request)

    group.heading("a leader whose heartbeats are not answered")
    group.script = answer
    await asyncio.sleep(1.2)
    for _ in range(3):
        await group.ask(GET, -1, "c", beginIndex=0)
        await group.ask(APPEND, -1, "c", body="eA==")
        await asyncio.sleep(2.0)
    await asyncio.sleep(1.0)
    group.heading(
        "one answer to a heartbeat comes late, and counts from its request; older ones do not count"
    )
    held: asyncio.Future[Fields] = asyncio.get_running_loop().create_future()

    def late(name: str, code: int, request: Fields) -> Any:
        if code == BEAT and name == "n1":
            return asyncio.shield(held)
        return answer(name, code, request)

    group.script = late
    await group.until_sent(BEAT)
    await asyncio.sleep(1.9)
    held.set_result({"leaderId": "n0"})
    await asyncio.sleep(0)
    group.script = answer
    await group.ask(GET, -1, "c", beginIndex=0)
    await asyncio.sleep(3.9)
    await group.ask(GET, -1, "c", beginIndex=0)
    await asyncio.sleep(0.3)
    await group.ask(GET, -1, "c", beginIndex=0)
    await asyncio.sleep(1.0)


async def _follows(group: ScriptedGroup) -> None:
    """A follower waits for its leader, a voter for its candidate, and a candidate for votes."""
    ask = group.ask
    group.heading("a follower whose leader is silent")
    await asyncio.sleep(0.1)
    for _ in range(2):
        await ask(BEAT, 5)
    await asyncio.sleep(4.0)
    await ask(BEAT, 5)
    await asyncio.sleep(7.2)
    group.heading("a heartbeat in its round")
    await ask(BEAT, 6, "n2")
    await asyncio.sleep(5.95)
    await ask(BEAT, 6, "n2")
    group.heading("a later term, and a vote in it")
    await ask(VOTE, 7, timeout_s=0.25, ledgerEndIndex=-1, ledgerEndTerm=0)  # it waits for n2
    for _ in range(2):
        await ask(VOTE, 7, leaderId="n2", ledgerEndIndex=-1, ledgerEndTerm=0)
    await asyncio.sleep(0.25)
    await ask(VOTE, 7, ledgerEndIndex=-1, ledgerEndTerm=0)
    await asyncio.sleep(7.0)
    group.heading("a vote for another one when it voted for itself")
    await ask(VOTE, 8, ledgerEndIndex=5, ledgerEndTerm=5)
    await ask(VOTE, 9, ledgerEndIndex=5, ledgerEndTerm=5)
    await ask(METADATA, -1, "c")


async def _rounds(group: ScriptedGroup) -> None:
    """The time from one request for votes to the next, by the answers."""
    for first, second in (
        ("REJECT_ALREADY_VOTED", "REJECT_ALREADY_VOTED"),
        ("REJECT_EXPIRED_LEDGER_TERM", "REJECT_SMALL_LEDGER_END_INDEX"),
        ("REJECT_SMALL_LEDGER_END_INDEX", "REJECT_ALREADY_VOTED"),
        ("REJECT_EXPIRED_LEDGER_TERM", ""),
        ("REJECT_TERM_NOT_READY", "REJECT_TERM_NOT_READY"),
        ("REJECT_ALREADY_HAS_LEADER", "REJECT_TERM_NOT_READY"),
        ("REJECT_ALREADY_HAS_LEADER", "REJECT_SMALL_LEDGER_END_INDEX"),
        ("", ""),
    ):
        group.heading(f"votes {first or 'none'} and {second or 'none'}")
        group.script = _once(first, second)
        for _ in range(2):
            await group.until_sent(VOTE, to="n2", most_s=10.5)


def _once(first: str, second: str) -> Any:
    """Return a script that answers one request for votes of each member."""
    left = {"n1": first, "n2": second}

    def answer(name: str, code: int, _request: Fields) -> Fields | None:
        vote = left.pop(name, "") if code == VOTE else ""
        return {"voteResult": vote} if vote else None

    return answer


async def _takes_over(group: ScriptedGroup) -> None:
    """A follower is to take over; meanwhile another candidate requests its vote."""
    ask, followers = group.ask, Followers()
    wanted: dict[str, Any] = {"transferId": "n1", "transfereeId": "n0", "timeout_s": 4.0}
    group.heading("a takeover that waits for an entry in vain, then for one that comes")
    for _ in range(2):
        await ask(BEAT, 5)
    await ask(PUSH, 5, **push("APPEND", -1, 0, [entry(0, 5, 0, b"a")]))
    await ask(TRANSFER, 5, **wanted, takeLeadershipLedgerIndex=1)
    later = {**wanted, "takeLeadershipLedgerIndex": 1}
    waiting = group.begin_slow(TRANSFER, 5, **later)
    await asyncio.sleep(0.99)
    group.script = followers.answer
    followers.ends = {"n1": 1, "n2": 1}
    await ask(PUSH, 5, **push("APPEND", 0, 5, [entry(1, 5, 49, b"b")]))
    await waiting
    await asyncio.sleep(0.2)
    for number, (index, term) in enumerate(((1, 6), (3, 11), (9, 21), (0, 40))):
        begin, leader = 10 + 10 * number, f"n{1 + number % 2}"
        group.heading(f"a candidate whose log ends at {index} of term {term} asks during a takeover")
        group.script = silent
        for _ in range(2):
            await ask(BEAT, begin, leader)
        more = {**wanted, "transferId": leader, "takeLeadershipLedgerIndex": 2}
        waiting = group.begin_slow(TRANSFER, begin, localId=leader, leaderId=leader, **more)
        await asyncio.sleep(0.01)
        for _ in range(2):
            await ask(VOTE, begin + 1, "n2", ledgerEndIndex=index, ledgerEndTerm=term)
        group.script = followers.answer
        await asyncio.sleep(0.15)
        await ask(VOTE, begin + 1, "n2", ledgerEndIndex=index, ledgerEndTerm=term)
        await asyncio.sleep(4.5)
        await waiting


async def _hands_over(group: ScriptedGroup) -> None:
    """A leader transfers its leadership, and serves no client. It steps down after 3 s without a result."""
    ask, followers = group.ask, Followers()
    group.script = followers.answer
    group.heading("a transfer to a member that does not answer it")
    await asyncio.sleep(1.2)
    never: asyncio.Future[Fields] = asyncio.get_running_loop().create_future()

    def answer(name: str, code: int, request: Fields) -> Any:
        return asyncio.shield(never) if code == TRANSFER else followers.answer(name, code, request)

    group.script = answer
    waiting = group.begin_slow(TRANSFER, 1, transferId="n0", transfereeId="n2")
    await asyncio.sleep(2.99)
    await ask(APPEND, -1, "c", body="eA==")
    await asyncio.sleep(0.02)
    await ask(APPEND, -1, "c", body="eA==")
    await waiting
    group.script = followers.answer
    await asyncio.sleep(1.5)
    group.heading("a transfer that the member refuses at once, and one that it accepts")
    group.script = followers.answer
    for code in (418, 200):
        followers.instead[TRANSFER] = [{"code": code}]
        await ask(TRANSFER, 1, "c", transferId="n0", transfereeId="n1")
        await ask(APPEND, -1, "c", body="eA==")
    group.heading("the member that accepted does not lead: this one steps down after 3 s")
    await asyncio.sleep(2.9)
    await ask(APPEND, -1, "c", body="eA==")
    await asyncio.sleep(0.2)
    await ask(APPEND, -1, "c", body="eA==")


async def _prefers(group: ScriptedGroup) -> None:
    """Every second, a leader looks for a preferred member that is alive and close."""
    followers = Followers()
    group.script = followers.answer
    group.heading("a preferred member that refuses")
    followers.instead[TRANSFER] = [{"code": 418}] * 2
    await asyncio.sleep(3.5)
    group.heading("it does not answer: the leader steps down 3 s later")
    followers.instead[TRANSFER] = []
    never: asyncio.Future[Fields] = asyncio.get_running_loop().create_future()

    def answer(name: str, code: int, request: Fields) -> Any:
        return asyncio.shield(never) if code == TRANSFER else followers.answer(name, code, request)

    group.script = answer
    await asyncio.sleep(5.0)
    group.heading("it is away: it is alive for two heartbeats more")
    followers.away = {"n2"}
    group.script = followers.answer
    followers.instead[TRANSFER] = [{"code": 418}] * 9
    await asyncio.sleep(6.5)


async def _late_answers(group: ScriptedGroup) -> None:
    """An answer to a push counts for 3 s, also after the push was repeated."""
    followers = Followers()
    group.script = followers.answer
    await asyncio.sleep(1.2)
    for index, delay_s in ((1, 2.9), (2, 3.1)):
        group.heading(f"a push is answered after {delay_s} s")

        async def late(_name: str, code: int, request: Fields, delay_s: float = delay_s) -> Fields | None:
            if code != PUSH:
                return {"leaderId": "n0"}
            if request["type"] != "APPEND":
                return None
            await asyncio.sleep(delay_s)
            return {"index": request["preLogIndex"] + len(request["batchEntry"]), "leaderId": "n0"}

        group.script = late
        waiting = group.begin(APPEND, -1, body="eA==")
        await asyncio.sleep(delay_s - 0.05)
        await group.ask(GET, -1, "c", beginIndex=index)
        await asyncio.sleep(0.1)
        await group.ask(GET, -1, "c", beginIndex=index)
        await waiting
        followers.ends = {"n1": index, "n2": index}
        group.script = followers.answer
        await asyncio.sleep(1.5)


async def _paused(group: ScriptedGroup) -> None:
    """The process of a leader stops for a while, and continues."""
    ask, followers = group.ask, Followers()
    group.script = followers.answer
    await asyncio.sleep(1.2)
    for seconds in (4.0, 6.5):
        group.heading(f"a pause of {seconds:g} s")
        waiting = [
            group.begin(APPEND, -1, body="eA=="), group.begin(GET, -1, beginIndex=0),
            group.begin(TRANSFER, -1, transferId="n0", transfereeId="n1"),
        ]  # fmt: skip
        group.pause()
        await asyncio.sleep(seconds)
        more = [
            group.begin(GET, -1, beginIndex=0),
            group.begin(APPEND, -1, body="eA=="),
            group.begin(METADATA, -1),
        ]
        await asyncio.sleep(0.1)
        group.go_on()
        await asyncio.gather(*waiting, *more)
        await ask(GET, -1, "c", beginIndex=0)
        await asyncio.sleep(2.5)


async def _alone(group: ScriptedGroup) -> None:
    """The only member of a group elects itself, and commits what its disk has."""
    ask = group.ask
    group.heading("a group of one member")
    await ask(METADATA, -1, "c")
    await ask(APPEND, -1, "c", body="eA==")
    await asyncio.sleep(1.1)
    await ask(APPEND, -1, "c", body="eA==")
    await ask(GET, -1, "c", beginIndex=0)
    await ask(GET, -1, "c", beginIndex=1)
    await ask(BEAT, 9)
    await ask(VOTE, 9, ledgerEndIndex=9, ledgerEndTerm=9)
    await ask(TRANSFER, -1, "c", transferId="n0", transfereeId="n1")
    group.heading("its disk is held")
    group.fsync.hold()
    waiting = group.begin_slow(APPEND, -1, body="eA==")
    await asyncio.sleep(1.0)
    await ask(GET, -1, "c", beginIndex=2)
    group.fsync.release()
    await waiting
    group.heading("it leads without other members")
    await asyncio.sleep(20.0)
    await ask(APPEND, -1, "c", body="eA==")
    group.kill_member()
    await group.start_member()
    await asyncio.sleep(1.2)
    group.heading("after a restart")
    await ask(METADATA, -1, "c")
    for index in range(6):
        await ask(GET, -1, "c", beginIndex=index)


async def _of_five(group: ScriptedGroup) -> None:
    """In a group of five, three members are a quorum."""
    ask, followers = group.ask, Followers()
    followers.ends = dict.fromkeys(("n1", "n2", "n3", "n4"), -1)
    group.heading("two of five votes")
    followers.away = {"n2", "n3", "n4"}
    group.script = followers.answer
    await asyncio.sleep(1.1)
    await asyncio.sleep(3.1)
    group.heading("three of five votes")
    followers.away = {"n3", "n4"}
    await asyncio.sleep(2.3)
    await ask(APPEND, -1, "c", body="eA==")
    await ask(GET, -1, "c", beginIndex=1)
    group.heading("two of five have an entry")
    followers.away = {"n2", "n3", "n4"}
    await ask(APPEND, -1, "c", timeout_s=4.0, body="eA==")
    await ask(GET, -1, "c", beginIndex=2)


_EACH: Final[tuple[tuple[Life, dict[str, Any]], ...]] = (
    (_leads, {}), (_without_beats, {}), (_follows, {}), (_rounds, {}), (_takes_over, {}), (_hands_over, {}),
    (_late_answers, {}),
    (_prefers, {"preferred_leaders": ("n2",)}), (_paused, {}), (_alone, {"members": 1}),
    (_of_five, {"members": 5}),
)  # fmt: skip
LIVES: Final[Lives] = tuple((life, {**config, "edge": edge}) for life, config in _EACH for edge in (0, 1))
"""The scripts, each with the configuration of its member."""
