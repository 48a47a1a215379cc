"""Operations for statistics of a broker and the progress of groups."""

from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.fields import fields
from mqproof.conformance.wire.model import Expect, Operation, Server, Since

_SOURCE: Final = chapters.ADMINISTRATION_OF_A_BROKER

TOPIC_STATS: Final = Operation(
    202, "GET_TOPIC_STATS_INFO", "topic-stats", Server.BROKER, _SOURCE, fields("topic S! $topic"),
    expect=Expect(has=('"offsetTable":{{', '"maxOffset":', '"topic":"$topic"')),
)  # fmt: skip
CONSUME_STATS: Final = Operation(
    208, "GET_CONSUME_STATS", "consume-stats", Server.BROKER, _SOURCE,
    fields("""
        consumerGroup S! $reader
        topic         S?
        topicList     S?5
    """),
    expect=Expect(has=('"consumeTps":', '"offsetTable":{{', '"consumerOffset":3', '"topic":"$topic"')),
)  # fmt: skip
BROKER_CONSUME_STATS: Final = Operation(
    317, "GET_BROKER_CONSUME_STATS", "broker-consume-stats", Server.BROKER, chapters.STATISTICS_OF_A_BROKER,
    fields("isOrder B! false"), expect=Expect(has=('"consumeStatsList":[', '"totalDiff":')),
)  # fmt: skip
WHO_CONSUMES: Final = Operation(
    300, "QUERY_TOPIC_CONSUME_BY_WHO", "who-consumes", Server.BROKER, _SOURCE, fields("topic S! $topic"),
    expect=Expect(has=('"groupList":[', '"$reader"')),
)  # fmt: skip
TOPICS_OF_GROUP: Final = Operation(
    343, "QUERY_TOPICS_BY_CONSUMER", "topics-of-group", Server.BROKER, chapters.OPERATIONS_OF_5X,
    fields("group S! $reader"), expect=Expect(has=('"topicList":[', '"$topic"')), since=Since.V5,
)  # fmt: skip
SUBSCRIPTION_OF_GROUP: Final = Operation(
    345, "QUERY_SUBSCRIPTION_BY_CONSUMER", "subscription-of-group", Server.BROKER, chapters.OPERATIONS_OF_5X,
    fields("""
        group S! $reader
        topic S? $topic
    """),
    expect=Expect(has=('"group":"$reader"', '"topic":"$topic"')), since=Since.V5,
)  # fmt: skip
CONSUME_SPAN: Final = Operation(
    303, "QUERY_CONSUME_TIME_SPAN", "consume-span", Server.BROKER, _SOURCE,
    fields("""
        topic S! $topic
        group S! $reader
    """),
    expect=Expect(has=('"consumeTimeSpanSet":[{', '"minTimeStamp":')),
)  # fmt: skip
# Without filterGroups: released brokers delete the offsets of the groups that it names.
CORRECTION: Final = Operation(
    308, "QUERY_CORRECTION_OFFSET", "correction-offset", Server.BROKER, chapters.STATISTICS_OF_A_BROKER,
    fields("""
        topic        S! $topic
        compareGroup S! $reader
        filterGroups S?
    """),
    expect=Expect(has=('"correctionOffsets":{',)),
)  # fmt: skip
CLONE_OFFSET: Final = Operation(
    314, "CLONE_GROUP_OFFSET", "clone-offset", Server.BROKER, _SOURCE,
    fields("""
        srcGroup  S! $reader
        destGroup S! $scratch
        topic     S? $topic
        offline   B! false
    """),
)  # fmt: skip
STATS_DATA: Final = Operation(
    315, "VIEW_BROKER_STATS_DATA", "stats-data", Server.BROKER, chapters.STATISTICS_OF_A_BROKER,
    fields("""
        statsName S! TOPIC_PUT_NUMS
        statsKey  S! $topic
    """),
    expect=Expect(has=('"statsDay":{', '"statsHour":{', '"statsMinute":{', '"tps":')),
)  # fmt: skip
CONSUME_QUEUE: Final = Operation(
    321, "QUERY_CONSUME_QUEUE", "consume-queue", Server.BROKER, chapters.STATISTICS_OF_A_BROKER,
    fields("""
        topic         S! $topic
        queueId       I! 0
        index         L! 0
        count         I! 4
        consumerGroup S? $group
    """),
    expect=Expect(has=('"maxQueueIndex":', '"minQueueIndex":0', '"queueData":[{', '"physicOffset":')),
)  # fmt: skip

OPERATIONS: Final = (
    TOPIC_STATS, CONSUME_STATS, BROKER_CONSUME_STATS, WHO_CONSUMES, TOPICS_OF_GROUP, SUBSCRIPTION_OF_GROUP,
    CONSUME_SPAN, CORRECTION, CLONE_OFFSET, STATS_DATA, CONSUME_QUEUE,
)  # fmt: skip
