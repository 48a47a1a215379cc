"""Texts of a drawing take the first free place."""

from mqproof.report.labels import Box, Placement, Spot


def test_a_text_takes_the_first_spot_that_covers_no_other() -> None:
    placement = Placement()
    placement.take(Box(0, 0, 100, 20))
    spot, is_free = placement.place("label", 12, [Spot(10, 15), Spot(10, 40), Spot(10, 60)])
    assert (spot, is_free) == (Spot(10, 40), True)
    assert placement.place("label", 12, [Spot(12, 42), Spot(10, 60)]) == (Spot(10, 60), True)


def test_without_a_free_spot_a_text_takes_the_one_that_covers_least_and_says_so() -> None:
    placement = Placement()
    assert placement.take(Box(0, 0, 100, 100)) == 0
    spot, is_free = placement.place("label", 12, [Spot(10, 50), Spot(90, 50)])
    assert (spot, is_free) == (Spot(90, 50), False)


def test_the_anchor_decides_where_the_text_begins() -> None:
    boxes = [Spot(100, 50, anchor).box("label", 10) for anchor in ("start", "middle", "end")]
    assert [box.left for box in boxes] == [100, 100 - 14.25, 100 - 28.5]
    assert all(round(box.right - box.left, 6) == 28.5 for box in boxes)
