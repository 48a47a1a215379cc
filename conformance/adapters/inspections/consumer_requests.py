"""Requests that a broker passes on: replies to their requesters, and those of administrators to consumers.

See docs/reference/protocol/requests-and-replies.md, "Replies", and clients.md, "Requests to clients".
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import Answer, RawClient
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    commit,
    make_group,
    make_topic,
    properties,
    records,
    send,
    subscription,
)
from mqproof.conformance.answers.stored_record import properties_of
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame

_REPLY_TOPIC: Final = "DefaultCluster_REPLY_TOPIC"
_REPLY: Final = {"CORRELATION_ID": "c1", "REPLY_TO_CLIENT": "asking@1", "MSG_TYPE": "reply", "own": "1"}
_LONG_NAMES: Final = {
    "a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums", "e": "queueId",
    "f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties", "j": "reconsumeTimes",
    "k": "unitMode", "m": "batch",
}  # fmt: skip
_PUSH_REPLY: Final = 326
_RESET: Final = 220
_STATUS: Final = 221
_PUSHED_S: Final = 0.1


def _put(by: RawClient, name: str, fields: dict[str, Any], body: bytes = b"") -> Answer:
    return by.put(
        CODES[name], {key: written(value) for key, value in fields.items() if value is not None}, body
    )


async def _pushed(client: RawClient) -> list[Frame]:
    """Return what the server has sent to the client since the last call."""
    await asyncio.sleep(_PUSHED_S)
    found, client.pushed = client.pushed, []
    return found


async def replies(site: Site) -> None:
    """Reply in every way; compare what the requester receives, what is stored, and what is answered."""
    site.rule = chapters.REPLIES
    asking, replying = await site.client("asking"), await site.client("replying")
    await beat(site, "asking@1", "", [], by=asking, producers=("asking",))
    await site.ask("UPDATE_BROKER_CONFIG", "maxMessageSize=1000")
    total = 0
    for is_short, body, changes, code in (
        (True, b"reply", {}, 0),
        (False, b"x" * 1000, {"e": -1, "h": 9, "f": 1}, 0),
        (True, b"", {"i": properties({**_REPLY, "WAIT": "true", "DELAY": "0"})}, 0),
        (True, b"refused", {}, 1),
        (False, b"silent", {}, None),
    ):
        fields: dict[str, Any] = {
            "a": "replying", "b": _REPLY_TOPIC, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": site.now_ms - 5,
            "h": 7, "i": properties(_REPLY), "j": 0, "k": False, "m": False, **changes,
        }  # fmt: skip
        given = fields if is_short else {_LONG_NAMES[key]: value for key, value in fields.items()}
        waiting = _put(replying, "SEND_REPLY_MESSAGE" + "_V2" * is_short, given, body)
        sent_ms = site.now_ms
        pushed = await _pushed(asking)
        _compare_pushed(site, pushed, fields, body, (sent_ms, replying.address))
        if code is not None:
            asking.reply(pushed[0], code)
        answer = await waiting
        site.compare(f"the code for the reply {body[:9]!r}", code or (code is None), answer.code)
        site.compare("the remark", answer.code != 0, bool(answer.remark))
        found = await records(site, _REPLY_TOPIC)
        total += 1
        site.compare("the stored replies", total, len(found))
        record = found[-1]
        kept = {name: text for name, text in properties_of(fields["i"]).items() if name != "WAIT"}
        site.compare(
            "the stored reply",
            (body, fields["h"], fields["g"], kept, replying.address, str(site.broker), 0, 0),
            (
                record.body, record.flag, record.born_ms, dict(record.properties), record.born_host,
                record.store_host, record.queue_id, record.reconsume_times,
            ),
        )  # fmt: skip
        place = answer.fields.get("queueId"), answer.fields.get("queueOffset")
        site.compare("the place of the reply", ("0", str(total - 1)), place)
        site.compare("the id", f"{record.commit_offset:016X}", answer.fields.get("msgId", "")[-16:])
        site.compare("the region", ("DefaultRegion", "true"), (
            answer.fields.get("MSG_REGION"), answer.fields.get("TRACE_ON")))  # fmt: skip
    await _refused_replies(site, asking)
    await asyncio.sleep(12)
    answer = await site.ask("VIEW_BROKER_STATS_DATA", statsName="TOPIC_PUT_NUMS", statsKey=_REPLY_TOPIC)
    site.compare("the counted replies", total, java_values.read(answer.body)["statsMinute"]["sum"])
    answer = await site.ask("VIEW_BROKER_STATS_DATA", statsName="TOPIC_PUT_SIZE", statsKey=_REPLY_TOPIC)
    site.compare("their bytes", 5 + 1000 + 7 + 6, java_values.read(answer.body)["statsMinute"]["sum"])


def _compare_pushed(
    site: Site, pushed: list[Frame], fields: dict[str, Any], body: bytes, sent: tuple[int, str]
) -> None:
    site.compare("the requests to the requester", [_PUSH_REPLY], [each.code for each in pushed])
    if not pushed:
        return
    sent_ms, sender = sent
    expected = {_LONG_NAMES[key]: written(value) for key, value in fields.items() if key not in "im"}
    expected |= {"queueId": "0", "bornHost": sender, "storeHost": str(site.broker)}
    shown = dict(pushed[0].fields)
    values = properties_of(shown.pop("properties", ""))
    times = {shown.pop("storeTimestamp", ""), values.pop("PUSH_REPLY_TIME", "")}
    site.compare("the fields of the pushed reply", expected, shown)
    site.compare("its properties", properties_of(fields["i"]), values)
    site.compare("its body", body, pushed[0].body)
    site.compare("its times", True, len(times) == 1 and abs(int(times.pop()) - sent_ms) <= 100)


async def _refused_replies(site: Site, asking: RawClient) -> None:
    def without(name: str) -> str:
        return properties({key: value for key, value in _REPLY.items() if key != name})

    before = len(await records(site, _REPLY_TOPIC))
    refused: list[tuple[int, dict[str, Any]]] = [
        (16, {"b": "other"}), (16, {"b": "TBW102"}), (1, {"e": 1}), (1, {"e": -2}), (13, {"m": True}),
        (13, {"f": 4}), (13, {"f": 8}), (13, {"f": 12}), (13, {"body": "x" * 1001}),
        (1, {"i": without("CORRELATION_ID")}), (1, {"i": without("REPLY_TO_CLIENT")}), (1, {"i": None}),
        *((13, {"i": properties({**_REPLY, name: "1"})}) for name in ("DELAY", "TRAN_MSG",
          "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")),
    ]  # fmt: skip
    for code, changes in refused:
        given: dict[str, Any] = {"b": _REPLY_TOPIC, "i": properties(_REPLY), "body": "r", **changes}
        topic = given.pop("b")
        await send(site, topic, expects=code, name="SEND_REPLY_MESSAGE_V2", **given)
    site.compare("the replies that are pushed although refused", [], await _pushed(asking))
    site.compare("the replies after refused ones", before, len(await records(site, _REPLY_TOPIC)))
    await site.ask("UPDATE_BROKER_CONFIG", "storeReplyMessageEnable=false")
    absent = properties({**_REPLY, "REPLY_TO_CLIENT": "absent@1"})
    answer = await send(site, _REPLY_TOPIC, expects=1, name="SEND_REPLY_MESSAGE_V2", i=absent)
    place = tuple(answer.fields.get(name) for name in ("msgId", "queueId", "queueOffset"))
    site.compare("the place of a reply that is not stored", ("0", "0", "0"), place)
    site.compare("the replies that are stored now", before, len(await records(site, _REPLY_TOPIC)))
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=4")
    await send(site, _REPLY_TOPIC, expects=16, name="SEND_REPLY_MESSAGE_V2", i=absent)
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=6\nstoreReplyMessageEnable=true")


_QUEUES: Final = 3


async def to_consumers(site: Site) -> None:
    """Reset and read offsets of members, and ask one of them for its state, in each form."""
    site.rule = chapters.REQUESTS_TO_CLIENTS
    await make_topic(site, "t", _QUEUES)
    await make_group(site, "g")
    for number in range(6):
        await send(site, "t", f"{number}", number % 2)
        await asyncio.sleep(1)
    for queue, offset in ((0, 2), (1, 3), (2, 0)):
        await commit(site, "g", "t", queue, offset)
    reset: dict[str, Any] = {"topic": "t", "group": "g", "timestamp": -1, "isForce": True}
    await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", expects=206, **reset)
    one, two = await site.client("one"), await site.client("two")
    for line, name in ((one, "one@1"), (two, "two@1")):
        await beat(site, name, "g", [subscription("t")], by=line)
    await asyncio.sleep(_PUSHED_S)
    one.pushed, two.pushed = [], []
    second = (await records(site, "t"))[1].store_ms
    for time, is_force, expected in (
        (-1, True, {0: 3, 1: 3, 2: 0}), (-1, False, {0: 2, 1: 3, 2: 0}),
        (second, True, {0: 1, 1: 0, 2: 0}), (second + 900, False, {0: 1, 1: 1, 2: 0}),
        (0, True, {0: 0, 1: 0, 2: 0}),
    ):  # fmt: skip
        fields = {**reset, "timestamp": time, "isForce": is_force}
        answer = await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", **fields)
        site.compare(f"the offsets at {time}, {is_force}", expected, _offsets(site, answer.body))
        for line in (one, two):
            pushed = await _pushed(line)
            site.compare("the requests to a member", [_RESET], [each.code for each in pushed])
            for each in pushed:
                site.compare("the fields", {key: written(value) for key, value in fields.items()}, {
                    key: each.fields.get(key) for key in fields})  # fmt: skip
                site.compare("the pushed offsets", expected, _offsets(site, each.body))
        site.compare("the committed offset", "2", await _committed(site, 0))
    await _lists_for_cpp(site, one, reset)
    await _one_queue(site, one, reset)
    await _status(site, one, two)
    await _calls(site, one)


def _offsets(site: Site, body: bytes) -> dict[int, int]:
    """Return the offsets by queue of a table with queues as keys."""
    found = {}
    for key, offset in java_values.read(body)["offsetTable"].items():
        queue = dict(key)
        site.compare("the queue's names", ("t", "broker-a"), (queue["topic"], queue["brokerName"]))
        found[queue["queueId"]] = offset
    return found


async def _committed(site: Site, queue: int) -> str | None:
    answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup="g", topic="t", queueId=queue)
    return answer.fields.get("offset")


async def _lists_for_cpp(site: Site, one: RawClient, reset: dict[str, Any]) -> None:
    """A tool in C++ makes the members receive a list."""
    answer = await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", of_frame={"language": "CPP"}, **reset)
    site.compare("the answer to C++", {0: 3, 1: 3, 2: 0}, _offsets(site, answer.body))
    pushed = await _pushed(one)
    listed = java_values.read(pushed[-1].body)["offsetTable"] if pushed else []
    expected = [{"brokerName": "broker-a", "offset": at, "queueId": queue, "topic": "t"}
                for queue, at in ((0, 3), (1, 3), (2, 0))]  # fmt: skip
    site.compare("the list that members of C++ receive", expected, listed)


async def _one_queue(site: Site, one: RawClient, reset: dict[str, Any]) -> None:
    """Tools of 5.x name a queue: the broker commits its offset too."""
    for code, fields, offset in (
        (0, {"queueId": 0, "offset": 1}, "1"), (0, {"queueId": 0, "timestamp": -1}, "3"),
        (0, {"queueId": 0, "offset": 3}, "3"), (1, {"queueId": 0, "offset": 4}, "3"),
        (1, {"queueId": _QUEUES, "offset": 0}, "3"), (0, {"queueId": 0, "offset": 0}, "0"),
        (0, {"queueId": 0, "offset": -1, "isForce": False}, "0"), (1, {"topic": "unknown"}, "0"),
        (1, {"group": "stranger"}, "0"), (0, {"queueId": 0, "offset": 2}, "2"),
    ):  # fmt: skip
        await _pushed(one)
        given: dict[str, Any] = {**reset, **fields}
        answer = await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", expects=code, **given)
        if not code:
            site.compare("the offset of a queue", {0: int(offset)}, _offsets(site, answer.body))
        site.compare(f"the requests to a member after {fields}", 0 if code else 1, len(await _pushed(one)))
        site.compare(f"the committed offset after {fields}", offset, await _committed(site, 0))
    site.compare("that of another queue", "3", await _committed(site, 1))


async def _status(site: Site, one: RawClient, two: RawClient) -> None:
    """The offsets of the members that answer, by client."""
    asked: dict[str, Any] = {"topic": "t", "group": "g"}
    one.pushed, two.pushed = [], []
    own = '{"messageQueueTable":{{"topic":"t","brokerName":"broker-a","queueId":%d}:%d}}'
    for client, answering, expected in (
        (None, (one, two), {"one@1": {0: 5}, "two@1": {1: 6}}), ("two@1", (two,), {"two@1": {1: 6}}),
        ("", (one,), {"one@1": {0: 5}}),
    ):  # fmt: skip
        line = await site.client("administrator")
        waiting = _put(line, "INVOKE_BROKER_TO_GET_CONSUMER_STATUS", {**asked, "clientAddr": client})
        for number, member in enumerate((one, two)):
            pushed = await _pushed(member)
            is_asked = client in (None, "", f"{('one', 'two')[number]}@1")
            site.compare("the requests for a status", [_STATUS] * is_asked, [each.code for each in pushed])
            if member in answering:
                site.compare("the topic", ("t", "g"), (
                    pushed[0].fields.get("topic"), pushed[0].fields.get("group")))  # fmt: skip
                member.reply(pushed[0], 0, (own % (number, 5 + number)).encode())
        table = java_values.read((await waiting).body)["consumerTable"]
        shown = {
            name: {dict(key)["queueId"]: at for key, at in queues.items()} for name, queues in table.items()
        }
        site.compare(f"the status of {client}", expected, shown)
    for fields in ({"clientAddr": "absent@1"}, {"group": "h"}):
        await site.ask("INVOKE_BROKER_TO_GET_CONSUMER_STATUS", expects=206, **{**asked, **fields})


async def _calls(site: Site, one: RawClient) -> None:
    """Running information, and direct consumption, of one member; then one that does not answer."""
    record = (await records(site, "t"))[0]
    id_ = f"{(await send(site, 't')).fields['msgId'][:-16]}{record.commit_offset:016X}"
    info: dict[str, Any] = {"consumerGroup": "g", "clientId": "one@1", "jstackEnable": False}
    direct: dict[str, Any] = {"consumerGroup": "g", "clientId": "one@1", "msgId": id_}
    administrator = await site.client("administrator")
    for name, fields, body in (
        ("GET_CONSUMER_RUNNING_INFO", info, b""), ("CONSUME_MESSAGE_DIRECTLY", direct, record.raw),
    ):  # fmt: skip
        for code, report in ((0, b'{"a":1}'), (2, b"")):
            one.pushed.clear()
            waiting = _put(administrator, name, fields)
            pushed = await _pushed(one)
            expected = {key: written(value) for key, value in fields.items()}
            if name == "CONSUME_MESSAGE_DIRECTLY":
                expected["brokerName"] = "broker-a"
            site.compare(f"the code of {name}", [CODES[name]], [each.code for each in pushed])
            site.compare(f"the fields of {name}", expected, dict(pushed[0].fields))
            site.compare(f"the body of {name}", body, pushed[0].body)
            one.reply(pushed[0], code, report)
            answer = await waiting
            site.compare(f"the answer to {name}", (code, report), (answer.code, answer.body))
        for wrong in ({"clientId": "absent@1"}, {"consumerGroup": "h"}):
            await site.ask(name, expects=1, **{**fields, **wrong})
        await site.ask(name, expects=207, **fields)
    for wrong_id in ("x", id_[:-16] + "F" * 16, None):
        await site.ask("CONSUME_MESSAGE_DIRECTLY", expects=1, **{**direct, "msgId": wrong_id})
    old = await site.client("old")
    await beat(site, "old@1", "g", [subscription("t")], by=old, version=61)
    await site.ask("GET_CONSUMER_RUNNING_INFO", expects=1, **{**info, "clientId": "old@1"})


REPLIES: Final = Inspection("replies", replies)
TO_CONSUMERS: Final = Inspection("requests to consumers", to_consumers)
