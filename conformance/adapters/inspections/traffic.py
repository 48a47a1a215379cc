"""The requests of producers and consumers that inspections use, as fields of the wire."""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import Site, in_bytes
from mqproof.conformance.answers.stored_record import StoredRecord, read_records
from mqproof.conformance.wire.frames import Frame


def properties(values: Mapping[str, str]) -> str:
    return "".join(f"{name}\x01{value}\x02" for name, value in values.items())


async def make_topic(
    site: Site, name: str, queues: int = 1, *, expects: int | None = 0, **more: object
) -> Frame:
    fields: dict[str, Any] = {
        "topic": name, "defaultTopic": "TBW102", "readQueueNums": queues, "writeQueueNums": queues, "perm": 6,
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False, **more,
    }  # fmt: skip
    return await site.ask("UPDATE_AND_CREATE_TOPIC", expects=expects, **fields)


async def make_group(site: Site, name: str, *, expects: int | None = 0, **more: object) -> Frame:
    body = {
        "groupName": name, "consumeEnable": True, "consumeFromMinEnable": True,
        "consumeBroadcastEnable": True, "retryQueueNums": 1, "retryMaxTimes": 16, "brokerId": 0,
        "whichBrokerWhenConsumeSlowly": 1,
        "notifyConsumerIdsChangedEnable": True, **more,
    }  # fmt: skip
    return await site.ask("UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", body, expects=expects)


async def send(
    site: Site,
    topic: str,
    body: str | bytes = "m",
    queue: int = 0,
    *,
    expects: int | None = 0,
    name: str = "SEND_MESSAGE_V2",
    of: Mapping[str, str] | None = None,
    **more: object,
) -> Frame:
    """Send a message with the properties `of`; `more` are fields by their short names."""
    fields: dict[str, Any] = {
        "a": "producers", "b": topic, "c": "TBW102", "d": 4, "e": queue, "f": 0, "g": site.now_ms, "h": 0,
        "i": properties(of or {}), "j": 0, "k": False, "m": name == "SEND_BATCH_MESSAGE", **more,
    }  # fmt: skip
    return await site.ask(name, body, expects=expects, **fields)


def batch(parts: Sequence[tuple[bytes, int, Mapping[str, str]]]) -> bytes:
    """Return the body of a batch: the body, the flag and the properties of each message."""
    found = b""
    for body, flag, values in parts:
        text = properties(values).encode()
        part = struct.pack(">iiii", 0, 0, flag, len(body)) + body + struct.pack(">h", len(text)) + text
        found += struct.pack(">i", len(part) + 4) + part
    return found


async def pull(
    site: Site, topic: str, offset: int = 0, queue: int = 0, *, group: str = "g", expects: int | None = 0,
    by: RawClient | None = None, **more: object,
) -> Frame:  # fmt: skip
    fields: dict[str, Any] = {
        "consumerGroup": group, "topic": topic, "queueId": queue, "queueOffset": offset, "maxMsgNums": 32,
        "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 0, "subscription": "*",
        "expressionType": "TAG", **more,
    }  # fmt: skip
    return await site.ask("PULL_MESSAGE", expects=expects, by=by, **fields)


async def records(site: Site, topic: str, offset: int = 0, queue: int = 0) -> list[StoredRecord]:
    answer = await pull(site, topic, offset, queue, expects=None)
    return list(read_records(answer.body)) if not answer.code else []


async def commit(site: Site, group: str, topic: str, queue: int, offset: int, expects: int = 0) -> None:
    await site.ask(
        "UPDATE_CONSUMER_OFFSET", expects=expects, consumerGroup=group, topic=topic, queueId=queue,
        commitOffset=offset,
    )  # fmt: skip


def subscription(topic: str, text: str = "*", version: int = 1, kind: str = "TAG") -> dict[str, Any]:
    tags = [] if text == "*" or kind != "TAG" else [each.strip() for each in text.split("||")]
    return {
        "classFilterMode": False, "topic": topic, "subString": text, "tagsSet": tags, "codeSet": [],
        "subVersion": version, "expressionType": kind,
    }  # fmt: skip


async def beat(
    site: Site,
    client_id: str,
    group: str,
    subscriptions: list[dict[str, Any]],
    *,
    by: RawClient | None = None,
    producers: tuple[str, ...] = (),
    expects: int | None = 0,
    version: int = 409,
    **more: object,
) -> Frame:
    """Send a heartbeat of one consumer group, and of producer groups."""
    consumer = {
        "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "subscriptionDataSet": subscriptions,
        "unitMode": False, **more,
    }  # fmt: skip
    data = {
        "clientID": client_id,
        "consumerDataSet": [consumer] if group else [],
        "producerDataSet": [{"groupName": each} for each in producers],
    }
    return await site.ask(
        "HEART_BEAT", in_bytes(json.dumps(data)), by=by, expects=expects, of_frame={"version": version}
    )
