"""Tests access control. Source: docs/reference/protocol/access-control.md, "Access control".

Method: a broker in the simulated world with a plain_acl.yml, and sessions with and without credentials. Tests
of the rules alone need no broker.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from mqproof.impl.access.acl import parse
from mqproof.impl.access.permissions import PERMISSIONS, Caller
from mqproof.impl.broker.processors.all_processors import PROCESSORS
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConsumer
from mqproof.impl.client.model import MessageQueue, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.namesrv import server as namesrv_server
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    ClientCheck,
    ConsumerData,
    DataVersion,
    Heartbeat,
    ProducerData,
    QueueLocks,
    Subscription,
)
from mqproof.impl.remoting.bodies import MessageQueue as NamedQueue
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    AccountRequest,
    AclVersionResponse,
    DeleteAccountRequest,
    WhiteAddressesRequest,
)
from mqproof.impl.remoting.message import DELAY, Message, parse_offset_message_id
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.disk import SECRET_MODE, read_whole, write_durably
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from tests.impl.broker.processors.test_send import CONFIG
from tests.impl.world import World

T = TypeVar("T")

PATH = "/store/config/plain_acl.yml"
ORDERS = Credentials("orders-app", "12345678")
ADMIN = Credentials("the-admin", "87654321")
TEXT = """
globalWhiteRemoteAddresses:
- 10.10.10.*
accounts:
- accessKey: orders-app
  secretKey: 12345678
  whiteRemoteAddress:
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - T=PUB|SUB
  - Out=PUB
  - In=SUB
  groupPerms:
  - Barred=DENY
- accessKey: the-admin
  secretKey: '87654321'
  whiteRemoteAddress: 10.20.0.{1,2}
  admin: true
"""


def asked(
    code: int,
    fields: dict[str, str] | None = None,
    body: bytes = b"",
    credentials: Credentials | None = ORDERS,
    ip: str = "127.0.0.1",
    version: int = 409,
) -> RefusedError | None:
    """Return the refusal of a request by the rules; None if it is allowed."""
    request = new_request(code, fields or {}, body)
    request = credentials.signed(request) if credentials else request
    request = Command(code, 1, 0, request.fields, body, version=version)
    try:
        parse(TEXT, "f")[1].check(request, ip)
    except RefusedError as refusal:
        return refusal
    return None


def heartbeat(group: str, *topics: str) -> bytes:
    data = ConsumerData(group, subscription_data_set=[Subscription(topic) for topic in topics])
    return java_json.write(Heartbeat("c", [data], [ProducerData("PG")]), standard=True)


def locks(group: str, topic: str) -> bytes:
    return java_json.write(QueueLocks("c", group, [NamedQueue("b", 0, topic)]), standard=True)


PULLED = {"topic": "In", "consumerGroup": "G"}


@pytest.mark.parametrize(
    ("code", "fields", "body"),
    [
        (10, {"topic": "T"}, b"x"),
        (10, {"topic": "Out"}, b"x"),
        (310, {"b": "Out", "a": "PG"}, b"x"),
        (320, {"b": "Out"}, b"x"),
        (310, {"b": "%RETRY%G", "a": "CLIENT_INNER_PRODUCER"}, b"x"),
        (310, {"b": "RMQ_SYS_TRACE_TOPIC"}, b"x"),
        (36, {"group": "G"}, b""),
        (11, PULLED, b""),
        (361, PULLED, b""),
        (11, {"topic": "%RETRY%G", "consumerGroup": "G"}, b""),
        (12, {"topic": "In"}, b""),
        (14, PULLED, b""),
        (15, PULLED, b""),
        (34, {}, heartbeat("G", "In", "T", "%RETRY%G")),
        (35, {"clientID": "c"}, b""),
        (38, {"consumerGroup": "G"}, b""),
        (41, {}, locks("G", "In")),
        *((code, {"topic": "Out"}, b"") for code in (29, 30, 31, 32, 202, 300, 351)),
        (203, {"consumerGroup": "G"}, b""),
        (208, {"consumerGroup": "G"}, b""),
        (33, {"offset": "no number"}, b""),  # the processor refuses it
    ],
)
def test_an_account_may_use_its_permissions(code: int, fields: dict[str, str], body: bytes) -> None:
    assert asked(code, fields, body) is None


@pytest.mark.parametrize(
    ("code", "fields", "body", "remark"),
    [
        (10, {"topic": "In"}, b"x", "no permission PUB for topic In"),
        (310, {"b": "Other"}, b"x", "no permission PUB for topic Other"),
        (320, {"b": "Other"}, b"x", "no permission PUB for topic Other"),
        (310, {"b": "%RETRY%Barred"}, b"x", "no permission SUB for group Barred"),
        (36, {"group": "Barred"}, b"", "group Barred"),
        (11, {"topic": "Out", "consumerGroup": "G"}, b"", "no permission SUB for topic Out"),
        (361, {"topic": "In", "consumerGroup": "Barred"}, b"", "group Barred"),
        (11, {"topic": "%RETRY%Barred", "consumerGroup": "G"}, b"", "group Barred"),
        (11, {}, b"", "no permission SUB for topic "),
        (12, {"topic": "Out"}, b"", "topic Out"),
        (14, {"topic": "Out", "consumerGroup": "G"}, b"", "topic Out"),
        (15, {"topic": "In", "consumerGroup": "Barred"}, b"", "group Barred"),
        (34, {}, heartbeat("G", "In", "Out"), "topic Out"),
        (34, {}, heartbeat("Barred", "In"), "group Barred"),
        (35, {"consumerGroup": "Barred"}, b"", "group Barred"),
        (38, {"consumerGroup": "Barred"}, b"", "group Barred"),
        (41, {}, locks("Barred", "In"), "group Barred"),
        (42, {}, locks("G", "Out"), "topic Out"),
        *(
            (code, {}, b"", "does not belong to an administrator")
            for code in PERMISSIONS
            if PERMISSIONS[code] is Caller.ADMINISTRATOR
        ),
    ],
)
def test_an_account_may_not_exceed_its_permissions(
    code: int, fields: dict[str, str], body: bytes, remark: str
) -> None:
    refusal = asked(code, fields, body)
    assert refusal is not None
    assert refusal.code == ResponseCode.SYSTEM_ERROR
    assert refusal.remark.startswith("AclException: ")
    assert remark in refusal.remark


def test_an_account_that_is_denied_everything_gets_no_request_through() -> None:
    denied = "accounts: [{accessKey: denied-app, secretKey: 12345678}]"
    denied_app = Credentials("denied-app", "12345678")
    bodies = {
        34: heartbeat("G", "T"),
        41: locks("G", "T"),
        42: locks("G", "T"),
        46: java_json.write(ClientCheck("c", "G", Subscription("T")), standard=True),
    }
    fields = {"topic": "T", "b": "T", "group": "G", "consumerGroup": "G", "offset": "1", "msgId": "0" * 32}
    fields |= {
        "producerGroup": "G",
        "commitLogOffset": "1",
        "tranStateTableOffset": "0",
        "commitOrRollback": "8",
    }
    rules = parse(denied, "f")[1]
    for code in PROCESSORS:
        request = denied_app.signed(new_request(code, fields, bodies.get(code, b"")))
        with pytest.raises(RefusedError, match="AclException"):
            rules.check(request, "127.0.0.1", lambda _: "T")


def test_every_request_code_of_a_server_has_a_row_in_the_table_of_permissions() -> None:
    served = set(PROCESSORS) | set(namesrv_server.PROCESSORS)
    assert served == set(PERMISSIONS)
    # An account says nothing about name servers, so their rows name a caller.
    assert all(isinstance(PERMISSIONS[code], Caller) for code in namesrv_server.PROCESSORS)
    assert not [code for code in PROCESSORS if PERMISSIONS[code] is Caller.ANYONE]


def test_a_code_without_a_row_is_refused() -> None:
    refusal = asked(9999, credentials=ADMIN)
    assert refusal is not None
    assert "request code 9999 has no permission" in refusal.remark


def test_the_default_permission_does_not_open_the_topics_of_the_broker_itself() -> None:
    account = "accessKey: default-sub, secretKey: 12345678, defaultTopicPerm: SUB, defaultGroupPerm: SUB"
    reader = Credentials("default-sub", "12345678")
    rules = parse(f"accounts: [{{{account}}}]", "f")[1]

    def pull(topic: str) -> Command:
        return reader.signed(new_request(11, {"topic": topic, "consumerGroup": "G"}))

    rules.check(pull("Any"), "127.0.0.1")
    for topic in ("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC"):
        with pytest.raises(RefusedError, match="no permission SUB"):
            rules.check(pull(topic), "127.0.0.1")


def test_an_administrator_without_lists_may_do_everything() -> None:
    for code, fields in (
        (17, {}),
        (25, {}),
        (10, {"topic": "Any"}),
        (11, {"topic": "A", "consumerGroup": "B"}),
    ):
        assert asked(code, fields, credentials=ADMIN) is None


@pytest.mark.parametrize(
    ("credentials", "ip", "remark"),
    [
        (None, "127.0.0.1", "no access key"),
        (Credentials("unknown-key", "12345678"), "127.0.0.1", "unknown-key is not known"),
        (Credentials("orders-app", "wrong-secret"), "127.0.0.1", "signature is not that of"),
        (Credentials("orders-app", "wrong-secret"), "10.20.0.1", "signature is not that of"),
        (None, "10.10.10.7", None),
        (Credentials("the-admin", "wrong-secret"), "10.20.0.2", None),
        (Credentials("the-admin", "wrong-secret"), "10.20.0.3", "signature is not that of"),
    ],
)
def test_accounts_and_addresses_are_checked(
    credentials: Credentials | None, ip: str, remark: str | None
) -> None:
    refusal = asked(28, credentials=credentials, ip=ip)
    assert (refusal is None) == (remark is None)
    assert remark is None or remark in refusal.remark  # type: ignore[union-attr]  # it is one


def test_clients_of_5x_receive_no_permission() -> None:
    for version, code in ((409, ResponseCode.SYSTEM_ERROR), (479, ResponseCode.NO_PERMISSION)):
        refusal = asked(28, credentials=None, version=version)
        assert refusal is not None
        assert refusal.code == code


@pytest.mark.parametrize("is_signed_field", [True, False])
def test_a_query_by_unique_key_may_leave_its_mark_unsigned(is_signed_field: bool) -> None:
    fields = {"topic": "In", "key": "k"}
    mark = {"_UNIQUE_KEY_QUERY": "true"}
    request = ORDERS.signed(new_request(12, {**fields, **mark} if is_signed_field else fields))
    sent = Command(12, 1, 0, {**request.fields, **mark})
    parse(TEXT, "f")[1].check(sent, "127.0.0.1")
    with pytest.raises(RefusedError):
        parse(TEXT, "f")[1].check(Command(11, 1, 0, {**request.fields, "more": "x"}), "127.0.0.1")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("accounts: [", "f: line 1"),
        ("accounts: {}", "f: "),
        ("accounts: all", "f: a text, a list expected"),
        (
            "accounts: [{accessKey: short, secretKey: 12345678}]",
            "f: accessKey short: it and secretKey need at least 7",
        ),
        ("accounts: [{accessKey: long-enough}]", "f: Object missing required field `secretKey`"),
        (
            "accounts: [{accessKey: a-a-a-a, secretKey: 1234567}, {accessKey: a-a-a-a, secretKey: 1234567}]",
            "f: accessKey a-a-a-a is defined twice",
        ),
        ("accounts: [{accessKey: a-a-a-a, secretKey: 1234567, admin: perhaps}]", "f: Expected `bool`"),
        ("accounts: [{accessKey: a-a-a-a, secretKey: 1234567, topicPerms: [T]}]", "f: permission 'T'"),
        ("accounts: [{accessKey: a-a-a-a, secretKey: 1234567, topicPerms: [T=X]}]", "f: permission 'X'"),
        ("globalWhiteRemoteAddresses: [10.0.0]", "f: '10.0.0' is not an address"),
        ("- a\n- b", "f: Expected `object`"),
        ("!!python/object/apply:os.system [true]", "f: "),
    ],
)
def test_an_invalid_file_is_reported_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "f")
    assert str(caught.value).startswith(complaint)
    assert "\n" not in str(caught.value)


# With a broker.


def guarded(scenario: Callable[[World], Awaitable[T]], text: str = TEXT, mode: int = SECRET_MODE) -> T:
    """Run a scenario with a broker that has access control."""
    loop = SimulatedLoop()

    async def main() -> T:
        world = World(loop, config=replace(CONFIG, acl_enabled=True))
        write_durably(world.disk, PATH, text.encode(), mode)
        async with world:
            return await scenario(world)

    return run_simulated(main(), loop)


def session(world: World, credentials: Credentials | None) -> Session:
    return Session([world.namesrv_address], world.runtime, credentials=credentials)


async def code_of(world: World, credentials: Credentials | None, code: int, header: headers.Header) -> int:
    async with session(world, credentials) as one:
        request = new_request(code, headers.write(header))
        return (await one.remoting.invoke(world.broker_address, request, 30.0)).code


def test_only_accounts_with_permission_can_send_and_receive() -> None:
    async def scenario(world: World) -> None:
        async with session(world, ORDERS) as one, session(world, None) as stranger:
            mine = Producer(one, ProducerConfig("PG"))
            outcome = await mine.send(
                Message("T", b"x" * 10_000)
            )  # it is compressed, and signed in the form in which it is sent
            assert isinstance(outcome, Sent)
            assert not isinstance(await mine.send(Message("Other", b"x")), Sent)
            refused = await Producer(stranger, ProducerConfig("PG")).send(Message("T", b"y"))
            assert not isinstance(refused, Sent)
            assert "no access key" in refused.remark
            async with LitePullConsumer(one, "G") as consumer:
                queue: MessageQueue = outcome.queue
                await consumer.assign([queue])
                await consumer.seek_to_begin(queue)
                (message,) = await consumer.poll(30_000)
                assert message.body == b"x" * 10_000
            async with LitePullConsumer(stranger, "G") as consumer:
                assert world.broker is not None
                assert world.broker.services is not None
                assert world.broker.services.clients.consumer_group("G") is None

    guarded(scenario)


def test_a_changed_file_takes_effect_soon_and_a_broken_one_does_not(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> list[bool]:
        async def may_send() -> bool:
            async with session(world, ORDERS) as one:
                return isinstance(await Producer(one, ProducerConfig("PG")).send(Message("T", b"x")), Sent)

        found = [await may_send()]
        write_durably(world.disk, PATH, TEXT.replace("T=PUB|SUB", "T=SUB").encode())
        await asyncio.sleep(6)
        found.append(await may_send())
        write_durably(world.disk, PATH, b"accounts: [")
        await asyncio.sleep(20)
        found.append(await may_send())
        write_durably(world.disk, PATH, TEXT.encode())
        await asyncio.sleep(6)
        return [*found, await may_send()]

    with caplog.at_level(logging.ERROR):
        assert guarded(scenario) == [True, False, False, True]
    complaints = [one for one in caplog.messages if "access rules" in one]
    assert len(complaints) == 1
    assert PATH in complaints[0]


def test_a_start_with_a_file_that_other_users_can_read_logs_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def nothing(world: World) -> None: ...

    for mode, warnings in ((SECRET_MODE, 0), (0o644, 1)):
        caplog.clear()
        guarded(nothing, mode=mode)
        assert len([one for one in caplog.messages if f"chmod 600 {PATH}" in one]) == warnings


def test_a_change_over_the_network_keeps_the_mode_of_the_file() -> None:
    async def scenario(world: World) -> list[int | None]:
        change = RequestCode.UPDATE_AND_CREATE_ACL_CONFIG
        header = AccountRequest("newcomer", "abcdefg")
        assert await code_of(world, ADMIN, change, header) == ResponseCode.SUCCESS
        modes = [world.disk.mode(PATH)]
        world.disk.remove(PATH)
        assert await code_of(world, ADMIN, change, AccountRequest("newcomer", "gfedcba")) == 0
        return [*modes, world.disk.mode(PATH)]

    assert guarded(scenario, mode=0o640) == [0o640, SECRET_MODE]


def test_a_broker_does_not_start_with_a_broken_file_or_without_one() -> None:
    async def nothing(world: World) -> None: ...

    with pytest.raises(ConfigError, match=PATH):
        guarded(nothing, "accounts: [")


def test_accounts_created_changed_and_deleted_over_the_network_are_kept() -> None:
    async def scenario(world: World) -> None:
        new = Credentials("newcomer", "abcdefg")
        offset = headers.ViewMessageRequest(0)
        view = RequestCode.VIEW_MESSAGE_BY_ID
        assert await code_of(world, new, view, offset) == ResponseCode.SYSTEM_ERROR
        change = RequestCode.UPDATE_AND_CREATE_ACL_CONFIG
        header = AccountRequest("newcomer", "abcdefg", topic_perms="T=PUB, U=DENY", default_group_perm="SUB")
        assert await code_of(world, ORDERS, change, header) == ResponseCode.SYSTEM_ERROR
        assert await code_of(world, ADMIN, change, header) == ResponseCode.SUCCESS
        async with session(world, new) as one:
            producer = Producer(one, ProducerConfig("PG"))
            assert isinstance(await producer.send(Message("T", b"x")), Sent)
            assert not isinstance(await producer.send(Message("U", b"x")), Sent)
            # Accounts that are not named stay.
            more = AccountRequest("newcomer", topic_perms="U=PUB")
            assert await code_of(world, ADMIN, change, more) == ResponseCode.SUCCESS
            assert isinstance(await producer.send(Message("U", b"x")), Sent)
        world.disk.lose_power()
        _, kept = parse(read_whole(world.disk, PATH).decode(), PATH)
        assert set(kept.accounts) == {"orders-app", "the-admin", "newcomer"}
        delete = RequestCode.DELETE_ACL_CONFIG
        assert await code_of(world, ADMIN, delete, DeleteAccountRequest("newcomer")) == 0
        assert await code_of(world, ADMIN, delete, DeleteAccountRequest("newcomer")) == 210
        white = RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG
        assert await code_of(world, None, view, offset) == ResponseCode.SYSTEM_ERROR
        assert await code_of(world, ADMIN, white, WhiteAddressesRequest("10.0.0")) == 211
        assert await code_of(world, ADMIN, white, WhiteAddressesRequest("10.1.1.1,127.0.{0,1}.*")) == 0
        async with session(world, None) as stranger:
            request = new_request(RequestCode.GET_BROKER_CLUSTER_ACL_INFO)
            answer = await stranger.remoting.invoke(world.broker_address, request, 30.0)
        reported = headers.read(AclVersionResponse, answer.fields)
        assert (reported.broker_name, reported.broker_addr) == ("broker-a", str(world.broker_address))
        assert java_json.read(DataVersion, reported.version.encode()).counter >= 4

    guarded(scenario)


@pytest.mark.parametrize(
    "header",
    [
        AccountRequest("newcomer"),
        AccountRequest("short", "abcdefg"),
        AccountRequest("newcomer", "abc"),
        AccountRequest("newcomer", "abcdefg", topic_perms="T"),
        AccountRequest("orders-app", white_remote_address="10.0"),
    ],
)
def test_an_invalid_account_changes_nothing(header: AccountRequest) -> None:
    async def scenario(world: World) -> None:
        code = RequestCode.UPDATE_AND_CREATE_ACL_CONFIG
        assert await code_of(world, ADMIN, code, header) == ResponseCode.UPDATE_ACL_CONFIG_FAILED
        assert read_whole(world.disk, PATH) == TEXT.encode()

    guarded(scenario)


def test_a_message_can_be_read_by_its_place_only_with_permission_for_its_topic() -> None:
    text = (
        TEXT
        + """
- accessKey: other-app
  secretKey: 12345678
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
"""
    )
    other = Credentials("other-app", "12345678")

    async def scenario(world: World) -> list[list[int]]:
        async with session(world, ORDERS) as one:
            producer = Producer(one, ProducerConfig("PG"))
            sent = await producer.send(Message("T", b"x"))
            delayed = await producer.send(Message("T", b"x", {DELAY: "18"}))
        found = []
        for outcome in (sent, delayed):
            assert isinstance(outcome, Sent)
            _, offset = parse_offset_message_id(outcome.offset_message_id)
            for code, header in (
                (RequestCode.VIEW_MESSAGE_BY_ID, headers.ViewMessageRequest(offset)),
                (RequestCode.CONSUMER_SEND_MSG_BACK, headers.SendBackRequest(offset, "G", 1)),
            ):
                found.append([await code_of(world, account, code, header) for account in (ORDERS, other)])
        return found

    assert guarded(scenario, text) == [[ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR]] * 4


def test_an_invalid_heartbeat_is_refused_as_without_accounts() -> None:
    async def scenario(world: World) -> int:
        async with session(world, ORDERS) as one:
            request = new_request(RequestCode.HEART_BEAT, body=b"{")
            return (await one.remoting.invoke(world.broker_address, request, 30.0)).code

    assert guarded(scenario) == ResponseCode.SYSTEM_ERROR


def test_a_broker_signs_its_own_requests_if_it_has_an_account() -> None:
    loop = SimulatedLoop()

    async def main() -> list[Credentials | None]:
        found = []
        for text in (None, b"accessKey: the-admin\nsecretKey: 87654321"):
            world = World(loop, config=replace(CONFIG, acl_enabled=True))
            write_durably(world.disk, PATH, TEXT.encode())
            if text is not None:
                write_durably(world.disk, "/store/config/tools.yml", text)
            async with world:
                assert world.broker is not None
                found.append(world.broker.credentials)
        return found

    assert run_simulated(main(), loop) == [None, ADMIN]
