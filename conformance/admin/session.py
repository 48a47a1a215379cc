"""One run of one broker: administers it, writes down what was seen, and follows what the model allows."""

from collections import Counter

from conformance.admin.checkers import CHECKERS
from conformance.admin.oracle import EXPLANATION
from conformance.admin.steps import (
    ById,
    ByKey,
    Clone,
    Commit,
    DeleteGroup,
    DeleteTopic,
    MakeGroup,
    MakeTopic,
    Pull,
    Query,
    Send,
    ShowGroup,
    ShowTopic,
)
from conformance.admin.target import GROUPS, TOPICS, AdminTarget
from conformance.history.finding import Finding
from conformance.stepped import Stepped
from reference.administration import Group, Topic


class AdminSession:
    """Opens the target. Methods are steps; each may raise TargetError, and none but `close` works after it.

    Raises:
        TargetError: the target cannot be brought up.
    """

    dead = False

    def __init__(self, target: AdminTarget) -> None:
        self.target = target
        self.sent: dict[str, str] = {}
        """Messages that were stored: id to offset message id."""
        self._drawn = 0
        self._seen = Stepped("a broker with none of our topics and groups", EXPLANATION, CHECKERS)
        target.open()

    # -- administration

    def make_topic(self, topic: str, settings: Topic) -> None:
        self.target.make_topic(topic, settings)
        self._seen.saw(MakeTopic(topic, settings))

    def delete_topic(self, topic: str) -> None:
        self.target.delete_topic(topic)
        self._seen.saw(DeleteTopic(topic))

    def make_group(self, group: str, settings: Group) -> None:
        self.target.make_group(group, settings)
        self._seen.saw(MakeGroup(group, settings))

    def delete_group(self, group: str) -> None:
        self.target.delete_group(group)
        self._seen.saw(DeleteGroup(group))

    def clone(self, source: str, destination: str, topic: str) -> None:
        self.target.clone_offsets(source, destination, topic)
        self._seen.saw(Clone(source, destination, topic))

    # -- everybody else

    def send(self, topic: str, queue_id: int, keys: str) -> None:
        self._drawn += 1
        msg_id = f"m{self._drawn}"
        offset_id = self.target.send(topic, queue_id, msg_id, keys)
        if offset_id is not None:
            self.sent[msg_id] = offset_id
        self._seen.saw(Send(topic, queue_id, msg_id, keys, offset_id))

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        taken = self.target.commit(group, topic, queue_id, offset)
        self._seen.saw(Commit(group, topic, queue_id, offset, taken))

    # -- what is told

    def look(self, groups: tuple[str, ...] = GROUPS) -> None:
        """All settings."""
        for topic in TOPICS:
            self._seen.saw(ShowTopic(topic, self.target.show_topic(topic), routed=False))
            self._seen.saw(ShowTopic(topic, self.target.route(topic), routed=True))
        for group in groups:
            self._seen.saw(ShowGroup(group, self.target.show_group(group)))

    def read(self, group: str, topic: str, queue_id: int) -> None:
        self._seen.saw(Pull(group, topic, queue_id, self.target.pull(group, topic, queue_id)))

    def by_key(self, topic: str, key: str) -> None:
        self._seen.saw(ByKey(topic, key, self.target.by_key(topic, key)))

    def by_id(self, msg_id: str) -> None:
        self._seen.saw(ById(msg_id, self.target.by_id(self.sent[msg_id])))

    def query(self, group: str, topic: str, queue_id: int) -> None:
        offset = self.target.query(group, topic, queue_id)
        self._seen.saw(Query(group, topic, queue_id, offset))

    def close(self) -> None:
        self.target.close()

    # -- the verdict

    def findings(self) -> dict[str, Finding]:
        return self._seen.findings()

    def actions(self) -> Counter[str]:
        return self._seen.actions

    def script(self) -> list[str]:
        return self._seen.script()
