"""Options of readers of topics, and the places up to which they have read."""

from dataclasses import replace
from typing import cast

import pytest

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.model import MessageQueue, PullResult
from mqproof.spark_audit.sources.store.ranges import StoreError
from mqproof.spark_audit.sources.topic_positions import Ends, Slice, advance, begin, pulled, read_options

OPTIONS = read_options({"namesrv": "127.0.0.1:9876", "topics": "T"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"topics": "T"}, "option namesrv"),
        ({"maxOffsetsPerTrigger": "0"}, "option maxOffsetsPerTrigger: '0', expected a number above 0"),
        ({"failOnDataLoss": "maybe"}, "option failOnDataLoss: 'maybe', expected true or false"),
        ({"startingOffsets": "soon"}, "option startingOffsets: 'soon', expected earliest, latest or"),
        ({"startingOffsets": '{"T": 1}'}, "'T' names no queue, expected TOPIC@BROKER:QUEUE"),
        ({"accessKey": "who"}, "options accessKey and secretKey: expected both or neither"),
    ],
)
def test_an_invalid_option_is_refused(given: dict[str, str], message: str) -> None:
    whole = given if "namesrv" in message else {"namesrv": "n:1", "topics": "T", **given}
    with pytest.raises(StoreError, match=message.replace(",", ".")):
        read_options(whole)


def test_a_query_begins_at_the_starting_offsets() -> None:
    ends = {"T@a:0": Ends(3, 9), "T@a:1": Ends(0, 5)}
    assert begin(OPTIONS, ends) == {"T@a:0": 3, "T@a:1": 0}
    assert begin(replace(OPTIONS, starting="latest"), ends) == {"T@a:0": 9, "T@a:1": 5}
    assert begin(replace(OPTIONS, starting={"T@a:1": 2}), ends) == {"T@a:0": 3, "T@a:1": 2}
    with pytest.raises(StoreError, match="no queue T@b:0"):
        begin(replace(OPTIONS, starting={"T@b:0": 2}), ends)


def test_queues_share_a_batch() -> None:
    ends = {"T@a:0": Ends(0, 90), "T@a:1": Ends(0, 10), "T@a:2": Ends(0, 0)}
    start = dict.fromkeys(ends, 0)
    assert advance(start, ends, None, OPTIONS) == {"T@a:0": 90, "T@a:1": 10, "T@a:2": 0}
    assert advance(start, ends, 20, OPTIONS) == {"T@a:0": 18, "T@a:1": 2, "T@a:2": 0}
    assert advance(start, ends, 1, OPTIONS) == {"T@a:0": 1, "T@a:1": 1, "T@a:2": 0}


def test_an_unavailable_queue_keeps_its_position_and_a_new_queue_is_read_whole() -> None:
    moved = advance({"T@a:0": 7}, {"T@b:0": Ends(0, 4)}, None, OPTIONS)
    assert moved == {"T@a:0": 7, "T@b:0": 4}


@pytest.mark.parametrize("ends", [Ends(5, 9), Ends(0, 2)])
def test_messages_deleted_before_they_were_read_are_reported(ends: Ends) -> None:
    with pytest.raises(StoreError, match=r"next offset is 3, .*messages were deleted before they were read"):
        advance({"T@a:0": 3}, {"T@a:0": ends}, None, OPTIONS)


def test_without_fail_on_loss_reading_continues() -> None:
    careless = replace(OPTIONS, fail_on_loss=False)
    assert advance({"T@a:0": 3}, {"T@a:0": Ends(5, 9)}, None, careless) == {"T@a:0": 9}
    restarted = advance({"T@a:0": 3}, {"T@a:0": Ends(0, 2)}, None, careless)
    assert restarted == {"T@a:0": 0}
    assert advance(restarted, {"T@a:0": Ends(0, 2)}, None, careless) == {"T@a:0": 2}


class Expired:
    """A client of a broker whose queue now begins and ends at offset 5."""

    def pull(self, queue: MessageQueue, offset: int, *, max_count: int) -> PullResult:
        assert (str(queue), offset, max_count) == ("T@a:0", 3, 32)
        return PullResult("OFFSET_ILLEGAL", 5, 5, 5)


def test_messages_deleted_while_a_batch_is_read_are_reported() -> None:
    client = cast("BlockingClient", Expired())
    with pytest.raises(StoreError, match="next offset is 3, but the queue has 5 to 5"):
        list(pulled(client, Slice("T@a:0", 3, 5), fail_on_loss=True))
    assert list(pulled(client, Slice("T@a:0", 3, 5), fail_on_loss=False)) == [([], 5)]
