"""Commands about users and their permissions. They change the accounts of brokers with access control."""

from typing import Annotated, Any, Final

import typer
from msgspec import UNSET

from mqproof.impl.admin import accounts, tables
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.options import Broker, Cluster, parsed, text
from mqproof.impl.admin.run import Site, perform, require_one, say, show, targets
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting.bodies import PolicyEntry, SubjectPolicies, User
from mqproof.impl.runtime.network import Address

_USER_COLUMNS: Final = ("broker", "user", "type", "status")
_POLICY_COLUMNS: Final = ("broker", "user", "resource", "actions", "decision")

UserName = Annotated[str, text("u", "username", "NAME", "The user.")]
Password = Annotated[str, text("p", "password", "TEXT", "The password; - reads it from standard input.")]
NewPassword = Annotated[
    str | None, text("p", "password", "TEXT", "The new password; - reads it from standard input.")
]
UserType = Annotated[str | None, text("t", "userType", "TYPE", "Super, an administrator, or Normal.")]
Subject = Annotated[str, text("s", "subject", "User:NAME", "The user.")]
Resources = Annotated[
    str, text("r", "resources", "LIST", "Topic:NAME, Group:NAME, Topic:* or Group:*, separated by commas.")
]
Actions = Annotated[str, text("a", "actions", "LIST", "Pub, Sub, or both, separated by a comma.")]


def _broker(letter: str, name: str, words: str) -> Any:
    parser = parsed(letter, Address.parse)
    return typer.Option(f"-{letter}", f"--{name}", parser=parser, metavar="HOST:PORT", help=words)


Decision = Annotated[str, text("d", "decision", "WORD", "Allow or Deny.")]


def create_user(
    site: Site,
    name: UserName,
    password: Password,
    user_type: UserType = None,
    broker: Broker = None,
    cluster: Cluster = None,
) -> None:
    """Create a user at one broker (-b) or at all brokers of a cluster (-c).

    \b
    Example: mqproof admin createUser -n 127.0.0.1:9876 -c DefaultCluster -u orders-app -p - < password.txt
    """
    user = User(name, _secret(password), user_type or UNSET)
    _put_user(site, user, broker, cluster, is_new=True)


def update_user(
    site: Site,
    name: UserName,
    password: NewPassword = None,
    user_type: UserType = None,
    broker: Broker = None,
    cluster: Cluster = None,
) -> None:
    """Change a user's password or type, at one broker (-b) or at all brokers of a cluster (-c).

    \b
    Example: mqproof admin updateUser -n 127.0.0.1:9876 -c DefaultCluster -u orders-app -t Super
    """
    user = User(name, UNSET if password is None else _secret(password), user_type or UNSET)
    _put_user(site, user, broker, cluster, is_new=False)


def delete_user(site: Site, name: UserName, broker: Broker = None, cluster: Cluster = None) -> None:
    """Delete a user from one broker (-b) or from all brokers of a cluster (-c).

    \b
    Example: mqproof admin deleteUser -n 127.0.0.1:9876 -c DefaultCluster -u orders-app
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        found = await targets(admin, broker, cluster, slaves=True)
        await accounts.delete_user(admin, found, name)
        for each in found:
            say(f"user {name} is deleted from {each}")

    perform(site, work)


def list_user(
    site: Site,
    part: Annotated[str, text("f", "filter", "TEXT", "Only users whose names contain this text.")] = "",
    broker: Broker = None,
    cluster: Cluster = None,
) -> None:
    """List the users of one broker (-b) or of all brokers of a cluster (-c).

    \b
    Example: mqproof admin listUser -n 127.0.0.1:9876 -b 127.0.0.1:10911
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        found = [
            _user_row(each, user)
            for each in await targets(admin, broker, cluster, slaves=True)
            for user in await accounts.users(admin, each, part)
        ]
        show(tables.rows(_USER_COLUMNS, found))

    perform(site, work)


def get_user(
    site: Site,
    name: UserName,
    broker: Broker = None,
    cluster: Cluster = None,
) -> None:
    """Show a user, at one broker (-b) or at all brokers of a cluster (-c).

    \b
    Example: mqproof admin getUser -n 127.0.0.1:9876 -b 127.0.0.1:10911 -u orders-app
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        found = [
            _user_row(each, await accounts.user(admin, each, name))
            for each in await targets(admin, broker, cluster, slaves=True)
        ]
        show(tables.rows(_USER_COLUMNS, found))

    perform(site, work)


def create_acl(
    site: Site,
    subject: Subject,
    resources: Resources,
    actions: Actions,
    decision: Decision,
    broker: Broker = None,
    cluster: Cluster = None,
) -> None:
    """Give a user permissions, at one broker (-b) or at all brokers of a cluster (-c).

    \b
    Example: mqproof admin createAcl -n h:9876 -c C -s User:orders-app -r Topic:T -a Pub,Sub -d Allow
    """
    _put_policy(site, subject, _entries(resources, actions, decision), broker, cluster, is_new=True)


def update_acl(
    site: Site,
    subject: Subject,
    resources: Resources,
    actions: Actions,
    decision: Decision,
    broker: Broker = None,
    cluster: Cluster = None,
) -> None:
    """Change a user's permissions, at one broker (-b) or at all brokers of a cluster (-c).

    \b
    Example: mqproof admin updateAcl -n h:9876 -c C -s User:orders-app -r Topic:T -a Pub -d Allow
    """
    _put_policy(site, subject, _entries(resources, actions, decision), broker, cluster, is_new=False)


def delete_acl(
    site: Site,
    subject: Subject,
    resource: Annotated[
        str | None, text("r", "resources", "NAME", "Only the permissions for this resource.")
    ] = None,
    broker: Broker = None,
    cluster: Cluster = None,
) -> None:
    """Take permissions from a user, at one broker (-b) or at all brokers of a cluster (-c).

    \b
    Example: mqproof admin deleteAcl -n 127.0.0.1:9876 -c DefaultCluster -s User:orders-app -r Topic:T
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        found = await targets(admin, broker, cluster, slaves=True)
        await accounts.delete_policy(admin, found, subject, resource)
        for each in found:
            say(f"{each}: {subject} has no permissions for {resource or 'any resource'}")

    perform(site, work)


def list_acl(
    site: Site,
    subject: Annotated[str, text("s", "subject", "TEXT", "Only users whose names contain this text.")] = "",
    resource: Annotated[str, text("r", "resource", "TEXT", "Only resources that contain this text.")] = "",
    broker: Broker = None,
    cluster: Cluster = None,
) -> None:
    """List the permissions of users, at one broker (-b) or at all brokers of a cluster (-c).

    \b
    Example: mqproof admin listAcl -n 127.0.0.1:9876 -b 127.0.0.1:10911
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        found = [
            row
            for each in await targets(admin, broker, cluster, slaves=True)
            for of in await accounts.policies(admin, each, subject.removeprefix("User:"), resource)
            for row in _policy_rows(each, of)
        ]
        show(tables.rows(_POLICY_COLUMNS, found))

    perform(site, work)


def get_acl(site: Site, subject: Subject, broker: Broker = None, cluster: Cluster = None) -> None:
    """Show the permissions of one user, at one broker (-b) or at all brokers of a cluster (-c).

    \b
    Example: mqproof admin getAcl -n 127.0.0.1:9876 -b 127.0.0.1:10911 -s User:orders-app
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        found = [
            row
            for each in await targets(admin, broker, cluster, slaves=True)
            for row in _policy_rows(each, await accounts.policies_of(admin, each, subject))
        ]
        show(tables.rows(_POLICY_COLUMNS, found))

    perform(site, work)


def copy_acl(
    site: Site,
    source: Annotated[Any, _broker("f", "fromBroker", "The broker that has the permissions.")],
    target: Annotated[Any, _broker("t", "toBroker", "The broker that gets them.")],
    subjects: Annotated[
        str, text("s", "subjects", "LIST", "User:NAME, separated by commas; all users without it.")
    ] = "",
) -> None:
    """Copy the permissions of users from one broker to another one.

    Permissions for the same resources are replaced. Others stay. The users themselves are not copied.

    \b
    Example: mqproof admin copyAcl -n 127.0.0.1:9876 -f 10.0.0.1:10911 -t 10.0.0.2:10911 -s User:orders-app
    """

    async def work(admin: Admin) -> None:
        copied = await accounts.copy_policies(admin, source, target, _listed(subjects))
        if not copied:
            raise ClientError(f"{source} has no permissions of any user")
        for subject in copied:
            say(tables.visible(f"the permissions of {subject} are copied from {source} to {target}"))

    perform(site, work)


def _user_row(broker: Address, user: User) -> tuple[str, ...]:
    return str(broker), user.username, user.user_type or "-", user.user_status or "-"


def _policy_rows(broker: Address, of: SubjectPolicies) -> list[tuple[str, ...]]:
    return [
        (str(broker), of.subject, entry.resource, ", ".join(entry.actions), entry.decision)
        for policy in of.policies
        for entry in policy.entries
    ]


def _put_user(site: Site, user: User, broker: Any, cluster: str | None, *, is_new: bool) -> None:
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        found = await targets(admin, broker, cluster, slaves=True)
        await accounts.put_user(admin, found, user, is_new=is_new)
        for each in found:
            say(f"user {user.username} is {'created' if is_new else 'changed'} at {each}")

    perform(site, work)


def _put_policy(
    site: Site, subject: str, entries: list[PolicyEntry], broker: Any, cluster: str | None, *, is_new: bool
) -> None:
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        found = await targets(admin, broker, cluster, slaves=True)
        await accounts.put_policy(admin, found, subject, entries, is_new=is_new)
        for each in found:
            say(f"{each}: the permissions of {subject} are changed")

    perform(site, work)


def _entries(resources: str, actions: str, decision: str) -> list[PolicyEntry]:
    return [PolicyEntry(name, _listed(actions), decision) for name in _listed(resources)]


def _listed(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _secret(value: str) -> str:
    """Return a password. It is not visible to other users of the machine if it comes from standard input."""
    return typer.get_text_stream("stdin").readline().rstrip("\n") if value == "-" else value
