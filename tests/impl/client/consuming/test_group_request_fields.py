"""Tests the requests of a consumer field by field, and what it makes of each answer.

Source: docs/reference/protocol/pulling.md, offsets.md, groups.md and retries-and-delays.md.
"""

import json
from collections.abc import Awaitable, Callable
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, MessageQueue, PullResult, ReceivedMessage, RefusalError
from mqproof.impl.remoting.bodies import BrokerData, Subscription, TopicRoute
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.message import RETRY_TOPIC, UNIQUE_KEY, Message, StoredMessage
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import run_simulated
from mqproof.impl.store.files import record

QUEUE = MessageQueue("T", "b", 3)
MASTER, SLAVE, FILTER = Address("h", 1), Address("h", 2), Address("f", 1)
MODULE = b"\0asm\1\0\0\0"


class Routes:
    """One topic at one broker."""

    def __init__(self) -> None:
        self.replica_ids = {0: MASTER, 1: SLAVE}
        self.servers = [FILTER]
        self.doubted: list[str] = []
        self.failure: RemotingError | None = None

    async def get(self, topic: str) -> TopicRoute:
        if self.failure is not None:
            raise self.failure
        return TopicRoute([BrokerData({0: "h:1"}, "b", topic)], [])

    def address(self, topic: str, broker_name: str, *, master_only: bool = True) -> Address | None:
        assert (topic, broker_name) == ("T", "b")
        return self.replica_ids.get(0) or (None if master_only else self.replica_ids.get(1))

    def replicas(self, topic: str, broker_name: str) -> dict[int, Address]:
        assert (topic, broker_name) == ("T", "b")
        return self.replica_ids

    def brokers_of(self, _topic: str) -> list[Address]:
        return list(self.replica_ids.values())[:1]

    def filter_servers(self, topic: str, broker: Address) -> list[Address]:
        assert (topic, broker) == ("T", MASTER)
        return self.servers

    def doubt(self, topic: str) -> None:
        self.doubted.append(topic)


class Site:
    """A session with scripted answers; each is a code, with fields and body if they matter."""

    def __init__(self, *answers: Command | Exception) -> None:
        self.routes = Routes()
        self.asked: list[tuple[str, Address, float]] = []
        self.requests: list[Command] = []
        self._answers = list(answers)
        session = SimpleNamespace(
            routes=self.routes, client_id="me", remoting=self, runtime=SimpleNamespace(random=Random(0))
        )
        self.calls = GroupRequests(cast(Any, session), "G")

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        self.asked.append((RequestCode(request.code).name, address, timeout_s))
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def fields(self, at: int = 0) -> dict[str, str]:
        return dict(self.requests[at].fields)


def answer(code: int = 0, body: bytes = b"", remark: str | None = None, **fields: str) -> Command:
    return Command(code, 0, fields=fields, body=body, remark=remark)


def pulled(code: int = 0, body: bytes = b"", suggested: int = 0) -> Command:
    return answer(
        code, body, suggestWhichBrokerId=str(suggested), nextBeginOffset="9", minOffset="2", maxOffset="10"
    )


def stored(*tags: str) -> bytes:
    found = b""
    for offset, tag in enumerate(tags):
        draft = record.encode(Message("T", b"body", {"TAGS": tag} if tag else {}))
        record.place(draft, offset, 1000 * offset, 1)
        found += draft
    return found


def test_a_pull_has_all_its_fields_and_more_time_than_it_may_be_held() -> None:
    site = Site(pulled(19), pulled(19))
    result = run_simulated(site.calls.pull(QUEUE, 7))
    assert result == PullResult("NO_NEW_MESSAGE", 9, 2, 10)
    run_simulated(site.calls.pull(QUEUE, 7, max_count=5, tags="A || B", hold_ms=2000))
    assert site.asked == [("PULL_MESSAGE", MASTER, 10.0), ("PULL_MESSAGE", MASTER, 12.0)]
    fields = {
        "consumerGroup": "G", "topic": "T", "queueId": "3", "queueOffset": "7", "maxMsgNums": "32",
        "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0",
        "subscription": "*", "expressionType": "TAG",
    }  # fmt: skip
    held = {"maxMsgNums": "5", "sysFlag": "6", "suspendTimeoutMillis": "2000", "subscription": "A || B"}
    assert [site.fields(0), site.fields(1)] == [fields, {**fields, **held}]


@pytest.mark.parametrize(
    ("code", "status"),
    [(0, "FOUND"), (19, "NO_NEW_MESSAGE"), (20, "NO_MATCHED_MESSAGE"), (21, "OFFSET_ILLEGAL")],
)
def test_the_code_of_an_answer_to_a_pull_is_its_status(code: int, status: str) -> None:
    assert run_simulated(Site(pulled(code)).calls.pull(QUEUE, 7)).status == status


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("*", ["A", "B", None, "C"]),
        ("", ["A", "B", None, "C"]),
        (" A ||C", ["A", "C"]),
        (MessageSelector.sql("price > 5"), ["A", "B", None, "C"]),
        (MessageSelector.sql("B = 'B'"), ["A", "B", None, "C"]),
    ],
)
def test_messages_are_compared_with_the_wanted_tags_themselves(
    wanted: str | MessageSelector, expected: list[str | None]
) -> None:
    site = Site(pulled(0, stored("A", "B", "", "C")))
    result = run_simulated(site.calls.pull(QUEUE, 0, tags=wanted))
    assert [each.message.properties.get("TAGS") for each in result.messages] == expected
    assert result.next_offset == 9


def test_a_message_that_has_no_room_is_pulled_again() -> None:
    site = Site(pulled(0, stored("A", "A", "A")))
    result = run_simulated(site.calls.pull(QUEUE, 0, room=lambda: 8))
    assert (len(result.messages), result.next_offset) == (2, 2)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (answer(0), "T@b:3: the answer to a pull is invalid: "),
        (pulled(0, b"xxxxxxxxxxxx"), "T@b:3: the answer to a pull is invalid: a record of "),
        (answer(1, remark="why"), "T@b:3: SYSTEM_ERROR: why"),
        (RemotingError("lost"), "T@b:3: lost"),
    ],
)
def test_a_wrong_answer_to_a_pull_is_an_error_with_the_queue(wrong: Command | Exception, text: str) -> None:
    site = Site(wrong)
    with pytest.raises(ClientError, match=text):
        run_simulated(site.calls.pull(QUEUE, 0))
    assert site.routes.doubted == (["T"] if isinstance(wrong, Exception) else [])


@pytest.mark.parametrize(
    ("suggested", "there", "then"),
    [
        (0, (0, 1), 0), (1, (0, 1), 1), (1, (0, 2), 2), (2, (0, 1), 0), (3, (1, 4), 4), (0, (1, 2), 1),
    ],
)  # fmt: skip
def test_a_pull_follows_the_suggestion_of_the_last_answer(
    suggested: int, there: tuple[int, ...], then: int
) -> None:
    site = Site(pulled(19, suggested=suggested), pulled(19))
    run_simulated(site.calls.pull(QUEUE, 0))
    site.routes.replica_ids = {each: Address("h", 10 + each) for each in there}
    run_simulated(site.calls.pull(QUEUE, 0))
    assert site.asked[1][1] == Address("h", 10 + then)


def test_without_any_replica_the_route_is_doubted() -> None:
    site = Site()
    site.routes.replica_ids = {}
    with pytest.raises(ClientError, match="T@b:3: no broker of that name is known"):
        run_simulated(site.calls.pull(QUEUE, 0))
    with pytest.raises(ClientError, match="T@b:3: no master of that name is known"):
        run_simulated(site.calls.commit(QUEUE, 0))
    assert site.routes.doubted == ["T", "T"]
    site.routes.failure = RemotingError("silent")
    with pytest.raises(ClientError, match="T: silent"):
        run_simulated(site.calls.pull(QUEUE, 0))


def test_a_function_is_pulled_at_a_filter_server_and_uploaded_if_it_lacks_it() -> None:
    selector = MessageSelector.function(MODULE)
    lacks = answer(ResponseCode.FILTER_DATA_NOT_EXIST)
    site = Site(lacks, answer(), pulled(0, stored("A")))
    result = run_simulated(site.calls.pull(QUEUE, 7, tags=selector, hold_ms=1000))
    assert len(result.messages) == 1
    assert site.asked == [
        ("PULL_MESSAGE", FILTER, 11.0),
        ("REGISTER_MESSAGE_FILTER_CLASS", FILTER, 5.0),
        ("PULL_MESSAGE", FILTER, 11.0),
    ]
    assert site.fields(0) == site.fields(2)
    assert (site.fields(0)["sysFlag"], site.fields(0)["queueOffset"]) == ("14", "7")
    assert site.requests[1].body == MODULE
    assert (site.fields(1)["consumerGroup"], site.fields(1)["topic"]) == ("G", "T")
    assert site.fields(1)["className"] == selector.expression


def test_a_function_that_the_filter_server_has_is_not_uploaded_again() -> None:
    site = Site(pulled(0, stored("A")))
    run_simulated(site.calls.pull(QUEUE, 7, tags=MessageSelector.function(MODULE)))
    assert [name for name, *_ in site.asked] == ["PULL_MESSAGE"]


def test_a_pull_that_is_lost_after_an_upload_is_an_error_with_the_queue_and_doubts_the_route() -> None:
    lacks = answer(ResponseCode.FILTER_DATA_NOT_EXIST)
    for answers in ((lacks, RemotingError("lost")), (lacks, answer(), RemotingError("lost"))):
        site = Site(*answers)
        with pytest.raises(ClientError, match=r"^T@b:3: (upload of the function: )?lost$"):
            run_simulated(site.calls.pull(QUEUE, 7, tags=MessageSelector.function(MODULE)))
        assert site.routes.doubted == ["T"]


def test_a_function_that_cannot_run_or_be_uploaded_is_an_error() -> None:
    selector, lacks = MessageSelector.function(MODULE), answer(ResponseCode.FILTER_DATA_NOT_EXIST)
    with pytest.raises(ClientError, match="T@b:3: upload of the function: NO_PERMISSION: no"):
        run_simulated(Site(lacks, answer(16, remark="no")).calls.pull(QUEUE, 0, tags=selector))
    with pytest.raises(ClientError, match="T@b:3: FILTER_DATA_NOT_EXIST"):
        run_simulated(Site(lacks).calls.pull(QUEUE, 0))  # only a function can be uploaded
    site = Site()
    site.routes.servers = []
    with pytest.raises(ClientError, match="T@b:3: broker h:1 has no filter server to run the function"):
        run_simulated(site.calls.pull(QUEUE, 0, tags=selector))
    assert site.routes.doubted == ["T"]


OF_QUEUE = {"topic": "T", "queueId": "3"}
OFFSET = answer(offset="7")
MESSAGE = ReceivedMessage(
    StoredMessage(Message("%RETRY%G", b"x", {UNIQUE_KEY: "m", RETRY_TOPIC: "T0"}), 5, 1024, 0, 0, 0), QUEUE, 1
)


@pytest.mark.parametrize(
    ("call", "name", "fields", "given", "result"),
    [
        (lambda c: c.min_offset(QUEUE), "GET_MIN_OFFSET", OF_QUEUE, OFFSET, 7),
        (lambda c: c.max_offset(QUEUE), "GET_MAX_OFFSET", OF_QUEUE, OFFSET, 7),
        (
            lambda c: c.search_offset(QUEUE, 99), "SEARCH_OFFSET_BY_TIMESTAMP",
            {**OF_QUEUE, "timestamp": "99"}, OFFSET, 7,
        ),
        (
            lambda c: c.committed(QUEUE), "QUERY_CONSUMER_OFFSET",
            {**OF_QUEUE, "consumerGroup": "G"}, OFFSET, 7,
        ),
        (
            lambda c: c.commit(QUEUE, 8), "UPDATE_CONSUMER_OFFSET",
            {**OF_QUEUE, "consumerGroup": "G", "commitOffset": "8"}, answer(), None,
        ),
        (
            lambda c: c.commit(QUEUE, 8, only_forward=True), "UPDATE_CONSUMER_OFFSET",
            {**OF_QUEUE, "consumerGroup": "G", "commitOffset": "8", "onlyForward": "true"}, answer(), None,
        ),
        (
            lambda c: c.send_back(MESSAGE, 3, 16), "CONSUMER_SEND_MSG_BACK",
            {
                "offset": "1024", "group": "G", "delayLevel": "3", "originMsgId": "m", "originTopic": "T0",
                "unitMode": "false", "maxReconsumeTimes": "16",
            },
            answer(), None,
        ),
        (
            lambda c: c.members("T"), "GET_CONSUMER_LIST_BY_GROUP", {"consumerGroup": "G"},
            answer(body=b'{"consumerIdList":["c1","c2"]}'), ["c1", "c2"],
        ),
    ],
)  # fmt: skip
def test_a_request_has_exactly_these_fields(
    call: Callable[[GroupRequests], Awaitable[object]],
    name: str,
    fields: dict[str, str],
    given: Command,
    result: object,
) -> None:
    site = Site(given)
    assert run_simulated(cast(Any, call(site.calls))) == result
    assert site.asked == [(name, MASTER, 5.0)]
    assert site.fields() == fields
    refused = Site(answer(ResponseCode.SERVICE_NOT_AVAILABLE, remark="soon"))
    with pytest.raises(RefusalError, match=r"(T|T@b:3): SERVICE_NOT_AVAILABLE: soon") as error:
        run_simulated(cast(Any, call(refused.calls)))
    assert error.value.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert refused.routes.doubted == ["T"]


def test_a_request_for_locks_names_the_client_the_group_and_the_queues() -> None:
    other = MessageQueue("T", "b", 4)
    free = b'{"lockOKMQSet":[{"brokerName":"b","queueId":4,"topic":"T"}]}'
    site = Site(answer(body=free), answer())
    assert run_simulated(site.calls.lock([QUEUE, other])) == {other}
    run_simulated(site.calls.unlock([other]))
    assert site.asked == [("LOCK_BATCH_MQ", MASTER, 1.0), ("UNLOCK_BATCH_MQ", MASTER, 1.0)]
    named = [{"brokerName": "b", "queueId": number, "topic": "T"} for number in (3, 4)]
    for request, queues in zip(site.requests, (named, named[1:]), strict=True):
        body = json.loads(request.body)
        assert (body["clientId"], body["consumerGroup"], body["mqSet"]) == ("me", "G", queues)
    for call in (site.calls.lock, site.calls.unlock):
        site._answers = [answer(1, remark="no")]
        with pytest.raises(RefusalError, match="locks at b: SYSTEM_ERROR: no"):
            run_simulated(cast(Any, call([QUEUE])))


def test_bodies_are_in_the_standard_dialect_of_json() -> None:
    """Only it escapes characters beyond ASCII."""
    site = Site(*[answer(body=b'{"lockOKMQSet":[]}')] * 3)
    site.calls.group = "G\u00e9"
    for call in (site.calls.lock([QUEUE]), site.calls.unlock([QUEUE]), site.calls.check(Subscription("T"))):
        run_simulated(cast(Any, call))
    assert [b"G\\u00e9" in request.body for request in site.requests] == [True] * 3


def test_a_subscription_is_checked_at_one_broker_of_the_topic() -> None:
    site = Site(answer(), answer(1, remark="no"))
    subscription = Subscription("T", "price > 5", expression_type="SQL92")
    run_simulated(site.calls.check(subscription))
    assert site.asked == [("CHECK_CLIENT_CONFIG", MASTER, 5.0)]
    body = json.loads(site.requests[0].body)
    assert (body["clientId"], body["group"]) == ("me", "G")
    assert body["subscriptionData"]["subString"] == "price > 5"
    with pytest.raises(RefusalError, match="subscription to T: SYSTEM_ERROR: no"):
        run_simulated(site.calls.check(subscription))
    site.routes.replica_ids = {}
    for call in (site.calls.check(subscription), site.calls.members("T")):
        with pytest.raises(ClientError, match="T: no broker is known"):
            run_simulated(cast(Any, call))


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda c: c.pull(QUEUE, 0), "T@b:3"), (lambda c: c.min_offset(QUEUE), "T@b:3"),
        (lambda c: c.committed(QUEUE), "T@b:3"), (lambda c: c.commit(QUEUE, 0), "T@b:3"),
        (lambda c: c.send_back(MESSAGE, 0, 16), "T@b:3"), (lambda c: c.members("T"), "T"),
        (lambda c: c.lock([QUEUE]), "locks at b"), (lambda c: c.unlock([QUEUE]), "locks at b"),
        (lambda c: c.check(Subscription("T")), "T"),
    ],
)  # fmt: skip
def test_a_request_that_is_lost_is_an_error_and_doubts_the_route_and_one_without_a_route_is_not_sent(
    call: Callable[[GroupRequests], Awaitable[object]], what: str
) -> None:
    site = Site(RemotingError("lost"))
    with pytest.raises(ClientError, match=f"^{what}: lost$"):
        run_simulated(cast(Any, call(site.calls)))
    assert site.routes.doubted == ["T"]
    site.routes.failure = RemotingError("silent")
    with pytest.raises(ClientError, match=r"^T: silent$"):
        run_simulated(cast(Any, call(site.calls)))
    assert len(site.asked) == 1


def test_a_list_of_members_or_of_locks_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ClientError, match=r"^T: the list of consumers is invalid: "):
        run_simulated(Site(answer(body=b"{")).calls.members("T"))
    with pytest.raises(ClientError, match=r"^locks at b: the answer is invalid: "):
        run_simulated(Site(answer(body=b"{")).calls.lock([QUEUE]))


def test_only_a_master_knows_that_a_group_has_no_offset() -> None:
    site = Site(answer(ResponseCode.QUERY_NOT_FOUND), answer(ResponseCode.QUERY_NOT_FOUND))
    assert run_simulated(site.calls.committed(QUEUE)) is None
    site.routes.replica_ids = {1: SLAVE}
    with pytest.raises(ClientError, match=r"^T@b:3: a slave has no offset, its master may have one$"):
        run_simulated(site.calls.committed(QUEUE))


def test_an_answer_without_an_offset_is_an_error_with_the_queue() -> None:
    with pytest.raises(ClientError, match=r"T@b:3: .*offset"):
        run_simulated(Site(answer()).calls.min_offset(QUEUE))
