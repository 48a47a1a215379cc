"""Requests of a slave to its master."""

from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.fields import fields
from mqproof.conformance.wire.model import Expect, Operation, Server, Since, Strength

_SOURCE: Final = chapters.REQUESTS_OF_A_SLAVE

CONSUMER_OFFSETS: Final = Operation(
    43, "GET_ALL_CONSUMER_OFFSET", "all-consumer-offsets", Server.BROKER, _SOURCE,
    expect=Expect(has=('"offsetTable":{', '"$topic@$reader":{')),
)  # fmt: skip
DELAY_OFFSETS: Final = Operation(
    45, "GET_ALL_DELAY_OFFSET", "all-delay-offsets", Server.BROKER, _SOURCE,
    expect=Expect(has=('"offsetTable":{',)),
)  # fmt: skip
REQUEST_MODES: Final = Operation(
    402, "GET_ALL_MESSAGE_REQUEST_MODE", "all-request-modes", Server.BROKER, _SOURCE,
    expect=Expect(has=('"messageRequestModeMap":{',)), since=Since.V5,
)  # fmt: skip
TIMER_CHECK_POINT: Final = Operation(
    60, "GET_TIMER_CHECK_POINT", "timer-check-point", Server.BROKER, _SOURCE,
    expect=Expect(codes=(0, 1)), since=Since.V5, strength=Strength.SHOULD,
)  # fmt: skip
TIMER_METRICS: Final = Operation(
    61, "GET_TIMER_METRICS", "timer-metrics", Server.BROKER, _SOURCE,
    expect=Expect(codes=(0, 1)), since=Since.V5, strength=Strength.SHOULD,
)  # fmt: skip
HA_STATUS: Final = Operation(
    907, "GET_BROKER_HA_STATUS", "ha-status", Server.BROKER, _SOURCE,
    expect=Expect(has=('"master":true', '"masterCommitLogMaxOffset":')), since=Since.V5,
)  # fmt: skip
HA_INFO: Final = Operation(
    906, "EXCHANGE_BROKER_HA_INFO", "ha-info", Server.BROKER, _SOURCE,
    expect=Expect(), since=Since.V5,
)  # fmt: skip
RESET_FLUSH_OFFSET: Final = Operation(
    908, "RESET_MASTER_FLUSH_OFFSET", "reset-flush-offset", Server.BROKER, _SOURCE,
    fields("masterFlushOffset L! 0"), since=Since.V5, strength=Strength.SHOULD,
)  # fmt: skip

OPERATIONS: Final = (
    CONSUMER_OFFSETS, DELAY_OFFSETS, REQUEST_MODES, TIMER_CHECK_POINT, TIMER_METRICS, HA_STATUS, HA_INFO,
    RESET_FLUSH_OFFSET,
)  # fmt: skip
