"""An invalid folder of columns is one error that names the file and the column."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mqproof.conformance.history.columns.conversion import read_columns, write_columns
from mqproof.conformance.history.columns.encoding import (
    Array,
    decode_numbers,
    decode_texts,
    encode_numbers,
    encode_texts,
)
from mqproof.conformance.history.columns.judged_columns import judge_columns
from mqproof.conformance.history.columns.tables import TABLES, Columns
from mqproof.conformance.history.columns.writer import add_block
from mqproof.conformance.history.lines import HistoryError
from tests.conformance.history.columns.healthy import healthy


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("columns") / "h.columns"
    write_columns(healthy(2, 6).lines, "h.jsonl", folder)
    return folder


def _with(column: str, change: Callable[[Array], Array]) -> Callable[[Path], None]:
    """Return an edit that changes a column, such as `0/sends/start`, and writes its queue again."""
    number, table, name = column.split("/")

    def edit(folder: Path) -> None:
        tables = Columns(folder).tables(int(number))
        values = {each: {of: getattr(getattr(tables, each), of) for of in TABLES[each]} for each in TABLES}
        values[table][name] = change(values[table][name].copy())
        for file in folder.glob(f"{number}.*"):
            file.unlink()
        for each, columns in values.items():
            if len(next(iter(columns.values()))):
                add_block(folder, int(number), each, columns)

    return edit


def _set(column: str, value: int, row: int = 1) -> Callable[[Path], None]:
    def change(array: Array) -> Array:
        array[row] = value
        return array

    return _with(column, change)


def _written(name: str, text: bytes) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / name).write_bytes(text)

    return edit


def _edited(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / name).write_bytes(change((folder / name).read_bytes()))

    return edit


def _header(**changes: object) -> Callable[[Path], None]:
    return _edited("columns.json", lambda text: json.dumps(json.loads(text) | changes).encode())


def _block(of: str, /, **changes: object) -> Callable[[Path], None]:
    """Return an edit of the description of a block of the first queue."""

    def change(text: bytes) -> bytes:
        blocks = [json.loads(line) for line in text.splitlines()]
        return b"".join(
            json.dumps(each | changes if each["table"] == of else each).encode() + b"\n" for each in blocks
        )

    return _edited("0.jsonl", change)


def _number(column: str, place: int, value: int) -> Callable[[Path], None]:
    """Return an edit of the description of the column `sends/COLUMN` of the first queue."""

    def change(text: bytes) -> bytes:
        blocks = [json.loads(line) for line in text.splitlines()]
        for block in blocks:
            if block["table"] == "sends":
                block["numbers"][column][place] = value
        return b"".join(json.dumps(each).encode() + b"\n" for each in blocks)

    return _edited("0.jsonl", change)


def _flipped(text: bytes) -> bytes:
    return bytes([text[0] ^ 1]) + text[1:]


def _first_end_is_second(folder: Path) -> None:
    ends = Columns(folder).queue(0).reads.end
    _set("0/reads/end", int(ends[1]), 0)(folder)


def _first_begins_at_its_end(folder: Path) -> None:
    ends = Columns(folder).queue(0).sends.end
    _set("0/sends/start", int(ends[1]))(folder)


def _more(table: str) -> Callable[[Path], None]:
    """Return an edit that adds a row to a table of texts."""
    row = {name: np.array([b"x"]) for name in TABLES[table]}
    return lambda folder: add_block(folder, 0, table, row)


BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "no index": (_written("0.jsonl", b"text\n"), r"0.jsonl: not blocks of columns"),
    "empty index": (_written("0.jsonl", b""), r"0.bytes: \d+ bytes, expected 0"),
    "cut": (_edited("0.bytes", lambda text: text[:-1]), r"0.bytes: \d+ bytes, expected \d+"),
    "longer": (_edited("0.bytes", lambda text: text + b"x"), r"0.bytes: \d+ bytes, expected \d+"),
    "damaged": (_edited("0.bytes", _flipped), r"0.bytes: \w+.\w+: the bytes do not have their checksum"),
    "unknown table": (_block("sends", table="other"), r"0.jsonl: table other, expected sends, reads"),
    "unknown column": (
        _block("sends", texts={"x": ["QQ==", [], 0]}),
        r"0.jsonl: sends: expected the columns",
    ),
    "missing column": (_block("sends", numbers={}), r"0.jsonl: sends: expected the columns end, start"),
    "unknown field": (_block("sends", other=1), r"0.jsonl: not blocks of columns"),
    "rows": (_block("sends", rows=99), r"0.bytes: \d+ bytes, expected \d+"),
    "no rows": (_block("sends", rows=0), r"0.jsonl: sends: 0 rows, expected 1 to"),
    "many rows": (_block("sends", rows=1 << 40), r"0.jsonl: sends: 1099511627776 rows, expected 1 to"),
    "width": (_number("end", 0, 3), r"0.jsonl: not blocks of columns"),
    "factor": (_number("end", 2, 0), r"0.jsonl: not blocks of columns"),
    "text without width": (
        _block("offset_ids", texts={"text": ["", [], 0]}),
        r"0.jsonl: not blocks of columns",
    ),
    "place in a text": (
        _block("offset_ids", texts={"text": ["QQ==", [1], 0]}),
        r"0.jsonl: offset_ids.text: a place outside of the text",
    ),
    "large base": (_number("process", 1, 1 << 40), r"0.bytes: sends.process: \d+ to \d+, expected <i4"),
    "line": (_set("0/reads/end", 1 << 40, -1), r"0.bytes: reads.end: 1099511627776, expected 0 to \d+"),
    "name": (_set("0/reads/group", 999), r"0.bytes: reads.group: 999, expected 0 to \d+"),
    "process": (_set("0/sends/process", -1), r"0.bytes: sends.process: -1, expected 0 to \d+"),
    "offset": (_set("0/sends/offset", -7), r"0.bytes: sends.offset: -7, expected 0 to \d+"),
    "large offset": (_set("0/contents/offset", 1 << 62), r"contents.offset: 4611686018427387904, expected"),
    "kind": (_set("0/reads/kind", 2), r"0.bytes: reads.kind: 2, expected 0 to 1"),
    "content": (_set("0/delivered/content", 1 << 30), r"delivered.content: 1073741824, expected 0 to"),
    "message": (_set("0/contents/message", 1 << 30), r"contents.message: 1073741824, expected 0 to"),
    "offset id": (_set("0/sends/offset_id", -2), r"sends.offset_id: -2, expected -1 to"),
    "count": (
        _set("0/reads/count", 2),
        r"0.bytes: reads.count: the sum is \d+, expected \d+, the rows it counts",
    ),
    "negative count": (_set("0/reads/count", -1), r"0.bytes: reads.count: -1, expected 0 to"),
    "message of two sends": (
        _set("0/sends/message", 0),
        r"0.bytes: sends.count: a message belongs to two sends, or to no row",
    ),
    "message of no row": (
        _set("0/sends/count", 3, -1),
        r"0.bytes: sends.count: a message belongs to two sends, or to no row",
    ),
    "message that is not used": (_more("messages"), r"0.bytes: messages: row \d+ is not used"),
    "offset id that is not used": (_more("offset_ids"), r"0.bytes: offset_ids: row \d+ is not used"),
    "order": (_set("0/sends/start", 1 << 20), r"sends.start: 1048576, expected|ends before it begins"),
    "end before begin": (_first_begins_at_its_end, r"0.bytes: sends.end: an operation ends before it begins"),
    "order of ends": (_first_end_is_second, r"0.bytes: reads.end: .*not in the order of their ends"),
    "other process": (
        _with("0/sends/process", lambda array: np.full_like(array, array[0])),
        r"has several operations at a time",
    ),
    "time": (_set("0/sends/began", 0, -1), r"time goes back"),
    "negative time": (_set("0/sends/began", -5), r"sends.began: -5, expected 0 to"),
    "no header": (_written("columns.json", b"{"), r"columns.json: not a header of columns"),
    "schema": (
        _header(schema=1),
        r"columns.json: schema 1, expected 2; write the columns again, .*convert-history",
    ),
    "lines": (_header(lines=1 << 50), r"columns.json: lines: 1125899906842624, expected 0 to"),
    "more lines": (
        _header(lines=1 << 12),
        r"\d+ lines and \d+ different indexes from 0 to 4095, expected 4096",
    ),
    "same queue": (_header(queues=["a", "a"]), r"columns.json: queues: expected different queues"),
    "retry topic": (_header(queues=["%RETRY%g/b/0"]), r"columns.json: queues: expected different queues"),
    "same name": (_header(names=["a", "a"]), r"columns.json: names: a name occurs twice"),
    "rest": (_written("rest.jsonl", b"{}\n"), r"rest.jsonl:1: not a line of a history"),
    "missing rest": (_written("rest.jsonl", b""), r"the operations have \d+ lines and \d+ different indexes"),
    "rest twice": (
        _edited("rest.jsonl", lambda text: text + text),
        r"rest.jsonl: index 0, expected \d+ to \d+",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_column_is_one_error_that_names_it(name: str, columns: Path, tmp_path: Path) -> None:
    folder = tmp_path / "h.columns"
    shutil.copytree(columns, folder)
    edit, message = BROKEN[name]
    edit(folder)
    with pytest.raises(HistoryError, match=message) as error:
        judge_columns(folder, 1)
    assert re.search(rf"{folder}", str(error.value))


def test_a_text_that_is_not_utf_8_is_an_error_if_its_line_is_needed(columns: Path, tmp_path: Path) -> None:
    folder = tmp_path / "h.columns"
    shutil.copytree(columns, folder)

    def change(bodies: Array) -> Array:
        bodies[0] = b"\xff"
        return bodies

    _with("0/messages/body", change)(folder)
    with pytest.raises(HistoryError, match=r"h.columns: .*: a text is not UTF-8"):
        read_columns(folder)


@pytest.mark.parametrize("is_steps", [False, True])
@pytest.mark.parametrize(
    ("numbers", "width"),
    [
        ([5], 0),
        ([-1, -1, -1], 0),
        ([0, 255, 3], 1),
        ([10**12, 10**12 + 5000, 10**12 + 2000], 1),
        ([0, 70_000, 4], 4),
        ([0, (1 << 63) - 1, 0], 8),
    ],
)
def test_numbers_are_those_that_were_encoded(numbers: list[int], width: int, *, is_steps: bool) -> None:
    form, data = encode_numbers(np.array(numbers), is_steps=is_steps)
    assert is_steps or form.width == width
    assert len(data) == form.width * len(numbers)
    out = np.empty(len(numbers), np.int64)
    decode_numbers(form, data, out, is_steps=is_steps)
    assert out.tolist() == numbers


def test_numbers_that_rise_evenly_need_no_bytes() -> None:
    assert encode_numbers(np.arange(7, 1000, 3), is_steps=True)[1] == b""


@pytest.mark.parametrize("texts", [[b"a"], [b"m001", b"m012", b"m0"], [b"", b""], [b"x" * 255, b""]])
def test_texts_are_those_that_were_encoded(texts: list[bytes]) -> None:
    form, data = encode_texts(np.array(texts))
    assert decode_texts(form, data, len(texts)).tolist() == texts


def test_what_texts_share_is_stored_once() -> None:
    form, data = encode_texts(np.array([b"queue-1-a", b"queue-1-b", b"queue-1-c"]))
    assert (form.text, form.at, data) == (b"queue-1-a", [8], b"abc")
