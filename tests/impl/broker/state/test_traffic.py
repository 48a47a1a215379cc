"""Tests the counts by topic and group, and their limit."""

from mqproof.impl.broker.state.traffic import OTHERS, Traffic


def test_messages_bytes_and_sizes_are_counted() -> None:
    traffic = Traffic()
    traffic.stored("T", "normal", 1, 500)
    traffic.stored("T", "normal", 4, 8192)
    stored = traffic.incoming["T", "normal"]
    assert (stored.messages, stored.bytes) == (5, 8692)
    assert (stored.sizes.counts[:2], stored.sizes.sum) == ([1, 1], 2548)


def test_no_more_series_are_made_than_the_limit() -> None:
    traffic = Traffic(series_max=2)
    for number in range(5):
        traffic.stored(f"T{number}", "normal", 1, 10)
        traffic.delivered("T", f"G{number}", 1, 10)
        traffic.dead_letter("T", f"G{number}")
        traffic.transaction_ended(f"T{number}", committed=True)
        traffic.transaction_ended(f"T{number}", committed=False)
    assert {key: each.messages for key, each in traffic.incoming.items()} == {
        ("T0", "normal"): 1,
        ("T1", "normal"): 1,
        (OTHERS, "normal"): 3,
    }
    assert traffic.outgoing[OTHERS, OTHERS].messages == traffic.dead_letters[OTHERS, OTHERS] == 3
    assert traffic.committed == traffic.rolled_back == {"T0": 1, "T1": 1, OTHERS: 3}


def test_a_known_series_is_counted_also_at_the_limit() -> None:
    traffic = Traffic(series_max=1)
    for _ in range(2):
        traffic.delivered("T", "G", 1, 10)
        traffic.dead_letter("T", "G")
    assert (traffic.outgoing["T", "G"].messages, traffic.dead_letters) == (2, {("T", "G"): 2})
