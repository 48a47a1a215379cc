"""The login with an account of the brokers, and the logout."""

import math

from mqproof.impl.console.cluster_access import AccountError, Protection, check_account
from mqproof.impl.console.page_parts import Field, Form, Note, Page
from mqproof.impl.console.visit import Visit
from mqproof.impl.remoting.signing import Credentials

_NO_ACCOUNTS = (
    "The brokers of this cluster check no accounts, so no login is possible. Other machines can reach this "
    "console: it shows nothing without a login. Turn on aclEnable at the brokers, or start the console with "
    "--host 127.0.0.1."
)


async def login_form(visit: Visit, problem: str = "", status: int = 200) -> Page:
    """Return the page that asks for an account."""
    if await visit.console.protection() is Protection.OPEN:
        return Page("Log in", "", [Note("bad", _NO_ACCOUNTS)], status=403)
    fields = [
        Field("access_key", "Access key", is_required=True, most=128, autocomplete="username"),
        Field(
            "secret_key",
            "Secret key",
            type="password",
            is_required=True,
            most=128,
            autocomplete="current-password",
            hint="A broker checks a signature that it makes. The key is not sent to the cluster.",
        ),
    ]
    parts = [Note("bad", problem)] if problem else []
    form = Form(
        "Account of the cluster",
        "/login",
        fields,
        "Log in",
        note="The brokers require an account, as in plain_acl.yml. The pages have the rights of the account.",
    )
    return Page("Log in", "", [*parts, form], status=status)


async def check(visit: Visit) -> Credentials | Page:
    """Return the account of the form if the brokers confirm it, otherwise the page that says why not.

    Raises:
        UnreachableError: the name server does not answer.
    """
    limit = visit.console.login_limit
    if wait_s := limit.wait_s():
        text = f"Too many failed logins. Wait {math.ceil(wait_s)} s, then try again."
        return await login_form(visit, text, 429)
    account = Credentials(
        visit.values.required("access_key", most=128), visit.values.required("secret_key", most=128)
    )
    limit.failed()
    try:
        await check_account(visit.console.admin_of, account)
    except AccountError as error:
        return await login_form(visit, f"{str(error)[:1].upper()}{str(error)[1:]}.", 403)
    limit.succeeded()
    return account
