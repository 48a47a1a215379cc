"""The parts of a reference model: named actions and predicates, and steps under a configuration."""

from collections.abc import Iterator
from dataclasses import dataclass

from mqproof.reference.model import Action, Model, by_name, named


@dataclass(frozen=True, slots=True)
class Counter:
    value: int = 0


def add(limit: int, state: Counter, step: int) -> Counter | None:
    """Add `step`; disabled if the value would exceed the limit, which is the configuration."""
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


def test_predicates_are_named_in_camel_case_as_in_the_catalogue() -> None:
    assert list(MODEL.invariants) == ["BelowLimit"]
    assert list(MODEL.step_invariants) == ["NeverGoesBack"]


def test_a_model_steps_over_its_choices_and_an_exhaustive_model_over_the_domain() -> None:
    assert list(MODEL.steps(2, Counter())) == [("Add", (1,), Counter(1))]
    assert list(MODEL.exhaustive().steps(2, Counter())) == [
        ("Add", (1,), Counter(1)),
        ("Add", (2,), Counter(2)),
    ]


def test_disabled_actions_give_no_steps() -> None:
    assert list(MODEL.exhaustive().steps(1, Counter())) == [("Add", (1,), Counter(1))]
