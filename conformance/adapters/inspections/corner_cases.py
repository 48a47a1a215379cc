"""Single cases of a broker's requests, each with its effect: refusals, flags, permissions, rates and times.

Each function states the section of docs/reference/protocol/ that it compares.
"""

import asyncio
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    commit,
    make_group,
    make_topic,
    properties,
    pull,
    records,
    send,
    subscription,
)
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import MASTER, STORE
from mqproof.conformance.wire import chapters

_PROPERTIES_MAX: Final = 32767
_ADDED: Final = {"CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
_INHERIT: Final = 1
_FORGOTTEN_S: Final = 30
"""The time after which a silent filter server is forgotten."""


async def corner_cases(site: Site) -> None:
    await _offsets(site)
    await _filter_types(site)
    await _templates(site)
    await _full_properties(site)
    await _registered_permissions(site)
    await _tag_flags(site)
    await _retry_topics(site)
    await _producers(site)
    await _newer_subscription(site)
    await _rates(site)


async def _offsets(site: Site) -> None:
    site.rule = chapters.CONSUMER_OFFSETS
    await make_topic(site, "t")
    await make_group(site, "g")
    await commit(site, "g", "t", 0, 0)
    for offset in (-1, -(1 << 40)):
        await commit(site, "g", "t", 0, offset, expects=1)
    answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup="g", topic="t", queueId=0)
    site.compare("the offset after refused commits", "0", answer.fields.get("offset"))
    await site.restart()
    answer = await site.ask("QUERY_CONSUMER_OFFSET", consumerGroup="g", topic="t", queueId=0)
    site.compare("the offset after a restart", "0", answer.fields.get("offset"))


async def _filter_types(site: Site) -> None:
    site.rule = chapters.PULL_REQUESTS
    for kind, expects in (("TAG", 0), ("SQL92", 0), ("XPATH", 1), ("sql92", 1)):
        data = subscription("t", "a > 1" if kind == "SQL92" else "*", kind=kind)
        body = {"clientId": "c", "group": "g", "subscriptionData": data}
        answer = await site.ask("CHECK_CLIENT_CONFIG", body, expects=expects)
        text = f"filter type {kind} is not supported, TAG or SQL92 expected"
        site.compare(f"the remark for {kind}", text if expects else None, answer.remark)
        if kind != "SQL92":
            await pull(site, "t", expressionType=kind, expects=19 if kind == "TAG" else 1)


async def _templates(site: Site) -> None:
    """A topic is created by a send if its template may be inherited, with the template's settings."""
    site.rule = chapters.SEND_REQUESTS
    for name, permission, queues in (("closed", 6, 2), ("open", 6 | _INHERIT, 3)):
        await make_topic(site, name, queues, perm=permission)
        expects = 0 if permission & _INHERIT else 17
        await send(site, f"of_{name}", c=name, d=8, expects=expects)
        shown = await site.ask("GET_TOPIC_CONFIG", topic=f"of_{name}", expects=expects)
        if not shown.code:
            made = java_values.read(shown.body)
            site.compare(f"the topic like {name}", (queues, queues, permission & ~_INHERIT), tuple(
                made[key] for key in ("readQueueNums", "writeQueueNums", "perm")))  # fmt: skip


async def _full_properties(site: Site) -> None:
    """A message that the broker stores again needs room for the properties of the copies."""
    site.rule = chapters.SEND_REQUESTS
    for of, flag, reserve in (
        ({"TIMER_DELAY_SEC": "1000", "UNIQ_KEY": "k"}, 0, 141),
        ({"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "k"}, 4, 106),
    ):
        used = len(properties({**of, "x": ""}).encode())
        for room, expects in ((reserve, 0), (reserve - 1, 13), (0, 13)):
            filled = {**of, "x": "v" * (_PROPERTIES_MAX - used - room - len(properties(_ADDED)))}
            await send(site, "t", of=filled, f=flag, expects=expects)


async def _registered_permissions(site: Site) -> None:
    """Name servers know the permission of each topic, limited to that of the broker."""
    site.rule = chapters.NAME_SERVER
    for permission in (2, 4, 6, 7):
        await make_topic(site, f"p{permission}", perm=permission)
    for of_broker in (6, 4, 2, 6):
        await site.ask("UPDATE_BROKER_CONFIG", f"brokerPermission={of_broker}")
        await asyncio.sleep(1)
        for to in site.cluster.names:
            for permission in (2, 4, 6, 7):
                answer = await site.ask("GET_ROUTEINFO_BY_TOPIC", to=to, topic=f"p{permission}")
                (queue,) = java_values.read(answer.body)["queueDatas"]
                expected = permission & (of_broker | _INHERIT)
                site.compare(f"the permission {permission} at a name server", expected, queue["perm"])


async def _tag_flags(site: Site) -> None:
    site.rule = chapters.SEND_REQUESTS
    for kind, flag in (("SINGLE_TAG", 0), ("MULTI_TAG", 2)):
        await make_topic(site, kind, topicFilterType=kind)
        await send(site, kind, of={"TAGS": "a"})
        site.compare(f"the flags of {kind}", [flag], [each.system_flag for each in await records(site, kind)])


async def _retry_topics(site: Site) -> None:
    """A heartbeat creates the retry topic of its group, with the queues of the group."""
    site.rule = chapters.CLIENT_REGISTRATION
    for group, queues in (("of_one", 1), ("of_three", 3), ("of_none", 0)):
        await make_group(site, group, retryQueueNums=queues)
        await beat(site, "member@1", group, [subscription("t")], by=await site.client("member"))
        expects = 0 if queues else 17
        answer = await site.ask("GET_TOPIC_CONFIG", topic=f"%RETRY%{group}", expects=expects)
        if queues:
            made = java_values.read(answer.body)
            site.compare(f"the retry topic of {group}", (queues, queues, 6), tuple(
                made[key] for key in ("readQueueNums", "writeQueueNums", "perm")))  # fmt: skip


async def _producers(site: Site) -> None:
    """A producer that leaves one of its groups still receives replies, and has 10 s to confirm one."""
    site.rule = chapters.REPLIES
    line = await site.client("requester")
    await beat(site, "requester@1", "", [], producers=("alpha", "beta"), by=line)
    for leaving, expects in (("alpha", 0), ("beta", 1)):
        await site.ask("UNREGISTER_CLIENT", by=line, clientID="requester@1", producerGroup=leaving)
        line.pushed.clear()
        for seconds in (0.1, 9.7) if not expects else (0.1,):
            answer = asyncio.ensure_future(_reply(site))
            await asyncio.sleep(seconds)
            for each in line.pushed[-1:] if not expects else ():
                line.reply(each)
            code = (await answer).code
            site.compare(f"the answer to a reply after {seconds} s", expects, code)


async def _reply(site: Site) -> Any:
    of = {"CORRELATION_ID": "c", "REPLY_TO_CLIENT": "requester@1"}
    return await send(site, "DefaultCluster_REPLY_TOPIC", name="SEND_REPLY_MESSAGE_V2", of=of, expects=None)


async def _newer_subscription(site: Site) -> None:
    """A pull without its subscription uses that of the group, unless it has a later one."""
    site.rule = chapters.PULL_REQUESTS
    for tag in ("a", "b"):
        await send(site, "t", tag, of={"TAGS": tag})
    await make_group(site, "s")
    for text, version, asked, codes in (
        ("a || b", 5, 5, 0),
        ("a || b", 5, 6, 25),
        ("*", 7, 7, 0),
        ("*", 7, 8, 0),
    ):
        line = await site.client("member of s")
        await beat(site, "member@2", "s", [subscription("t", text, version)], by=line)
        answer = await pull(
            site, "t", group="s", sysFlag=0, subscription=None, subVersion=asked, expects=None
        )
        site.compare(f"the pull of {text} with version {asked} of {version}", codes, answer.code)


async def _rates(site: Site) -> None:
    """The rate of a group that pulls nothing is 0; that of one that pulls is not."""
    site.rule = chapters.STATISTICS_OF_A_BROKER
    for group in ("idle", "busy"):
        await make_group(site, group)
        await commit(site, group, "t", 0, 0)
    for _ in range(20):
        pulled = len(list(read_records((await pull(site, "t", 0, group="busy")).body)))
        await asyncio.sleep(1)
    for group in ("idle", "busy"):
        shown = java_values.read((await site.ask("GET_CONSUME_STATS", consumerGroup=group)).body)
        expected, rate = pulled if group == "busy" else 0, shown["consumeTps"]
        is_right = abs(rate - expected) <= 0.15 * expected
        site.compare(f"whether {group} has the rate {expected}: {rate}", True, is_right)


async def running_time(site: Site) -> None:
    """Compare what the broker counts of one message, second by second, and after an hour."""
    site.rule = chapters.STATISTICS_OF_A_BROKER
    await make_topic(site, "t")
    await send(site, "t", "m" * 7)
    await asyncio.sleep(0.5)
    shown_s = [second for second in range(1, 76) if await _counted_after(site, second)]
    site.compare("the seconds in which the last minute has the message", list(range(10, 70)), shown_s)
    await asyncio.sleep(3599.3 - 75.5)
    for seconds, shown, hour in (
        (0, "0 hours, 59 minutes, 59 seconds", 1), (1, "1 hours, 0 minutes, 0 seconds", 0),
    ):  # fmt: skip
        await asyncio.sleep(seconds)
        table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
        site.compare("the running time", f"[ 0 days, {shown} ]", table["runtime"])
        windows = await _windows(site, "TOPIC_PUT_NUMS", "t")
        sums = windows["statsMinute"]["sum"], windows["statsHour"]["sum"], windows["statsDay"]["sum"]
        site.compare("the sums after an hour", (0, hour, 1), sums)
    await _recent(site)
    await _paces(site)
    await _filter_servers(site)
    await _forgotten(site)


async def _recent(site: Site) -> None:
    """The rates of the last ten seconds, minute and ten minutes are those of the messages in them."""
    await make_topic(site, "recent")
    for _ in range(20):
        await send(site, "recent")
        await asyncio.sleep(1)
    table = java_values.read((await site.ask("GET_BROKER_RUNTIME_INFO")).body)["table"]
    for seconds, text in zip((10, 60, 600), table["putTps"].split(" "), strict=True):
        expected = min(seconds, 20) / seconds
        is_close = abs(float(text) / expected - 1) < 0.12
        site.compare(f"whether the rate of {seconds} s, {text}, is {expected}", True, is_close)


async def _paces(site: Site) -> None:
    """The rate of a group is that of its last ten seconds or a little more, over all of its topics."""
    await make_topic(site, "u")
    await make_group(site, "busy")
    for topic in "tu":
        await commit(site, "busy", topic, 0, 0)
    await send(site, "u", "one")
    for second in range(35):
        await asyncio.sleep(1)
        for topic in "tuu" if second < 23 else "":
            await pull(site, topic, group="busy", maxMsgNums=1)
        for of, full in ((None, 3), ("t", 1), ("u", 2)):
            answer = await site.ask("GET_CONSUME_STATS", consumerGroup="busy", topic=of)
            rate = java_values.read(answer.body)["consumeTps"]
            is_close = rate < 0.51 * full if second > 33 else abs(rate / full - 1) < 0.15
            if 11 < second < 23 or second > 33:
                site.compare(f"whether the rate of {of}, {rate}, is right in second {second}", True, is_close)


async def _filter_servers(site: Site) -> None:
    """A filter server that does not register again is forgotten after 30 s, and not before."""
    site.rule = chapters.FILTER_SERVERS
    addresses = [f"10.0.2.{number}:9000" for number in range(1, 6)]
    for number, address in enumerate(addresses):
        line = await site.client(f"filter {number}")
        await site.ask("REGISTER_FILTER_SERVER", by=line, filterServerAddr=address)
        await asyncio.sleep(2)
    await asyncio.sleep(_FORGOTTEN_S - 2 * len(addresses) - 0.5)
    for number in range(len(addresses)):
        body = java_values.read(
            (await site.ask("GET_ROUTEINFO_BY_TOPIC", to=site.name_server, topic="t")).body
        )
        known = body["filterServerTable"].get(str(site.broker), [])
        site.compare("the filter servers", addresses[number:], sorted({*known} & {*addresses[number:]}))
        await asyncio.sleep(2)
    await asyncio.sleep(10)
    body = java_values.read((await site.ask("GET_ROUTEINFO_BY_TOPIC", to=site.name_server, topic="t")).body)
    site.compare("the filter servers at last", {}, body["filterServerTable"])


async def _forgotten(site: Site) -> None:
    """What was not counted for a day is unknown; what was counted since is known."""
    services = site.cluster.brokers[MASTER].services
    assert services is not None, "the broker was started"
    await make_topic(site, "later")
    await send(site, "later")
    for hours in (21, 23.5):  # an hour has passed already
        services.statistics.counts.roll(site.cluster.now_s + hours * 3600)
        await site.ask("VIEW_BROKER_STATS_DATA", statsName="TOPIC_PUT_NUMS", statsKey="later")
        expects = int(hours > 23)
        await site.ask("VIEW_BROKER_STATS_DATA", expects=expects, statsName="TOPIC_PUT_NUMS", statsKey="t")


async def _windows(site: Site, name: str, key: str) -> Any:
    return java_values.read((await site.ask("VIEW_BROKER_STATS_DATA", statsName=name, statsKey=key)).body)


async def _counted_after(site: Site, second: int) -> bool:
    """Return whether the counts of the last minute have the message; compare their rates."""
    await asyncio.sleep(1)
    sizes = (await _windows(site, "TOPIC_PUT_SIZE", "t"))["statsMinute"]
    counts = (await _windows(site, "TOPIC_PUT_NUMS", "t"))["statsMinute"]
    is_there = counts["sum"] == 1
    expected = (1.0, 7, 7.0) if is_there else (0.0, 0, 0.0)
    site.compare(f"the averages after {second} s", expected, (counts["avgpt"], sizes["sum"], sizes["avgpt"]))
    for shown, amount in ((counts, 1), (sizes, 7)):
        rate = amount / min(second + 0.5, 60) if is_there else 0.0
        close = abs(shown["tps"] - rate) <= 0.05 * rate
        site.compare(f"whether the rate after {second} s, {shown['tps']}, is {rate}", True, close)
    return bool(is_there)


_LARGE: Final = replace(STORE, commit_log_segment_bytes=1 << 17)
CORNER_CASES: Final = Inspection("corner cases", corner_cases, {"property_filter": True, "store": _LARGE})
RUNNING_TIME: Final = Inspection("running time", running_time, {"filter_servers": True})
