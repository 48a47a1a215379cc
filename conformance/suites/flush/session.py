"""One run of one target: drives it, records observations, and checks each step with the oracle.

The session also simulates the only consumer: it keeps the consumer's position and last committed offset. Use
it directly for your own script, or let a machine drive it.
"""

from collections import Counter
from dataclasses import replace
from typing import Final

from mqproof.conformance.engine.fault_kinds import KINDS, FaultKind
from mqproof.conformance.engine.finding import Finding, unexplained_step, with_explanation
from mqproof.conformance.suites.flush.checkers import judge
from mqproof.conformance.suites.flush.oracle import Oracle, OracleLimitError
from mqproof.conformance.suites.flush.steps import (
    Bounds,
    Calm,
    Commit,
    Disturb,
    Down,
    End,
    History,
    Operation,
    Pull,
    Query,
    Restart,
    Send,
    SyncsFail,
    script,
)
from mqproof.conformance.suites.flush.target import (
    Capability,
    Fault,
    Outcome,
    Pulled,
    PullStatus,
    RestartFailedError,
    Sent,
    Setup,
    Target,
)
from mqproof.reference import flush
from mqproof.report.model import Witness

_PULLS_MAX: Final = 1000
_DRAIN_COUNT: Final = 32


class Session:
    """The steps of one run, as methods.

    The constructor opens the target. Each step may raise TargetError, and no step is possible after that.

    Raises:
        TargetError: the target cannot be started.
    """

    def __init__(self, target: Target, setup: Setup) -> None:
        modes = _flush_modes(target, setup)
        if len(modes) == 1:
            setup = replace(setup, flush_mode=modes[0])
        self.target = target
        self.setup = setup
        self.running = True
        self.dead = False
        self.sent = 0
        self.uncertain = 0
        """The number of sends since the last start of the broker whose outcome is unknown."""
        self.positions = [0] * setup.queues
        """The next offset of the consumer, by queue."""
        self.committed = [0] * setup.queues
        """The committed offset that the consumer knows, by queue."""
        self.oracle = Oracle(setup, modes)
        self.unexplained: Witness | None = None
        self.lost_track = False
        """True if too many states were possible: from then on only the checkers judge."""
        self._operations: list[Operation] = []
        target.open(setup)

    @property
    def history(self) -> History:
        is_simulated = Capability.SIMULATED in self.target.capabilities
        return History(self.setup, tuple(self._operations), is_simulated)

    # -- the producer

    def send(self, queue_id: int, size: int) -> None:
        """Send one message with a body of `size` bytes, at least 1."""
        msg_id, body = self._message(size)
        answer = self.target.send(self.setup.topic, queue_id, msg_id, body)
        self.uncertain += answer.outcome is Outcome.INDETERMINATE
        self._observe(Send(queue_id, msg_id, body, answer))

    def abandon(self, queue_id: int, size: int) -> None:
        """Send one message without waiting for the answer."""
        msg_id, body = self._message(size)
        self.target.abandon(self.setup.topic, queue_id, msg_id, body)
        self.uncertain += 1
        answer = Sent(Outcome.INDETERMINATE, "abandoned")
        self._observe(Send(queue_id, msg_id, body, answer, abandoned=True))

    # -- the consumer

    def pull(self, queue_id: int, max_count: int) -> None:
        """Pull at the consumer's position.

        If it is beyond the end, go back to the end and commit that offset.
        """
        answer = self._pull(queue_id, self.positions[queue_id], max_count)
        self.positions[queue_id] = answer.next_offset
        if answer.status is PullStatus.OFFSET_MOVED and Capability.COMMIT_OFFSET in self.target.capabilities:
            self._commit(queue_id, answer.next_offset, reset=True)

    def commit(self, queue_id: int) -> None:
        self._commit(queue_id, self.positions[queue_id], reset=False)

    def query(self, queue_id: int) -> None:
        offset = self.target.query_offset(self.setup.topic, queue_id)
        self.committed[queue_id] = offset
        self._observe(Query(queue_id, offset))

    # -- the examiner

    def look(self, queue_id: int, offset: int, max_count: int) -> Pulled:
        """Read without moving the consumer."""
        return self._pull(queue_id, offset, max_count, peek=True)

    def bounds(self, queue_id: int) -> None:
        low = self.target.min_offset(self.setup.topic, queue_id)
        high = self.target.max_offset(self.setup.topic, queue_id)
        self._observe(Bounds(queue_id, low, high))

    def drain(self) -> None:
        """Read all messages of all queues."""
        for queue_id in range(self.setup.queues):
            offset = 0
            for _ in range(_PULLS_MAX):
                answer = self.look(queue_id, offset, _DRAIN_COUNT)
                if answer.status is not PullStatus.FOUND or answer.next_offset <= offset:
                    break
                offset = answer.next_offset

    # -- stops and restarts of the broker

    def end(self, how: End, seed: int = 0) -> None:
        match how:
            case End.KILL:
                self.target.kill()
            case End.OS_CRASH:
                self.target.crash_os(seed)
            case End.POWER_LOSS:
                self.target.lose_power()
            case End.SHUTDOWN:
                self.target.shutdown()
        self.running, self.uncertain = False, 0
        self._observe(Down(how))

    def restart(self) -> None:
        """Restart the broker and examine what it recovered. Set `dead` if it does not start."""
        try:
            self.target.restart()
        except RestartFailedError as error:
            self.dead = True
            self._observe(Restart(str(error)))
            return
        self.running = True
        self._observe(Restart())
        self.drain()
        if Capability.COMMIT_OFFSET in self.target.capabilities:
            for queue_id in range(self.setup.queues):
                self.query(queue_id)

    def fail_syncs(self) -> None:
        self.target.fail_syncs()
        self._observe(SyncsFail())

    def disturb(self, fault: Fault) -> None:
        self.target.disturb(fault)
        self._observe(Disturb(fault))

    def calm(self) -> None:
        self.target.calm()
        self._observe(Calm())

    # -- the verdict

    def faults(self) -> Counter[FaultKind]:
        """Return how often each kind of fault was injected."""
        return Counter(kind for one in self._operations if (kind := _fault(one)))

    def actions(self) -> Counter[str]:
        """Return how often each action of the model explained an observation."""
        return self.oracle.actions

    def script(self) -> list[str]:
        return script(self.history)

    def findings(self) -> dict[str, Finding]:
        """Judge every invariant on the observations so far; return the findings by id.

        SPEC-1 is violated when the model does not explain an observation and no named invariant is violated.
        """
        return with_explanation(
            judge(self.history), len(self._operations), self.unexplained, lost_track=self.lost_track
        )

    # -- internal

    def _message(self, size: int) -> tuple[str, bytes]:
        self.sent += 1
        msg_id = f"m{self.sent}"
        return msg_id, (f"{msg_id} ".encode() * size)[:size]

    def _pull(self, queue_id: int, offset: int, max_count: int, *, peek: bool = False) -> Pulled:
        answer = self.target.pull(self.setup.topic, queue_id, offset, max_count)
        self._observe(Pull(queue_id, offset, max_count, answer, peek))
        return answer

    def _commit(self, queue_id: int, offset: int, *, reset: bool) -> None:
        accepted = self.target.commit_offset(self.setup.topic, queue_id, offset)
        if accepted:
            self.committed[queue_id] = offset
        self._observe(Commit(queue_id, offset, accepted, reset))

    def _observe(self, operation: Operation) -> None:
        self._operations.append(operation)
        if self.unexplained or self.lost_track:
            return
        before = self.oracle.states
        try:
            explained = self.oracle.observe(operation)
        except OracleLimitError:
            self.lost_track = True
            return
        if not explained:
            step = len(self._operations) + 1
            self.unexplained = unexplained_step(step, operation, self.oracle.explain(before))


def _fault(operation: Operation) -> FaultKind | None:
    match operation:
        case SyncsFail():
            return FaultKind.FAIL_SYNCS
        case Disturb(fault):
            return KINDS[fault]
        case Down(how):
            return KINDS[how]
        case Send(abandoned=True):
            return FaultKind.UNHEARD
    return None


def _flush_modes(target: Target, setup: Setup) -> tuple[str, ...]:
    """Return the flush mode of the setup or of the broker; both modes if it is unknown."""
    if Capability.FLUSH_MODE in target.capabilities:
        return (setup.flush_mode,)
    modes = (flush.SYNC_FLUSH, flush.ASYNC_FLUSH)
    return tuple(mode for mode in modes if Capability[mode] in target.capabilities) or modes
