"""Rules about topics, groups, configuration and statistics of a broker."""

from typing import Final

from mqproof.conformance.wire.model import Call, Expect, Since
from mqproof.conformance.wire.operations.administration import (
    ALL_GROUPS,
    ALL_TOPICS,
    CREATE_GROUP,
    CREATE_TOPIC,
    DELETE_GROUP,
    DELETE_TOPIC,
    GROUP_CONFIG,
    SYSTEM_TOPICS,
    TOPIC_CONFIG,
    UPDATE_CONFIG,
)
from mqproof.conformance.wire.operations.inspection import (
    CLONE_OFFSET,
    CONSUME_QUEUE,
    CONSUME_STATS,
    STATS_DATA,
    TOPIC_STATS,
    WHO_CONSUMES,
)
from mqproof.conformance.wire.operations.messages import PULL, SEND_V2
from mqproof.conformance.wire.operations.offsets import QUERY_OFFSET
from mqproof.conformance.wire.requests import valid
from mqproof.conformance.wire.semantics.rule import Rule, call, code

_REFUSED: Final = code(1, 29)
_CREATED: Final = call(CREATE_TOPIC, topic="$gone")


def _group(**changed: str) -> str:
    body = str(CREATE_GROUP.body).replace("$scratch", "$gone")
    for old, new in changed.items():
        body = body.replace(f'"{old}":true', f'"{old}":{new}')
    return body


RULES: Final = (
    Rule(
        CREATE_TOPIC,
        400,
        "with an invalid topic name is refused",
        (call(CREATE_TOPIC, _REFUSED, topic="a b"),),
    ),
    Rule(
        CREATE_TOPIC,
        401,
        "with a name of 128 characters is refused",
        (call(CREATE_TOPIC, _REFUSED, topic="w" * 128),),
    ),
    Rule(CREATE_TOPIC, 402, "of TBW102 is refused", (call(CREATE_TOPIC, _REFUSED, topic="TBW102"),)),
    Rule(
        CREATE_TOPIC,
        403,
        "is then in the list of all topics",
        (_CREATED, call(ALL_TOPICS, Expect(has=('"topicName":"$gone"',)))),
    ),
    Rule(
        CREATE_TOPIC,
        404,
        "creates queues that accept sends",
        (
            _CREATED,
            call(SEND_V2, SEND_V2.expect, b="$gone", e="1"),
            call(SEND_V2, _REFUSED, b="$gone", e="2"),
        ),
    ),
    Rule(
        CREATE_TOPIC,
        405,
        "changes a topic that exists",
        (
            _CREATED,
            call(CREATE_TOPIC, topic="$gone", writeQueueNums="3", readQueueNums="3"),
            call(SEND_V2, SEND_V2.expect, b="$gone", e="2"),
        ),
    ),
    Rule(
        CREATE_TOPIC,
        406,
        "without read permission cannot be pulled",
        (call(CREATE_TOPIC, topic="$gone", perm="2"), call(PULL, code(16), topic="$gone")),
    ),
    Rule(DELETE_TOPIC, 400, "of a system topic is refused", (call(DELETE_TOPIC, _REFUSED, topic="TBW102"),)),
    Rule(
        DELETE_TOPIC,
        401,
        "is then unknown",
        (_CREATED, call(DELETE_TOPIC), call(PULL, code(17), topic="$gone")),
    ),
    Rule(
        DELETE_TOPIC,
        402,
        "is then not in the list of all topics",
        (_CREATED, call(DELETE_TOPIC), call(ALL_TOPICS, Expect(lacks=('"topicName":"$gone"',)))),
    ),
    Rule(TOPIC_CONFIG, 400, "of an unknown topic is refused", (call(TOPIC_CONFIG, code(17), topic="$gone"),)),
    Rule(
        SYSTEM_TOPICS,
        400,
        "contains only system topics",
        (call(SYSTEM_TOPICS, Expect(lacks=('"$topic"',))),),
    ),
    Rule(
        CREATE_GROUP,
        400,
        "is then in the list of all groups",
        (Call(valid(CREATE_GROUP, _group())), call(ALL_GROUPS, Expect(has=('"groupName":"$gone"',)))),
    ),
    Rule(
        CREATE_GROUP,
        401,
        "without permission to consume cannot pull",
        (
            Call(valid(CREATE_GROUP, _group(consumeEnable="false"))),
            call(PULL, code(16), consumerGroup="$gone"),
        ),
    ),
    Rule(
        DELETE_GROUP,
        400,
        "is then not in the list of all groups",
        (
            Call(valid(CREATE_GROUP, _group())),
            call(DELETE_GROUP),
            call(ALL_GROUPS, Expect(lacks=('"groupName":"$gone"',))),
        ),
    ),
    Rule(
        GROUP_CONFIG,
        400,
        "of an unknown group is refused, or creates it",
        (call(GROUP_CONFIG, code(26, 0), group="$gone"),),
    ),
    Rule(
        UPDATE_CONFIG,
        400,
        "of a path of the configuration is not allowed",
        (Call(valid(UPDATE_CONFIG, "brokerConfigPath=/nowhere\n"), code(16)),),
        Since.V5,
    ),
    Rule(TOPIC_STATS, 400, "of an unknown topic is refused", (call(TOPIC_STATS, code(17), topic="$gone"),)),
    Rule(
        CONSUME_STATS,
        400,
        "of a topic reports each queue",
        (call(CONSUME_STATS, Expect(has=('"brokerOffset":8', '"consumerOffset":3')), topic="$topic"),),
    ),
    Rule(
        STATS_DATA,
        400,
        "of an unknown item is refused",
        (call(STATS_DATA, code(1), statsName="NOTHING", statsKey="$gone"),),
    ),
    Rule(
        WHO_CONSUMES,
        400,
        "of a topic without groups is an empty list",
        (call(WHO_CONSUMES, Expect(has=('"groupList":[]',)), topic="$gone"),),
    ),
    Rule(
        CLONE_OFFSET,
        400,
        "copies the offsets of another group",
        (
            call(CLONE_OFFSET, destGroup="$gone"),
            call(QUERY_OFFSET, Expect(values={"offset": "3"}), consumerGroup="$gone"),
        ),
    ),
    Rule(
        CONSUME_QUEUE,
        400,
        "of a queue reports its range",
        (call(CONSUME_QUEUE, Expect(has=('"maxQueueIndex":8', '"minQueueIndex":0'))),),
    ),
)
