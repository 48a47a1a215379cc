"""Goal: logs of any system are checked against the trace module of a models.toml; bad logs are rejected."""

from pathlib import Path

import pytest

from mqproof.report.model import Verdict
from mqproof.spec.model_file import ModelFileError, load
from mqproof.spec.trace_logs import TraceLogError, check_logs, read, trace_module

EXAMPLE = Path(__file__).parents[2] / "examples" / "tla"
MODELS = load(EXAMPLE / "models.toml")


def test_an_explained_log_is_held_and_otherwise_the_first_unexplained_event_is_shown() -> None:
    logs = [EXAMPLE / "logs" / "good.ndjson", EXAMPLE / "logs" / "bad.ndjson"]
    good, bad = check_logs(MODELS, trace_module(MODELS, None), logs)
    assert (good.verdict, good.counts) == (Verdict.HELD, {"events": 3, "explained": 3})
    assert bad.verdict is Verdict.VIOLATED
    assert bad.detail == 'no action explains event 4 of 4: {"kind": "released", "client": "a"}'
    assert [witness.text.partition(":")[0] for witness in bad.witnesses] == [
        f"event {n}" for n in (1, 2, 3, 4)
    ]
    assert bad.replay.endswith(f"bad.ndjson --models {MODELS.file} --model Lock")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"log: no events"),
        ("[1]\n", r"log:1: an object is expected"),
        ('{"a": 1}\n{"a": \n', r"log:2: "),
        ('{"a": 1.5}\n', r"log:1: a is 1\.5; TLA\+ has integers"),
        ('{"a": {"b": [null]}}\n', r"log:1: a is null; TLA\+ has integers"),
    ],
)
def test_the_error_for_an_invalid_log_names_the_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text, encoding="utf-8")
    with pytest.raises(TraceLogError, match=message):
        read(tmp_path / "log")


def test_an_unreadable_log_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff")
    for path in (tmp_path, tmp_path / "missing", tmp_path / "bytes"):
        with pytest.raises(TraceLogError, match=str(path)):
            read(path)


def test_a_model_without_a_trace_module_is_an_error() -> None:
    with pytest.raises(ModelFileError, match=r"no traces of model 'X'; models with .*: Lock"):
        trace_module(MODELS, "X")
    ours = load()
    with pytest.raises(ModelFileError, match=r"name one model; models with .*: none"):
        trace_module(ours, None)
