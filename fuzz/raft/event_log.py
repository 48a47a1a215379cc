"""The event log of a simulated group, in the form its members would write it, in event order."""

from collections import Counter
from collections.abc import Callable

from mqproof.fuzz.raft.program import Run
from mqproof.fuzz.raft.simulated_group import Group, Observer
from mqproof.impl.dledger import events as member_events
from mqproof.impl.dledger.changes import Change
from mqproof.impl.dledger.member import Member
from mqproof.impl.dledger.rpc_bodies import Entry
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Event, Kind


class _NodeClock:
    """A node's wall clock: simulated time plus the node's clock skew."""

    def __init__(self, group: Callable[[], Group], name: str) -> None:
        self._group = group
        self._name = name

    def now_us(self) -> int:
        group = self._group()
        return int(1000 * (group.now_ms + group.nodes[self._name].skew_ms)) + 1_700_000_000_000_000


class GroupLog:
    """Collects the events of all members. It is kept when a member ends."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.group: Group | None = None
        self._logs: dict[str, EventLog] = {}

    def observer(self) -> Observer:
        """Return an observer that writes events to this log."""
        return Observer(
            changed=self._changed,
            flushed=lambda name, index: member_events.emit_flush(self._log(name), index),
            acked=lambda name, index, term: member_events.emit_answer(self._log(name), index, term),
            died=lambda name: self._log(name).emit(Kind.CRASH, attrs={"kind": "simulated"}),
            started=self._started,
        )

    def _changed(self, name: str, change: Change, entry: Entry | None) -> None:
        member_events.emit_change(self._log(name), change, entry)

    def _started(self, name: str, member: Member) -> None:
        member_events.emit_start(self._log(name), member.core)

    def _log(self, name: str) -> EventLog:
        if name not in self._logs:
            self._logs[name] = EventLog(self.events.append, name, _NodeClock(self._the_group, name))
        return self._logs[name]

    def _the_group(self) -> Group:
        assert self.group is not None, "the group is made before it runs"
        return self.group


def record(program: bytes, checked: Counter[str] | None = None) -> list[Event]:
    """Run a program and return its event log. Raises Finding."""
    log = GroupLog()
    run = Run(program, checked if checked is not None else Counter(), log.observer())
    log.group = run.group
    run.run()
    return log.events
