"""One run of one broker: performs administration steps, records observations, and follows the model."""

from mqproof.conformance.engine.broker_faults import BrokerFault, InjectFault
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.suites.admin.checkers import CHECKERS
from mqproof.conformance.suites.admin.oracle import EXPLANATION, State
from mqproof.conformance.suites.admin.steps import (
    ById,
    ByKey,
    Clone,
    Commit,
    DeleteGroup,
    DeleteTopic,
    MakeGroup,
    MakeTopic,
    Operation,
    Pull,
    Query,
    Send,
    ShowGroup,
    ShowTopic,
)
from mqproof.conformance.suites.admin.target import GROUPS, TOPICS, AdminTarget
from mqproof.reference.rules.administration import Group, Topic


class AdminSession(Stepped[State, Operation]):
    """The steps of one run, as methods.

    The constructor opens the target. Each step may raise TargetError, and no step is possible after that.

    Raises:
        TargetError: the target cannot be started.
    """

    def __init__(self, target: AdminTarget) -> None:
        self.target = target
        self.sent: dict[str, str] = {}
        """The stored messages: id to offset message id."""
        self._drawn = 0
        super().__init__("a broker without the topics and groups of this run", EXPLANATION, CHECKERS)
        target.open()

    # -- administration

    def make_topic(self, topic: str, settings: Topic) -> None:
        self.target.make_topic(topic, settings)
        self.observe(MakeTopic(topic, settings))

    def delete_topic(self, topic: str) -> None:
        self.target.delete_topic(topic)
        self.observe(DeleteTopic(topic))

    def make_group(self, group: str, settings: Group) -> None:
        self.target.make_group(group, settings)
        self.observe(MakeGroup(group, settings))

    def delete_group(self, group: str) -> None:
        self.target.delete_group(group)
        self.observe(DeleteGroup(group))

    def clone(self, source: str, destination: str, topic: str) -> None:
        self.target.clone_offsets(source, destination, topic)
        self.observe(Clone(source, destination, topic))

    # -- the other clients

    def send(self, topic: str, queue_id: int, keys: str) -> None:
        self._drawn += 1
        msg_id = f"m{self._drawn}"
        offset_id = self.target.send(topic, queue_id, msg_id, keys)
        if offset_id is not None:
            self.sent[msg_id] = offset_id
        self.observe(Send(topic, queue_id, msg_id, keys, offset_id))

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        taken = self.target.commit(group, topic, queue_id, offset)
        self.observe(Commit(group, topic, queue_id, offset, taken))

    def inject(self, fault: BrokerFault) -> None:
        self.target.inject(fault)
        self.observe(InjectFault(fault))

    # -- observations

    def look(self, groups: tuple[str, ...] = GROUPS) -> None:
        """Observe all settings."""
        for topic in TOPICS:
            self.observe(ShowTopic(topic, self.target.show_topic(topic), routed=False))
            self.observe(ShowTopic(topic, self.target.route(topic), routed=True))
        for group in groups:
            self.observe(ShowGroup(group, self.target.show_group(group)))

    def read(self, group: str, topic: str, queue_id: int) -> None:
        self.observe(Pull(group, topic, queue_id, self.target.pull(group, topic, queue_id)))

    def by_key(self, topic: str, key: str) -> None:
        self.observe(ByKey(topic, key, self.target.by_key(topic, key)))

    def by_id(self, msg_id: str) -> None:
        self.observe(ById(msg_id, self.target.by_id(self.sent[msg_id])))

    def query(self, group: str, topic: str, queue_id: int) -> None:
        offset = self.target.query(group, topic, queue_id)
        self.observe(Query(group, topic, queue_id, offset))
