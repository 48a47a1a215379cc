"""The attacks: for each a name, what it sends, what a broker must do, and the rule that says so.

`attack.py` says what the columns mean. Names are stable. A new attack is a line at the end of its table.
"""

import json
import zlib
from collections.abc import Callable
from functools import partial
from typing import Final

from mqproof.conformance.hostile import attack_requests as of
from mqproof.conformance.hostile.attack import OPAQUE, Attack, Expected, Frames, Names, Setup, Signer
from mqproof.conformance.hostile.attack_requests import (
    MIB,
    by_account,
    each,
    fixed,
    group_config,
    heartbeat,
    held_pull,
    json_body,
    nested,
    of_group,
    of_queue,
    plain,
    pull,
    pull_fields,
    request,
    send,
    send_fields,
    topic,
    topic_fields,
)
from mqproof.conformance.wire.frames import RESPONSE, Frame, Header, encode, framed

_CLOSED, _REFUSED = Expected.CLOSED, Expected.REFUSED
_NOT_DONE, _BUSY = Expected.NOT_DONE, Expected.BUSY
_ANYTHING, _ANSWERED = Expected.ANYTHING, Expected.ANSWERED

_TINY: Final = b'{"code":105,"opaque":4711,"flag":0,"extFields":{}}'
_FRAME_BYTES_MAX: Final = 16 * MIB


def _members(**members: object) -> Frames:
    """Return a request of the name server's code 105 with other members of the header."""
    header = {"code": 105, "opaque": OPAQUE, "flag": 0, "extFields": {}, **members}
    return fixed(framed(json.dumps(header).encode()))


# Frames and headers.

_frame: Final = partial(Attack, invariant="TRUST-11", rule='framing.md, "Remoting frame"')
_header: Final = partial(Attack, invariant="TRUST-11", rule='framing.md, "Remoting command"')

_FRAMES: Final = (
    _frame("frame-length-greatest", "a frame of 2 GiB is announced", 0,
           fixed((2**31 - 1).to_bytes(4, "big") + bytes(1000)), _CLOSED),
    _frame("frame-length-negative", "a frame of a negative length", 0,
           fixed(b"\xff\xff\xff\xff" + bytes(1000)), _CLOSED),
    _frame("frame-length-one-above", "a frame with one byte more than 16 MiB is announced", 0,
           fixed((_FRAME_BYTES_MAX - 3).to_bytes(4, "big") + bytes(1000)), _CLOSED),
    _frame("frame-empty", "a frame without any byte", 0, fixed(bytes(4)), _CLOSED),
    _frame("frame-without-header", "a frame that is shorter than the word before the header", 0,
           fixed(b"\0\0\0\x03abc"), _CLOSED),
    _frame("frame-of-http", "a request of HTTP", 0,
           fixed(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n"), _CLOSED),
    _header("header-longer-than-frame", "a header that is longer than its frame", 0,
            fixed((4 + len(_TINY)).to_bytes(4, "big") + (len(_TINY) + 1).to_bytes(4, "big") + _TINY),
            _CLOSED),
    _header("header-of-garbage", "a header that is not JSON", 0, fixed(framed(bytes(range(256)))), _CLOSED),
    _header("header-nested", "a header with a hundred thousand brackets", 0,
            fixed(framed(b'{"code":10,"opaque":4711,"x":' + nested(100_000) + b"}")), _NOT_DONE),
    _header("header-of-many-fields", "a header with a hundred thousand fields", 38,
            lambda _: request(38, {f"f{number}": "" for number in range(100_000)}), _NOT_DONE),
    _header("header-of-1001-fields", "a header with one field more than 1000", 30,
            lambda names: request(30, {f"f{number}": "" for number in range(999)}
                                  | {"topic": names.topic, "queueId": 0}), _NOT_DONE),
    _header("header-above-limit", "a header of more than 1 MiB", 30,
            lambda names: request(30, {"topic": names.topic, "queueId": 0, "x": "x" * MIB}), _NOT_DONE),
    _header("header-is-list", "a header that is a list", 0, fixed(framed(b"[1,2,3]")), _CLOSED),
    _header("header-not-utf-8", "a header that is not UTF-8", 0,
            fixed(framed(b'{"code":105,"opaque":4711,"remark":"\xff\xfe"}')), _CLOSED),
    _header("header-code-text", "a request code that is a word", 0, _members(code="send"), _CLOSED),
    _header("header-code-beyond-int32", "a request code of 2^40", 0, _members(code=2**40), _NOT_DONE),
    _header("header-opaque-beyond-int32", "an opaque of 2^70", 0, _members(opaque=2**70), _CLOSED),
    _header("header-fields-are-list", "fields that are a list", 0, _members(extFields=[1, 2]), _NOT_DONE),
    _header("header-field-is-object", "a field that is an object", 0,
            _members(extFields={"topic": {"a": 1}}), _NOT_DONE),
    _header("serialization-unknown", "a header of an unknown serialization", 0,
            fixed(framed(_TINY, b"", 7)), _CLOSED),
    _header("code-unknown", "a request code that no broker knows", 32_100, plain(32_100), _REFUSED),
    _header("code-negative", "a negative request code", -1, plain(-1), _REFUSED),
    _header("response-unasked", "responses to requests that the broker never sent", 10,
            fixed(request(0, flag=RESPONSE) * 1000), _ANYTHING),
    _header("binary-lengths-lie", "a binary header whose lengths go beyond it", 0,
            fixed(framed(bytes(13) + b"\x7f\xff\xff\xff", b"", Header.BINARY)), _CLOSED),
    _header("binary-length-negative", "a binary header with a field of a negative length", 0,
            fixed(framed(bytes(13) + bytes(4) + b"\0\0\0\x06\0\x02ab\xff\xff", b"", Header.BINARY)), _CLOSED),
    _header("binary-cut", "a binary header that ends in its fixed part", 0,
            fixed(framed(bytes(9), b"", Header.BINARY)), _CLOSED),
)  # fmt: skip

# Fields of headers and bodies.

_field: Final = partial(Attack, invariant="TRUST-11", rule='framing.md, "Operation headers"')
_name: Final = partial(Attack, invariant="TRUST-11", rule='sending.md, "Topics"')
_json: Final = partial(Attack, invariant="TRUST-11", rule='framing.md, "JSON bodies"')
_config: Final = partial(Attack, invariant="TRUST-11", rule='administration.md, "Configuration of a broker"')

_FIELDS: Final = (
    _field("send-queue-beyond-int32", "a queue id of 2^40", 10, send(queueId=2**40), _REFUSED),
    _field("send-queue-beyond-all", "a queue id of -2^70", 10, send(queueId=-(2**70)), _REFUSED),
    _field("send-queue-not-there", "a queue id that the topic does not have", 10,
           send(queueId=2**31 - 1), _REFUSED),
    _field("send-time-beyond-int64", "a time of birth of 2^63", 10, send(bornTimestamp=2**63), _REFUSED),
    _field("send-flag-beyond-int32", "a flag of 2^31", 10, send(flag=2**31), _REFUSED),
    _field("send-system-flag-beyond-int32", "a system flag of -2^31 - 1", 10,
           send(sysFlag=-(2**31) - 1), _REFUSED),
    _field("send-retries-beyond-int32", "a number of deliveries of 2^31", 10,
           send(reconsumeTimes=2**31), _REFUSED),
    _field("send-queue-fraction", "a queue id of 1.5", 10, send(queueId=1.5), _REFUSED),
    _field("send-queue-word", "a queue id that is a word", 10, send(queueId="first"), _REFUSED),
    _field("send-batch-word", "a batch that is neither true nor false", 10, send(batch="perhaps"), _NOT_DONE),
    _field("send-without-topic", "a send without its topic", 10, send(without="topic"), _REFUSED),
    _field("send-group-long", "a group of ten thousand characters", 10,
           send(producerGroup="G" * 10_000), _REFUSED),
    _name("send-topic-long", "a topic of ten thousand characters", 10, send(topic="T" * 10_000), _REFUSED),
    _name("send-topic-128", "a topic with one character more than 127", 10, send(topic="T" * 128), _REFUSED),
    _name("send-topic-path", "a topic that is a path", 10, send(topic="../../../tmp/hostile"), _REFUSED),
    _name("send-topic-zero-byte", "a topic with a zero byte", 10, send(topic="T\0T"), _REFUSED),
    _name("send-topic-empty", "an empty topic", 10, send(topic=""), _REFUSED),
    _name("send-schedule-topic", "a send to the topic of delayed messages", 10,
          send(topic="SCHEDULE_TOPIC_XXXX"), _REFUSED),
    _name("send-half-topic", "a send to the topic of half messages", 10,
          send(topic="RMQ_SYS_TRANS_HALF_TOPIC"), _REFUSED),
    _field("send-properties-long", "60,000 characters of properties", 10,
           send(properties="k\x01" + "v" * 60_000 + "\x02"), _REFUSED),
    _field("send-body-large", "a body of 15 MiB", 10, send(bytes(15 * MIB)), _NOT_DONE, is_heavy=True),
    _field("send-body-one-above", "a body with one byte more than 4 MiB", 10,
           send(bytes(4 * MIB + 1)), _NOT_DONE),
    Attack("send-batch-lies", "a batch whose sizes are wrong", 320,
           send(b"\x7f\xff\xff\xff" * 20, batch="true"), _REFUSED, "TRUST-11", 'sending.md, "Batches"'),
    Attack("send-batch-negative", "a batch with a message of a negative size", 320,
           send(b"\xff\xff\xff\xf0" + bytes(40), batch="true"), _REFUSED, "TRUST-11",
           'sending.md, "Batches"'),
    _field("pull-offset-beyond-int64", "an offset of 2^63", 11, pull(queueOffset=2**63), _REFUSED),
    _field("pull-offset-negative", "the lowest offset", 11, pull(queueOffset=-(2**63)), _REFUSED),
    _field("pull-count-greatest", "2^31 - 1 messages", 11, pull(maxMsgNums=2**31 - 1), _ANYTHING),
    _field("pull-count-beyond-int32", "2^31 messages", 11, pull(maxMsgNums=2**31), _REFUSED),
    _field("pull-queue-negative", "a queue id of -1", 11, pull(queueId=-1), _REFUSED),
    _field("pull-wait-beyond-int64", "a wait of 2^64 ms", 11,
           pull(queueOffset=10**6, sysFlag=6, suspendTimeoutMillis=2**64), _REFUSED),
    _field("pull-filter-long", "a filter of a million characters", 11,
           pull(subscription="a||" * 300_000), _NOT_DONE),
    _field("pull-filter-unknown", "a filter of an unknown type", 11,
           pull(sysFlag=4, expressionType="REGEX", subscription=".*"), _REFUSED),
    _field("commit-negative", "a committed offset of -5", 15, of_queue(15, commitOffset=-5), _REFUSED),
    _field("commit-beyond-int64", "a committed offset of 2^64", 15,
           of_queue(15, commitOffset=2**64), _REFUSED),
    _field("commit-queue-beyond-int32", "a commit for queue 2^31", 15, of_queue(15, queueId=2**31), _REFUSED),
    _field("commit-group-long", "a commit of a group of 10,000 characters", 15,
           of_queue(15, consumerGroup="G" * 10_000), _REFUSED),
    _field("search-time-beyond-int64", "a search for the time 2^63", 29,
           of_queue(29, timestamp=2**63), _REFUSED),
    _field("query-count-beyond-int32", "a query for 2^31 messages", 12,
           of_group(12, key="k", maxNum=2**31, beginTimestamp=0, endTimestamp=1), _REFUSED),
    _field("query-key-long", "a query for a key of 500,000 characters", 12,
           of_group(12, key="k" * 500_000, maxNum=1, beginTimestamp=0, endTimestamp=1), _NOT_DONE),
    _field("view-inside-a-record", "a message at a place inside a record", 33,
           plain(33, offset=3), _NOT_DONE),
    _field("view-negative", "a message at a negative place", 33, plain(33, offset=-7), _NOT_DONE),
    _field("view-beyond-int64", "a message at 2^63", 33, plain(33, offset=2**63), _REFUSED),
    _field("view-beyond-the-log", "a message behind the end of the log", 33,
           plain(33, offset=2**62), _NOT_DONE),
    _field("send-back-beyond-int64", "a message at 2^63 is sent back", 36,
           of_group(36, offset=2**63, delayLevel=0, originTopic="T"), _REFUSED),
    _field("send-back-level-beyond-int32", "a message is sent back with the delay level 2^31", 36,
           of_group(36, offset=0, delayLevel=2**31), _REFUSED),
    _field("transaction-beyond-int64", "the end of a transaction at 2^63", 37,
           plain(37, producerGroup="G", tranStateTableOffset=0, commitLogOffset=2**63,
                 commitOrRollback=8, fromTransactionCheck="false", msgId="x"), _REFUSED),
    _json("heartbeat-nested", "a heartbeat of a hundred thousand brackets", 34,
          plain(34, nested(100_000)), _NOT_DONE),
    _json("heartbeat-keys-in-keys", "a heartbeat whose keys are objects in objects", 34,
          plain(34, b'{"clientID":' + b"{" * 60 + b":1}" * 60 + b"}"), _NOT_DONE),
    _json("heartbeat-is-number", "a heartbeat that is a number", 34, plain(34, b"17"), _NOT_DONE),
    _json("heartbeat-cut", "a heartbeat that ends in a text", 34, plain(34, b'{"clientID":"x'), _NOT_DONE),
    _field("heartbeat-of-many-groups", "a heartbeat of 5000 groups", 34,
           json_body(34, lambda names: heartbeat(names, 5000)), _NOT_DONE, is_heavy=True),
    _json("lock-nested", "a lock request of ten thousand brackets", 41,
          plain(41, b'{"mqSet":' + nested(10_000) + b"}"), _NOT_DONE),
    _json("lock-queue-beyond-int32", "a lock of the queue 2^40", 41,
          json_body(41, lambda names: {
              "consumerGroup": names.group, "clientId": "c",
              "mqSet": [{"topic": names.topic, "brokerName": "b", "queueId": 2**40}],
          }), _NOT_DONE),
    _field("unregister-long", "an unregistration of a client with a name of 100,000 characters", 35,
           plain(35, clientID="c" * 100_000, consumerGroup="g" * 100_000), _REFUSED),
    _field("topic-of-many-queues", "a topic of 2^31 - 1 queues", 17,
           topic(readQueueNums=2**31 - 1, writeQueueNums=2**31 - 1), _REFUSED),
    _field("topic-of-negative-queues", "a topic of -1 queues", 17,
           topic(readQueueNums=-1, writeQueueNums=-1), _REFUSED),
    _field("topic-of-permissions", "a topic with the permissions 2^31 - 1", 17,
           topic(perm=2**31 - 1), _REFUSED),
    _name("topic-path", "a new topic that is a path", 17, topic(topic="../../hostile"), _REFUSED),
    _json("group-nested", "a group with a member that is nested 500 levels deep", 200,
          lambda names: request(200, {}, b'{"groupName":"%s_n","groupRetryPolicy":{"a":%s}}'
                                % (names.group.encode(), nested(500))), _NOT_DONE),
    _json("group-queues-beyond-int32", "a group with 2^40 retry queues", 200,
          json_body(200, lambda names: {"groupName": f"{names.group}_q", "retryQueueNums": 2**40}),
          _REFUSED),
    _field("group-body-large", "a group with a body of 2 MiB", 200,
           lambda names: request(200, {}, json.dumps({"groupName": f"{names.group}_b"}).encode()
                                 + b" " * (2 * MIB)), _REFUSED),
    _field("reset-beyond-int64", "a reset of offsets to the time 2^64", 222,
           of_group(222, timestamp=2**64, isForce="true"), _REFUSED),
    _config("config-home", "a change of rocketmqHome, as in CVE-2023-33246", 25,
            plain(25, b"rocketmqHome=/tmp/hostile"), _REFUSED),
    _config("config-store", "a change of the store directory", 25,
            plain(25, b"storePathRootDir=/tmp/hostile"), _REFUSED),
    _config("config-name", "a change of the broker's name", 25, plain(25, b"brokerName=hostile"), _REFUSED),
    _config("config-garbage", "a configuration that is not text", 25,
            plain(25, b"\xff\xfe\x00=\x01"), _REFUSED),
)  # fmt: skip

# Shares of memory, connections and names.

_share: Final = partial(Attack, invariant="TRUST-12", rule='framing.md, "Shares"')


def _beats(names: Names, number: int) -> bytes:
    """Return a heartbeat with a megabyte of subscriptions; the broker keeps them for each group."""
    beat = heartbeat(names, 16, "a||" * 20_000, first=16 * number)
    return request(34, {}, json.dumps(beat).encode())


def _stored(names: Names, key: str, size: int) -> bytes:
    return request(10, send_fields(names, properties=f"KEYS\x01{key}\x02"), bytes(size))


def _query(names: Names, key: str, count: int) -> bytes:
    """Return a query for the newest messages with the key."""
    return request(12, {"topic": names.topic, "key": key, "maxNum": count,
                        "beginTimestamp": 0, "endTimestamp": 2**62})  # fmt: skip


def _queries(names: Names) -> bytes:
    """Store two messages, and query the large ones, then a small one, which needs less of a share.

    The long request between lets the broker store the messages before the queries arrive.
    """
    stored = _stored(names, "large", 4_000_000) + _stored(names, "small", 300_000)
    between = pull(bytes(4 * MIB))(names)
    return stored + between + (_query(names, "large", 32) + _query(names, "small", 1)) * 40


_SHARES: Final = (
    _share("half-frames", "fifty connections each leave half a frame of 16 MB", 10,
           lambda names: request(10, send_fields(names), bytes(15 * MIB))[:200_000], _ANYTHING,
           connections=50, is_heavy=True),
    _share("pull-bodies-held", "ten connections with held pulls that have bodies of 15 MiB", 11,
           lambda names: held_pull(bytes(15 * MIB), suspendTimeoutMillis=10_000)(names) * 3,
           _ANYTHING, connections=10, is_heavy=True),
    _share("pulls-held", "two connections ask for 20,000 held pulls each", 11,
           lambda names: held_pull(suspendTimeoutMillis=10_000)(names) * 20_000,
           _ANYTHING, connections=2, is_heavy=True),
    _share("pulls-woken", "five connections hold 8000 pulls each, which the next message wakes", 11,
           lambda names: held_pull(queueId=0, queueOffset=names.next_offset, suspendTimeoutMillis=15_000)(
               names) * min(8000, names.pulls),
           _ANYTHING, connections=5, is_heavy=True),
    _share("share-of-held-pulls", "one connection asks for more held pulls than its share", 11,
           lambda names: held_pull(suspendTimeoutMillis=10_000)(names) * names.pulls, _BUSY, is_heavy=True),
    _share("share-of-unanswered-bytes", "one connection has held pulls with headers of 1 MB", 11,
           lambda names: held_pull(x="x" * 1_000_000, suspendTimeoutMillis=10_000)(names) * 40,
           _BUSY, is_heavy=True),
    _share("share-of-incomplete-frames", "nine connections leave frames of 16 MB incomplete", 10,
           lambda names: request(10, send_fields(names), bytes(_FRAME_BYTES_MAX - 2000))[:-1],
           Expected.ONE_CLOSED, connections=9, is_heavy=True),
    _share("share-of-memberships", "one connection joins groups with long subscriptions", 34,
           each(lambda _: 16, _beats), _BUSY, is_heavy=True),
    _share("share-of-topics", "one connection creates more topics than its share", 17,
           each(lambda names: names.names,
                lambda names, number: request(17, topic_fields(f"{names.topic}_{number}"))),
           _BUSY, is_heavy=True),
    _share("share-of-groups", "one connection creates more groups than its share", 200,
           each(lambda names: names.names, lambda names, number: group_config(f"{names.group}_g{number}")),
           _BUSY, is_heavy=True),
    _share("share-of-connections", "one address opens more connections than its share", 0,
           fixed(b""), Expected.ONE_CLOSED, connections=0, is_heavy=True),
    _share("answers-not-read", "a connection pulls ten thousand times and reads no answer", 11,
           lambda names: pull()(names) * 10_000, _ANYTHING, connections=2, is_heavy=True),
    _share("share-of-unread-answers", "fifty connections query messages of 4 MB, and one reads the answers",
           12, _queries, _BUSY, connections=50, is_heavy=True),
)  # fmt: skip

# Permissions.

_right: Final = partial(
    Attack, invariant="TRUST-13", rule='access-control.md, "Permissions"', setup=Setup.ACCOUNTS,
    expected=_REFUSED,
)  # fmt: skip
_signature: Final = partial(
    Attack, invariant="TRUST-13", rule='access-control.md, "Signatures"', setup=Setup.ACCOUNTS,
    expected=_REFUSED,
)  # fmt: skip


def _as_stranger(code: int, fields: Callable[[Names], dict[str, str]], body: bytes = b"") -> Frames:
    return by_account(lambda names: Frame(code, fields=fields(names), body=body))


def _nothing(_: Names) -> dict[str, str]:
    return {}


def _view(names: Names) -> dict[str, str]:
    return {"offset": str(names.commit_offset)}


def _queue(names: Names) -> dict[str, str]:
    return {"consumerGroup": names.group, "topic": names.topic, "queueId": "0", "commitOffset": "1"}


def _valid_send(names: Names) -> Frame:
    return Frame(10, fields=send_fields(names), body=b"before")


def _forged(names: Names) -> Signer:
    """Return the account of the administrator, with another secret."""
    assert names.administrator is not None, "the setup has accounts"
    return Signer(names.administrator.access_key, "not-the-secret")


def _unknown(_: Names) -> Signer:
    return Signer("unknown-account", "not-the-secret")


def _altered(names: Names) -> bytes:
    """Return a recorded request whose body was changed after it was signed."""
    assert names.administrator is not None, "the setup has accounts"
    recorded = of.signed(_valid_send(names), names.administrator)
    return encode(Frame(10, OPAQUE, fields=recorded.fields, body=b"after!"))


_RIGHTS: Final = (
    _signature(name="unsigned-send", about="a send without an account", code=10, frames=send()),
    _signature(name="unsigned-pull", about="a pull without an account", code=11, frames=pull()),
    _signature(name="unsigned-topic", about="a new topic without an account", code=17, frames=topic()),
    _signature(name="unsigned-config", about="the configuration is read without an account", code=26,
               frames=plain(26)),
    _signature(name="unsigned-view", about="a message is read by its place without an account", code=33,
               frames=lambda names: request(33, _view(names))),
    _signature(name="unsigned-code-unknown", about="an unknown request code without an account", code=32_100,
               frames=plain(32_100)),
    _signature(name="signature-wrong", about="a send of the administrator, signed with another secret",
               code=10, frames=by_account(_valid_send, _forged)),
    _signature(name="signature-of-unknown", about="a send of an account that does not exist", code=10,
               frames=by_account(_valid_send, _unknown)),
    _signature(name="signature-of-other-body", about="a send whose body was changed after it was signed",
               code=10, frames=_altered),
    _right(name="denied-send", about="a send to a topic that is denied to the account", code=10,
           frames=_as_stranger(10, send_fields, b"x")),
    _right(name="denied-pull", about="a pull from a topic that is denied to the account", code=11,
           frames=_as_stranger(11, pull_fields)),
    _right(name="denied-view", about="a message of a denied topic is read by its place", code=33,
           frames=_as_stranger(33, _view)),
    _right(name="denied-commit", about="a commit for a denied group", code=15,
           frames=_as_stranger(15, _queue)),
    _right(name="denied-offset", about="the offset of a denied group is read", code=14,
           frames=_as_stranger(14, _queue)),
    _right(name="denied-extent", about="the end of a queue of a denied topic is read", code=30,
           frames=_as_stranger(30, _queue)),
    _right(name="denied-lock", about="a lock of a queue of a denied topic", code=41,
           frames=_as_stranger(41, _nothing, b'{"consumerGroup":"G","clientId":"c","mqSet":'
                               b'[{"topic":"T","brokerName":"b","queueId":0}]}')),
    _right(name="denied-heartbeat", about="the account joins a denied group", code=34,
           frames=by_account(lambda names: Frame(34, body=json.dumps(heartbeat(names)).encode()))),
    _right(name="not-admin-topic", about="the account creates a topic", code=17,
           frames=_as_stranger(17, lambda names: {name: str(value) for name, value
                                                  in topic_fields(f"{names.topic}_made").items()})),
    _right(name="not-admin-delete-topic", about="the account deletes the topic", code=215,
           frames=_as_stranger(215, lambda names: {"topic": names.topic})),
    _right(name="not-admin-config", about="the account changes the configuration", code=25,
           frames=_as_stranger(25, _nothing, b"brokerPermission=2")),
    _right(name="not-admin-read-config", about="the account reads the configuration", code=26,
           frames=_as_stranger(26, _nothing)),
    _right(name="not-admin-delete-log", about="the account deletes expired files of the log", code=329,
           frames=_as_stranger(329, _nothing)),
    _right(name="not-admin-reset", about="the account resets the offsets of a group", code=222,
           frames=_as_stranger(222, lambda names: {"topic": names.topic, "group": names.group,
                                                   "timestamp": "0", "isForce": "true"})),
    _right(name="not-admin-account", about="the account makes itself an administrator", code=50,
           frames=_as_stranger(50, lambda _: {"accessKey": "stranger", "secretKey": "12345678",
                                                  "admin": "true"})),
    _right(name="not-admin-all-offsets", about="the account reads all offsets", code=43,
           frames=_as_stranger(43, _nothing)),
)  # fmt: skip

# The port on which slaves connect.

_slave: Final = partial(
    Attack, code=0, invariant="TRUST-1", rule='replication.md, "Authentication of peers"',
    setup=Setup.SLAVES, expected=Expected.NOT_COUNTED,
)  # fmt: skip
_MAGIC: Final = b"MQPEER\x00\x01"


def _position(*positions: int) -> bytes:
    return b"".join(one.to_bytes(8, "big", signed=True) for one in positions)


def _proved(position: int) -> bytes:
    return _position(position) + bytes(4)


_SLAVES: Final = (
    _slave(name="slave-without-proof", about="a stranger follows as a slave and acknowledges everything",
           frames=fixed(_position(0))),
    _slave(name="slave-with-checksums",
           about="a stranger follows as a slave that shares the secret, without its handshake",
           frames=fixed(_proved(0)), has_checksums=True),
    _slave(name="slave-at-the-end", about="a stranger claims to have the whole log",
           frames=lambda names: _position(names.log_end, names.log_end)),
    _slave(name="slave-far-ahead", about="a stranger acknowledges 2^62 bytes",
           frames=fixed(_position(0, 2**62, 2**62))),
    _slave(name="slave-negative", about="a stranger acknowledges a negative position",
           frames=fixed(_position(0, -(2**63)))),
    _slave(name="slave-wrong-proof", about="a stranger proves itself with zeros",
           frames=fixed(_MAGIC + bytes(32) + b"\x01s" + bytes(32) + _proved(0)), has_checksums=True),
    _slave(name="slave-no-proof-yet",
           about="a stranger begins the handshake and acknowledges without a proof",
           frames=fixed(_MAGIC + bytes(32) + b"\x00" + _proved(0)), has_checksums=True),
    _slave(name="slave-other-version", about="a stranger begins a handshake of another version",
           frames=fixed(b"MQPEER\x00\x02" + bytes(32) + b"\x01s" + bytes(32) + _proved(0))),
    _slave(name="slave-garbage", about="a stranger sends 64 KiB of garbage to the port of slaves",
           frames=fixed(bytes(range(256)) * 256)),
    _slave(name="slave-crowd", about="eighty strangers keep connections to the port of slaves",
           frames=fixed(_position(0)), connections=80),
)  # fmt: skip

# The port on which the members of a group connect.

_member: Final = partial(
    Attack, invariant="TRUST-11", rule='dledger.md, "Limits"', setup=Setup.MEMBERS,
)  # fmt: skip


def _ask(code: int, **fields: object) -> Frames:
    """Return a request to each member, as if another member sent it."""

    def frames(names: Names) -> bytes:
        whole = {
            "group": names.group, "remoteId": f"n{names.member}", "localId": f"n{(names.member + 1) % 3}",
            "leaderId": f"n{(names.member + 1) % 3}", "term": 1, "code": 200, **fields,
        }  # fmt: skip
        return request(code, {}, json.dumps(whole).encode())

    return frames


_ENTRY: Final = {
    "magic": 1, "size": 49, "index": 0, "term": 1, "pos": 0, "channel": 0, "chainCrc": 0, "bodyCrc": 0,
    "body": "eA==",
}  # fmt: skip

_MEMBERS: Final = (
    _member("vote-term-beyond-all", "a vote with the term 2^70", 51001,
            _ask(51001, term=2**70, ledgerEndIndex=10, ledgerEndTerm=2**70), _NOT_DONE),
    _member("vote-term-greatest", "a vote with the term 2^62", 51001,
            _ask(51001, term=2**62, ledgerEndIndex=2**50, ledgerEndTerm=2**62), _REFUSED),
    _member("heartbeat-term-greatest", "a heartbeat of a leader of the term 2^62", 51002,
            _ask(51002, term=2**62), _REFUSED),
    _member("vote-index-beyond-limit", "a vote with the index 2^60", 51001,
            _ask(51001, term=5, ledgerEndIndex=2**60, ledgerEndTerm=5), _NOT_DONE),
    _member("push-contradicts", "an entry that contradicts the first committed one", 51004,
            _ask(51004, term=1000, type="APPEND", preLogIndex=-1, preLogTerm=0,
                 batchEntry=[{**_ENTRY, "term": 1000}], totalSize=49, count=1), _REFUSED),
    _member("push-entry-size", "an entry of 2^31 bytes is announced", 51004,
            _ask(51004, type="APPEND", batchEntry=[{**_ENTRY, "size": 2**31}], totalSize=49, count=1),
            _NOT_DONE),
    _member("push-of-many", "a push of 20,000 entries", 51004,
            _ask(51004, type="APPEND", batchEntry=[_ENTRY] * 20_000, totalSize=49, count=20_000), _NOT_DONE),
    _member("push-type-unknown", "a push of an unknown type", 51004, _ask(51004, type="ERASE"), _NOT_DONE),
    _member("push-commit-ahead", "a push that commits the index 2^50", 51004,
            _ask(51004, type="COMMIT", commitIndex=2**50), _ANSWERED),
    _member("transfer-to-unknown", "the leadership is transferred to an unknown member", 51005,
            _ask(51005, transferId="n0", transfereeId="n7", takeLeadershipLedgerIndex=0), _ANSWERED),
    _member("get-beyond-limit", "a read of the index 2^63", 50002, _ask(50002, beginIndex=2**63), _NOT_DONE),
    _member("member-name-long", "a heartbeat of a group of 100,000 characters", 51002,
            _ask(51002, group="g" * 100_000), _NOT_DONE),
    _member("member-nested", "a heartbeat of a hundred thousand brackets", 51002,
            plain(51002, nested(100_000)), _NOT_DONE),
)  # fmt: skip

# Compressed bodies.

_body: Final = partial(
    Attack, code=10, invariant="TRUST-14", rule='messages.md, "Compression"', setup=Setup.CONSUMER,
    expected=Expected.ALL_READ,
)  # fmt: skip
_ZLIB_FLAG: Final = 1 | 0x300


def _bomb(mib: int, count: int = 1, sys_flag: int = _ZLIB_FLAG, cut: int = 0) -> Frames:
    """Return sends of zeros, compressed. `cut` is the number of bytes that are missing at the end."""

    def frames(names: Names) -> bytes:
        compressed = zlib.compress(bytes(mib * MIB))
        body = compressed[: len(compressed) - cut]
        return request(10, send_fields(names, sysFlag=sys_flag), body) * count

    return frames


_ZSTD_FLAG: Final = 1 | 0x200
_ZSTD_BLOCK_BYTES: Final = 128 << 10


def _zstd_bomb(mib: int, count: int) -> Frames:
    """Return sends of zeros as ZSTD: a frame with a window of 2 MiB, whose blocks repeat one byte."""
    blocks = mib * MIB // _ZSTD_BLOCK_BYTES
    repeat, last = _ZSTD_BLOCK_BYTES << 3 | 1 << 1, 1
    parts = [(repeat | last * (number == blocks - 1)).to_bytes(3, "little") for number in range(blocks)]
    body = b"\x28\xb5\x2f\xfd\x00\x58" + b"".join(part + b"\0" for part in parts)
    return lambda names: request(10, send_fields(names, sysFlag=_ZSTD_FLAG), body) * count


_BODIES: Final = (
    _body(name="body-of-40-mib", about="a body that has 40 MiB when decompressed", frames=_bomb(40)),
    _body(name="bodies-of-24-mib", about="five bodies of 24 MiB each in one answer", frames=_bomb(24, 5)),
    _body(name="bodies-of-zstd", about="eight ZSTD bodies of 1.3 KB that have 40 MiB when decompressed",
          frames=_zstd_bomb(40, 8)),
    _body(name="body-at-the-limit", about="a body that has 32 MiB when decompressed", frames=_bomb(32)),
    _body(name="body-cut", about="a compressed body that ends too early", frames=_bomb(8, cut=100)),
    _body(name="body-of-other-format", about="a zlib body that is marked as ZSTD",
          frames=_bomb(1, sys_flag=1 | 0x200)),
    _body(name="body-of-unknown-format", about="a zlib body with an unknown format",
          frames=_bomb(1, sys_flag=1 | 0x700)),
    _body(name="body-not-compressed", about="a text that is marked as compressed",
          frames=lambda names: request(10, send_fields(names, sysFlag=_ZLIB_FLAG), b"text")),
)  # fmt: skip

ATTACKS: Final = (*_FRAMES, *_FIELDS, *_SHARES, *_RIGHTS, *_SLAVES, *_MEMBERS, *_BODIES)
"""All attacks, in the order in which they run."""
