"""Requests that overlap: changes of one namespace, calls with different time limits, and a peer that is slow.

See docs/reference/protocol/name-server.md, framing.md, "Shares", and administration.md.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import CODES, HOST, Inspection, Site
from mqproof.conformance.adapters.inspections.strange_brokers import Registrant, body_of, topic
from mqproof.conformance.adapters.inspections.traffic import beat, make_group, make_topic, send, subscription
from mqproof.conformance.hosts.simulated import NAME_SERVERS
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import RESPONSE, Frame, Header, encode
from mqproof.impl.remoting.channel import ConnectError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.command import new_request

_TIMEOUT: Final = 207
_UNKNOWN: Final = 9999
_NOT_SUPPORTED: Final = 3
_UNREAD_FROM: Final = 64 << 20
"""A connection with so many bytes of unanswered requests is not read from."""
_PART: Final = 512 << 10


async def overlaps(site: Site) -> None:
    await _changes(site)
    await _acting_master(site)
    await make_topic(site, "t")
    await make_group(site, "g")
    await _calls(site)
    await _one_way(site)
    await _full(site)


async def _changes(site: Site) -> None:
    """Changes of one namespace at the same time, while the disk is slow, all take effect."""
    site.rule = chapters.NAME_SERVER
    fsync = site.cluster.machines[NAME_SERVERS[0]].fsync

    async def at_once(*changes: tuple[str, str, str | None]) -> None:
        fsync.hold()
        tasks = []
        for number, (namespace, key, value) in enumerate(changes):
            line = await RawClient(site.name_server).open(site.cluster.internet.machine(f"10.0.3.{number}"))
            fields = {"namespace": namespace, "key": key}
            code = "DELETE_KV_CONFIG" if value is None else "PUT_KV_CONFIG"
            tasks.append(line.put(CODES[code], fields | ({"value": value} if value is not None else {})))
            await asyncio.sleep(0.01)
        site.compare("the answers while the disk is held", 0, sum(each.done() for each in tasks))
        fsync.release()
        codes = [(await each).code for each in tasks]
        site.compare("the codes of changes at the same time", [0] * len(codes), codes)

    async def compare(expected: Mapping[str, str] | None, namespace: str = "n") -> None:
        answer = await site.ask(
            "GET_KVLIST_BY_NAMESPACE", expects=None, to=site.name_server, namespace=namespace
        )
        found = java_values.read(answer.body)["table"] if not answer.code else None
        site.compare(f"the namespace {namespace}", expected, found)

    await at_once(("n", "a", "1"), ("n", "b", "2"), ("m", "c", "3"), ("n", "d", "4"))
    await compare({"a": "1", "b": "2", "d": "4"})
    await at_once(("n", "a", None), ("n", "e", "5"), ("n", "b", None), ("n", "b", "6"))
    await compare({"b": "6", "d": "4", "e": "5"})
    await at_once(("n", "f", "7"), ("n", "f", None), ("n", "d", None), ("m", "c", None))
    for _ in range(2):
        await compare({"b": "6", "e": "5"})
        await compare(None, "m")
        site.cluster.kill(NAME_SERVERS[0])
        await site.cluster.start(NAME_SERVERS[0])
        await asyncio.sleep(1)


async def _acting_master(site: Site) -> None:
    """When a master leaves, the slave with the lowest id stands for it at once, if its broker allows it."""
    to = site.name_server
    await site.ask("UPDATE_NAMESRV_CONFIG", "supportActingMaster=true", to=to)
    for allows in (True, False):
        name = f"acting{allows}"
        brokers = [Registrant(site, name, number) for number in range(3)]
        for one in brokers:
            await one.register(body_of([topic("acting", perm=4)]), enableActingMaster=allows)
        for left in (brokers[2], brokers[0]):
            await left.ask("UNREGISTER_BROKER")
        answer = await site.ask("GET_ROUTEINFO_BY_TOPIC", to=to, topic="acting")
        (data,) = java_values.read(answer.body)["brokerDatas"]
        slave = brokers[1].address
        ids = {str(key): value for key, value in data["brokerAddrs"].items()}
        site.compare(f"the addresses without a master, {allows}", {"0" if allows else "1": slave}, ids)
        site.compare("what the route says", allows, data["enableActingMaster"])
        answer = await site.ask("GET_BROKER_MEMBER_GROUP", to=to, clusterName="c", brokerName=name)
        group = java_values.read(answer.body)["brokerMemberGroup"]
        site.compare("what the member group says", allows, group["enableActingMaster"])
        await brokers[1].ask("UNREGISTER_BROKER")
    await site.ask("UPDATE_NAMESRV_CONFIG", "supportActingMaster=false", to=to)


async def _calls(site: Site) -> None:
    """Calls of a consumer end at their own time, when its connection ends, and with its first answer."""
    site.rule = chapters.FORWARDED_REQUESTS
    member, asker = await site.client("member"), await site.client("asker")
    await beat(site, "m@1", "g", [subscription("t")], by=member)
    info: tuple[str, dict[str, str], float] = (
        "GET_CONSUMER_RUNNING_INFO", {"consumerGroup": "g", "clientId": "m@1"}, 10.0,
    )  # fmt: skip
    status: tuple[str, dict[str, str], float] = (
        "INVOKE_BROKER_TO_GET_CONSUMER_STATUS", {"topic": "t", "group": "g"}, 5.0,
    )  # fmt: skip
    loop = asyncio.get_running_loop()
    for calls in ((info, status, info), (status, info, status)):
        ended: list[float] = []
        waiting = []
        for name, fields, seconds in calls:
            answer = asker.put(CODES[name], fields)
            answer.add_done_callback(partial(_late_s, ended, loop.time() + seconds))
            waiting.append(answer)
            await asyncio.sleep(1)
        await asyncio.gather(*waiting)
        site.compare("the times of calls without an answer", [0.0] * 3, ended)
        site.compare(
            "the codes",
            [_TIMEOUT if each is info else 0 for each in calls],
            [each.result().code for each in waiting],
        )
    member.pushed.clear()
    answer = asker.put(CODES[info[0]], info[1])
    await asyncio.sleep(0.1)
    reply = encode(Frame(0, member.pushed[-1].opaque, RESPONSE, body=b"first"))
    member.write(reply + encode(Frame(0, member.pushed[-1].opaque, RESPONSE, body=b"second")))
    site.compare("the first of two answers", b"first", (await answer).body)
    member.write(reply)  # too late
    for opaque in (1 << 30, -1):
        member.write(encode(Frame(0, opaque, RESPONSE)))
    answer = asker.put(CODES[info[0]], info[1])
    await asyncio.sleep(0.1)
    site.compare("whether a member stays connected after answers to nothing", 2, len(member.pushed))
    member.close()
    await asyncio.sleep(0.5)
    code = answer.result().code if answer.done() else None
    site.compare("the code when the connection of the consumer ends", _TIMEOUT, code)


def _late_s(ended: list[float], due_s: float, _: object) -> None:
    """Keep by how much an answer came later than its time."""
    ended.append(round(asyncio.get_running_loop().time() - due_s, 1))


async def _one_way(site: Site) -> None:
    """A one-way request waits until the broker reads on, for 3 s at most."""
    site.rule = chapters.REMOTING_FRAME
    await send(site, "t")
    client = RemotingClient(site.cluster.internet.machine(HOST))
    asked: dict[str, Any] = {"consumerGroup": "g", "topic": "t", "queueId": "0"}
    await client.invoke(site.broker, new_request(CODES["GET_MAX_OFFSET"], asked), 3.0)
    channel: Any = client.channel(site.broker)

    async def committed(expected: int) -> None:
        await asyncio.sleep(0.05)
        answer = await site.ask("QUERY_CONSUMER_OFFSET", **asked)
        site.compare("the committed offset", str(expected), answer.fields.get("offset"))

    def commit(offset: int) -> "asyncio.Task[None]":
        fields = asked | {"commitOffset": str(offset)}
        request = new_request(CODES["UPDATE_CONSUMER_OFFSET"], fields, oneway=True)
        return asyncio.create_task(client.send_oneway(site.broker, request))

    await commit(1)
    await committed(1)
    channel.write_paused()
    waiting = [commit(0), commit(0)]
    await committed(1)
    site.compare("the sends while the broker does not read", [False] * 2, [each.done() for each in waiting])
    channel.write_resumed()
    await committed(0)
    site.compare("the sends when it reads again", [True] * 2, [each.done() for each in waiting])
    channel.write_paused()
    late = commit(1)
    await asyncio.sleep(2.9)
    site.compare("whether a send waits for 2.9 s", False, late.done())
    await asyncio.sleep(0.2)
    site.compare(
        "whether it gives up after 3 s", True, late.done() and isinstance(late.exception(), ConnectError)
    )
    await committed(0)
    lost = commit(1)
    await asyncio.sleep(0.1)
    channel.abort()
    await asyncio.sleep(0.1)
    site.compare("whether a send ends with its connection", True, lost.done())
    await client.close()


async def _full(site: Site) -> None:
    """A connection is not read from while its unanswered requests have 64 MiB; unused bodies do not count."""
    fsync = site.cluster.machines[NAME_SERVERS[0]].fsync
    line = await RawClient(site.name_server).open(site.cluster.internet.machine(HOST))
    opaque = 1000

    def put(size: int, body: bytes = b"") -> "asyncio.Future[Frame]":
        """Put a pair with a request whose frame has this size, without its length and without its body."""
        nonlocal opaque
        opaque += 1
        fields = {"namespace": "n", "key": "k", "value": ""}
        front = len(encode(Frame(CODES["PUT_KV_CONFIG"], opaque, fields=fields, header=Header.BINARY))) - 4
        fields["value"] = "v" * (size - front)
        answer = line.expect(opaque)
        line.write(
            encode(Frame(CODES["PUT_KV_CONFIG"], opaque, fields=fields, body=body, header=Header.BINARY))
        )
        return answer

    async def is_read() -> bool:
        answer = line.put(_UNKNOWN, {})
        others.append(answer)
        await asyncio.sleep(0.05)
        return answer.done() and answer.result().code == _NOT_SUPPORTED

    others: list[asyncio.Future[Frame]] = []
    for _ in range(2):
        fsync.hold()
        waiting = [put(_PART, b"unused" * 200_000)]
        waiting += [put(_PART) for _ in range(_UNREAD_FROM // _PART - 2)]
        waiting.append(put(_PART - 400))
        await asyncio.sleep(0.05)
        site.compare("whether 400 bytes less than 64 MiB are read beyond", True, await is_read())
        waiting.append(put(200))
        site.compare("whether 200 bytes less than 64 MiB are read beyond", True, await is_read())
        waiting.append(put(200))
        site.compare("whether 64 MiB are read beyond", False, await is_read())
        fsync.release()
        await asyncio.sleep(1)
        codes = {each.result().code if each.done() else None for each in waiting}
        site.compare("the codes of what waited", {0}, codes)
        site.compare("all others", True, all(each.done() for each in others))
    line.close()


OVERLAPS: Final = Inspection("overlaps", overlaps, name_server={"connection_percent": 50})
