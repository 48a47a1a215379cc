"""Settings that change after a heartbeat, groups without notifications, and what is counted of failed sends.

See docs/reference/protocol/filters.md, "Filter data", groups.md, "Client registration", and sending.md.
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    batch,
    beat,
    make_group,
    make_topic,
    pull,
    send,
    subscription,
)
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.disk import Space

_NO_EXPRESSION, _DISABLED, _FULL = 27, 1, 14
_CHANGED: Final = 40
_OF_HEARTBEAT: Final[dict[str, Any]] = {"sysFlag": 0, "subscription": None, "expressionType": "SQL92"}


async def late_settings(site: Site) -> None:
    await make_topic(site, "t")
    await send(site, "t", "a", of={"n": "1"})
    await _expressions(site)
    await _notices(site)
    await _failed(site)


async def _expressions(site: Site) -> None:
    """A heartbeat registers its expression only while expressions are allowed."""
    site.rule = chapters.PULL_REQUESTS
    line = await site.client("member")
    wanted = [subscription("t", "n = 1", 1, "SQL92")]
    for setting, beats, code in (
        ("false", True, None), ("true", False, _NO_EXPRESSION), ("true", True, 0),
        ("false", False, _DISABLED), ("true", False, 0),
    ):  # fmt: skip
        await site.ask("UPDATE_BROKER_CONFIG", f"enablePropertyFilter={setting}")
        if beats:
            await beat(site, "m@1", "g", wanted, by=line)
        answer = await pull(site, "t", by=line, expects=None, **_OF_HEARTBEAT)
        expected = answer.code if code is None else code
        site.compare(f"the pull with {setting}, {beats}", expected, answer.code, answer.remark)
    line.close()


async def _notices(site: Site) -> None:
    """A group whose members are not notified does not keep others from their notifications."""
    site.rule = chapters.CLIENT_REGISTRATION
    names = ("a-quiet", "b-loud", "c-quiet", "d-loud")
    for name in names:
        await make_group(site, name, notifyConsumerIdsChangedEnable=name.endswith("loud"))
    one, two = [await site.client(f"member {number}") for number in range(2)]
    for client, line in (("one@1", one), ("two@1", two)):
        for name in names:
            await beat(site, client, name, [subscription("t")], by=line)
    await asyncio.sleep(0.1)
    one.pushed.clear()
    two.close()
    await asyncio.sleep(0.1)
    notified = [each.fields.get("consumerGroup") for each in one.pushed if each.code == _CHANGED]
    site.compare("the groups whose members are notified", ["b-loud", "d-loud"], notified)
    one.close()


async def _failed(site: Site) -> None:
    """Each message that is not stored counts, also each one of a batch."""
    site.rule = chapters.SEND_REQUESTS
    disk, room = site.cluster.machines[MASTER].disk, site.cluster.machines[MASTER].disk.room
    disk.room = Space(room.total_bytes, 1)
    await asyncio.sleep(30)
    before = await _counts(site)
    for number in range(3):
        await send(site, "t", f"{number}", expects=_FULL)
    await send(site, "t", batch([(b"x", 0, {}), (b"y", 0, {})]), name="SEND_BATCH_MESSAGE", expects=_FULL)
    reply = {"CORRELATION_ID": "c", "REPLY_TO_CLIENT": "absent"}
    await send(site, "DefaultCluster_REPLY_TOPIC", name="SEND_REPLY_MESSAGE_V2", of=reply, expects=1)
    after = await _counts(site)
    site.compare("the sends that failed", (0, 3 + 2 + 1), (before[0], after[0]))
    site.compare("the sends that did not", before[1], after[1])
    disk.room = room
    await asyncio.sleep(30)
    await send(site, "t")
    stored = await _counts(site)
    site.compare("the counts after another send", (after[0], after[1] + 1), stored)


async def _counts(site: Site) -> tuple[int, int]:
    """Return the messages that were not stored, and those that were."""
    table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
    return int(table["putMessageFailedTimes"]), int(table["putMessageTimesTotal"])


LATE_SETTINGS: Final = Inspection("late settings", late_settings)
