"""Push consumers at a scripted broker: what the listener receives, what is sent back, and what is committed.

See docs/reference/protocol/groups.md, "Push consumers", and docs/reference/protocol/retries-and-delays.md,
"Retries".
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.feed import COMMIT, LIST, SEND, SEND_BACK, Feed
from mqproof.conformance.adapters.client_calls.pulling import PULL, message, records
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    SILENCE,
    Answer,
    ScriptedServers,
    pulled,
    route,
)
from mqproof.conformance.answers.stored_record import properties_of
from mqproof.conformance.faults.expected_warnings import internal_error
from mqproof.impl.client.consuming.assigned_queues import PullLimits
from mqproof.impl.client.consuming.push_consumer import MessageModel, PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.model import MessageQueue, ReceivedMessage, RetryLater
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.event_log import EventLog
from mqproof.spec.events import Event

_NOTIFY: Final = 40


@dataclass(slots=True)
class Listening:
    """A listener that returns scripted answers, and keeps its calls."""

    answers: dict[bytes, list[Any]] = field(default_factory=dict)
    """What the calls for a message return, by body: an exception to raise, or a time to wait first."""
    calls: list[tuple[float, list[bytes], list[int]]] = field(default_factory=list)
    """The time, bodies and redeliveries of each call."""
    received: list[ReceivedMessage] = field(default_factory=list)
    running: int = 0
    most: int = 0
    """The most calls at a time."""

    async def __call__(self, messages: Sequence[ReceivedMessage]) -> Any:
        at_s = asyncio.get_running_loop().time()
        self.calls.append(
            (at_s, [each.body for each in messages], [each.reconsume_times for each in messages])
        )
        self.received += messages
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            waiting = self.answers.get(messages[0].body, [])
            answer = waiting.pop(0) if waiting else None
            while isinstance(answer, float):
                await asyncio.sleep(answer)
                answer = waiting.pop(0) if waiting else None
        finally:
            self.running -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def bodies(self) -> list[bytes]:
        return [body for _, bodies, _ in self.calls for body in bodies]


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    feed = Feed(servers)
    for work in (_send_backs, _kept, _slow, _stopped, _lost, _batches, _overdue, _limits, _answers, _starts,
                 _created_later, _suspended, _threads, _traced):  # fmt: skip
        feed.clear()
        await work(expect, feed)


async def consuming(
    feed: Feed, config: PushConsumerConfig, listen: Callable[[Sequence[ReceivedMessage]], Any],
    log: EventLog | None = None,
) -> tuple[PushConsumer, Callable[[], Awaitable[None]]]:  # fmt: skip
    """Return a started consumer of topic A, and what stops its session."""
    session = await feed.session()
    consumer = PushConsumer(session, "g", listen, config, log)
    await consumer.subscribe("A")
    await consumer.start()
    return consumer, session.stop


def seconds(calls: Sequence[tuple[float, list[bytes], list[int]]]) -> list[float]:
    """Return the times between the calls."""
    return [round(after[0] - before[0], 1) for before, after in pairwise(calls)]


async def _send_backs(expect: Expectations, feed: Feed) -> None:
    """Each answer of the listener, and the request or the events that follow from it."""
    listening = Listening({b"1": [RetryLater()], b"2": [RetryLater(3)], b"3": [RetryLater(-1)],
                           b"4": [ValueError("x")], b"5": ["no answer"]})  # fmt: skip
    feed.put(b"0", b"1", b"2", b"3", b"4", b"5", b"6")
    events: list[Event] = []
    session = await feed.session()
    log = EventLog(events.append, "n", session.runtime.clock)
    consumer = PushConsumer(session, "g", listening, PushConsumerConfig(), log)
    await consumer.subscribe("A")
    await consumer.start()
    await asyncio.sleep(3)
    expect.equal("the received bodies", [b"%d" % n for n in range(7)], sorted(listening.bodies))
    expect.equal("the log has the wrong answer", True, "'no answer'" in internal_error())
    for each in listening.received:
        offset = int(each.body)
        shown = (each.queue, each.queue_offset, each.topic, each.tag, each.min_offset, each.max_offset,
                 each.message_id, each.stored.commit_offset)  # fmt: skip
        queue = MessageQueue("A", "broker-a", 0)
        key = f"K{each.body.hex()}"
        expect.equal("a received message", (queue, offset, "A", "t", 0, 7, key, 1000 + 100 * offset), shown)
    seen = feed.servers.take()
    back = {each.fields["originMsgId"]: each.fields for each in seen if each.code == SEND_BACK}
    levels = {1: "0", 2: "3", 3: "-1", 4: "0", 5: "0"}
    for number, level in levels.items():
        key = f"K3{number}"
        fields = {
            "offset": str(1000 + 100 * number), "group": "g", "delayLevel": level, "originMsgId": key,
            "originTopic": "A", "unitMode": "false", "maxReconsumeTimes": "16",
        }  # fmt: skip
        expect.equal(f"the send-back of message {number}", fields, back.pop(key, None))
    expect.equal("other send-backs", {}, back)
    kinds = {f"K3{n}": ["consume_ok"] for n in (0, 6)} | {
        f"K3{n}": ["consume_fail", "dead_letter" if n == 3 else "retry"] for n in levels
    }
    for key, expected in kinds.items():
        shown_kinds = [each.kind for each in events if each.msg_id == key]
        expect.equal(f"the events of {key}", ["deliver", *expected], [str(each) for each in shown_kinds])
    expect.equal(
        "the queues of the member",
        [1, 1],
        [int(each.attrs["queues"]) for each in events if each.kind == "rebalance"],
    )
    subscribed = [each.topic for each in events if each.kind == "subscribe"]
    expect.equal("the events of subscriptions", ["A", "%RETRY%g"], subscribed)
    await asyncio.sleep(3)
    expect.equal("the commit after the interval", (0, 7, True), feed.commits(feed.servers.take())[-1:][0])
    committed = [
        (each.queue_offset, each.attrs.get("reset"))
        for each in events
        if each.kind == "offset_commit" and each.topic == "A"
    ]
    expect.equal("the event of a commit", (7, None), committed[-1] if committed else None)
    listed = consumer.queues()
    expect.equal("the queues of the consumer", [MessageQueue("A", "broker-a", 0)], listed)
    await consumer.stop()
    await session.stop()
    left = [each.topic for each in events if each.kind == "unsubscribe"]
    expect.equal("the events of the end", ["%RETRY%g", "A"], left)
    expect.equal("a second delivery", 7, len(listening.calls))


async def _kept(expect: Expectations, feed: Feed) -> None:
    """A message that the broker does not take back: a copy is sent; if that fails, it stays for 5 s."""
    listening = Listening({b"1": [RetryLater(), RetryLater(2)], b"2": [RetryLater(-1)], b"3": [RetryLater()]})
    feed.put(b"1")
    feed.put(b"2", reconsume_times=4, flag=5, born_timestamp_ms=6)
    feed.put(b"3", reconsume_times=16)
    refused = Answer(1, remark="r")
    feed.servers.replies[SEND_BACK] = lambda _: refused
    feed.servers.script("a", SEND, *([Answer(13)] * 1))
    consumer, stop = await consuming(feed, PushConsumerConfig(concurrency=1, reconsume_max=7), listening)
    await asyncio.sleep(2)
    seen = feed.servers.take(SEND, COMMIT)
    copies = [each for each in seen if each.code == SEND]
    expect.equal("the topics of copies", ["%RETRY%g"] * 3, [each.fields["b"] for each in copies])
    expect.equal("the bodies of copies", [b"1", b"2", b"3"], [each.body for each in copies])
    for copy, times, level, most, place in zip(
        copies, (1, 5, 17), ("3", "7", "19"), ("8", "0", "0"), range(3), strict=False
    ):
        properties = dict(properties_of(copy.fields["i"]))
        expected = {
            "RETRY_TOPIC": "A", "RECONSUME_TIME": str(times), "MAX_RECONSUME_TIMES": most, "DELAY": level,
            "UNIQ_KEY": f"K{copy.body.hex()}", "TAGS": "t",
            "ORIGIN_MESSAGE_ID": f"7F00000100002A9F{1000 + 100 * place:016X}",
        }  # fmt: skip
        expect.equal("the properties of a copy", expected, {name: properties.get(name) for name in expected})
        numbers = (copy.fields["j"], copy.fields.get("l"), copy.fields["a"])
        expect.equal("the counts of a copy", (str(times), most, "CLIENT_INNER_PRODUCER"), numbers)
    expect.equal("the flag and birth of a copy", ("5", "6"), (copies[1].fields["h"], copies[1].fields["g"]))
    await asyncio.sleep(9)
    expect.equal("the calls for the kept message", [([b"1"], [0]), ([b"1"], [1])],
                 [(bodies, times) for _, bodies, times in listening.calls if bodies == [b"1"]])  # fmt: skip
    expect.equal(
        "the time until it is consumed again",
        [5.0],
        seconds([each for each in listening.calls if each[1] == [b"1"]]),
    )
    seen = feed.servers.take(SEND, COMMIT)
    expect.equal(
        "the level of its copy",
        ["2"],
        [dict(properties_of(each.fields["i"]))["DELAY"] for each in seen if each.code == SEND],
    )
    commits = feed.commits(seen)
    expect.equal(
        "no commit passes it before", True, commits[:1] == [(0, 0, True)] and commits[-1:] == [(0, 3, True)]
    )
    del feed.servers.replies[SEND_BACK]
    await consumer.stop()
    await stop()


async def _slow(expect: Expectations, feed: Feed) -> None:
    """While the listener works, pulls find nothing; no commit passes the message that it works on."""
    listening = Listening({b"1": [20.0]})
    feed.put(b"0", b"1", b"2")
    consumer, stop = await consuming(feed, PushConsumerConfig(), listening)
    await asyncio.sleep(15)
    seen = feed.servers.take()
    expect.equal(
        "pulls while the listener works", True, len([each for each in seen if each.code == PULL]) > 10
    )
    expect.equal("the commits while it works", {1}, {offset for _, offset, _ in feed.commits(seen)} - {0})
    await asyncio.sleep(11)
    expect.equal("the commit afterwards", (0, 3, True), feed.commits(feed.servers.take())[-1])
    feed.servers.script("a", PULL, *[Answer(20, pulled(0, 9, 0, 9))] * 2)
    await asyncio.sleep(6)
    expect.equal("a commit of skipped messages", 9, feed.commits(feed.servers.take())[-1][1])
    await consumer.stop()
    await stop()


async def _stopped(expect: Expectations, feed: Feed) -> None:
    """A stop waits for the listener, for a time; what it has not finished by then is not committed."""
    for listen_s, stop_ms, committed, took_s in (
        (3.0, 5000, 2, 2.0),
        (30.0, 5000, 1, 5.0),
        (30.0, 0, 1, 0.0),
    ):
        feed.clear()
        listening = Listening({b"1": [listen_s]})
        feed.put(b"0", b"1")
        consumer, stop = await consuming(feed, PushConsumerConfig(stop_timeout_ms=stop_ms), listening)
        await asyncio.sleep(1)
        feed.servers.take()
        began_s = asyncio.get_running_loop().time()
        await consumer.stop()
        expect.equal(
            "the time of the stop", True, abs(asyncio.get_running_loop().time() - began_s - took_s) <= 0.3
        )
        expect.equal("the commit of the stop", (0, committed, True), feed.commits(feed.servers.take())[-1])
        await stop()
        feed.servers.take()
        await asyncio.sleep(40)
        expect.equal("requests after the stop", [], feed.servers.take())


async def _lost(expect: Expectations, feed: Feed) -> None:
    """The queue goes to another member while the listener works: its result does not count."""
    for is_ahead in (False, True):
        feed.clear()
        listening = Listening({b"1": [5.0, RetryLater()]})
        feed.put(b"0", b"1", b"2")
        changes: list[tuple[str, list[MessageQueue]]] = []

        def changed(topic: str, queues: Sequence[MessageQueue], changes: list[Any] = changes) -> None:
            changes.append((topic, list(queues)))

        config = PushConsumerConfig(concurrency=1, queue_listener=changed)
        consumer, stop = await consuming(feed, config, listening)
        await asyncio.sleep(1)
        feed.servers.take()
        feed.servers.members = ["a@b", "h@i"]
        feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
        if is_ahead:
            feed.servers.offsets["A", 0] = 2
        await asyncio.sleep(0.5)
        expect.equal("the queues after a member joined", [], consumer.queues())
        seen = feed.servers.take()
        expect.equal("the members are listed", True, any(each.code == LIST for each in seen))
        expect.equal("the last commit", [] if is_ahead else [(0, 1, True)], feed.commits(seen))
        await asyncio.sleep(8)
        seen = feed.servers.take()
        expect.equal("commits of a lost queue", [], feed.commits(seen))
        after = [each.code for each in seen if each.fields.get("topic") == "A" and each.code == PULL]
        expect.equal("pulls of a lost queue", [], after)
        expect.equal("send-backs of a lost queue", 0, len([each for each in seen if each.code == SEND_BACK]))
        expect.equal("the calls", [[b"0"], [b"1"]], [bodies for _, bodies, _ in listening.calls])
        queue = MessageQueue("A", "broker-a", 0)
        expect.equal("what the queue listener receives", [("A", [queue]), ("A", [])], changes)
        feed.servers.members = ["h@i"]
        feed.servers.push_oneway("a", _NOTIFY, {"consumerGroup": "g"})
        await asyncio.sleep(0.5)
        expect.equal("the queue comes back", [b"2"] if is_ahead else [b"1", b"2"], listening.bodies[2:])
        await consumer.stop()
        await stop()


async def _batches(expect: Expectations, feed: Feed) -> None:
    listening = Listening({b"0": [RetryLater(4, done=1)], b"3": [RetryLater(0, done=5)]})
    feed.put(*(b"%d" % n for n in range(7)))
    consumer, stop = await consuming(feed, PushConsumerConfig(batch_max=3), listening)
    await asyncio.sleep(1)
    sizes = [bodies for _, bodies, _ in listening.calls]
    expect.equal("the batches", [[b"0", b"1", b"2"], [b"3", b"4", b"5"], [b"6"]], sizes)
    back = [(each.fields["originMsgId"], each.fields["delayLevel"]) for each in feed.servers.take(SEND_BACK)]
    expect.equal("what is sent back of a batch", [("K31", "4"), ("K32", "4")], sorted(back))
    await consumer.stop()
    await stop()


async def _overdue(expect: Expectations, feed: Feed) -> None:
    """A message whose listener takes too long is sent back once, and then counts as consumed."""
    listening = Listening({b"0": [100.0, RetryLater()]})
    feed.put(b"0", b"1")
    consumer, stop = await consuming(feed, PushConsumerConfig(consume_timeout_ms=10_000), listening)
    await asyncio.sleep(9)
    expect.equal("nothing is sent back before", [], feed.servers.take(SEND_BACK))
    await asyncio.sleep(17)
    seen = feed.servers.take()
    back = [
        (each.fields["originMsgId"], each.fields["delayLevel"]) for each in seen if each.code == SEND_BACK
    ]
    expect.equal("an overdue message", [("K30", "3")], back)
    expect.equal("its commit", (0, 2, True), feed.commits(seen)[-1])
    await asyncio.sleep(90)
    expect.equal("it is not sent back again", [], feed.servers.take(SEND_BACK))
    await consumer.stop()
    await stop()


async def _limits(expect: Expectations, feed: Feed) -> None:
    """Pulling pauses when too much waits; it continues when there is room."""
    cases = (
        (PullLimits(batch=2, messages_max=3), 4), (PullLimits(batch=2, messages_max=4), 6),
        (PullLimits(batch=2, bytes_max=4), 6), (PullLimits(batch=2, bytes_max=3), 4),
        (PullLimits(batch=2, span_max=3), 6), (PullLimits(batch=2, span_max=2), 4),
        (PullLimits(batch=3, total_bytes_max=5), 5), (PullLimits(batch=5, total_bytes_max=9), 9),
        (PullLimits(batch=20), 12),
    )  # fmt: skip
    for limits, held in cases:
        feed.clear()
        listening = Listening({b"0": [10.0]})
        feed.put(*(b"%x" % n for n in range(12)))
        consumer, stop = await consuming(feed, PushConsumerConfig(concurrency=1, limits=limits), listening)
        await asyncio.sleep(3)
        (info,) = [each for each in consumer.running_info().mq_table.values() if each.cached_msg_count]
        expect.equal(f"the messages held with {limits}", held, info.cached_msg_count)
        pulls = [each for each in feed.servers.take(PULL) if each.fields["topic"] == "A"]
        sizes = {(each.fields["maxMsgNums"], each.fields["suspendTimeoutMillis"]) for each in pulls}
        expect.equal("the size and time of pulls", {(str(limits.batch), str(limits.hold_ms))}, sizes)
        await asyncio.sleep(9)
        expect.equal("everything is consumed", [b"%x" % n for n in range(12)], listening.bodies)
        await consumer.stop()
        await stop()


async def _answers(expect: Expectations, feed: Feed) -> None:
    """The pause after each kind of answer to a pull, and where the next pull begins."""
    one = message(b"x")
    disorder = Answer(0, pulled(0, 9, 0, 9), records(one, queue_offset=3) + records(one, queue_offset=2))
    cases: tuple[tuple[str, Answer, float, int], ...] = (
        ("flow control", Answer(215), 0.02, 0), ("an error", Answer(1), 1.0, 0),
        ("no group", Answer(26), 1.0, 0), ("a damaged answer", Answer(0), 1.0, 0),
        ("a wrong order", disorder, 1.0, 0),
        ("nothing matched", Answer(20, pulled(0, 5, 0, 9)), 0.0, 5),
        ("nothing matched, no progress", Answer(20, pulled(0, 0, 0, 9)), 1.0, 0),
        ("nothing new", Answer(19, pulled(0, 0, 0, 0)), 0.0, 0),
        ("another offset", Answer(21, pulled(0, 7, 7, 9)), 0.0, 7), ("silence", SILENCE, 26.0, 0),
    )  # fmt: skip
    for what, answer, pause_s, following in cases:
        feed.clear()
        feed.servers.routes.pop("%RETRY%g")
        feed.servers.script("a", PULL, answer)
        consumer, stop = await consuming(feed, PushConsumerConfig(), Listening())
        await asyncio.sleep(30)
        seen = feed.servers.take()
        pulls = [each for each in seen if each.code == PULL]
        times = [round(each.at_s, 2) for each in pulls]
        expect.equal(f"the pause after {what}", pause_s, round(times[1] - times[0], 2))
        expect.equal(f"the pull after {what}", str(following), pulls[1].fields["queueOffset"])
        if answer.code == 21:
            resets = [each for each in feed.commits(seen) if each[1] == 7]
            expect.equal("a reset is committed at once", (0, 7, False), resets[0] if resets else None)
            expect.equal("later commits", True, all(each[2] for each in resets[1:]))
        await consumer.stop()
        await stop()


async def _starts(expect: Expectations, feed: Feed) -> None:
    """Where a group without offsets begins, and the offset that it commits at once."""
    first, last, timed = ConsumeFrom.FIRST_OFFSET, ConsumeFrom.LAST_OFFSET, ConsumeFrom.TIMESTAMP
    cases: tuple[tuple[PushConsumerConfig, int, dict[str, str]], ...] = (
        (PushConsumerConfig(consume_from=last), 30, {}),
        (PushConsumerConfig(consume_from=first), 31, {}),
        (PushConsumerConfig(consume_from=timed, consume_from_ms=5), 29, {"timestamp": "5"}),
        (PushConsumerConfig(consume_from=timed), 29, {}),
    )
    for config, code, more in cases:
        feed.clear()
        feed.servers.offsets.clear()
        before = feed.servers.replies.get(code)
        feed.servers.replies[code] = lambda _: Answer(fields={"offset": "3"})
        consumer, stop = await consuming(feed, config, Listening())
        await asyncio.sleep(1)
        seen = feed.servers.take()
        asked = [each.fields for each in seen if each.code == code]
        expect.equal(f"the request of {config.consume_from}", [{"topic": "A", "queueId": "0"}],
                     [{name: each[name] for name in ("topic", "queueId")} for each in asked])  # fmt: skip
        if more:
            expect.equal("the time of the start", more["timestamp"], asked[0]["timestamp"])
        elif code == 29:
            age_ms = consumer._started_ms - int(asked[0]["timestamp"])
            expect.equal("the usual time of the start", 30 * 60_000, age_ms)
        expect.equal("the first commit", [(0, 3, True)], feed.commits(seen))
        pulls = {each.fields["topic"]: each.fields["queueOffset"] for each in seen if each.code == PULL}
        expect.equal("the first pulls", {"A": "3", "%RETRY%g": "0"}, pulls)
        if before is None:
            del feed.servers.replies[code]
        else:
            feed.servers.replies[code] = before
        await consumer.stop()
        await stop()
    feed.clear()
    feed.servers.script("a", 14, *[Answer(2, remark="busy")] * 2)
    consumer, stop = await consuming(feed, PushConsumerConfig(), Listening())
    await asyncio.sleep(0.5)
    expect.equal("a queue whose offset is not known", [], consumer.queues())
    await asyncio.sleep(4)
    expect.equal("it is read later", 1, len(consumer.queues()))
    await consumer.stop()
    await stop()


async def _created_later(expect: Expectations, feed: Feed) -> None:
    known = feed.servers.routes.pop("A")
    consumer, stop = await consuming(feed, PushConsumerConfig(), Listening())
    await asyncio.sleep(10)
    expect.equal("the queues of a topic that does not exist", [], consumer.queues())
    feed.servers.routes["A"] = known
    await asyncio.sleep(4.5)
    expect.equal("the queues of a topic that was created", 1, len(consumer.queues()))
    feed.servers.take()
    await asyncio.sleep(61)
    listed = [each for each in feed.servers.take(LIST) if each.fields["consumerGroup"] == "g"]
    expect.equal("the rebalances of a minute, for two topics", 6, len(listed))
    await consumer.unsubscribe("A")
    await asyncio.sleep(0.5)
    expect.equal("the queues after unsubscribe", [], consumer.queues())
    feed.servers.take()
    await asyncio.sleep(3)
    expect.equal(
        "pulls after unsubscribe", {"%RETRY%g"}, {each.fields["topic"] for each in feed.servers.take(PULL)}
    )
    await consumer.stop()
    await stop()
    cases = ((ConsumeFrom.LAST_OFFSET, 29), (ConsumeFrom.FIRST_OFFSET, 31))
    for number, (begin, code) in enumerate(cases):
        feed.servers.routes.clear()
        config = PushConsumerConfig(
            MessageModel.BROADCASTING, consume_from=begin, offsets_directory=f"/late-{number}"
        )
        consumer, stop = await consuming(feed, config, Listening())
        subscribed_ms = now_ms(consumer._session.runtime.clock)
        await asyncio.sleep(5)
        feed.servers.take()
        feed.servers.routes["A"] = known
        await asyncio.sleep(5)
        asked = [each for each in feed.servers.take() if each.code in (29, 30, 31)]
        expect.equal("where a member that broadcasts begins later", [code], [each.code for each in asked])
        times = [each.fields["timestamp"] for each in asked if each.code == 29]
        expect.equal(
            "the time at which it begins", [str(subscribed_ms - 60_000)] if code == 29 else [], times
        )
        await consumer.stop()
        await stop()


async def _suspended(expect: Expectations, feed: Feed) -> None:
    listening = Listening({b"%d" % n: [2.0] for n in range(9)})
    consumer, stop = await consuming(feed, PushConsumerConfig(concurrency=2), listening)
    await asyncio.sleep(0.5)
    consumer.suspend()
    await asyncio.sleep(2)
    feed.put(*(b"%d" % n for n in range(6)))
    feed.servers.take()
    await asyncio.sleep(3)
    expect.equal("pulls while it is suspended", [], feed.servers.take(PULL))
    consumer.resume()
    await asyncio.sleep(1)
    expect.equal("concurrent calls", (2, 2), (listening.running, listening.most))
    await consumer.set_concurrency(4)
    await asyncio.sleep(2)
    expect.equal("concurrent calls with more", 4, listening.most)
    await consumer.set_concurrency(1)
    await asyncio.sleep(6)
    listening.most = 0
    feed.put(b"6", b"7")
    await asyncio.sleep(6)
    expect.equal("concurrent calls with fewer", 1, listening.most)
    expect.equal("all calls", 8, len(listening.calls))
    await consumer.stop()
    await stop()


async def _threads(expect: Expectations, feed: Feed) -> None:
    """A plain function is a listener too."""
    received: list[bytes] = []

    def listen(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        received.extend(each.body for each in messages)
        return RetryLater(5) if messages[0].body == b"1" else None

    feed.put(b"0", b"1")
    consumer, stop = await consuming(feed, PushConsumerConfig(concurrency=1), listen)
    await asyncio.sleep(2)
    expect.equal("what a plain function receives", [b"0", b"1"], received)
    expect.equal(
        "what it returns", ["5"], [each.fields["delayLevel"] for each in feed.servers.take(SEND_BACK)]
    )
    await consumer.stop()
    await stop()


async def _traced(expect: Expectations, feed: Feed) -> None:
    """Each call of the listener has a record before and one after, for each message that is traced."""
    listening = Listening({b"1": [0.5, RetryLater()], b"2": [ValueError("x")], b"4": [0.25]})
    feed.put(b"0", b"1", b"2", properties={"MSG_REGION": "R", "KEYS": "k"})
    feed.put(b"3", properties={"TRACE_ON": "false"})
    feed.put(b"4")
    feed.servers.routes["TR"] = route({"b": 1})
    config = PushConsumerConfig(concurrency=1, trace_topic="TR")
    consumer, stop = await consuming(feed, config, listening)
    await asyncio.sleep(4)
    traces = [each for each in feed.servers.take(SEND) if each.server == "b"]
    lines = [line.split("\1") for each in traces for line in each.body.decode().split("\2") if line]
    before, after = ([line for line in lines if line[0] == kind] for kind in ("SubBefore", "SubAfter"))
    begun = [("R", "g", "K30", "0", "k"), ("R", "g", "K31", "0", "k"), ("R", "g", "K32", "0", "k"),
             ("null", "g", "K34", "0", "null")]  # fmt: skip
    expect.equal("the records before", begun, [(line[2], line[3], *line[5:]) for line in before])
    ended = [("K30", "0", "true", "k", "0", "g"), ("K31", "500", "false", "k", "4", "g"),
             ("K32", "0", "false", "k", "2", "g"), ("K34", "250", "true", "null", "0", "g")]  # fmt: skip
    expect.equal("the records after", ended, [(*line[2:7], line[8]) for line in after])
    expect.equal("both name the call", [line[4] for line in before], [line[1] for line in after])
    took = [int(end[7]) - int(begin[1]) for begin, end in zip(before, after, strict=True)]
    expect.equal("their times", [0, 500, 0, 250], took)
    groups = {each.fields["a"] for each in traces}
    expect.equal("the group of traces", {"_INNER_TRACE_PRODUCER-g-CONSUME-1"}, groups)
    await consumer.stop()
    await stop()
