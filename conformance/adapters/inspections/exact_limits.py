"""Limits of versions and of waits for a member, each exactly there, just below and just above.

See docs/reference/protocol/administration.md, "Requests that the broker forwards" and "Administration of
offsets", and requests-and-replies.md, "Replies".
"""

import asyncio
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    commit,
    make_group,
    make_topic,
    send,
    subscription,
)
from mqproof.conformance.answers.stored_record import offset_message_id
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame

_NOT_ONLINE, _TIMEOUT = 206, 207


async def exact_limits(site: Site) -> None:
    await make_topic(site, "t")
    await make_group(site, "g")
    await send(site, "t")
    await commit(site, "g", "t", 0, 0)
    await _versions(site)
    await _answers(site)


async def _versions(site: Site) -> None:
    """A member receives requests from a version on; the group has no other member then."""
    site.rule = chapters.FORWARDED_REQUESTS
    named = {"consumerGroup": "g", "clientId": "m@1"}
    direct = {**named, "msgId": offset_message_id(str(site.broker), 0)}
    queues = {"topic": "t", "group": "g"}
    for name, fields, first, code in (
        ("INVOKE_BROKER_TO_RESET_OFFSET", {**queues, "timestamp": 0, "isForce": True}, 28, 1),
        ("INVOKE_BROKER_TO_GET_CONSUMER_STATUS", queues, 28, _NOT_ONLINE),
        ("GET_CONSUMER_RUNNING_INFO", named, 62, 1), ("CONSUME_MESSAGE_DIRECTLY", direct, 62, 1),
    ):  # fmt: skip
        for version in (first - 1, first, first + 1):
            line = await site.client(f"member of version {version}")
            await beat(site, "m@1", "g", [subscription("t")], by=line, version=version)
            line.pushed.clear()
            given: dict[str, Any] = fields
            asked = asyncio.ensure_future(site.ask(name, expects=None, **given))
            await asyncio.sleep(0.1)
            requests = [each for each in line.pushed if each.code != _CHANGED]
            site.compare(f"the requests to a member of version {version} by {name}", int(version >= first),
                         len(requests))  # fmt: skip
            for each in requests:
                line.reply(each, 0, b'{"messageQueueTable":{}}')
            found = code if version < first else 0
            site.compare(f"the code of {name} with version {version}", found, (await asked).code)
            line.close()
            await asyncio.sleep(0.1)


async def _answers(site: Site) -> None:
    """A member that does not answer is given up after 10 s, or left out after 5 s."""
    line = await site.client("member")
    await beat(site, "m@1", "g", [subscription("t")], by=line, producers=("p",))
    reply: dict[str, Any] = {"of": {"CORRELATION_ID": "c", "REPLY_TO_CLIENT": "m@1"}}

    async def info() -> Frame:
        return await site.ask(
            "GET_CONSUMER_RUNNING_INFO", expects=_TIMEOUT, consumerGroup="g", clientId="m@1"
        )

    async def status() -> Frame:
        return await site.ask("INVOKE_BROKER_TO_GET_CONSUMER_STATUS", topic="t", group="g")

    async def replied() -> Frame:
        return await send(
            site, "DefaultCluster_REPLY_TOPIC", name="SEND_REPLY_MESSAGE_V2", expects=1, **reply
        )

    for name, request, seconds in (
        ("information", info, 10),
        ("a status", status, 5),
        ("a reply", replied, 10),
    ):
        began_s = site.cluster.now_s
        answer = await request()
        took_ms = round((site.cluster.now_s - began_s) * 1000)
        site.compare(f"whether {name} takes {seconds} s: {took_ms}", True, 0 <= took_ms - seconds * 1000 <= 5)
        if name == "a status":
            table = java_values.read(answer.body)["consumerTable"]
            site.compare("the members that answered", {}, table)
    line.close()


_CHANGED: Final = 40
"""The notification that the members of a group have changed."""
EXACT_LIMITS: Final = Inspection("exact limits", exact_limits)
