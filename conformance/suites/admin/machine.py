"""Administrators create, change and delete topics and groups while clients send, read and query.

Faults are injected into the broker. Hypothesis draws and shrinks the examples. A rule is one step of a
session.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from mqproof.conformance.engine.broker_faults import FAULTS_MAX, BrokerFault
from mqproof.conformance.engine.example import Machine
from mqproof.conformance.suites.admin.session import AdminSession
from mqproof.conformance.suites.admin.target import GROUPS, TOPICS, AdminTarget
from mqproof.reference.rules.administration import READ, WRITE, Group, Topic

_KEYS: Final = ("Aa", "BB", "Aa BB", "k", "")
"""The keys that messages may have; Aa and BB have the same hash."""

_faults = st.lists(st.sampled_from(BrokerFault), max_size=FAULTS_MAX)
_topics = st.sampled_from(TOPICS)
_groups = st.sampled_from(GROUPS)
_queues = st.integers(0, 2)
_perms = st.sampled_from((READ | WRITE, READ | WRITE, READ | WRITE, READ, WRITE))
_topic_settings = st.builds(Topic, st.integers(1, 3), st.integers(1, 3), _perms)
_bursts = st.lists(st.tuples(_queues, st.sampled_from(_KEYS)), min_size=1, max_size=4)
_group_settings = st.builds(Group, st.sampled_from((True, True, False)), st.integers(1, 16))


class AdminMachine(Machine[AdminTarget, AdminSession]):
    """One example, with new names.

    A group is created before it is used, since some brokers create it on first use.
    """

    @initialize(topic=_topics, queues=st.integers(1, 3), burst=_bursts, faults=_faults)
    def open(self, topic: str, queues: int, burst: list[tuple[int, str]], faults: list[BrokerFault]) -> None:
        self.session = AdminSession(self.target)
        self.ahead = [each for each in faults if each in self.target.capabilities]
        self._there: set[str] = set()
        for each in TOPICS:
            self.session.make_topic(each, Topic(queues, queues, READ | WRITE))
        self.send(topic, burst)
        self.make_group(GROUPS[0], Group(consumes=True, retries_max=16))

    @rule(topic=_topics, settings=_topic_settings)
    def make_topic(self, topic: str, settings: Topic) -> None:
        self.session.make_topic(topic, settings)
        self.session.look()

    @rule(topic=_topics, again=st.booleans())
    def delete_topic(self, topic: str, again: bool) -> None:
        """Delete the topic; if `again`, create a new topic with the same name."""
        self.session.delete_topic(topic)
        self.session.look()
        if again:
            self.session.make_topic(topic, Topic(3, 3, READ | WRITE))
            for group in sorted(self._there):
                for queue in range(3):
                    self.session.read(group, topic, queue)

    @rule(group=_groups, settings=_group_settings)
    def make_group(self, group: str, settings: Group) -> None:
        self.session.make_group(group, settings)
        self._there.add(group)
        self.session.look()

    @rule(group=_groups)
    def delete_group(self, group: str) -> None:
        self.session.delete_group(group)
        self._there.discard(group)
        self.session.look()
        for other in sorted(self._there):
            for topic in TOPICS:
                for queue in range(3):
                    self.session.query(other, topic, queue)

    @rule(topic=_topics, burst=_bursts)
    def send(self, topic: str, burst: list[tuple[int, str]]) -> None:
        for queue, keys in burst:
            self.session.send(topic, queue, keys)

    @rule(group=_groups, topic=_topics, queue=_queues, offset=st.integers(0, 9))
    def consume(self, group: str, topic: str, queue: int, offset: int) -> None:
        if group in self._there:
            self.session.read(group, topic, queue)
            self.session.commit(group, topic, queue, offset)
            self.session.query(group, topic, queue)

    @rule(topic=_topics, key=st.sampled_from(("Aa", "BB", "k", "m1", "m2")), number=st.integers(0, 99))
    def look_up(self, topic: str, key: str, number: int) -> None:
        self.session.by_key(topic, key)
        if sent := sorted(self.session.sent):
            self.session.by_id(sent[number % len(sent)])

    @rule(source=_groups, topic=_topics, queue=_queues)
    def clone(self, source: str, topic: str, queue: int) -> None:
        destination = GROUPS[1 - GROUPS.index(source)]
        if {source, destination} <= self._there:
            self.session.clone(source, destination, topic)
            self.session.query(destination, topic, queue)

    @precondition(lambda machine: bool(machine.ahead))
    @rule(topic=_topics, burst=_bursts)
    def cause_fault(self, topic: str, burst: list[tuple[int, str]]) -> None:
        """Inject the next fault, send at once, and check that all acknowledged messages are found."""
        self.session.inject(self.ahead.pop())
        self.send(topic, burst)
        self._look_everywhere()

    def last_look(self) -> None:
        while self.ahead:
            self.cause_fault(TOPICS[0], [])
        self._look_everywhere()

    def _look_everywhere(self) -> None:
        self.session.look()
        for msg_id in sorted(self.session.sent):
            self.session.by_id(msg_id)
        for topic in TOPICS:
            for key in ("Aa", "BB", "k"):
                self.session.by_key(topic, key)
            for queue in range(3):
                if GROUPS[0] in self._there:
                    self.session.read(GROUPS[0], topic, queue)
                    self.session.query(GROUPS[0], topic, queue)
