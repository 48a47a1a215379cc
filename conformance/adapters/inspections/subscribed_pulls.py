"""Consumers: stored SQL92 expressions across heartbeats and restarts, subscriptions, locks, and held pulls.

See docs/reference/protocol/filters.md, groups.md and pulling.md.
"""

import asyncio
import json
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, written
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    make_group,
    make_topic,
    pull,
    records,
    send,
    subscription,
)
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters

_SQL: Final = "SQL92"
_HELD: Final = 20
"""The pulls that one queue holds; more than a broker answers in one turn."""
_FILE: Final = "/store/config/consumerFilter.json"
_WITHOUT: Final = {"sysFlag": 0, "subscription": None}


async def filters(site: Site) -> None:
    """Pull with the stored expression after heartbeats with other versions and expressions."""
    site.rule = chapters.PULL_REQUESTS
    await make_topic(site, "t")
    await make_group(site, "g")
    for number in range(4):
        await send(site, "t", f"{number}", of={"a": str(number), "TAGS": f"tag{number % 2}"})
    line = await site.client("member")

    async def beats(text: str, version: int, kind: str = _SQL) -> None:
        subscriptions = [subscription("t", text, version, kind)] if text else []
        await beat(site, "member@1", "g", subscriptions, by=line)

    async def pulls(expected: str | int, version: int = 0, kind: str = _SQL) -> None:
        """Expect these bodies, or this code."""
        fields: dict[str, Any] = {**_WITHOUT, "expressionType": kind, "subVersion": version}
        answer = await pull(site, "t", expects=None, by=line, **fields)
        found = "".join(each.body.decode() for each in read_records(answer.body)) if not answer.code else ""
        observed = answer.code if isinstance(expected, int) else found
        site.compare(f"a pull with version {version}", expected, observed, answer.remark)

    await pulls(24)
    await beats("a > 1", 10)
    await pulls("23", 10)
    await pulls(25, 11)
    await beats("a > 1", 12)
    await pulls("23", 12)
    await beats("a < 1", 11)
    await pulls("23", 12)
    await beats("a < 1", 13)
    await pulls("0", 13)
    await pulls(25, 14)
    await beats("a <", 15)
    await pulls(28, 15)
    await pulls("0", 13)
    await beats("a IN ('1', '3')", 16)
    await pulls("13", 16)
    await site.restart()
    line = await site.client("member")
    await beats("a IN ('1', '3')", 16)
    await pulls("13", 16)
    site.compare("the kept expressions", [("g", "a IN ('1', '3')", 16, False)], await _kept(site))
    await beats("*", 18, "TAG")
    await pulls("0123", 18, "TAG")
    site.compare("those of a group that filters no more", [("g", "a IN ('1', '3')", 16, True)],
                 await _kept(site))  # fmt: skip
    await beats("a = 2", 19)
    site.compare("those of a group that is back", [("g", "a = 2", 19, False)], await _kept(site))
    await site.ask("UNREGISTER_CLIENT", by=line, clientID="member@1", consumerGroup="g")
    site.compare("those of a group that left", [("g", "a = 2", 19, True)], await _kept(site))
    for hours, count in ((23, 1), (1, 0)):
        site.cluster.machines[MASTER].clock.skew_us += hours * 3_600_000_000
        await asyncio.sleep(15)
        site.compare(f"those after {hours} more hours", count, len(await _kept(site)))
    await _own_expressions(site)


async def _kept(site: Site) -> list[tuple[str, str, int, bool]]:
    """Return the expressions in the broker's file: group, text, version, and whether the group left."""
    await asyncio.sleep(15)
    table = json.loads(site.cluster.machines[MASTER].disk.written(_FILE))["filterDataByTopic"]
    return [
        (group, each["expression"], each["clientVersion"], each["deadTime"] > 0)
        for of_topic in table.values()
        for group, each in of_topic["groupFilterData"].items()
    ]


async def _own_expressions(site: Site) -> None:
    """Pull with an expression in the request."""
    for text, kind, expected in (
        ("a = 2", _SQL, "2"), ("a IS NULL", _SQL, ""), ("a >", _SQL, 23), ("tag0", "TAG", "02"),
        ("tag0 || tag1", "TAG", "0123"), (" tag1 ||tag9", "TAG", "13"), ("||", "TAG", 23),
        ("*", "TAG", "0123"),
    ):  # fmt: skip
        answer = await pull(site, "t", expects=None, subscription=text, expressionType=kind)
        found = "".join(each.body.decode() for each in read_records(answer.body)) if not answer.code else ""
        observed = answer.code if isinstance(expected, int) else found
        site.compare(f"a pull with {kind} {text}", expected, observed, answer.remark)
    for text, expects in (("a > 1", 0), ("a >", 23)):
        wanted = {"clientId": "c", "group": "g", "subscriptionData": subscription("t", text, 1, _SQL)}
        await site.ask("CHECK_CLIENT_CONFIG", wanted, expects=expects)
    await _refused_pulls(site)


async def _refused_pulls(site: Site) -> None:
    await make_group(site, "closed", consumeEnable=False)
    await make_topic(site, "unreadable", perm=2)
    for code, fields in (
        (17, {"topic": "unknown"}), (16, {"topic": "unreadable"}), (16, {"group": "closed"}),
        (1, {"queue": 1}), (1, {"queue": -1}),
    ):  # fmt: skip
        given: dict[str, Any] = {"topic": "t", "expects": code, **fields}
        await pull(site, **given)
    for offset, expects, following in ((4, 19, 4), (5, 21, 4), (-1, 21, 0), (1 << 40, 21, 4)):
        answer = await pull(site, "t", offset, expects=expects)
        site.compare(f"the next offset after {offset}", str(following), answer.fields.get("nextBeginOffset"))
    for count in (1, 3, 32, 33):
        answer = await pull(site, "t", 0, maxMsgNums=count)
        site.compare(f"the messages of {count}", min(count, 4), len(list(read_records(answer.body))))
    await pull(site, "t", 2, commitOffset=2, sysFlag=5)
    answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup="g", topic="t", queueId=0)
    site.compare("the offset that a pull committed", "2", answer.fields.get("offset"))
    await pull(site, "t", 2, commitOffset=-1, sysFlag=5)
    await pull(site, "t", 2, commitOffset=3, sysFlag=4)
    answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup="g", topic="t", queueId=0)
    site.compare("the offset after a pull without commit", "2", answer.fields.get("offset"))
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=2")
    await pull(site, "t", expects=16)
    await site.ask("UPDATE_BROKER_CONFIG", "brokerPermission=6\nmaxTransferCountOnMessageInMemory=2")
    answer = await pull(site, "t")
    site.compare("the messages of a lower limit", 2, len(list(read_records(answer.body))))


async def held_pulls(site: Site) -> None:
    """Many pulls wait at one queue; each is answered at once when what it selects arrives."""
    site.rule = chapters.PULL_REQUESTS
    await make_topic(site, "t", 2)
    await make_group(site, "g")
    lines = [await site.client(f"held {number}") for number in range(_HELD)]
    waiting = []
    for number, line in enumerate(lines):
        fields: dict[str, Any] = {
            "consumerGroup": "g", "topic": "t", "queueId": 0, "queueOffset": 0, "maxMsgNums": 32,
            "sysFlag": 6, "commitOffset": 0, "suspendTimeoutMillis": 15_000, "subVersion": 0,
            "subscription": f"tag{number % 4}", "expressionType": "TAG",
        }  # fmt: skip
        texts = {name: written(value) for name, value in fields.items()}
        waiting.append(line.put(CODES["PULL_MESSAGE"], texts))
    await asyncio.sleep(1)
    site.compare("pulls that are answered early", 0, sum(each.done() for each in waiting))
    await send(site, "t", "elsewhere", 1, of={"TAGS": "tag0"})
    sender = await site.client("sender")
    for tag in ("tag1", "tag2", "none"):
        values = f"TAGS\x01{tag}\x02"
        sent = {
            "a": "p", "b": "t", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "0", "h": "0", "i": values,
            "j": "0", "k": "false", "m": "false",
        }  # fmt: skip
        sender.put(CODES["SEND_MESSAGE_V2"], sent, tag.encode())
    await asyncio.sleep(0.5)
    observed = [number for number, each in enumerate(waiting) if each.done() and each.result().code == 0]
    expected = [number for number in range(_HELD) if number % 4 in (1, 2)]
    site.compare("the pulls that are answered with messages", expected, observed)
    await asyncio.sleep(20)
    site.compare("the pulls that are answered", _HELD, sum(each.done() for each in waiting))
    codes = {each.result().code for number, each in enumerate(waiting) if number not in expected}
    site.compare("the codes of the others", True, codes <= {19, 20})
    await _locks(site)


async def _locks(site: Site) -> None:
    """Two owners lock queues in turn; a lock ends with its lease, and so does that of a silent owner."""
    site.rule = chapters.QUEUE_LOCKS

    async def locks(name: str, owner: str, queues: tuple[int, ...], group: str = "g") -> list[int]:
        wanted = [{"topic": "t", "brokerName": "broker-a", "queueId": queue} for queue in queues]
        body = {"consumerGroup": group, "clientId": owner, "mqSet": wanted}
        answer = await site.ask(name, body)
        found = java_values.read(answer.body)["lockOKMQSet"] if answer.body else []
        strange = {(each["topic"], each["brokerName"]) for each in found} - {("t", "broker-a")}
        site.compare("strange queues", set(), strange)
        return sorted(each["queueId"] for each in found)

    for name, owner, queues, group, expected in (
        ("LOCK_BATCH_MQ", "one", (0, 1), "g", [0, 1]),
        ("LOCK_BATCH_MQ", "two", (0, 1), "g", []),
        ("LOCK_BATCH_MQ", "two", (0,), "h", [0]),
        ("LOCK_BATCH_MQ", "one", (1,), "g", [1]),
        ("UNLOCK_BATCH_MQ", "two", (0,), "g", []),
        ("LOCK_BATCH_MQ", "two", (0,), "g", []),
        ("UNLOCK_BATCH_MQ", "one", (0,), "g", []),
        ("LOCK_BATCH_MQ", "two", (0, 1), "g", [0]),
        ("LOCK_BATCH_MQ", "one", (0, 1), "g", [1]),
    ):
        site.compare(
            f"{name} {queues} of {group} by {owner}", expected, await locks(name, owner, queues, group)
        )
    await asyncio.sleep(50)
    site.compare("a renewed lock", [1], await locks("LOCK_BATCH_MQ", "one", (1,)))
    await asyncio.sleep(50)
    site.compare("an expired and a renewed lock", [0], await locks("LOCK_BATCH_MQ", "three", (0, 1)))
    await asyncio.sleep(61)
    site.compare("two expired locks", [0, 1], await locks("LOCK_BATCH_MQ", "four", (0, 1)))
    site.compare("the messages", 3, len(await records(site, "t")))


FILTERS: Final = Inspection("filters", filters, {"property_filter": True})
HELD_PULLS: Final = Inspection("held pulls", held_pulls)
