"""One run of one broker: drives it, records observations, and follows the states that the model allows."""

from collections.abc import Iterable, Sequence
from typing import Final

from mqproof.conformance.engine.broker_faults import BrokerFault, InjectFault
from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.shared_steps import Query
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.offsets.checkers import CHECKERS
from mqproof.conformance.suites.offsets.oracle import EXPLANATION, State
from mqproof.conformance.suites.offsets.steps import (
    Bounds,
    Commit,
    Expire,
    Hold,
    Operation,
    Pull,
    Search,
    Send,
    Write,
)
from mqproof.conformance.suites.offsets.target import QUEUES, Capability, Message, OffsetsTarget
from mqproof.reference.rules.pulling import EVERYTHING, Status, selects

PROMPT_S: Final = 1.0
"""The time limit for the answer to a waiting pull after a selected message, if nothing else takes time."""
_DRAIN_COUNT: Final = 32
_PULLS_MAX: Final = 100


class OffsetsSession(Stepped[State, Operation]):
    """The steps of one run, as methods.

    The constructor opens the target. Each step may raise TargetError, and no step is possible after that.

    Raises:
        TargetError: the target cannot be started.
    """

    def __init__(self, target: OffsetsTarget) -> None:
        self.target = target
        self.ends = [0] * QUEUES
        """One more than the last offset, by queue."""
        self.unknown = 0
        """The number of commits that may or may not have been stored."""
        self._sent = 0
        super().__init__(f"a broker with a new topic of {QUEUES} queues", EXPLANATION, CHECKERS)
        target.open()

    def send(self, queue_id: int, tag: str) -> None:
        msg_id = self._next_id()
        offset = self.target.send(queue_id, msg_id, tag)
        self.observe(Send(queue_id, Message(msg_id, tag, offset)))
        self.ends[queue_id] += 1

    def pull(
        self,
        queue_id: int,
        offset: int,
        count: int = _DRAIN_COUNT,
        expression: str = EVERYTHING,
        commit: int | None = None,
    ) -> Pull:
        answer = self.target.pull(queue_id, offset, count, expression, commit)
        pull = Pull(queue_id, offset, count, expression, commit, answer)
        self.observe(pull)
        return pull

    def hold(self, queue_id: int, count: int, expression: str, tags: Sequence[str]) -> None:
        """Pull at the end of the queue, and send messages with these tags while the pull waits.

        If waiting takes real time, a selected message is added at the end, so that the pull does not wait in
        vain.
        """
        clock = Capability.CLOCK in self.target.capabilities
        if not clock and not any(selects(expression, tag) for tag in tags):
            tags = (*tags, expression.split("||")[0].strip("* "))
        offset = self.ends[queue_id]
        then = tuple((self._next_id(), tag) for tag in tags)
        held = self.target.hold(queue_id, offset, count, expression, then)
        wanted = any(selects(expression, tag) for tag in tags)
        late = clock and wanted and held.waited_s > PROMPT_S
        self.observe(Hold(queue_id, offset, count, expression, held, late))
        self.ends[queue_id] += len(then)

    def commit(self, queue_id: int, offset: int, *, oneway: bool = False) -> None:
        if oneway:
            self.target.commit_oneway(queue_id, offset)
            self.unknown += 1
        else:
            self.target.commit(queue_id, offset)
        self.observe(Commit(queue_id, offset, oneway))

    def query(self, queue_id: int) -> None:
        self.observe(Query(queue_id, self.target.query(queue_id)))

    def bounds(self, queue_id: int) -> None:
        low, high = self.target.min_offset(queue_id), self.target.max_offset(queue_id)
        self.observe(Bounds(queue_id, low, high))

    def search(self, queue_id: int, place: int, shift_ms: int) -> None:
        """Search by the time when a message was stored, shifted by `shift_ms`."""
        self.observe(Search(queue_id, self.target.search(queue_id, place, shift_ms)))

    def expire(self) -> None:
        self.target.expire()
        self.observe(Expire())
        self.look()

    def inject(self, fault: BrokerFault, *, late: bool) -> None:
        """Inject the fault; if `late`, only after the broker has written its offsets."""
        if late and Capability.WRITE in self.target.capabilities:
            self.target.write()
            self.observe(Write())
        self.target.inject(fault)
        self.observe(InjectFault(fault))
        self.look()

    def look(self) -> None:
        """Observe all bounds and committed offsets, which changes nothing."""
        for queue_id in range(QUEUES):
            self.bounds(queue_id)
            self.query(queue_id)

    def drain(self) -> None:
        """Read all queues from their beginnings, as a consumer that follows every next offset."""
        for queue_id in range(QUEUES):
            offset = 0
            for _ in range(_PULLS_MAX):
                answer = self.pull(queue_id, offset).answer
                if answer.status is Status.NO_NEW or answer.next_offset == offset:
                    break
                offset = answer.next_offset

    def faults_in(self, operation: Operation) -> Iterable[FaultKind]:
        if isinstance(operation, Commit) and operation.oneway:
            return (FaultKind.UNHEARD,)
        return super().faults_in(operation)

    def _next_id(self) -> str:
        self._sent += 1
        return f"m{self._sent}"
