"""Rules about sending, batches, pulling, held pulls, queries, transactions."""

from dataclasses import replace
from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.model import COMMIT_OFFSET, Awaited, Call, Expect, Kind, Put, Since, Strength
from mqproof.conformance.wire.operations.administration import CREATE_TOPIC
from mqproof.conformance.wire.operations.clients import BEATEN
from mqproof.conformance.wire.operations.messages import (
    END_TRANSACTION,
    PULL,
    QUERY_MESSAGE,
    RECALL,
    RESUME_CHECK,
    SEND,
    SEND_BACK,
    SEND_BATCH,
    SEND_V2,
    VIEW_MESSAGE,
    batch,
)
from mqproof.conformance.wire.operations.offsets import QUERY_OFFSET
from mqproof.conformance.wire.requests import valid
from mqproof.conformance.wire.semantics.rule import Rule, call, code, eventually

_TRACED: Final = {"MSG_REGION": Kind.TEXT, "TRACE_ON": Kind.BOOL}
_REFUSED: Final = code(1, 29)
_BODY_MAX: Final = 4 << 20
_PROPERTIES_MAX: Final = 32_767
_FRESH: Final = call(CREATE_TOPIC, topic="$own")
"""Creates a topic of the case's own, whose two queues are empty."""
_NOTHING: Final = Expect(codes=(19,), values={"nextBeginOffset": "0"})
_FOUND_ONE: Final = Expect(fields=PULL.expect.fields, records=1, has=("wire-$case",))
_STORED_FIRST: Final = Expect(values={"queueOffset": "0", "queueId": "1"})


def _sent(body: str | bytes = "wire-$case", expect: Expect | None = None, **fields: str | None) -> Call:
    return Call(valid(SEND_V2, body, b="$own", e="1", **fields), expect or Expect())


def _pulled(expect: Expect, **fields: str | None) -> Call:
    return call(PULL, expect, **{"topic": "$own", "queueId": "1", "maxMsgNums": "32", **fields})


def _found(expect: Expect, **fields: str | None) -> Call:
    """Pull until the message is found.

    Released brokers make it readable shortly after its send is answered.
    """
    return eventually(_pulled(expect, **fields))


def _dead_letter() -> Call:
    topic = {"topic": "%DLQ%$live", "consumerGroup": "$live"}
    return eventually(call(PULL, Expect(records=1, has=("$key",)), **topic))


def _batched(body: bytes, expect: Expect | None = None) -> Call:
    return Call(valid(SEND_BATCH, body, b="$own", e="1"), expect or Expect())


def _tagged(tag: str) -> Call:
    return _sent(f"wire-$case-{tag}", i=f"TAGS\x01{tag}\x02")


_HALF: Final = replace(
    _sent("half", f="4", i="TRAN_MSG\x01true\x02PGROUP\x01$producer\x02UNIQ_KEY\x01half-$case\x02"),
    expect=Expect(lacking=(16,)),
    keep={"half": COMMIT_OFFSET, "half_queue": "queueOffset"},
)


def _ended(expect: Expect | None = None, **fields: str | None) -> Call:
    given = {"tranStateTableOffset": "$half_queue", "commitLogOffset": "$half", "msgId": "half-$case"}
    return call(END_TRANSACTION, expect, **{**given, **fields})


def _timed(name: str, value: str, expect: Expect | None = None) -> Call:
    """Send a message that asks for a time."""
    return _sent("timed", expect, i=f"{name}\x01{value}\x02UNIQ_KEY\x01timed-$case\x02")


_TIMER_RULES: Final = tuple(
    Rule(SEND_V2, number, what, steps, since=Since.V5, source=chapters.TIMERS)
    for number, (what, steps) in enumerate(
        (
            (
                "with a time cannot be pulled yet",
                (
                    _FRESH,
                    _timed("TIMER_DELAY_SEC", "3600"),
                    _sent(),
                    _found(replace(_FOUND_ONE, lacks=("timed",))),
                ),
            ),
            (
                "with a time is delivered when it is due",
                (_FRESH, _timed("TIMER_DELAY_MS", "300"), _found(Expect(records=1, has=("timed",)))),
            ),
            (
                "with a time that is over can be pulled",
                (_FRESH, _timed("TIMER_DELIVER_MS", "1000"), _found(Expect(records=1, has=("timed",)))),
            ),
            (
                "with a time too far ahead is refused",
                (_FRESH, _timed("TIMER_DELAY_SEC", "99999999", code(13))),
            ),
            (
                "with a time that is no number is refused",
                (_FRESH, _timed("TIMER_DELAY_MS", "soon", code(13))),
            ),
            (
                "with a time that overflows is refused",
                (_FRESH, _timed("TIMER_DELAY_MS", str(2**63 - 1), code(13))),
            ),
        ),
        419,
    )
)

RULES: Final = (
    *_TIMER_RULES,
    Rule(SEND_V2, 400, "to a missing queue is refused", (call(SEND_V2, _REFUSED, e="4"),)),
    Rule(SEND_V2, 401, "to queue -1 goes to any queue", (call(SEND_V2, SEND_V2.expect, e="-1"),)),
    Rule(
        SEND_V2,
        402,
        "to an invalid topic name is refused",
        (call(SEND_V2, _REFUSED, b="a b"),),
        source=chapters.TOPICS,
    ),
    *(
        Rule(
            SEND_V2,
            number,
            f"to {topic} is not allowed",
            (call(SEND_V2, code(16), b=topic),),
            source=chapters.TOPICS,
        )
        for number, topic in enumerate(
            (
                "SCHEDULE_TOPIC_XXXX",
                "RMQ_SYS_TRANS_HALF_TOPIC",
                "RMQ_SYS_TRANS_OP_HALF_TOPIC",
                "TRANS_CHECK_MAX_TIME_TOPIC",
                "SELF_TEST_TOPIC",
                "OFFSET_MOVED_EVENT",
            ),
            403,
        )
    ),
    Rule(
        SEND_V2,
        409,
        "to an unknown topic without a template is refused",
        (call(SEND_V2, code(17), b="$gone", c="$gone"),),
        source=chapters.TOPICS,
    ),
    Rule(
        SEND_V2,
        410,
        "with a body beyond 4 MiB is refused",
        (Call(valid(SEND_V2, bytes(_BODY_MAX + 1)), code(13)),),
    ),
    Rule(
        SEND_V2,
        411,
        "with properties beyond 32767 bytes is refused",
        (call(SEND_V2, code(13), i="k\x01" + "v" * _PROPERTIES_MAX + "\x02"),),
        source=chapters.PROPERTIES,
    ),
    Rule(SEND_V2, 412, "is answered with region and trace switch", (call(SEND_V2, Expect(fields=_TRACED)),)),
    Rule(
        SEND_V2,
        413,
        "is refused with region and trace switch",
        (call(SEND_V2, Expect(codes=(16,), fields=_TRACED), b="SELF_TEST_TOPIC"),),
    ),
    Rule(SEND_V2, 414, "stores a message that can be pulled", (_FRESH, _sent(), _found(_FOUND_ONE))),
    Rule(
        SEND_V2,
        415,
        "puts a message at the end of its queue",
        (_FRESH, _sent(expect=_STORED_FIRST)),
    ),
    Rule(
        SEND_V2,
        416,
        "with a delay cannot be pulled yet",
        (_FRESH, _sent("late", i="DELAY\x0118\x02"), _sent(), _found(replace(_FOUND_ONE, lacks=("late",)))),
        source=chapters.DELAYED_MESSAGES,
    ),
    Rule(
        SEND_V2,
        417,
        "from a half message shows nothing",
        (_FRESH, _HALF, _sent(), _found(replace(_FOUND_ONE, lacks=("half",)))),
        source=chapters.TRANSACTIONS,
    ),
    Rule(
        SEND_V2,
        418,
        "keeps a body of all bytes",
        (_FRESH, _sent(bytes(range(256))), _found(Expect(records=1))),
    ),
    Rule(
        SEND,
        400,
        "stores a message that can be pulled",
        (_FRESH, Call(valid(SEND, "wire-$case", topic="$own", queueId="1")), _found(_FOUND_ONE)),
    ),
    Rule(
        SEND_BATCH,
        400,
        "stores each of its messages",
        (
            _FRESH,
            _batched(batch(b"first", b"second", b"third")),
            _found(Expect(records=3, has=("first", "second", "third"))),
        ),
    ),
    Rule(
        SEND_BATCH,
        401,
        "is answered with the offset of the first",
        (_FRESH, _batched(batch(b"first", b"second"), _STORED_FIRST)),
    ),
    Rule(
        SEND_BATCH,
        402,
        "of an invalid batch is answered",
        (Call(valid(SEND_BATCH, b"wire", e="2"), Expect(codes=(), not_codes=(0,))),),
        strength=Strength.SHOULD,
    ),
    Rule(
        SEND_BATCH,
        403,
        "of one message is stored",
        (_FRESH, _batched(batch(b"wire")), _found(Expect(records=1, has=("wire",)))),
    ),
    Rule(
        PULL,
        400,
        "at the end finds nothing, at once",
        (call(PULL, Expect(codes=(19,), values={"nextBeginOffset": "8"}), queueOffset="8"),),
    ),
    Rule(
        PULL,
        401,
        "beyond the end is moved to it",
        (call(PULL, Expect(codes=(21,), values={"nextBeginOffset": "8"}), queueOffset="99999999"),),
    ),
    Rule(
        PULL,
        402,
        "before the beginning is moved to it",
        (call(PULL, Expect(codes=(21,), values={"nextBeginOffset": "0"}), queueOffset="-1"),),
    ),
    Rule(
        PULL,
        403,
        "at 0 of an empty queue finds nothing",
        (call(PULL, code(19), consumerGroup="$live", topic="$other", queueId="3"),),
    ),
    Rule(
        PULL,
        404,
        "elsewhere in an empty queue is moved to 0",
        (
            call(
                PULL,
                Expect(codes=(21,), values={"nextBeginOffset": "0"}),
                consumerGroup="$live",
                topic="$other",
                queueId="3",
                queueOffset="5",
            ),
        ),
    ),
    Rule(PULL, 405, "from an unknown topic is refused", (call(PULL, code(17), topic="$gone"),)),
    Rule(PULL, 406, "from a missing queue is refused", (call(PULL, _REFUSED, queueId="4"),)),
    Rule(PULL, 407, "from queue -1 is refused", (call(PULL, _REFUSED, queueId="-1"),)),
    Rule(
        PULL,
        408,
        "without a subscription, and none in a heartbeat, is refused",
        (call(PULL, code(24), consumerGroup="$live", sysFlag="0"),),
    ),
    Rule(
        PULL,
        409,
        "without a subscription uses that of the heartbeat",
        (*BEATEN, call(PULL, PULL.expect, consumerGroup="$live", sysFlag="0", subVersion="1")),
    ),
    Rule(
        PULL,
        410,
        "of a topic that the heartbeat does not name is refused",
        (*BEATEN, call(PULL, code(24), consumerGroup="$live", sysFlag="0", topic="$other")),
    ),
    Rule(
        PULL,
        411,
        "with a newer subscription than the heartbeat's is refused",
        (*BEATEN, call(PULL, code(25), consumerGroup="$live", sysFlag="0", subVersion="2")),
        strength=Strength.SHOULD,
    ),
    Rule(
        PULL,
        412,
        "returns no more messages than requested",
        (call(PULL, Expect(records=2, values={"nextBeginOffset": "2"}), maxMsgNums="2"),),
    ),
    Rule(
        PULL,
        413,
        "returns at most 32 messages, with the matching next offset",
        (
            call(
                PULL, Expect(records=8, values={"nextBeginOffset": "8", "minOffset": "0"}), maxMsgNums="1000"
            ),
        ),
    ),
    Rule(
        PULL,
        414,
        "returns the end of the queue",
        (call(PULL, Expect(codes=(19,), values={"maxOffset": "8", "minOffset": "0"}), queueOffset="8"),),
    ),
    Rule(
        PULL,
        415,
        "returns only the messages of its tag",
        (
            _FRESH,
            _tagged("TagA"),
            _tagged("TagB"),
            _found(
                Expect(records=1, has=("wire-$case-TagB",), lacks=("wire-$case-TagA",)), subscription="TagB"
            ),
        ),
    ),
    Rule(
        PULL,
        416,
        "returns the messages of either of two tags",
        (
            _FRESH,
            _tagged("TagA"),
            _tagged("TagB"),
            _tagged("TagC"),
            _found(Expect(records=2, lacks=("wire-$case-TagB",)), subscription="TagA || TagC"),
        ),
    ),
    Rule(
        PULL,
        417,
        "without a matching tag returns a later next offset",
        (_FRESH, _tagged("TagA"), _found(Expect(codes=(20,)), subscription="TagB")),
    ),
    Rule(
        PULL,
        418,
        "by SQL is refused if it is disabled",
        (call(PULL, code(1, 23), expressionType="SQL92", subscription="a >"),),
    ),
    Rule(
        PULL,
        419,
        "is held until a message arrives",
        (
            _FRESH,
            Put("held", _pulled(_FOUND_ONE, sysFlag="6", suspendTimeoutMillis="60000").request),
            replace(_sent(), connection="b"),
            Awaited("held", _FOUND_ONE),
        ),
    ),
    Rule(
        PULL,
        420,
        "is not held for less than the requested time",
        (
            _FRESH,
            _pulled(
                Expect(codes=(19,), values={"nextBeginOffset": "0"}, not_before_s=0.95),
                sysFlag="6",
                suspendTimeoutMillis="1000",
            ),
        ),
    ),
    Rule(
        PULL,
        421,
        "commits the offset in the request",
        (
            *BEATEN,
            call(PULL, PULL.expect, consumerGroup="$live", sysFlag="5", commitOffset="4"),
            call(QUERY_OFFSET, Expect(values={"offset": "4"}), consumerGroup="$live"),
        ),
    ),
    Rule(
        PULL,
        422,
        "continues after a held one on the same connection",
        (
            _FRESH,
            Put("held", _pulled(_FOUND_ONE, sysFlag="6", suspendTimeoutMillis="60000").request),
            call(PULL, PULL.expect),
            _sent(),
            Awaited("held", _FOUND_ONE),
        ),
    ),
    Rule(
        SEND_BACK, 400, "of a missing message is refused", (call(SEND_BACK, code(1), offset="99999999999"),)
    ),
    Rule(
        SEND_BACK,
        401,
        "creates the dead letter at once with level -1",
        (
            *BEATEN,
            call(SEND_BACK, group="$live", delayLevel="-1"),
            _dead_letter(),
        ),
    ),
    Rule(
        SEND_BACK,
        402,
        "beyond the maximum number of retries creates a dead letter",
        (
            *BEATEN,
            call(SEND_BACK, group="$live", maxReconsumeTimes="0"),
            _dead_letter(),
        ),
    ),
    Rule(
        SEND_BACK,
        403,
        "with a level waits in the schedule topic",
        (
            *BEATEN,
            call(SEND_BACK, group="$live", delayLevel="18"),
            call(PULL, code(19), topic="%RETRY%$live", consumerGroup="$live"),
        ),
    ),
    Rule(
        QUERY_MESSAGE,
        400,
        "of an unknown key finds nothing",
        (call(QUERY_MESSAGE, code(22), key="none-$case"),),
    ),
    Rule(
        QUERY_MESSAGE,
        401,
        "by a unique key finds that message",
        (call(QUERY_MESSAGE, Expect(records=1, has=("${key}3",)), key="${key}3", _UNIQUE_KEY_QUERY="true"),),
    ),
    Rule(QUERY_MESSAGE, 402, "finds all messages of a key", (call(QUERY_MESSAGE, Expect(records=8)),)),
    Rule(
        QUERY_MESSAGE,
        403,
        "finds no more messages than requested",
        (call(QUERY_MESSAGE, Expect(records=3), maxNum="3"),),
    ),
    Rule(
        QUERY_MESSAGE,
        404,
        "in another time finds nothing",
        (call(QUERY_MESSAGE, code(22), beginTimestamp="0", endTimestamp="1000"),),
    ),
    Rule(
        VIEW_MESSAGE,
        400,
        "at an offset without a message is refused",
        (call(VIEW_MESSAGE, code(1), offset="99999999999"),),
    ),
    Rule(
        END_TRANSACTION,
        400,
        "with commit shows the message",
        (_FRESH, _HALF, _ended(commitOrRollback="8"), _found(Expect(records=1, has=("half",)))),
    ),
    Rule(
        END_TRANSACTION,
        401,
        "with rollback shows nothing",
        (_FRESH, _HALF, _ended(commitOrRollback="12"), _sent(), _found(replace(_FOUND_ONE, lacks=("half",)))),
    ),
    Rule(
        END_TRANSACTION,
        402,
        "of another group is refused",
        (_FRESH, _HALF, _ended(code(1), producerGroup="other")),
    ),
    Rule(
        END_TRANSACTION,
        403,
        "with another queue offset is refused",
        (_FRESH, _HALF, _ended(code(1), tranStateTableOffset="99999999")),
    ),
    Rule(
        END_TRANSACTION,
        404,
        "of a missing message is refused",
        (_FRESH, _HALF, _ended(code(1), commitLogOffset="99999999999")),
    ),
    Rule(RESUME_CHECK, 400, "of a missing message is refused", (call(RESUME_CHECK, code(1)),)),
    Rule(
        RECALL,
        400,
        "with an unknown handle is refused",
        (call(RECALL, Expect(codes=(), not_codes=(0,))),),
        since=Since.V5,
    ),
    Rule(
        RECALL,
        401,
        "of a waiting message succeeds, if recalls are allowed",
        (
            _FRESH,
            replace(_timed("TIMER_DELAY_SEC", "3600"), keep={"handle": "recallHandle"}),
            call(RECALL, code(0, 16), topic="$own", recallHandle="$handle"),
        ),
        since=Since.V5,
    ),
    Rule(
        RECALL,
        402,
        "of a message of another topic is refused",
        (
            _FRESH,
            replace(_timed("TIMER_DELAY_SEC", "3600"), keep={"handle": "recallHandle"}),
            call(RECALL, code(16, 604), recallHandle="$handle"),
        ),
        since=Since.V5,
    ),
)
