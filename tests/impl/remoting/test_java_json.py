"""Tests JSON with raw keys, as Java peers write it, and standard JSON.

Source: docs/reference/protocol/framing.md, "JSON bodies".
"""

import json
import tracemalloc
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import (
    BrokerData,
    Heartbeat,
    MessageQueue,
    QueueData,
    RegisterBrokerBody,
    StatsWindow,
    TopicRoute,
)
from mqproof.impl.remoting.java_json import BodyError, ObjectKey, quote_keys, read, write

ROUTE = TopicRoute(
    broker_datas=[BrokerData({0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}, "b-a", "C/é")],
    queue_datas=[QueueData("b-a", 6, 4, 0, 4)],
)

JAVA_ROUTE = (
    '{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"b-a","cluster":"C/é"}],'
    '"queueDatas":[{"brokerName":"b-a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}],'
    '"filterServerTable":{}}'
).encode()

STANDARD_ROUTE = (
    b'{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911","1":"10.0.0.2:10911"},"brokerName":"b-a",'
    b'"cluster":"C\\/\\u00e9"}],"filterServerTable":{},"queueDatas":[{"brokerName":"b-a","perm":6,'
    b'"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
)


def test_a_route_is_written_in_either_dialect() -> None:
    assert write(ROUTE) == JAVA_ROUTE
    assert write(ROUTE, standard=True) == STANDARD_ROUTE


@pytest.mark.parametrize("text", [JAVA_ROUTE, STANDARD_ROUTE])
def test_a_route_is_read_in_either_dialect(text: bytes) -> None:
    assert read(TopicRoute, text) == ROUTE


def test_an_object_in_key_position_becomes_a_string() -> None:
    text = '{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:7,{"queueId":1}:8}}'
    table = json.loads(quote_keys(text))["offsetTable"]
    assert [(json.loads(key)["queueId"], value) for key, value in table.items()] == [(0, 7), (1, 8)]


class _Table(msgspec.Struct, rename="camel"):
    offset_table: dict[ObjectKey, int]


def test_a_table_by_queue_is_read_in_either_dialect_and_written_with_raw_keys() -> None:
    queue = MessageQueue("b", 0, "T")
    raw = b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:7}}'
    other_order = b'{"offsetTable":{"{\\"topic\\":\\"T\\",\\"queueId\\":0,\\"brokerName\\":\\"b\\"}":7}}'
    table = _Table({ObjectKey(queue): 7})
    assert write(table) == raw
    assert (
        read(_Table, raw) == read(_Table, other_order) == read(_Table, write(table, standard=True)) == table
    )
    (key,) = table.offset_table
    assert key.as_a(MessageQueue) == queue


@pytest.mark.parametrize("key", ['"b"', "{b}", '{"a":', "[1]", '{"topic":"T"}'])
def test_a_key_that_is_not_a_queue_is_refused(key: str) -> None:
    def queues() -> list[MessageQueue]:
        table = read(_Table, f'{{"offsetTable":{{{key}:7}}}}'.encode()).offset_table
        return [found.as_a(MessageQueue) for found in table]

    with pytest.raises(BodyError):
        queues()


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(_json)
def test_standard_json_has_the_same_meaning_after_quoting(value: Any) -> None:
    assert json.loads(quote_keys(json.dumps(value))) == value
    assert json.loads(quote_keys(json.dumps(value, ensure_ascii=False, indent=1))) == value
    with patch.object(java_json, "_TOKENS_JOINED", 1):
        assert json.loads(quote_keys(json.dumps(value))) == value


@pytest.mark.parametrize("tokens_joined", [1, 2, 3, 5])
def test_the_text_does_not_depend_on_how_many_tokens_are_joined(tokens_joined: int) -> None:
    text = '{{"a":{1:[2]}}:{3:4},{"b":{}}:[{5:{6:7}},8],9:{{"c":1}:2}}'
    whole = quote_keys(text)
    with patch.object(java_json, "_TOKENS_JOINED", tokens_joined):
        assert quote_keys(text) == whole
    assert len(json.loads(whole)) == 3


@given(_json)
@example({"a": None})
@example({"/": "\x7f\x00é", 'a"b\\': ":null", "\ud800": 2**70})
@example({10: "x", 9: {"b": [], "a": {}}})
def test_standard_json_is_sorted_ascii_without_nulls(value: Any) -> None:
    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {str(key): plain(inner) for key, inner in part.items() if inner is not None}
        return [plain(inner) for inner in part] if isinstance(part, list) else part

    expected = json.dumps(plain(value), sort_keys=True, separators=(",", ":"))
    assert write(value, standard=True).decode() == expected.replace("/", "\\/").replace("\x7f", "\\u007f")


@given(st.text("{}[]\":,0a\\ '", max_size=30))
def test_garbage_is_a_body_error_or_a_body(text: str) -> None:
    with suppress(BodyError):
        read(Heartbeat, text.encode())


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "Heartbeat"),
        (b"{}", "clientID"),
        (b'{"clientID":7}', "clientID"),
        (b'{"clientID":"c","consumerDataSet":[', "never closed"),
        (b"}", "unmatched"),
        (b"\xff\xfe", "Heartbeat"),
        (b"[" * 100_000, "."),
        (b'{"clientID":' * 50_000, "."),
        (b"{1:" * 50_000, "nested too deeply at character 300"),
        (b"{{1:2}:3,{{4:5}:6}:7}", "nested too deeply at character 10"),
        (b"{" * 20 + b"1:1" + b"}:1}" * 20, "nested too deeply at character 2"),
        (b"{[{" * 9 + b"1:1" + b"}]:1}" * 9, "nested too deeply"),
    ],
)
def test_a_body_of_another_structure_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(BodyError, match=reason):
        read(Heartbeat, body)


@pytest.mark.parametrize("part", ['\\"', "a", "\\\\", "{", ":"])
def test_an_unterminated_string_is_one_token(part: str) -> None:
    """If it were not, each quote would start a search for its end: an hour for a body of a mebibyte."""
    text = '"' + part * 1000
    assert [match.group() for match in java_json._TOKEN.finditer(text)] == [text]
    with pytest.raises(BodyError):
        read(Heartbeat, b'{"clientID":' + text.encode())


_with_integer_keys = st.recursive(
    st.none() | st.integers() | st.text('a1:,{}[]"\\', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.integers() | st.text("1:,{", max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(_with_integer_keys)
@example({1: {-2: "{3:4,5:6"}, "a\\": {7: [8]}})
def test_integer_keys_are_quoted_as_all_unquoted_keys_are(value: Any) -> None:
    def raw(part: Any) -> str:
        if isinstance(part, dict):
            members = (
                f"{key if isinstance(key, int) else json.dumps(key)}:{raw(one)}" for key, one in part.items()
            )
            return "{" + ",".join(members) + "}"
        return "[" + ",".join(map(raw, part)) + "]" if isinstance(part, list) else json.dumps(part)

    text = raw(value)
    assert java_json._integer_keys_quoted(text) == quote_keys(text)


def test_a_body_with_integer_keys_is_not_read_token_by_token() -> None:
    with patch.object(java_json, "quote_keys", side_effect=AssertionError):
        assert read(TopicRoute, JAVA_ROUTE) == ROUTE


def test_many_integer_keys_take_no_more_than_some_times_the_memory_of_the_text() -> None:
    text = "{" + ",".join(f"{number}:1" for number in range(50_000)) + "}"
    tracemalloc.start()
    quoted = java_json._integer_keys_quoted(text)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(json.loads(quoted)) == 50_000
    assert most < 15 * len(text)


def test_a_long_text_takes_little_more_memory_than_its_size() -> None:
    members = ",".join(f'{number}:1,"k{number}":{{{{"q":{number}}}:2}}' for number in range(20_000))
    text = "{" + members + "}"
    tracemalloc.start()
    quoted = quote_keys(text)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 6 * len(text)
    found = json.loads(quoted)
    assert len(found) == 40_000
    assert (found["19999"], found["k19999"]) == (1, {'{"q":19999}': 2})


def test_a_raw_key_inside_an_object_in_key_position_is_quoted() -> None:
    assert json.loads(quote_keys('{{"a":{1:[2]}}:{3:4}}')) == {'{"a":{"1":[2]}}': {"3": 4}}


def test_numbers_may_be_strings_and_missing_fields_get_defaults() -> None:
    text = (
        b'{"topicConfigSerializeWrapper":{"dataVersion":{"counter":"3"},'
        b'"topicConfigTable":{"T":{"topicName":"T"}}}}'
    )
    wrapper = read(RegisterBrokerBody, text).topic_config_serialize_wrapper
    assert wrapper.data_version.counter == 3
    assert wrapper.topic_config_table["T"].read_queue_nums == 16


def test_a_number_that_a_released_server_leaves_out_is_0() -> None:
    queues = read(QueueData, b'{"brokerName":"b","perm":6,"readQueueNums":4}')
    assert (queues.write_queue_nums, queues.topic_sys_flag) == (0, 0)
    window = read(StatsWindow, b"{}")
    assert (window.avgpt, window.sum, window.tps) == (0, 0, 0)
