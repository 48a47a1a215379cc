"""The SQL92 expressions that a broker keeps: changes by heartbeats, their expiry, and how many are sent.

See docs/reference/protocol/filters.md, "Filter data".
"""

import asyncio
import json
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import beat, make_group, subscription
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters

_DAY_MS: Final = 24 * 3_600_000
_FILE: Final = "/store/config/consumerFilter.json"
_STORED: Final = 3300
_EXPRESSION: Final = f"a = '{'x' * 1000}'"
_TOPIC: Final = "t" * 100
_SENT_BYTES: Final = 4 << 20

_Entry = tuple[str, int, int, int]
"""The expression, when it was first received, its version, and when the group lost its last member."""


async def kept_expressions(site: Site) -> None:
    site.rule = chapters.PULL_REQUESTS
    await _heartbeats(site)
    await _expiry(site)
    await _sent(site)


async def _kept(site: Site) -> dict[str, _Entry]:
    """Return what the broker keeps, by `TOPIC@GROUP`."""
    body = java_values.read((await site.ask("GET_ALL_SUBSCRIPTIONGROUP_CONFIG")).body)
    return {
        f"{each['topic']}@{each['consumerGroup']}": (
            each["expression"], each["bornTime"], each["clientVersion"], each["deadTime"],
        )
        for each in body.get("filters", [])
    }  # fmt: skip


def _sql(topic: str, text: str, version: int) -> dict[str, Any]:
    return subscription(topic, text, version, "SQL92")


async def _heartbeats(site: Site) -> None:
    """A later valid expression replaces one; a group without members, or without the topic, has left."""
    await make_group(site, "g")
    line = await site.client("member")
    await beat(site, "member@1", "g", [], by=line)  # creates the retry topic
    born: dict[str, tuple[str, int]] = {}
    left: dict[str, int] = {}
    for subscriptions, expected in (
        ([_sql("t", "a > 1", 5)], {"t@g": ("a > 1", 5, False)}),
        ([_sql("t", "a > 2", 5)], {"t@g": ("a > 1", 5, False)}),
        ([_sql("t", "a > 2", 4)], {"t@g": ("a > 1", 5, False)}),
        ([_sql("t", "a > 1", 6)], {"t@g": ("a > 1", 6, False)}),
        ([_sql("t", "a >", 9)], {"t@g": ("a > 1", 6, False)}),
        (
            [_sql("t", "a > 3", 7), _sql("u", "b > 1", 1)],
            {"t@g": ("a > 3", 7, False), "u@g": ("b > 1", 1, False)},
        ),
        ([_sql("u", "b > 1", 1)], {"t@g": ("a > 3", 7, True), "u@g": ("b > 1", 1, False)}),
        ([_sql("u", "b > 1", 1)], {"t@g": ("a > 3", 7, True), "u@g": ("b > 1", 1, False)}),
        ([subscription("u", "*", 2)], {"t@g": ("a > 3", 7, True), "u@g": ("b > 1", 1, True)}),
        ([_sql("t", "a > 3", 7)], {"t@g": ("a > 3", 7, False), "u@g": ("b > 1", 1, True)}),
        (None, {"t@g": ("a > 3", 7, True), "u@g": ("b > 1", 1, True)}),
    ):  # fmt: skip
        await asyncio.sleep(0.25)
        if subscriptions is None:
            line.close()
            await asyncio.sleep(0)
            now_ms = site.now_ms
            await asyncio.sleep(0.01)
        else:
            now_ms = site.now_ms
            await beat(site, "member@1", "g", subscriptions, by=line)
        found = await _kept(site)
        for key, (text, version, has_left) in expected.items():
            if born.get(key, ("", 0))[0] != text:
                born[key] = text, now_ms
            if not has_left:
                left.pop(key, None)
            at_ms = left.setdefault(key, now_ms) if has_left else 0
            entry = text, born[key][1], version, at_ms
            site.compare(f"the expression of {key} after {subscriptions}", entry, found.get(key))
        site.compare("the kept expressions", set(expected), set(found))
    await site.restart()
    site.compare("the expressions after a restart", found, await _kept(site))


async def _expiry(site: Site) -> None:
    """An expression is removed a day after its group has left; one of a file without that time, 30 s less."""
    await site.cluster.stop(MASTER)
    now_ms = site.now_ms
    names = {"gone": _DAY_MS + 1, "soon": _DAY_MS - 15_000, "later": _DAY_MS - 60_000, "unknown": None}
    table = {
        name: {
            "topic": "t", "consumerGroup": name, "expression": "a > 1", "expressionType": "SQL92",
            **({} if ago_ms is None else {"deadTime": now_ms - ago_ms}),
        }
        for name, ago_ms in names.items()
    }  # fmt: skip
    site.write_file(
        MASTER, _FILE, json.dumps({"filterDataByTopic": {"t": {"topic": "t", "groupFilterData": table}}})
    )
    await site.cluster.start(MASTER)
    for add_ms, seconds, expected in (
        (0, 1, {"gone", "soon", "later", "unknown"}), (0, 11, {"soon", "later", "unknown"}),
        (0, 14, {"later", "unknown"}), (0, 50, {"unknown"}), (_DAY_MS - 30_000 - 86_000, 0, {"unknown"}),
        (0, 5, {"unknown"}), (30_000, 0, {"unknown"}), (0, 11, set()),
    ):  # fmt: skip
        site.machine_clock_add(add_ms * 1000)
        await asyncio.sleep(seconds)
        found = {key.partition("@")[2] for key in await _kept(site)}
        site.compare(f"the groups {site.now_ms - now_ms} ms later", expected, found)
    await site.restart(killed=True)
    site.compare("the expressions after a kill", {}, await _kept(site))


async def _sent(site: Site) -> None:
    """A slave is sent the latest expressions, up to 4 MiB."""
    await site.cluster.stop(MASTER)
    table = {
        name: {
            "topic": _TOPIC, "consumerGroup": name, "expression": _EXPRESSION, "expressionType": "SQL92",
            "clientVersion": version, "bornTime": 1,
        }
        for version in range(_STORED) for name in (f"{version:0200}",)
    }  # fmt: skip
    content = {"filterDataByTopic": {_TOPIC: {"topic": _TOPIC, "groupFilterData": table}}}
    site.write_file(MASTER, _FILE, json.dumps(content))
    await site.cluster.start(MASTER)
    answer = await site.ask("GET_ALL_SUBSCRIPTIONGROUP_CONFIG")
    versions = [each["clientVersion"] for each in java_values.read(answer.body)["filters"]]
    site.compare("the sent versions", list(range(_STORED - 1, _STORED - 1 - len(versions), -1)), versions)
    size = len(answer.body) / _SENT_BYTES
    site.compare(f"whether the answer has about 4 MiB: {size}", True, 0.9 < size < 1.1)


KEPT_EXPRESSIONS: Final = Inspection("kept expressions", kept_expressions, {"property_filter": True})
