"""An invalid folder of columns is one error that names the file and the column."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mqproof.conformance.history.columns.conversion import read_columns, write_columns
from mqproof.conformance.history.columns.judged_columns import judge_columns
from mqproof.conformance.history.columns.tables import Array
from mqproof.conformance.history.lines import HistoryError
from tests.conformance.history.columns.healthy import healthy


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("columns") / "h.columns"
    write_columns(healthy(2, 6).lines, "h.jsonl", folder)
    return folder


def _with(column: str, change: Callable[[Array], Array]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        file = folder / f"{column}.npy"
        np.save(file, change(np.load(file)))

    return edit


def _set(column: str, value: int) -> Callable[[Path], None]:
    def change(array: Array) -> Array:
        array[1] = value
        return array

    return _with(column, change)


def _written(name: str, text: bytes) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / name).write_bytes(text)

    return edit


def _header(**changes: object) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        file = folder / "columns.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return edit


def _first_end_is_second(folder: Path) -> None:
    file = folder / "0" / "sends" / "end.npy"
    ends = np.load(file)
    ends[0] = ends[1]
    np.save(file, ends)


BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "no array": (_written("0/sends/start.npy", b"text"), r"0/sends/start.npy: not an array of numpy"),
    "empty file": (_written("0/sends/start.npy", b""), r"0/sends/start.npy: not an array of numpy"),
    "cut": (
        lambda folder: _written("0/reads/next.npy", (folder / "0/reads/next.npy").read_bytes()[:-8])(folder),
        r"0/reads/next.npy: not an array of numpy",
    ),
    "pickled": (
        lambda folder: np.save(folder / "0/sends/start.npy", np.array([{}]), allow_pickle=True),
        r"0/sends/start.npy: not an array of numpy",
    ),
    "type": (
        _with("0/sends/start", lambda array: array.astype("<i4")),
        r"0/sends/start.npy: 1 dimensions of <i4, expected one dimension of <i8",
    ),
    "no text": (
        _with("0/messages/id", lambda array: np.arange(len(array))),
        r"0/messages/id.npy: .* expected one dimension of bytes",
    ),
    "texts without width": (
        lambda folder: np.lib.format.open_memmap(
            folder / "0/messages/id.npy", "w+", np.dtype("S0"), (9,)
        ).flush(),
        r"0/messages/id.npy: ",
    ),
    "shape": (
        _with("0/sends/start", lambda array: array.reshape(1, -1)),
        r"0/sends/start.npy: 2 dimensions of <i8, expected one",
    ),
    "rows": (
        _with("0/sends/end", lambda array: array[1:]),
        r"0/sends/end.npy: \d+ rows, expected \d+ as in the other columns",
    ),
    "line": (_set("0/reads/start", 1 << 40), r"0/reads/start.npy: 1099511627776, expected 0 to \d+"),
    "name": (_set("0/reads/group", 999), r"0/reads/group.npy: 999, expected 0 to \d+"),
    "process": (_set("lines/process", -1), r"lines/process.npy: -1, expected 0 to \d+"),
    "offset": (_set("0/sends/offset", -7), r"0/sends/offset.npy: -7, expected 0 to \d+"),
    "large offset": (_set("0/contents/offset", 1 << 62), r"0/contents/offset.npy: 4611686018427387904, exp"),
    "kind": (_set("0/reads/kind", 2), r"0/reads/kind.npy: 2, expected 0 to 1"),
    "content": (_set("0/delivered/content", 1 << 30), r"0/delivered/content.npy: 1073741824, expected 0 to"),
    "count": (_set("0/sends/count", 2), r"0/sends/count.npy: the sum is \d+, expected \d+, the rows"),
    "negative count": (_set("0/reads/count", -1), r"0/reads/count.npy: -1, expected 0 to"),
    "order": (_set("0/sends/end", 0), r"0/sends/end.npy: an operation ends before it begins"),
    "end of another": (
        _first_end_is_second,
        r"0/sends/end.npy: an operation ends in another process|several",
    ),
    "time": (_set("lines/time", -5), r"lines/time.npy: time goes back"),
    "no header": (_written("columns.json", b"{"), r"columns.json: not a header of columns"),
    "schema": (_header(schema=2), r"columns.json: schema 2, expected 1"),
    "same queue": (_header(queues=["a", "a"]), r"columns.json: queues: expected different queues"),
    "retry topic": (_header(queues=["%RETRY%g/b/0"]), r"columns.json: queues: expected different queues"),
    "same name": (_header(names=["a", "a"]), r"columns.json: names: a name occurs twice"),
    "rest": (_written("rest.jsonl", b"{}\n"), r"rest.jsonl:1: not a line of a history"),
    "missing rest": (_written("rest.jsonl", b""), r"the operations have \d+ lines and \d+ different indexes"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_column_is_one_error_that_names_it(name: str, columns: Path, tmp_path: Path) -> None:
    folder = tmp_path / "h.columns"
    for file in columns.rglob("*"):
        if file.is_file():
            copy = folder / file.relative_to(columns)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    edit, message = BROKEN[name]
    edit(folder)
    with pytest.raises(HistoryError, match=message) as error:
        judge_columns(folder, 1)
    assert re.search(rf"{folder}", str(error.value))


def test_a_text_that_is_not_utf_8_is_an_error_if_its_line_is_needed(columns: Path, tmp_path: Path) -> None:
    file = columns / "0" / "messages" / "body.npy"
    before = file.read_bytes()
    bodies = np.load(file)
    bodies[0] = b"\xff"
    np.save(file, bodies)
    with pytest.raises(HistoryError, match=r"h.columns: .*: a text is not UTF-8"):
        read_columns(columns)
    file.write_bytes(before)
