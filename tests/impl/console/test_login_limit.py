"""Tests the limit of failed logins."""

from mqproof.impl.console.login_limit import ATTEMPTS_MAX, WINDOW_S, LoginLimit


def test_after_many_failures_the_next_attempt_waits() -> None:
    now_s = 0.0
    limit = LoginLimit(lambda: now_s)
    for number in range(ATTEMPTS_MAX):
        assert limit.wait_s() == 0
        now_s = float(number)
        limit.failed()
    assert limit.wait_s() == WINDOW_S - now_s
    now_s = WINDOW_S
    assert limit.wait_s() == 0
    limit.failed()
    assert limit.wait_s() == 1  # the second failure was one second after the first


def test_logins_that_succeed_are_not_limited() -> None:
    limit = LoginLimit(lambda: 0.0)
    for _ in range(3 * ATTEMPTS_MAX):
        limit.failed()
        limit.succeeded()
    assert limit.wait_s() == 0
