"""The verifier accepts the orders that were found, and refuses an order with one step changed."""

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mqproof.conformance.history import order_verifier
from mqproof.conformance.history.exact_delivery import clean
from mqproof.conformance.history.injected import INJECTED
from mqproof.conformance.history.linearizations import orders, written
from mqproof.conformance.history.lines import Line, encode
from mqproof.conformance.history.pairing import record

LINES_MAX = 150


def files(folder: Path, history: list[Line]) -> tuple[str, str]:
    """Write the history and its orders; return both paths."""
    paths = folder / "history.jsonl", folder / "orders.jsonl"
    paths[0].write_bytes(b"".join(map(encode, history)))
    paths[1].write_bytes(b"".join(map(written, orders(record(history)))))
    return str(paths[0]), str(paths[1])


@pytest.fixture(scope="module")
def clean_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return files(tmp_path_factory.mktemp("history"), clean(1).lines)


@pytest.mark.parametrize("seed", [2, 3])
def test_the_orders_of_a_clean_history_are_accepted(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history, order_file = files(tmp_path, clean(seed).lines)
    assert order_verifier.main(history, order_file) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(Path(order_file).read_bytes().splitlines())
    assert all(": accepted, " in line for line in said)
    assert any(int(line.split()[-2]) > 50 for line in said)


def test_a_history_without_an_order_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = clean(3)
    INJECTED["overtaken"].inject(world)
    assert order_verifier.main(*files(tmp_path, world.lines)) == 1
    assert "refused: x1 sent" in capsys.readouterr().out


VALID = [("put", "a", 2), ("put", "b", 5), ("take", "a", 6), ("take", "b", 9), ("empty", "", 12)]


def small_queue() -> order_verifier.Queue:
    queue = order_verifier.Queue()
    queue.puts = {"a": (0, 3), "b": (1, 6)}
    queue.takes = {"a": (4, 7), "b": (8, 10)}
    queue.empties = [(11, 13)]
    return queue


def test_an_order_of_all_operations_within_their_intervals_is_accepted() -> None:
    assert order_verifier.verify(small_queue(), VALID) == len(VALID)


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        (VALID[:-1], "1 operations are missing"),
        (VALID[1:], "not the oldest"),
        ([*VALID[:3], VALID[4]], "not empty"),
        ([VALID[0], *VALID], "occurs twice"),
        ([*VALID, VALID[-1]], "no such answer"),
        ([VALID[0], ("put", "b", 7), *VALID[2:]], "no such operation at index 7"),
        ([*VALID[:2], ("take", "a", 3), *VALID[3:]], "after a step at index 5"),
        ([*VALID[:3], ("take", "b", 7), VALID[4]], "no such operation at index 7"),
        ([*VALID[:4], ("empty", "", 14)], "no such answer"),
        ([*VALID[:4], ("empty", "", 10)], "no such answer"),
        ([("put", "b", 2), ("put", "a", 3), *VALID[2:]], "not the oldest"),
        ([*VALID[:4], ("take", "c", 12), VALID[4]], "no such operation"),
    ],
)
def test_a_changed_order_is_refused(order: list[tuple[str, str, int]], reason: str) -> None:
    with pytest.raises(order_verifier.RefusedError, match=reason):
        order_verifier.verify(small_queue(), order)


def test_a_step_of_an_unknown_kind_is_refused(
    clean_files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history, order_file = clean_files
    changed = tmp_path / "changed.jsonl"
    text = Path(order_file).read_text(encoding="utf-8")
    changed.write_text(text.replace('"put"', '"push"', 1), encoding="utf-8")
    assert order_verifier.main(history, str(changed)) == 1
    assert "refused: 'push'" in capsys.readouterr().out


def test_the_operations_are_those_of_the_rule_about_linearizability() -> None:
    """The message d is delayed, f failed, r was sent again, and t was never polled."""
    events: list[tuple[str, str, str, dict[str, Any]]] = [
        ("setup", "info", "nemesis", {"visible_within_ms": 0}),
        ("send", "invoke", "p", {"messages": [{"id": "a"}, {"id": "d", "deliver_at": 1}]}),
        ("send", "ok", "p", {}),
        ("send", "invoke", "p", {"messages": [{"id": "f"}, {"id": "t"}]}),
        ("send", "fail", "p", {}),
        ("send", "invoke", "p", {"messages": [{"id": "r"}]}),
        ("send", "ok", "p", {"attempts": 2}),
        ("send", "invoke", "q", {"messages": [{"id": "u"}]}),
        ("send", "info", "q", {}),
        ("poll", "invoke", "c", {"group": "g", "queue": "T/b/0", "offset": 0}),
        ("poll", "ok", "c", {"messages": [{"id": each} for each in "adfrux"], "max": 5}),
        ("poll", "invoke", "c", {"group": "g", "queue": "T/b/0", "offset": 5}),
        ("poll", "ok", "c", {"max": 5}),
    ]
    lines = [
        json.dumps({"index": index, "f": f, "type": kind, "process": process, "value": value}).encode()
        for index, (f, kind, process, value) in enumerate(events)
    ]
    ((key, queue),) = order_verifier.queues(lines).items()
    assert key == ("g", "T/b/0")
    assert queue.puts == {"a": (1, 2), "u": (7, order_verifier.NEVER)}
    assert queue.takes == {"a": (9, 10), "u": (9, 10)}
    assert queue.empties == [(11, 12)]


def test_a_queue_whose_order_is_missing_is_refused(
    clean_files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history, order_file = clean_files
    fewer = tmp_path / "fewer.jsonl"
    fewer.write_bytes(b"".join(Path(order_file).read_bytes().splitlines(keepends=True)[1:]))
    assert order_verifier.main(history, str(fewer)) == 1
    assert capsys.readouterr().out.endswith("refused: it has no order\n")


def test_the_verifier_is_short_and_imports_only_the_standard_library() -> None:
    text = Path(order_verifier.__file__).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES_MAX
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
        )
    }
    assert imported <= sys.stdlib_module_names
