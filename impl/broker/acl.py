"""Access control: the accounts of plain_acl.yml and the rules that they define. Pure functions.

See docs/reference/protocol/access-control.md, "Accounts" and "Permissions".
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import msgspec
import yaml

from mqproof.impl.broker.white_list import Match, white_list
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import Heartbeat, QueueLocks
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import UNIQUE_KEY_QUERY
from mqproof.impl.remoting.message import RETRY_PREFIX
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.remoting.signing import ACCESS_KEY, is_signed_with
from mqproof.impl.runtime.properties import ConfigError

DENY: Final = 1
ANY: Final = 2
PUB: Final = 4
SUB: Final = 8

_PERMISSIONS: Final = {"DENY": DENY, "ANY": ANY, "PUB": PUB, "SUB": SUB}
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


class Kind(Enum):
    TOPIC = "topic"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Need:
    """A permission that a request needs."""

    kind: Kind
    name: str
    permission: int


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
        granted = listed.get(need.name, self.defaults[need.kind])
        return not granted & DENY and bool(granted & (need.permission | ANY))


@dataclass(frozen=True, slots=True)
class Rules:
    is_white: Match
    accounts: Mapping[str, Account]

    def check(self, request: Command, ip: str) -> None:
        """Check whether a request is allowed from this address; raises RefusedError otherwise."""
        if self.is_white(ip):
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
        if request.code in _FOR_ADMINISTRATORS and not account.is_admin:
            raise _refusal(request, f"access key {key} does not belong to an administrator")
        for need in needs(request):
            if need.name != _TRACE_TOPIC and not account.allows(need):
                what = "PUB" if need.permission == PUB else "SUB"
                remark = f"access key {key} has no permission {what} for {need.kind.value} {need.name}"
                raise _refusal(request, remark)


def parse(text: str, where: str) -> tuple[AclEntries, Rules]:
    """Parse a plain_acl.yml; return its entries and the rules that they define. `where` names the file.

    Raises:
        ConfigError: the text is not YAML or has another structure; the message is one line.
    """
    try:
        # Read every scalar as text: a key of digits is not a number.
        loaded: Any = yaml.load(text, Loader=yaml.BaseLoader) or {}
        entries = msgspec.convert(loaded, AclEntries, strict=False)
        return entries, rules(entries)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{where}: {' '.join(str(error).split())}") from None


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
                Kind.TOPIC: _permission(entry.default_topic_perm),
                Kind.GROUP: _permission(entry.default_group_perm),
            },
            permissions={
                Kind.TOPIC: _permissions(entry.topic_perms),
                Kind.GROUP: _permissions(entry.group_perms),
            },
        )
    white = [white_list(pattern) for pattern in _listed(entries.global_white_remote_addresses)]
    return Rules(lambda ip: any(matches(ip) for matches in white), accounts)


def needs(request: Command) -> Iterator[Need]:
    """Yield the permissions that a request needs.

    Requests whose code needs no permission yield none. Raises BodyError for a body that cannot be read.
    """
    work = _NEEDS.get(request.code)
    if work is not None:
        yield from work(request)


# Needed permissions by request code.


def _topic(name: str, permission: int) -> Need:
    """Return the needed permission for a topic; a retry topic needs permission SUB for its group."""
    if name.startswith(RETRY_PREFIX):
        return Need(Kind.GROUP, name.removeprefix(RETRY_PREFIX), SUB)
    return Need(Kind.TOPIC, name, permission)


def _of_fields(*, topic: str = "", group: str = "", permission: int = SUB) -> Callable[[Command], list[Need]]:
    def found(request: Command) -> list[Need]:
        fields = request.fields
        wanted = [_topic(fields.get(topic, ""), permission)] if topic else []
        return wanted + ([Need(Kind.GROUP, fields.get(group, ""), SUB)] if group else [])

    return found


def _unregistered(request: Command) -> list[Need]:
    group = request.fields.get("consumerGroup")
    return [Need(Kind.GROUP, group, SUB)] if group else []


def _of_heartbeat(request: Command) -> list[Need]:
    found = []
    for data in java_json.read(Heartbeat, request.body).consumer_data_set:
        found.append(Need(Kind.GROUP, data.group_name, SUB))
        found += [_topic(each.topic, SUB) for each in data.subscription_data_set]
    return found


def _of_locks(request: Command) -> list[Need]:
    locks = java_json.read(QueueLocks, request.body)
    topics = dict.fromkeys(queue.topic for queue in locks.mq_set)
    return [Need(Kind.GROUP, locks.consumer_group, SUB), *(_topic(name, SUB) for name in topics)]


_NEEDS: Final[dict[int, Callable[[Command], list[Need]]]] = {
    RequestCode.SEND_MESSAGE: _of_fields(topic="topic", permission=PUB),
    RequestCode.SEND_MESSAGE_V2: _of_fields(topic="b", permission=PUB),
    RequestCode.SEND_BATCH_MESSAGE: _of_fields(topic="b", permission=PUB),
    RequestCode.CONSUMER_SEND_MSG_BACK: _of_fields(group="group"),
    RequestCode.PULL_MESSAGE: _of_fields(topic="topic", group="consumerGroup"),
    RequestCode.LITE_PULL_MESSAGE: _of_fields(topic="topic", group="consumerGroup"),
    RequestCode.QUERY_MESSAGE: _of_fields(topic="topic"),
    RequestCode.HEART_BEAT: _of_heartbeat,
    RequestCode.UNREGISTER_CLIENT: _unregistered,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: _of_fields(group="consumerGroup"),
    RequestCode.QUERY_CONSUMER_OFFSET: _of_fields(topic="topic", group="consumerGroup"),
    RequestCode.UPDATE_CONSUMER_OFFSET: _of_fields(topic="topic", group="consumerGroup"),
    RequestCode.LOCK_BATCH_MQ: _of_locks,
    RequestCode.UNLOCK_BATCH_MQ: _of_locks,
}

_FOR_ADMINISTRATORS: Final = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
        RequestCode.DELETE_TOPIC_IN_BROKER,
        RequestCode.UPDATE_BROKER_CONFIG,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
        RequestCode.DELETE_ACL_CONFIG,
        RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        RequestCode.CLONE_GROUP_OFFSET,
    }
)


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


def _permission(text: str) -> int:
    found = 0
    for part in text.split("|") if text.strip() else ["DENY"]:
        if part.strip() not in _PERMISSIONS:
            raise ValueError(f"permission {text!r}, DENY, ANY, PUB, SUB or PUB|SUB expected")
        found |= _PERMISSIONS[part.strip()]
    return found


def _permissions(listed: list[str] | str) -> dict[str, int]:
    found = {}
    for entry in _listed(listed):
        name, sign, permission = entry.rpartition("=")
        if not (sign and name.strip()):
            raise ValueError(f"permission {entry!r}, NAME=PERMISSION expected")
        found[name.strip()] = _permission(permission)
    return found


def _listed(value: Any) -> Any:
    """Return the list of the file; an empty value, which is read as an empty text, is an empty list."""
    if isinstance(value, str):
        if value:
            raise ValueError(f"{value!r}, a list expected")
        return []
    return value
