"""Rules about groups and their members, locks, and requests that are forwarded to a member."""

from dataclasses import replace
from typing import Final

from mqproof.conformance.wire.model import ANY, Awaited, Call, Expect, Hangup, Pushed, Put, Strength
from mqproof.conformance.wire.operations.administration import ALL_TOPICS
from mqproof.conformance.wire.operations.clients import (
    BEATEN,
    CONSUME_DIRECTLY,
    CONSUMER_CONNECTIONS,
    CONSUMER_LIST,
    CONSUMER_STATUS,
    HEART_BEAT,
    LOCK,
    PRODUCER_CONNECTIONS,
    RUNNING_INFO,
    UNLOCK,
    UNREGISTER,
)
from mqproof.conformance.wire.operations.messages import SEND_REPLY_V2
from mqproof.conformance.wire.requests import valid
from mqproof.conformance.wire.semantics.rule import Rule, call, code, eventually

_IDS_CHANGED: Final = Pushed(40, {"consumerGroup": "$live"})


def _by_other(step: Call) -> Call:
    """Return the same request by a second client, on its own connection."""
    assert isinstance(step.request.body, str)
    request = replace(step.request, body=step.request.body.replace("$client", "${client}b"))
    return replace(step, request=request, connection="b")


_SECOND: Final = _by_other(BEATEN[0])
_LOCKED: Final = Call(valid(LOCK), LOCK.expect)
_NOT_LOCKED: Final = replace(_LOCKED, expect=Expect(has=('"lockOKMQSet":[]',)))
_UNLOCKED: Final = Call(valid(UNLOCK))
_NO_QUEUES: Final = '{"clientId":"$client","consumerGroup":"$live","mqSet":[]}'
_LISTED: Final = call(CONSUMER_LIST, CONSUMER_LIST.expect)


RULES: Final = (
    Rule(HEART_BEAT, 400, "of a second member notifies the first", (*BEATEN, _SECOND, _IDS_CHANGED)),
    Rule(
        HEART_BEAT,
        401,
        "creates the group's retry topic",
        (*BEATEN, call(ALL_TOPICS, Expect(has=('"%RETRY%$live":{',)))),
    ),
    Rule(
        HEART_BEAT,
        402,
        "of two members lists both",
        (*BEATEN, _SECOND, call(CONSUMER_LIST, Expect(has=('"$client"', '"${client}b"')))),
    ),
    Rule(HEART_BEAT, 403, "twice lists a member once", (*BEATEN, *BEATEN, _LISTED)),
    Rule(
        HEART_BEAT,
        404,
        "ends with the connection",
        (*BEATEN, _SECOND, Hangup("b"), eventually(_LISTED), _IDS_CHANGED),
    ),
    Rule(UNREGISTER, 400, "ends the membership", (*BEATEN, call(UNREGISTER), call(CONSUMER_LIST, code(1)))),
    Rule(
        UNREGISTER,
        401,
        "of an unknown client succeeds",
        (call(UNREGISTER, clientID="absent", producerGroup="$gone", consumerGroup="$gone"),),
    ),
    Rule(
        UNREGISTER,
        402,
        "of only the producer keeps the consumer",
        (*BEATEN, call(UNREGISTER, consumerGroup=None), _LISTED),
    ),
    Rule(
        CONSUMER_LIST,
        400,
        "of a group without members is refused",
        (call(CONSUMER_LIST, code(1), consumerGroup="$gone"),),
    ),
    Rule(
        CONSUMER_CONNECTIONS,
        400,
        "of a group without members is refused",
        (call(CONSUMER_CONNECTIONS, code(206), consumerGroup="$gone"),),
    ),
    Rule(
        PRODUCER_CONNECTIONS,
        400,
        "of a group without members is refused",
        (call(PRODUCER_CONNECTIONS, code(1), producerGroup="$gone"),),
    ),
    Rule(LOCK, 400, "is not granted to a second client", (_LOCKED, _by_other(_NOT_LOCKED))),
    Rule(LOCK, 401, "is renewed by its holder", (_LOCKED, _LOCKED)),
    Rule(
        LOCK,
        402,
        "of no queues is an empty answer",
        (Call(valid(LOCK, _NO_QUEUES), Expect(has=('"lockOKMQSet":[]',))),),
    ),
    Rule(
        LOCK,
        403,
        "of another group is another lock",
        (_LOCKED, Call(valid(LOCK, str(LOCK.body).replace("$live", "${live}b")), LOCK.expect)),
    ),
    Rule(UNLOCK, 400, "releases the lock", (_LOCKED, _UNLOCKED, _by_other(_LOCKED))),
    Rule(
        UNLOCK,
        401,
        "by another than the holder changes nothing",
        (_LOCKED, _by_other(_UNLOCKED), _by_other(_NOT_LOCKED)),
    ),
    Rule(
        RUNNING_INFO,
        400,
        "is forwarded, and the answer is returned",
        (
            *BEATEN,
            call(RUNNING_INFO, ANY),
            Put("info", valid(RUNNING_INFO, consumerGroup="$live", clientId="$client"), "b"),
            Pushed(307, {"consumerGroup": "$live", "clientId": "$client"}, reply='{"wire":"$case"}'),
            Awaited("info", Expect(has=('{"wire":"$case"}',))),
        ),
    ),
    Rule(
        CONSUME_DIRECTLY,
        400,
        "is forwarded with the message, and the answer is returned",
        (
            *BEATEN,
            call(CONSUME_DIRECTLY, ANY),
            Put(
                "result",
                valid(CONSUME_DIRECTLY, consumerGroup="$live", clientId="$client", topic="$topic"),
                "b",
            ),
            Pushed(
                309, {"consumerGroup": "$live", "msgId": "$msg_id"}, has=("$key",), reply='{"wire":"$case"}'
            ),
            Awaited("result", Expect(has=('{"wire":"$case"}',))),
        ),
    ),
    Rule(
        CONSUMER_STATUS,
        400,
        "queries each member",
        (
            *BEATEN,
            call(CONSUMER_STATUS, ANY),
            Put("status", valid(CONSUMER_STATUS, group="$live"), "b"),
            Pushed(221, {"topic": "$topic", "group": "$live"}, reply='{"messageQueueTable":{}}'),
            Awaited("status", Expect(has=('"consumerTable":{', '"$client"'))),
        ),
    ),
    Rule(
        SEND_REPLY_V2,
        400,
        "is pushed to the client that waits for it",
        (
            *BEATEN,
            call(SEND_REPLY_V2, ANY),
            Put(
                "reply",
                valid(
                    SEND_REPLY_V2,
                    b"wire reply",
                    i="CORRELATION_ID\x01wire\x02REPLY_TO_CLIENT\x01$client\x02TTL\x013000\x02MSG_TYPE\x01reply\x02",
                ),
                "b",
            ),
            Pushed(326, {"topic": "${cluster}_REPLY_TOPIC"}, has=("wire reply",), reply=""),
            Awaited("reply", Expect()),
        ),
    ),
    Rule(
        SEND_REPLY_V2,
        401,
        "to an unknown client is refused",
        (call(SEND_REPLY_V2, Expect(codes=(), not_codes=(0,))),),
        strength=Strength.SHOULD,
    ),
    Rule(
        SEND_REPLY_V2,
        402,
        "without the id of a client is refused",
        (
            call(SEND_REPLY_V2, ANY),
            Put(
                "reply",
                valid(SEND_REPLY_V2, i="CORRELATION_ID\x01wire\x02TTL\x013000\x02MSG_TYPE\x01reply\x02"),
            ),
            Awaited("reply", Expect(codes=(1,))),
        ),
    ),
)
