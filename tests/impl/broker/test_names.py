"""Tests names that are paths: no request writes outside the intended directories, or stores such a name.

Source: docs/reference/protocol/sending.md, "Topics". Method: send each request that the broker knows with all
fields that any request has. All fields are valid except one, which contains a path. Do the same with the
names in bodies. Then examine the disk.
"""

import json
import re

import pytest

from mqproof.impl.broker.processors.all_processors import PROCESSORS
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import PullRequest, SendRequest
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.disk import read_whole
from tests.impl.world import World, play

MARK = "hostile"
PATHS = (f"../../{MARK}", f"{MARK}/x", f"/{MARK}", f"{MARK}\0", "..", f"%RETRY%../{MARK}")

SEND = SendRequest("PG", "T", "TBW102", 4, 0, 0, 1, 0)
PULL = PullRequest("G", "T", 0, 0, 32, 0, 0, 0, 0, "*")
FIELDS = {
    **headers.write_send_v2(SEND),
    **headers.write(SEND),
    **headers.write(PULL),
    **dict.fromkeys(("group", "groupName", "srcGroup", "destGroup", "compareGroup", "filterGroups"), "G"),
    **dict.fromkeys(("clientID", "clientId", "clientAddr", "brokerName", "statsKey", "statsName"), "x"),
    **dict.fromkeys(("commitOffset", "offset", "timestamp", "delayLevel", "beginTimestamp", "index"), "0"),
    **dict.fromkeys(("readQueueNums", "writeQueueNums", "maxNum", "count", "endTimestamp"), "4"),
    **dict.fromkeys(("originTopic", "originMsgId", "key"), "T"),
    **dict.fromkeys(("isForce", "order"), "false"),
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "msgId": "7F0000010000271000000000000000AA",
}
NAMED = (
    *("a", "b", "c", "producerGroup", "topic", "defaultTopic", "originTopic", "consumerGroup", "group"),
    *("groupName", "srcGroup", "destGroup", "compareGroup", "filterGroups"),
    *("brokerName", "statsKey", "clientId"),
)
"""The fields that contain a name; the single letters are fields of SEND_MESSAGE_V2."""

KEPT = re.compile(
    r"/store/(abort|lock|checkpoint|commitlog/\d{20}|index/\d{17}"
    r"|consumequeue/[%|a-zA-Z0-9_-]+/\d+/\d{20}|config/[a-zA-Z]+\.json(\.bak|\.tmp)?)"
)


def _bodies(path: str) -> list[bytes]:
    """Return one body for each kind of body with names."""
    queue = {"topic": path, "brokerName": "broker-a", "queueId": 0}
    topic = {"topicName": path, "perm": 6, "readQueueNums": 1, "writeQueueNums": 1}
    subscription = {"topic": path, "subString": "*", "subVersion": 1}
    consumer = {"groupName": "G", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    known = {"clientID": "c", "clientId": "c", "group": "G", "consumerGroup": "G"}
    bodies = [
        {**known, "mqSet": [queue]},
        {**known, "consumerGroup": path, "mqSet": [{**queue, "topic": "T"}]},
        {"clientID": "c", "consumerDataSet": [{**consumer, "subscriptionDataSet": [subscription]}]},
        {"clientID": "c", "consumerDataSet": [{**consumer, "groupName": path}]},
        {"clientID": "c", "producerDataSet": [{"groupName": path}]},
        {"topicConfigList": [topic], "topicConfigTable": {path: topic}},
        {"groupConfigList": [{"groupName": path}], "groupName": path},
        {"groupName": path, "retryQueueNums": 1},
    ]
    return [json.dumps(body).encode() for body in bodies]


def _everything(path: str) -> list[tuple[dict[str, str], bytes]]:
    named = [({**FIELDS, field: path}, b"x") for field in NAMED]
    real = [
        ({**FIELDS, name: f"{key}\1{path}\2DELAY\1{level}\2"}, b"x")
        for name in ("i", "properties")
        for key in ("REAL_TOPIC", "RETRY_TOPIC", "ORIGIN_MESSAGE_ID")
        for level in (0, 1)
    ]
    return [*named, *real, *((FIELDS, body) for body in _bodies(path))]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_in_place_of_a_name_creates_no_file_and_is_not_stored(path: str) -> None:
    async def scenario(world: World) -> None:
        await world.producer.send(Message("T", b"first"))
        for code in sorted(PROCESSORS):
            for fields, body in _everything(path):
                answer = await world.ask_raw(new_request(code, fields, body))
                assert answer.is_response
                assert not re.match(r"[A-Za-z]+Error: ", answer.remark or ""), (code, fields, answer)
        await world.stop_broker()
        for name in world.disk._names:
            assert KEPT.fullmatch(name), f"{name} was made"
            if name.endswith(".json"):
                text = read_whole(world.disk, name).decode()
                assert MARK not in text, f"{name} has it"
                assert '".."' not in text, f"{name} has it"
        await world.start_broker()
        await world.producer.send(Message("T", b"last"))

    play(scenario)


MAKING = (
    *(RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.CONSUMER_SEND_MSG_BACK),
    *(RequestCode.UPDATE_CONSUMER_OFFSET, RequestCode.HEART_BEAT, RequestCode.LOCK_BATCH_MQ),
    *(RequestCode.UPDATE_AND_CREATE_TOPIC, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP),
)
"""The requests that create something with a name: topics, queues, groups, offsets, members, locks."""


@pytest.mark.parametrize("code", MAKING, ids=lambda code: code.name)
def test_the_same_requests_succeed_with_a_valid_name(code: RequestCode) -> None:
    """Without this control, the test of paths could pass because all its requests are refused anyway."""

    async def scenario(world: World) -> set[int]:
        await world.producer.send(Message("T", b"first"))  # at commit offset 0, which the answer contains
        asked = [new_request(code, fields, body) for fields, body in _everything("New")]
        return {(await world.ask_raw(each)).code for each in asked}

    assert ResponseCode.SUCCESS in play(scenario)
