"""Tests what a console finds out about the accounts of brokers, at a broker with and without them."""

import asyncio
from pathlib import Path

import pytest

from mqproof.impl.admin.admin import UnreachableError
from mqproof.impl.client.model import RefusalError
from mqproof.impl.console import cluster_access
from mqproof.impl.console.cluster_access import AccountError, Protection, check_account, protection
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import Address
from tests.impl.console.desk import ACCOUNTS, ADMIN, READER, console_of, desk


def test_a_broker_without_accounts_is_open_and_confirms_no_account() -> None:
    async def run() -> None:
        async with desk() as d, d.console.admin_of(None) as admin:
            assert await protection(admin) is Protection.OPEN
            with pytest.raises(AccountError, match="no broker that checks accounts answers"):
                await check_account(d.console.admin_of, Credentials(*ADMIN))

    asyncio.run(run())


def test_a_broker_with_accounts_confirms_only_the_right_secret(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(accounts=ACCOUNTS, store=tmp_path) as d, d.console.admin_of(None) as admin:
            assert await protection(admin) is Protection.ACCOUNTS
            for account in (ADMIN, READER):  # one who may read the broker's state, and one who may not
                await check_account(d.console.admin_of, Credentials(*account))
                with pytest.raises(AccountError, match="the access key or the secret key is wrong"):
                    await check_account(d.console.admin_of, Credentials(account[0], "wrong"))
            with pytest.raises(AccountError, match="the access key or the secret key is wrong"):
                await check_account(d.console.admin_of, Credentials("nobody", "secret-of-admin"))

    asyncio.run(run())


def test_an_account_whose_secret_the_broker_does_not_check_cannot_log_in(tmp_path: Path) -> None:
    """Its whiteRemoteAddress has the address of the console: any secret would do."""

    async def run() -> None:
        async with desk(accounts=ACCOUNTS, store=tmp_path) as d:
            for secret in ("never-checked", "anything"):
                with pytest.raises(AccountError, match="does not check the secret key of this account"):
                    await check_account(d.console.admin_of, Credentials("from_here", secret))

    asyncio.run(run())


def test_a_refusal_for_another_reason_is_no_protection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Released brokers use SYSTEM_ERROR for refusals by access control, and for their own errors."""

    async def refused(*_: object) -> dict[str, str]:
        raise RefusalError("b refuses GET_BROKER_CONFIG: SYSTEM_ERROR: null", ResponseCode.SYSTEM_ERROR)

    monkeypatch.setattr(cluster_access, "config", refused)

    async def run() -> None:
        async with desk() as d, d.console.admin_of(None) as admin:
            assert await protection(admin) is Protection.UNKNOWN
            assert not await d.console.needs_login()
        async with desk(account=Credentials(*ADMIN)) as d:
            assert await d.console.needs_login()  # its samples may not be for everyone

    asyncio.run(run())


def test_without_a_name_server_nothing_is_known() -> None:
    async def run() -> None:
        console = console_of([Address("127.0.0.1", 1)])
        with pytest.raises(UnreachableError):
            await check_account(console.admin_of, Credentials(*ADMIN))
        with pytest.raises(UnreachableError):
            await console.needs_login()

    asyncio.run(run())
