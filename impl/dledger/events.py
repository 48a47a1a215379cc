"""Records the actions of a member in its event log.

See docs/reference/protocol/event-log.md, "Events of a DLedger member".
"""

from mqproof.impl.dledger.changes import (
    Appended,
    Ballot,
    Change,
    Committed,
    Cut,
    Follows,
    Kept,
    Leads,
    SteppedDown,
    Voted,
    Written,
)
from mqproof.impl.dledger.core import Core
from mqproof.impl.dledger.rpc_bodies import Entry
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Kind


def emit_change(events: EventLog, change: Change, entry: Entry | None) -> None:
    """Record one change, right after it was carried out.

    `entry` is the entry that was appended or written.
    """
    match change:
        case Ballot(term, voted_for):
            events.emit(Kind.VOTE, term=term, status="DURABLE", attrs={"voted_for": voted_for or ""})
        case Voted(candidate, term, result):
            events.emit(Kind.VOTE, term=term, status=result, attrs={"candidate": candidate})
        case SteppedDown(term, reason, peer):
            attrs = {"reason": str(reason), "peer": peer or ""}
            events.emit(Kind.STEP_DOWN, term=term, attrs=attrs)
        case Leads(term):
            events.emit(Kind.BECOME_LEADER, term=term)
        case Follows(leader, term):
            events.emit(Kind.HEARTBEAT, term=term, attrs={"leader": leader})
        case Cut(end):
            events.emit(Kind.TRUNCATE, attrs={"index": str(end)})
        case Appended() | Written():
            assert entry is not None, "an entry was written"
            role = "leader" if isinstance(change, Appended) else "follower"
            attrs = {"index": str(entry.index), "magic": str(entry.magic), "role": role}
            events.emit(Kind.RAFT_APPEND, term=entry.term, commit_offset=entry.pos, attrs=attrs)
        case Kept(index, leader):
            events.emit(Kind.HA_ACK, attrs={"index": str(index), "leader": leader})
        case Committed(index):
            events.emit(Kind.RAFT_COMMIT, attrs={"index": str(index)})


def emit_flush(events: EventLog, index: int) -> None:
    """Record that the ledger is durable up to an index, as far as it was synced."""
    events.emit(Kind.FLUSH, attrs={"file": "log", "index": str(index)})


def emit_answer(events: EventLog, index: int, term: int) -> None:
    """Record that a client was notified that its entry is committed."""
    events.emit(Kind.SEND_ACK, term=term, status="SEND_OK", attrs={"index": str(index)})


def emit_start(events: EventLog, core: Core) -> None:
    """Record the state that a start found on the disk. All of it is durable."""
    state = core.state
    attrs = {
        "index": str(state.terms.end),
        "end_term": str(state.terms.end_term),
        "voted_for": state.voted_for or "",
        "members": ",".join(core.config.members),
    }
    events.emit(Kind.RECOVER, term=state.term, attrs=attrs)
