"""The offsets and expressions that a slave receives itself, beside those of its master.

See docs/reference/protocol/offsets.md, "Consumer offsets", and filters.md.
"""

import asyncio
import json
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    make_group,
    make_topic,
    pull,
    send,
    subscription,
)
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import MASTER, SLAVE
from mqproof.conformance.wire import chapters
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.network import Address

_SYNCED_S: Final = 25
"""Longer than two copies of the master's tables."""
_TOPIC: Final = "t"
_FILE: Final = "/store/config/consumerOffset.json"
_FILTERS: Final = "/store/config/consumerFilter.json"
_PAIRS_MAX: Final = 4


def _slave(site: Site) -> Address:
    return Address(site.cluster.machines[SLAVE].host, site.broker.port)


async def _commit(site: Site, group: str, offset: int, *, at_slave: bool = False, queue: int = 0) -> None:
    by = await site.client(to=_slave(site) if at_slave else None)
    await site.ask(
        "UPDATE_CONSUMER_OFFSET", by=by, consumerGroup=group, topic=_TOPIC, queueId=queue, commitOffset=offset
    )


async def _offsets(site: Site, to: Address) -> dict[str, dict[str, int]]:
    table = java_values.read((await site.ask("GET_ALL_CONSUMER_OFFSET", to=to)).body)["offsetTable"]
    return {
        key.partition("@")[2]: {str(queue): at for queue, at in queues.items()}
        for key, queues in table.items()
    }


async def _both(site: Site, what: str, **expected: int) -> None:
    """Wait until the tables are copied; compare the offsets in queue 0 at the master and at its slave."""
    await asyncio.sleep(_SYNCED_S)
    for name, to in (("master", site.broker), ("slave", _slave(site))):
        found = await _offsets(site, to)
        shown = {group: found.get(group, {}).get("0") for group in expected}
        site.compare(f"the offsets of the {name} {what}", expected, shown)


def _file(site: Site, node: str) -> dict[str, Any]:
    text = site.cluster.machines[node].disk.written(_FILE).rstrip(b"\0").decode()
    found: dict[str, Any] = json.loads(text[: text.rindex("}") + 1])
    return found


async def offsets(site: Site) -> None:
    """Commit at the master and at its slave, with and without each other; the last commits are kept."""
    site.rule = chapters.CONSUMER_OFFSETS
    await make_topic(site, _TOPIC, 2)
    for group in ("d", "g", "h", "z"):
        await make_group(site, group)
    await site.restart()
    await _commit(site, "g", 2)
    await _commit(site, "h", 4)
    await _both(site, "of the master", g=2, h=4)
    await _commit(site, "g", 3, at_slave=True)
    await _both(site, "after a commit at the slave", g=3, h=4)
    await _commit(site, "g", 1)
    await _both(site, "after a reset of an offset that was sent", g=1, h=4)
    for at_slave in (True, False):
        await _commit(site, "h", 6, at_slave=at_slave)
    await _both(site, "after the same commit at both", g=1, h=6)
    await _commit(site, "h", 2)
    await _both(site, "after a reset of an offset that both had", g=1, h=2)
    site.compare("the file of the master", {"offsetTable", "mqproofSeal"}, set(_file(site, MASTER)))
    await _alone(site)
    await _cloned(site)


async def _alone(site: Site) -> None:
    """What a slave receives without its master survives its restart, and reaches the master later."""
    await site.cluster.stop(MASTER)
    for group, offset in (("g", 9), ("h", 7), ("h", 8), ("z", 5)):
        await _commit(site, group, offset, at_slave=True)
    await asyncio.sleep(6)
    kept = {f"{_TOPIC}@{group}": [0] for group in ("g", "h", "z")}
    site.compare("what the slave has not sent", kept, _file(site, SLAVE).get("untold"))
    site.cluster.kill(SLAVE)
    await site.cluster.start(SLAVE)
    await asyncio.sleep(1)
    await site.cluster.start(MASTER)
    await asyncio.sleep(1)
    await _commit(site, "z", 7)
    await _both(site, "after the master's return", g=9, h=8, z=7)
    site.compare("what the slave has not sent at last", None, _file(site, SLAVE).get("untold"))
    await _commit(site, "g", 0)
    await _both(site, "after a reset", g=0, h=8, z=7)


async def _cloned(site: Site) -> None:
    """A clone at a slave removes offsets that were not sent; they are not sent then, and others are."""
    await _commit(site, "d", 5, at_slave=True, queue=1)
    await _commit(site, "z", 20, at_slave=True)
    by = await site.client(to=_slave(site))
    await site.ask("CLONE_GROUP_OFFSET", by=by, srcGroup="h", destGroup="d", topic=_TOPIC, offline=False)
    await _both(site, "after a clone", d=8, h=8, z=20)
    for to in (site.broker, _slave(site)):
        site.compare("the offsets after a clone", {"0": 8}, (await _offsets(site, to))["d"])


async def full_slave(site: Site) -> None:
    """A slave whose table is full still receives the offsets of the pairs that it knows."""
    site.rule = chapters.CONSUMER_OFFSETS
    await make_topic(site, _TOPIC)
    for group in ("a", "b", "c", "d", "s"):
        await make_group(site, group)
    for group in ("a", "c", "d"):
        await _commit(site, group, 1)
    await _both(site, "of the master", a=1, c=1, d=1)
    await site.cluster.stop(MASTER)
    await _commit(site, "s", 3, at_slave=True)
    await _refused(site)
    await site.cluster.start(MASTER)
    for group in ("b", "d", "c", "a"):
        await _commit(site, group, 2)
    await _both(site, "of a full table", a=2, c=2, d=2)
    found = await _offsets(site, _slave(site))
    site.compare("the groups at the slave", {"a", "c", "d", "s"}, set(found))


async def _refused(site: Site) -> None:
    by = await site.client(to=_slave(site))
    await site.ask(
        "UPDATE_CONSUMER_OFFSET", by=by, expects=1, consumerGroup="x", topic=_TOPIC, queueId=0, commitOffset=1
    )


async def expressions(site: Site) -> None:
    """A slave selects by the expression of its own members; without them, by the latest one."""
    site.rule = chapters.PULL_REQUESTS
    await make_topic(site, _TOPIC)
    await make_group(site, "g")
    for number in range(4):
        await send(site, _TOPIC, f"{number}", of={"a": str(number)})
    filters = java_values.read((await site.ask("GET_ALL_SUBSCRIPTIONGROUP_CONFIG")).body)["filters"]
    site.compare("an expression of the file", [0], [
        each["bornTime"] for each in filters if each["consumerGroup"] == "of_file"])  # fmt: skip
    at_master, at_slave = await site.client("m"), await site.client("s", to=_slave(site))
    for master, slave, selected in (
        ((5, "a > 2"), None, 1),
        ((5, "a > 2"), (4, "a > 0"), 1),
        ((12, "a > 2"), (9, "a > 0"), 3),
        (None, (9, "a > 0"), 3),
        ((12, "a > 2"), None, 1),
        ((12, "a > 2"), (20, "a > 1"), 2),
        ((12, "a > 2"), None, 2),
        ((30, "a > -1"), None, 4),
    ):
        for line, known in ((at_master, master), (at_slave, slave)):
            await _subscribe(site, line, known)
        await asyncio.sleep(_SYNCED_S)
        await _subscribe(site, at_slave, slave or (1, "a > 50"))
        answer = await pull(
            site, _TOPIC, by=at_slave, sysFlag=0, subscription=None, expressionType="SQL92", expects=None
        )
        found = len(list(read_records(answer.body))) if not answer.code else answer.remark
        site.compare(f"the messages with {master} and {slave}", selected, found)


async def _subscribe(site: Site, line: Any, known: tuple[int, str] | None) -> None:
    """Send a heartbeat with the expression, or leave the group."""
    if known is None:
        await site.ask("UNREGISTER_CLIENT", by=line, clientID="member@1", consumerGroup="g")
    else:
        version, text = known
        await beat(site, "member@1", "g", [subscription(_TOPIC, text, version, "SQL92")], by=line)


_PAIR: Final = ReplicationConfig(Role.ASYNC_MASTER)
_OF_FILE: Final = {
    "filterDataByTopic": {"t": {"topic": "t", "groupFilterData": {
        "of_file": {"topic": "t", "consumerGroup": "of_file", "expression": "a > 1"}
    }}}
}  # fmt: skip
SLAVE_OFFSETS: Final = Inspection("offsets of a slave", offsets, replication=_PAIR)
FULL_SLAVE: Final = Inspection("full slave", full_slave, {"offset_pairs_max": _PAIRS_MAX}, replication=_PAIR)
SLAVE_EXPRESSIONS: Final = Inspection(
    "expressions of a slave", expressions, {"property_filter": True}, files={_FILTERS: json.dumps(_OF_FILE)},
    replication=_PAIR,
)  # fmt: skip
