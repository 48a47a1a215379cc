"""The event vocabulary: written events are read back, and errors name the invalid line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqproof.spec.events import COLUMNS, NUMBER_MAX, Event, EventError, Kind, as_row, decode, encode, read_log

NUMBERS = st.integers(-NUMBER_MAX, NUMBER_MAX)
EVENTS = st.builds(
    Event,
    ts=NUMBERS,
    seq=st.integers(0, 2**40),
    node=st.text(),
    kind=st.sampled_from(Kind),
    msg_id=st.none() | st.text(),
    queue_id=st.none() | st.integers(0, 2**31 - 1),
    queue_offset=st.none() | NUMBERS,
    status=st.none() | st.text(),
    attrs=st.dictionaries(st.text().filter(lambda name: name != "schema"), st.text(), max_size=3),
)


@given(EVENTS)
def test_an_encoded_event_is_one_line_and_decodes_to_the_same_event(event: Event) -> None:
    line = encode(event)
    assert line.count(b"\n") == 1
    assert decode(line, "here") == event


def test_fields_without_a_value_are_omitted_from_the_line() -> None:
    assert encode(Event(ts=1, seq=0, node="b", kind=Kind.FLUSH)) == (
        b'{"ts":1,"seq":0,"node":"b","kind":"flush"}\n'
    )


def test_an_event_as_a_row_has_all_columns() -> None:
    assert list(as_row(Event(ts=1, seq=0, node="b", kind=Kind.FLUSH))) == list(COLUMNS)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"garbage\n", "malformed"),
        (b'{"ts":1,"seq":0,"node":"b"}\n', "missing required field `kind`"),
        (b'{"ts":"now","seq":0,"node":"b","kind":"send"}\n', "Expected `int`, got `str` - at `$.ts`"),
        (b'{"ts":%d,"seq":0,"node":"b","kind":"send"}\n' % (1 << 62), "<= 4611686018427387903 - at `$.ts`"),
        (b'{"ts":1,"seq":0,"node":"b","kind":"explode"}\n', "Invalid enum value 'explode'"),
        (b'{"ts":1,"seq":0,"node":"b","kind":"send","attrs":{"schema":"99"}}\n', "event schema '99'"),
        (
            b'{"ts":1,"seq":0,"node":"b","kind":"send","attrs":{"schema":"' + b"1" * 5000 + b'"}}\n',
            "schema '1111",
        ),
        (b'{"ts":1,"seq":0,"node":"\xff","kind":"send"}\n', "not an event"),
        (b"[" * 100_000 + b"\n", "not an event"),
    ],
)
def test_the_error_for_an_invalid_line_names_the_file_and_line(
    line: bytes, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "log.ndjson"
    path.write_bytes(encode(Event(ts=1, seq=0, node="b", kind=Kind.SEND)) + line)
    with pytest.raises(EventError) as caught:
        list(read_log(path))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert problem in str(caught.value)


def test_a_truncated_last_line_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    event = Event(ts=1, seq=0, node="b", kind=Kind.SEND)
    path.write_bytes(encode(event) + encode(event)[:-5])
    assert list(read_log(path)) == [event]
