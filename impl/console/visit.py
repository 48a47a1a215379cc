"""What a page gets: the console that serves it, and the request of a browser."""

from dataclasses import dataclass
from typing import Final

from mqproof.impl.admin.admin import Admin
from mqproof.impl.client.model import ClientError
from mqproof.impl.console.cluster_access import Protection, protection
from mqproof.impl.console.config import ConsoleConfig
from mqproof.impl.console.form_values import FormValues
from mqproof.impl.console.login_limit import LoginLimit
from mqproof.impl.console.sampler import Sampler
from mqproof.impl.console.web_sessions import WebSession, WebSessions
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.runtime import Runtime

PROTECTION_S: Final = 15.0
"""How long it counts as known whether the brokers check accounts."""


class Console:
    """The state of one console: its settings, the sessions of browsers, and the samples."""

    def __init__(self, config: ConsoleConfig, runtime: Runtime) -> None:
        self.config = config
        self.runtime = runtime
        self.sessions = WebSessions(self.now_s)
        self.sampler = Sampler(lambda: self.admin_of(config.account), self.now_s, self.may_sample)
        self.login_limit = LoginLimit(self.now_s)
        self._protection = Protection.UNKNOWN
        self._protection_s = float("-inf")

    def now_s(self) -> float:
        """Return the seconds since the epoch."""
        return self.runtime.clock.now_us() / 1e6

    def admin_of(self, account: Credentials | None) -> Admin:
        """Return an administrator with connections of its own, whose requests the account signs."""
        return Admin(self.config.name_servers, self.runtime, account)

    async def needs_login(self) -> bool:
        """Return whether pages are only for those that logged in.

        Raises:
            UnreachableError: nothing is known yet, because no server answers.
        """
        if not self.config.needs_login:
            return False
        if self.config.is_public:
            return True
        found = await self.protection()
        # The account of the console may have sampled what is not for everyone.
        is_unsure = found is Protection.UNKNOWN and self.config.account is not None
        return found is Protection.ACCOUNTS or is_unsure

    async def may_sample(self) -> bool:
        """Return whether the console has an account for its samples, if the brokers need one."""
        try:
            return self.config.account is not None or await self.protection() is not Protection.ACCOUNTS
        except ClientError:
            return True  # the sampler then notes why no server answers

    async def protection(self) -> Protection:
        """Return whether the brokers check accounts: what was found last, if no broker answers now."""
        if self.now_s() - self._protection_s >= PROTECTION_S:
            try:
                async with self.admin_of(None) as admin:
                    found = await protection(admin)
            except ClientError:
                if self._protection is Protection.UNKNOWN:
                    raise
                return self._protection
            if found is not Protection.UNKNOWN:
                self._protection, self._protection_s = found, self.now_s()
        return self._protection


@dataclass(frozen=True, slots=True)
class Visit:
    """One request: its values, and the session of its browser."""

    console: Console
    session: WebSession
    values: FormValues
    account: Credentials | None
    """The account whose rights the page has."""

    @property
    def allows_changes(self) -> bool:
        return self.console.config.allow_changes

    def admin(self) -> Admin:
        """Return connections for this request."""
        return self.console.admin_of(self.account)
