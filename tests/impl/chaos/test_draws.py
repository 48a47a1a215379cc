"""The seed and the requests alone decide where faults act, with the planned frequency and limits."""

import pytest

from mqproof.impl.chaos import draws as module
from mqproof.impl.chaos.draws import CONSECUTIVE_MAX, Draws, Subject
from mqproof.impl.chaos.fault_table import Point
from mqproof.impl.chaos.plan import of_faults, parse

A, B = Subject("b", "T", "0"), Subject("b", "T", "1")


def fired(draws: Draws, subject: Subject, count: int, point: Point = Point.SEND) -> list[tuple[int, str]]:
    found = []
    for number in range(1, count + 1):
        if (firing := draws.draw(point, subject)) is not None:
            assert firing.number == number
            found.append((number, firing.name))
    return found


def of(*texts: str, seed: int = 1) -> Draws:
    return Draws(of_faults(texts, seed=seed))


def one(options: str, name: str = "send_busy") -> Draws:
    return Draws(parse(f'[[fault]]\nname = "{name}"\n{options}', "p"))


def test_other_streams_do_not_change_the_faults_of_a_stream() -> None:
    alone = fired(of("send_busy=0.1", "send_unavailable=0.1"), A, 500)
    together = of("send_busy=0.1", "send_unavailable=0.1")
    mixed: list[tuple[int, str]] = []
    for number in range(1, 501):
        if number % 3:
            together.draw(Point.SEND, B)
        if (firing := together.draw(Point.SEND, A)) is not None:
            mixed.append((number, firing.name))
    assert mixed == alone
    assert {name for _, name in alone} == {"send_busy", "send_unavailable"}


def test_another_seed_or_stream_has_other_faults() -> None:
    base = fired(of("send_busy=0.1"), A, 500)
    assert base == fired(of("send_busy=0.1"), A, 500)
    assert base != fired(of("send_busy=0.1", seed=2), A, 500)
    assert base != fired(of("send_busy=0.1"), B, 500)


@pytest.mark.parametrize("probability", [0.02, 0.1, 0.3])
def test_a_fault_acts_as_often_as_planned(probability: float) -> None:
    draws = of(f"send_busy={probability}")
    count = sum(len(fired(draws, Subject("b", "T", str(queue)), 100)) for queue in range(100))
    assert abs(count / 10_000 - probability) < 0.03


def test_never_and_always_are_exact_up_to_the_bound_of_consecutive_faults() -> None:
    assert fired(of("send_busy=0"), A, 100) == []
    numbers = [number for number, _ in fired(of("send_busy=1"), A, 60)]
    assert [number for number in range(1, 61) if number not in numbers] == list(
        range(CONSECUTIVE_MAX + 1, 61, CONSECUTIVE_MAX + 1)
    )


def test_skip_at_spacing_and_limit_choose_the_requests() -> None:
    def numbers(options: str) -> list[int]:
        return [number for number, _ in fired(one(options), A, 20)]

    assert numbers("probability = 1\nskip = 17") == [18, 19, 20]
    assert numbers("at = [3, 7]") == [3, 7]
    assert numbers("probability = 1\nspacing = 8") == [1, 10, 19]
    assert numbers("probability = 1\nlimit = 2") == [1, 2]


def test_a_fault_that_had_no_effect_does_not_count_for_the_limit() -> None:
    draws = one("probability = 1\nlimit = 1")
    firing = draws.draw(Point.SEND, A)
    assert firing is not None
    draws.had_no_effect(firing)
    assert draws.draw(Point.SEND, A) is not None
    assert draws.draw(Point.SEND, A) is None


def test_a_selected_topic_is_the_only_one() -> None:
    draws = one('probability = 1\ntopic = "T"')
    assert fired(draws, A, 1)
    assert not fired(draws, Subject("b", "U", "0"), 9)


def test_no_fault_acts_after_the_calm() -> None:
    draws = of("send_busy=1")
    draws.is_calm = True
    assert fired(draws, A, 9) == []


def test_a_fault_at_any_point_acts_on_sends_pulls_and_commits() -> None:
    draws = of("connection_cut=1")
    for point in (Point.SEND, Point.PULL, Point.COMMIT):
        assert draws.has(point)
        assert fired(draws, A, 1, point)
    assert not draws.has(Point.ROUTE)


def test_the_number_of_streams_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STREAMS_MAX", 3)
    draws = of("send_busy=0.5")
    for number in range(50):
        draws.draw(Point.SEND, Subject("b", f"T{number}"))
    assert len(draws._streams) == 4


def test_the_drawn_duration_is_within_its_range() -> None:
    draws = one("probability = 1\ndelay_ms = [10, 12]", "send_answer_delayed")
    found = {firing.delay_ms for _ in range(200) if (firing := draws.draw(Point.SEND, A))}
    assert found == {10, 11, 12}
