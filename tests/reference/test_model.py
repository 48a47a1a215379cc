"""The parts of a reference model: actions and predicates by name, steps under a configuration."""

from collections.abc import Iterator
from dataclasses import dataclass

from mqproof.reference.model import Action, Model, by_name, named


@dataclass(frozen=True, slots=True)
class Counter:
    value: int = 0


def add(limit: int, state: Counter, step: int) -> Counter | None:
    """Disabled above the limit; the configuration is the limit."""
    return Counter(state.value + step) if state.value + step <= limit else None


def below_limit(limit: int, state: Counter) -> bool:
    return state.value <= limit


def never_goes_back(_limit: int, before: Counter, _action: str, after: Counter) -> bool:
    return before.value <= after.value


def choices(_limit: int, _state: Counter) -> Iterator[tuple[int]]:
    return iter(((1,),))


MODEL = Model(
    name="Counter",
    initial=lambda _limit: (Counter(),),
    actions=by_name(Action("Add", add, lambda _limit: ((1,), (2,)), choices)),
    from_constants=lambda constants: int(constants["Limit"]),
    from_tla=lambda _limit, variables: Counter(variables["value"]),
    operator=lambda _limit, name, parameters: (name, tuple(map(str, parameters))),
    invariants=named(below_limit),
    step_invariants=named(never_goes_back),
)


def test_predicates_have_the_names_of_the_catalogue() -> None:
    assert list(MODEL.invariants) == ["BelowLimit"]
    assert list(MODEL.step_invariants) == ["NeverGoesBack"]


def test_a_walk_takes_the_choices_and_an_exhaustive_one_the_whole_domain() -> None:
    assert list(MODEL.steps(2, Counter())) == [("Add", (1,), Counter(1))]
    assert list(MODEL.exhaustive().steps(2, Counter())) == [
        ("Add", (1,), Counter(1)),
        ("Add", (2,), Counter(2)),
    ]


def test_disabled_actions_are_no_steps() -> None:
    assert list(MODEL.exhaustive().steps(1, Counter())) == [("Add", (1,), Counter(1))]
