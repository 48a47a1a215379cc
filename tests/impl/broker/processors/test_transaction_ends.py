"""Tests ends of transactions: which half message a request names, refusals, and the answers.

Source: docs/reference/protocol/transactions.md, "End of a transaction" and "Checks".
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from mqproof.impl.broker.half_messages import CHECK_TIMES, DISCARD_TOPIC, HALF_TOPIC, PRODUCER_GROUP
from mqproof.impl.broker.processors.transaction_ends import (
    ask_producer,
    end_transaction,
    is_named_by_key,
    resume_check,
    run,
)
from mqproof.impl.broker.state.open_transactions import End
from mqproof.impl.broker.state.traffic import OTHERS
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import CheckTransactionRequest, EndTransactionRequest, ResumeCheckRequest
from mqproof.impl.remoting.later import Later
from mqproof.impl.remoting.message import (
    REAL_QUEUE_ID,
    REAL_TOPIC,
    UNIQUE_KEY,
    Message,
    StoredMessage,
    offset_message_id,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import run_simulated
from mqproof.impl.store.files import record
from mqproof.impl.store.results import PutResult, PutStatus

COMMIT, ROLLBACK = 8, 12
HOST = Address("10.0.0.1", 10911)
PROPERTIES = {PRODUCER_GROUP: "PG", UNIQUE_KEY: "key", REAL_TOPIC: "T", REAL_QUEUE_ID: "2"}
HALF = StoredMessage(
    Message(HALF_TOPIC, b"x", PROPERTIES, born_host=HOST, store_host=HOST), 7, 1000, 123_456, 100, 0
)
REQUEST = EndTransactionRequest("PG", 7, 1000, COMMIT, "key")
CHANNEL: Any = object()


class Transactions:
    """The half message at position 1000, and a discarded one at position 2000."""

    def __init__(self, half: StoredMessage = HALF) -> None:
        self.half = half
        self.status: PutStatus | None = None
        self.ended: list[tuple[StoredMessage, End]] = []

    def half_at(self, commit_offset: int, topic: str = HALF_TOPIC) -> StoredMessage | None:
        known = {(1000, HALF_TOPIC): self.half, (2000, DISCARD_TOPIC): self.half}
        return known.get((commit_offset, topic))

    def end(self, stored: StoredMessage, end: End, done: Any) -> None:
        self.ended.append((stored, end))
        done(self.status, "a reason" if self.status is not None else "")


def services(transactions: Transactions | None = None, **more: object) -> Any:
    counted: list[tuple[str, bool]] = []

    def transaction_ended(topic: str, *, committed: bool) -> None:
        counted.append((topic, committed))

    return SimpleNamespace(
        **{
            "is_slave": False,
            "config": SimpleNamespace(permission=6),
            "transactions": transactions or Transactions(),
            "statistics": SimpleNamespace(traffic=SimpleNamespace(transaction_ended=transaction_ended)),
            "counted": counted,
            "address": HOST,
            **more,
        }
    )


def ended(given: Any, header: EndTransactionRequest = REQUEST) -> Command | None:
    request = new_request(RequestCode.END_TRANSACTION, headers.write(header))
    reply = end_transaction(given, request, CHANNEL)
    if reply is None:
        return None
    assert isinstance(reply, Later)
    assert reply.is_ended
    return reply.reply


@pytest.mark.parametrize(
    ("code", "status", "answered", "counted"),
    [
        (COMMIT, PutStatus.PUT_OK, ResponseCode.SUCCESS, [("T", True)]),
        (COMMIT, PutStatus.FLUSH_DISK_TIMEOUT, ResponseCode.SUCCESS, [("T", True)]),
        (COMMIT, None, ResponseCode.SUCCESS, []),  # it was ended before
        (COMMIT, PutStatus.MESSAGE_ILLEGAL, ResponseCode.MESSAGE_ILLEGAL, []),
        (COMMIT, PutStatus.SERVICE_NOT_AVAILABLE, ResponseCode.SERVICE_NOT_AVAILABLE, []),
        (COMMIT, PutStatus.UNKNOWN_ERROR, ResponseCode.SYSTEM_ERROR, []),
        (ROLLBACK, None, ResponseCode.SUCCESS, [("T", False)]),
    ],
)
def test_the_answer_and_the_count_of_an_end_depend_on_how_it_was_stored(
    code: int, status: PutStatus | None, answered: ResponseCode, counted: list[tuple[str, bool]]
) -> None:
    transactions = Transactions()
    transactions.status = status
    given = services(transactions)
    answer = ended(given, msgspec.structs.replace(REQUEST, commit_or_rollback=code))
    assert answer is not None
    assert (answer.code, answer.remark) == (answered, "a reason" if status is not None else None)
    assert transactions.ended == [(HALF, End.COMMIT if code == COMMIT else End.ROLLBACK)]
    assert given.counted == counted


def test_an_end_of_a_message_without_a_real_topic_is_counted_under_others() -> None:
    properties = {name: value for name, value in PROPERTIES.items() if name != REAL_TOPIC}
    half = replace(HALF, message=msgspec.structs.replace(HALF.message, properties=properties))
    transactions = Transactions(half)
    transactions.status = PutStatus.PUT_OK
    given = services(transactions)
    ended(given)
    assert given.counted == [(OTHERS, True)]


def test_an_unknown_end_has_no_answer_and_no_effect() -> None:
    given = services()
    assert ended(given, msgspec.structs.replace(REQUEST, commit_or_rollback=0)) is None
    assert given.transactions.ended == []


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"commit_or_rollback": 1}, "commitOrRollback is 1, 0, 8 or 12 expected"),
        ({"commit_log_offset": 1001}, "no half message begins at 1001"),
        ({"commit_log_offset": 2000}, "no half message begins at 2000"),
        ({"producer_group": "other"}, "the half message is of group PG, not other"),
        ({"tran_state_table_offset": 8}, "the half message has offset 7, not 8"),
        ({"msg_id": "another"}, "the half message has key key, not another"),
    ],
)
def test_an_end_must_name_the_half_message_by_all_its_fields(changes: dict[str, Any], remark: str) -> None:
    given = services()
    with pytest.raises(RefusedError) as refused:
        ended(given, msgspec.structs.replace(REQUEST, **changes))
    assert (refused.value.code, refused.value.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert given.transactions.ended == []


def test_a_slave_ends_no_transaction() -> None:
    with pytest.raises(RefusedError, match="a slave does not end transactions") as refused:
        ended(services(is_slave=True))
    assert refused.value.code == ResponseCode.SLAVE_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("key", "msg_id", "is_named"),
    [("key", "key", True), ("key", "other", False), ("", "key", False), (None, "key", True)],
)
def test_a_message_without_a_key_is_named_by_its_place_only(
    key: str | None, msg_id: str, is_named: bool
) -> None:
    assert is_named_by_key(key, msg_id) is is_named


# Discarded messages.


class Puts:
    """A store that records what is put, and answers with a status."""

    refusal = "this broker is a slave"

    def __init__(self, status: PutStatus = PutStatus.PUT_OK) -> None:
        self.status = status
        self.kept: list[Message] = []

    async def put(self, message: Message) -> PutResult:
        self.kept.append(message)
        return PutResult(self.status, reason="" if self.status is PutStatus.PUT_OK else "a reason")


def resumed(given: Any, message_id: str = offset_message_id(HOST, 2000)) -> Command:
    request = new_request(
        RequestCode.RESUME_CHECK_HALF_MESSAGE, headers.write(ResumeCheckRequest(message_id))
    )
    answer = run_simulated(resume_check(given, request, CHANNEL))
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("status", "code", "remark"),
    [
        (PutStatus.PUT_OK, ResponseCode.SUCCESS, None),
        (PutStatus.FLUSH_SLAVE_TIMEOUT, ResponseCode.SUCCESS, "a reason"),
        (PutStatus.SERVICE_NOT_AVAILABLE, ResponseCode.SERVICE_NOT_AVAILABLE, "a reason"),
        (PutStatus.UNKNOWN_ERROR, ResponseCode.SYSTEM_ERROR, "a reason"),
    ],
)
def test_a_discarded_message_becomes_a_half_message_that_was_not_checked(
    status: PutStatus, code: ResponseCode, remark: str | None
) -> None:
    checked = msgspec.structs.replace(HALF.message, properties={**PROPERTIES, CHECK_TIMES: "15"})
    store = Puts(status)
    answer = resumed(services(Transactions(replace(HALF, message=checked)), store=store))
    assert (answer.code, answer.remark) == (code, remark)
    [message] = store.kept
    assert (message.topic, message.queue_id, message.properties) == (HALF_TOPIC, 0, PROPERTIES)


@pytest.mark.parametrize(
    ("changes", "message_id", "code", "remark"),
    [
        ({"is_slave": True}, None, ResponseCode.SERVICE_NOT_AVAILABLE, "this broker is a slave"),
        (
            {"config": SimpleNamespace(permission=4)},
            None,
            ResponseCode.NO_PERMISSION,
            "the broker has no write permission",
        ),
        ({}, "zz", ResponseCode.SYSTEM_ERROR, "non-hexadecimal number"),
        ({}, offset_message_id(HOST, 1000), ResponseCode.SYSTEM_ERROR, "no discarded message has the id"),
    ],
)
def test_a_resume_that_cannot_be_carried_out_is_refused(
    changes: dict[str, Any], message_id: str | None, code: ResponseCode, remark: str
) -> None:
    store = Puts()
    with pytest.raises(RefusedError, match=remark) as refused:
        resumed(services(store=store, **changes), message_id or offset_message_id(HOST, 2000))
    assert (refused.value.code, store.kept) == (code, [])


# Checks.


class Producer:
    """A connected producer of group PG."""

    def __init__(self) -> None:
        self.asked: list[Command] = []

    def send_oneway(self, request: Command) -> None:
        self.asked.append(request)


def test_a_check_shows_the_producer_the_message_in_its_place_and_its_real_queue() -> None:
    producer = Producer()
    clients = SimpleNamespace(next_producer=lambda group: producer if group == "PG" else None)
    ask_producer(services(clients=clients), HALF)
    [request] = producer.asked
    assert (request.code, request.is_oneway) == (RequestCode.CHECK_TRANSACTION_STATE, True)
    assert headers.read(CheckTransactionRequest, request.fields) == CheckTransactionRequest(
        7, 1000, "key", "key", offset_message_id(HOST, 1000), HALF_TOPIC
    )
    shown = record.decode(request.body)
    assert (shown.queue_offset, shown.commit_offset, shown.store_timestamp_ms) == (7, 1000, 123_456)
    assert (shown.message.topic, shown.message.queue_id, shown.message.body) == ("T", 2, b"x")


def test_no_check_is_sent_while_no_producer_of_the_group_is_connected() -> None:
    asked: list[str] = []
    clients = SimpleNamespace(next_producer=asked.append)
    ask_producer(services(clients=clients), HALF)
    assert asked == ["PG"]


def test_the_work_on_transactions_has_the_settings_of_the_broker_at_each_time() -> None:
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    ensured: list[tuple[str, int]] = []

    async def work(*arguments: Any, **named: Any) -> None:
        calls.append((arguments, named))

    given = services()
    given.transactions.run = work
    given.offsets, given.asked = object(), []
    given.topics = SimpleNamespace(ensure=lambda *topic: ensured.append(topic))
    given.clients = SimpleNamespace(next_producer=given.asked.append)
    given.config = SimpleNamespace(
        transaction_check_interval_ms=1,
        transaction_timeout_ms=2,
        transaction_checks_max=3,
        transaction_operation_interval_ms=4,
    )
    run_simulated(run(given))
    [((address, offsets, ask, ensure), named)] = calls
    ask(HALF)
    ensure()
    assert (address, offsets, given.asked, ensured) == (HOST, given.offsets, ["PG"], [(DISCARD_TOPIC, 1)])
    given.config.transaction_checks_max = 5
    shown = {name: value() if callable(value) else value for name, value in named.items()}
    assert shown == {
        "check_interval_ms": 1, "timeout_ms": 2, "checks_max": 5, "operation_interval_ms": 4,
    }  # fmt: skip
