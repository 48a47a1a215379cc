"""Tests the table of codes; an unknown code is shown as its number."""

from mqproof.impl.remoting.codes import ResponseCode, is_retriable, request_name, response_name


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
