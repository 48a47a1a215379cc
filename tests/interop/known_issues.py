"""Known issues of Apache RocketMQ, by their numbers in its tracker, each as a short script of requests.

A script returns what it observes if the server has the issue, and an empty text otherwise. It uses the
remoting ports only, and names of its own, so that the scripts can run on one server one after the other.
docs/reference/conformance/known-issues.md lists what was observed on which release.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from mqproof.conformance.adapters.apache.single_request import send_request
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.remoting.batch import Part, encode_batch
from mqproof.impl.remoting.codes import RequestCode as Code
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import SendRequest, write, write_send_v2
from mqproof.impl.remoting.message import UNIQUE_KEY, encode_properties
from mqproof.impl.runtime.network import Address

OLD: Final = ("4.9.5",)
NEW: Final = ("5.5.0",)
BOTH: Final = OLD + NEW
_SECONDS_MAX: Final = 20.0
_POLL_S: Final = 0.2
_TRIES: Final = 50
_GROUP: Final = "known_issues"
_HALF: Final = 4
"""The flag of a half message."""
_COMMIT: Final = 8
_ROLLBACK: Final = 12


@dataclass(frozen=True, slots=True)
class Servers:
    """A name server and its broker."""

    names: Address
    broker: Address
    folder: Path
    """A folder for files that a script lets a server write."""

    def ask(self, code: int, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> Command:
        return self._ask(self.broker, code, fields, body)

    def ask_names(self, code: int, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> Command:
        return self._ask(self.names, code, fields, body)

    def _ask(self, server: Address, code: int, fields: Mapping[str, Any] | None, body: bytes) -> Command:
        texts = {name: str(value) for name, value in (fields or {}).items()}
        answer = send_request(server, new_request(code, texts, body), _SECONDS_MAX)
        assert answer is not None, f"{server} does not answer request code {code}"
        return answer

    def make_topic(self, topic: str, **options: object) -> Command:
        fields = {
            "topic": topic, "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6,
            "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false", **options,
        }  # fmt: skip
        return self.ask(Code.UPDATE_AND_CREATE_TOPIC, fields)

    def send(
        self, topic: str, queue_id: int = 0, body: bytes = b"x", flags: int = 0, **properties: str
    ) -> Command:
        return self.ask(Code.SEND_MESSAGE, write(self._sent(topic, queue_id, flags, properties)), body)

    def send_batch(self, topic: str, count: int) -> Command:
        parts = encode_batch([Part(b"x", {UNIQUE_KEY: f"{topic}-{number}"}) for number in range(count)])
        header = replace(self._sent(topic, 0, 0, {}), batch=True)
        return self.ask(Code.SEND_BATCH_MESSAGE, write_send_v2(header), parts)

    def _sent(self, topic: str, queue_id: int, flags: int, properties: dict[str, str]) -> SendRequest:
        return SendRequest(
            _GROUP, topic, "TBW102", 4, queue_id, flags, int(time.time() * 1000), 0,
            encode_properties(properties), reconsume_times=0, unit_mode=False,
        )  # fmt: skip

    def end_of(self, topic: str, queue_id: int = 0, at_least: int = 0) -> int:
        """Return the end of a queue, after waiting for it to reach a number."""
        for _ in range(_TRIES):
            answer = self.ask(Code.GET_MAX_OFFSET, {"topic": topic, "queueId": queue_id})
            end = int(answer.fields.get("offset", 0))
            if end >= at_least:
                break
            time.sleep(_POLL_S)
        return end

    def search(self, topic: str, time_ms: int) -> int:
        fields = {"topic": topic, "queueId": 0, "timestamp": time_ms}
        return int(self.ask(Code.SEARCH_OFFSET_BY_TIMESTAMP, fields).fields["offset"])

    def pull(self, topic: str, queue_id: int, offset: int) -> Command:
        fields = {
            "consumerGroup": _GROUP, "topic": topic, "queueId": queue_id, "queueOffset": offset,
            "maxMsgNums": 32, "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0,
            "subVersion": int(time.time() * 1000), "subscription": "*", "expressionType": "TAG",
        }  # fmt: skip
        return self.ask(Code.PULL_MESSAGE, fields)

    def commit(self, group: str, topic: str, offset: int) -> None:
        fields = {"consumerGroup": group, "topic": topic, "queueId": 0, "commitOffset": offset}
        assert self.ask(Code.UPDATE_CONSUMER_OFFSET, fields).code == ResponseCode.SUCCESS

    def committed(self, group: str, topic: str) -> int | None:
        fields = {"consumerGroup": group, "topic": topic, "queueId": 0}
        answer = self.ask(Code.QUERY_CONSUMER_OFFSET, fields)
        return int(answer.fields["offset"]) if answer.code == ResponseCode.SUCCESS else None

    def make_group(self, group: str) -> Command:
        body = json.dumps({"groupName": group, "consumeEnable": True, "brokerId": 0, "retryQueueNums": 1})
        return self.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body.encode())

    def send_half(self, topic: str, key: str) -> dict[str, object]:
        """Send a half message; return the fields that end its transaction, without the decision."""
        properties = {UNIQUE_KEY: key, "TRAN_MSG": "true", "PGROUP": _GROUP}
        fields = self.send(topic, 0, b"half", _HALF, **properties).fields
        return {
            "producerGroup": _GROUP, "tranStateTableOffset": fields["queueOffset"],
            "commitLogOffset": int(fields["msgId"][-16:], 16), "msgId": key,
            "transactionId": fields.get("transactionId", key), "fromTransactionCheck": "false",
        }  # fmt: skip


Script = Callable[[Servers], str]


@dataclass(frozen=True, slots=True)
class Issue:
    number: str
    """The number in the tracker, or the number of a CVE."""
    title: str
    releases: tuple[str, ...]
    """The releases on which the script observes it."""
    script: Script


def _search_after_the_newest(servers: Servers) -> str:
    topic = "issue_5752"
    servers.make_topic(topic)
    for _ in range(3):
        servers.send(topic)
    end = servers.end_of(topic, at_least=3)
    found = servers.search(topic, int(time.time() * 1000) + 3_600_000)
    return (
        f"the offset of a time after the newest message is {found}, not the end {end}" if found < end else ""
    )


def _search_in_a_batch(servers: Servers) -> str:
    topic = "issue_5444"
    servers.make_topic(topic)
    servers.send_batch(topic, 8)
    servers.end_of(topic, at_least=8)
    first = next(read_records(servers.pull(topic, 0, 0).body))
    found = servers.search(topic, first.store_timestamp_ms)
    if found > first.queue_offset:
        return f"the offset of the time of a batch is {found}, and {first.queue_offset} has this time too"
    return ""


def _committed_twice(servers: Servers) -> str:
    topic = "issue_5574"
    servers.make_topic(topic)
    ended = servers.send_half(topic, "key_5574")
    for _ in range(2):
        servers.ask(Code.END_TRANSACTION, {**ended, "commitOrRollback": _COMMIT})
    end = servers.end_of(topic, at_least=2)
    return f"a commit that is repeated stores the message {end} times" if end > 1 else ""


def _committed_after_a_rollback(servers: Servers) -> str:
    topic = "issue_8158"
    servers.make_topic(topic)
    ended = servers.send_half(topic, "key_8158")
    for decision in (_ROLLBACK, _COMMIT):
        servers.ask(Code.END_TRANSACTION, {**ended, "commitOrRollback": decision})
    end = servers.end_of(topic, at_least=1)
    return "a message that was rolled back is delivered after a commit" if end else ""


def _consume_three(servers: Servers, group: str, topic: str) -> None:
    """Create a topic and a group, send three messages, and commit the offset after them."""
    servers.make_topic(topic)
    servers.make_group(group)
    for _ in range(3):
        servers.send(topic)
    servers.end_of(topic, at_least=3)
    servers.commit(group, topic, 3)


def _offset_of_a_deleted_group(servers: Servers) -> str:
    topic = group = "issue_1416"
    _consume_three(servers, group, topic)
    servers.ask(Code.DELETE_SUBSCRIPTIONGROUP, {"groupName": group})
    left = servers.committed(group, topic)
    return f"the deleted group still has the offset {left}" if left else ""


def _offset_of_a_deleted_topic(servers: Servers) -> str:
    topic = group = "issue_4774"
    _consume_three(servers, group, topic)
    servers.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": topic})
    servers.make_topic(topic)
    left = servers.committed(group, topic)
    return f"the group begins at {left} in the new topic, whose queue is empty" if left else ""


def _permission_out_of_range(servers: Servers) -> str:
    topic = "issue_4257"
    answer = servers.make_topic(topic, perm=2**31 - 1)
    kept = f'"perm":{2**31 - 1}'.encode() in servers.ask(Code.GET_ALL_TOPIC_CONFIG).body
    return "a topic has the permissions 2147483647" if answer.code == ResponseCode.SUCCESS and kept else ""


def _more_queues_to_write_than_to_read(servers: Servers) -> str:
    topic = "issue_1465"
    servers.make_topic(topic, readQueueNums=2, writeQueueNums=4)
    is_sent = servers.send(topic, queue_id=3).code == ResponseCode.SUCCESS
    served = (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND)
    read, unread = servers.pull(topic, 0, 0).code, servers.pull(topic, 3, 0).code
    if is_sent and read in served and unread not in served:
        return f"a message to queue 3 is stored, and a pull from it is refused: code {unread}"
    return ""


def _write_permission_of_the_broker(servers: Servers) -> str:
    topic = "issue_4109"
    servers.make_topic(topic)
    servers.ask(Code.UPDATE_BROKER_CONFIG, None, b"brokerPermission=4")
    try:
        is_sent = servers.send(topic).code == ResponseCode.SUCCESS
    finally:
        servers.ask(Code.UPDATE_BROKER_CONFIG, None, b"brokerPermission=6")
    return "a broker without the permission to write stores a message" if is_sent else ""


def _overflowing_delay(servers: Servers) -> str:
    topic = "issue_10872"
    servers.make_topic(topic)
    servers.send(topic, TIMER_DELAY_SEC="60")
    if servers.end_of(topic, at_least=1):
        return ""  # the server has no timers
    is_sent = servers.send(topic, TIMER_DELAY_SEC=str(2**63 - 1)).code == ResponseCode.SUCCESS
    is_delivered = is_sent and servers.end_of(topic, at_least=1)
    return "a message with the longest delay is delivered at once" if is_delivered else ""


def _no_body(code: Code) -> Script:
    def script(servers: Servers) -> str:
        remark = servers.ask(code).remark or ""
        return f"{code.name} without a body: {remark[:60]}" if "NullPointerException" in remark else ""

    return script


def _home_of_the_broker(servers: Servers) -> str:
    elsewhere = servers.folder / "home-of-a-stranger"
    text = f"rocketmqHome={elsewhere}".encode()
    if servers.ask(Code.UPDATE_BROKER_CONFIG, None, text).code != ResponseCode.SUCCESS:
        return ""
    changed = text in servers.ask(Code.GET_BROKER_CONFIG).body
    return "a client without an account sets the folder whose scripts the broker runs" if changed else ""


def _file_of_the_name_server(servers: Servers) -> str:
    file = servers.folder / "file-of-a-stranger"
    servers.ask_names(Code.UPDATE_NAMESRV_CONFIG, None, f"configStorePath={file}".encode())
    servers.ask_names(Code.UPDATE_NAMESRV_CONFIG, None, b"orderMessageEnable=false")
    return "a client without an account lets the name server write any file" if file.exists() else ""


def _long_group(servers: Servers) -> str:
    is_made = servers.make_group("g" * 200).code == ResponseCode.SUCCESS
    return "a group of 200 characters is created; the name of its retry topic is too long" if is_made else ""


def _equal_hashes(servers: Servers) -> str:
    for topic, key in (("issue_3613_Aa", "Aa"), ("issue_3613_BB", "BB")):
        servers.make_topic(topic)
        servers.send(topic, KEYS=key)
        servers.end_of(topic, at_least=1)
    time.sleep(1)
    now = int(time.time() * 1000)
    fields = {
        "topic": "issue_3613_Aa", "key": "BB", "maxNum": 32, "beginTimestamp": now - 600_000,
        "endTimestamp": now + 600_000,
    }  # fmt: skip
    answer = servers.ask(Code.QUERY_MESSAGE, fields)
    return "a look-up by a key finds a message of another key" if answer.body else ""


ISSUES: Final = (
    Issue("1416", "a deleted group keeps its offsets", BOTH, _offset_of_a_deleted_group),
    Issue("1465", "more queues can be written than read", BOTH, _more_queues_to_write_than_to_read),
    Issue("3613", "a key finds messages of keys with the same hash", BOTH, _equal_hashes),
    Issue("4109", "the broker's permission does not stop sends", BOTH, _write_permission_of_the_broker),
    Issue("4257", "permissions of a topic are not checked", BOTH, _permission_out_of_range),
    Issue("4774", "a deleted topic keeps the offsets of groups", OLD, _offset_of_a_deleted_topic),
    Issue("5444", "a reset to the time of a batch skips a part of it", OLD, _search_in_a_batch),
    Issue("5574", "a repeated commit stores a message twice", BOTH, _committed_twice),
    Issue("5752", "a reset to a time after the newest message repeats it", OLD, _search_after_the_newest),
    Issue("8158", "a message is committed after its rollback", BOTH, _committed_after_a_rollback),
    Issue("9563", "the length of a group's name is not limited", OLD, _long_group),
    Issue("10008", "a list of topics without a body", NEW, _no_body(Code.UPDATE_AND_CREATE_TOPIC_LIST)),
    Issue("10872", "an overflowing delay means at once", NEW, _overflowing_delay),
    Issue("11128", "requests without a body", BOTH, _no_body(Code.LOCK_BATCH_MQ)),
    Issue("CVE-2023-33246", "any client sets the broker's home", OLD, _home_of_the_broker),
    Issue("CVE-2023-37582", "any client lets a name server write a file", OLD, _file_of_the_name_server),
)
"""In the order of their numbers."""

OURS: Final = frozenset({"1416", "1465", "4109", "5752"})
"""Issues in which our servers do the same as Apache's, because tools rely on it."""
