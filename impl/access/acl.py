"""The accounts of plain_acl.yml and the rules that they define. Pure functions.

See docs/reference/protocol/access-control.md, "Accounts" and "Permissions".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from mqproof.impl.access.permissions import (
    ANY,
    DENY,
    PERMISSION_NAMES,
    PERMISSIONS,
    Caller,
    Kind,
    Need,
    TopicAt,
    no_messages,
    permission_of,
)
from mqproof.impl.access.white_list import Match, white_list
from mqproof.impl.remoting import account_file
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import UNIQUE_KEY_QUERY
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.remoting.signing import ACCESS_KEY, is_signed_with
from mqproof.impl.remoting.topic_names import NOT_FOR_CLIENTS
from mqproof.impl.runtime.properties import ConfigError

_TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
_V5: Final = 413
"""The first client version that receives NO_PERMISSION; older clients receive SYSTEM_ERROR."""

_KEY_CHARACTERS_MIN: Final = 7


class AccountEntry(msgspec.Struct, rename="camel", omit_defaults=True):
    """One entry of `accounts` in the file."""

    access_key: str
    secret_key: str
    white_remote_address: str = ""
    admin: bool = False
    default_topic_perm: str = ""
    default_group_perm: str = ""
    topic_perms: list[str] | str = []
    group_perms: list[str] | str = []


class AclEntries(msgspec.Struct, rename="camel"):
    """The content of the file."""

    global_white_remote_addresses: list[str] | str = []
    accounts: list[AccountEntry] | str = []


@dataclass(frozen=True, slots=True)
class Account:
    access_key: str
    secret_key: str = field(repr=False)
    is_white: Match = field(repr=False)
    is_admin: bool
    defaults: Mapping[Kind, int]
    permissions: Mapping[Kind, Mapping[str, int]]

    def allows(self, need: Need) -> bool:
        listed = self.permissions[need.kind]
        if self.is_admin and not any(self.permissions.values()):
            return True
        # The broker's own topics hold messages of all topics, so the default does not apply to them.
        default = DENY if need.name in NOT_FOR_CLIENTS else self.defaults[need.kind]
        granted = listed.get(need.name, default)
        return not granted & DENY and bool(granted & (need.permission | ANY))


@dataclass(frozen=True, slots=True)
class Rules:
    is_white: Match
    accounts: Mapping[str, Account]

    def check(self, request: Command, ip: str, topic_at: TopicAt = no_messages) -> None:
        """Check whether a request is allowed from this address; raises RefusedError otherwise.

        Raises BodyError for a body that cannot be read.
        """
        permission = PERMISSIONS.get(request.code)
        if self.is_white(ip) or permission is Caller.ANYONE:
            return
        key = request.fields.get(ACCESS_KEY)
        account = self.accounts.get(key or "")
        if not key:
            raise _refusal(request, "the request has no access key")
        if account is None:
            raise _refusal(request, f"access key {key} is not known")
        if account.is_white(ip):
            return
        if not _is_signed(request, account):
            raise _refusal(request, f"the signature is not that of access key {key}")
        if permission is None:
            raise _refusal(request, f"request code {request.code} has no permission")
        if isinstance(permission, Caller):
            if not account.is_admin:
                raise _refusal(request, f"access key {key} does not belong to an administrator")
            return
        for need in permission(request, topic_at):
            if need.name != _TRACE_TOPIC and not account.allows(need):
                what = f"{_shown(need)} for {need.kind.value} {need.name}"
                raise _refusal(request, f"access key {key} has no permission {what}")


def parse(text: str, where: str) -> tuple[AclEntries, Rules]:
    """Parse a plain_acl.yml; return its entries and the rules that they define. `where` names the file.

    Raises:
        ConfigError: the text is not YAML or has another structure; the message is one line.
    """
    try:
        entries = msgspec.convert(account_file.read_yaml(text) or {}, AclEntries, strict=False)
        return entries, rules(entries)
    except ValueError as error:
        raise ConfigError(f"{where}: {account_file.problem_of(error)}") from None


def rules(entries: AclEntries) -> Rules:
    """Return the rules of the entries.

    Raises:
        ValueError: a permission or an address is invalid, a key is too short, or an account occurs twice.
    """
    accounts = {}
    for entry in _listed(entries.accounts):
        if min(len(entry.access_key), len(entry.secret_key)) < _KEY_CHARACTERS_MIN:
            raise ValueError(
                f"accessKey {entry.access_key}: it and secretKey need at least "
                f"{_KEY_CHARACTERS_MIN} characters"
            )
        if entry.access_key in accounts:
            raise ValueError(f"accessKey {entry.access_key} is defined twice")
        accounts[entry.access_key] = Account(
            access_key=entry.access_key,
            secret_key=entry.secret_key,
            is_white=white_list(entry.white_remote_address),
            is_admin=entry.admin,
            defaults={
                Kind.TOPIC: permission_of(entry.default_topic_perm),
                Kind.GROUP: permission_of(entry.default_group_perm),
            },
            permissions={
                Kind.TOPIC: _permissions(entry.topic_perms),
                Kind.GROUP: _permissions(entry.group_perms),
            },
        )
    white = [white_list(pattern) for pattern in _listed(entries.global_white_remote_addresses)]
    return Rules(lambda ip: any(matches(ip) for matches in white), accounts)


# Helper functions.


def _is_signed(request: Command, account: Account) -> bool:
    if is_signed_with(account.secret_key, request):
        return True
    # Some releases sign this field and some do not.
    is_query = request.code == RequestCode.QUERY_MESSAGE and UNIQUE_KEY_QUERY in request.fields
    return is_query and is_signed_with(account.secret_key, request, UNIQUE_KEY_QUERY)


def _refusal(request: Command, remark: str) -> RefusedError:
    code = ResponseCode.NO_PERMISSION if request.version >= _V5 else ResponseCode.SYSTEM_ERROR
    return RefusedError(code, f"AclException: {remark}")


def _shown(need: Need) -> str:
    return "|".join(name for name, bit in PERMISSION_NAMES.items() if need.permission & bit)


def _permissions(listed: list[str] | str) -> dict[str, int]:
    found = {}
    for entry in _listed(listed):
        name, sign, permission = entry.rpartition("=")
        if not (sign and name.strip()):
            raise ValueError(f"permission {entry!r}, NAME=PERMISSION expected")
        found[name.strip()] = permission_of(permission)
    return found


def _listed(value: Any) -> Any:
    """Return the list of the file; an empty value, which is read as an empty text, is an empty list."""
    if isinstance(value, str):
        if value:
            raise ValueError("a text, a list expected")
        return []
    return value
