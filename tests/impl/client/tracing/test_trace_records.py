"""Tests the text of trace records against what a released client of 5.5.0 sent.

Source: docs/reference/protocol/event-log.md, "Message trace".
"""

from dataclasses import replace

import pytest

from mqproof.impl.client.tracing.trace_records import (
    CallBegan,
    CallEnded,
    Context,
    MessageType,
    Published,
    TraceRecord,
    decode,
    encode,
    keys_of,
)

PUBLISHED = Published(
    1795655724586, "DefaultRegion", "probe_requester", "ReqTopic", ("FD02",), "gone", "key-gone second",
    "127.0.0.1:38693", 6, 46, MessageType.NORMAL, "7F03C3", True,
)  # fmt: skip
BEGAN = CallBegan(1795655730188, "DefaultRegion", "probe_consumer", "FD1F", "FD1B", 0, "key-fail")
ENDED = CallEnded("FD1F", "FD1B", 0, False, "key-fail", Context.FAILED, 1795655730189, "probe_consumer")
TEXTS: list[tuple[TraceRecord, str]] = [
    (
        PUBLISHED,
        "Pub\x011795655724586\x01DefaultRegion\x01probe_requester\x01ReqTopic\x01FD02\x01gone"
        "\x01key-gone second\x01127.0.0.1:38693\x016\x0146\x010\x017F03C3\x01true\x02",
    ),
    (
        BEGAN,
        "SubBefore\x011795655730188\x01DefaultRegion\x01probe_consumer\x01FD1F\x01FD1B\x010\x01key-fail\x02",
    ),
    (
        ENDED,
        "SubAfter\x01FD1F\x01FD1B\x010\x01false\x01key-fail\x014\x011795655730189\x01probe_consumer\x02",
    ),
]


@pytest.mark.parametrize(("record", "text"), TEXTS)
def test_a_record_is_written_as_released_clients_write_it(record: TraceRecord, text: str) -> None:
    assert encode(record) == text
    assert decode(text.encode()) == [record]


def test_a_batch_has_one_record_without_tag_and_keys() -> None:
    batch = Published(1, None, "G", "T", ("A", "B"), None, None, "h:1", 9, 2, MessageType.NORMAL, "X,Y", True)
    assert encode(batch) == (
        "Pub\x011\x01null\x01G\x01T\x01A,B\x01null\x01null\x01h:1\x019\x012\x010\x01X,Y\x01true\x02"
    )
    assert decode(encode(batch).encode()) == [batch]


def test_the_keys_of_a_trace_are_ids_and_keys_each_once() -> None:
    assert keys_of([PUBLISHED, PUBLISHED, BEGAN]) == ["FD02", "key-gone", "second", "FD1B", "key-fail"]


@pytest.mark.parametrize(
    "text",
    [
        "", "Pub", "Recall\x011\x01r\x01g\x01t\x01m\x01true\x02", "Pub\x01soon" + "\x01x" * 12,
        "SubBefore\x01-1\x01r\x01g\x01i\x01m\x010\x01k",
        "SubBefore\x01" + "9" * 30 + "\x01r\x01g\x01i\x01m\x010\x01k",
        "SubAfter\x01i\x01m\x01soon\x01true\x01k\x010",
    ],
)  # fmt: skip
def test_what_is_no_known_record_is_left_out(text: str) -> None:
    assert decode(text.encode()) == []
    assert decode(text.encode() + b"\x02" + encode(BEGAN).encode()) == [BEGAN]


@pytest.mark.parametrize("record", [PUBLISHED, BEGAN, ENDED])
def test_a_record_of_another_type_is_left_out_whatever_its_fields_are(record: TraceRecord) -> None:
    for more in ("", "\x01" + "\x01".join("7" * 9)):
        _, fields = encode(record).replace("\x02", more).split("\x01", 1)
        assert decode(f"Other\x01{fields}".encode()) == []


@pytest.mark.parametrize("ok", [True, False])
def test_records_of_older_releases_are_read(ok: bool) -> None:
    old_text = "Pub 1 r g t m null null h:1 9 2 0 " + ("true" if ok else "false")
    (old,) = decode(old_text.replace(" ", "\x01").encode())
    assert isinstance(old, Published)
    assert (old.offset_ids, old.ok) == ("", ok)
    (after,) = decode(b"SubAfter\x01i\x01m\x013\x01true\x01null\x02")
    assert after == CallEnded("i", "m", 3, True, None, Context.SUCCESS, 0, "")


@pytest.mark.parametrize(
    ("time_ms", "is_read"), [(0, True), (253_402_300_799_999, True), (253_402_300_800_000, False)]
)
def test_a_time_is_read_until_the_end_of_the_year_9999(time_ms: int, is_read: bool) -> None:
    for record in (
        replace(PUBLISHED, time_ms=time_ms),
        replace(BEGAN, time_ms=time_ms),
        replace(ENDED, time_ms=time_ms),
    ):
        assert decode(encode(record).encode()) == ([record] if is_read else [])


@pytest.mark.parametrize("record", [PUBLISHED, BEGAN, ENDED])
def test_fields_after_the_known_ones_are_ignored(record: TraceRecord) -> None:
    assert decode(encode(record).replace("\x02", "\x01more\x02").encode()) == [record]


@pytest.mark.parametrize(
    ("fields", "record"),
    [
        ("i m 3 false null", CallEnded("i", "m", 3, False, None, Context.FAILED, 0, "")),
        ("i m 3 false null 2", CallEnded("i", "m", 3, False, None, Context.EXCEPTION, 0, "")),
        ("i m 3 true k 0 5", CallEnded("i", "m", 3, True, "k", Context.SUCCESS, 0, "")),
        ("i m 3 true k 0 5 G", CallEnded("i", "m", 3, True, "k", Context.SUCCESS, 5, "G")),
    ],
)
def test_the_end_of_a_call_has_more_fields_in_later_releases(fields: str, record: CallEnded) -> None:
    assert decode("\x01".join(["SubAfter", *fields.split()]).encode()) == [record]


@pytest.mark.parametrize(("kind", "fields"), [("Pub", 12), ("SubBefore", 7), ("SubAfter", 5)])
def test_a_record_with_too_few_fields_is_left_out(kind: str, fields: int) -> None:
    assert decode("\x01".join([kind, *["1"] * (fields - 1)]).encode()) == []
    assert len(decode("\x01".join([kind, *["1"] * fields]).encode())) == 1


def test_an_empty_field_is_absent_and_a_broken_character_does_not_matter() -> None:
    (read,) = decode(b"SubBefore\x011\x01\x01G\x01i\xff\x01m\x012\x01\x02 \n")
    assert read == CallBegan(1, None, "G", "i\ufffd", "m", 2, None)
    assert encode(replace(BEGAN, keys="", region="")) == encode(replace(BEGAN, keys=None, region=None))
