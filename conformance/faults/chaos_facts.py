"""What the history of a capture needs in advance: groups, clients, and messages from before its beginning."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mqproof.conformance.faults.capture_file import entries_of
from mqproof.conformance.history.lines import Group
from mqproof.impl.chaos.capture import Entry, Recorded
from mqproof.impl.chaos.frame_head import command_of
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.batch import Part, decode_batch
from mqproof.impl.remoting.bodies import ConsumerData, Heartbeat
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.frame import FrameError
from mqproof.impl.remoting.headers import HeaderError, SendRequest, read, read_send_v2
from mqproof.impl.remoting.message import UNIQUE_KEY, StoredMessage, decode_properties
from mqproof.impl.store.files import record

SENDS: Final = frozenset(
    {RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
)
PULLS: Final = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})
_MS: Final = 1_000_000
_BATCH_MAX: Final = 100_000
_RETRY: Final = "%RETRY%"
_TAG: Final = "TAG"
_EVERYTHING: Final = ("", "*")


@dataclass(slots=True)
class Facts:
    """The facts of one capture."""

    is_complete: bool = False
    """Whether the file has its END record."""
    clients: dict[int, str] = field(default_factory=dict)
    """The client id of each connection on which it is known."""
    groups: dict[str, Group] = field(default_factory=dict)
    unjudged: set[str] = field(default_factory=set)
    """Groups whose pulls cannot be judged: they filter by SQL92, or by several sets of tags."""
    earlier: dict[str, str] = field(default_factory=dict)
    """The topic of each message that was stored before the capture began, by its id."""


def facts_of(path: Path) -> Facts:
    """Read a capture once. Raises CaptureError and OSError as `entries_of`."""
    reader = _Reader()
    for entry in entries_of(path):
        reader.add(entry)
    return reader.facts()


@dataclass(slots=True)
class _Reader:
    _found: Facts = field(default_factory=Facts)
    _tags: dict[str, set[frozenset[str]]] = field(default_factory=lambda: defaultdict(set))
    _broadcast: set[str] = field(default_factory=set)
    _sent: set[str] = field(default_factory=set)
    _stored: dict[str, str] = field(default_factory=dict)
    _began_ms: int = -1
    _pulls: dict[tuple[int, int], bool] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        if self._began_ms < 0:
            self._began_ms = entry.time_ns // _MS
        if entry.kind is Recorded.END:
            self._found.is_complete = True
        elif entry.kind is Recorded.TO_SERVER:
            self._request(entry)
        elif entry.kind is Recorded.TO_CLIENT:
            self._response(entry)

    def facts(self) -> Facts:
        found = self._found
        found.earlier = {id_: topic for id_, topic in self._stored.items() if id_ not in self._sent}
        for group in {*self._tags, *self._broadcast}:
            tags = self._tags.get(group, set())
            if len(tags) > 1:
                found.unjudged.add(group)
            chosen = tuple(sorted(next(iter(tags)))) if len(tags) == 1 else ()
            found.groups[group] = Group(tags=chosen, broadcast=group in self._broadcast)
        return found

    def _request(self, entry: Entry) -> None:
        request = command_of(entry.payload)
        if request.is_response:
            return
        if request.code == RequestCode.HEART_BEAT:
            self._heartbeat(entry.connection, request)
        elif request.code in SENDS:
            self._sent.update(id_ for id_, _ in sent_messages(request))
        elif request.code in PULLS:
            self._pulls[entry.connection, request.opaque] = True
            fields = request.fields
            if fields.get("subscription") is not None:
                kind = fields.get("expressionType") or _TAG
                self._subscribed(
                    fields.get("consumerGroup", ""), fields.get("topic", ""), kind, fields["subscription"]
                )

    def _heartbeat(self, connection: int, request: Command) -> None:
        try:
            beat = java_json.read(Heartbeat, request.body)
        except ValueError:
            return  # the broker refuses it
        self._found.clients[connection] = beat.client_id
        for data in beat.consumer_data_set:
            self._joined(data)

    def _joined(self, data: ConsumerData) -> None:
        if data.message_model == "BROADCASTING":
            self._broadcast.add(data.group_name)
        for subscription in data.subscription_data_set:
            kind = subscription.expression_type or _TAG
            self._subscribed(data.group_name, subscription.topic, kind, subscription.sub_string or "*")

    def _subscribed(self, group: str, topic: str, kind: str, expression: str) -> None:
        if topic.startswith(_RETRY):
            return
        if kind != _TAG:
            self._found.unjudged.add(group)
            return
        tags = () if expression in _EVERYTHING else (part.strip() for part in expression.split("||"))
        self._tags[group].add(frozenset(filter(None, tags)))

    def _response(self, entry: Entry) -> None:
        if not self._pulls:
            return
        answer = command_of(entry.payload)
        is_pull = answer.is_response and self._pulls.pop((entry.connection, answer.opaque), False)
        if is_pull and answer.code == ResponseCode.SUCCESS:
            for stored in stored_messages(answer.body):
                if stored.store_timestamp_ms <= self._began_ms:
                    self._stored.setdefault(stored.message_id, stored.message.topic)


def header_of_send(request: Command) -> SendRequest | None:
    """Return the header of a send; None if the broker refuses it."""
    try:
        if request.code == RequestCode.SEND_MESSAGE:
            return read(SendRequest, request.fields)
        return read_send_v2(request.fields)
    except HeaderError:
        return None


def sent_messages(request: Command) -> list[tuple[str, Part]]:
    """Return the messages of a send, each with its unique key, or an empty text without one."""
    header = header_of_send(request)
    if header is None:
        return []
    if request.code == RequestCode.SEND_BATCH_MESSAGE or header.batch:
        try:
            parts = decode_batch(request.body, _BATCH_MAX)
        except ValueError:
            return []
    else:
        parts = [Part(request.body, decode_properties(header.properties or ""))]
    return [(part.properties.get(UNIQUE_KEY, ""), part) for part in parts]


def stored_messages(body: bytes) -> Iterator[StoredMessage]:
    """Yield the messages in the answer to a pull. Raises FrameError for a damaged record."""
    at = 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        try:
            yield record.decode(body[at : at + size])
        except record.RecordError as error:
            raise FrameError(f"an answer to a pull has no whole record at byte {at}: {error}") from None
        at += size
