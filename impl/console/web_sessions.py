"""The sessions of browsers: signed cookies, accounts of those that logged in, notices, tokens of forms.

A cookie is `ID.EXPIRY.MAC`. Without a login it is all that exists of a session. A login adds an entry to a
bounded table of this process; no secret leaves it.
"""

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mqproof.impl.remoting.signing import Credentials

SESSION_S: Final = 8 * 3600
"""How long a session lasts at most."""
IDLE_S: Final = 30 * 60
"""How long a login lasts without a request."""
LOGINS_MAX: Final = 64
"""The most logins at one time; one more ends the one that was idle for longest."""
NOTICES_MAX: Final = 256
_COOKIE_CHARACTERS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class WebSession:
    id: str
    expires_s: int
    """When it ends, in seconds since the epoch."""
    account: Credentials | None = None
    """The account that logged in."""


@dataclass(slots=True)
class _Login:
    account: Credentials
    used_s: float


class WebSessions:
    """All sessions of one console. `now_s` returns the seconds since the epoch."""

    def __init__(self, now_s: Callable[[], float], secret: bytes | None = None) -> None:
        self._now_s = now_s
        self._secret = secret or secrets.token_bytes(32)
        self._logins: dict[str, _Login] = {}
        self._notices: dict[str, tuple[str, str]] = {}

    def new(self, account: Credentials | None = None) -> WebSession:
        """Begin a session under a new id."""
        session = WebSession(secrets.token_urlsafe(16), int(self._now_s() + SESSION_S), account)
        if account is not None:
            self._drop_idle()
            while len(self._logins) >= LOGINS_MAX:
                del self._logins[min(self._logins, key=lambda id_: self._logins[id_].used_s)]
            self._logins[session.id] = _Login(account, self._now_s())
        return session

    def cookie(self, session: WebSession) -> str:
        """Return the value of the session's cookie."""
        claim = f"{session.id}.{session.expires_s}"
        return f"{claim}.{self._mac('cookie', claim)}"

    def read(self, cookie: str) -> WebSession | None:
        """Return the session of a cookie; None for one that is not ours or has expired.

        A session whose login ended continues without an account.
        """
        claim, _, mac = cookie.rpartition(".")
        if len(cookie) > _COOKIE_CHARACTERS_MAX or not cookie.isascii():
            return None
        if not hmac.compare_digest(mac, self._mac("cookie", claim)):
            return None
        id_, _, expires = claim.partition(".")
        if int(expires) <= self._now_s():
            self.end(id_)
            return None
        self._drop_idle()
        login = self._logins.get(id_)
        if login is not None:
            login.used_s = self._now_s()
        return WebSession(id_, int(expires), login.account if login else None)

    def end(self, id_: str) -> None:
        """Forget the login and the notice of a session."""
        self._logins.pop(id_, None)
        self._notices.pop(id_, None)

    def form_token(self, session: WebSession) -> str:
        """Return the token that each form of the session has."""
        return self._mac("form", session.id)

    def is_form_token(self, session: WebSession, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.form_token(session).encode())

    def leave_notice(self, session: WebSession, tone: str, text: str) -> None:
        """Keep a line for the session's next page."""
        self._notices.pop(session.id, None)
        while len(self._notices) >= NOTICES_MAX:
            del self._notices[next(iter(self._notices))]
        self._notices[session.id] = (tone, text)

    def take_notice(self, session: WebSession) -> tuple[str, str] | None:
        """Return the kept line, with its tone, once."""
        return self._notices.pop(session.id, None)

    def _drop_idle(self) -> None:
        until_s = self._now_s() - IDLE_S
        for id_ in [id_ for id_, login in self._logins.items() if login.used_s < until_s]:
            self.end(id_)

    def _mac(self, purpose: str, text: str) -> str:
        return hmac.digest(self._secret, f"{purpose}|{text}".encode(), "sha256").hex()
