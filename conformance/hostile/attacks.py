"""The attacks: for each a name, what it sends, and what a broker must do.

All use the topic and the group of the run, so that a broker with other data is not changed. Names are stable.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from mqproof.conformance.wire.frames import RESPONSE, Frame, Header, encode, framed

MIB: Final = 1 << 20


class Expected(Enum):
    """What must happen on the attacker's own connection. In every case the broker must serve others."""

    REFUSED = "an answer with another code than SUCCESS"
    CLOSED = "the connection is closed"
    NOT_DONE = "an answer with another code than SUCCESS, or the connection is closed"
    ANYTHING = "nothing in particular"


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one run."""

    topic: str
    group: str


Frames = Callable[[Names], bytes]


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    about: str
    code: int
    """The request code; 0 for bytes that are not a request."""
    frames: Frames
    """Returns the bytes that each attacking connection sends."""
    expected: Expected
    connections: int = 1


OPAQUE: Final = 4711
"""The opaque of each request of an attack."""


def send_fields(names: Names, **changes: object) -> dict[str, str]:
    """Return the fields of a valid SEND_MESSAGE, with changes."""
    fields: Mapping[str, object] = {
        "producerGroup": names.group, "topic": names.topic, "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 4, "queueId": 0, "sysFlag": 0, "bornTimestamp": 1, "flag": 0,
        "properties": "", "reconsumeTimes": 0, "unitMode": "false",
    }  # fmt: skip
    return {name: str(value) for name, value in {**fields, **changes}.items()}


def pull_fields(names: Names, **changes: object) -> dict[str, str]:
    """Return the fields of a valid PULL_MESSAGE, with changes."""
    fields: Mapping[str, object] = {
        "consumerGroup": names.group, "topic": names.topic, "queueId": 0, "queueOffset": 0, "maxMsgNums": 32,
        "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 0, "subscription": "*",
        "expressionType": "TAG",
    }  # fmt: skip
    return {name: str(value) for name, value in {**fields, **changes}.items()}


def _request(code: int, fields: Mapping[str, str] | None = None, body: bytes = b"", **more: Any) -> bytes:
    return encode(Frame(code, OPAQUE, fields=fields or {}, body=body, **more))


def _send(body: bytes = b"x", **changes: object) -> Frames:
    return lambda names: _request(10, send_fields(names, **changes), body)


def _pull(body: bytes = b"", **changes: object) -> Frames:
    return lambda names: _request(11, pull_fields(names, **changes), body)


def _offset(code: int, **changes: object) -> Frames:
    def frames(names: Names) -> bytes:
        fields = {
            "consumerGroup": names.group,
            "topic": names.topic,
            "queueId": 0,
            "commitOffset": 0,
            **changes,
        }
        return _request(code, {name: str(value) for name, value in fields.items()})

    return frames


def _topic(**changes: object) -> Frames:
    def frames(names: Names) -> bytes:
        fields = {
            "topic": f"{names.topic}_made", "defaultTopic": "TBW102", "readQueueNums": 1, "writeQueueNums": 1,
            "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false", **changes,
        }  # fmt: skip
        return _request(17, {name: str(value) for name, value in fields.items()})

    return frames


def _json_body(code: int, make: Callable[[Names], object]) -> Frames:
    return lambda names: _request(code, {}, json.dumps(make(names)).encode())


def _nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def _heartbeat(names: Names, groups: int) -> object:
    consumers = [
        {
            "groupName": f"{names.group}_{number}", "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
            "subscriptionDataSet": [], "unitMode": False,
        }
        for number in range(groups)
    ]  # fmt: skip
    return {"clientID": "hostile@1", "consumerDataSet": consumers, "producerDataSet": []}


def _raw(data: bytes) -> Frames:
    return lambda _: data


_CLOSED, _REFUSED = Expected.CLOSED, Expected.REFUSED
_NOT_DONE, _ANYTHING = Expected.NOT_DONE, Expected.ANYTHING
_TINY: Final = b'{"code":105,"opaque":4711,"flag":0,"extFields":{}}'

ATTACKS: Final = (
    Attack("frame-length-greatest", "a frame of 2 GiB is announced", 0,
           _raw((2**31 - 1).to_bytes(4, "big") + bytes(1000)), _CLOSED),
    Attack("frame-length-negative", "a frame of a negative length", 0,
           _raw(b"\xff\xff\xff\xff" + bytes(1000)), _CLOSED),
    Attack("header-longer-than-frame", "a header that is longer than its frame", 0,
           _raw((4 + len(_TINY)).to_bytes(4, "big") + (len(_TINY) + 1).to_bytes(4, "big") + _TINY), _CLOSED),
    Attack("header-of-garbage", "a header that is not JSON", 0, _raw(framed(bytes(range(256)))), _CLOSED),
    Attack("header-nested", "a header with a hundred thousand brackets", 0,
           _raw(framed(b'{"code":10,"opaque":4711,"x":' + _nested(100_000) + b"}")), _NOT_DONE),
    Attack("header-of-many-fields", "a header with a hundred thousand fields", 38,
           lambda _: _request(38, {f"f{number}": "" for number in range(100_000)}), _NOT_DONE),
    Attack("serialization-unknown", "a header of an unknown serialization", 0,
           _raw(framed(_TINY, b"", 7)), _CLOSED),
    Attack("code-unknown", "a request code that no broker knows", 32_100,
           lambda _: _request(32_100), _REFUSED),
    Attack("code-negative", "a negative request code", -1, lambda _: _request(-1), _REFUSED),
    Attack("response-unasked", "responses to requests that the broker never sent", 10,
           lambda _: _request(0, flag=RESPONSE) * 1000, _ANYTHING),
    Attack("binary-lengths-lie", "a binary header whose lengths go beyond it", 0,
           _raw(framed(bytes(13) + b"\x7f\xff\xff\xff", b"", Header.BINARY)), _CLOSED),
    Attack("half-frames", "fifty connections each leave half a frame of 16 MB", 10,
           lambda names: _request(10, send_fields(names), bytes(15 * MIB))[:200_000], _ANYTHING, 50),
    Attack("send-queue-beyond-int32", "a queue id of 2^40", 10, _send(queueId=2**40), _REFUSED),
    Attack("send-queue-beyond-all", "a queue id of -2^70", 10, _send(queueId=-(2**70)), _REFUSED),
    Attack("send-queue-not-there", "a queue id that the topic does not have", 10,
           _send(queueId=2**31 - 1), _REFUSED),
    Attack("send-topic-long", "a topic of ten thousand characters", 10, _send(topic="T" * 10_000), _REFUSED),
    Attack("send-topic-path", "a topic that is a path", 10, _send(topic="../../../tmp/hostile"), _REFUSED),
    Attack("send-topic-empty", "an empty topic", 10, _send(topic=""), _REFUSED),
    Attack("send-schedule-topic", "a send to the topic of delayed messages", 10,
           _send(topic="SCHEDULE_TOPIC_XXXX"), _REFUSED),
    Attack("send-properties-long", "60,000 characters of properties", 10,
           _send(properties="k\x01" + "v" * 60_000 + "\x02"), _REFUSED),
    Attack("send-body-large", "a body of 15 MiB", 10, _send(bytes(15 * MIB)), _NOT_DONE),
    Attack("send-batch-lies", "a batch whose sizes are wrong", 320,
           lambda names: _request(10, send_fields(names, batch="true"), b"\x7f\xff\xff\xff" * 20), _REFUSED),
    Attack("pull-offset-beyond-int64", "an offset of 2^63", 11, _pull(queueOffset=2**63), _REFUSED),
    Attack("pull-offset-negative", "the lowest offset", 11, _pull(queueOffset=-(2**63)), _REFUSED),
    Attack("pull-count-greatest", "2^31 - 1 messages", 11, _pull(maxMsgNums=2**31 - 1), _ANYTHING),
    Attack("pull-filter-long", "a filter of a million characters", 11,
           _pull(subscription="a||" * 300_000), _NOT_DONE),
    Attack("pull-bodies-held", "eight connections with held pulls that have bodies of 8 MiB", 11,
           lambda names: _pull(
               bytes(8 * MIB), queueOffset=10**6, sysFlag=6, suspendTimeoutMillis=10_000
           )(names) * 3,
           _ANYTHING, 8),
    Attack("pulls-held", "two connections ask for 20,000 held pulls each", 11,
           lambda names: _pull(
               queueOffset=0, queueId=3, sysFlag=6, suspendTimeoutMillis=10_000
           )(names) * 20_000,
           _ANYTHING, 2),
    Attack("commit-negative", "a committed offset of -5", 15, _offset(15, commitOffset=-5), _REFUSED),
    Attack("commit-beyond-int64", "a committed offset of 2^64", 15,
           _offset(15, commitOffset=2**64), _REFUSED),
    Attack("view-inside-a-record", "a message at a place inside a record", 33,
           lambda _: _request(33, {"offset": "3"}), _NOT_DONE),
    Attack("view-negative", "a message at a negative place", 33,
           lambda _: _request(33, {"offset": "-7"}), _NOT_DONE),
    Attack("heartbeat-nested", "a heartbeat of a hundred thousand brackets", 34,
           lambda _: _request(34, {}, _nested(100_000)), _NOT_DONE),
    Attack("heartbeat-of-many-groups", "a heartbeat of 5000 groups", 34,
           _json_body(34, lambda names: _heartbeat(names, 5000)), _NOT_DONE),
    Attack("topic-of-many-queues", "a topic of 2^31 - 1 queues", 17,
           _topic(readQueueNums=2**31 - 1, writeQueueNums=2**31 - 1), _REFUSED),
    Attack("topic-of-permissions", "a topic with the permissions 2^31 - 1", 17,
           _topic(perm=2**31 - 1), _REFUSED),
    Attack("group-nested", "a group with a member that is nested 500 levels deep", 200,
           lambda names: _request(200, {}, b'{"groupName":"%s_n","groupRetryPolicy":{"a":%s}}'
                                  % (names.group.encode(), _nested(500))), _NOT_DONE),
    Attack("config-home", "a change of rocketmqHome, as in CVE-2023-33246", 25,
           lambda _: _request(25, {}, b"rocketmqHome=/tmp/hostile"), _REFUSED),
)  # fmt: skip
"""All attacks, in the order in which they run."""
