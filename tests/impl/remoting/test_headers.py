"""Tests typed headers and their flat strings on the wire.

Source: docs/reference/protocol/framing.md, "Operation headers".
"""

import msgspec
import pytest

from mqproof.impl.remoting import headers
from mqproof.impl.remoting.headers import (
    HeaderError,
    PullResponse,
    RegisterBrokerRequest,
    SendRequest,
    SendResponse,
    UnregisterClientRequest,
)

SEND = SendRequest(
    producer_group="PG",
    topic="T",
    default_topic="TBW102",
    default_topic_queue_nums=4,
    queue_id=-1,
    sys_flag=0,
    born_timestamp=1_700_000_000_000,
    flag=3,
    properties="TAGS\x01a",
    batch=False,
)

LETTERS = {
    "a": "PG",
    "b": "T",
    "c": "TBW102",
    "d": "4",
    "e": "-1",
    "f": "0",
    "g": "1700000000000",
    "h": "3",
    "i": "TAGS\x01a",
    "m": "false",
}


def test_version_1_of_a_send_has_long_field_names() -> None:
    fields = headers.write(SEND)
    assert fields["defaultTopicQueueNums"] == "4"
    assert fields["producerGroup"] == "PG"
    assert headers.read(SendRequest, fields) == SEND


def test_version_2_of_a_send_has_one_letter_field_names() -> None:
    assert headers.write_send_v2(SEND) == LETTERS
    read = headers.read_send_v2({**LETTERS, "n": "broker-a", "unknown": "x"})
    assert msgspec.structs.asdict(read) == msgspec.structs.asdict(SEND)


def test_a_missing_field_is_named_in_full_even_where_the_wire_has_a_letter() -> None:
    del (fields := dict(LETTERS))["e"]
    with pytest.raises(HeaderError, match=r"SendRequest: .*missing required field `queueId`"):
        headers.read_send_v2(fields)


@pytest.mark.parametrize("value", ["", "x", "1.5", "4294967296", "0x10"])
def test_an_invalid_or_too_large_number_is_refused(value: str) -> None:
    with pytest.raises(HeaderError, match="queueId"):
        headers.read_send_v2({**LETTERS, "e": value})


def test_members_that_are_none_are_omitted() -> None:
    assert headers.write(SendResponse("id", 1, 2)) == {"msgId": "id", "queueId": "1", "queueOffset": "2"}


def test_names_follow_the_protocol_where_it_deviates_from_camel_case() -> None:
    assert headers.write(UnregisterClientRequest("c", producer_group="P")) == {
        "clientID": "c",
        "producerGroup": "P",
    }
    register = headers.read(
        RegisterBrokerRequest,
        {
            "brokerName": "b",
            "brokerAddr": "1.2.3.4:5",
            "clusterName": "c",
            "haServerAddr": "1.2.3.4:6",
            "brokerId": "0",
            "bodyCrc32": "77",
            "compressed": "TRUE",
        },
    )
    assert (register.body_crc32, register.compressed) == (77, True)


def test_a_pull_response_has_all_four_numbers() -> None:
    assert headers.write(PullResponse(0, 5, 0, 9)) == {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": "5",
        "minOffset": "0",
        "maxOffset": "9",
    }


@pytest.mark.parametrize("transaction_id", [None, "K"])
def test_a_send_response_is_written_like_any_other_header(transaction_id: str | None) -> None:
    response = headers.SendResponse(msg_id="ID", queue_id=3, queue_offset=7, transaction_id=transaction_id)
    assert headers.write_send_response(**msgspec.structs.asdict(response)) == headers.write(response)


def test_the_answer_to_the_largest_batch_can_be_read() -> None:
    ids = ",".join(["0" * 56] * 16_384)  # as many messages as a broker takes, stored at an IPv6 address
    fields = {"msgId": ids, "queueId": "1", "queueOffset": "2"}
    assert headers.read(SendResponse, fields).msg_id == ids


@pytest.mark.parametrize(("characters", "is_read"), [(1 << 20, True), ((1 << 20) + 1, False)])
def test_the_ids_of_a_batch_have_at_most_1_mib(characters: int, is_read: bool) -> None:
    fields = {"msgId": "x" * characters, "queueId": "0", "queueOffset": "0"}
    if is_read:
        assert len(headers.read(SendResponse, fields).msg_id) == characters
        return
    with pytest.raises(HeaderError, match="msgId"):
        headers.read(SendResponse, fields)
