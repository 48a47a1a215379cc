"""Operations on the users and policies of a broker, as RocketMQ 5 has them."""

from collections.abc import Sequence

from mqproof.impl.admin.admin import Admin, read_body
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import Policy, PolicyEntry, SubjectPolicies, User
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.headers import (
    DeletePolicyRequest,
    ListPoliciesRequest,
    ListUsersRequest,
    SubjectRequest,
    UserRequest,
)
from mqproof.impl.runtime.network import Address


async def put_user(admin: Admin, brokers: Sequence[Address], user: User, *, is_new: bool) -> None:
    """Create a user at these brokers, or change the members that are set."""
    code = RequestCode.AUTH_CREATE_USER if is_new else RequestCode.AUTH_UPDATE_USER
    body = java_json.write(user, standard=True)
    for broker in brokers:
        await admin.ask(broker, code, UserRequest(user.username), body)


async def delete_user(admin: Admin, brokers: Sequence[Address], name: str) -> None:
    for broker in brokers:
        await admin.ask(broker, RequestCode.AUTH_DELETE_USER, UserRequest(name))


async def users(admin: Admin, broker: Address, part: str = "") -> list[User]:
    """Return the users whose names contain a text."""
    answer = await admin.ask(broker, RequestCode.AUTH_LIST_USER, ListUsersRequest(part))
    return read_body(list[User], answer) if answer.body else []


async def user(admin: Admin, broker: Address, name: str) -> User:
    """Return one user. Raises RefusalError or ClientError when there is none."""
    answer = await admin.ask(broker, RequestCode.AUTH_GET_USER, UserRequest(name))
    if not answer.body:
        raise ClientError(f"{broker} has no user {name}")
    return read_body(User, answer)


async def put_policy(
    admin: Admin, brokers: Sequence[Address], subject: str, entries: list[PolicyEntry], *, is_new: bool
) -> None:
    """Give a subject the permissions of these entries at each broker."""
    code = RequestCode.AUTH_CREATE_ACL if is_new else RequestCode.AUTH_UPDATE_ACL
    body = java_json.write(SubjectPolicies(subject, [Policy(entries)]), standard=True)
    for broker in brokers:
        await admin.ask(broker, code, SubjectRequest(subject), body)


async def delete_policy(admin: Admin, brokers: Sequence[Address], subject: str, resource: str | None) -> None:
    """Take from a subject its permissions for a resource, or all of them."""
    for broker in brokers:
        await admin.ask(broker, RequestCode.AUTH_DELETE_ACL, DeletePolicyRequest(subject, resource=resource))


async def copy_policies(
    admin: Admin, source: Address, target: Address, subjects: Sequence[str] = ()
) -> list[str]:
    """Give subjects at one broker the permissions that they have at another one. Returns the subjects.

    Without subjects, those of every subject are copied. Permissions for other resources stay.
    """
    if subjects:
        found = [await policies_of(admin, source, subject) for subject in subjects]
    else:
        found = await policies(admin, source)
    known = {each.subject for each in await policies(admin, target)}
    for each in found:
        code = RequestCode.AUTH_UPDATE_ACL if each.subject in known else RequestCode.AUTH_CREATE_ACL
        await admin.ask(target, code, SubjectRequest(each.subject), java_json.write(each, standard=True))
    return [each.subject for each in found]


async def policies_of(admin: Admin, broker: Address, subject: str) -> SubjectPolicies:
    """Return the permissions of one subject. Raises RefusalError or ClientError when it has none."""
    answer = await admin.ask(broker, RequestCode.AUTH_GET_ACL, SubjectRequest(subject))
    if not answer.body:
        raise ClientError(f"{broker} has no permissions of {subject}")
    return read_body(SubjectPolicies, answer)


async def policies(
    admin: Admin, broker: Address, subject: str = "", resource: str = ""
) -> list[SubjectPolicies]:
    """Return the policies whose subjects and resources contain these texts."""
    header = ListPoliciesRequest(subject, resource)
    answer = await admin.ask(broker, RequestCode.AUTH_LIST_ACL, header)
    return read_body(list[SubjectPolicies], answer) if answer.body else []
