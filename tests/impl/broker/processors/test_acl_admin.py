"""Tests administration of accounts and white lists: each setting, and refusals that change nothing.

Source: docs/reference/protocol/access-control.md, "Access control".
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mqproof.impl.access.acl import AccountEntry, AclEntries
from mqproof.impl.broker.processors import acl_admin
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import DataVersion
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import (
    AccountRequest,
    AclVersionResponse,
    DeleteAccountRequest,
    WhiteAddressesRequest,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import run_simulated

CHANNEL: Any = object()
OLD = AccountEntry("old", "secret", "10.0.0.1", True, "PUB", "SUB", ["T=PUB"], ["G=SUB"])
OTHER = AccountEntry("other", "secret")


class File:
    """The file of accounts, in memory; it fails if `error` is set."""

    version = DataVersion(3, 5)

    def __init__(self, error: Exception | None = None) -> None:
        self.entries = AclEntries(["10.0.0.9"], [OLD, OTHER])
        self.error = error

    async def change(self, change: Callable[[AclEntries], AclEntries]) -> None:
        changed = change(self.entries)
        if self.error is not None:
            raise self.error
        self.entries = changed


def ask(processor: Any, header: headers.Header, file: File | None) -> None:
    services = SimpleNamespace(acl=file)
    answer = run_simulated(processor(services, new_request(0, headers.write(header)), CHANNEL))
    assert answer.code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("header", "account"),
    [
        (AccountRequest("new", "secret7"), AccountEntry("new", "secret7")),
        (
            AccountRequest("new", "secret7", "10.0.0.2", True, "DENY", "PUB", "T=PUB, U = SUB,,", ""),
            AccountEntry("new", "secret7", "10.0.0.2", True, "DENY", "PUB", ["T=PUB", "U = SUB"], []),
        ),
        (AccountRequest("old"), OLD),
        (
            AccountRequest("old", admin=False),
            AccountEntry("old", "secret", "10.0.0.1", False, "PUB", "SUB", ["T=PUB"], ["G=SUB"]),
        ),
        (
            AccountRequest("old", "secret7", "", topic_perms="", group_perms="G=PUB"),
            AccountEntry("old", "secret7", "", True, "PUB", "SUB", [], ["G=PUB"]),
        ),
    ],
)
def test_an_account_is_created_or_only_its_given_settings_are_changed(
    header: AccountRequest, account: AccountEntry
) -> None:
    file = File()
    ask(acl_admin.update_account, header, file)
    others = [OLD, OTHER] if account.access_key == "new" else [OTHER]
    assert file.entries.global_white_remote_addresses == ["10.0.0.9"]
    accounts = [one for one in file.entries.accounts if isinstance(one, AccountEntry)]
    assert sorted(accounts, key=str) == sorted([*others, account], key=str)


def test_an_account_is_deleted_and_the_others_stay() -> None:
    file = File()
    ask(acl_admin.delete_account, DeleteAccountRequest("old"), file)
    assert file.entries == AclEntries(["10.0.0.9"], [OTHER])


def test_the_white_list_is_replaced() -> None:
    file = File()
    ask(acl_admin.update_white_addresses, WhiteAddressesRequest("10.0.0.3,10.0.0.4"), file)
    assert file.entries == AclEntries(["10.0.0.3", "10.0.0.4"], [OLD, OTHER])


@pytest.mark.parametrize(
    ("processor", "header", "code", "remark"),
    [
        (
            acl_admin.update_account,
            AccountRequest("new"),
            ResponseCode.UPDATE_ACL_CONFIG_FAILED,
            "a new account new needs a secret key",
        ),
        (
            acl_admin.delete_account,
            DeleteAccountRequest("unknown"),
            ResponseCode.DELETE_ACL_CONFIG_FAILED,
            "there is no account unknown",
        ),
    ],
)
def test_a_change_of_no_account_is_refused(
    processor: Any, header: headers.Header, code: ResponseCode, remark: str
) -> None:
    file = File()
    with pytest.raises(RefusedError) as refused:
        ask(processor, header, file)
    assert (refused.value.code, refused.value.remark) == (code, remark)
    assert file.entries == AclEntries(["10.0.0.9"], [OLD, OTHER])


@pytest.mark.parametrize(
    ("processor", "header", "code"),
    [
        (acl_admin.update_account, AccountRequest("old"), ResponseCode.UPDATE_ACL_CONFIG_FAILED),
        (acl_admin.delete_account, DeleteAccountRequest("old"), ResponseCode.DELETE_ACL_CONFIG_FAILED),
        (
            acl_admin.update_white_addresses,
            WhiteAddressesRequest("10.0.0.3"),
            ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_FAILED,
        ),
    ],
)
@pytest.mark.parametrize(
    ("file", "remark"),
    [
        (None, "aclEnable is off: there are no accounts"),
        (File(OSError("the disk is full")), "the disk is full"),
        (File(ValueError("the secret key is short")), "the secret key is short"),
    ],
)
def test_a_change_that_is_not_written_is_refused_with_the_code_of_its_request(
    processor: Any, header: headers.Header, code: ResponseCode, file: File | None, remark: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        ask(processor, header, file)
    assert (refused.value.code, refused.value.remark) == (code, remark)


def test_the_version_of_the_rules_is_returned_with_the_names_of_the_broker() -> None:
    config = SimpleNamespace(name="broker-a", cluster="C")
    services: Any = SimpleNamespace(acl=File(), config=config, address="10.0.0.1:10911")
    answer: Any = acl_admin.version(services, new_request(0), CHANNEL)
    version = '{"counter":3,"timestamp":5}'
    found = headers.read(AclVersionResponse, answer.fields)
    assert found == AclVersionResponse(version, "broker-a", "10.0.0.1:10911", "C")
