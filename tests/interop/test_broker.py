"""Compares our broker with Apache's: the same requests in the same order get the same answers.

Response codes, headers and JSON bodies are compared, except fields that always differ: message ids, times,
addresses, the order of lists. A table lists each deliberate difference with its reason; an unused entry
fails.
"""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pytest

from mqproof.conformance.adapters.apache import servers
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.batch import Part, encode_batch
from mqproof.impl.remoting.bodies import (
    ConsumerData,
    Heartbeat,
    ProducerData,
    Subscription,
    SubscriptionGroup,
)
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode as Code
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.impl.store.config import StoreConfig

pytestmark = pytest.mark.apache

NAME: Final = "apache-a"

OTHERWISE: Final = {
    "send: a delay that is not a number": "MESSAGE_ILLEGAL, where Apache's code trips",
    "batch: empty": "as before",
    "batch: no batch": "as before",
    "topic: permissions 9": "refused; Apache's answer is SUCCESS, and nothing was done",
    "group: its consumers": "a negative offset is not committed",
    "group: all offsets": "as before",
    "status: no such client": "CONSUMER_NOT_ONLINE, where Apache's code trips",
    "config: no truth value": "a value of the wrong type is refused",
    "config: no number": "as before",
    "heartbeat: without a client id": "a client has an id",
    "lock: what does not exist": "only what exists is locked",
    "pull: the name of no group": "a group's name is checked before it becomes part of a file",
    "pull: newer than the heartbeat": "a subscription to everything serves a newer one",
}
OTHERWISE_IN_4_9: Final = {
    **OTHERWISE,
    "batch: to a retry topic": "refused since",
    "config: protected": "refused since",
}
OTHERWISE_IN_5: Final = {
    **OTHERWISE,
    **dict.fromkeys(
        [
            "send: queue 4",
            "send: a name with a blank",
            "send: no name",
            "send: a name too long",
            "pull: queue 9",
            "topic: a name with a blank",
            "topic: a system topic",
            "topic: delete a system topic",
        ],
        "INVALID_PARAMETER came later",
    ),
    "send: an empty body": "5.x trips",
    "send: to a retry topic once too often": "5.x gives one more chance",
    "stats: group": "the empty body above",
    "stats: topic": "the empty body above; and 5.x reports a rate",
    "back: a dead letter": "5.x trips over a missing originTopic",
    "pull: the dead letter": "as before",
    "offset: of an unknown topic": "5.x looks whether the topic exists",
    "reset: an unknown topic": "5.x resets at the broker itself",
    "reset: without offsets": "as before",
}

SEND: Final = {
    "producerGroup": "PG",
    "topic": "T",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "4",
    "queueId": "0",
    "sysFlag": "0",
    "bornTimestamp": "1",
    "flag": "0",
}
PULL: Final = {
    "consumerGroup": "G",
    "topic": "T",
    "queueId": "0",
    "queueOffset": "0",
    "maxMsgNums": "32",
    "sysFlag": "4",
    "commitOffset": "0",
    "suspendTimeoutMillis": "0",
    "subscription": "*",
    "subVersion": "0",
    "expressionType": "TAG",
}
TOPIC: Final = {
    "defaultTopic": "TBW102",
    "readQueueNums": "2",
    "writeQueueNums": "2",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": "0",
    "order": "false",
}
QUEUE: Final = {"topic": "T", "queueId": "0"}


class Step(NamedTuple):
    name: str
    code: int
    fields: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""


def send(name: str, body: bytes = b"hello", **changes: str) -> Step:
    return Step(f"send: {name}", Code.SEND_MESSAGE, {**SEND, **changes}, body)


def batch(name: str, body: bytes, **changes: str) -> Step:
    return Step(f"batch: {name}", Code.SEND_MESSAGE, {**SEND, "batch": "true", **changes}, body)


def pull(name: str, **changes: str) -> Step:
    return Step(f"pull: {name}", Code.PULL_MESSAGE, {**PULL, **changes})


def topic(name: str, **changes: str) -> Step:
    return Step(f"topic: {name}", Code.UPDATE_AND_CREATE_TOPIC, {**TOPIC, **changes})


def lock(name: str, client: str, queues: list[int], code: Code = Code.LOCK_BATCH_MQ, of: str = "T") -> Step:
    found = [{"brokerName": NAME, "queueId": queue, "topic": of} for queue in queues]
    body = {"clientId": client, "consumerGroup": "G", "mqSet": found}
    return Step(f"lock: {name}", code, {}, json.dumps(body).encode())


def group(name: str, settings: SubscriptionGroup) -> Step:
    body = java_json.write(settings, standard=True)
    return Step(f"group: {name}", Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)


def back(name: str, offset: int = 0, level: int = 0, of: str = "G") -> Step:
    fields = {"offset": str(offset), "group": of, "delayLevel": str(level)}
    return Step(f"back: {name}", Code.CONSUMER_SEND_MSG_BACK, fields)


def config(name: str, text: str) -> Step:
    return Step(f"config: {name}", Code.UPDATE_BROKER_CONFIG, {}, text.encode())


BEAT: Final = java_json.write(
    Heartbeat(
        "c1",
        [ConsumerData("G", subscription_data_set=[Subscription("T", sub_version=5)])],
        [ProducerData("PG")],
    ),
    standard=True,
)

STEPS: Final = [
    send("first"),
    send("queue 4", queueId="4"),
    send("a name with a blank", topic="a b"),
    send("no name", topic=""),
    send("a name too long", topic="t" * 128),
    send("the topic of delays", topic="SCHEDULE_TOPIC_XXXX"),
    send("a template that is not there", topic="U", defaultTopic="nowhere"),
    send("a template that gives nothing on", topic="U", defaultTopic="T"),
    send("properties too long", properties="a\x01" + "x" * 40_000),
    send("a body too long", bytes((4 << 20) + 1)),
    send("an empty body", b"", queueId="3"),
    send("delay 3", properties="DELAY\x013"),
    send("delay 99", properties="DELAY\x0199"),
    send("delay -1", properties="DELAY\x01-1", queueId="1"),
    send("a delay that is not a number", properties="DELAY\x01x"),
    send("to a retry topic", topic="%RETRY%G9"),
    send("to a retry topic for the last time", topic="%RETRY%G9", reconsumeTimes="15"),
    send("to a retry topic once too often", topic="%RETRY%G9", reconsumeTimes="16"),
    batch("two", encode_batch([Part(b"a", {"TAGS": "x"}), Part(b"b")])),
    batch("empty", b""),
    batch("no batch", b"junkjunk"),
    batch("to a retry topic", encode_batch([Part(b"a")]), topic="%RETRY%G9"),
    batch("with a delay", encode_batch([Part(b"a")]), properties="DELAY\x013"),
    pull("from 0"),
    pull("the end", queueOffset="3"),
    pull("beyond the end", queueOffset="500"),
    pull("before the begin", queueOffset="-1"),
    pull("an empty queue", topic="SELF_TEST_TOPIC"),
    pull("7 in an empty queue", topic="SELF_TEST_TOPIC", queueOffset="7"),
    pull("queue 9", queueId="9"),
    pull("an unknown topic", topic="nowhere"),
    pull("no match", subscription="zzz"),
    pull("a tag", subscription="y || x"),
    pull("an empty expression", subscription=""),
    pull("bars", subscription="||"),
    pull("blanks and bars", subscription=" || "),
    pull("a blank", subscription=" "),
    pull("a star with a blank", subscription=" *"),
    pull("without a subscription", sysFlag="0"),
    pull("SQL", subscription="a > 1", expressionType="SQL92"),
    pull("at most none", maxMsgNums="0"),
    pull("the name of no group", consumerGroup="a b"),
    pull("committing", sysFlag="5", commitOffset="2"),
    pull("committing less than nothing", consumerGroup="GX", sysFlag="5", commitOffset="-1"),
    pull("held", queueOffset="500", sysFlag="6", suspendTimeoutMillis="100"),
    Step("offset: committed", Code.QUERY_CONSUMER_OFFSET, {**QUEUE, "consumerGroup": "G"}),
    Step("offset: none", Code.QUERY_CONSUMER_OFFSET, {**QUEUE, "consumerGroup": "none"}),
    Step(
        "offset: of an unknown topic",
        Code.QUERY_CONSUMER_OFFSET,
        {"topic": "nowhere", "queueId": "0", "consumerGroup": "none"},
    ),
    Step("offset: update", Code.UPDATE_CONSUMER_OFFSET, {**QUEUE, "consumerGroup": "G", "commitOffset": "3"}),
    Step("offset: min", Code.GET_MIN_OFFSET, QUEUE),
    Step("offset: max of an unknown topic", Code.GET_MAX_OFFSET, {"topic": "nowhere", "queueId": "0"}),
    Step("offset: at 0", Code.SEARCH_OFFSET_BY_TIMESTAMP, {**QUEUE, "timestamp": "0"}),
    Step(
        "offset: earliest of an unknown topic",
        Code.GET_EARLIEST_MSG_STORETIME,
        {"topic": "nowhere", "queueId": "0"},
    ),
    Step("clients: of an unknown group", Code.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "G"}),
    Step("clients: no connection", Code.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "G"}),
    Step("clients: no producer", Code.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": "PG"}),
    Step("heartbeat: c1", Code.HEART_BEAT, {}, BEAT),
    pull("as the heartbeat says", sysFlag="0", subVersion="5"),
    pull("newer than the heartbeat", sysFlag="0", subVersion="6"),
    pull("of what the heartbeat does not name", sysFlag="0", topic="SELF_TEST_TOPIC"),
    Step("clients: ids", Code.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "G"}),
    Step("clients: connections", Code.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "G"}),
    Step("clients: producers", Code.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": "PG"}),
    lock("c1 takes two", "c1", [0, 1]),
    lock("c2 gets what is free", "c2", [1, 2]),
    lock("c1 gives one back", "c1", [1, 2], Code.UNLOCK_BATCH_MQ),
    lock("c2 takes it", "c2", [1]),
    lock("none", "c1", []),
    lock("what does not exist", "c1", [77], of="nowhere"),
    back("no message", offset=7),
    back("later"),
    back("a dead letter", level=-1),
    # Held until the message is dispatched, which takes a busy broker a while.
    pull("the dead letter", topic="%DLQ%G", sysFlag="6", suspendTimeoutMillis="10000"),
    Step("stats: topic", Code.GET_TOPIC_STATS_INFO, {"topic": "T"}),
    Step("stats: unknown topic", Code.GET_TOPIC_STATS_INFO, {"topic": "nowhere"}),
    Step("stats: group", Code.GET_CONSUME_STATS, {"consumerGroup": "G", "topic": "T"}),
    Step("stats: unknown group", Code.GET_CONSUME_STATS, {"consumerGroup": "unknown"}),
    Step("group: its consumers", Code.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": "T"}),
    Step("group: all offsets", Code.GET_ALL_CONSUMER_OFFSET),
    topic("new", topic="N"),
    topic("a name with a blank", topic="a b"),
    topic("a system topic", topic="TBW102"),
    topic("permissions 9", topic="N9", perm="9"),
    topic("to write only", topic="W", perm="2"),
    pull("a topic without read permission", topic="W"),
    topic("to read only", topic="RO", perm="4"),
    send("to a topic without write permission", topic="RO"),
    Step("topic: delete", Code.DELETE_TOPIC_IN_BROKER, {"topic": "N"}),
    Step("topic: delete what is not there", Code.DELETE_TOPIC_IN_BROKER, {"topic": "nowhere"}),
    Step("topic: delete a system topic", Code.DELETE_TOPIC_IN_BROKER, {"topic": "TBW102"}),
    group("may not consume", SubscriptionGroup(group_name="H", consume_enable=False)),
    pull("by a group that may not consume", consumerGroup="H"),
    group("no retries", SubscriptionGroup(group_name="Z", retry_queue_nums=0)),
    back("no retries", of="Z"),
    Step("group: delete", Code.DELETE_SUBSCRIPTIONGROUP, {"groupName": "H", "removeOffset": "false"}),
    Step(
        "reset: an unknown topic",
        Code.INVOKE_BROKER_TO_RESET_OFFSET,
        {"topic": "nowhere", "group": "G", "timestamp": "-1", "isForce": "true"},
    ),
    Step(
        "reset: without offsets",
        Code.INVOKE_BROKER_TO_RESET_OFFSET,
        {"topic": "T", "group": "unknown", "timestamp": "-1", "isForce": "true"},
    ),
    Step(
        "clone",
        Code.CLONE_GROUP_OFFSET,
        {"srcGroup": "G", "destGroup": "K", "topic": "T", "offline": "false"},
    ),
    Step("offset: cloned", Code.QUERY_CONSUMER_OFFSET, {**QUEUE, "consumerGroup": "K"}),
    Step(
        "status: no such client",
        Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        {"topic": "T", "group": "unknown"},
    ),
    Step(
        "info: of an unknown client",
        Code.GET_CONSUMER_RUNNING_INFO,
        {"consumerGroup": "unknown", "clientId": "c9"},
    ),
    config("unknown", "unknownKey=1\n"),
    config("protected", "rocketmqHome=/x\n"),
    config("no truth value", "traceOn=perhaps\n"),
    config("no number", "maxMessageSize=abc\n"),
    config("traced again", "traceOn=true\n"),
    config("not to be written", "brokerPermission=4\n"),
    send("to a broker without write permission", queueId="2"),
    back("to a broker without write permission"),
    config("not to be read", "brokerPermission=2\n"),
    pull("from a broker without read permission"),
    config("as before", "brokerPermission=6\n"),
    Step("clients: leave", Code.UNREGISTER_CLIENT, {"clientID": "c1", "consumerGroup": "G"}),
    Step("clients: none is left", Code.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "G"}),
    Step("view: nothing there", Code.VIEW_MESSAGE_BY_ID, {"offset": "99999999"}),
    Step("heartbeat: without a client id", Code.HEART_BEAT, {}, b"{}"),
    Step("unknown code", 7777),
]

_FIELDS_NOT_COMPARED: Final = {
    *("msgId", "transactionId", "timestamp", "clientAddr", "lastTimestamp", "lastUpdateTimestamp"),
    *("topicSysFlag", "groupSysFlag", "pullOffset", "IS_SUB_CHANGE", "IS_SUPPORT_HEART_BEAT_V2"),
    *("consumeTps", "forbiddenType", "recallHandle", "batchUniqId"),
}


def test_the_same_requests_get_the_same_answers(release: str, tmp_path: Path) -> None:
    # The test has its own brokers, because changes by other tests would alter the answers.
    names = servers.name_server(release, tmp_path)
    theirs = servers.broker(release, tmp_path, names.address, name=NAME)

    async def both() -> list[tuple[Any, Any]]:
        store = StoreConfig(commit_log_segment_bytes=16 << 20, index_enabled=False)
        ours = Broker(
            BrokerConfig(name=NAME, port=0, store_directory=str(tmp_path / "store"), store=store),
            production(AsyncioNetwork()),
        )
        address = await ours.start()
        try:
            return list(zip(await answers(theirs.address), await answers(address), strict=True))
        finally:
            await ours.stop()

    otherwise = OTHERWISE_IN_4_9 if release.startswith("4.") else OTHERWISE_IN_5
    with servers.running(names, theirs):
        pairs = asyncio.run(both())
    different = {step.name: pair for step, pair in zip(STEPS, pairs, strict=True) if pair[0] != pair[1]}
    unexpected = {name: pair for name, pair in different.items() if name not in otherwise}
    assert not unexpected, "\n".join(f"{name}:\n  {a}\n  {b}" for name, (a, b) in unexpected.items())
    assert not otherwise.keys() - different.keys(), "the answers no longer differ"


async def answers(address: Address) -> list[Any]:
    """Return a broker's answers to the steps, without the fields that are not compared."""
    client = RemotingClient(AsyncioNetwork(), _take_notes)
    found = []
    for step in STEPS:
        answer = await client.invoke(address, new_request(step.code, dict(step.fields), step.body), 20.0)
        found.append(_meaning(answer))
        await asyncio.sleep(0.05)  # until stored messages can be read, and committed offsets can be queried
    await client.close()
    return found


def _take_notes(_request: Command, _channel: object) -> None:
    """Ignore the broker's requests, such as notifications of changed groups."""


def _meaning(answer: Command) -> Any:
    fields = {name: value for name, value in answer.fields.items() if name not in _FIELDS_NOT_COMPARED}
    body: Any = len(answer.body)
    if answer.body.startswith(b"{"):
        body = _shape(json.loads(java_json.quote_keys(answer.body.decode())))
    elif answer.body:
        body = "messages"
    return (answer.code, fields, body)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            json.dumps(json.loads(key), sort_keys=True) if key.startswith("{") else key: _shape(one)
            for key, one in value.items()
            if key not in _FIELDS_NOT_COMPARED
        }
    if isinstance(value, list):
        return sorted(map(_shape, value), key=str)
    return value
