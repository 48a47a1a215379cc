"""Whether the brokers of a cluster check accounts, and whether an account and its secret are right.

A broker is asked for its configuration, which changes nothing: without a signature, with a signature of
a secret that cannot be right, and with the given one. See docs/reference/protocol/access-control.md.
"""

import re
import secrets
from collections.abc import Callable
from enum import Enum
from typing import Final

from mqproof.impl.admin.admin import Admin, address_of
from mqproof.impl.admin.brokers import config
from mqproof.impl.client.model import ClientError, RefusalError
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import Address

BROKERS_MAX: Final = 16
"""The most brokers that are asked."""
_ACCESS_REFUSAL: Final = re.compile(r"(?:Acl|Authentication|Authorization)Exception\b")
"""In the remark of a refusal by access control. SYSTEM_ERROR alone has other reasons too."""

AdminOf = Callable[[Credentials | None], Admin]
"""Returns an administrator whose requests the account signs."""


class Protection(Enum):
    OPEN = "open"
    """The brokers that answer check no accounts."""
    ACCOUNTS = "accounts"
    """A broker refuses requests that no account has signed."""
    UNKNOWN = "unknown"
    """No broker answers."""


class AccountError(Exception):
    """The account cannot log in. The message says why."""


async def protection(admin: Admin) -> Protection:
    """Return whether the brokers check accounts. `admin` signs nothing."""
    found = Protection.UNKNOWN
    for broker in await _brokers(admin):
        try:
            await config(admin, broker)
        except RefusalError as error:
            if _is_about_access(error):
                return Protection.ACCOUNTS
        except ClientError:
            continue
        else:
            found = Protection.OPEN
    return found


async def check_account(admin_of: AdminOf, account: Credentials) -> None:
    """Check the account with every broker that checks accounts.

    Raises:
        AccountError: no broker confirms it, or one that answers does not.
        UnreachableError: the name server does not answer.
    """
    is_confirmed = False
    async with admin_of(None) as unsigned:
        brokers = await _brokers(unsigned)
        for broker in brokers:
            if await _answer(unsigned, broker) in ("", None):
                continue  # it checks no accounts, or does not answer
            is_confirmed |= await _confirms(admin_of, broker, account)
    if not is_confirmed:
        raise AccountError("no broker that checks accounts answers, so no login is possible now")


async def _confirms(admin_of: AdminOf, broker: Address, account: Credentials) -> bool:
    """Return whether the broker confirms the account; False if it does not answer. Raises AccountError."""
    wrong = []
    for _ in range(2):
        guess = Credentials(account.access_key, secrets.token_hex(16))
        async with admin_of(guess) as admin:
            wrong.append(await _answer(admin, broker))
    async with admin_of(account) as admin:
        given = await _answer(admin, broker)
    if given is None or None in wrong:
        return False
    if "" in wrong:
        raise AccountError(f"broker {broker} does not check the secret key of this account from here")
    # An account without the right to read this has another refusal than one with a wrong secret.
    if given and (given in wrong or wrong[0] != wrong[1]):
        raise AccountError("the access key or the secret key is wrong")
    return True


async def _answer(admin: Admin, broker: Address) -> str | None:
    """Return the broker's refusal; empty if it grants the request, None if it does not answer."""
    try:
        await config(admin, broker)
    except RefusalError as error:
        return str(error) if _is_about_access(error) else None
    except ClientError:
        return None
    return ""


def _is_about_access(error: RefusalError) -> bool:
    return error.code == ResponseCode.NO_PERMISSION or bool(_ACCESS_REFUSAL.search(str(error)))


async def _brokers(admin: Admin) -> list[Address]:
    info = await admin.cluster_info()
    masters: list[Address] = []
    others: list[Address] = []
    for _, data in sorted(info.broker_addr_table.items()):
        for id_, text in sorted(data.broker_addrs.items()):
            (masters if id_ == 0 else others).append(address_of(text))
    return (masters + others)[:BROKERS_MAX]
