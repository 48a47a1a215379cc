"""Changes that arrive while an earlier one is being written: each is kept, in memory and on the disk.

See docs/reference/protocol/offsets.md, "Consumer offsets", administration.md, and access-control.md.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.accounts import ADMIN, FILE, SECRET, Visitor, signed
from mqproof.conformance.adapters.inspections.raw_client import Answer
from mqproof.conformance.adapters.inspections.settings import lines
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, in_bytes, written
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    commit,
    make_group,
    make_topic,
    pull,
    send,
    subscription,
)
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters

_FILE: Final = "/broker.properties"
_PERIOD_S: Final = 6
"""Longer than the pause between two writes of a table."""
_TOPIC: Final = {"defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False}


async def _at_once(site: Site, *puts: Callable[[], Answer]) -> list[int]:
    """Send these requests, each while the ones before are being written; return the codes of the answers."""
    fsync = site.cluster.machines[MASTER].fsync
    fsync.hold()
    answers = []
    for put in puts:
        answers.append(put())
        await asyncio.sleep(0.1)
    site.compare("the answers while the disk is silent", 0, sum(each.done() for each in answers))
    fsync.release()
    return [(await each).code for each in answers]


async def overlapping(site: Site) -> None:
    await _settings(site)
    await _tables(site)
    await _offsets(site)
    await _expressions(site)


async def _settings(site: Site) -> None:
    site.rule = chapters.ADMINISTRATION_OF_A_BROKER
    line = await site.client()

    def change(text: str) -> Callable[[], Answer]:
        return lambda: line.put(CODES["UPDATE_BROKER_CONFIG"], {}, text.encode())

    codes = await _at_once(site, change("regionId=r"), change("traceOn=false"), change("fileReservedTime=48"))
    site.compare("the changes of settings", [0, 0, 0], codes)
    wanted = {"regionId": "r", "traceOn": "false", "fileReservedTime": "48"}
    shown = lines((await site.ask("GET_BROKER_CONFIG")).body)
    site.compare("the settings", wanted, {name: shown[name] for name in wanted})
    kept = lines(site.cluster.machines[MASTER].disk.written(_FILE))
    site.compare("the settings in the file", wanted, {name: kept.get(name) for name in wanted})


async def _tables(site: Site) -> None:
    """Topics and groups that are created, changed and deleted at once."""
    line = await site.client()

    def topic(name: str, queues: int) -> Callable[[], Answer]:
        fields: dict[str, Any] = {
            **_TOPIC, "topic": name, "readQueueNums": queues, "writeQueueNums": queues, "perm": 6,
        }  # fmt: skip
        texts = {key: written(value) for key, value in fields.items()}
        return lambda: line.put(CODES["UPDATE_AND_CREATE_TOPIC"], texts)

    def group(name: str, times: int) -> Callable[[], Answer]:
        body = in_bytes({"groupName": name, "retryMaxTimes": times})
        return lambda: line.put(CODES["UPDATE_AND_CREATE_SUBSCRIPTIONGROUP"], {}, body)

    def without(name: str, **fields: str) -> Callable[[], Answer]:
        return lambda: line.put(CODES[name], fields)

    await make_topic(site, "gone")
    await make_group(site, "gone")
    codes = await _at_once(
        site, topic("t", 1), topic("u", 2), topic("t", 3), group("g", 1), group("h", 2), group("g", 3),
        without("DELETE_TOPIC_IN_BROKER", topic="gone"),
        without("DELETE_SUBSCRIPTIONGROUP", groupName="gone"),
    )  # fmt: skip
    site.compare("the changes of tables", [0] * 8, codes)
    for what in ("now", "after a restart", "after a crash"):
        for name, queues in (("t", 3), ("u", 2)):
            shown = java_values.read((await site.ask("GET_TOPIC_CONFIG", topic=name)).body)
            site.compare(f"the queues of {name} {what}", queues, shown["readQueueNums"])
        for name, times in (("g", 3), ("h", 2)):
            shown = java_values.read((await site.ask("GET_SUBSCRIPTIONGROUP_CONFIG", group=name)).body)
            site.compare(f"the retries of {name} {what}", times, shown["retryMaxTimes"])
        await site.ask("GET_TOPIC_CONFIG", topic="gone", expects=17)
        await site.ask("GET_SUBSCRIPTIONGROUP_CONFIG", group="gone", expects=26)
        await site.restart(killed=what == "after a restart")


async def _offsets(site: Site) -> None:
    """An offset that is committed while the file is written is in the file of the next write."""
    site.rule = chapters.CONSUMER_OFFSETS
    fsync = site.cluster.machines[MASTER].fsync
    for number, killed in enumerate((False, True)):
        await commit(site, "g", "t", 0, 2 * number + 1)
        await commit(site, "g", "t", 1, 2 * number + 1)
        fsync.hold()
        await asyncio.sleep(_PERIOD_S)
        await commit(site, "g", "t", 1, 2 * number + 2)
        await commit(site, "h", "u", 0, number + 7)
        fsync.release()
        await asyncio.sleep(2 * _PERIOD_S if killed else 0.1)
        await site.restart(killed=killed)
        table = java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET")).body)["offsetTable"]
        shown = {name: {str(queue): at for queue, at in table[name].items()} for name in ("t@g", "u@h")}
        expected = {"t@g": {"0": 2 * number + 1, "1": 2 * number + 2}, "u@h": {"0": number + 7}}
        site.compare("the offsets after a restart", expected, shown)


async def _expressions(site: Site) -> None:
    """An expression of a heartbeat that arrives while the file is written is kept too."""
    site.rule = chapters.CLIENT_REGISTRATION
    for number in range(3):
        await send(site, "t", f"{number}", of={"a": str(number)})
    line, fsync = await site.client("member"), site.cluster.machines[MASTER].fsync
    await beat(site, "m@1", "g", [subscription("t", "a > 0", 5, "SQL92")], by=line)
    fsync.hold()
    await asyncio.sleep(3 * _PERIOD_S)
    await beat(site, "m@1", "g", [subscription("t", "a > 1", 6, "SQL92")], by=line)
    fsync.release()
    await asyncio.sleep(0.1)
    line.close()
    await site.restart()
    line = await site.client("member")
    await beat(site, "m@1", "g", [subscription("t", "a >", 7, "SQL92")], by=line)
    answer = await pull(
        site, "t", by=line, sysFlag=0, subscription=None, expressionType="SQL92", subVersion=6
    )
    site.compare(
        "what the kept expression selects", [b"2"], [each.body for each in read_records(answer.body)]
    )
    await make_topic(site, "after")
    await make_group(site, "after")


async def of_accounts(site: Site) -> None:
    """Accounts that are created, changed and deleted at once."""
    site.rule = chapters.USERS_AND_POLICIES
    visitor = Visitor(site, await site.client())

    def change(name: str, body: Any = b"", **fields: str) -> Callable[[], Answer]:
        data = in_bytes(body)
        return lambda: visitor.line.put(CODES[name], signed(fields, data, ADMIN.key, SECRET), data)

    user = {"password": SECRET, "userType": "Normal"}
    entry = {"resource": "Topic:t", "actions": ["Pub"], "decision": "Allow"}
    policy = {"subject": "User:any", "policies": [{"policyType": "Custom", "entries": [entry]}]}
    codes = await _at_once(
        site, change("AUTH_CREATE_USER", user, username="account-1"),
        change("AUTH_CREATE_USER", user, username="account-2"),
        change("AUTH_CREATE_USER", user, username="account-1"),
        change("AUTH_CREATE_ACL", policy, subject="User:account-2"),
        change("AUTH_DELETE_USER", username="account-1"),
        change("UPDATE_GLOBAL_WHITE_ADDRS_CONFIG", globalWhiteAddrs="10.0.9.8"),
        change("UPDATE_AND_CREATE_ACL_CONFIG", accessKey="account-3", secretKey=SECRET),
    )  # fmt: skip
    site.compare("the changes of accounts", [0, 0, 16, 0, 0, 0, 0], codes)
    for _ in range(2):
        visitor = Visitor(site, await site.client())
        listed = java_values.read((await visitor.ask(ADMIN, "AUTH_LIST_USER", filter="account-")).body)
        site.compare("the accounts", ["account-2", "account-3"], [each["username"] for each in listed])
        shown = java_values.read((await visitor.ask(ADMIN, "AUTH_GET_ACL", subject="User:account-2")).body)
        site.compare("the policy", [entry], [
            {key: each[key] for key in entry} for each in shown["policies"][0]["entries"]])  # fmt: skip
        white = await site.client(host="10.0.9.8")
        answer = await white.request(CODES["GET_BROKER_CONFIG"], {})
        site.compare("whether an address is white", 0, answer.code)
        await site.restart(killed=True)


OVERLAPPING: Final = Inspection(
    "overlapping changes",
    overlapping,
    {"property_filter": True, "config_path": _FILE},
    files={_FILE: "a=1\n"},
)
OVERLAPPING_ACCOUNTS: Final = Inspection(
    "overlapping changes of accounts", of_accounts, {"acl_enabled": True},
    files={"/store/config/plain_acl.yml": FILE},
)  # fmt: skip
