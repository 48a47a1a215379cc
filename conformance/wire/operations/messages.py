"""Operations for sending, pulling and querying messages."""

import struct
from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.fields import fields
from mqproof.conformance.wire.model import Expect, Kind, Operation, Server, Since

_SEND_V1: Final = fields("""
    producerGroup         S! $producer
    topic                 S! $sink
    defaultTopic          S! TBW102
    defaultTopicQueueNums I! 4
    queueId               I! 1
    sysFlag               I! 0
    bornTimestamp         L! $now
    flag                  I! 0
    properties            S?
    reconsumeTimes        I? 0
    unitMode              B? false
    maxReconsumeTimes     I?
    batch                 B? false
""")

_SEND_V2: Final = fields("""
    a S! $producer
    b S! $sink
    c S! TBW102
    d I! 4
    e I! 1
    f I! 0
    g L! $now
    h I! 0
    i S?
    j I? 0
    k B? false
    l I?
    m B? false
    n S? $broker
""")

_BATCH: Final = fields("""
    a S! $producer
    b S! $sink
    c S! TBW102
    d I! 4
    e I! 1
    f I! 0
    g L! $now
    h I! 0
    i S?
    j I? 0
    k B? false
    m B? true
""")

_REPLY_V1: Final = fields("""
    producerGroup         S! $producer
    topic                 S! ${cluster}_REPLY_TOPIC
    defaultTopic          S! TBW102
    defaultTopicQueueNums I! 1
    queueId               I! 0
    sysFlag               I! 0
    bornTimestamp         L! $now
    flag                  I! 0
    properties            S? $reply_properties
""")

_REPLY_V2: Final = fields("""
    a S! $producer
    b S! ${cluster}_REPLY_TOPIC
    c S! TBW102
    d I! 1
    e I! 0
    f I! 0
    g L! $now
    h I! 0
    i S? $reply_properties
""")

_PULL: Final = fields("""
    consumerGroup        S! $group
    topic                S! $topic
    queueId              I! 0
    queueOffset          L! 0
    maxMsgNums           I! 4
    sysFlag              I! 4
    commitOffset         L! 0
    suspendTimeoutMillis L! 0
    subVersion           L! 0
    subscription         S? *
    expressionType       S? TAG
    maxMsgBytes          I?5
    requestSource        I?5
""")

_END_TRANSACTION: Final = fields("""
    producerGroup        S! $producer
    tranStateTableOffset L! $half_queue_offset
    commitLogOffset      L! $half_offset
    commitOrRollback     I! 12
    msgId                S! $half_key
    fromTransactionCheck B? false
    transactionId        S?
    topic                S?5
""")

SENT: Final = Expect(fields={"msgId": Kind.TEXT, "queueId": Kind.INT, "queueOffset": Kind.LONG})
PULLED: Final = Expect(
    fields=dict.fromkeys(("suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset"), Kind.LONG)
)


def batch(*bodies: bytes, properties: bytes = b"") -> bytes:
    """Return the body of a send of several messages: docs/reference/protocol/sending.md, "Batches"."""
    return b"".join(
        struct.pack(">iiiii", 22 + len(body) + len(properties), 0, 0, 0, len(body))
        + body
        + struct.pack(">h", len(properties))
        + properties
        for body in bodies
    )


SEND: Final = Operation(
    10, "SEND_MESSAGE", "send", Server.BROKER, chapters.SEND_REQUESTS, _SEND_V1, b"wire", SENT
)  # fmt: skip
SEND_V2: Final = Operation(
    310, "SEND_MESSAGE_V2", "send-v2", Server.BROKER, chapters.SEND_REQUESTS, _SEND_V2, b"wire", SENT
)  # fmt: skip
SEND_BATCH: Final = Operation(
    320, "SEND_BATCH_MESSAGE", "send-batch", Server.BROKER, chapters.BATCHES, _BATCH, batch(b"one", b"two"),
    SENT,
)  # fmt: skip
PULL: Final = Operation(
    11, "PULL_MESSAGE", "pull", Server.BROKER, chapters.PULL_REQUESTS, _PULL, expect=PULLED
)
LITE_PULL: Final = Operation(
    361, "LITE_PULL_MESSAGE", "lite-pull", Server.BROKER, chapters.PULL_REQUESTS, _PULL,
    expect=PULLED, since=Since.V5,
)  # fmt: skip
SEND_BACK: Final = Operation(
    36, "CONSUMER_SEND_MSG_BACK", "send-back", Server.BROKER, chapters.RETRIES,
    fields("""
        offset            L! $offset
        group             S! $group
        delayLevel        I! 18
        originMsgId       S? $msg_id
        originTopic       S? $topic
        unitMode          B? false
        maxReconsumeTimes I? 16
    """),
)  # fmt: skip
END_TRANSACTION: Final = Operation(
    37, "END_TRANSACTION", "end-transaction", Server.BROKER, chapters.TRANSACTIONS, _END_TRANSACTION
)
RESUME_CHECK: Final = Operation(
    323, "RESUME_CHECK_HALF_MESSAGE", "resume-check", Server.BROKER, chapters.TRANSACTIONS,
    fields("""
        msgId S? 7F00000100002A9F00000000000FFFFF
        topic S?5
    """),
    expect=Expect(codes=(1,)),
)  # fmt: skip
SEND_REPLY: Final = Operation(
    324, "SEND_REPLY_MESSAGE", "reply", Server.BROKER, chapters.REPLIES, _REPLY_V1, b"wire",
    Expect(codes=(0, 1)),
)  # fmt: skip
SEND_REPLY_V2: Final = Operation(
    325, "SEND_REPLY_MESSAGE_V2", "reply-v2", Server.BROKER, chapters.REPLIES, _REPLY_V2,
    b"wire",
    Expect(codes=(0, 1)),
)  # fmt: skip
QUERY_MESSAGE: Final = Operation(
    12, "QUERY_MESSAGE", "query-message", Server.BROKER, chapters.MESSAGE_QUERIES,
    fields("""
        topic          S! $topic
        key            S! $key
        maxNum         I! 10
        beginTimestamp L! 0
        endTimestamp   L! 9223372036854775807
    """),
    expect=Expect(
        fields={"indexLastUpdateTimestamp": Kind.LONG, "indexLastUpdatePhyoffset": Kind.LONG},
        has=("$key",),
    ),
)  # fmt: skip
VIEW_MESSAGE: Final = Operation(
    33, "VIEW_MESSAGE_BY_ID", "view-message", Server.BROKER, chapters.MESSAGE_QUERIES,
    fields("""
        offset L! $offset
        topic  S?5
    """),
    expect=Expect(records=1, has=("$key",)),
)  # fmt: skip
RECALL: Final = Operation(
    370, "RECALL_MESSAGE", "recall", Server.BROKER, chapters.RECALLS,
    fields("""
        producerGroup S? $producer
        topic         S! $topic
        recallHandle  S! none
    """),
    expect=Expect(codes=(1, 14, 16, 29, 604)), since=Since.V5,
)  # fmt: skip

OPERATIONS: Final = (
    SEND, SEND_V2, SEND_BATCH, PULL, LITE_PULL, SEND_BACK, END_TRANSACTION, RESUME_CHECK,
    SEND_REPLY, SEND_REPLY_V2, QUERY_MESSAGE, VIEW_MESSAGE, RECALL,
)  # fmt: skip
