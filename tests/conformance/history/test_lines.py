"""History files: every line is read back as it was written, and an invalid line is refused with its place."""

import pytest

from mqproof.conformance.history.exact_delivery import clean
from mqproof.conformance.history.lines import HistoryError, decode, decode_lines, encode
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.record import NEVER, Outcome

HISTORY = clean(0)


def test_every_line_is_read_back_as_it_was_written() -> None:
    texts = [encode(line) for line in HISTORY.lines]
    assert list(decode_lines(texts, "h")) == HISTORY.lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[]\n", "h:1: not a line of a history: Expected `object`"),
        (b"{\n", "h:1: not a line of a history"),
        (b'{"f":"dance","index":0,"time":0,"process":1,"type":"ok"}\n', "Invalid value 'dance'"),
        (b'{"f":"poll","index":0,"time":0,"process":1,"type":"maybe"}\n', "Invalid enum value 'maybe'"),
        (b'{"f":"poll","time":0,"process":1,"type":"ok"}\n', "missing required field `index`"),
        (b'{"f":"poll","index":"0","time":0,"process":1,"type":"ok"}\n', "$.index"),
        (b'{"f":"poll","index":0,"time":0,"process":"\xff","type":"ok"}\n', "h:1: not a line of a history"),
        (
            b'{"f":"setup","index":0,"time":0,"process":1,"type":"info","value":{"schema":2}}\n',
            "h:1: history schema 2, at most 1 expected",
        ),
    ],
)
def test_an_invalid_line_is_refused_with_its_place(text: bytes, message: str) -> None:
    with pytest.raises(HistoryError) as caught:
        list(decode_lines([text], "h"))
    assert message in str(caught.value)
    with pytest.raises(HistoryError):
        decode(text, "h:1")


def test_a_torn_last_line_leaves_its_operation_open() -> None:
    texts = [encode(line) for line in HISTORY.lines]
    history = record(decode_lines([*texts[:-1], texts[-1][:-5]], "h"))
    assert history.gap_count == 0
    assert history.drains[-1].span.end == NEVER
    assert history.drains[-1].span.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("spoil", "gap"),
    [
        (lambda lines: lines[:5] + lines[6:], "line 5 is missing: line 6 follows"),
        (lambda lines: [*lines[:-1], lines[-3]], "follows"),
    ],
)
def test_gaps_are_named(spoil, gap: str) -> None:  # type: ignore[no-untyped-def]
    history = record(spoil(HISTORY.lines))
    assert gap in history.gaps[0]


def test_the_messages_of_a_listener_are_delivered_when_it_is_called() -> None:
    history = record(HISTORY.lines)
    calls = [read for read in history.reads if read.kind == "consume"]
    assert all(read.at == read.span.start for read in calls)
    assert {read.span.outcome for read in calls} == {Outcome.OK, Outcome.FAILED}
    assert [read.at for read in history.reads] == sorted(read.at for read in history.reads)


def test_a_message_read_by_many_groups_is_one_object() -> None:
    history = record(HISTORY.lines)
    place = ("T/b/0", 0)
    copies = {id(m) for read in history.reads for m in read.messages if (read.queue, m.offset) == place}
    readers = {read.group for read in history.reads for m in read.messages if (read.queue, m.offset) == place}
    assert len(copies) == 1
    assert len(readers) > 4
