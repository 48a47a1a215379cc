"""The rules for the requests of a client that a suite examines.

`Client` keeps what one client sent and received. Each rule yields what is wrong in a request, with the
section of the protocol documentation that says so.
"""

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mqproof.conformance.answers import request_and_answer as requests
from mqproof.conformance.answers.known import STORED_CODES, UNIQUE_KEY
from mqproof.conformance.answers.request_and_answer import Exchange, Wrong, long_names
from mqproof.conformance.answers.stored_record import java_hash, properties_of
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame

_COMMITS: Final = 1
_MAY_BE_HELD: Final = 2
_HAS_SUBSCRIPTION: Final = 4
_COUNT: Final = 32
_HELD_MS: Final = 15_000
_GIVEN_UP_MS: Final = 25_000
"""The time after which a client may have given up a pull: the 15 s, and 10 s for the answer to arrive."""
_PAUSE_MS: Final = 1000
_FLOW_CONTROL: Final = 215
_PULLED: Final = frozenset({0, 19, 20, 21})
_MOVED: Final = 21
_FORGOTTEN_MS: Final = 120_000
_LISTED_MS: Final = 45_000
"""The longest time between two computations of a share: twice the 20 s, and the pause of a process."""
_COMMITTED_MS: Final = 30_000
"""The longest time until progress is committed: the 5 s, and the pause of a process."""
_SEND_MS: Final = 3000
_ATTEMPTS_MAX: Final = 3
_COMPRESSED_BYTES: Final = 4096
_COMPRESSED: Final = 1
_KEY: Final = re.compile(r"[0-9A-F]{32}")

_PUSH: Final = "CONSUME_PASSIVELY"
"""The consumeType of push consumers."""

_Queue = tuple[str, str, str, int]
"""Server, group, topic and queue."""


@dataclass(slots=True)
class _Progress:
    """How far a client is in one queue."""

    following: int | None = None
    """The offset at which the next pull must begin; None if the client may choose it."""
    most: int = 0
    """The greatest offset that the client may commit."""
    committed: int = 0
    since_ms: int | None = None
    """Since when there is progress without a commit."""
    asked_ms: int | None = None
    """When the pull without an answer was sent."""
    refused_ms: int | None = None
    """When the last pull was answered with an error."""
    is_reset: bool = False
    """Whether the broker moved the client since its last commit."""


@dataclass(slots=True)
class _Attempts:
    """The sends of one message."""

    first_ms: int
    count: int = 0
    is_stored: bool = False


@dataclass(slots=True)
class Client:
    """What one client sent and received."""

    client_id: str = ""
    subscriptions: dict[tuple[str, str], str] = field(default_factory=dict)
    """The expressions of the latest heartbeat, by group and topic."""
    kinds: dict[str, str] = field(default_factory=dict)
    """The consumeType of each group."""
    left: set[str] = field(default_factory=set)
    """The groups that the client has left."""
    queues: defaultdict[_Queue, _Progress] = field(default_factory=lambda: defaultdict(_Progress))
    sends: dict[str, _Attempts] = field(default_factory=dict)
    beaten_ms: dict[str, int] = field(default_factory=dict)
    """The time of the last heartbeat to each server."""
    listed_ms: dict[str, int] = field(default_factory=dict)
    """When the client last asked for the members of a group."""

    def asked(self, request: Frame, server: str, now_ms: int) -> Iterator[Wrong]:
        """Yield what is wrong in a request of the client."""
        fields = long_names(request)
        match request.code:
            case requests.HEART_BEAT:
                yield from self._beats(request, server, now_ms)
            case requests.LIST_MEMBERS:
                yield from self._lists(fields["consumerGroup"], now_ms)
            case requests.UNREGISTER:
                yield from self._leaves(fields)
            case requests.PULL:
                yield from self._pulls(fields, server, now_ms)
            case requests.COMMIT:
                yield from self._commits(fields, server)
            case requests.SEND_V2:
                yield from self._sends(request, fields, now_ms)

    def answered(self, exchange: Exchange) -> None:
        """Keep what an answer says to the client."""
        code, fields, answer = exchange.request.code, exchange.fields, exchange.answer
        if code == requests.PULL:
            self._pulled(exchange)
        elif code in (
            requests.QUERY_OFFSET,
            requests.SEARCH,
            requests.GET_MAX_OFFSET,
            requests.GET_MIN_OFFSET,
        ):
            offset = exchange.answered("offset")
            for queue, progress in self.queues.items():
                if queue[2:] == (fields.get("topic"), exchange.number("queueId")):
                    progress.following = progress.since_ms = None
                    progress.most = max(progress.most, offset or 0)
        elif code == requests.SEND_V2:
            attempts = self.sends.get(properties_of(fields.get("properties", "")).get(UNIQUE_KEY, ""))
            if attempts and answer.code in STORED_CODES:
                attempts.is_stored = True

    def moved(self) -> None:
        """Take a request of the broker that resets offsets."""
        for progress in self.queues.values():
            progress.following = progress.since_ms = progress.asked_ms = None
            progress.is_reset = True

    # Consumers

    def _beats(self, request: Frame, server: str, now_ms: int) -> Iterator[Wrong]:
        body: Mapping[str, Any] = json.loads(request.body)
        client_id = body.get("clientID", "")
        if "@" not in client_id or self.client_id not in ("", client_id):
            yield Wrong(chapters.CLIENT_IDS, f"client id {client_id!r}, {self.client_id!r} before")
        self.client_id = client_id
        before_ms = self.beaten_ms.get(server, now_ms)
        self.beaten_ms[server] = now_ms
        if now_ms - before_ms >= _FORGOTTEN_MS:
            yield Wrong(
                chapters.CLIENT_REGISTRATION, f"the last heartbeat was {now_ms - before_ms} ms before"
            )
        self.subscriptions.clear()
        for consumer in body.get("consumerDataSet", ()):
            group = consumer["groupName"]
            self.kinds[group] = consumer["consumeType"]
            self.left.discard(group)
            for each in consumer["subscriptionDataSet"]:
                self.subscriptions[group, each["topic"]] = each["subString"]
                tags = {java_hash(tag) for tag in each["tagsSet"]}
                if set(each["codeSet"]) != tags:
                    yield Wrong(chapters.TAG_CODES, f"codes {each['codeSet']} of the tags {each['tagsSet']}")
            is_shared = consumer["messageModel"] == "CLUSTERING"
            is_push = consumer["consumeType"] == _PUSH and is_shared
            if is_push and (group, f"%RETRY%{group}") not in self.subscriptions:
                yield Wrong(chapters.PUSH_CONSUMERS, f"{group} does not subscribe to its retry topic")

    def _lists(self, group: str, now_ms: int) -> Iterator[Wrong]:
        before_ms = self.listed_ms.get(group, now_ms)
        self.listed_ms[group] = now_ms
        if now_ms - before_ms > _LISTED_MS:
            text = f"the share of {group} was last computed {now_ms - before_ms} ms before"
            yield Wrong(chapters.PUSH_CONSUMERS, text)

    def _leaves(self, fields: Mapping[str, str]) -> Iterator[Wrong]:
        group = fields.get("consumerGroup", "")
        if fields.get("clientID") != self.client_id:
            text = f"{fields.get('clientID')!r} leaves, the client id is {self.client_id!r}"
            yield Wrong(chapters.CLIENT_REGISTRATION, text)
        self.left.add(group)
        for queue in [queue for queue in self.queues if queue[1] == group]:
            del self.queues[queue]
        self.listed_ms.pop(group, None)

    def _pulls(self, fields: Mapping[str, str], server: str, now_ms: int) -> Iterator[Wrong]:
        group, topic, queue_id = fields["consumerGroup"], fields["topic"], int(fields["queueId"])
        progress = self.queues[server, group, topic, queue_id]
        flags, offset = int(fields["sysFlag"]), int(fields["queueOffset"])
        yield from self._subscribes(group, topic, fields)
        is_push = self.kinds.get(group) == _PUSH
        if is_push:
            values = (
                ("maxMsgNums", _COUNT, int(fields["maxMsgNums"])),
                ("suspendTimeoutMillis", _HELD_MS, int(fields["suspendTimeoutMillis"])),
                ("flags to hold, with a subscription", 6, flags & (_MAY_BE_HELD | _HAS_SUBSCRIPTION)),
            )
            for name, expected, observed in values:
                if observed != expected:
                    yield Wrong(chapters.PUSH_CONSUMERS, f"{name} is {observed}, expected {expected}")
        if is_push and progress.following is not None and offset != progress.following:
            text = f"a pull from {offset}, the answer before says {progress.following}"
            yield Wrong(chapters.PUSH_CONSUMERS, text)
        if is_push and progress.asked_ms is not None and self.listed_ms.get(group, 0) < progress.asked_ms:
            yield Wrong(chapters.PUSH_CONSUMERS, "a second pull before the answer to the first one")
        if progress.refused_ms is not None and now_ms - progress.refused_ms < _PAUSE_MS:
            text = f"a pull {now_ms - progress.refused_ms} ms after an error, expected {_PAUSE_MS}"
            yield Wrong(chapters.PUSH_CONSUMERS, text)
        if progress.since_ms is not None and now_ms - progress.since_ms > _COMMITTED_MS:
            text = f"offset {progress.following} is not committed after {now_ms - progress.since_ms} ms"
            yield Wrong(chapters.MOVED_QUEUES, text)
        progress.following, progress.asked_ms, progress.refused_ms = None, now_ms, None
        progress.most = max(progress.most, offset)
        if flags & _COMMITS:
            yield from self._committed(progress, int(fields["commitOffset"]))

    def _subscribes(self, group: str, topic: str, fields: Mapping[str, str]) -> Iterator[Wrong]:
        if group in self.left:
            yield Wrong(chapters.PUSH_CONSUMERS, f"a pull after the client has left {group}")
        expression = self.subscriptions.get((group, topic))
        if expression is not None and fields.get("subscription") != expression:
            text = f"subscription {fields.get('subscription')!r}, that of the heartbeat is {expression!r}"
            yield Wrong(chapters.PUSH_CONSUMERS, text)

    def _pulled(self, exchange: Exchange) -> None:
        fields = exchange.fields
        progress = self.queues[
            exchange.server, fields["consumerGroup"], fields["topic"], exchange.number("queueId")
        ]
        if progress.asked_ms != exchange.asked_ms:
            return  # the client no longer waits for this answer
        progress.asked_ms = None
        if exchange.answered_ms - exchange.asked_ms >= _GIVEN_UP_MS:
            return  # a process that was paused may find the time-out before the answer
        code = exchange.answer.code
        if code not in _PULLED:
            progress.refused_ms = exchange.answered_ms if code != _FLOW_CONTROL else None
            return
        progress.following = exchange.answered("nextBeginOffset")
        progress.most = max(progress.most, progress.following or 0)
        if code == _MOVED:
            progress.is_reset, progress.since_ms = True, None
        elif code == 0 and progress.since_ms is None:
            progress.since_ms = exchange.answered_ms

    def _commits(self, fields: Mapping[str, str], server: str) -> Iterator[Wrong]:
        group = fields["consumerGroup"]
        progress = self.queues[server, group, fields["topic"], int(fields["queueId"])]
        if group in self.left:
            yield Wrong(chapters.PUSH_CONSUMERS, f"a commit after the client has left {group}")
        is_push = self.kinds.get(group) == _PUSH
        if is_push and fields.get("onlyForward") != "true" and not progress.is_reset:
            yield Wrong(chapters.OFFSET_REQUESTS, "a commit without onlyForward and without a reset")
        yield from self._committed(progress, int(fields["commitOffset"]))

    def _committed(self, progress: _Progress, offset: int) -> Iterator[Wrong]:
        if not 0 <= offset <= progress.most and not progress.is_reset:
            text = f"a commit of {offset}, the client received messages up to {progress.most}"
            yield Wrong(chapters.CONSUMER_OFFSETS, text)
        progress.committed, progress.since_ms, progress.is_reset = offset, None, False

    # Producers

    def _sends(self, request: Frame, fields: Mapping[str, str], now_ms: int) -> Iterator[Wrong]:
        properties = properties_of(fields.get("properties", ""))
        key = properties.get(UNIQUE_KEY, "")
        if not _KEY.fullmatch(key):
            yield Wrong(chapters.MESSAGE_IDS, f"unique key {key!r}")
        attempts = self.sends.setdefault(key, _Attempts(now_ms))
        attempts.count += 1
        if attempts.is_stored or attempts.count > _ATTEMPTS_MAX or now_ms - attempts.first_ms > _SEND_MS:
            text = f"attempt {attempts.count}, {now_ms - attempts.first_ms} ms after the first one"
            yield Wrong(
                chapters.SEND_ATTEMPTS, text + (", after one that stored it" if attempts.is_stored else "")
            )
        if not attempts.first_ms - _SEND_MS <= int(fields["bornTimestamp"]) <= now_ms:
            yield Wrong(chapters.LOG_RECORD, f"born at {fields['bornTimestamp']}, sent at {now_ms}")
        values = (
            ("defaultTopic", "TBW102"),
            ("reconsumeTimes", "0"),
            ("batch", "false"),
            ("unitMode", "false"),
        )
        for name, expected in values:
            if fields.get(name, expected) != expected:
                yield Wrong(chapters.SEND_REQUESTS, f"{name} {fields[name]!r}, expected {expected!r}")
        yield from _compression(request.body, int(fields["sysFlag"]))


def _compression(body: bytes, system_flag: int) -> Iterator[Wrong]:
    if not system_flag & _COMPRESSED:
        if len(body) >= _COMPRESSED_BYTES:
            yield Wrong(chapters.COMPRESSION, f"a body of {len(body)} bytes is not compressed")
        return
    try:
        size = len(zlib.decompress(body))
    except zlib.error as error:
        yield Wrong(chapters.COMPRESSION, f"the body is no zlib stream: {error}")
        return
    if size < _COMPRESSED_BYTES:
        yield Wrong(chapters.COMPRESSION, f"a body of {size} bytes is compressed")
