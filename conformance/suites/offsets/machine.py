"""Sends, pulls, waiting pulls, commits in both directions, expiry and broker faults in any order.

Hypothesis draws and shrinks the examples. A rule is one step of a session.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from mqproof.conformance.engine.broker_faults import FAULTS_MAX, BrokerFault
from mqproof.conformance.engine.example import Machine
from mqproof.conformance.suites.offsets.dimensions import UNKNOWN_MAX
from mqproof.conformance.suites.offsets.session import OffsetsSession
from mqproof.conformance.suites.offsets.target import QUEUES, Capability, OffsetsTarget

_TAGS: Final = ("A", "Aa", "BB", "")
"""The tags that messages may have; Aa and BB have the same hash."""
_EXPRESSIONS: Final = ("*", "A", "Aa", "A || BB", "absent")

_SQL_EXPRESSIONS: Final = ("sql:TAGS = 'Aa'", "sql:NOT (TAGS = 'A')", "sql:TAGS IS NULL OR TAGS > 1")
"""A message without a tag is unknown to the second one. The third one is an error for messages with a tag."""

_faults = st.lists(st.sampled_from(BrokerFault), max_size=FAULTS_MAX)
_queues = st.integers(0, QUEUES - 1)
_tags = st.sampled_from(_TAGS)
_expressions = st.sampled_from(_EXPRESSIONS)
_sql_expressions = st.sampled_from(_SQL_EXPRESSIONS)
_counts = st.integers(1, 4)
_places = st.sampled_from(("begin", "middle", "end", "beyond"))
_back = st.integers(0, 3)


class OffsetsMachine(Machine[OffsetsTarget, OffsetsSession]):
    """One example, with a new topic and a new group."""

    @initialize(queue=_queues, tags=st.lists(_tags, max_size=6), faults=_faults)
    def open(self, queue: int, tags: list[str], faults: list[BrokerFault]) -> None:
        self.session = OffsetsSession(self.target)
        self.ahead = [each for each in faults if each in self.target.capabilities]
        for tag in tags:
            self.session.send(queue, tag)

    @rule(queue=_queues, tags=st.lists(_tags, min_size=1, max_size=4))
    def send(self, queue: int, tags: list[str]) -> None:
        for tag in tags:
            self.session.send(queue, tag)

    @rule(
        queue=_queues,
        place=_places,
        back=_back,
        count=_counts,
        expression=_expressions,
        commits=st.booleans(),
    )
    def pull(self, queue: int, place: str, back: int, count: int, expression: str, commits: bool) -> None:
        offset = self._offset(queue, place, back)
        self.session.pull(queue, offset, count, expression, offset if commits else None)
        if commits:
            self.session.query(queue)

    @precondition(lambda machine: Capability.SQL92 in machine.target.capabilities)
    @rule(queue=_queues, back=_back, count=_counts, expression=_sql_expressions)
    def pull_by_sql(self, queue: int, back: int, count: int, expression: str) -> None:
        self.session.pull(queue, self._offset(queue, "begin", back), count, expression)

    @rule(queue=_queues, count=_counts, expression=_expressions, tags=st.lists(_tags, min_size=1, max_size=3))
    def hold(self, queue: int, count: int, expression: str, tags: list[str]) -> None:
        self.session.hold(queue, count, expression, tags)

    @rule(queue=_queues, place=_places, back=_back, oneway=st.booleans())
    def commit(self, queue: int, place: str, back: int, oneway: bool) -> None:
        """Commit an offset before, at or beyond the end: the broker accepts any offset."""
        oneway = oneway and self.session.unknown < UNKNOWN_MAX
        self.session.commit(queue, self._offset(queue, place, back), oneway=oneway)
        self.session.query(queue)

    @rule(queue=_queues, place=st.integers(0, 5), shift_ms=st.sampled_from((0, 0, -1, 1, -1000, 1000)))
    def search(self, queue: int, place: int, shift_ms: int) -> None:
        self.session.search(queue, place, shift_ms)

    @rule()
    def look(self) -> None:
        self.session.look()

    @precondition(lambda machine: Capability.EXPIRE in machine.target.capabilities)
    @rule(queue=_queues, tags=st.lists(_tags, min_size=4, max_size=8))
    def expire(self, queue: int, tags: list[str]) -> None:
        for tag in tags:
            self.session.send(queue, tag)
        self.session.expire()

    @precondition(lambda machine: bool(machine.ahead))
    @rule(queue=_queues, back=_back, late=st.booleans())
    def cause_fault(self, queue: int, back: int, late: bool) -> None:
        """Commit, then inject the next fault; the commit may be lost."""
        self.session.commit(queue, self._offset(queue, "end", back))
        self.session.inject(self.ahead.pop(), late=late)

    def last_look(self) -> None:
        while self.ahead:
            self.cause_fault(queue=0, back=0, late=False)
        self.session.look()
        self.session.drain()

    def _offset(self, queue: int, place: str, back: int) -> int:
        end = self.session.ends[queue]
        match place:
            case "begin":
                return back
            case "middle":
                return end // 2
            case "end":
                return max(0, end - back)
            case _:
                return end + back
