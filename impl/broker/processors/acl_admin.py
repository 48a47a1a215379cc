"""Administration of accounts and white lists.

See docs/reference/protocol/access-control.md, "Access control".
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from mqproof.impl.access import white_list
from mqproof.impl.access.acl import AccountEntry, AclEntries
from mqproof.impl.access.acl_file import AclFile
from mqproof.impl.broker.services import Processor, Services
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    AccountRequest,
    AclVersionResponse,
    DeleteAccountRequest,
    WhiteAddressesRequest,
)
from mqproof.impl.remoting.request_handler import RefusedError


async def update_account(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Create an account, or change the fields given in the request; answer after it is on disk."""
    failed = ResponseCode.UPDATE_ACL_CONFIG_FAILED
    header = headers.read(AccountRequest, request.fields)
    await _change(services, failed, lambda entries: _with_account(entries, header))
    return request.answer(ResponseCode.SUCCESS)


async def delete_account(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Delete an account."""
    key = headers.read(DeleteAccountRequest, request.fields).access_key

    def without(entries: AclEntries) -> AclEntries:
        left = [entry for entry in _accounts(entries) if entry.access_key != key]
        if len(left) == len(entries.accounts):
            raise ValueError(f"there is no account {key}")
        return msgspec.structs.replace(entries, accounts=left)

    await _change(services, ResponseCode.DELETE_ACL_CONFIG_FAILED, without)
    return request.answer(ResponseCode.SUCCESS)


async def update_white_addresses(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Replace the list of addresses that need no account."""
    header = headers.read(WhiteAddressesRequest, request.fields)
    white = white_list.separate(header.global_white_addrs)
    failed = ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_FAILED
    await _change(
        services,
        failed,
        lambda entries: msgspec.structs.replace(entries, global_white_remote_addresses=white),
    )
    return request.answer(ResponseCode.SUCCESS)


def version(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the version of the access rules in use."""
    text = java_json.write(_file(services, ResponseCode.SYSTEM_ERROR).version).decode()
    config = services.config
    response = AclVersionResponse(text, config.name, str(services.address), config.cluster)
    return request.answer(ResponseCode.SUCCESS, headers.write(response))


def _with_account(entries: AclEntries, header: AccountRequest) -> AclEntries:
    known = {entry.access_key: entry for entry in _accounts(entries)}
    old = known.get(header.access_key)
    if old is None and header.secret_key is None:
        raise ValueError(f"a new account {header.access_key} needs a secret key")
    given: dict[str, Any] = {
        "secret_key": header.secret_key,
        "white_remote_address": header.white_remote_address,
        "admin": header.admin,
        "default_topic_perm": header.default_topic_perm,
        "default_group_perm": header.default_group_perm,
        "topic_perms": _parts(header.topic_perms),
        "group_perms": _parts(header.group_perms),
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if old is not None:
        known[header.access_key] = msgspec.structs.replace(old, **changes)
    else:
        known[header.access_key] = AccountEntry(header.access_key, **changes)
    return msgspec.structs.replace(entries, accounts=list(known.values()))


def _accounts(entries: AclEntries) -> list[AccountEntry]:
    return [entry for entry in entries.accounts if isinstance(entry, AccountEntry)]


def _parts(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _file(services: Services, code: ResponseCode) -> AclFile:
    if services.acl is None:
        raise RefusedError(code, "aclEnable is off: there are no accounts")
    return services.acl


async def _change(
    services: Services, failed: ResponseCode, change: Callable[[AclEntries], AclEntries]
) -> None:
    try:
        await _file(services, failed).change(change)
    except (ValueError, OSError) as error:
        raise RefusedError(failed, str(error)) from None


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: update_account,
    RequestCode.DELETE_ACL_CONFIG: delete_account,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: update_white_addresses,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: version,
}
