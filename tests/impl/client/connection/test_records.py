"""Tests the answers to pulls: their messages, and the limits on what a broker can make a consumer hold.

Source: docs/reference/protocol/messages.md, "Compression".
"""

import asyncio
import sys
from functools import lru_cache
from types import SimpleNamespace

import pytest

from mqproof.impl.client.connection import records
from mqproof.impl.client.connection.records import Answer, AnswerReader, read_records
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.simulated_loop import run_simulated
from mqproof.impl.store.files import record

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIB = 1 << 20
MESSAGE_BYTES_MAX = 32 * MIB


@lru_cache
def compressed(size: int) -> bytes:
    return zstd.compress(bytes(size))


def stored(*sizes: int, tag: str = "") -> bytes:
    """Return an answer with messages whose bodies have these sizes when decompressed."""
    found = b""
    for offset, size in enumerate(sizes):
        properties = {"TAGS": tag} if tag else {}
        draft = record.encode(Message("T", compressed(size), properties, sys_flag=0x201))
        record.place(draft, offset, 1000 * offset, 1)
        found += draft
    return found


def read(body: bytes, room: int | None = None) -> Answer:
    async def main() -> Answer:
        return await AnswerReader().read(body, lambda _: True, None if room is None else lambda: room)

    return run_simulated(main())


def sizes(answer: Answer) -> list[int]:
    return [len(one.message.body) for one in answer.messages]


def test_an_answer_is_read_up_to_the_limit_and_the_rest_is_pulled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "ANSWER_BYTES_MAX", 7 * MIB)
    answer = read(stored(*[3 * MIB] * 8))
    assert sizes(answer) == [3 * MIB] * 2
    assert answer.left_out == 2
    assert read(stored(1, 2, 3)) == Answer(tuple(read_records(stored(1, 2, 3))), None)


def test_a_consumer_takes_no_more_than_it_has_room_for_but_always_one_message() -> None:
    assert read(stored(2 * MIB, 2 * MIB, 2 * MIB), 5 * MIB).left_out == 2
    assert read(stored(2 * MIB, 2 * MIB, 2 * MIB), 4 * MIB).left_out == 2
    answer = read(stored(2 * MIB, 2 * MIB), 1)
    assert (sizes(answer), answer.left_out) == ([2 * MIB], 1)


def test_an_answer_waits_while_the_consumer_has_no_room() -> None:
    async def main() -> float:
        room = [0]
        asyncio.get_running_loop().call_later(7, room.__setitem__, 0, 1)
        await AnswerReader().read(stored(1), lambda _: True, lambda: room[0])
        return asyncio.get_running_loop().time()

    assert 7 <= run_simulated(main()) < 8


def test_a_message_beyond_the_limit_is_delivered_compressed_and_named_and_others_follow(
    caplog: pytest.LogCaptureFixture,
) -> None:
    body = stored(1, MESSAGE_BYTES_MAX + 1, 3)
    answer = read(body)
    first, bomb, last = answer.messages
    assert (len(first.message.body), len(last.message.body), answer.left_out) == (1, 3, None)
    assert zstd.decompress(bomb.message.body) == bytes(MESSAGE_BYTES_MAX + 1)
    assert bomb.message_id in caplog.text


def test_the_number_of_messages_of_an_answer_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "ANSWER_MESSAGES_MAX", 3)
    answer = read(stored(*[1] * 5))
    assert (len(answer.messages), answer.left_out) == (3, 3)


def test_unwanted_messages_are_not_decompressed() -> None:
    async def main() -> Answer:
        return await AnswerReader().read(stored(*[MIB] * 8), lambda one: one.queue_offset == 7, lambda: MIB)

    answer = run_simulated(main())
    assert [one.queue_offset for one in answer.messages] == [7]
    assert answer.left_out is None


@pytest.mark.parametrize("body", [stored(12 * MIB), stored(*[1] * 2000)], ids=["one large", "many small"])
def test_reading_an_answer_leaves_the_loop_to_other_tasks(body: bytes) -> None:
    async def main() -> int:
        turns = 0
        reading = asyncio.create_task(AnswerReader().read(body, lambda _: True))
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert run_simulated(main()) > 10


def test_answers_are_read_one_at_a_time() -> None:
    async def main() -> list[int]:
        reader, done = AnswerReader(), []

        async def one(number: int) -> None:
            await reader.read(stored(2 * MIB), lambda _: True)
            done.append(number)

        await asyncio.gather(one(1), one(2), one(3))
        return done

    assert run_simulated(main()) == [1, 2, 3]


def test_an_answer_read_at_once_has_a_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "ANSWER_BYTES_MAX", 7 * MIB)
    with pytest.raises(ValueError, match="more than 7340032 bytes when decompressed"):
        list(read_records(stored(*[3 * MIB] * 3)))


def plain(*sizes: int) -> bytes:
    """Return an answer with messages whose bodies are not compressed."""
    found = b""
    for offset, size in enumerate(sizes):
        draft = record.encode(Message("T", bytes(size)))
        record.place(draft, offset, 1000 * offset, 1)
        found += draft
    return found


def yields(body: bytes) -> int:
    """Return how often the loop could run other tasks while the answer was read."""

    async def main() -> int:
        turns = 0
        reading = asyncio.create_task(AnswerReader().read(body, lambda _: True))
        await asyncio.sleep(0)
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    return run_simulated(main())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (plain(*[1] * 127), 0),
        (plain(*[1] * 128), 1),
        (plain(*[1] * 255), 1),
        (plain(*[1] * 256), 2),
        (plain(MIB - 1), 0),
        (plain(MIB // 2, MIB // 2 - 1), 0),
        (plain(MIB // 2, MIB // 2), 1),
        (plain(*[MIB // 2] * 3), 1),
        (plain(*[MIB // 2] * 4), 2),
        (stored(3 * MIB - 1), 2),
    ],
)
def test_other_tasks_run_after_128_records_and_after_1_mib(body: bytes, expected: int) -> None:
    assert yields(body) == expected


@pytest.mark.parametrize(("less", "left_out"), [(0, 2), (1, None)])
def test_an_answer_has_up_to_64_mib_of_bodies(
    less: int, left_out: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = iter([32 * MIB, 32 * MIB - less, 1])

    async def inflated(_stored: object, most: int, _pause: object) -> object:
        length = next(lengths)
        return None if length > most else SimpleNamespace(message=SimpleNamespace(body=range(length)))

    monkeypatch.setattr(records, "_inflated", inflated)
    answer = read(plain(1, 1, 1))
    assert (len(answer.messages), answer.left_out) == (2 + less, left_out)


def test_an_answer_has_up_to_4096_messages() -> None:
    answer = read(plain(*[1] * 4097))
    assert (len(answer.messages), answer.left_out) == (4096, 4096)


def test_an_answer_looks_for_room_every_50_ms() -> None:
    async def main() -> float:
        room = [0]
        asyncio.get_running_loop().call_later(0.12, room.__setitem__, 0, 1)
        await AnswerReader().read(plain(1), lambda _: True, lambda: room[0])
        return asyncio.get_running_loop().time()

    assert run_simulated(main()) == pytest.approx(0.15)


def test_the_bodies_read_at_once_may_have_exactly_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "ANSWER_BYTES_MAX", 7)
    assert len(list(read_records(plain(3, 4)))) == 2
    with pytest.raises(ValueError, match="more than 7 bytes when decompressed, at message"):
        list(read_records(plain(3, 5)))


@pytest.mark.parametrize(("left", "left_out"), [(99, 1), (100, None), (101, None)])
def test_a_body_above_the_largest_one_waits_for_room_or_stays_compressed(
    left: int, left_out: int | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(records, "MESSAGE_BYTES_MAX", 100)
    answer = read(stored(1, 101), left + 1)
    assert answer.left_out == left_out
    assert len(answer.messages) == len(caplog.messages) + 1 == (1 if left_out else 2)


def test_a_body_fits_into_exactly_the_room_that_is_left() -> None:
    assert sizes(read(stored(1, 9), 10)) == [1, 9]
    assert sizes(read(stored(1, 9, 1), 11)) == [1, 9, 1]
    assert read(stored(1, 10), 10).left_out == 1


@pytest.mark.parametrize(
    ("body", "size", "left"),
    [(plain(5)[:-1], 97, 96), (plain(5) + b"xx", 0, 2), (plain(5) + bytes(12), 0, 12)],
)
def test_a_record_that_is_cut_off_is_an_error_with_its_size(body: bytes, size: int, left: int) -> None:
    with pytest.raises(ValueError, match=f"a record of {size} bytes in a body with {left} left"):
        read(body)
