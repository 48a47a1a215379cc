"""The administrative operations on a broker, and the later observations of its clients."""

from dataclasses import dataclass

from mqproof.conformance.engine.broker_faults import InjectFault
from mqproof.reference.rules.administration import READ, WRITE, Group, Topic


def _topic(settings: Topic | None) -> str:
    if settings is None:
        return "none"
    perm = "".join(letter for bit, letter in ((READ, "r"), (WRITE, "w")) if settings.perm & bit) or "-"
    return f"{settings.reads} queues to read, {settings.writes} to write, {perm}"


@dataclass(frozen=True, slots=True)
class MakeTopic:
    topic: str
    settings: Topic

    def __str__(self) -> str:
        return f"create topic {self.topic}: {_topic(self.settings)}"


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    topic: str

    def __str__(self) -> str:
        return f"delete topic {self.topic}"


@dataclass(frozen=True, slots=True)
class ShowTopic:
    topic: str
    settings: Topic | None
    routed: bool
    """True if the name server answered, false if the broker did."""

    def __str__(self) -> str:
        return f"{'route of ' if self.routed else ''}topic {self.topic}: {_topic(self.settings)}"


@dataclass(frozen=True, slots=True)
class MakeGroup:
    group: str
    settings: Group

    def __str__(self) -> str:
        return f"create group {self.group}: {self.settings}"


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    group: str

    def __str__(self) -> str:
        return f"delete group {self.group} and its offsets"


@dataclass(frozen=True, slots=True)
class ShowGroup:
    group: str
    settings: Group | None

    def __str__(self) -> str:
        return f"group {self.group}: {self.settings or 'none'}"


@dataclass(frozen=True, slots=True)
class Send:
    topic: str
    queue_id: int
    msg_id: str
    keys: str
    offset_id: str | None

    def __str__(self) -> str:
        result = "refused" if self.offset_id is None else "ok"
        return (
            f"send {self.msg_id} with keys {self.keys!r} to queue {self.queue_id} of {self.topic}: {result}"
        )


@dataclass(frozen=True, slots=True)
class Pull:
    group: str
    topic: str
    queue_id: int
    found: tuple[str, ...] | None

    def __str__(self) -> str:
        result = "refused" if self.found is None else ", ".join(self.found) or "nothing"
        return f"{self.group} reads queue {self.queue_id} of {self.topic}: {result}"


@dataclass(frozen=True, slots=True)
class ByKey:
    topic: str
    key: str
    found: tuple[str, ...]

    def __str__(self) -> str:
        return f"messages of {self.topic} with key {self.key}: {', '.join(self.found) or 'none'}"


@dataclass(frozen=True, slots=True)
class ById:
    msg_id: str
    """The id of the message whose offset message id was queried."""
    found: str | None

    def __str__(self) -> str:
        return f"message with the offset id of {self.msg_id}: {self.found or 'none'}"


@dataclass(frozen=True, slots=True)
class Commit:
    group: str
    topic: str
    queue_id: int
    offset: int
    taken: bool

    def __str__(self) -> str:
        result = "" if self.taken else ": refused"
        return f"{self.group} commits {self.offset} of queue {self.queue_id} of {self.topic}{result}"


@dataclass(frozen=True, slots=True)
class Query:
    group: str
    topic: str
    queue_id: int
    offset: int | None

    def __str__(self) -> str:
        return f"{self.group} has committed in queue {self.queue_id} of {self.topic}: {self.offset}"


@dataclass(frozen=True, slots=True)
class Clone:
    source: str
    destination: str
    topic: str

    def __str__(self) -> str:
        return f"{self.destination} gets the offsets of {self.source} in {self.topic}"


Operation = (
    MakeTopic | DeleteTopic | ShowTopic | MakeGroup | DeleteGroup | ShowGroup
    | Send | Pull | ByKey | ById | Commit | Query | Clone | InjectFault
)  # fmt: skip
