"""Feeds the events of a group in a simulated cluster to the judge of groups (fuzz/raft/judge.py).

The judge receives each change of a member right after the member carried it out. Here the changes are read
from the members' event logs. The entry itself is read from the ledger of the member that wrote it.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from mqproof.conformance.hosts.simulated import MEMBERS, Cluster
from mqproof.fuzz.raft.judge import History, leader_eventually, logs_converge
from mqproof.fuzz.target import Finding
from mqproof.impl.dledger.changes import Appended, Change, Committed, Cut, Leads, Voted
from mqproof.impl.dledger.codes import Vote
from mqproof.impl.dledger.rpc_bodies import Entry
from mqproof.spec.events import Event, Kind

_OF_THE_STORE: Final = frozenset({Kind.APPEND, Kind.DISPATCH, Kind.FLUSH, Kind.SEND_ACK, Kind.HA_ACK})
"""The most frequent kinds of event. They change nothing that the members agree on, so the judge skips them.
"""


class GroupWitness:
    """Judges a group's events and calls `found` immediately with each invariant that is violated."""

    def __init__(self, cluster: Cluster, checked: Counter[str], found: Callable[[Finding], None]) -> None:
        self._cluster = cluster
        self._found = found
        self._history = History(MEMBERS, checked)
        cluster.on_event = self._heard
        cluster.on_ended = self._history.died

    def _heard(self, event: Event) -> None:
        try:
            self._note(event)
        except Finding as finding:
            self._found(finding)

    def _note(self, event: Event) -> None:
        history, member, attrs = self._history, event.node, event.attrs
        if event.kind in _OF_THE_STORE:
            return
        if event.kind is Kind.STEP_DOWN:
            history.stepped_down(member)
        elif event.kind is Kind.RECOVER and "members" in attrs:
            history.recovered(member, self._entries(member))
        elif event.kind is Kind.RAFT_APPEND:
            index = int(attrs["index"])
            entry = self._cluster.group_store(member).node.ledger.read(index)
            history.record(member, Appended(index, entry.term, entry.magic, entry.body), entry)
        elif change := _change(event):
            history.record(member, change, None)

    def _entries(self, member: str) -> list[Entry]:
        ledger = self._cluster.group_store(member).node.ledger
        return [ledger.read(index) for index in range(ledger.begin_index, ledger.end_index + 1)]

    # -- the end

    async def calm(self, seconds: float) -> None:
        """Wait until one member leads all others, for at most `seconds`. Raises Finding."""
        await self._cluster.until(lambda: self._leader() is not None, seconds)
        leader_eventually(self._history, self._leader(), seconds)

    async def judge(self, promised_of: Callable[[str], set[str]], seconds: float) -> None:
        """Wait until all members have the same log, then check that each holds every message it must keep.

        `promised_of` returns those messages for a member. Raises Finding.
        """
        await self._cluster.until(self._is_one, seconds)
        logs_converge(self._history, self._ends(), seconds)
        for member in MEMBERS:
            held = {stored.message_id for stored in self._cluster.log(member)}
            promised = promised_of(member)
            self._history.checked["NoAckedLost"] += bool(promised)
            if lost := promised - held:
                raise Finding("NoAckedLost", f"{min(lost)} was answered SEND_OK; {member} has it no longer")

    def _leader(self) -> str | None:
        master = self._cluster.master
        cores = [self._cluster.group_store(node).node.member.core for node in self._cluster.brokers]
        return master if all(core.state.leader == master for core in cores) else None

    def _ends(self) -> dict[str, tuple[int, int]]:
        """Return the last and the committed index of each member."""
        states = {node: self._cluster.group_store(node).node.member.core.state for node in MEMBERS}
        return {node: (state.terms.end, state.commit) for node, state in states.items()}

    def _is_one(self) -> bool:
        ends = set(self._ends().values())
        return len(ends) == 1 and all(end == commit for end, commit in ends)


def _change(event: Event) -> Change | None:
    attrs = event.attrs
    match event.kind:
        case Kind.VOTE if event.status == Vote.ACCEPT:
            return Voted(attrs["candidate"], event.term or 0, Vote.ACCEPT)
        case Kind.BECOME_LEADER:
            return Leads(event.term or 0)
        case Kind.TRUNCATE:
            return Cut(int(attrs["index"]))
        case Kind.RAFT_COMMIT:
            return Committed(int(attrs["index"]))
        case _:
            return None
