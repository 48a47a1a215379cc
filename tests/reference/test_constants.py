"""The constants of a TLC configuration are read as Python values."""

from mqproof.reference.constants import constants
from tests.reference.test_equiv import SMALL


def test_the_constants_of_a_configuration_are_read() -> None:
    assert constants(SMALL)["Messages"] == frozenset({"m1"})
    assert constants(SMALL)["MaxCrashes"] == 1
