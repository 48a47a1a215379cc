"""The accounts of the brokers: users, as RocketMQ 5 has them, and their permissions."""

from typing import Final

from msgspec import UNSET

from mqproof.impl.admin import accounts
from mqproof.impl.admin.admin import Admin, address_of
from mqproof.impl.client.model import ClientError
from mqproof.impl.console.form_values import FormError, FormValues
from mqproof.impl.console.page_parts import Cell, Field, Form, Note, Page, Part, Redirect, Table, columns
from mqproof.impl.console.visit import Visit
from mqproof.impl.remoting.bodies import PolicyEntry, SubjectPolicies, User
from mqproof.impl.runtime.network import Address

PATH: Final = "/accounts"
_NAME_MOST: Final = 64
_TYPES: Final = {"Normal": "Normal", "Super": "Super"}
_STATES: Final = {"enable": "enable", "disable": "disable"}
_ACTIONS: Final = {"Pub": ["Pub"], "Sub": ["Sub"], "Pub,Sub": ["Pub", "Sub"]}
_DECISIONS: Final = {"Allow": "Allow", "Deny": "Deny"}


async def account_list(visit: Visit) -> Page:
    """Return the users of every broker and their permissions."""
    users: list[tuple[Cell | str, ...]] = []
    permissions: list[tuple[Cell | str, ...]] = []
    problems: list[Part] = []
    async with visit.admin() as admin:
        brokers = await _brokers(admin)
        for broker in brokers:
            try:
                users += [_user_row(broker, user) for user in await accounts.users(admin, broker)]
                for each in await accounts.policies(admin, broker):
                    permissions += _permission_rows(broker, each)
            except ClientError as error:
                problems.append(Note("warn", f"Accounts are not known: {error}"))
    parts: list[Part] = [
        *problems,
        Table(
            "Users",
            columns("Broker", "User", "Type", "State"),
            users,
            "No accounts are known."
            if problems
            else "No broker has users. Accounts of RocketMQ 4 are in the file plain_acl.yml of each broker.",
        ),
        Table(
            "Permissions",
            columns("Broker", "User", "Resource", "Actions", "Decision"),
            permissions,
            "No accounts are known."
            if problems
            else "No user has a permission. A user of type Super needs none.",
        ),
    ]
    if visit.allows_changes and len(problems) < len(brokers):
        parts += _forms()
    return Page("Accounts", PATH, parts, "Passwords are never shown.")


async def save_user(visit: Visit) -> Redirect:
    """Create a user at every broker, or change the user where it exists."""
    values = visit.values
    name, password = _user_name(values), values.text("password", most=255)
    user_type, state = values.choice("type", _TYPES, "Normal"), values.choice("state", _STATES, "enable")
    user = User(name, password or UNSET, user_type, state)
    created: list[str] = []
    changed: list[str] = []
    async with visit.admin() as admin:
        for broker in await _brokers(admin):
            is_new = name not in {each.username for each in await accounts.users(admin, broker, name)}
            if is_new and not password:
                raise FormError(f"password is empty, and user {name} is new at {broker}: a password expected")
            await accounts.put_user(admin, [broker], user, is_new=is_new)
            (created if is_new else changed).append(str(broker))
    where = [f"{verb} at {', '.join(at)}" for verb, at in (("created", created), ("changed", changed)) if at]
    return Redirect(PATH, "good", f"User {name} is {' and '.join(where)}.")


async def delete_user(visit: Visit) -> Redirect:
    """Delete a user from every broker."""
    name = _user_name(visit.values)
    if visit.values.text("confirm", most=_NAME_MOST) != name:
        raise FormError(f"confirm is not the name of the user, {name!r}")
    async with visit.admin() as admin:
        await accounts.delete_user(admin, await _brokers(admin), name)
    return Redirect(PATH, "good", f"User {name} is deleted.")


async def permit(visit: Visit) -> Redirect:
    """Give a user permissions for a resource at every broker, or change them."""
    values = visit.values
    name, resource = _user_name(values), _resource(values)
    actions = values.choice("actions", _ACTIONS, "Pub,Sub")
    entry = PolicyEntry(resource, actions, values.choice("decision", _DECISIONS, "Allow"))
    subject = f"User:{name}"
    async with visit.admin() as admin:
        for broker in await _brokers(admin):
            known = {each.subject for each in await accounts.policies(admin, broker, name)}
            await accounts.put_policy(admin, [broker], subject, [entry], is_new=subject not in known)
    return Redirect(PATH, "good", f"{name}: {entry.decision} {', '.join(actions)} of {resource}.")


async def withdraw(visit: Visit) -> Redirect:
    """Take from a user the permissions for a resource at every broker."""
    name, resource = _user_name(visit.values), _resource(visit.values)
    async with visit.admin() as admin:
        await accounts.delete_policy(admin, await _brokers(admin), f"User:{name}", resource)
    return Redirect(PATH, "good", f"{name} has no permissions for {resource}.")


async def _brokers(admin: Admin) -> list[Address]:
    """Return every broker that the name server knows, slaves included: each has accounts of its own."""
    found = (await admin.cluster_info()).broker_addr_table.values()
    return [address_of(text) for text in sorted({at for each in found for at in each.broker_addrs.values()})]


def _user_name(values: FormValues) -> str:
    return values.required("user", most=_NAME_MOST)


def _resource(values: FormValues) -> str:
    resource = values.required("resource", most=255)
    kind, separator, name = resource.partition(":")
    if kind not in ("Topic", "Group") or not separator or not name:
        raise FormError(f"resource is {resource!r}, Topic:NAME, Group:NAME, Topic:* or Group:* expected")
    return resource


def _user_row(broker: Address, user: User) -> tuple[Cell | str, ...]:
    state = user.user_status or "–"
    tone = {"enable": "good", "disable": "bad"}.get(state, "quiet")
    return Cell(str(broker), is_code=True), user.username, user.user_type or "–", Cell(state, tone=tone)


def _permission_rows(broker: Address, of: SubjectPolicies) -> list[tuple[Cell | str, ...]]:
    return [
        (
            Cell(str(broker), is_code=True),
            of.subject.removeprefix("User:"),
            entry.resource,
            ", ".join(entry.actions),
            Cell(entry.decision, tone="good" if entry.decision == "Allow" else "bad"),
        )
        for policy in of.policies
        for entry in policy.entries
    ]


def _forms() -> list[Part]:
    user = Field("user", "User", is_required=True, most=_NAME_MOST)
    resource = Field(
        "resource", "Resource", is_required=True, most=255, hint="Topic:NAME, Group:NAME, Topic:* or Group:*"
    )
    hint = "Empty keeps the password of a user that exists."
    return [
        Form(
            "Create or change a user",
            "/accounts/user",
            [
                user,
                Field(
                    "password", "Password", type="password", most=255, hint=hint, autocomplete="new-password"
                ),
                Field("type", "Type", "Normal", "select", (("Normal", "Normal"), ("Super", "administrator"))),
                Field("state", "State", "enable", "select", (("enable", "enabled"), ("disable", "disabled"))),
            ],
            "Save",
            note="At every broker of the cluster.",
            is_folded=True,
        ),
        Form(
            "Give a permission",
            "/accounts/permit",
            [
                user,
                resource,
                Field("actions", "Actions", "Pub,Sub", "select", [(each, each) for each in _ACTIONS]),
                Field("decision", "Decision", "Allow", "select", [(each, each) for each in _DECISIONS]),
            ],
            "Save",
            note="Replaces the permission of the user for this resource.",
            is_folded=True,
        ),
        Form(
            "Withdraw a permission",
            "/accounts/withdraw",
            [user, resource],
            "Withdraw",
            is_folded=True,
            is_danger=True,
        ),
        Form(
            "Delete a user",
            "/accounts/delete-user",
            [user, Field("confirm", "User once more", is_required=True, most=_NAME_MOST)],
            "Delete",
            is_folded=True,
            is_danger=True,
        ),
    ]
