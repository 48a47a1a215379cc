"""Queue linearizability, compared with a search through all orders, and on real queues."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqproof.conformance.history.linearize import (
    NEVER,
    Element,
    Empty,
    Kind,
    Step,
    Violation,
    certified,
    linearize,
)


def history(seed: int, values: int, empties: int, length: int) -> tuple[list[Element], list[Empty]]:
    """Return random intervals with distinct ends; some values are never taken, some puts never end."""
    chance = random.Random(seed)
    moments = iter(chance.sample(range(length), 4 * values + 2 * empties))

    def interval() -> tuple[int, int]:
        low, high = sorted((next(moments), next(moments)))
        return low, high

    elements = []
    for number in range(values):
        put, take = sorted((interval(), interval())) if chance.random() < 0.8 else (interval(), interval())
        if chance.random() < 0.3:
            take = (NEVER, NEVER)
        elif chance.random() < 0.2:
            put = (put[0], NEVER)
        elements.append(Element(f"v{number}", *put, *take))
    return elements, [Empty(*interval()) for _ in range(empties)]


def is_linearizable(elements: list[Element], empties: list[Empty]) -> bool:
    """Search all orders: an operation may be next if no other remaining one had ended before it began."""
    operations = [(e.put_start, e.put_end, "put", n) for n, e in enumerate(elements)]
    operations += [
        (e.take_start, e.take_end, "take", n) for n, e in enumerate(elements) if e.take_start < NEVER
    ]
    operations += [(e.start, e.end, "empty", n) for n, e in enumerate(empties)]

    def possible(left: frozenset[int], queue: tuple[int, ...]) -> bool:
        if not left:
            return True
        for i in left:
            start, _, kind, number = operations[i]
            if any(operations[j][1] < start for j in left):
                continue
            if kind == "put":
                after = (*queue, number)
            elif kind == "take" and queue[:1] == (number,):
                after = queue[1:]
            elif kind == "empty" and not queue:
                after = queue
            else:
                continue
            if possible(left - {i}, after):
                return True
        return False

    return possible(frozenset(range(len(operations))), ())


@given(seed=st.integers(0, 2**32), values=st.integers(0, 4), empties=st.integers(0, 2))
def test_the_verdict_equals_that_of_a_search_through_all_orders(seed: int, values: int, empties: int) -> None:
    elements, answers = history(seed, values, empties, 40)
    found = linearize(elements, answers)
    if isinstance(found, Violation):
        assert not is_linearizable(elements, answers)
        assert not is_linearizable(list(found.elements), [found.empty] if found.empty else [])
    else:
        assert certified(found, elements, answers)


@given(seed=st.integers(0, 2**32), values=st.integers(2, 60))
def test_a_named_violation_is_minimal(seed: int, values: int) -> None:
    elements, answers = history(seed, values, 3, 1000)
    found = linearize(elements, answers)
    if isinstance(found, Violation) and len(found.elements) < 7:
        named, empty = list(found.elements), [found.empty] if found.empty else []
        assert not is_linearizable(named, empty)
        for left_out in range(len(named)):
            assert is_linearizable(named[:left_out] + named[left_out + 1 :], empty)


def test_a_linearizable_queue_has_a_certificate() -> None:
    """Two thousand values; each operation has a wide interval around its effect."""
    chance = random.Random(7)
    queue: list[int] = []
    put: dict[int, int] = {}
    take: dict[int, int] = {}
    empty = []
    for moment in range(10_000, 60_000, 10):
        if chance.random() < 0.5:
            queue.append(len(put))
            put[len(put)] = moment
        elif queue:
            take[queue.pop(0)] = moment
        else:
            empty.append(moment)
    marks = itertools.count(1)
    ends = {}
    for what, at in (("put", put), ("take", take)):
        for number, moment in at.items():
            ends[what, number] = moment - chance.randrange(3000), moment + chance.randrange(3000)
    unique = {}
    for key, (low, high) in ends.items():
        unique[key] = low * 10_000 + next(marks), high * 10_000 + next(marks)
    elements = [
        Element(str(n), *unique["put", n], *unique.get(("take", n), (NEVER, NEVER))) for n in sorted(put)
    ]
    answers = [Empty(m * 10_000 - 5, m * 10_000 + 9_999) for m in empty]
    found = linearize(elements, answers)
    assert not isinstance(found, Violation)
    assert certified(found, elements, answers)


ONE_AFTER_THE_OTHER = [Element("a", 0, 1, 4, 5), Element("b", 2, 3, 6, 7)]


@pytest.mark.parametrize(
    ("steps", "sound"),
    [
        ([(Kind.PUT, 0, 0), (Kind.PUT, 1, 2), (Kind.TAKE, 0, 4), (Kind.TAKE, 1, 6)], True),
        ([(Kind.PUT, 0, 0), (Kind.PUT, 1, 2), (Kind.TAKE, 1, 6), (Kind.TAKE, 0, 6)], False),
        ([(Kind.PUT, 0, 0), (Kind.PUT, 1, 2), (Kind.TAKE, 0, 4)], False),
        ([(Kind.PUT, 0, 0), (Kind.PUT, 1, 4), (Kind.TAKE, 0, 4), (Kind.TAKE, 1, 6)], False),
        ([(Kind.PUT, 0, 0), (Kind.TAKE, 0, 4), (Kind.PUT, 1, 3), (Kind.TAKE, 1, 6)], False),
        ([(Kind.PUT, 0, 0), (Kind.PUT, 0, 1), (Kind.PUT, 1, 2), (Kind.TAKE, 0, 4), (Kind.TAKE, 1, 6)], False),
    ],
)
def test_a_wrong_certificate_is_refused(steps: list[tuple[Kind, int, int]], *, sound: bool) -> None:
    assert certified(tuple(Step(*step) for step in steps), ONE_AFTER_THE_OTHER) is sound


def test_the_four_violations_are_named() -> None:
    taken_first = Element("a", 10, 11, 0, 1)
    assert linearize([taken_first]) == Violation("fresh", (taken_first,))
    overtaken = [Element("a", 0, 1, 8, 9), Element("b", 2, 3, 4, 5)]
    assert linearize(overtaken) == Violation("order", tuple(overtaken))
    never = [Element("a", 0, 1), Element("b", 2, 3, 4, 5)]
    assert linearize(never) == Violation("order", tuple(never))
    chain = [Element("a", 0, 1, 6, 7), Element("b", 2, 5, 10, 11), Element("c", 20, 21)]
    assert linearize(chain, [Empty(3, 9)]) == Violation("empty", tuple(chain[:2]), Empty(3, 9))
