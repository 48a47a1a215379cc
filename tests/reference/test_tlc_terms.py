"""The translation to TLC: configurations are made from constants, and actions become TLA+ operators."""

from dataclasses import dataclass

import pytest

from mqproof.reference.tlc_terms import as_sets, configuration, operators


@dataclass(frozen=True, slots=True)
class Config:
    queues: tuple[str, ...]
    crashes_max: int


def test_a_set_in_the_constants_becomes_a_sorted_tuple_and_other_values_are_unchanged() -> None:
    from_constants = configuration(Config, queues="Queues", crashes_max="MaxCrashes")
    constants = {"Queues": frozenset({"q1", "q0"}), "MaxCrashes": 2, "Unused": True}
    assert from_constants(constants) == Config(("q0", "q1"), 2)


def test_a_missing_constant_is_an_error() -> None:
    with pytest.raises(KeyError, match="Queues"):
        configuration(Config, queues="Queues", crashes_max="MaxCrashes")({"MaxCrashes": 2})


def test_a_bounded_action_becomes_the_mc_operator_of_the_bounded_module() -> None:
    operator = operators(("Crash",))
    assert operator(None, "Crash", ("n1",)) == ("MCCrash", ('"n1"',))
    assert operator(None, "Flush", (3, True)) == ("Flush", ("3", "TRUE"))


def test_tuples_can_be_written_as_tla_sets() -> None:
    assert operators(arguments=as_sets)(None, "Route", (("a", "b"), 1)) == ("Route", ('{"a", "b"}', "1"))
