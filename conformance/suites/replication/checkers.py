"""The named invariants of replication; each one is a pure function of observations of a master and a slave.

The observations come from `mqproof.conformance.subjects.pair_run`. Names and ids are those of
spec/invariants.toml. The verdict is unknown, never held, if nothing was observed that could show a violation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from mqproof.conformance.engine.finding import Finding
from mqproof.report.model import Verdict, Witness

SEND_OK: Final = "SEND_OK"
STORED: Final = (SEND_OK, "FLUSH_DISK_TIMEOUT", "SLAVE_NOT_AVAILABLE", "FLUSH_SLAVE_TIMEOUT")


@dataclass(frozen=True, slots=True)
class SendSeen:
    """One send, with the facts that were true while it waited."""

    name: str
    status: str
    """One of the four stored statuses, or another one if the broker did not confirm the storing."""
    waits: bool
    """The message was sent with the request to wait (WAIT)."""
    expected: frozenset[str]
    """The correct statuses, given the state of the slave and the disk; empty allows any status."""
    on_slave: bool
    """The message was in the slave's log right after the answer, or before a crash removed it."""
    in_master: bool
    """The message was in the master's log right after the answer, or before a crash removed it."""


@dataclass(frozen=True, slots=True)
class LogsSeen:
    """Both logs at one moment, as names of messages; None for a broker that is not running."""

    master: tuple[str, ...] | None
    slave: tuple[str, ...] | None
    follows: bool
    """The slave is connected and has compared its log."""
    forked: bool
    """A master that lost its tail has served while the slave had that tail."""


@dataclass(frozen=True, slots=True)
class ReadsSeen:
    """The messages that were read from the slave while the master was stopped."""

    log: tuple[str, ...]
    read: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Life:
    """The observations of a pair in one run."""

    synchronous: bool
    sends: tuple[SendSeen, ...]
    logs: tuple[LogsSeen, ...]
    reads: tuple[ReadsSeen, ...]
    caught_up: bool | None
    """Whether the slave caught up after the faults ended; None if the logs have forked and it need not."""
    slave_offsets: tuple[int, ...]
    """The slave's answers for a group's committed offset, in order of time."""
    wrong: tuple[Witness, ...] = ()
    """What is wrong in the answers of both brokers after the faults, or differs between them."""
    answers: int = 0
    """The number of answers that were examined."""
    script: tuple[str, ...] = ()
    """The steps of the run, for people; the first one says what runs."""


def sync_acked_on_slave(life: Life) -> Finding:
    """REPL-1 SyncAckedOnSlave: a message that a synchronous master answered SEND_OK is in the slave's log."""
    acked = [send for send in life.sends if life.synchronous and send.waits and send.status == SEND_OK]
    lost = [
        f"{send.name} was answered SEND_OK, but is not on the slave" for send in acked if not send.on_slave
    ]
    return _finding("acked", len(acked), lost)


def slave_is_prefix(life: Life) -> Finding:
    """REPL-2 SlaveIsPrefix: the slave's log is a prefix of its master's.

    After a fork the slave does not follow.
    """
    both = [seen for seen in life.logs if seen.master is not None and seen.slave is not None]
    wrong = [
        f"the slave {'follows' if seen.follows else 'has'} {_end(seen.slave)}, its master {_end(seen.master)}"
        for seen in both
        if not _is_prefix(seen) and (seen.follows or not seen.forked)
    ]
    return _finding("moments", len(both), wrong)


def status_honest(life: Life) -> Finding:
    """REPL-3 StatusHonest: each status reports exactly what was reached."""
    stored = [send for send in life.sends if send.status in STORED]
    judged = [send for send in stored if send.expected]
    wrong = [
        f"{send.name} was answered {send.status}, {' or '.join(sorted(send.expected))} expected"
        for send in judged
        if send.status not in send.expected
    ]
    wrong += [
        f"{send.name} was answered {send.status}, but is not in the master's log"
        for send in stored
        if not send.in_master
    ]
    return _finding("sends", len(judged), wrong)


def readable_without_master(life: Life) -> Finding:
    """REPL-4 ReadableWithoutMaster: with the master stopped, all messages of the slave are readable in
    order."""
    wrong = [
        f"the slave holds {len(seen.log)} messages, but {len(seen.read)} were read from it"
        for seen in life.reads
        if seen.read != seen.log
    ]
    return _finding("messages", sum(len(seen.log) for seen in life.reads), wrong)


def slave_catches_up(life: Life) -> Finding:
    """REPL-5 SlaveCatchesUp: after the last fault the slave's log equals its master's in bounded time."""
    if life.caught_up is None:
        return _finding("lives", 0, [])
    return _finding("lives", 1, [] if life.caught_up else ["the slave did not catch up"])


def slaves_offset_monotone(life: Life) -> Finding:
    """DELIV-5 OffsetMonotone, for a slave: the offset that consumers committed never decreases."""
    offsets = life.slave_offsets
    wrong = [
        f"the offset went back from {before} to {after}"
        for before, after in pairwise(offsets)
        if after < before
    ]
    return _finding("offsets", len(offsets), wrong)


def answers_agree(life: Life) -> Finding:
    """SPEC-1 ObservationExplained: answers of master and slaves after the faults are documented and agree."""
    if life.wrong:
        return Finding(Verdict.VIOLATED, {"answers": life.answers}, life.wrong)
    return _finding("answers", life.answers, [])


CHECKERS: Final[dict[str, Callable[[Life], Finding]]] = {
    "REPL-1": sync_acked_on_slave,
    "REPL-2": slave_is_prefix,
    "REPL-3": status_honest,
    "REPL-4": readable_without_master,
    "REPL-5": slave_catches_up,
    "DELIV-5": slaves_offset_monotone,
    "SPEC-1": answers_agree,
}
"""The checkers by invariant id."""


def _is_prefix(seen: LogsSeen) -> bool:
    assert seen.master is not None, "a running master"
    assert seen.slave is not None, "a running slave"
    return seen.master[: len(seen.slave)] == seen.slave


def _end(log: Sequence[str] | None) -> str:
    return f"{len(log or ())} messages up to {log[-1] if log else 'none'}"


def _finding(what: str, looked_at: int, wrong: Sequence[str]) -> Finding:
    counts = {what: looked_at}
    if wrong:
        return Finding(Verdict.VIOLATED, counts, tuple(map(Witness, wrong)))
    return Finding(Verdict.HELD if looked_at else Verdict.UNKNOWN, counts)
