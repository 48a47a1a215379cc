"""Sends, pulls, commits and crashes in any order (spec/tla/Flush.tla), drawn and shrunk by Hypothesis.

A rule is one step of a session. The set of rules depends on the capabilities of the target.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from mqproof.conformance.engine.example import Machine
from mqproof.conformance.suites.flush.dimensions import ENDS, UNCERTAIN_MAX
from mqproof.conformance.suites.flush.session import Session
from mqproof.conformance.suites.flush.steps import SYSTEM_CRASHES, End
from mqproof.conformance.suites.flush.target import Capability, Fault, Setup, Target
from mqproof.reference import flush

T = TypeVar("T")

QUEUES_MAX: Final = 2
BODY_BYTES_MAX: Final = 600

_seeds = st.integers(0, 2**16 - 1)
_queues = st.integers(0, QUEUES_MAX - 1)
_sizes = st.integers(1, BODY_BYTES_MAX)
_counts = st.integers(1, 4)
_bursts = st.lists(st.tuples(_queues, _sizes), min_size=1, max_size=4)


def _ends(machine: "FlushMachine") -> list[End]:
    """Return the ways in which this broker can stop."""
    return [end for end, capability in ENDS.items() if capability in machine.target.capabilities]


def _crashes(machine: "FlushMachine") -> list[End]:
    return [end for end in _ends(machine) if end is not End.SHUTDOWN]


def _faults(machine: "FlushMachine") -> list[Fault | None]:
    """Return the faults that may disturb this broker in an example; half of the choices are None."""
    faults = [fault for fault in Fault if Capability(fault.value) in machine.target.capabilities]
    return [*(len(faults) or 1) * [None], *faults]


def _second_ends(machine: "FlushMachine") -> list[End | None]:
    """Return the crashes that may happen while the broker is stopped; mostly None."""
    return [None, None, None, *(end for end in _ends(machine) if end in SYSTEM_CRASHES)]


def _drawn_by(choices: Callable[["FlushMachine"], Sequence[T]]) -> st.SearchStrategy[T]:
    """Return a strategy that draws one of the machine's choices."""
    return st.runner().flatmap(lambda machine: st.sampled_from(choices(machine)))


def _certain(machine: "FlushMachine") -> bool:
    return machine.session.uncertain < UNCERTAIN_MAX


def _can(capability: Capability) -> Callable[["FlushMachine"], bool]:
    return lambda machine: capability in machine.target.capabilities


class FlushMachine(Machine[Target, Session]):
    """One example, with one fresh broker and its client.

    There are few rules, because all are drawn with the same probability and some examples omit some rules.
    Variants are therefore arguments of a rule.
    """

    ahead: Fault | None = None
    """The fault of this example, injected at its end at the latest.

    One is enough, since timeouts take time.
    """

    @initialize(
        mode=st.sampled_from((flush.SYNC_FLUSH, flush.ASYNC_FLUSH)),
        queues=st.integers(1, QUEUES_MAX),
        seed=_seeds,
        fault=_drawn_by(_faults),
    )
    def open(self, mode: str, queues: int, seed: int, fault: Fault | None) -> None:
        self.session = Session(self.target, Setup(mode, queues, seed))
        self.ahead = fault

    @precondition(_certain)
    @rule(queue=_queues, size=_sizes)
    def send(self, queue: int, size: int) -> None:
        self.session.send(self._queue(queue), size)

    @precondition(_certain)
    @rule(burst=_bursts)
    def send_some(self, burst: list[tuple[int, int]]) -> None:
        for queue, size in burst:
            if _certain(self):
                self.session.send(self._queue(queue), size)

    @precondition(_can(Capability.ABANDON))
    @precondition(_certain)
    @rule(queue=_queues, size=_sizes)
    def abandon(self, queue: int, size: int) -> None:
        self.session.abandon(self._queue(queue), size)

    @rule(queue=_queues, count=_counts)
    def pull(self, queue: int, count: int) -> None:
        self.session.pull(self._queue(queue), count)

    @precondition(_can(Capability.COMMIT_OFFSET))
    @rule(queue=_queues, count=_counts)
    def pull_and_commit(self, queue: int, count: int) -> None:
        """Pull, and commit only an offset above the one that the consumer knows to be committed."""
        queue = self._queue(queue)
        self.session.pull(queue, count)
        if self.session.positions[queue] > self.session.committed[queue]:
            self.session.commit(queue)

    @rule(queue=_queues, back=st.integers(0, 4), count=_counts)
    def look(self, queue: int, back: int, count: int) -> None:
        queue = self._queue(queue)
        self.session.bounds(queue)
        self.session.look(queue, max(0, self.session.positions[queue] - back), count)
        if Capability.COMMIT_OFFSET in self.target.capabilities:
            self.session.query(queue)

    @precondition(_can(Capability.SYNC_FAILURE))
    @precondition(lambda machine: bool(_crashes(machine)))
    @rule(burst=_bursts, how=_drawn_by(_crashes), seed=_seeds)
    def fail_syncs(self, burst: list[tuple[int, int]], how: End, seed: int) -> None:
        """Make every fsync fail until the broker stops.

        Any answer to the sends is allowed that makes no false promise.
        """
        self.session.fail_syncs()
        self.send_some(burst)
        self.session.drain()
        self.session.end(how, seed)
        self._restart()

    @precondition(lambda machine: machine.ahead is not None)
    @rule(burst=_bursts, then=_bursts)
    def disturb(self, burst: list[tuple[int, int]], then: list[tuple[int, int]]) -> None:
        """Send to the broker while the fault is active; the outcome of these sends is unknown."""
        fault, self.ahead = self.ahead, None
        assert fault is not None, "the precondition"
        self.session.disturb(fault)
        self.send_some(burst)
        self.session.calm()
        self.send_some(then)
        self.session.drain()

    @precondition(lambda machine: bool(_ends(machine)))
    @rule(
        how=_drawn_by(_ends),
        seed=_seeds,
        then=_drawn_by(_second_ends),
    )
    def end(self, how: End, seed: int, then: End | None) -> None:
        """Stop the broker, possibly crash the system afterwards, and restart both."""
        self.session.end(how, seed)
        if then:
            self.session.end(then, seed)
        self._restart()

    def last_look(self) -> None:
        if self.ahead:
            self.disturb([(0, 1)], [])
        self.session.drain()

    def _restart(self) -> None:
        self.session.restart()
        if self.session.dead:
            self._judge(self.session)
            reject()

    def _queue(self, number: int) -> int:
        return number % self.session.setup.queues
