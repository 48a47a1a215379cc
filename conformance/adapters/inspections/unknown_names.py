"""What a new broker answers about topics, groups, queues, messages and clients that it does not have.

See docs/reference/protocol/offsets.md, pulling.md, groups.md and administration.md.
"""

from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic
from mqproof.conformance.answers.stored_record import offset_message_id
from mqproof.conformance.wire import chapters

_NO_SUCH, _NO_TOPIC, _NO_GROUP, _NONE_FOUND, _OFFLINE = 1, 17, 26, 22, 206
_BEYOND: Final = 1 << 40
_QUEUE: Final = {"topic": "none", "queueId": 0}
_OF_GROUP: Final = {"consumerGroup": "none", **_QUEUE}
_GROUP: Final = {"group": "none"}
_LOCKS: Final = {
    "consumerGroup": "g", "clientId": "c",
    "mqSet": [{"topic": "none", "brokerName": "broker-a", "queueId": 0}],
}  # fmt: skip
_END: Final = {
    "producerGroup": "p", "tranStateTableOffset": 0, "commitLogOffset": 0, "commitOrRollback": 8,
    "msgId": "k", "transactionId": "k",
}  # fmt: skip
_BACK: Final = {
    "offset": _BEYOND, "group": "none", "delayLevel": 0, "originMsgId": "m", "originTopic": "none",
    "unitMode": False, "maxReconsumeTimes": 16,
}  # fmt: skip

_Row = tuple[str, Mapping[str, Any], int, Mapping[str, str], Any]
_ROWS: Final[tuple[_Row, ...]] = (
    ("GET_MAX_OFFSET", _QUEUE, 0, {"offset": "0"}, None),
    ("GET_MIN_OFFSET", _QUEUE, 0, {"offset": "0"}, None),
    ("GET_EARLIEST_MSG_STORETIME", _QUEUE, 0, {"timestamp": "-1"}, None),
    *(
        ("SEARCH_OFFSET_BY_TIMESTAMP", {**_QUEUE, "timestamp": time, **bound}, 0, {"offset": "0"}, None)
        for time in (0, _BEYOND)
        for bound in ({}, {"boundaryType": "LOWER"}, {"boundaryType": "UPPER"})
    ),
    ("GET_TOPIC_STATS_INFO", {"topic": "none"}, _NO_TOPIC, {}, None),
    ("GET_TOPIC_CONFIG", {"topic": "none"}, _NO_TOPIC, {}, None),
    ("QUERY_CONSUME_TIME_SPAN", {"topic": "none", "group": "none"}, _NO_TOPIC, {}, None),
    ("QUERY_TOPIC_CONSUME_BY_WHO", {"topic": "none"}, 0, {}, {"groupList": []}),
    ("QUERY_CONSUMER_OFFSET", _OF_GROUP, 0, {"offset": "0"}, None),
    ("QUERY_CONSUMER_OFFSET", {**_OF_GROUP, "setZeroIfNotFound": True}, 0, {"offset": "0"}, None),
    ("QUERY_CONSUMER_OFFSET", {**_OF_GROUP, "setZeroIfNotFound": False}, _NONE_FOUND, {}, None),
    ("QUERY_CONSUME_QUEUE", {**_QUEUE, "index": 0, "count": 1}, _NO_SUCH, {}, None),
    ("VIEW_MESSAGE_BY_ID", {"offset": 0}, _NO_SUCH, {}, None),
    ("QUERY_CORRECTION_OFFSET", {"topic": "none", "compareGroup": "none"}, 0, {}, {"correctionOffsets": {}}),
    ("GET_CONSUME_STATS", {"consumerGroup": "none"}, 0, {}, {"consumeTps": 0.0, "offsetTable": {}}),
    (
        "GET_CONSUME_STATS",
        {"consumerGroup": "none", "topic": "none"},
        0,
        {},
        {"consumeTps": 0.0, "offsetTable": {}},
    ),
    ("GET_SUBSCRIPTIONGROUP_CONFIG", _GROUP, _NO_GROUP, {}, None),
    ("GET_CONSUMER_LIST_BY_GROUP", {"consumerGroup": "none"}, _NO_SUCH, {}, None),
    ("GET_CONSUMER_CONNECTION_LIST", {"consumerGroup": "none"}, _OFFLINE, {}, None),
    ("GET_PRODUCER_CONNECTION_LIST", {"producerGroup": "none"}, _NO_SUCH, {}, None),
    ("GET_ALL_PRODUCER_INFO", {}, 0, {}, {"data": {}}),
    ("GET_CONSUMER_RUNNING_INFO", {"consumerGroup": "none", "clientId": "c"}, _NO_SUCH, {}, None),
    ("INVOKE_BROKER_TO_GET_CONSUMER_STATUS", {"topic": "none", "group": "none"}, _OFFLINE, {}, None),
    (
        "INVOKE_BROKER_TO_RESET_OFFSET",
        {"topic": "none", "group": "none", "timestamp": 0, "isForce": True},
        _NO_SUCH,
        {},
        None,
    ),
    ("UPDATE_CONSUMER_OFFSET", {**_OF_GROUP, "commitOffset": 0}, _NO_TOPIC, {}, None),
    ("END_TRANSACTION", _END, _NO_SUCH, {}, None),
    ("RECALL_MESSAGE", {"producerGroup": "p", "topic": "none", "recallHandle": "x"}, _NO_TOPIC, {}, None),
    ("CONSUMER_SEND_MSG_BACK", _BACK, _NO_SUCH, {}, None),
    ("VIEW_BROKER_STATS_DATA", {"statsName": "TOPIC_PUT_NUMS", "statsKey": "none"}, _NO_SUCH, {}, None),
    ("GET_ALL_DELAY_OFFSET", {}, 0, {}, {"offsetTable": {}}),
    ("DELETE_TOPIC_IN_BROKER", {"topic": "none"}, 0, {}, None),
    ("DELETE_SUBSCRIPTIONGROUP", {"groupName": "none", "removeOffset": True}, 0, {}, None),
    ("UNREGISTER_CLIENT", {"clientID": "c", "producerGroup": "none", "consumerGroup": "none"}, 0, {}, None),
    ("CLEAN_EXPIRED_CONSUMEQUEUE", {}, 0, {}, None),
    ("CLEAN_UNUSED_TOPIC", {}, 0, {}, None),
    ("DELETE_EXPIRED_COMMITLOG", {}, 0, {}, None),
)
"""Requests with the code, the fields and the body of their answers; None is an empty body."""


async def unknown_names(site: Site) -> None:
    site.rule = chapters.ADMINISTRATION_OF_A_BROKER
    for name, fields, code, shown, body in _ROWS:
        given: dict[str, Any] = dict(fields)
        answer = await site.ask(name, expects=code, **given)
        what = f"{name} with {given}"
        site.compare(f"the fields of the answer to {what}", dict(shown), dict(answer.fields))
        found = java_values.read(answer.body) if answer.body else None
        site.compare(f"the body of the answer to {what}", body, found)
        site.compare(f"whether the answer to {what} has a remark", bool(code), bool(answer.remark))
    await _places(site)
    await _locks(site)
    await _keys(site)


async def _places(site: Site) -> None:
    """A message is named by its place, in two forms."""
    place = offset_message_id(str(site.broker), _BEYOND)
    for id_ in (place, place[:-1], "", "x" * 32):
        await site.ask("RESUME_CHECK_HALF_MESSAGE", expects=_NO_SUCH, msgId=id_, topic="none")
    await site.ask(
        "CONSUME_MESSAGE_DIRECTLY", expects=_NO_SUCH, consumerGroup="none", clientId="c", msgId=place
    )


async def _locks(site: Site) -> None:
    """Locks of unknown queues are not granted, and may be released."""
    site.rule = chapters.QUEUE_LOCKS
    answer = await site.ask("LOCK_BATCH_MQ", _LOCKS)
    site.compare("the locked queues", {"lockOKMQSet": []}, java_values.read(answer.body))
    answer = await site.ask("UNLOCK_BATCH_MQ", _LOCKS)
    site.compare("the body of an unlock", b"", answer.body)


async def _keys(site: Site) -> None:
    """An answer without a message has the end of the index, which is empty."""
    site.rule = chapters.MESSAGE_QUERIES
    await make_topic(site, "t")
    query = {"topic": "t", "key": "k", "maxNum": 1, "beginTimestamp": 0, "endTimestamp": _BEYOND}
    answer = await site.ask("QUERY_MESSAGE", expects=_NONE_FOUND, **query)  # type: ignore[arg-type]  # fields
    site.compare("the fields of a query", {
        "indexLastUpdateTimestamp": "0", "indexLastUpdatePhyoffset": "0",
    }, dict(answer.fields))  # fmt: skip


UNKNOWN_NAMES: Final = Inspection("unknown names", unknown_names)
