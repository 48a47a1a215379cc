"""Both dialects of JSON, read and written, with unusual characters; and handles of recalls, part by part.

See docs/reference/protocol/framing.md, "JSON bodies", and docs/reference/protocol/timers.md, "Recalls".
"""

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.strange_brokers import Registrant, body_of, topic
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    make_group,
    make_topic,
    records,
    send,
    subscription,
)
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame

_STRANGE: Final = (
    "a/b",
    'quote"',
    "back\\slash",
    "ä",
    "\u20ac\U0001f600",
    "plain",
    "new\nline",
    "\x01",
    "\x7f",
)
_PRINTABLE: Final = tuple(each for each in _STRANGE if each.isprintable())
_ILLEGAL_OPERATION: Final = 604
_DEPTH_MAX: Final = 100


async def json_dialects(site: Site) -> None:
    site.rule = chapters.JSON_BODIES
    await _routes(site)
    await _clients(site, "g", _STRANGE)
    await _clients(site, "h", ("a/b", "plain", "/"))
    await _clients(site, "i", ("\x7f",))
    await _read(site)
    await _locked(site)
    await _recalls(site)


def _standard(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text.replace("/", "\\/").replace("\x7f", "\\u007f").encode()


async def _routes(site: Site) -> None:
    """Newer clients get standard JSON, older ones keys that are numbers."""
    for name in _PRINTABLE:
        one = Registrant(site, name, cluster=f"c{name}")
        await one.register(body_of([topic("t")], servers=[f"server {name}"]))
        data = {"brokerAddrs": {"0": one.address}, "brokerName": name, "cluster": f"c{name}"}
        queue = {"brokerName": name, "perm": 6, "readQueueNums": 4, "topicSysFlag": 0, "writeQueueNums": 5}
        expected = {
            "brokerDatas": [data], "queueDatas": [queue],
            "filterServerTable": {one.address: [f"server {name}"]},
        }  # fmt: skip
        for version, only_standard, is_standard in (
            (409, None, True), (401, None, True), (400, None, False), (400, True, True), (0, False, False),
        ):  # fmt: skip
            answer = await site.ask(
                "GET_ROUTEINFO_BY_TOPIC", to=site.name_server, topic="t",
                acceptStandardJsonOnly=only_standard, of_frame={"version": version},
            )  # fmt: skip
            what = f"the route with {name!r} for version {version}"
            if is_standard:
                site.compare(what, _standard(expected), answer.body)
            else:
                site.compare(what, expected | {"brokerDatas": [data | {"brokerAddrs": {0: one.address}}]},
                             java_values.read(answer.body))  # fmt: skip
                site.compare(f"whether {what} has keys that are numbers", True, b'{0:"' in answer.body)
                site.compare(
                    f"whether {what} is UTF-8",
                    True,
                    json.dumps(name, ensure_ascii=False).encode() in answer.body,
                )
        await one.ask("UNREGISTER_BROKER")


async def _clients(site: Site, group: str, names: tuple[str, ...]) -> None:
    """Client ids have any characters, and appear unchanged in lists."""
    await make_group(site, group)
    lines = [await site.client(f"client {group} {number}") for number in range(len(names))]
    for line, name in zip(lines, names, strict=True):
        await beat(site, name, group, [subscription("t")], by=line)
    answer = await site.ask("GET_CONSUMER_LIST_BY_GROUP", consumerGroup=group)
    found = json.loads(answer.body)["consumerIdList"]
    site.compare("the list of the clients", _standard({"consumerIdList": found}), answer.body)
    site.compare("the ids of the clients", sorted(names), sorted(found))
    answer = await site.ask("GET_CONSUMER_CONNECTION_LIST", consumerGroup=group)
    shown = json.loads(answer.body)
    site.compare("the text of the connections", _standard(shown), answer.body)
    members = shown["connectionSet"]
    expected = {(name, line.address) for name, line in zip(names, lines, strict=True)}
    site.compare("the connections", expected, {(each["clientId"], each["clientAddr"]) for each in members})
    for line in lines:
        line.close()


def _texts() -> Iterator[tuple[str, bool]]:
    """Yield texts of the version 7.1, and whether they can be read."""
    yield from ((each, True) for each in (
        '{"timestamp":7,"counter":1}', "{timestamp:7,counter:1}", "{'timestamp':7,'counter':1}",
        '{"timestamp":"7","counter":"1"}', ' { "timestamp" : 7 ,\n\t"counter" : 1 } ',
        "{counter:1,timestamp:7,more:2}", '{timestamp:"7",counter:"1"}', "{ timestamp : 7 ,\n\tcounter : 1 }",
        '{1:"a","timestamp":"7","counter":"1"}', "{{a:1}:2,{b:2}:3,timestamp:7,counter:1}",
        '{"counter":9,"timestamp":7,"counter":1}', '{x:"a\\"{:,}[",timestamp:7,counter:1}',
        '{1:"a",-2:"b","timestamp":7,"counter":1}', '{"x":{1:{2:[{3:4}]}},"timestamp":7,"counter":1}',
        '{{"a":1,b:2}:3,timestamp:7,counter:1}', '{x:{{a:"}"}:[1,{b:2}]},timestamp:7,counter:1}',
        '{x:[1,"2",null,true,-1.5e3],timestamp:7,counter:1}', '{x:"",y:[],z:{},timestamp:7,counter:1}',
        '{x:"\\u00e4\\\\",timestamp:7,counter:1}', "{x:null,timestamp:7,counter:1}",
        "{x:[" + ",".join(["1"] * 5000) + "],timestamp:7,counter:1}",
        "{{a:[" + ",".join(["1"] * 5000) + "]}:1,timestamp:7,counter:1}",
        "{x:" + "[" * (_DEPTH_MAX - 1) + "]" * (_DEPTH_MAX - 1) + ",timestamp:7,counter:1}",
    ))  # fmt: skip
    yield from ((each, False) for each in (
        "", "{", "}", "[]", "7", "7,8", "a,b", ",", ":", "]", "[7,8}", "{timestamp:7,counter:1",
        "{timestamp:7,counter:1}}", "{timestamp:7;counter:1}",
        "{timestamp:7,,counter:1}", '{"timestamp":"x"}', '{"timestamp":7.5,"counter":1}',
        '{timestamp:"7,counter:1}',
        "{timestamp:9223372036854775808,counter:1}", "{timestamp:7,counter:-9223372036854775809}",
        "{timestamp:[7]}",
        "{timestamp:7 counter:1}", "{{{a:1}:2}:3,timestamp:7,counter:1}", "{timestamp 7}", '{"a":"\xff',
        "{x:" + "[" * _DEPTH_MAX + "]" * _DEPTH_MAX + ",timestamp:7,counter:1}",
    ))  # fmt: skip


async def _read(site: Site) -> None:
    """A name server reads versions in both dialects."""
    one = Registrant(site, "version")
    await one.register(body_of([], 1))
    for text, is_right in _texts():
        body = text.encode() if "\xff" not in text else text.encode("latin-1")
        answer = await one.ask("QUERY_DATA_VERSION", body, 0 if is_right else 1)
        if is_right:
            known = body_of([], 1)["topicConfigSerializeWrapper"]["dataVersion"]
            site.compare(f"the version that answers {text[:40]!r}", known, java_values.read(answer.body))
    await one.ask("UNREGISTER_BROKER")


async def _locked(site: Site) -> None:
    """A list of objects whose keys have no quotes, as Java clients send it."""
    await make_topic(site, "t", 3)
    queues = [{"brokerName": "broker-a", "queueId": number, "topic": "t"} for number in range(3)]
    listed = ",".join(f'{{brokerName:"broker-a",queueId:{number},topic:"t"}}' for number in range(3))
    text = f'{{clientId:"c",consumerGroup:"g",mqSet:[{listed}]}}'
    answer = await site.ask("LOCK_BATCH_MQ", text)
    found = json.loads(answer.body)["lockOKMQSet"]
    site.compare("the locked queues", queues, sorted(found, key=lambda each: each["queueId"]))


async def _recalls(site: Site) -> None:
    """A handle names a version, a topic, a broker, a time and a key."""
    site.rule = chapters.RECALLS
    await make_topic(site, "t")

    async def recall(handle: str | None, expects: int | None) -> Frame:
        return await site.ask(
            "RECALL_MESSAGE", expects=expects, producerGroup="p", topic="t", recallHandle=handle
        )

    sent = await send(site, "t", of={"TIMER_DELAY_SEC": "20", "UNIQ_KEY": "key"})
    handle = sent.fields.get("recallHandle", "")
    words = base64.urlsafe_b64decode(handle).decode().split(" ")
    site.compare("the fixed parts of a handle", ["v1", "t", "broker-a", "key"], [*words[:3], words[4]])
    due = int(words[3])
    site.compare(
        "whether the time of a handle is that of the message", True, 0 <= site.now_ms + 20_000 - due <= 1000
    )
    for at, values in enumerate((
        ("v2", "V1", ""), ("u", ""), ("broker-b", ""),
        ("", "x", "-1", "1.5", "1" * 19, " "), ("", "kez", "key "),
    )):  # fmt: skip
        for value in values:
            await recall(_handle([*words[:at], value, *words[at + 1 :]]), _ILLEGAL_OPERATION)
    for wrong in (words[:4], [*words, "more"]):
        await recall(_handle(wrong), _ILLEGAL_OPERATION)
    for text in ("x", handle[:-4], "!" * 8, _handle([*words[:4], "k" * 800]), handle + " "):
        await recall(text, _ILLEGAL_OPERATION)
    answer = await recall(handle, 0)
    site.compare("the key of the recalled message", "key", answer.fields.get("msgId"))
    await recall(handle, _ILLEGAL_OPERATION)
    await asyncio.sleep(25)
    site.compare("the messages", 0, len(await records(site, "t")))


def _handle(words: list[str]) -> str:
    return base64.urlsafe_b64encode(" ".join(words).encode()).decode()


JSON_DIALECTS: Final = Inspection("JSON and handles", json_dialects)
