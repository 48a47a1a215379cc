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
        traffic.stored("T", "normal", 1, 10)
        traffic.delivered("T", "G", 1, 10)
        traffic.dead_letter("T", "G")
        traffic.transaction_ended("T", committed=True)
    assert (traffic.incoming["T", "normal"].messages, traffic.outgoing["T", "G"].messages) == (2, 2)
    assert (traffic.dead_letters, traffic.committed) == ({("T", "G"): 2}, {"T": 2})


def test_sizes_are_counted_up_to_one_four_and_512_kib_and_one_two_and_four_mib() -> None:
    traffic = Traffic()
    bounds = (1024, 4096, 524_288, 1_048_576, 2_097_152, 4_194_304)
    for bound in bounds:
        traffic.stored("T", "normal", 1, bound)
    sizes = traffic.incoming["T", "normal"].sizes
    assert sizes.counts == [1, 1, 1, 1, 1, 1, 0]
    for bound in bounds:
        traffic.stored("T", "normal", 2, 2 * bound + 2)
    assert sizes.counts == [1, 2, 2, 2, 2, 2, 1], "a batch counts as one message of the mean size"


def test_topics_and_groups_are_counted_apart_also_if_they_have_the_same_names() -> None:
    traffic = Traffic()
    for topic, group in (("A", "B"), ("B", "A"), ("A", "A")):
        traffic.delivered(topic, group, 1, 10)
        traffic.delivered(topic, group, 2, 20)
        traffic.dead_letter(topic, group)
    assert {key: (each.messages, each.bytes) for key, each in traffic.outgoing.items()} == {
        ("A", "B"): (3, 30),
        ("B", "A"): (3, 30),
        ("A", "A"): (3, 30),
    }
    assert traffic.dead_letters == {("A", "B"): 1, ("B", "A"): 1, ("A", "A"): 1}
    traffic.transaction_ended("A", committed=True)
    traffic.transaction_ended("A", committed=True)
    assert (traffic.committed, traffic.rolled_back) == ({"A": 2}, {})


def test_five_thousand_series_of_one_metric_are_kept() -> None:
    traffic = Traffic()
    for number in range(5001):
        traffic.transaction_ended(f"T{number}", committed=False)
    assert (len(traffic.rolled_back), traffic.rolled_back[OTHERS]) == (5001, 1)
