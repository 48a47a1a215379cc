"""Tests the half messages that are kept in memory: their places, and the bound on their memory."""

from mqproof.impl.broker.state.kept_halves import PROPERTY_BYTES, KeptHalves
from mqproof.impl.remoting.message import Message, StoredMessage


def half(at: int, size: int = 100, properties: int = 0) -> StoredMessage:
    names = {str(number): "v" for number in range(properties)}
    return StoredMessage(Message("HALF", b"", names), at // 1000, at, 0, size, 0)


def kept(bytes_max: int, *halves: StoredMessage) -> KeptHalves:
    made = KeptHalves(bytes_max)
    for one in halves:
        made.keep(one)
    return made


def test_a_half_message_is_found_at_its_place_until_it_is_dropped() -> None:
    made = kept(1000, half(1000), half(2000))
    assert (made.find(1000), made.find(1001)) == (half(1000), None)
    for at in (1000, 1000, 3000):
        made.drop(at)
    assert (made.find(1000), made.find(2000)) == (None, half(2000))


def test_the_oldest_are_forgotten_when_the_memory_is_used_up() -> None:
    made = kept(300, half(1000), half(2000), half(3000))
    assert len(made) == 3
    made.keep(half(4000, 101))
    assert [at for at in (1000, 2000, 3000, 4000) if made.find(at) is not None] == [3000, 4000]


def test_a_place_that_is_used_again_has_the_newer_message_and_counts_once() -> None:
    made = kept(300, half(1000), half(2000), half(1000, 200))
    assert [made.find(at) for at in (2000, 1000)] == [half(2000), half(1000, 200)]


def test_memory_that_was_dropped_is_free_again() -> None:
    made = kept(300, half(1000, 300))
    made.drop(1000)
    made.keep(half(2000, 300))
    assert len(made) == 1


def test_a_property_counts_with_the_memory_of_its_object() -> None:
    made = kept(2 * PROPERTY_BYTES, half(1000, 0, 1), half(2000, 0, 1))
    assert len(made) == 2
    made.keep(half(3000, 0, 2))
    assert (len(made), made.find(3000)) == (1, half(3000, 0, 2))


def test_a_half_message_that_is_too_large_is_not_kept() -> None:
    assert len(kept(300, half(1000, 301))) == 0
