"""Tests the rules for all answers: right ones are accepted, and each wrong one is reported with its rule."""

import struct
import zlib
from typing import Any, Final

import pytest
from msgspec.structs import replace

from mqproof.conformance.answers.request_and_answer import (
    END_TRANSACTION,
    GET_MAX_OFFSET,
    GET_MIN_OFFSET,
    NOTIFY_MEMBERS,
    PULL,
    QUERY_MESSAGE,
    SEND_V2,
    VIEW_MESSAGE,
)
from mqproof.conformance.answers.stored_record import offset_message_id
from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.wire.frames import ONEWAY, RESPONSE, Frame, Header, encode

_CLIENT: Final = "10.0.0.4:40000"
_CRC: Final = 0x7FFFFFFF
_SERVER: Final = "10.0.0.3:10911"
_SENT: Final = {
    "a": "producers", "b": "T", "e": "0", "f": "0", "g": "5", "h": "7", "j": "0",
    "i": "UNIQ_KEY\x01m1\x02TAGS\x01A\x02KEYS\x01k\x02own\x01v\x02WAIT\x01false",
}  # fmt: skip
_TRACING: Final = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
_STORED: Final = {
    **_TRACING, "msgId": offset_message_id(_SERVER, 0), "queueId": "0", "queueOffset": "0",
    "transactionId": "m1",
}  # fmt: skip
_PROPERTIES: Final = "UNIQ_KEY\x01m1\x02TAGS\x01A\x02KEYS\x01k\x02own\x01v\x02CLUSTER\x01c\x02" + "\x02".join(
    f"{name}\x01{value}" for name, value in _TRACING.items()
)
_PULLED: Final = {"nextBeginOffset": "1", "minOffset": "0", "maxOffset": "1", "suggestWhichBrokerId": "0"}
_PULL: Final = {
    "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "4", "subscription": "A",
}  # fmt: skip


def _address(text: str) -> bytes:
    host, port = text.split(":")
    return bytes(map(int, host.split("."))) + int(port).to_bytes(4, "big")


def _record(
    *, body: bytes = b"hello", offset: int = 0, at: int = 0, flag: int = 7, system_flag: int = 0,
    born: int = 5, born_host: str = _CLIENT, stored: int = 100, store_host: str = _SERVER, times: int = 0,
    prepared: int = 0, topic: bytes = b"T", properties: str = _PROPERTIES, queue: int = 0,
) -> bytes:  # fmt: skip
    text = properties.encode()
    rest = (
        struct.pack(">IIiiqqi", 0xDAA320A7, zlib.crc32(body) & _CRC, queue, flag, offset, at, system_flag)
        + born.to_bytes(8, "big")
        + _address(born_host) + stored.to_bytes(8, "big") + _address(store_host)
        + struct.pack(">iqi", times, prepared, len(body)) + body
        + bytes([len(topic)]) + topic + len(text).to_bytes(2, "big") + text
    )  # fmt: skip
    return (len(rest) + 4).to_bytes(4, "big") + rest


class _Case:
    """A connection whose answers are given; the broker has stored one message unless `sends` is false."""

    def __init__(self, *, sends: bool = True, is_exact: bool = True) -> None:
        self.watch = Watch(lambda: 100, is_exact=is_exact)
        self.connection = self.watch.connection(_CLIENT, _SERVER, examined=False)
        self._opaque = 0
        if sends:
            self.call(SEND_V2, _SENT, body=b"hello", answer=Frame(0, fields=_STORED))
            assert self.wrong == []

    @property
    def wrong(self) -> list[str]:
        return [f"{each.text} ({each.values['rule']})" for each in self.watch.wrong]

    def call(self, code: int, fields: dict[str, str], *, answer: Frame, body: bytes = b"") -> None:
        self._opaque += 1
        self.connection.sent(encode(Frame(code, self._opaque, fields=fields, body=body)))
        flag = answer.flag or RESPONSE
        self.connection.received(encode(replace(answer, opaque=self._opaque + answer.opaque, flag=flag)))


def _pull(answer: dict[str, str], body: bytes = b"", *, code: int = 0, **fields: str) -> list[str]:
    case = _Case()
    case.call(PULL, {**_PULL, **fields}, answer=Frame(code, fields=answer, body=body))
    return case.wrong


def test_a_right_answer_is_accepted() -> None:
    assert _pull(_PULLED, _record()) == []
    assert _pull({**_PULLED, "nextBeginOffset": "1"}, code=19, queueOffset="1") == []
    assert _pull({**_PULLED, "nextBeginOffset": "1"}, code=21, queueOffset="7") == []
    assert _pull(_PULLED, code=20, subscription="B") == []


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"flag": 0}, "flag 0, expected 7"),
        ({"body": b"other"}, "body b'other'"),
        ({"born": 6}, "born time 6"),
        ({"born_host": _SERVER}, "born host"),
        ({"store_host": _CLIENT}, "store host"),
        ({"stored": 99}, "stored at 99"),
        ({"stored": 101}, "after 100"),
        ({"times": 1}, "reconsume times 1"),
        ({"system_flag": 8}, "system flag 8"),
        ({"system_flag": 4}, "has system flag 4"),
        ({"prepared": 9}, "prepared offset 9"),
        ({"topic": b"U"}, "has topic U"),
        ({"queue": 1}, "a record of queue 1"),
        ({"offset": 1}, "queue offset 1 behind -1"),
        ({"properties": _PROPERTIES.replace("own\x01v\x02", "")}, "properties of the producer"),
        ({"properties": _PROPERTIES.replace("CLUSTER\x01c\x02", "")}, "the property CLUSTER is missing"),
        ({"properties": _PROPERTIES + "\x02WAIT\x01false"}, "properties"),
        ({"properties": _PROPERTIES.replace("TAGS\x01A", "TAGS\x01B")}, "tag 'B' for 'A'"),
    ],
)
def test_a_record_that_differs_from_its_message_is_reported(values: dict[str, object], what: str) -> None:
    wrong = _pull(_PULLED, _record(**values))  # type: ignore[arg-type]  # the fields of a record
    assert any(what in each and "docs/reference/protocol/" in each for each in wrong), wrong


@pytest.mark.parametrize(
    ("answer", "code", "fields", "what"),
    [
        ({"nextBeginOffset": "0"}, 0, {}, "code 0 and nextBeginOffset 0"),
        ({"minOffset": "2"}, 0, {}, "minOffset 2 and maxOffset 1"),
        ({"suggestWhichBrokerId": "1"}, 0, {}, "suggestWhichBrokerId 1"),
        ({"maxOffset": "x"}, 0, {}, "no number maxOffset"),
        ({"nextBeginOffset": "2"}, 19, {"queueOffset": "1"}, "code 19"),
        ({"nextBeginOffset": "3"}, 21, {"queueOffset": "7"}, "code 21"),
        ({"maxOffset": "2"}, 19, {}, "code 19"),
        ({}, 20, {}, "offset 0 is left out"),
    ],
)
def test_wrong_offsets_of_a_pull_are_reported(
    answer: dict[str, str], code: int, fields: dict[str, str], what: str
) -> None:
    wrong = _pull({**_PULLED, **answer}, _record() if code == 0 else b"", code=code, **fields)
    assert any(what in each for each in wrong), wrong


@pytest.mark.parametrize("count", ["1", "0", "-1"])
def test_more_messages_than_requested_are_reported(count: str) -> None:
    two = {**_PULLED, "nextBeginOffset": "2", "maxOffset": "2"}
    assert not any("at most" in each for each in _pull(_PULLED, _record(), maxMsgNums=count))
    assert any("at most 1" in each for each in _pull(two, _record() + _record(offset=1), maxMsgNums=count))


@pytest.mark.parametrize(
    ("fields", "is_right"),
    [
        ({"subscription": " || "}, False), ({"subscription": "A||"}, True), ({"subscription": "||B"}, False),
        ({"subscription": "B", "sysFlag": "12"}, True), ({"subscription": "B", "sysFlag": "8"}, True),
    ],
)  # fmt: skip
def test_tags_select_unless_they_are_blank_or_the_own_code_filters(
    fields: dict[str, Any], is_right: bool
) -> None:
    wrong = _pull(_PULLED, _record(), code=0, **fields)
    assert bool(wrong) != is_right, wrong


def test_a_pull_without_its_tags_may_leave_out_messages() -> None:
    assert _pull(_PULLED, code=20, sysFlag="0") == []
    assert _pull(_PULLED, code=20, subscription="B") == []
    assert _pull(_PULLED, code=20, sysFlag="12") != []


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"TRACE_ON": None}, "no TRACE_ON"),
        ({"queueId": "1"}, "queueId 1"),
        ({"queueOffset": "-1"}, "queueOffset '-1'"),
        ({"transactionId": "m2"}, "transactionId 'm2'"),
        ({"msgId": offset_message_id(_CLIENT, 0)}, "msgId"),
        ({"msgId": "x"}, "msgId 'x'"),
        ({"msgId": f"{offset_message_id(_SERVER, 0)},{offset_message_id(_SERVER, 9)}"}, "2 message ids"),
    ],
)
def test_a_wrong_answer_to_a_send_is_reported(changed: dict[str, str | None], what: str) -> None:
    case = _Case(sends=False)
    fields = {name: value for name, value in {**_STORED, **changed}.items() if value is not None}
    case.call(SEND_V2, _SENT, body=b"hello", answer=Frame(0, fields=fields))
    assert any(what in each for each in case.wrong), case.wrong


def test_a_message_that_is_stored_before_an_earlier_one_is_reported() -> None:
    watch = Watch(lambda: 1, is_exact=True)
    connection = watch.connection(_CLIENT, _SERVER, examined=False)
    for opaque in (1, 2):
        connection.sent(encode(Frame(SEND_V2, opaque, fields=_SENT, body=b"hello")))
        connection.received(encode(Frame(0, opaque, RESPONSE, fields=_STORED)))
    assert [each.text.partition(": ")[2] for each in watch.wrong] == [
        "stored at commit offset 0, the one answered before at 0",
        "queueOffset 0, the one answered before has 0",
    ]


def test_answers_of_other_ways_are_compared() -> None:
    key = {"topic": "T", "key": "k", "maxNum": "3", "beginTimestamp": "0", "endTimestamp": "200"}
    for code, fields, body, what in (
        (VIEW_MESSAGE, {"offset": "0"}, _record(), ""),
        (VIEW_MESSAGE, {"offset": "9"}, _record(), "the one at commit offset 9"),
        (VIEW_MESSAGE, {"offset": "0"}, b"123", "bytes where 3 are left"),
        (QUERY_MESSAGE, key, _record(), ""),
        (QUERY_MESSAGE, {**key, "key": "x"}, _record(), "asked for 'x'"),
        (QUERY_MESSAGE, {**key, "endTimestamp": "99"}, _record(), "store time 100"),
        (QUERY_MESSAGE, key, _record() * 2, "commit offset 0 behind 0"),
        (QUERY_MESSAGE, key, b"", "0 messages"),
    ):
        case = _Case()
        case.call(code, fields, answer=Frame(0, body=body))
        assert bool(case.wrong) == bool(what), (code, case.wrong)
        assert what in " ".join(case.wrong), (code, case.wrong)


def test_an_end_that_goes_back_is_reported_unless_the_broker_crashed() -> None:
    queue = {"topic": "T", "queueId": "0"}
    for code, first, second in ((GET_MAX_OFFSET, "3", "2"), (GET_MIN_OFFSET, "3", "2")):
        case = _Case()
        case.call(code, queue, answer=Frame(0, fields={"offset": first}))
        case.watch.crashed()
        case.call(code, queue, answer=Frame(0, fields={"offset": second}))
        assert case.wrong == []
        case.call(code, queue, answer=Frame(0, fields={"offset": "1"}))
        assert "before" in case.wrong[0]


def test_a_record_that_changes_between_two_answers_is_reported() -> None:
    case = _Case()
    other = {**_PULL, "topic": "V", "subscription": "*"}
    for stored in (90, 91):
        body = _record(topic=b"V", at=500, stored=stored, properties="")
        case.call(PULL, other, answer=Frame(0, fields=_PULLED, body=body))
    assert any("has changed since" in each for each in case.wrong)


def test_a_final_message_must_name_a_half_message_that_was_ended() -> None:
    for prepared, is_right in ((30, True), (31, False)):
        case = _Case()
        half = {**_SENT, "i": _SENT["i"].replace("m1", "m2") + "\x02TRAN_MSG\x01true", "f": "4"}
        stored = {**_STORED, "msgId": offset_message_id(_SERVER, 900), "transactionId": "m2"}
        case.call(SEND_V2, half, body=b"hello", answer=Frame(0, fields=stored))
        case.call(END_TRANSACTION, {"msgId": "m2", "commitLogOffset": "30"}, answer=Frame(0))
        body = _record(
            at=999, prepared=prepared, system_flag=8, offset=1, properties=_PROPERTIES.replace("m1", "m2")
        )
        answer = Frame(0, fields={**_PULLED, "nextBeginOffset": "2", "maxOffset": "2"}, body=body)
        case.call(PULL, {**_PULL, "queueOffset": "1"}, answer=answer)
        assert (case.wrong == []) == is_right, case.wrong


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (Frame(0, flag=RESPONSE | ONEWAY), "flag 3"),
        (Frame(0, opaque=1), "opaque 2 is that of no request"),
        (Frame(0, version=0), "version 0"),
        (Frame(0, header=Header.BINARY), "serialization BINARY"),
        (Frame(1), "SYSTEM_ERROR without a remark"),
    ],
)
def test_a_wrong_frame_is_reported(answer: Frame, what: str) -> None:
    case = _Case(sends=False)
    case.call(999, {}, answer=answer)
    assert any(what in each for each in case.wrong), case.wrong


def test_bytes_that_are_no_frame_and_two_way_pushes_are_reported() -> None:
    case = _Case(sends=False)
    case.connection.received(encode(Frame(NOTIFY_MEMBERS, 9)))
    case.connection.received(encode(Frame(NOTIFY_MEMBERS, 9, ONEWAY)))
    case.connection.received(b"\x00\x00\x00\x05\x00\xff\xff\xff1")
    assert [each.partition(" (")[0] for each in case.wrong] == [
        "the request 40 of the server: it is not one-way",
        "an answer: a header of 16777215 bytes in a frame of 5",
    ]


def test_a_broker_with_other_clocks_and_addresses_is_not_judged_by_ours() -> None:
    case = _Case(is_exact=False)
    untraced = _PROPERTIES.replace("\x02TRACE_ON\x01true", "")
    body = _record(born_host="10.9.9.9:1", stored=7, properties=untraced)
    case.call(PULL, _PULL, answer=Frame(0, fields={**_PULLED, "suggestWhichBrokerId": "1"}, body=body))
    assert case.wrong == []


@pytest.mark.parametrize(("value", "is_wrong"), [("false", False), ("true", True)])
def test_another_broker_may_keep_the_property_that_no_durable_copy_is_awaited(
    value: str, *, is_wrong: bool
) -> None:
    case = _Case(is_exact=False)
    body = _record(properties=f"{_PROPERTIES}\x02WAIT\x01{value}")
    case.call(PULL, _PULL, answer=Frame(0, fields=_PULLED, body=body))
    assert bool(case.wrong) is is_wrong


@pytest.mark.parametrize(
    ("remark", "is_wrong"), [("TypeError: no code", True), ("queue 7 is unknown", False)]
)
def test_an_error_of_the_server_itself_is_reported(remark: str, *, is_wrong: bool) -> None:
    watch = Watch(lambda: 0, is_exact=True)
    line = watch.connection(_CLIENT, _SERVER, examined=False)
    line.sent(encode(Frame(GET_MAX_OFFSET, 1, fields={"topic": "T", "queueId": "0"})))
    line.received(encode(Frame(1, 1, RESPONSE, remark=remark)))
    assert bool(watch.wrong) is is_wrong


def test_a_batch_that_cannot_be_read_has_no_messages() -> None:
    watch = Watch(lambda: 0, is_exact=True)
    line = watch.connection(_CLIENT, _SERVER, examined=False)
    line.sent(encode(Frame(SEND_V2, 1, fields={**_SENT, "m": "true"}, body=b"\0\0\0\4")))
    line.received(encode(Frame(13, 1, RESPONSE, fields=_TRACING, remark="refused")))
    assert watch.wrong == []
