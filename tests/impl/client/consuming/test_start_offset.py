"""Tests where a group begins in a queue of which it has no offset."""

import pytest

from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.offset_store import BrokerOffsets, Offsets
from mqproof.impl.client.consuming.start_offset import ConsumeFrom, require_start, start_offset, start_time_ms
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.runtime.simulated_loop import run_simulated

MIN, MAX, AT_TIME = 3, 9, 7


class FakeCalls(GroupRequests):
    """A queue that holds offsets 3 to 8."""

    def __init__(self, known: int | None) -> None:
        self.known = known

    async def committed(self, queue: MessageQueue) -> int | None:  # noqa: ARG002  # as GroupRequests has it
        return self.known

    async def min_offset(self, queue: MessageQueue) -> int:  # noqa: ARG002
        return MIN

    async def max_offset(self, queue: MessageQueue) -> int:  # noqa: ARG002
        return MAX

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:  # noqa: ARG002
        assert timestamp_ms == 1000
        return AT_TIME


def begins(known: int | None, consume_from: ConsumeFrom, topic: str = "T") -> tuple[int, int | None]:
    """Return the first offset to read, and the offset that will be stored."""
    calls, queue = FakeCalls(known), MessageQueue(topic, "b", 0)
    offsets = Offsets(BrokerOffsets(calls, ConsumerEvents(None, "G", "c")))
    return run_simulated(start_offset(queue, calls, offsets, consume_from, 1000)), offsets.get(queue)


@pytest.mark.parametrize(
    ("consume_from", "offset"),
    [
        (ConsumeFrom.FIRST_OFFSET, MIN),
        (ConsumeFrom.LAST_OFFSET, MAX),
        (ConsumeFrom.TIMESTAMP, AT_TIME),
    ],
)
def test_a_new_group_starts_as_configured_and_its_offset_is_stored(
    consume_from: ConsumeFrom, offset: int
) -> None:
    assert begins(None, consume_from) == (offset, offset)


@pytest.mark.parametrize("consume_from", list(ConsumeFrom))
def test_a_group_continues_at_its_offset_even_at_offset_0(consume_from: ConsumeFrom) -> None:
    assert begins(5, consume_from) == (5, None)
    assert begins(0, consume_from) == (0, None)


@pytest.mark.parametrize("consume_from", list(ConsumeFrom))
def test_deliv_7_no_message_of_a_retry_topic_is_skipped(consume_from: ConsumeFrom) -> None:
    """DELIV-7 RetryThenDeadLetter: it holds messages that the listener must still consume."""
    assert begins(None, consume_from, "%RETRY%G") == (0, 0)


def test_deliv_1_an_unknown_offset_is_not_guessed() -> None:
    """DELIV-1 NoAckedLost."""

    class Away(FakeCalls):
        async def committed(self, queue: MessageQueue) -> int | None:  # noqa: ARG002
            raise ClientError("busy")

    offsets = Offsets(BrokerOffsets(Away(None), ConsumerEvents(None, "G", "c")))
    with pytest.raises(ClientError, match="busy"):
        run_simulated(
            start_offset(MessageQueue("T", "b", 0), Away(None), offsets, ConsumeFrom.LAST_OFFSET, 0)
        )


def test_a_start_that_would_not_be_used_is_refused() -> None:
    require_start(ConsumeFrom.TIMESTAMP, 1)
    require_start(ConsumeFrom.LAST_OFFSET, None)
    with pytest.raises(
        TypeError, match="consume_from is 'TIMESTAMP', a value of the type ConsumeFrom expected"
    ):
        require_start("TIMESTAMP", None)
    with pytest.raises(TypeError, match="consume_from_ms is '2026', milliseconds since 1970 expected"):
        require_start(ConsumeFrom.TIMESTAMP, "2026")
    with pytest.raises(ValueError, match="consume_from_ms needs consume_from="):
        require_start(ConsumeFrom.FIRST_OFFSET, 1)


@pytest.mark.parametrize(("configured_ms", "since_ms"), [(None, 10_000_000 - 1_800_000), (0, 0), (5, 5)])
def test_without_a_configured_time_a_group_starts_half_an_hour_ago(
    configured_ms: int | None, since_ms: int
) -> None:
    assert start_time_ms(configured_ms, 10_000_000) == since_ms
