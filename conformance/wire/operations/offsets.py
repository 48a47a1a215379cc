"""Operations for the beginning and end of queues, and for committed offsets."""

from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.fields import fields
from mqproof.conformance.wire.model import Expect, Kind, Operation, Server

_OFFSET: Final = Expect(fields={"offset": Kind.LONG})
_QUEUE: Final = """
    topic   S! $topic
    queueId I! 0
"""
_CONSUMER: Final = """
    consumerGroup S! $group
    topic         S! $topic
    queueId       I! 0
"""

QUERY_OFFSET: Final = Operation(
    14, "QUERY_CONSUMER_OFFSET", "query-offset", Server.BROKER, chapters.OFFSET_REQUESTS,
    fields(_CONSUMER.replace("$group", "$reader") + "setZeroIfNotFound B?5"), expect=_OFFSET,
)  # fmt: skip
UPDATE_OFFSET: Final = Operation(
    15, "UPDATE_CONSUMER_OFFSET", "update-offset", Server.BROKER, chapters.CONSUMER_OFFSETS,
    fields(_CONSUMER.replace("$topic", "$other") + "commitOffset L! 3"),
)  # fmt: skip
SEARCH_OFFSET: Final = Operation(
    29, "SEARCH_OFFSET_BY_TIMESTAMP", "search-offset", Server.BROKER, chapters.OFFSET_REQUESTS,
    fields(_QUEUE + "timestamp L! $now\nboundaryType S?5"), expect=_OFFSET,
)  # fmt: skip
MAX_OFFSET: Final = Operation(
    30, "GET_MAX_OFFSET", "max-offset", Server.BROKER, chapters.OFFSET_REQUESTS,
    fields(_QUEUE + "committed B?5"), expect=_OFFSET,
)  # fmt: skip
MIN_OFFSET: Final = Operation(
    31, "GET_MIN_OFFSET", "min-offset", Server.BROKER, chapters.OFFSET_REQUESTS, fields(_QUEUE),
    expect=_OFFSET,
)  # fmt: skip
EARLIEST_TIME: Final = Operation(
    32, "GET_EARLIEST_MSG_STORETIME", "earliest-time", Server.BROKER, chapters.OFFSET_REQUESTS,
    fields(_QUEUE),
    expect=Expect(fields={"timestamp": Kind.LONG}),
)  # fmt: skip

OPERATIONS: Final = (QUERY_OFFSET, UPDATE_OFFSET, SEARCH_OFFSET, MAX_OFFSET, MIN_OFFSET, EARLIEST_TIME)
