"""Pop operations of 5.x. Their codes do not fit into a binary header."""

from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.fields import fields
from mqproof.conformance.wire.model import Call, Expect, Kind, Operation, Server, Since
from mqproof.conformance.wire.operations.clients import BEATEN
from mqproof.conformance.wire.requests import valid

_SOURCE: Final = chapters.POP
_HANDLE: Final = "0 $pop_time 60000 $revive_queue 0 $broker 0 0"
"""Handle of the first message of the queue, popped by `POPPED`."""
_ACK: Final = f"""
    consumerGroup S! $live
    topic         S! $topic
    queueId       I! 0
    extraInfo     S! {_HANDLE}
    offset        L! 0
"""
_ACKED: Final = Expect(codes=(0, 1, 208))

POP: Final = Operation(
    200_050,
    "POP_MESSAGE",
    "pop",
    Server.BROKER,
    _SOURCE,
    fields("""
        consumerGroup S! $group
        topic         S! $topic
        queueId       I! -1
        maxMsgNums    I! 1
        invisibleTime L! 60000
        pollTime      L! 0
        bornTime      L! $now
        initMode      I! 0
        expType       S? TAG
        exp           S? *
        order         B? false
        attemptId     S?
    """),
    # 209 and 210: there are no messages, and the request is not held.
    expect=Expect(codes=(0, 19, 209, 210), fields={"popTime": Kind.LONG, "invisibleTime": Kind.LONG}),
    since=Since.V5,
)
POPPED: Final = (
    *BEATEN,
    Call(
        valid(POP, consumerGroup="$live", queueId="0", pollTime="60000"),
        Expect(fields={"popTime": Kind.LONG, "reviveQid": Kind.INT}, records=1),
        keep={"pop_time": "popTime", "revive_queue": "reviveQid"},
    ),
)
"""Steps after which a group of the case has popped one message."""

ACK: Final = Operation(
    200_051,
    "ACK_MESSAGE",
    "ack",
    Server.BROKER,
    _SOURCE,
    fields(_ACK),
    expect=_ACKED,
    since=Since.V5,
    before=POPPED,
    cut_step=16,
)
PEEK: Final = Operation(
    200_052,
    "PEEK_MESSAGE",
    "peek",
    Server.BROKER,
    _SOURCE,
    fields("""
        consumerGroup S! $group
        topic         S! $topic
        queueId       I! 0
        maxMsgNums    I! 1
    """),
    expect=Expect(codes=(0, 19, 209, 210)),
    since=Since.V5,
)
CHANGE_INVISIBLE: Final = Operation(
    200_053,
    "CHANGE_MESSAGE_INVISIBLETIME",
    "change-invisible",
    Server.BROKER,
    _SOURCE,
    fields(_ACK + "invisibleTime L! 60000"),
    expect=_ACKED,
    since=Since.V5,
    before=POPPED,
    cut_step=16,
)
NOTIFICATION: Final = Operation(
    200_054,
    "NOTIFICATION",
    "notification",
    Server.BROKER,
    _SOURCE,
    fields("""
        consumerGroup S! $group
        topic         S! $topic
        queueId       I! 0
        pollTime      L! 0
        bornTime      L! $now
        order         B? false
        attemptId     S?
    """),
    expect=Expect(fields={"hasMsg": Kind.BOOL}),
    since=Since.V5,
)
POLLING_INFO: Final = Operation(
    200_055,
    "POLLING_INFO",
    "polling-info",
    Server.BROKER,
    _SOURCE,
    fields("""
        consumerGroup S! $group
        topic         S! $topic
        queueId       I! 0
    """),
    expect=Expect(fields={"pollingNum": Kind.INT}),
    since=Since.V5,
)
BATCH_ACK: Final = Operation(
    200_151,
    "BATCH_ACK_MESSAGE",
    "batch-ack",
    Server.BROKER,
    _SOURCE,
    body='{"acks":[],"brokerName":"$broker"}',
    expect=_ACKED,
    since=Since.V5,
)

OPERATIONS: Final = (POP, ACK, PEEK, CHANGE_INVISIBLE, NOTIFICATION, POLLING_INFO, BATCH_ACK)
