"""Tests users and policies at a broker with access control.

Source: docs/reference/protocol/access-control.md, "Users and policies".
"""

from mqproof.impl.client.model import Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import Policy, PolicyEntry, SubjectPolicies, User
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    DeletePolicyRequest,
    ListPoliciesRequest,
    ListUsersRequest,
    SubjectRequest,
    UserRequest,
)
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.disk import read_whole
from tests.impl.access.test_acl import ADMIN, ORDERS, PATH, TEXT, guarded, session
from tests.impl.world import World, play

NAME = "newcomer"
SUBJECT = SubjectRequest(f"User:{NAME}")


async def ask(
    world: World,
    code: RequestCode,
    header: headers.Header,
    body: User | SubjectPolicies | None = None,
    credentials: Credentials | None = ADMIN,
) -> Command:
    data = b"" if body is None else java_json.write(body, standard=True)
    async with session(world, credentials) as one:
        request = new_request(code, headers.write(header), data)
        return await one.remoting.invoke(world.broker_address, request, 30.0)


async def create(world: World, user: User, credentials: Credentials | None = ADMIN) -> Command:
    return await ask(world, RequestCode.AUTH_CREATE_USER, UserRequest(NAME), user, credentials)


def policies(*entries: PolicyEntry) -> SubjectPolicies:
    return SubjectPolicies(f"User:{NAME}", [Policy(list(entries))])


def test_a_user_is_created_granted_a_topic_and_deleted() -> None:
    async def scenario(world: World) -> None:
        assert (await create(world, User(NAME, "abcdefg"), ORDERS)).code == ResponseCode.SYSTEM_ERROR
        assert (await create(world, User(NAME, "abcdefg"))).code == ResponseCode.SUCCESS
        again = await create(world, User(NAME, "abcdefg"))
        assert (again.code, again.remark) == (ResponseCode.NO_PERMISSION, f"user {NAME} exists already")
        async with session(world, Credentials(NAME, "abcdefg")) as one:
            producer = Producer(one, ProducerConfig("PG"))
            assert not isinstance(await producer.send(Message("T", b"x")), Sent)
            allowed = policies(PolicyEntry("Topic:T", ["Pub"], "ALLOW"))
            assert (await ask(world, RequestCode.AUTH_CREATE_ACL, SUBJECT, allowed)).code == 0
            assert isinstance(await producer.send(Message("T", b"x")), Sent)
            revoke = DeletePolicyRequest(f"User:{NAME}", resource="Topic:T")
            assert (await ask(world, RequestCode.AUTH_DELETE_ACL, revoke)).code == 0
            assert not isinstance(await producer.send(Message("T", b"x")), Sent)
        assert (await ask(world, RequestCode.AUTH_DELETE_USER, UserRequest(NAME))).code == 0
        gone = await ask(world, RequestCode.AUTH_GET_USER, UserRequest(NAME))
        assert (gone.code, gone.body) == (0, b"")

    guarded(scenario)


def test_users_are_shown_without_their_passwords() -> None:
    async def scenario(world: World) -> None:
        one = await ask(world, RequestCode.AUTH_GET_USER, UserRequest("orders-app"))
        assert one.body == b'{"userStatus":"enable","userType":"Normal","username":"orders-app"}'
        listed = await ask(world, RequestCode.AUTH_LIST_USER, ListUsersRequest("admin"))
        (found,) = java_json.read(list[User], listed.body)
        assert (found.username, found.user_type) == ("the-admin", "Super")
        assert listed.body == b'[{"userStatus":"enable","userType":"Super","username":"the-admin"}]'
        every = await ask(world, RequestCode.AUTH_LIST_USER, ListUsersRequest())
        assert len(java_json.read(list[User], every.body)) == 2
        assert b"8765" not in one.body + listed.body + every.body

    guarded(scenario)


def test_policies_are_shown_and_filtered() -> None:
    async def scenario(world: World) -> None:
        code = RequestCode.AUTH_GET_ACL
        shown = await ask(world, code, SubjectRequest("User:orders-app"))
        (policy,) = java_json.read(SubjectPolicies, shown.body).policies
        assert {entry.resource for entry in policy.entries} >= {"Topic:T", "Group:Barred", "Topic:*"}
        assert (await ask(world, code, SubjectRequest("User:the-admin"))).body == b""
        unknown = await ask(world, code, SubjectRequest("User:nobody"))
        assert (unknown.code, unknown.remark) == (ResponseCode.NO_PERMISSION, "there is no user nobody")
        listed = await ask(
            world, RequestCode.AUTH_LIST_ACL, ListPoliciesRequest("orders", resource_filter="Barred")
        )
        (found,) = java_json.read(list[SubjectPolicies], listed.body)
        assert [entry.resource for entry in found.policies[0].entries] == ["Group:Barred"]

    guarded(scenario)


def test_what_accounts_cannot_express_changes_nothing() -> None:
    async def scenario(world: World) -> None:
        async def refused(code: RequestCode, header: headers.Header, body: User | SubjectPolicies) -> str:
            answer = await ask(world, code, header, body)
            assert answer.code == ResponseCode.NO_PERMISSION
            assert read_whole(world.disk, PATH) == TEXT.encode()
            return answer.remark or ""

        new, update = UserRequest(NAME), UserRequest("orders-app")
        create_code, update_code = RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_UPDATE_USER
        assert "needs a password" in await refused(create_code, new, User(NAME))
        assert "at least 7 characters" in await refused(create_code, new, User(NAME, "abc"))
        assert "user type 'Root'" in await refused(update_code, update, User(user_type="Root"))
        assert "delete the user" in await refused(update_code, update, User(user_status="disable"))
        assert "no user newcomer" in await refused(update_code, new, User(password="abcdefg"))
        wide = policies(PolicyEntry("Topic:T*", ["Pub"], "ALLOW"))
        header = SubjectRequest("User:orders-app")
        assert "Topic:NAME" in await refused(RequestCode.AUTH_UPDATE_ACL, header, wide)
        assert "User:NAME" in await refused(RequestCode.AUTH_UPDATE_ACL, SubjectRequest("Group:G"), wide)

    guarded(scenario)


def test_a_user_becomes_an_administrator_and_has_a_new_password() -> None:
    async def scenario(world: World) -> None:
        user = User(password="abcdefg", user_type="Super", user_status="enable")
        update = RequestCode.AUTH_UPDATE_USER
        assert (await ask(world, update, UserRequest("orders-app"), user)).code == 0
        now = Credentials("orders-app", "abcdefg")
        assert (await create(world, User(NAME, "abcdefg"), now)).code == 0

    guarded(scenario)


def test_without_access_control_there_are_no_users() -> None:
    async def scenario(world: World) -> None:
        answer = await world.ask(RequestCode.AUTH_LIST_USER, ListUsersRequest())
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert answer.remark == "aclEnable is off: there are no accounts"

    play(scenario)
