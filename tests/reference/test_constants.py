"""The constants of a TLC configuration become Python values."""

from mqproof.reference.constants import constants
from tests.reference.equivalence.test_equiv import SMALL


def test_sets_and_numbers_in_a_configuration_become_python_values() -> None:
    assert constants(SMALL)["Messages"] == frozenset({"m1"})
    assert constants(SMALL)["MaxCrashes"] == 1
