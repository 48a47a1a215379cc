"""The named invariants of a group, as far as its answers show them; each one is a pure function of a life.

Names and ids are those of spec/invariants.toml. The verdict is unknown, never held, if nothing was observed
that could show a violation. A checker cannot conclude anything about the content of entries that were never
committed, because no member shows it.
"""

from collections.abc import Callable, Iterator
from types import UnionType
from typing import Final

from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.suites.dledger.steps import (
    Append,
    Calm,
    Claim,
    End,
    Entry,
    Life,
    Log,
    Operation,
    Read,
    Recovered,
    Vote,
)


def _numbered(life: Life) -> Iterator[tuple[int, Operation]]:
    return enumerate(life.operations, 2)


def election_safety(life: Life) -> Finding:
    """RAFT-1 ElectionSafety: all answers of one term name the same leader."""
    tally = Tally()
    leaders: dict[int, str] = {}
    for step, operation in _numbered(life):
        if isinstance(operation, Claim | End) and operation.leader is not None:
            tally.looked += 1
            leader = leaders.setdefault(operation.term, operation.leader)
            if leader != operation.leader:
                tally.found(f"step {step}: {leader} and {operation.leader} lead term {operation.term}")
    return tally.finding("claims")


def leader_append_only(life: Life) -> Finding:
    """RAFT-2 LeaderAppendOnly: the log of a leader never becomes shorter in its term."""
    tally = Tally()
    ends: dict[tuple[str, int], int] = {}
    for step, operation in _numbered(life):
        if isinstance(operation, End) and operation.leader == operation.member:
            at = operation.member, operation.term
            tally.looked += at in ends
            if operation.index < (before := ends.get(at, -1)):
                tally.found(f"step {step}: {operation}; it ended at {before} before")
            ends[at] = operation.index
    return tally.finding("ends")


def log_matching(life: Life) -> Finding:
    """RAFT-3 LogMatching: logs with the same index and term are equal up to that entry."""
    tally = Tally()
    prefixes: dict[tuple[int, int], tuple[Entry, ...]] = {}
    for step, operation in _numbered(life):
        if isinstance(operation, Log):
            for index, (term, _) in enumerate(operation.entries):
                upto = operation.entries[: index + 1]
                tally.looked += (index, term) in prefixes
                if prefixes.setdefault((index, term), upto) != upto:
                    text = f"{operation.member} has another log up to entry {index} of term {term}"
                    tally.found(f"step {step}: {text} than an earlier leader")
                    break
    return tally.finding("entries")


def leader_completeness(life: Life) -> Finding:
    """RAFT-4 LeaderCompleteness: every later leader has the acknowledged entries.

    A leader has certainly committed all of them when its whole log is read.
    """
    tally = Tally()
    acked: dict[int, tuple[int, Append]] = {}
    for step, operation in _numbered(life):
        match operation:
            case Append(term=term, index=index):
                acked.setdefault(index, (term, operation))
            case Log(term=term, entries=entries):
                for index, (its_term, append) in acked.items():
                    if its_term < term:
                        tally.looked += 1
                        if index >= len(entries) or entries[index] != (its_term, append.body):
                            there = entries[index] if index < len(entries) else "nothing"
                            tally.found(f"step {step}: {append}, but {operation.member} has {there} there")
    return tally.finding("entries")


def committed_stable(life: Life) -> Finding:
    """RAFT-5 CommittedStable: a committed index always has the same entry."""
    tally = Tally()
    committed: dict[int, Entry] = {}
    for step, operation in _numbered(life):
        for index, entry in _committed(operation):
            tally.looked += index in committed
            if committed.setdefault(index, entry) != entry:
                tally.found(f"step {step}: {entry} is committed at {index}, it was {committed[index]} before")
    return tally.finding("entries")


def _committed(operation: Operation) -> Iterator[tuple[int, Entry]]:
    match operation:
        case Append(term=term, index=index, body=body):
            yield index, (term, body)
        case Read(index=index, entry=entry) if entry is not None:
            yield index, entry
        case Log(entries=entries):
            yield from enumerate(entries)


def vote_once_per_term(life: Life) -> Finding:
    """RAFT-6 VoteOncePerTerm: a member accepts one candidate in a term, itself included, across restarts."""
    tally = Tally()
    votes: dict[tuple[str, int], str] = {}
    for step, operation in _numbered(life):
        match operation:
            case Vote(member, term, candidate):
                pass
            case Claim(member, term, leader) | End(member, term, leader) if leader == member:
                candidate = member
            case _:
                continue
        tally.looked += (member, term) in votes
        if (other := votes.setdefault((member, term), candidate)) != candidate:
            tally.found(f"step {step}: {member} votes for {candidate} in term {term}, and voted for {other}")
    return tally.finding("votes")


def leader_eventually(life: Life) -> Finding:
    """RAFT-7 LeaderEventually: after the faults, a leader acknowledges an entry within the time limit."""
    tally = Tally()
    for step, operation in _numbered(life):
        if isinstance(operation, Calm):
            tally.looked += 1
            if not operation.serves:
                tally.found(f"step {step}: no leader acknowledges an entry")
    return tally.finding("groups")


def logs_converge(life: Life) -> Finding:
    """RAFT-8 LogsConverge: after the faults, all logs end at the same index within the time limit.

    The committed logs that the members show as leaders afterwards are then prefixes of each other.
    """
    tally = Tally()
    last: Log | None = None
    for step, operation in _numbered(life):
        match operation:
            case Calm(serves=True, ends=ends):
                tally.looked += 1
                if len({index for _, index in ends}) > 1:
                    tally.found(f"step {step}: the logs end at {dict(ends)}")
            case Log(entries=entries):
                tally.looked += 1
                if last is not None and entries[: len(last.entries)] != last.entries:
                    tally.found(
                        f"step {step}: the log of {operation.member} does not continue that of {last.member}"
                    )
                last = operation
    return tally.finding("logs")


def reads_current(life: Life) -> Finding:
    """RAFT-9 ReadsCurrent: a leader answers no read after a later leader has answered a client."""
    tally = Tally()
    _judge_order(life, tally, Read | Log)
    return tally.finding("reads")


def answers_of_members(life: Life) -> Finding:
    """SPEC-1 ObservationExplained: a leader acknowledges no entry after a later leader has answered a client.

    A ledger of ours has the stated files and entries.
    """
    tally = Tally()
    for step, operation in _numbered(life):
        if isinstance(operation, Recovered):
            tally.looked += 1
            for wrong in operation.wrong:
                tally.found(f"step {step}: {wrong}")
    _judge_order(life, tally, Append)
    return tally.finding("answers")


def _judge_order(life: Life, tally: Tally, judged: type | UnionType) -> None:
    """Find the judged answers that a leader gives after a leader of a later term has answered.

    See docs/reference/protocol/dledger.md, "Leadership".
    """
    latest = 0
    for step, operation in _numbered(life):
        if not isinstance(operation, Append | Read | Log):
            continue
        if isinstance(operation, judged):
            tally.looked += 1
            if operation.term < latest:
                tally.found(f"step {step}: {operation}; a leader of term {latest} has answered before")
        latest = max(latest, operation.term)


CHECKERS: Final[dict[str, Callable[[Life], Finding]]] = {
    "RAFT-1": election_safety,
    "RAFT-2": leader_append_only,
    "RAFT-3": log_matching,
    "RAFT-4": leader_completeness,
    "RAFT-5": committed_stable,
    "RAFT-6": vote_once_per_term,
    "RAFT-7": leader_eventually,
    "RAFT-8": logs_converge,
    "RAFT-9": reads_current,
    "SPEC-1": answers_of_members,
}
"""The checkers by invariant id."""
