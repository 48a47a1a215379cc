"""The states of the flush model that explain the observations of one client.

When no state is left, the model forbids the observations. The oracle takes only the reference's own actions,
so it allows no more than the model. It takes actions that a client cannot see (flushes, dispatches) as late
as an observation demands: a SEND_OK under SYNC_FLUSH demands the flush of its record, and a delivery demands
the dispatch of its message.

One such state, with the fewest hidden actions, represents all states with more of them. Everything that a
client can observe later from those is also possible from this one: only a crash and its recovery read
`flushed`, `queue_flushed` and `checkpoint`, and lower values allow more outcomes of a crash. Where a choice
affects later observations, the oracle keeps every choice: which abandoned sends were stored and when, which
committed offsets were persisted, and where a crash cut the log.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from mqproof.conformance.suites.flush.steps import (
    Bounds,
    Commit,
    Down,
    End,
    Operation,
    Pull,
    Query,
    Restart,
    Send,
    SyncsFail,
)
from mqproof.conformance.suites.flush.target import Outcome, PulledMessage, PullStatus, Setup
from mqproof.reference import flush

States = Iterable[flush.State]

STATES_MAX: Final = 5_000
"""The maximum number of possible states. A machine with few abandoned sends stays far below it."""


class OracleLimitError(Exception):
    """More than STATES_MAX states are possible: the history is too uncertain to be followed."""


class Oracle:
    """The set of model states that explain the operations observed so far."""

    def __init__(self, setup: Setup, flush_modes: tuple[str, ...]) -> None:
        """`flush_modes` lists the modes that the broker may have: one, or both if the mode is unknown."""
        names = tuple(f"q{number}" for number in range(setup.queues))
        self.config = flush.Config(messages=(), queues=names, flush_modes=flush_modes, crashes_max=None)
        self.setup = setup
        self.states: frozenset[flush.State] = frozenset(flush.MODEL.initial(self.config))
        self.actions: Counter[str] = Counter()
        """How often each action of the model explained an observation."""
        self.states_most = len(self.states)
        self._pending: list[Send] = []  # sends that the broker may still store
        self._flushable: int | None = None  # set once syncs fail: the number of messages sent before

    def observe(self, operation: Operation) -> bool:
        """Keep the states that explain the operation.

        Return False if there is none; the oracle is then finished.
        """
        self._store_pending()
        match operation:
            case Send():
                self._send(operation)
            case Pull():
                self._each(lambda state: self._pull(state, operation))
            case Commit():
                if operation.accepted:
                    self._each(lambda state: self._commit(state, operation))
            case Query(queue_id, offset):
                self._each(lambda state: [state] if state.committed[queue_id] == offset else [])
            case Bounds(queue_id, low, high):
                self._each(lambda state: self._end(state, queue_id, high) if low == 0 else [])
            case Down(how):
                self._each(_ENDS[how].__get__(self))
                self._pending, self._flushable = [], None
            case Restart(failure) if not failure:
                self._each(self._recover)
            case SyncsFail():
                self._flushable = len(self.config.messages)
        if not (isinstance(operation, Send) and operation.abandoned):
            self._store_pending()
            self._pending = [send for send in self._pending if send.answer.under_way]
        return bool(self.states)

    def explain(self, states: frozenset[flush.State]) -> str:
        """Describe the queues in these states for people; at most three states are shown."""
        shown = [self._describe(state) for state in sorted(states, key=repr)[:3]]
        more = len(states) - len(shown)
        return " or ".join(dict.fromkeys(shown)) + (f" (and {more} more states)" if more > 0 else "")

    # -- one method for each kind of observation: returns the states after it, none if the state does not
    # explain it

    def _send(self, send: Send) -> None:
        self._admit(send.msg_id)
        match send.answer.outcome:
            case Outcome.OK:
                self._each(lambda state: self._stored(state, send))
            case Outcome.INDETERMINATE:
                self._pending.append(send)
            case Outcome.FAILED:  # not stored
                pass

    def _stored(self, state: flush.State, send: Send) -> States:
        after = self._take("AppendRecord", state, send.msg_id, _queue(send))
        if after is None or after.log[-1].offset != send.answer.queue_offset:
            return []
        if send.answer.status == "SEND_OK":
            if after.mode == flush.SYNC_FLUSH:
                after = self._flush(after, len(after.log))
            return _some(after and self._take("AnswerOk", after, send.msg_id))
        if send.answer.status == "FLUSH_DISK_TIMEOUT":
            return _some(self._take("AnswerTimeout", after, send.msg_id))
        return []

    def _pull(self, state: flush.State, pull: Pull) -> States:
        answer = pull.answer
        if answer.min_offset != 0:  # nothing expires in this model
            return []
        for after in self._end(state, pull.queue_id, answer.max_offset):
            end = len(after.queue[pull.queue_id])
            match answer.status:
                case PullStatus.FOUND:
                    return self._found(after, pull)
                case PullStatus.NO_NEW:
                    return [after] if pull.offset == answer.next_offset == end else []
                case PullStatus.OFFSET_MOVED:
                    if pull.offset <= end or answer.next_offset != end:
                        return []
                    return [after] if pull.peek else _some(self._take("CorrectOffset", after, _queue(pull)))
        return []

    def _found(self, state: flush.State, pull: Pull) -> States:
        answer, messages = pull.answer, pull.answer.messages
        if not 1 <= len(messages) <= pull.max_count or answer.next_offset != pull.offset + len(messages):
            return []
        entries = state.queue[pull.queue_id][pull.offset : answer.next_offset]
        if len(entries) != len(messages) or _goes_back(messages):
            return []
        for offset, (position, message) in enumerate(zip(entries, messages, strict=True), pull.offset):
            pulled_message = (message.msg_id, message.topic, message.queue_id, message.queue_offset)
            if pulled_message != (state.log[position - 1].message, self.setup.topic, pull.queue_id, offset):
                return []
        if pull.peek:
            return [state]
        if pull.offset != len(state.seen[pull.queue_id]):  # not the position of this consumer
            return []
        after: flush.State | None = state
        for _ in messages:
            after = after and self._take("Deliver", after, _queue(pull))
        return _some(after)

    def _commit(self, state: flush.State, operation: Commit) -> States:
        after: flush.State | None = state
        if state.committed[operation.queue_id] != operation.offset:
            after = self._take("CommitOffset", state, _queue(operation))
        if after is None or after.committed[operation.queue_id] != operation.offset:
            return []
        return [after, *_some(self._take("PersistOffsets", after))]

    def _end(self, state: flush.State, queue_id: int, end: int) -> States:
        """Return the state in which the queue ends at `end`, exclusive; none if that is impossible."""
        after: flush.State | None = state
        while after is not None and len(after.queue[queue_id]) < end:
            after = self._dispatch(after)
        return _some(after) if after is not None and len(after.queue[queue_id]) == end else []

    def _process_crash(self, state: flush.State) -> States:
        return _some(self._take("ProcessCrash", state))

    def _system_crash(self, state: flush.State) -> States:
        """Yield the states after a crash of the system, one for each possible end of the log.

        A power loss keeps exactly the flushed data, but the amount of hidden flushes is unknown, as is the
        amount that a crashing system writes. Both therefore allow the same outcomes. Only the end of the log
        matters: a torn record is cut off, and lost queue entries are dispatched again, before a client can
        see them.
        """
        for length in range(state.flushed, len(state.log) + 1):
            yield from _some(self._take("OsCrash", state, length, False, state.queue_flushed))

    def _shutdown(self, state: flush.State) -> States:
        after = self._flush(state, len(state.log))
        for message, answer in zip(self.config.messages, state.answer, strict=True):
            if answer == "waiting":  # the client had closed its connection before the broker answered
                after = after and self._take("AnswerOk", after, message)
        while after is not None and after.dispatched < len(after.log):
            after = self._dispatch(after)
        after = after and (self._take("FlushQueues", after, after.dispatched) or after)
        for action in ("WriteCheckpoint", "PersistOffsets"):
            after = after and (self._take(action, after) or after)
        return _some(after and self._take("Shutdown", after))

    def _recover(self, state: flush.State) -> States:
        after: flush.State | None = state
        for action in ("RecoverLog", "TruncateQueues"):
            after = after and self._take(action, after)
        while after is not None and after.dispatched < len(after.log):
            after = self._take("Redispatch", after)
        after = after and self._take("Start", after)
        return _some(after and self._forget_answers(after))

    def _forget_answers(self, state: flush.State) -> flush.State:
        """Reset the answers and crash counts: nothing later depends on answers given before the restart.

        Otherwise states that differ only there would be kept apart permanently.
        """
        return replace(state, answer=("unknown",) * len(state.answer), process_crashes=0, system_crashes=0)

    # -- the model's own actions

    def _flush(self, state: flush.State, length: int) -> flush.State | None:
        if state.flushed >= length:
            return state
        last = self.config.messages.index(state.log[length - 1].message)
        if self._flushable is not None and last >= self._flushable:
            return None
        return self._take("FlushLog", state, length)

    def _dispatch(self, state: flush.State) -> flush.State | None:
        if state.dispatched >= len(state.log):
            return None
        after: flush.State | None = state
        if state.mode == flush.SYNC_FLUSH:
            after = self._flush(state, state.dispatched + 1)
        return after and self._take("Dispatch", after)

    def _take(self, action: str, state: flush.State, *parameters: Any) -> flush.State | None:
        after = flush.MODEL.actions[action].apply(self.config, state, *parameters)
        if after is not None:
            self.actions[action] += 1
        return after

    # -- the set of states

    def _each(self, step: Callable[[flush.State], States]) -> None:
        self._hold(after for state in self.states for after in step(state))

    def _hold(self, states: States) -> None:
        self.states = frozenset(states)
        self.states_most = max(self.states_most, len(self.states))
        if len(self.states) > STATES_MAX:
            raise OracleLimitError(
                f"{len(self.states)} states are possible, at most {STATES_MAX} are followed"
            )

    def _store_pending(self) -> None:
        """Add the states in which ambiguous sends have been stored by now, several of them in any order."""
        for _ in self._pending:
            self._hold(
                after
                for state in self.states
                for after in (
                    state,
                    *_present(self._take("AppendRecord", state, s.msg_id, _queue(s)) for s in self._pending),
                )
            )

    def _admit(self, message: str) -> None:
        """Add the message to the model.

        The model knows all messages in advance; a history adds them one by one.
        """
        self.config = replace(self.config, messages=(*self.config.messages, message))
        self.states = frozenset(replace(state, answer=(*state.answer, "unsent")) for state in self.states)

    def _describe(self, state: flush.State) -> str:
        queues = []
        for number, name in enumerate(self.config.queues):
            held = " ".join(record.message for record in flush.queue_records(state, name))
            queues.append(f"queue {number} [{held}] committed {state.committed[number]}")
        return ", ".join(queues)


_ENDS: Final = {
    End.KILL: Oracle._process_crash,
    End.OS_CRASH: Oracle._system_crash,
    End.POWER_LOSS: Oracle._system_crash,
    End.SHUTDOWN: Oracle._shutdown,
}


def _queue(of: Send | Pull | Commit) -> str:
    return f"q{of.queue_id}"


def _some(state: flush.State | None) -> list[flush.State]:
    return [] if state is None else [state]


def _present(states: Iterable[flush.State | None]) -> Iterator[flush.State]:
    return (state for state in states if state is not None)


def _goes_back(messages: Sequence[PulledMessage]) -> bool:
    """Return whether a store time is before that of an earlier message.

    Store times never decrease along a log (docs/reference/protocol/storing.md, "Commit log"), whatever the
    clock of the broker does. The model has no times.
    """
    times = [message.stored_ms for message in messages if message.stored_ms]
    return any(later < earlier for earlier, later in pairwise(times))
