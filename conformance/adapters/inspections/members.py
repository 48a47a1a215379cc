"""Members of groups: clients that connect again, old and silent ones, the limits of heartbeats, and locks.

See docs/reference/protocol/groups.md, "Client registration" and "Queue locks", and administration.md,
"Requests that the broker forwards" and "Clients of a broker".
"""

import asyncio
import json
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import Answer, RawClient
from mqproof.conformance.adapters.inspections.site import CODES, HOST, Inspection, Site, written
from mqproof.conformance.adapters.inspections.traffic import (
    beat,
    commit,
    make_group,
    make_topic,
    records,
    send,
    subscription,
)
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters

_GROUPS_MAX: Final = 1000
_NOTIFIED, _RESET, _STATUS, _RUNNING, _REPLY = 40, 220, 221, 307, 326
_SUBSCRIBED: Final = [subscription("t")]


def _put(by: RawClient, name: str, body: bytes = b"", **fields: object) -> Answer:
    return by.put(CODES[name], {key: written(value) for key, value in fields.items()}, body)


async def _codes(client: RawClient) -> list[int]:
    """Return the codes of what the broker has sent to the client since the last call."""
    await asyncio.sleep(0.1)
    found, client.pushed = client.pushed, []
    return [each.code for each in found]


async def _unwatched(site: Site) -> RawClient:
    """Return a connection that can stop reading."""
    return await RawClient(site.broker).open(site.cluster.internet.machine(HOST))


async def members(site: Site) -> None:
    site.rule = chapters.CLIENT_REGISTRATION
    await make_topic(site, "t", 2)
    await make_group(site, "g")
    await _connected_again(site)
    await _requester_again(site)
    await _old_ones(site)
    await _silent_ones(site)
    await _limits(site)
    await _notified(site)
    await _listed(site)
    await _gone_meanwhile(site)
    await _locks(site)


async def _connected_again(site: Site) -> None:
    """Requests go to the connection of a client's latest heartbeat, while the earlier one is still open."""
    before, after = await site.client("before"), await site.client("after")
    await commit(site, "g", "t", 0, 0)
    await commit(site, "g", "t", 1, 0)
    asked: dict[str, Any] = {"consumerGroup": "g", "clientId": "m@1"}
    status: dict[str, Any] = {"topic": "t", "group": "g"}
    for latest, other in ((before, after), (after, before)):
        await beat(site, "m@1", "g", _SUBSCRIBED, by=latest)
        await _codes(before), await _codes(after)
        waiting = _put(await site.client(), "GET_CONSUMER_RUNNING_INFO", **asked)
        await asyncio.sleep(0.1)
        codes = [each.code for each in latest.pushed]
        site.compare("the request to the latest connection", [_RUNNING], codes)
        if latest.pushed:
            latest.reply(latest.pushed[-1], body=b"{}")
            site.compare("the answer of a member", 0, (await waiting).code)
        site.compare("the requests to the other connection", [], await _codes(other))
        waiting = _put(await site.client(), "INVOKE_BROKER_TO_GET_CONSUMER_STATUS", **status)
        await asyncio.sleep(0.1)
        site.compare("the request for the status", _STATUS, latest.pushed[-1].code)
        latest.reply(latest.pushed[-1], body=b'{"messageQueueTable":{}}')
        await waiting
        site.compare("the status requests to the other connection", [], await _codes(other))
        answer = await site.ask("GET_CONSUMER_LIST_BY_GROUP", consumerGroup="g")
        site.compare("the members", ["m@1"], java_values.read(answer.body)["consumerIdList"])
    await beat(site, "m@1", "g", _SUBSCRIBED, by=before)
    await asyncio.sleep(0.1)
    await _codes(before), await _codes(after)
    waiting = _put(await site.client(), "GET_CONSUMER_RUNNING_INFO", **asked)
    site.compare("the requests after a heartbeat of the first connection", ([_RUNNING], []), (
        await _codes(before), await _codes(after)))  # fmt: skip
    await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", **status, timestamp=-1, isForce=True)
    site.compare("the notices of a reset", ([_RESET], [_RESET]), (await _codes(before), await _codes(after)))
    before.close()
    await asyncio.sleep(0.1)
    site.compare("the notices of an end", [_NOTIFIED], await _codes(after))
    site.compare("the code for a member whose connection ended", 207, (await waiting).code)
    answer = await site.ask("GET_CONSUMER_LIST_BY_GROUP", consumerGroup="g")
    site.compare("the members left", ["m@1"], java_values.read(answer.body)["consumerIdList"])
    await site.ask("UNREGISTER_CLIENT", by=after, clientID="m@1", consumerGroup="g")
    await site.ask("GET_CONSUMER_LIST_BY_GROUP", consumerGroup="g", expects=1)


async def _requester_again(site: Site) -> None:
    """A reply goes to the connection of the requester's latest heartbeat, and no other."""
    site.rule = chapters.REPLIES
    of = {"CORRELATION_ID": "c", "REPLY_TO_CLIENT": "r@1"}
    lines = {name: await _unwatched(site) for name in ("r1", "r2")}
    for name in ("r1", "r2", "r1"):
        await beat(site, "r@1", "", [], by=lines[name], producers=("requesters",))
        waiting = asyncio.ensure_future(
            send(site, "DefaultCluster_REPLY_TOPIC", name="SEND_REPLY_MESSAGE_V2", of=of)
        )
        await asyncio.sleep(0.1)
        for each, line in lines.items():
            site.compare(f"the replies at {each} after a heartbeat of {name}",
                         [_REPLY] * (each == name), [pushed.code for pushed in line.pushed])  # fmt: skip
            for pushed in line.pushed:
                line.reply(pushed)
            line.pushed.clear()
        await waiting
    await _unconfirmed(site, lines["r1"], of)


async def _unconfirmed(site: Site, line: RawClient, of: dict[str, str]) -> None:
    """A requester has 10 s to confirm; one that does not read is not asked. The reply is stored anyway."""
    loop = asyncio.get_running_loop()
    for is_reading, seconds in ((True, 10.0), (False, 0.0)):
        if not is_reading:
            line.stop_taking(1)
        began_s, code = loop.time(), 1
        for changes, times in (({"j": None}, 0), ({"j": 3}, 3)):
            began_s = loop.time()
            await send(
                site, "DefaultCluster_REPLY_TOPIC", f"{is_reading}", name="SEND_REPLY_MESSAGE_V2", of=of,
                expects=code, **changes,
            )  # fmt: skip
            took_s = loop.time() - began_s
            site.compare(f"whether an unconfirmed reply takes {seconds} s: {took_s:.3f}", True,
                         abs(took_s - seconds) < 0.05)  # fmt: skip
            end = int((await site.ask("GET_MAX_OFFSET", topic="DefaultCluster_REPLY_TOPIC", queueId=0))
                      .fields["offset"])  # fmt: skip
            (stored,) = await records(site, "DefaultCluster_REPLY_TOPIC", end - 1)
            site.compare("the stored retries of a reply", times, stored.reconsume_times)
        line.take_again()
        site.compare("the replies at the requester", [_REPLY] * 2 * is_reading, await _codes(line))
    line.close()


async def _old_ones(site: Site) -> None:
    """A member may be too old for a request, which then reaches no member."""
    site.rule = chapters.REQUESTS_TO_CLIENTS
    line, young = await site.client("old"), await site.client("young")
    fields: dict[str, Any] = {"topic": "t", "group": "g", "timestamp": -1, "isForce": True}
    await beat(site, "young@1", "g", _SUBSCRIBED, by=young)
    for version, code in ((27, 1), (28, 0), (0, 1)):
        await beat(site, "old@1", "g", _SUBSCRIBED, by=line, version=version)
        await _codes(line), await _codes(young)
        await site.ask("INVOKE_BROKER_TO_RESET_OFFSET", expects=code, **fields)
        expected = [] if code else [_RESET]
        site.compare(f"the notices at members of which one has version {version}", (expected, expected),
                     (await _codes(line), await _codes(young)))  # fmt: skip
    for version, is_asked in ((27, False), (28, True)):
        await beat(site, "old@1", "g", _SUBSCRIBED, by=line, version=version)
        asked: dict[str, Any] = {"topic": "t", "group": "g", "clientAddr": "old@1"}
        waiting = _put(await site.client(), "INVOKE_BROKER_TO_GET_CONSUMER_STATUS", **asked)
        await asyncio.sleep(0.1)
        for each in line.pushed:
            line.reply(each, body=b'{"messageQueueTable":{}}')
        site.compare("the requests for a status", [_STATUS] * is_asked, await _codes(line))
        site.compare(f"the status of version {version}", 0 if is_asked else 206, (await waiting).code)
    for version, code in ((61, 1), (62, 0)):
        await beat(site, "old@1", "g", _SUBSCRIBED, by=line, version=version)
        waiting = _put(await site.client(), "GET_CONSUMER_RUNNING_INFO", consumerGroup="g", clientId="old@1")
        await asyncio.sleep(0.1)
        for each in line.pushed:
            line.reply(each, body=b"{}")
        site.compare(f"the requests to version {version}", [] if code else [_RUNNING], await _codes(line))
        site.compare(f"the state of version {version}", code, (await waiting).code)
    line.close()
    young.close()


async def _silent_ones(site: Site) -> None:
    """A member has 10 s for its state, and 5 s for its offsets; another one is not held up by it."""
    site.rule = chapters.FORWARDED_REQUESTS
    silent, wrong, good = [await site.client(name) for name in ("silent", "wrong", "good")]
    for name, line in (("silent", silent), ("wrong", wrong), ("good", good)):
        await beat(site, f"{name}@1", "g", _SUBSCRIBED, by=line)
        await _codes(line)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    await site.ask("GET_CONSUMER_RUNNING_INFO", consumerGroup="g", clientId="silent@1", expects=207)
    took_s = loop.time() - began_s
    site.compare(f"whether a silent member has 10 s: {took_s:.3f}", True, abs(took_s - 10) < 0.05)
    began_s = loop.time()
    waiting = _put(await site.client(), "INVOKE_BROKER_TO_GET_CONSUMER_STATUS", topic="t", group="g")
    await asyncio.sleep(0.1)
    own = b'{"messageQueueTable":{{"topic":"t","brokerName":"broker-a","queueId":1}:7}}'
    wrong.reply(wrong.pushed[-1], body=b"[")
    good.reply(good.pushed[-1], body=own)
    table = java_values.read((await waiting).body)["consumerTable"]
    took_s = loop.time() - began_s
    site.compare("the members that answer", ["good@1"], list(table))
    site.compare(f"whether a silent member has 5 s: {took_s:.3f}", True, abs(took_s - 5) < 0.05)
    for line in (silent, wrong, good):
        line.close()


async def _limits(site: Site) -> None:
    """A client is in at most 1000 groups: of one heartbeat, and of several."""
    site.rule = chapters.CLIENT_REGISTRATION
    for producers, group, code in (
        (_GROUPS_MAX, "", 0), (_GROUPS_MAX - 1, "g", 0), (_GROUPS_MAX, "g", 1), (_GROUPS_MAX + 1, "", 1),
    ):  # fmt: skip
        line = await site.client("of many groups")
        names = tuple(f"p{number}" for number in range(producers))
        await beat(site, "m@1", group, _SUBSCRIBED, by=line, producers=names, expects=code)
        last = await site.ask("GET_PRODUCER_CONNECTION_LIST", producerGroup="p0", expects=None)
        site.compare(f"whether a client of {producers} groups is registered", not code, not last.code)
        line.close()
        await asyncio.sleep(0.1)
    line = await site.client("of many heartbeats")
    for first, count, code in ((0, 600, 0), (600, 400, 0), (0, 600, 0), (1000, 1, 0), (0, 1, 1)):
        names = tuple(f"p{number}" for number in range(first, first + count))
        await beat(site, "m@1", "", [], by=line, producers=names, expects=code)
    await site.ask("UNREGISTER_CLIENT", by=line, clientID="m@1", producerGroup="p7")
    await beat(site, "m@1", "", [], by=line, producers=("p0",))
    line.close()
    await asyncio.sleep(0.1)


async def _notified(site: Site) -> None:
    """Members receive a notice if the members or topics of their group change, and their group wants it."""
    await make_group(site, "quiet", notifyConsumerIdsChangedEnable=False)
    more = [*_SUBSCRIBED, subscription("u")]
    for group, is_notified in (("g", True), ("quiet", False), ("g", True)):
        one, two = await site.client("one"), await _unwatched(site)
        for by, subscribed, notices in (
            (one, _SUBSCRIBED, (1, 0)), (one, _SUBSCRIBED, (0, 0)), (two, _SUBSCRIBED, (1, 1)),
            (two, _SUBSCRIBED, (0, 0)), (one, more, (1, 1)), (one, more, (0, 0)),
            (two, [subscription("t", "a", 9), subscription("u")], (0, 0)), (one, _SUBSCRIBED, (1, 1)),
        ):  # fmt: skip
            await beat(site, "one@1" if by is one else "two@1", group, subscribed, by=by)
            found = len(await _codes(one)), len(await _codes(two))
            expected = notices if is_notified else (0, 0)
            site.compare(f"the notices of {group} with {len(subscribed)} topics", expected, found)
        two.stop_taking(1)
        third = await site.client("third")
        await beat(site, "third@1", group, _SUBSCRIBED, by=third)
        two.take_again()
        lines = one, two, third
        site.compare("the notices with a member that does not read", [1, 0, 1] if is_notified else [0] * 3,
                     [len(await _codes(each)) for each in lines])  # fmt: skip
        await site.ask("UNREGISTER_CLIENT", by=third, clientID="third@1", consumerGroup=group)
        site.compare("the notices when a member leaves", [1, 1, 0] if is_notified else [0] * 3,
                     [len(await _codes(each)) for each in lines])  # fmt: skip
        for line in lines:
            line.close()
        await asyncio.sleep(0.1)


async def _listed(site: Site) -> None:
    """Compare every field of the lists of clients."""
    site.rule = chapters.CLIENTS_OF_A_BROKER
    line = await site.client("listed")
    await asyncio.sleep(1)
    at_ms = site.now_ms
    settings = {
        "messageModel": "BROADCASTING", "consumeType": "CONSUME_ACTIVELY",
        "consumeFromWhere": "CONSUME_FROM_TIMESTAMP",
    }  # fmt: skip
    more: dict[str, Any] = settings
    await beat(site, "m@1", "g", _SUBSCRIBED, by=line, producers=("p",), version=77, **more)
    await asyncio.sleep(7.25)
    client = {"clientId": "m@1", "language": "PYTHON", "version": 77}
    every = java_values.read((await site.ask("GET_ALL_PRODUCER_INFO")).body)
    (observed,) = every["data"]["p"]
    late_ms = observed.pop("lastUpdateTimestamp") - at_ms
    site.compare(f"whether its last heartbeat is that of now, {late_ms} ms late", True, abs(late_ms) <= 2)
    site.compare("the producer", {**client, "remoteIP": f"/{line.address}"}, observed)
    body = java_values.read((await site.ask("GET_PRODUCER_CONNECTION_LIST", producerGroup="p")).body)
    connection = [{**client, "clientAddr": line.address}]
    site.compare("the connections of the producers", connection, body["connectionSet"])
    body = java_values.read((await site.ask("GET_CONSUMER_CONNECTION_LIST", consumerGroup="g")).body)
    site.compare("the connections of the consumers", connection, body["connectionSet"])
    site.compare("the settings", settings, {name: body[name] for name in settings})
    for wanted, code in ((None, 0), (subscription("t", "a >", 1, "SQL92"), 1)):
        check = {"clientId": "m@1", "group": "g", "subscriptionData": wanted}
        await site.ask("CHECK_CLIENT_CONFIG", check, expects=code)
    body = java_values.read((await site.ask("QUERY_TOPIC_CONSUME_BY_WHO", topic="u")).body)
    site.compare("the groups of a topic without offsets and members", [], body["groupList"])
    await beat(site, "m@1", "h", [subscription("u")], by=line)
    body = java_values.read((await site.ask("QUERY_TOPIC_CONSUME_BY_WHO", topic="u")).body)
    site.compare("the groups of a topic with members only", ["h"], body["groupList"])
    line.close()


async def _gone_meanwhile(site: Site) -> None:
    """A client whose connection ends while its retry topic is being written is no member."""
    line = await site.client("gone")
    fsync = site.cluster.machines[MASTER].fsync
    for is_gone in (False, True):
        group = f"new_{is_gone}"
        data = {
            "clientID": "gone@1", "producerDataSet": [],
            "consumerDataSet": [{"groupName": group, "subscriptionDataSet": _SUBSCRIBED}],
        }  # fmt: skip
        fsync.hold()
        waiting = _put(line, "HEART_BEAT", json.dumps(data).encode())
        await asyncio.sleep(0.1)
        site.compare("whether a heartbeat waits for the disk", False, waiting.done())
        if is_gone:
            waiting.cancel()
            line.close()
            await asyncio.sleep(0.1)
        fsync.release()
        await asyncio.sleep(0.1)
        await site.ask("GET_CONSUMER_LIST_BY_GROUP", consumerGroup=group, expects=1 if is_gone else 0)


async def _locks(site: Site) -> None:
    """Only queues of the broker can be locked: of a topic that it has, up to the last read or write queue."""
    site.rule = chapters.QUEUE_LOCKS
    for topic, fields in (("reads", {"readQueueNums": 3}), ("writes", {"writeQueueNums": 3})):
        await make_topic(site, topic, 1, **fields)
        for broker in ("broker-a", "broker-b"):
            wanted = [{"topic": topic, "brokerName": broker, "queueId": queue} for queue in range(-1, 5)]
            body = {"consumerGroup": "g", "clientId": "m@1", "mqSet": wanted}
            found = java_values.read((await site.ask("LOCK_BATCH_MQ", body)).body)["lockOKMQSet"]
            expected = [0, 1, 2] if broker == "broker-a" else []
            observed = sorted(each["queueId"] for each in found)
            site.compare(f"the locked queues of {topic} at {broker}", expected, observed)
    unknown = {"topic": "unknown", "brokerName": "broker-a", "queueId": 0}
    body = {"consumerGroup": "g", "clientId": "m@1", "mqSet": [unknown]}
    found = java_values.read((await site.ask("LOCK_BATCH_MQ", body)).body)["lockOKMQSet"]
    site.compare("the locked queues of an unknown topic", [], found)
    await site.ask("LOCK_BATCH_MQ", {**body, "consumerGroup": "a b"}, expects=1)
    await site.ask("UPDATE_BROKER_CONFIG", "autoCreateSubscriptionGroup=false")
    await site.ask("LOCK_BATCH_MQ", {**body, "consumerGroup": "unknown"}, expects=26)


MEMBERS: Final = Inspection("members", members)
