"""Tests the page of accounts: users and permissions, their changes, and brokers without accounts."""

import asyncio
from pathlib import Path
from typing import Any

from tests.impl.console.desk import ACCOUNTS, ADMIN, READER, Desk, desk


async def logged_in(d: Desk, account: tuple[str, str] = ADMIN) -> None:
    assert (await d.log_in(account)).status_code == 303


def test_a_user_is_created_gets_permissions_and_is_deleted(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(accounts=ACCOUNTS, store=tmp_path, allow_changes=True) as d:
            await logged_in(d)
            text = await d.post("/accounts/user", user="orders-app", password="first-secret-key")
            assert "User orders-app is created at 127.0.0.1:" in text
            assert "orders-app Normal enable" in text
            text = await d.post("/accounts/user", user="orders-app", type="Super")
            assert "User orders-app is changed at 127.0.0.1:" in text
            assert "orders-app Super enable" in text
            refused = await d.post("/accounts/user", status=403, user="orders-app", state="disable")
            assert "user status 'disable' is not supported: delete the user" in refused
            assert "first-secret" not in await d.html("/accounts")
            await d.post("/accounts/user", user="orders-app", type="Normal")

            permission: dict[str, Any] = {"user": "orders-app", "resource": "Topic:Orders"}
            text = await d.post("/accounts/permit", **permission, actions="Pub", decision="Allow")
            assert "orders-app: Allow Pub of Topic:Orders." in text
            assert "orders-app Topic:Orders Pub Allow" in text
            text = await d.post("/accounts/permit", **permission, actions="Pub,Sub", decision="Deny")
            assert "orders-app Topic:Orders Pub, Sub Deny" in text
            text = await d.post("/accounts/withdraw", **permission)
            assert "orders-app has no permissions for Topic:Orders." in text
            assert "Deny" not in text.partition("Permissions")[2].partition("Create or change")[0]

            wrong = await d.post("/accounts/delete-user", status=400, user="orders-app", confirm="orders")
            assert "Confirm is not the name of the user" in wrong
            text = await d.post("/accounts/delete-user", user="orders-app", confirm="orders-app")
            assert "User orders-app is deleted." in text

    asyncio.run(run())


def test_a_form_without_a_password_or_a_resource_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(accounts=ACCOUNTS, store=tmp_path, allow_changes=True) as d:
            await logged_in(d)
            assert "Password is empty, and user new is new at" in await d.post(
                "/accounts/user", status=400, user="new"
            )
            assert "Topic:NAME, Group:NAME, Topic:* or Group:* expected" in await d.post(
                "/accounts/permit", status=400, user="a", resource="Orders"
            )

    asyncio.run(run())


def test_an_ordinary_account_sees_no_accounts(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(accounts=ACCOUNTS, store=tmp_path) as d:
            await logged_in(d, READER)
            text = await d.get("/accounts")
            assert "Accounts are not known: 127.0.0.1:" in text
            assert "Create or change a user" not in text

    asyncio.run(run())


def test_brokers_without_access_control_say_so() -> None:
    async def run() -> None:
        async with desk(allow_changes=True) as d:
            text = await d.get("/accounts")
            assert "Accounts are not known: 127.0.0.1:" in text
            assert "aclEnable is off: there are no accounts" in text
            assert "Create or change a user" not in text

    asyncio.run(run())
