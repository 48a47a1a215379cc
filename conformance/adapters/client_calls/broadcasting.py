"""Members that broadcast: what they receive, and the file with their offsets.

See docs/reference/protocol/offsets.md, "Broadcast offsets".
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.consuming import Listening
from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import COMMIT, LIST, SEND, SEND_BACK, Feed
from mqproof.conformance.adapters.client_calls.pulling import PULL
from mqproof.conformance.adapters.client_calls.scripted_servers import ScriptedServers, address
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.model import MessageQueue, RetryLater
from mqproof.impl.remoting.bodies import QueueOffsets
from mqproof.impl.remoting.java_json import ObjectKey, write
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step

_QUERY, _BEGIN, _NOTIFY, _RESET = 14, 31, 40, 220
_FILE: Final = "/o/h@i#1/g/offsets.json"
_BACKUP: Final = f"{_FILE}.bak"
_QUEUES: Final = [MessageQueue("A", "broker-a", number) for number in (0, 1)]


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    feed = Feed(servers)
    for work in (_stored, _read, _failing, _resets):
        feed.clear(2)
        await work(expect, feed, _Machine(feed))


class _Machine:
    """A machine whose disk stays while members on it start and stop."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self.disk = SimulatedDisk()
        self.listening = Listening()

    async def member(
        self, client_id: str = "h@i#1", group: str = "g", *, orderly: bool = False, consumed_s: float = 1.0
    ) -> tuple[PushConsumer, Callable[[], Any]]:
        """Return a started member after the time in which it consumes, and what stops its session."""
        servers = self._feed.servers
        loop: Any = asyncio.get_running_loop()
        runtime = simulated(loop, servers.network, 7, self.disk)
        session = Session([address("names-1")], runtime, client_id)
        await session.start()
        self.listening = Listening(self.listening.answers)
        config = PushConsumerConfig(
            MessageModel.BROADCASTING, orderly, ConsumeFrom.FIRST_OFFSET, concurrency=1,
            offsets_directory="/o",
        )  # fmt: skip
        consumer = PushConsumer(session, group, self.listening, config)
        await consumer.subscribe("A")
        servers.take()
        await consumer.start()
        await asyncio.sleep(consumed_s)

        async def stop() -> None:
            await consumer.stop()
            await session.stop()

        return consumer, stop

    def texts(self) -> tuple[str | None, str | None]:
        """Return the contents of the file and of the one before it."""
        files = self.disk.files("/o")
        one, other = (
            self.disk.written(path).decode() if path in files else None for path in (_FILE, _BACKUP)
        )
        return one, other

    def become(self, path: str, content: str) -> None:
        write_durably(self.disk, path, content.encode())


def _text(*offsets: int) -> str:
    named = '{"brokerName":"broker-a","queueId":%d,"topic":"A"}:%d'
    return '{"offsetTable":{' + ",".join(named % each for each in enumerate(offsets)) + "}}"


async def _stored(expect: Expectations, feed: Feed, machine: _Machine) -> None:
    """Offsets are written at once when a queue has none, every 5 s if they changed, and at the end."""
    machine.listening.answers[b"1"] = [ValueError("fails")]
    machine.listening.answers[b"2"] = [RetryLater()]
    feed.put(b"0", b"1", b"2")
    feed.put(b"a", queue_id=1)
    consumer, stop = await machine.member()
    expect.equal("the queues of a member", _QUEUES, consumer.queues())
    expect.equal("what it receives", [b"0", b"1", b"2", b"a"], sorted(machine.listening.bodies))
    seen = feed.servers.take()
    asked = sorted((each.code, each.fields["queueId"]) for each in seen if each.code in (29, 30, _BEGIN))
    expect.equal("the queries of its begin", [(_BEGIN, "0"), (_BEGIN, "1")], asked)
    own = {each.code for each in seen if each.code in (_QUERY, COMMIT, LIST, SEND, SEND_BACK)}
    expect.equal("requests for members, offsets and retries", set(), own)
    expect.equal("its topics", {"A"}, {each.fields["topic"] for each in seen if each.code == PULL})
    await asyncio.sleep(3.8)
    begin = _text(0, 0)
    expect.equal("the file before the interval", begin, machine.texts()[0])
    await asyncio.sleep(0.4)
    expect.equal("the files after the interval", (_text(3, 1), begin), machine.texts())
    await asyncio.sleep(11)
    expect.equal("the files when nothing changes", (_text(3, 1), begin), machine.texts())
    feed.put(b"3")
    await asyncio.sleep(1.5)
    await stop()
    expect.equal("the files after the stop", (_text(4, 1), _text(3, 1)), machine.texts())
    feed.put(b"b", queue_id=1)
    consumer, stop = await machine.member()
    expect.equal("what it receives after a restart", [b"b"], machine.listening.bodies)
    await consumer.unsubscribe("A")
    await asyncio.sleep(0.5)
    expect.equal("the files after unsubscribe", (_text(4, 2), _text(4, 1)), machine.texts())
    await stop()
    _, stop = await machine.member("h@i#2")
    expect.equal("what another member receives", 6, len(machine.listening.bodies))
    await stop()
    _, stop = await machine.member(group="g|%2")
    expect.equal("what another group receives", 6, len(machine.listening.bodies))
    await stop()
    names = sorted({path.removesuffix(".bak") for path in machine.disk.files("/o")})
    files = ["/o/h@i#1/g%7C%252/offsets.json", _FILE, "/o/h@i#2/g/offsets.json"]
    expect.equal("the files of all members", files, names)
    expect.equal("the queries at the broker", [], feed.servers.take(_QUERY, COMMIT))


async def _read(expect: Expectations, feed: Feed, machine: _Machine) -> None:
    """An invalid file is replaced by the one before it; without both, no queue is read."""
    feed.put(b"0", b"1", b"2")
    feed.put(b"a", queue_id=1)
    queue = '{"offsetTable":{"{\\"brokerName\\":\\"broker-a\\",\\"queueId\\":%s,\\"topic\\":\\"A\\"}":%s}}'
    cases: tuple[tuple[str | None, str | None, list[bytes] | None], ...] = (
        (_text(2, 1), _text(0, 0), [b"2"]), ("{", _text(1, 1), [b"1", b"2"]), ("", _text(1, 1), [b"1", b"2"]),
        (None, _text(3, 0), [b"a"]), ("{}", _text(1, 1), [b"0", b"1", b"2", b"a"]),
        (_text(2), _text(0, 0), [b"2", b"a"]), (queue % (0, 1), None, [b"1", b"2", b"a"]),
        (queue % ('\\"0\\"', 1), None, [b"1", b"2", b"a"]),
        ('{"offsetTable":{}}', None, [b"0", b"1", b"2", b"a"]),
        ("{", "[]", None), ("{", None, None), (None, "{", None),
    )  # fmt: skip
    for file, backup, bodies in cases:
        what = f"the files {file!r} and {backup!r}"
        machine.disk = SimulatedDisk()
        for path, content in ((_FILE, file), (_BACKUP, backup)):
            if content is not None:
                machine.become(path, content)
        consumer, stop = await machine.member()
        expect.equal(f"{what}: what is received", bodies or [], sorted(machine.listening.bodies))
        expect.equal(f"{what}: the queues", [] if bodies is None else _QUEUES, consumer.queues())
        if bodies is None:
            expect.equal(f"{what}: they stay", (file, backup), machine.texts())
        await stop()


async def _failing(expect: Expectations, feed: Feed, machine: _Machine) -> None:
    """Offsets that could not be written are written at the next interval; files that cannot be read wait."""
    feed.put(b"0", b"1")
    _, stop = await machine.member()

    def fail(_step: Step) -> None:
        raise OSError("no disk")

    machine.disk.on_step = fail
    await asyncio.sleep(5)
    expect.equal("the file that cannot be written", _text(0, 0), machine.texts()[0])
    machine.disk.on_step = None
    await asyncio.sleep(5)
    expect.equal("the file that is written later", _text(2, 0), machine.texts()[0])
    await stop()

    def refuse(path: str) -> None:
        raise PermissionError(path)

    machine.disk.on_read = refuse
    consumer, stop = await machine.member()
    expect.equal("the queues without readable files", [], consumer.queues())
    machine.disk.on_read = None
    await asyncio.sleep(4)
    expect.equal("the queues when they can be read", _QUEUES, consumer.queues())
    expect.equal("what is received again", [], machine.listening.bodies)
    await stop()


async def _resets(expect: Expectations, feed: Feed, machine: _Machine) -> None:
    """An operator moves a member; a queue in order waits for its listener, and needs no lock."""
    feed.put(b"0", b"1", b"2", b"3")
    for orderly in (False, True):
        machine.disk = SimulatedDisk()
        machine.listening.answers[b"1"] = [4.0]
        _, stop = await machine.member(orderly=orderly)
        table = {ObjectKey({"topic": "A", "brokerName": "broker-a", "queueId": 0}): 3}
        fields = {"topic": "A", "group": "g", "timestamp": "0", "isForce": "true"}
        feed.servers.push_oneway("a", _RESET, fields, write(QueueOffsets(table)))
        await asyncio.sleep(1)
        file = _text(0, 0) if orderly else _text(3, 0)
        expect.equal(f"the file after a reset, in order {orderly}", file, machine.texts()[0])
        expect.equal("the calls before the listener returns", [b"0", b"1"], machine.listening.bodies)
        await asyncio.sleep(2.8)
        expect.equal("the file when it has returned", _text(3, 0), machine.texts()[0])
        expect.equal("the calls when it has returned", [b"0", b"1", b"3"], machine.listening.bodies)
        await stop()
        expect.equal("the file after the stop", _text(4, 0), machine.texts()[0])
