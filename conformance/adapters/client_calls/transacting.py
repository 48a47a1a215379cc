"""Transactions, requests with replies, and message trace: each request that a client sends for them.

See docs/reference/protocol/transactions.md, docs/reference/protocol/requests-and-replies.md, and
docs/reference/protocol/event-log.md, "Message trace".
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from mqproof.conformance.adapters.client_calls.expectations import Expectations
from mqproof.conformance.adapters.client_calls.pulling import message as stored_message
from mqproof.conformance.adapters.client_calls.pulling import records
from mqproof.conformance.adapters.client_calls.scripted_servers import (
    MESSAGE_ID,
    SILENCE,
    Answer,
    ScriptedServers,
    Seen,
    address,
    route,
    stored,
)
from mqproof.conformance.answers.stored_record import properties_of
from mqproof.conformance.faults.expected_warnings import internal_error
from mqproof.impl.client.connection.session import Session, SessionConfig
from mqproof.impl.client.model import (
    ClientError,
    MessageError,
    MessageQueue,
    NoReplyError,
    ReceivedMessage,
    ReplyError,
    SendError,
)
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.transaction_producer import (
    TransactionOutcome,
    TransactionProducer,
    TransactionState,
)
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.clock import now_ms

_SEND, _END, _CHECK, _BEAT, _PUSH_REPLY, _REPLY = 310, 37, 39, 34, 326, 325
_STATES: Final = {
    TransactionState.COMMIT: "8",
    TransactionState.ROLLBACK: "12",
    TransactionState.UNKNOWN: "0",
}
_QUEUE: Final = MessageQueue("A", "broker-a", 0)


async def judge(expect: Expectations, servers: ScriptedServers) -> None:
    servers.routes |= {"A": route({"a": 1}), "TR": route({"b": 1}), "B": route({"b": 1})}
    config = SessionConfig(heartbeat_ms=10**9)
    session = Session([address("names-1")], servers.runtime("client"), "h@i", config)
    await session.start()
    await _judge_transactions(expect, servers, session)
    await _judge_requests(expect, servers, session)
    await _judge_replies(expect, servers, session)
    await _judge_traces(expect, servers, session)
    await session.stop()


async def _judge_transactions(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    checks: list[tuple[StoredMessage, str]] = []
    answers: list[Any] = []

    async def check(half: StoredMessage, transaction_id: str) -> TransactionState:
        checks.append((half, transaction_id))
        answer = answers.pop(0)
        if isinstance(answer, float):
            await asyncio.sleep(answer)
            return TransactionState.COMMIT
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    producer = TransactionProducer(session, check, ProducerConfig("tg"))
    expect.refused(
        "a second one of the group",
        ClientError,
        lambda: TransactionProducer(session, check, ProducerConfig("tg")),
    )
    locals_: list[tuple[Message, str]] = []
    ends: tuple[tuple[Any, str, str | None], ...] = (
        *((state, value, None) for state, value in _STATES.items()),
        (ValueError("why"), "0", "ValueError: why"),
        ("COMMIT", "0", "TypeError: the function returned 'COMMIT', a TransactionState expected"),
    )
    for ending, value, remark in ends:
        servers.take()

        async def local(half: Message, transaction_id: str, ending: Any = ending) -> Any:
            locals_.append((half, transaction_id))
            if isinstance(ending, Exception):
                raise ending
            return ending

        servers.script("a", _SEND, stored(0, 77))
        given = Message("A", b"half", {"TAGS": "t", "UNIQ_KEY": "old"}, flag=3, sys_flag=0)
        outcome = await producer.send(given, local)
        await asyncio.sleep(0.01)
        expect.equal("the log has the wrong state", ending == "COMMIT", "'COMMIT'" in internal_error())
        seen = servers.take()
        _compare_transaction(expect, seen, outcome, ending, (value, remark))
        key, half_message = outcome.sent.message_id, locals_[-1][0]
        expect.equal("the local transaction receives its id", key, locals_[-1][1])
        expect.equal("it receives the message", (b"half", "A"), (half_message.body, half_message.topic))
    expect.equal("the number of local transactions", len(ends), len(locals_))
    await _judge_halves(expect, servers, producer)
    await asyncio.sleep(0.1)
    await _judge_checks(expect, servers, checks, answers)
    await producer.stop()
    servers.take()
    answers[:] = [TransactionState.COMMIT]
    _push_check(servers, stored_message(b"h", properties={"PGROUP": "tg"}))
    await asyncio.sleep(0.1)
    expect.equal("a check after the stop", [], servers.take(_END))
    again = TransactionProducer(session, check, ProducerConfig("tg"))
    await again.stop()


def _compare_transaction(
    expect: Expectations,
    seen: Sequence[Seen],
    outcome: TransactionOutcome,
    ending: Any,
    end_of: tuple[str, str | None],
) -> None:
    """Compare the half message and the report of its end."""
    value, remark = end_of
    (half,) = [each for each in seen if each.code == _SEND]
    key = outcome.sent.message_id
    expect.equal("the key of a half message is new", True, key not in ("old", ""))
    properties = {"TRAN_MSG": "true", "PGROUP": "tg", "TAGS": "t", "UNIQ_KEY": key, "WAIT": "true"}
    expect.equal("the properties of a half message", properties, dict(properties_of(half.fields["i"])))
    expect.equal(
        "the flags of a half message",
        ("4", "3", "tg"),
        (half.fields["f"], half.fields["h"], half.fields["a"]),
    )
    state = ending if isinstance(ending, TransactionState) else TransactionState.UNKNOWN
    expect.equal("the state", state, outcome.state)
    expect.equal("the error", isinstance(ending, TransactionState), outcome.error is None)
    (end,) = [each for each in seen if each.code == _END]
    fields = {
        "producerGroup": "tg", "tranStateTableOffset": "77", "commitLogOffset": "1234",
        "commitOrRollback": value, "fromTransactionCheck": "false", "msgId": key, "transactionId": key,
        "topic": "A",
    }  # fmt: skip
    expect.equal("the end", ("a", True, remark, fields), (end.server, end.is_oneway, end.remark, end.fields))


async def _judge_halves(
    expect: Expectations, servers: ScriptedServers, producer: TransactionProducer
) -> None:
    """Half messages that are not stored safely, and those that are not allowed."""
    ran: list[str] = []

    async def local(_half: Message, transaction_id: str) -> TransactionState:
        ran.append(transaction_id)
        return TransactionState.COMMIT

    cases: tuple[tuple[tuple[Answer, ...], str, list[str], int], ...] = (
        ((Answer(13, remark="r"),), "Refused", [], 1),
        ((Answer(2), stored(0, 1)), "Sent", ["8"], 2),
        ((Answer(1, remark="f"),), "Unknown", [], 1),
        ((stored(0, 1, 10),), "Sent", ["12"], 1),
        ((stored(0, 1, 12),), "Sent", ["12"], 1),
        ((Answer(0, {"msgId": "x", "queueId": "0", "queueOffset": "1"}),), "Sent", [], 1),
    )
    for answers, kind, ends, attempts in cases:
        servers.take()
        ran.clear()
        servers.script("a", _SEND, *answers)
        outcome = await producer.send(Message("A", b"h"), local)
        await asyncio.sleep(0.01)
        seen = servers.take(_SEND, _END)
        reported = [each.fields["commitOrRollback"] for each in seen if each.code == _END]
        shown = (type(outcome.sent).__name__, reported, len([each for each in seen if each.code == _SEND]))
        expect.equal(f"a half message with {answers}", (kind, ends, attempts), shown)
        expect.equal("the local transaction ran", ends != ["12"] and kind == "Sent", bool(ran))
    for properties in ({"DELAY": "1"}, {"TIMER_DELAY_MS": "5"}):
        await expect.fails(
            "a delayed half message", MessageError, producer.send(Message("A", b"h", properties), local)
        )
    await expect.fails("a local transaction that is none", TypeError, producer.send(Message("A", b"h"), 1))  # type: ignore[arg-type]
    servers.script("a", _SEND, SILENCE)
    began_s = asyncio.get_running_loop().time()
    outcome = await producer.send(Message("A", b"h"), local, _QUEUE, timeout_ms=400)
    took_s = round(asyncio.get_running_loop().time() - began_s, 2)
    expect.equal("the limit of a half message", ("Unknown", 0.4), (type(outcome.sent).__name__, took_s))
    expect.equal("its state", TransactionState.ROLLBACK, outcome.state)

    def plain(_half: Message, _id: str) -> TransactionState:
        return TransactionState.COMMIT

    expect.equal(
        "a plain function", TransactionState.COMMIT, (await producer.send(Message("A", b"h"), plain)).state
    )


async def _judge_checks(
    expect: Expectations, servers: ScriptedServers, checks: list[Any], answers: list[Any]
) -> None:
    asked: tuple[tuple[Any, str, str | None], ...] = (
        *((state, value, None) for state, value in _STATES.items()),
        (OSError("k"), "0", "OSError: k"),
        (None, "0", "TypeError: the function returned None, a TransactionState expected"),
    )
    for answer, value, remark in asked:
        servers.take()
        checks.clear()
        answers[:] = [answer]
        half = stored_message(b"h", properties={"PGROUP": "tg", "TRAN_MSG": "true"})
        _push_check(servers, half)
        await asyncio.sleep(0.1)
        (end,) = servers.take(_END)
        fields = {
            "producerGroup": "tg", "tranStateTableOffset": "5", "commitLogOffset": "6",
            "commitOrRollback": value, "fromTransactionCheck": "true", "msgId": "K68", "transactionId": "T1",
            "topic": "A",
        }  # fmt: skip
        expect.equal(
            "the end of a check",
            ("a", True, remark, fields),
            (end.server, end.is_oneway, end.remark, end.fields),
        )
        expect.equal("the checked message", [(b"h", "K68")], [(one.message.body, id_) for one, id_ in checks])
        expect.equal(
            "the log has the missing state", remark == asked[-1][2], "returned None" in internal_error()
        )
    servers.take()
    _push_check(servers, stored_message(b"h", properties={"PGROUP": "other"}))
    _push_check(servers, None)
    await asyncio.sleep(0.1)
    expect.equal("checks that are not for the client", [], servers.take(_END))
    answers[:] = [0.5] * 70
    for _ in range(70):
        _push_check(servers, stored_message(b"h", properties={"PGROUP": "tg"}))
    await asyncio.sleep(1)
    count = len(servers.take(_END))
    expect.equal("the checks that are answered at once", 64, count)


def _push_check(servers: ScriptedServers, half: Message | None) -> None:
    fields = {"tranStateTableOffset": "5", "commitLogOffset": "6", "msgId": "M1", "transactionId": "T1"}
    servers.push_oneway("a", _CHECK, fields, records(half) if half else b"damaged")


async def _judge_requests(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """A request carries what its consumer needs for the reply; the first reply in time counts."""
    producer = Producer(session, ProducerConfig("rg"))
    bodies = (b"reply", b"r" * 5000)
    for body in bodies:
        servers.take()
        asking = asyncio.create_task(producer.request(Message("A", b"q", {"TAGS": "t"}), timeout_ms=2000))
        await asyncio.sleep(0.1)
        seen = servers.take()
        (asked,) = [each for each in seen if each.code == _SEND]
        properties = dict(properties_of(asked.fields["i"]))
        own = {name: properties.get(name) for name in ("REPLY_TO_CLIENT", "TTL", "TAGS", "MSG_TYPE")}
        expected = {"REPLY_TO_CLIENT": "h@i", "TTL": "2000", "TAGS": "t", "MSG_TYPE": None}
        expect.equal("the properties of a request", expected, own)
        correlation = properties.get("CORRELATION_ID", "")
        expect.equal("the correlation id", (36, "4"), (len(correlation), correlation[14:15]))
        for wrong in ("unknown", ""):
            answer = await servers.push("a", _PUSH_REPLY, *_reply(wrong, b"wrong"))
            expect.equal("a reply that no request awaits", 0, answer.code)
        packed = zlib.compress(body) if len(body) >= 4096 else body
        fields, _ = _reply(correlation, body)
        fields["sysFlag"] = "1" if packed != body else "0"
        answer = await servers.push("a", _PUSH_REPLY, fields, packed)
        expect.equal("the confirmation of a reply", 0, answer.code)
        reply = await asking
        shown = (
            reply.body, reply.topic, reply.queue_id, reply.flag, reply.born_timestamp_ms,
            str(reply.born_host), str(reply.store_host), reply.reconsume_times, reply.properties.get("own"),
            reply.properties.get("ARRIVE_TIME"), reply.sys_flag,
        )  # fmt: skip
        values = (
            body, "c_REPLY_TOPIC", 2, 9, 123, shown[5], shown[6], 3, "v", str(now_ms(session.runtime.clock)),
            int(fields["sysFlag"]),
        )  # fmt: skip
        expect.equal("a reply", values, shown)
        expect.equal("its hosts", (True, True), ("1.2.3.4" in shown[5], "5.6.7.8" in shown[6]))
        late = await servers.push("a", _PUSH_REPLY, *_reply(correlation, b"late"))
        expect.equal("a late reply is confirmed", 0, late.code)
    await _judge_lost_requests(expect, servers, producer)


async def _judge_lost_requests(expect: Expectations, servers: ScriptedServers, producer: Producer) -> None:
    """Requests that get no reply, and those that are refused."""
    loop = asyncio.get_running_loop()
    for timeout_ms, seconds in ((None, 3.0), (700, 0.7)):
        for answers, kind in (((), "Sent"), ((SILENCE,), "Unknown"), ((Answer(1),) * 3, "Unknown")):
            servers.script("a", _SEND, *answers)
            began_s = loop.time()
            error = await expect.fails(
                "no reply", NoReplyError, producer.request(Message("A", b"q"), timeout_ms=timeout_ms)
            )
            expect.equal("its time", seconds, round(loop.time() - began_s, 2))
            outcome = getattr(error, "outcome", None)
            expect.equal("its outcome", True, outcome is None or type(outcome).__name__ == kind)
            servers._scripts["a", _SEND].clear()
    servers.script("a", _SEND, Answer(13, remark="r"))
    began_s = loop.time()
    await expect.fails("a request that is refused", SendError, producer.request(Message("A", b"q")))
    expect.equal("its time", True, loop.time() - began_s < 0.5)
    await expect.fails(
        "a delayed request", MessageError, producer.request(Message("A", b"q", {"DELAY": "2"}))
    )
    servers.take()
    asking = asyncio.create_task(producer.request(Message("A", b"q"), timeout_ms=8000))
    await asyncio.sleep(0.5)
    servers.hang_up("a")
    servers.take()
    await asyncio.sleep(2.5)
    beats = [each.server for each in servers.take(_BEAT)]
    expect.equal("a heartbeat on the new connection while a request waits", True, "a" in beats)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await asyncio.sleep(2)
    servers.hang_up("a")
    servers.take()
    await asyncio.sleep(3)
    expect.equal("heartbeats when no request waits any more", [], servers.take(_BEAT))


def _reply(correlation: str, body: bytes) -> tuple[dict[str, str], bytes]:
    properties = {"CORRELATION_ID": correlation, "own": "v"}
    text = "".join(f"{name}\1{value}\2" for name, value in properties.items() if value)
    fields = {
        "producerGroup": "x", "topic": "c_REPLY_TOPIC", "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4", "queueId": "2", "sysFlag": "0", "bornTimestamp": "123",
        "flag": "9", "bornHost": "/1.2.3.4:5",
        "storeHost": "5.6.7.8:9", "storeTimestamp": "124", "properties": text, "reconsumeTimes": "3",
    }  # fmt: skip
    return fields, body


async def _judge_replies(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    producer = Producer(session, ProducerConfig("rg"))
    asked = {"CLUSTER": "c", "CORRELATION_ID": "C1", "REPLY_TO_CLIENT": "x@y", "TTL": "500"}

    def request(**changed: Any) -> ReceivedMessage:
        properties = {name: value for name, value in {**asked, **changed}.items() if value is not None}
        return ReceivedMessage(StoredMessage(Message("A", b"q", properties), 1, 2, 3, 4, 5), _QUEUE, 0)

    await session.routes.get("A")
    for body, flag in ((b"r", "0"), (b"r" * 4095, "0"), (b"r" * 4096, str(0x301))):
        servers.take()
        await producer.reply(request(), body, properties={"own": "v"})
        (seen,) = servers.take(_REPLY)
        properties = dict(properties_of(seen.fields["i"]))
        del properties["UNIQ_KEY"]
        expected = {
            "MSG_TYPE": "reply", "CORRELATION_ID": "C1", "REPLY_TO_CLIENT": "x@y", "TTL": "500", "own": "v",
            "WAIT": "true",
        }  # fmt: skip
        expect.equal("the properties of a reply", expected, properties)
        whole = zlib.decompress(seen.body) if flag != "0" else seen.body
        shown = (
            seen.server,
            seen.fields["b"],
            seen.fields["a"],
            seen.fields["e"],
            seen.fields["f"],
            len(whole),
        )
        expect.equal("a reply that is sent", ("a", "c_REPLY_TOPIC", "rg", "0", flag, len(body)), shown)
    await producer.reply(request(TTL=None), b"r")
    expect.equal(
        "a reply without a limit", False, "TTL" in dict(properties_of(servers.take(_REPLY)[-1].fields["i"]))
    )
    for name in ("CLUSTER", "CORRELATION_ID", "REPLY_TO_CLIENT"):
        await expect.fails(
            f"a reply without {name}", MessageError, producer.reply(request(**{name: None}), b"r")
        )
    both: tuple[dict[Any, Any], ...] = ({"own": 1}, {2: "v"})
    for bad in both:
        await expect.fails(
            "a property that is no text", MessageError, producer.reply(request(), b"r", properties=bad)
        )
    servers.script("a", _REPLY, Answer(1, remark="r"))
    error = await expect.fails("a reply that is refused", ReplyError, producer.reply(request(), b"r"))
    expect.equal("its text", "SYSTEM_ERROR: r", str(error))
    for timeout_ms, seconds in ((None, 3.0), (600, 0.6)):
        servers.script("a", _REPLY, SILENCE)
        began_s = asyncio.get_running_loop().time()
        await expect.fails(
            "a reply without an answer", ReplyError, producer.reply(request(), b"r", timeout_ms=timeout_ms)
        )
        expect.equal("its time", seconds, round(asyncio.get_running_loop().time() - began_s, 2))
    elsewhere = ReceivedMessage(request().stored, MessageQueue("A", "broker-x", 0), 0)
    await expect.fails("a reply at no broker", ReplyError, producer.reply(elsewhere, b"r"))


async def _judge_traces(expect: Expectations, servers: ScriptedServers, session: Session) -> None:
    """Each stored message or batch has a record, unless the broker has tracing off."""
    producer = Producer(session, ProducerConfig("g", trace_topic="TR"))
    clock = session.runtime.clock

    async def one(
        send: Callable[[], Awaitable[Any]], answer: Answer, expected: Callable[[Any, int, int], str | None]
    ) -> None:
        servers.take()
        for code in (_SEND, 320):
            servers._scripts["a", code].clear()
            servers.script("a", code, answer)
        outcome = await send()
        at_ms = now_ms(clock)
        await asyncio.sleep(1.0)
        seen = servers.take(_SEND, 320)
        traces = [each for each in seen if each.fields["b"] == "TR"]
        text = expected(outcome, at_ms, len(seen[0].body))
        expect.equal("the traces", [] if text is None else [text], [each.body.decode() for each in traces])
        for each in traces:
            expect.equal("the group of a trace", "_INNER_TRACE_PRODUCER-g-PRODUCE-1", each.fields["a"])
            keys = dict(properties_of(each.fields["i"])).get("KEYS", "").split()
            ids = [one.message_id for one in outcome] if isinstance(outcome, list) else [outcome.message_id]
            expect.equal("the keys of a trace", True, set(ids) <= set(keys))

    ok = stored(0, 1, MSG_REGION="R")
    plain = Message("A", b"12345", {"TAGS": "t", "KEYS": "k l"})
    await one(lambda: producer.send(plain), ok, _published("0", "t", "k l", "true"))
    late = Answer(10, {**ok.fields}, after_s=0.2)
    await one(
        lambda: producer.send(Message("A", b"1")), late, _published("0", "null", "null", "false", took=200)
    )
    bare = stored(0, 1, TRACE_ON="true")
    await one(
        lambda: producer.send(Message("A", b"1", {"DELAY": "1"})),
        bare,
        _published("3", "null", "null", "true", region="null"),
    )
    await one(
        lambda: producer.send(Message("A", b"1", {"TRAN_MSG": "true"})),
        ok,
        _published("1", "null", "null", "true"),
    )
    await one(lambda: producer.send(plain), stored(0, 1, TRACE_ON="false"), lambda *_: None)
    await one(lambda: producer.send(plain), Answer(13), lambda *_: None)
    batch = [Message("A", b"1", {"TAGS": "t"}), Message("A", b"2")]
    both = f"{MESSAGE_ID},{MESSAGE_ID}"
    await one(
        lambda: producer.send_batch(batch),
        stored(0, 1, msgId=both, MSG_REGION="R"),
        _published("0", "null", "null", "true", both),
    )


def _published(
    kind: str, tag: str, keys: str, ok: str, offsets: str = MESSAGE_ID, took: int = 0, region: str = "R"
) -> Callable[[Any, int, int], str]:
    """Return a function that returns the record of a send, from its outcome, time and size."""

    def text(outcome: Any, at_ms: int, size: int) -> str:
        ids = [each.message_id for each in outcome] if isinstance(outcome, list) else [outcome.message_id]
        fields = (
            "Pub", str(at_ms - took), region, "g", "A", ",".join(ids), tag, keys, str(address("a")),
            str(size), str(took), kind, offsets, ok,
        )  # fmt: skip
        return "\1".join(fields) + "\2"

    return text
