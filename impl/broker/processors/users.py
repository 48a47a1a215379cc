"""Administration of accounts as users and policies, with the requests of RocketMQ 5.

See docs/reference/protocol/access-control.md, "Users and policies".
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET

from mqproof.impl.access import policies
from mqproof.impl.access.acl import AccountEntry, AclEntries
from mqproof.impl.access.acl_file import AclFile
from mqproof.impl.broker.services import Processor, Services
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import SubjectPolicies, User
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    DeletePolicyRequest,
    ListPoliciesRequest,
    ListUsersRequest,
    SubjectRequest,
    UserRequest,
)
from mqproof.impl.remoting.request_handler import RefusedError

_SUPER: Final = "Super"
_NORMAL: Final = "Normal"


async def create_user(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Create an account; answer after it is on disk."""
    name = headers.read(UserRequest, request.fields).username
    user = java_json.read(User, request.body)

    def change(entries: AclEntries) -> AclEntries:
        if name in _accounts(entries):
            raise ValueError(f"user {name} exists already")
        if not user.password:
            raise ValueError(f"user {name} needs a password")
        new = _with_changes(AccountEntry(name, user.password), user)
        return msgspec.structs.replace(entries, accounts=[*_accounts(entries).values(), new])

    await _change(services, change)
    return request.answer(ResponseCode.SUCCESS)


async def update_user(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Change the password or the type of an account; answer after the change is on disk."""
    name = headers.read(UserRequest, request.fields).username
    user = java_json.read(User, request.body)
    await _change_account(services, name, lambda account: _with_changes(account, user))
    return request.answer(ResponseCode.SUCCESS)


async def delete_user(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Delete an account; an unknown one is deleted already."""
    name = headers.read(UserRequest, request.fields).username
    await _change(
        services,
        lambda entries: msgspec.structs.replace(
            entries, accounts=[each for each in _accounts(entries).values() if each.access_key != name]
        ),
    )
    return request.answer(ResponseCode.SUCCESS)


def get_user(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return an account without its password. The body is empty if there is none of this name."""
    name = headers.read(UserRequest, request.fields).username
    account = _accounts(_file(services).entries).get(name)
    body = b"" if account is None else java_json.write(_shown(account), standard=True)
    return request.answer(ResponseCode.SUCCESS, body=body)


def list_users(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the accounts whose names contain the filter, without their passwords."""
    part = headers.read(ListUsersRequest, request.fields).filter
    accounts = _accounts(_file(services).entries)
    users = [_shown(accounts[name]) for name in sorted(accounts) if part in name]
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(users, standard=True))


async def grant(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Give an account the permissions of the policies; answer after the change is on disk."""
    subject = headers.read(SubjectRequest, request.fields).subject
    granted = java_json.read(SubjectPolicies, request.body).policies
    await _change_account(services, _user_of(subject), lambda account: policies.granted(account, granted))
    return request.answer(ResponseCode.SUCCESS)


async def revoke(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Take permissions from an account; answer after the change is on disk."""
    header = headers.read(DeletePolicyRequest, request.fields)
    name, resource = _user_of(header.subject), header.resource or None
    await _change_account(services, name, lambda account: policies.revoked(account, resource))
    return request.answer(ResponseCode.SUCCESS)


def get_policies(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the permissions of an account as a policy. The body is empty if it has none."""
    name = _user_of(headers.read(SubjectRequest, request.fields).subject)
    account = _accounts(_file(services).entries).get(name)
    if account is None:
        raise _refusal(f"there is no user {name}")
    found = policies.policies_of(account)
    body = java_json.write(found, standard=True) if found.policies else b""
    return request.answer(ResponseCode.SUCCESS, body=body)


def list_policies(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the permissions of all accounts that the filters select."""
    header = headers.read(ListPoliciesRequest, request.fields)
    accounts = _accounts(_file(services).entries)
    listed = [
        policies.policies_of(accounts[name], header.resource_filter)
        for name in sorted(accounts)
        if header.subject_filter in name
    ]
    body = java_json.write([each for each in listed if each.policies], standard=True)
    return request.answer(ResponseCode.SUCCESS, body=body)


def _with_changes(account: AccountEntry, user: User) -> AccountEntry:
    if user.user_status is not UNSET and user.user_status.lower() != "enable":
        raise ValueError(f"user status {user.user_status!r} is not supported: delete the user")
    if user.user_type is not UNSET:
        types = {_SUPER.lower(): True, _NORMAL.lower(): False}
        if (is_admin := types.get(user.user_type.lower())) is None:
            raise ValueError(f"user type {user.user_type!r}, {_SUPER} or {_NORMAL} expected")
        account = msgspec.structs.replace(account, admin=is_admin)
    if user.password is not UNSET:
        account = msgspec.structs.replace(account, secret_key=user.password)
    return account


def _shown(account: AccountEntry) -> User:
    return User(account.access_key, user_type=_SUPER if account.admin else _NORMAL, user_status="enable")


def _accounts(entries: AclEntries) -> dict[str, AccountEntry]:
    return {entry.access_key: entry for entry in entries.accounts if isinstance(entry, AccountEntry)}


def _user_of(subject: str) -> str:
    try:
        return policies.user_of(subject)
    except ValueError as error:
        raise _refusal(str(error)) from None


def _refusal(remark: str) -> RefusedError:
    return RefusedError(ResponseCode.NO_PERMISSION, remark)  # as RocketMQ 5 answers


def _file(services: Services) -> AclFile:
    if services.acl is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "aclEnable is off: there are no accounts")
    return services.acl


async def _change(services: Services, change: Callable[[AclEntries], AclEntries]) -> None:
    try:
        await _file(services).change(change)
    except (ValueError, OSError) as error:
        raise _refusal(str(error)) from None


async def _change_account(
    services: Services, name: str, change: Callable[[AccountEntry], AccountEntry]
) -> None:
    def changed(entries: AclEntries) -> AclEntries:
        accounts = _accounts(entries)
        if name not in accounts:
            raise ValueError(f"there is no user {name}")
        accounts[name] = change(accounts[name])
        return msgspec.structs.replace(entries, accounts=list(accounts.values()))

    await _change(services, changed)


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.AUTH_CREATE_USER: create_user,
    RequestCode.AUTH_UPDATE_USER: update_user,
    RequestCode.AUTH_DELETE_USER: delete_user,
    RequestCode.AUTH_GET_USER: get_user,
    RequestCode.AUTH_LIST_USER: list_users,
    RequestCode.AUTH_CREATE_ACL: grant,
    RequestCode.AUTH_UPDATE_ACL: grant,
    RequestCode.AUTH_DELETE_ACL: revoke,
    RequestCode.AUTH_GET_ACL: get_policies,
    RequestCode.AUTH_LIST_ACL: list_policies,
}
