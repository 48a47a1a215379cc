"""Builds the requests of the attacks: valid ones, with changes.

All use the topic and the group of the run, so that a broker with other data is not changed.
"""

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from mqproof.conformance.hostile.attack import OPAQUE, Frames, Names, Signer
from mqproof.conformance.wire.frames import Frame, encode

MIB: Final = 1 << 20


def send_fields(names: Names, **changes: object) -> dict[str, str]:
    """Return the fields of a valid SEND_MESSAGE, with changes."""
    fields: Mapping[str, object] = {
        "producerGroup": names.group, "topic": names.topic, "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 4, "queueId": 0, "sysFlag": 0, "bornTimestamp": 1, "flag": 0,
        "properties": "", "reconsumeTimes": 0, "unitMode": "false",
    }  # fmt: skip
    return _texts({**fields, **changes})


def pull_fields(names: Names, **changes: object) -> dict[str, str]:
    """Return the fields of a valid PULL_MESSAGE, with changes."""
    fields: Mapping[str, object] = {
        "consumerGroup": names.group, "topic": names.topic, "queueId": 0, "queueOffset": 0, "maxMsgNums": 32,
        "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 0, "subscription": "*",
        "expressionType": "TAG",
    }  # fmt: skip
    return _texts({**fields, **changes})


def signed(frame: Frame, signer: Signer) -> Frame:
    """Return the request with the account and its signature (access-control.md, "Signatures")."""
    fields = {**frame.fields, "AccessKey": signer.access_key}
    content = "".join(fields[name] for name in sorted(fields)).encode() + frame.body
    digest = hmac.digest(signer.secret_key.encode(), content, "sha1")
    return replace(frame, fields={**fields, "Signature": base64.b64encode(digest).decode()})


def request(code: int, fields: Mapping[str, object] | None = None, body: bytes = b"", **more: Any) -> bytes:
    return encode(Frame(code, OPAQUE, fields=_texts(fields or {}), body=body, **more))


def fixed(data: bytes) -> Frames:
    """Return the same bytes in each run."""
    return lambda _: data


def plain(code: int, body: bytes = b"", **fields: object) -> Frames:
    """Return a request with these fields only."""
    return lambda _: request(code, fields, body)


def send(body: bytes = b"x", without: str = "", **changes: object) -> Frames:
    def frames(names: Names) -> bytes:
        fields = send_fields(names, **changes)
        fields.pop(without, None)
        return request(10, fields, body)

    return frames


def pull(body: bytes = b"", **changes: object) -> Frames:
    return lambda names: request(11, pull_fields(names, **changes), body)


def held_pull(body: bytes = b"", **changes: object) -> Frames:
    """Return a pull at the end of an empty queue, which waits."""
    return pull(body, **{"queueId": 3, "sysFlag": 6, "suspendTimeoutMillis": 1000, **changes})


def of_queue(code: int, group: str = "consumerGroup", **changes: object) -> Frames:
    """Return a request about the group and a queue of the topic."""
    return lambda names: request(
        code, {group: names.group, "topic": names.topic, "queueId": 0, "commitOffset": 0, **changes}
    )


def of_group(code: int, group: str = "group", **changes: object) -> Frames:
    """Return a request about the group and the topic."""
    return lambda names: request(code, {group: names.group, "topic": names.topic, **changes})


def topic_fields(name: str, **changes: object) -> dict[str, object]:
    return {
        "topic": name, "defaultTopic": "TBW102", "readQueueNums": 1, "writeQueueNums": 1,
        "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false", **changes,
    }  # fmt: skip


def topic(**changes: object) -> Frames:
    return lambda names: request(17, topic_fields(f"{names.topic}_made", **changes))


def json_body(code: int, make: Callable[[Names], object]) -> Frames:
    return lambda names: request(code, {}, json.dumps(make(names)).encode())


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def heartbeat(names: Names, groups: int = 1, subscription: str = "", first: int = 0) -> object:
    """Return a heartbeat of a member of several groups."""
    subscriptions = [{"topic": names.topic, "subString": subscription}] if subscription else []
    consumers = [
        {
            "groupName": f"{names.group}_{first + number}", "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
            "subscriptionDataSet": subscriptions, "unitMode": False,
        }
        for number in range(groups)
    ]  # fmt: skip
    return {"clientID": "hostile@1", "consumerDataSet": consumers, "producerDataSet": []}


def group_config(name: str) -> bytes:
    """Return a request that creates a group."""
    return request(200, {}, json.dumps({"groupName": name, "consumeEnable": True}).encode())


def each(count: Callable[[Names], int], make: Callable[[Names, int], bytes]) -> Frames:
    """Return many requests, each made with its number."""
    return lambda names: b"".join(make(names, number) for number in range(count(names)))


def by_account(make: Callable[[Names], Frame], signer: Callable[[Names], Signer] | None = None) -> Frames:
    """Return a request signed by the account without rights, or by another one."""

    def frames(names: Names) -> bytes:
        by = signer(names) if signer else names.account
        assert by is not None, "the setup has accounts"
        return encode(signed(replace(make(names), opaque=OPAQUE), by))

    return frames


def _texts(fields: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in fields.items()}
