"""Rules about the extents of queues and the committed offsets of a group."""

from typing import Final

from mqproof.conformance.wire.model import Expect, Since
from mqproof.conformance.wire.operations.clients import BEATEN
from mqproof.conformance.wire.operations.offsets import (
    EARLIEST_TIME,
    MAX_OFFSET,
    MIN_OFFSET,
    QUERY_OFFSET,
    SEARCH_OFFSET,
    UPDATE_OFFSET,
)
from mqproof.conformance.wire.semantics.rule import Rule, call, code

_FUTURE: Final = "4102444800000"
"""The year 2100, in milliseconds."""


def _is(offset: str) -> Expect:
    return Expect(values={"offset": offset})


_COMMIT_5: Final = call(UPDATE_OFFSET, consumerGroup="$live", commitOffset="5", topic="$topic")
_COMMIT_2_ELSEWHERE: Final = call(
    UPDATE_OFFSET, consumerGroup="$live", commitOffset="2", topic="$topic", queueId="1"
)

RULES: Final = (
    Rule(QUERY_OFFSET, 400, "returns the committed offset", (call(QUERY_OFFSET, _is("3")),)),
    Rule(
        QUERY_OFFSET,
        401,
        "of a group without a commit is 0 if the first message exists",
        (call(QUERY_OFFSET, _is("0"), consumerGroup="$live"),),
    ),
    Rule(
        QUERY_OFFSET,
        402,
        "of a group without a commit is not found if the request says so",
        (call(QUERY_OFFSET, code(22), consumerGroup="$live", setZeroIfNotFound="false"),),
        Since.V5,
    ),
    Rule(
        UPDATE_OFFSET,
        400,
        "is then returned by a query",
        (*BEATEN, _COMMIT_5, call(QUERY_OFFSET, _is("5"), consumerGroup="$live")),
    ),
    Rule(
        UPDATE_OFFSET,
        401,
        "overwrites, also with a lower offset",
        (
            *BEATEN,
            _COMMIT_5,
            call(UPDATE_OFFSET, consumerGroup="$live", commitOffset="2", topic="$topic"),
            call(QUERY_OFFSET, _is("2"), consumerGroup="$live"),
        ),
    ),
    Rule(
        UPDATE_OFFSET,
        402,
        "of one queue does not affect the others",
        (*BEATEN, _COMMIT_5, _COMMIT_2_ELSEWHERE, call(QUERY_OFFSET, _is("5"), consumerGroup="$live")),
    ),
    Rule(MAX_OFFSET, 400, "of an unknown topic is 0", (call(MAX_OFFSET, _is("0"), topic="$gone"),)),
    Rule(
        MAX_OFFSET, 401, "of an empty queue is 0", (call(MAX_OFFSET, _is("0"), topic="$other", queueId="3"),)
    ),
    Rule(MIN_OFFSET, 400, "of a new queue is 0", (call(MIN_OFFSET, _is("0")),)),
    Rule(MIN_OFFSET, 401, "of an unknown topic is 0", (call(MIN_OFFSET, _is("0"), topic="$gone"),)),
    Rule(
        EARLIEST_TIME,
        400,
        "of an unknown topic is -1",
        (call(EARLIEST_TIME, Expect(values={"timestamp": "-1"}), topic="$gone"),),
    ),
    Rule(
        SEARCH_OFFSET,
        400,
        "for a time before all messages is the first",
        (call(SEARCH_OFFSET, _is("0"), timestamp="0"),),
    ),
    Rule(
        SEARCH_OFFSET,
        401,
        "LOWER for a time behind all messages is the end",
        (call(SEARCH_OFFSET, _is("8"), timestamp=_FUTURE, boundaryType="LOWER"),),
        Since.V5,
    ),
    Rule(
        SEARCH_OFFSET,
        402,
        "UPPER for a time behind all messages is the last",
        (call(SEARCH_OFFSET, _is("7"), timestamp=_FUTURE, boundaryType="UPPER"),),
        Since.V5,
    ),
    Rule(
        SEARCH_OFFSET,
        403,
        "in an empty queue is 0",
        (call(SEARCH_OFFSET, _is("0"), topic="$other", queueId="3", timestamp=_FUTURE),),
    ),
)
