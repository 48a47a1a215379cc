"""Checks everything that the members of a DLedger group do against the group's promises.

The judge keeps a copy of each member's log, built from the changes that the members report. It never reads a
member's own state. The invariant names are those of the catalogue.
"""

from collections import Counter
from typing import NamedTuple

from mqproof.fuzz.target import Finding
from mqproof.impl.dledger.changes import Appended, Change, Committed, Cut, Leads, Voted, Written
from mqproof.impl.dledger.codes import Vote
from mqproof.impl.dledger.rpc_bodies import Entry


class Seen(NamedTuple):
    """An entry, reduced to the fields that must never change."""

    term: int
    magic: int
    body: bytes


class Judged(NamedTuple):
    """A committed entry, and the term of the leader that committed it."""

    entry: Seen
    by: int


class History:
    """All events of one group."""

    def __init__(self, members: tuple[str, ...], checked: Counter[str]) -> None:
        self.checked = checked
        self.logs: dict[str, list[Seen]] = {member: [] for member in members}
        self.commits = dict.fromkeys(members, -1)
        self.leading: dict[str, int | None] = dict.fromkeys(members)
        """The term that each member leads, as far as the member reported it."""
        self.winners: dict[int, str] = {}
        self.votes: dict[tuple[str, int], str] = {}
        self.committed: list[Judged] = []
        self.places: dict[tuple[int, int], tuple[int, Seen]] = {}
        """Keyed by index and term: the term of the previous entry, and the entry."""
        self.acked: list[tuple[int, Seen]] = []

    def record(self, member: str, change: Change, entry: Entry | None) -> None:
        """Record a change that a member carried out. Raises Finding."""
        match change:
            case Voted(candidate, term, result) if result is Vote.ACCEPT:
                vote_once_per_term(self, member, term, candidate)
            case Leads(term):
                self.leading[member] = term
                election_safety(self, member, term)
                leader_completeness(self, member, term)
            case Appended() | Written():
                assert entry is not None, "an entry was written"
                log_matching(self, member, entry)
            case Cut(end):
                leader_append_only(self, member, end)
                del self.logs[member][end + 1 :]
                committed_stable(self, member, self.commits[member])
            case Committed(index):
                committed_stable(self, member, index)
                self.commits[member] = index
            case _:
                pass

    def stepped_down(self, member: str) -> None:
        self.leading[member] = None

    def died(self, member: str) -> None:
        self.leading[member] = None
        self.commits[member] = -1

    def recovered(self, member: str, entries: list[Entry]) -> None:
        """Record that a member restarted with these entries.

        Entries before the first one were deleted earlier. Raises Finding.
        """
        recovered_prefix(self, member, entries)
        log, begin = self.logs[member], entries[0].index if entries else 0
        del log[begin + len(entries) :]
        for entry in entries[len(log) - begin :]:  # the crash came after the write and before its report
            log_matching(self, member, entry)


def _seen(entry: Entry) -> Seen:
    return Seen(entry.term, entry.magic, entry.body)


def election_safety(history: History, member: str, term: int) -> None:
    """Check that a term has at most one leader."""
    history.checked["ElectionSafety"] += 1
    if (other := history.winners.setdefault(term, member)) != member:
        raise Finding("ElectionSafety", f"{other} and {member} lead term {term}")


def vote_once_per_term(history: History, member: str, term: int, candidate: str) -> None:
    """Check that a member votes for at most one candidate in a term, also across restarts."""
    history.checked["VoteOncePerTerm"] += 1
    if (other := history.votes.setdefault((member, term), candidate)) != candidate:
        raise Finding("VoteOncePerTerm", f"{member} voted for {other} and {candidate} in term {term}")


def leader_completeness(history: History, member: str, term: int) -> None:
    """Check that a new leader has every entry that leaders of earlier terms committed."""
    log = history.logs[member]
    for index, (entry, by) in enumerate(history.committed):
        if by < term:
            history.checked["LeaderCompleteness"] += 1
            if index >= len(log) or log[index] != entry:
                has = log[index] if index < len(log) else "nothing"
                text = f"{member} leads term {term} with {has} at {index}, committed in {by} was {entry}"
                raise Finding("LeaderCompleteness", text)


def leader_append_only(history: History, member: str, end: int) -> None:
    """Check that a leader does not truncate its log."""
    history.checked["LeaderAppendOnly"] += 1
    if (term := history.leading[member]) is not None:
        raise Finding("LeaderAppendOnly", f"{member}, leader of term {term}, cut its log after {end}")


def log_matching(history: History, member: str, entry: Entry) -> None:
    """Check that entries with equal index and term are equal and follow entries of the same term.

    By induction, the prefixes before them are equal too.
    """
    log = history.logs[member]
    before = log[-1].term if log else 0
    if entry.index != len(log):
        raise Finding("LogMatching", f"{member} wrote entry {entry.index} as number {len(log)} of its log")
    log.append(_seen(entry))
    if (entry.index, entry.term) in history.places:
        history.checked["LogMatching"] += 1
    there = history.places.setdefault((entry.index, entry.term), (before, log[-1]))
    if there != (before, log[-1]):
        text = f"{member} has {log[-1]} behind one of term {before} at {entry.index}, another had {there}"
        raise Finding("LogMatching", text)


def committed_stable(history: History, member: str, index: int) -> None:
    """Check that a member has every entry that it commits, and that no other entry was committed there."""
    log, committed = history.logs[member], history.committed
    leads = history.leading[member]
    if index >= len(log):
        raise Finding("CommittedStable", f"{member} has committed {index}, its log ends at {len(log) - 1}")
    for at in range(history.commits[member] + 1, index + 1):
        if at < len(committed):
            history.checked["CommittedStable"] += 1
            if log[at] != committed[at].entry:
                text = f"{member} commits {log[at]} at {at}, committed there was {committed[at].entry}"
                raise Finding("CommittedStable", text)
        elif leads is None:
            raise Finding("CommittedStable", f"{member} commits {at}, which no leader has")
        else:
            committed.append(Judged(log[at], leads))


def reads_current(history: History, member: str, term: int) -> None:
    """Check that no later leader has committed an entry while this leader may answer a client."""
    history.checked["ReadsCurrent"] += 1
    latest = history.committed[-1].by if history.committed else term
    if latest > term:
        raise Finding("ReadsCurrent", f"{member} may serve in term {term}; a leader of {latest} committed")


def recovered_prefix(history: History, member: str, entries: list[Entry]) -> None:
    """Check that a member recovers an unaltered prefix of its entries.

    The entry it was writing may be included.
    """
    before = history.logs[member][entries[0].index if entries else 0 :]
    history.checked["RecoveredPrefix"] += len(entries) < len(before)
    both = min(len(entries), len(before))
    if [_seen(entry) for entry in entries[:both]] != before[:both]:
        raise Finding("RecoveredPrefix", f"{member} had {len(before)} entries, and not those {len(entries)}")


def no_acked_lost(history: History, member: str) -> None:
    """Check that every acknowledged entry is finally in the log of every member."""
    log = history.logs[member]
    for index, entry in history.acked:
        history.checked["NoAckedLost"] += 1
        if index >= len(log) or log[index] != entry:
            raise Finding("NoAckedLost", f"{entry} was acknowledged at {index}; {member} has it no longer")


def leader_eventually(history: History, leader: str | None, waited_s: float) -> None:
    """Check that, after the faults end, one member leads all others within the time limit."""
    history.checked["LeaderEventually"] += 1
    if leader is None:
        raise Finding("LeaderEventually", f"{waited_s:g} s after the last fault no member leads the others")


def logs_converge(history: History, ends: dict[str, tuple[int, int]], waited_s: float) -> None:
    """Check that, after the faults end, all members have one log that is fully committed.

    `ends` holds the last and the committed index of each member.
    """
    history.checked["LogsConverge"] += 1
    if len(set(ends.values())) > 1 or any(end != commit for end, commit in ends.values()):
        raise Finding("LogsConverge", f"{waited_s:g} s after the last fault (end, committed) are {ends}")
