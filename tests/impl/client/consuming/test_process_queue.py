"""Tests a process queue: the offset that may be committed, and its size."""

from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.model import MessageQueue, ReceivedMessage
from mqproof.impl.remoting.message import Message, StoredMessage

QUEUE = MessageQueue("T", "b", 0)


def received(offset: int, body: bytes = b"x") -> ReceivedMessage:
    return ReceivedMessage(StoredMessage(Message("T", body), offset, 0, 0, 0, 0), QUEUE, 0)


def holding(*offsets: int) -> tuple[ProcessQueue, dict[int, ReceivedMessage]]:
    messages = {offset: received(offset) for offset in offsets}
    held = ProcessQueue(QUEUE)
    held.put(list(messages.values()))
    return held, messages


def test_the_offset_to_commit_is_the_lowest_one_still_held() -> None:
    held, messages = holding(3, 4, 5, 8)
    assert held.remove([messages[4]]) == 3
    assert held.remove([messages[3]]) == 5
    assert held.remove([messages[8]]) == 5
    assert held.remove([messages[5]]) == 9
    assert held.remove([]) == 9


def test_a_message_that_is_removed_twice_counts_once() -> None:
    held, messages = holding(0, 1)
    held.remove([messages[0]])
    held.remove([messages[0]])
    assert (len(held), held.bytes) == (1, 1)


def test_count_bytes_and_span_cover_the_held_messages() -> None:
    held = ProcessQueue(QUEUE)
    assert (len(held), held.bytes, held.span) == (0, 0, 0)
    first, last = received(10, b"abc"), received(2010, b"d")
    held.put([first])
    held.put([last])
    assert (len(held), held.bytes, held.span) == (2, 4, 2000)
    held.remove([first])
    assert (len(held), held.bytes, held.span) == (1, 1, 0)


def test_the_first_messages_can_be_replaced_in_place() -> None:
    held, messages = holding(0, 1, 2)
    assert held.first(2) == [messages[0], messages[1]]
    again = ReceivedMessage(messages[0].stored, QUEUE, 1)
    held.replace([again])
    assert held.first(3) == [again, messages[1], messages[2]]


def test_overdue_messages_were_started_before_and_are_not_done() -> None:
    held, messages = holding(0, 1, 2, 3)
    held.begin([messages[0], messages[1]], 10.0)
    held.begin([messages[2]], 20.0)
    held.remove([messages[0]])
    assert held.overdue(10.0, 16) == []
    assert held.overdue(15.0, 16) == [messages[1]]
    assert held.overdue(30.0, 16) == [messages[1], messages[2]]
    assert held.overdue(30.0, 1) == [messages[1]]


def test_the_ends_of_the_held_and_of_the_begun_messages_are_their_lowest_and_highest_offsets() -> None:
    held = ProcessQueue(QUEUE)
    assert (held.ends, held.begun_ends, held.begun_count) == ((0, 0), (0, 0), 0)
    held, messages = holding(3, 4, 6, 9)
    held.begin([messages[6], messages[4]], 1.0)
    assert (held.ends, held.begun_ends, held.begun_count, held.consumed_s) == ((3, 9), (4, 6), 2, 1.0)
    assert held.first_unbegun(1) == [messages[3]]
    assert held.first_unbegun(9) == [messages[3], messages[9]]
    held.remove([messages[6], messages[3]])
    assert (held.ends, held.begun_ends, held.begun_count) == ((4, 9), (4, 4), 1)
    assert held.holds(messages[4])
    assert not held.holds(messages[6])


def test_a_removal_wakes_the_reader_that_waits_for_room() -> None:
    held, messages = holding(3)
    assert not held.shrunk.is_set()
    held.remove([messages[3]])
    assert held.shrunk.is_set()
