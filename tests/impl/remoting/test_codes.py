"""Tests the table of codes; an unknown code is shown as its number."""

from mqproof.conformance.adapters.inspections.site import CODES
from mqproof.impl.remoting.codes import (
    RequestCode,
    ResponseCode,
    is_retriable,
    request_name,
    response_name,
)

TO_CLIENTS = {
    "CHECK_TRANSACTION_STATE": 39,
    "NOTIFY_CONSUMER_IDS_CHANGED": 40,
    "RESET_CONSUMER_CLIENT_OFFSET": 220,
    "GET_CONSUMER_STATUS_FROM_CLIENT": 221,
    "PUSH_REPLY_MESSAGE_TO_CLIENT": 326,
}
"""The requests that a broker sends, so that no catalogue of a server's operations has them."""


def test_requests_have_the_numbers_of_released_servers() -> None:
    assert {code.name: code.value for code in RequestCode} == {
        **{code.name: CODES[code.name] for code in RequestCode if code.name not in TO_CLIENTS},
        **TO_CLIENTS,
    }


def test_known_codes_have_names_and_unknown_ones_a_number() -> None:
    assert response_name(17) == "TOPIC_NOT_EXIST"
    assert response_name(4711) == "CODE_4711"
    assert request_name(10) == "SEND_MESSAGE"
    assert request_name(4711) == "CODE_4711"


def test_a_refused_message_is_final_and_a_missing_topic_is_not() -> None:
    assert is_retriable(ResponseCode.TOPIC_NOT_EXIST)
    assert not is_retriable(ResponseCode.MESSAGE_ILLEGAL)
    assert not is_retriable(4711)


def test_every_response_code_has_a_description() -> None:
    assert all(code.meaning for code in ResponseCode)


def test_a_refusal_is_retried_if_another_broker_may_accept_the_message() -> None:
    assert {code.name for code in ResponseCode if code.retriable} == {
        "SYSTEM_ERROR",
        "SYSTEM_BUSY",
        "SERVICE_NOT_AVAILABLE",
        "NO_PERMISSION",
        "TOPIC_NOT_EXIST",
        "NO_BUYER_ID",
        "NOT_IN_CURRENT_UNIT",
        "GO_AWAY",
    }
