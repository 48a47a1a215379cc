"""Tests the sessions of browsers: signatures, expiry, and bounds."""

import pytest

from mqproof.impl.console.web_sessions import IDLE_S, LOGINS_MAX, NOTICES_MAX, SESSION_S, WebSessions
from mqproof.impl.remoting.signing import Credentials

ACCOUNT = Credentials("key", "secret")


class Clock:
    def __init__(self) -> None:
        self.at_s = 1_000.0

    def __call__(self) -> float:
        return self.at_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> WebSessions:
    return WebSessions(clock)


def test_a_cookie_returns_its_session_and_has_no_secret(sessions: WebSessions) -> None:
    session = sessions.new(ACCOUNT)
    cookie = sessions.cookie(session)
    assert sessions.read(cookie) == session
    assert "secret" not in cookie


@pytest.mark.parametrize("change", ["id", "expiry", "mac", "empty", "long", "not ascii", "other key"])
def test_a_cookie_that_was_changed_is_none_of_ours(sessions: WebSessions, clock: Clock, change: str) -> None:
    id_, expiry, mac = sessions.cookie(sessions.new(ACCOUNT)).split(".")
    wrong = {
        "id": f"x{id_[1:]}.{expiry}.{mac}" if id_[0] != "x" else f"y{id_[1:]}.{expiry}.{mac}",
        "expiry": f"{id_}.{int(expiry) + 1}.{mac}",
        "mac": f"{id_}.{expiry}.{'0' * len(mac)}",
        "empty": "",
        "long": "a" * 10_000,
        "not ascii": f"{id_}.{expiry}.é",
        "other key": WebSessions(clock).cookie(sessions.new()),
    }
    assert sessions.read(wrong[change]) is None


def test_a_session_ends_after_its_time_and_a_login_when_it_is_idle(
    sessions: WebSessions, clock: Clock
) -> None:
    cookie = sessions.cookie(sessions.new(ACCOUNT))
    clock.at_s += IDLE_S - 1
    assert (found := sessions.read(cookie)) is not None
    assert found.account == ACCOUNT
    clock.at_s += IDLE_S + 1
    assert (found := sessions.read(cookie)) is not None
    assert found.account is None
    clock.at_s = 1_000 + SESSION_S
    assert sessions.read(cookie) is None


def test_a_login_that_ended_stays_ended(sessions: WebSessions) -> None:
    session = sessions.new(ACCOUNT)
    sessions.end(session.id)
    found = sessions.read(sessions.cookie(session))
    assert found is not None
    assert found.account is None


def test_one_login_too_many_ends_the_one_that_was_idle_for_longest(
    sessions: WebSessions, clock: Clock
) -> None:
    logins = []
    for _ in range(LOGINS_MAX):
        clock.at_s += 1
        logins.append(sessions.new(ACCOUNT))
    sessions.read(sessions.cookie(logins[0]))
    sessions.new(ACCOUNT)
    accounts = [found.account for each in logins[:3] if (found := sessions.read(sessions.cookie(each)))]
    assert accounts == [ACCOUNT, None, ACCOUNT]


def test_a_form_token_belongs_to_one_session(sessions: WebSessions) -> None:
    one, other = sessions.new(), sessions.new()
    token = sessions.form_token(one)
    assert sessions.is_form_token(one, token)
    assert not sessions.is_form_token(other, token)
    assert not sessions.is_form_token(one, "")
    assert not sessions.is_form_token(one, "é")
    assert token not in sessions.cookie(one)


def test_a_notice_is_shown_once_and_their_number_is_bounded(sessions: WebSessions) -> None:
    first = sessions.new()
    sessions.leave_notice(first, "good", "done")
    assert sessions.take_notice(first) == ("good", "done")
    assert sessions.take_notice(first) is None
    sessions.leave_notice(first, "good", "done")
    for _ in range(NOTICES_MAX):
        sessions.leave_notice(sessions.new(), "good", "other")
    assert sessions.take_notice(first) is None
