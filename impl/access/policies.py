"""The policies of RocketMQ 5's access control, as permissions of an account in plain_acl.yml. Pure functions.

An account cannot express everything that a policy can. What it cannot express is refused. See
docs/reference/protocol/access-control.md, "Users and policies".
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from mqproof.impl.access.acl import AccountEntry
from mqproof.impl.access.permissions import ANY, DENY, PUB, SUB, Kind, permission_of
from mqproof.impl.remoting.bodies import Policy, PolicyEntry, SubjectPolicies

_SUBJECT: Final = "User:"
_ALL: Final = "*"
_CUSTOM: Final = "Custom"
_ALLOW: Final = "allow"
_DENY: Final = "deny"
_EVERY: Final = {Kind.TOPIC: PUB | SUB, Kind.GROUP: SUB}
"""The permissions that exist for a kind of resource."""
_BITS: Final = {"pub": PUB, "sub": SUB}
_NAMES: Final = {PUB: "Pub", SUB: "Sub"}


def user_of(subject: str) -> str:
    """Return the name of the account that a subject means. Raises ValueError for any other subject."""
    name = subject.removeprefix(_SUBJECT)
    if not subject.startswith(_SUBJECT) or not name:
        raise ValueError(f"subject {subject!r}, {_SUBJECT}NAME expected")
    return name


def granted(account: AccountEntry, policies: Iterable[Policy]) -> AccountEntry:
    """Return the account with the permissions of the policies; those of other resources stay.

    Raises ValueError, and changes nothing, for what an account cannot express.
    """
    for policy in policies:
        if policy.policy_type.lower() not in ("", _CUSTOM.lower()):
            raise ValueError(f"policy type {policy.policy_type!r} is not supported, {_CUSTOM} expected")
        for entry in policy.entries:
            kind, name = _resource(entry.resource)
            account = _with_permission(account, kind, name, _permission_text(entry, kind))
    return account


def revoked(account: AccountEntry, resource: str | None) -> AccountEntry:
    """Return the account without its permissions for a resource, or without all if it is None.

    Raises ValueError if the resource is not one of an account.
    """
    if resource is not None:
        return _with_permission(account, *_resource(resource), "")
    return msgspec.structs.replace(
        account, topic_perms=[], group_perms=[], default_topic_perm="", default_group_perm=""
    )


def policies_of(account: AccountEntry, resource: str = "") -> SubjectPolicies:
    """Return the account's permissions as a policy; with a resource, only those whose names contain it."""
    pairs = [
        (kind, name, text)
        for kind, listed, default in (
            (Kind.TOPIC, account.topic_perms, account.default_topic_perm),
            (Kind.GROUP, account.group_perms, account.default_group_perm),
        )
        for name, text in [*_pairs(listed), *([(_ALL, default)] if default else [])]
    ]
    entries = [_entry(kind, name, permission_of(text)) for kind, name, text in pairs]
    entries = [entry for entry in entries if resource in entry.resource]
    return SubjectPolicies(_SUBJECT + account.access_key, [Policy(entries, _CUSTOM)] if entries else [])


def _resource(text: str) -> tuple[Kind, str]:
    for kind in Kind:
        prefix = f"{kind.value.capitalize()}:"
        name = text.removeprefix(prefix)
        if text.startswith(prefix) and name and (name == _ALL or _ALL not in name) and "=" not in name:
            return kind, name
    raise ValueError(f"resource {text!r}, Topic:NAME, Group:NAME, Topic:* or Group:* expected")


def _permission_text(entry: PolicyEntry, kind: Kind) -> str:
    if entry.source_ips:
        raise ValueError(f"source addresses of {entry.resource} are not supported")
    bits = 0
    for action in entry.actions:
        bit = _EVERY[kind] if action.lower() in ("all", "any") else _BITS.get(action.lower(), 0)
        if not bit & _EVERY[kind]:
            known = " or ".join(name for each, name in _NAMES.items() if each & _EVERY[kind])
            raise ValueError(f"action {action!r} of {entry.resource} is not supported, {known} expected")
        bits |= bit & _EVERY[kind]
    if not bits:
        raise ValueError(f"{entry.resource} has no actions")
    decision = entry.decision.lower()
    if decision == _ALLOW:
        return "|".join(_NAMES[bit].upper() for bit in (PUB, SUB) if bits & bit)
    if decision != _DENY:
        raise ValueError(f"decision {entry.decision!r} of {entry.resource}, Allow or Deny expected")
    if bits != _EVERY[kind]:
        raise ValueError(f"{entry.resource}: some actions cannot be denied alone: allow the others")
    return "DENY"


def _entry(kind: Kind, name: str, bits: int) -> PolicyEntry:
    every = _EVERY[kind]
    is_denied = bool(bits & DENY) or not bits & (every | ANY)
    shown = every if is_denied or bits & ANY else bits & every
    actions = [_NAMES[bit] for bit in (PUB, SUB) if shown & bit]
    resource = f"{kind.value.capitalize()}:{name}"
    return PolicyEntry(resource, actions, "Deny" if is_denied else "Allow")


def _with_permission(account: AccountEntry, kind: Kind, name: str, text: str) -> AccountEntry:
    """Return the account with this permission; an empty text removes it."""
    if name == _ALL:
        field = "default_topic_perm" if kind is Kind.TOPIC else "default_group_perm"
        return msgspec.structs.replace(account, **{field: text})
    field = "topic_perms" if kind is Kind.TOPIC else "group_perms"
    pairs = dict(_pairs(getattr(account, field)))
    pairs.pop(name, None)
    if text:
        pairs[name] = text
    return msgspec.structs.replace(account, **{field: [f"{key}={value}" for key, value in pairs.items()]})


def _pairs(listed: list[str] | str) -> list[tuple[str, str]]:
    if isinstance(listed, str):
        return []
    parts = (entry.rpartition("=") for entry in listed)
    return [(name.strip(), text.strip()) for name, _, text in parts]
