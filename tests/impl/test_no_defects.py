"""Tests that a defect of a request processor fails the test in whose world it occurs."""

import pytest

from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.request_handler import error_answer
from tests.impl.no_defects import no_defects


@pytest.mark.parametrize("error", [TypeError("x"), AttributeError("x"), KeyError("x"), AssertionError("x")])
def test_an_error_that_no_input_may_cause_fails_the_test(error: Exception) -> None:
    with pytest.raises(AssertionError, match="x"), no_defects():
        error_answer(new_request(1), error)


def test_a_failing_disk_does_not_fail_the_test() -> None:
    with no_defects():
        error_answer(new_request(1), OSError("the disk is full"))
    with pytest.raises(ZeroDivisionError), no_defects():
        raise ZeroDivisionError
