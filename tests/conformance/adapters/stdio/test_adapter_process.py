"""The process of an adapter: answers are checked, every wait ends, and nothing is left running."""

import sys

import pytest

from mqproof.conformance.adapters.stdio import adapter_process
from mqproof.conformance.adapters.stdio.adapter_process import AdapterProcess, RefusedCallError
from mqproof.conformance.engine.targets import AdapterFailedError

ECHO = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], "result": request["args"]}), flush=True)
"""


def program(text: str) -> str:
    return f"stdio:{sys.executable} -c '{text}'"


def test_large_requests_and_answers_pass_in_both_directions_at_once() -> None:
    with AdapterProcess(program(ECHO)) as process:
        sent = {"body": "x" * 2_000_000}
        for _ in range(3):
            assert process.call("send", sent) == sent


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("print(1)", "which is not an answer"),
        ("print({1: 2})", "which is not an answer"),
        ("print('{\"id\": 9, \"result\": 1}')", "answers send with id 9, 1 expected"),
        ("print('{\"id\": 1}')", "not exactly one of result and error"),
        (
            "print('{\"id\": 1, \"result\": 1, \"error\": {\"kind\": \"x\", \"message\": \"\"}}')",
            "not exactly one",
        ),
        ("print('{\"id\": 1, \"result\": 1, \"more\": 1}')", "unknown field `more`"),
        ("print('{\"id\": 1, \"error\": \"x\"}')", "Expected `object`"),
        ("sys.stdout.buffer.write(b'\\xff\\n')", "which is not an answer"),
        ("sys.exit(3)", "ended without an answer to send with exit code 3"),
        ("print('no newline', end='')", "ended without an answer"),
    ],
)  # fmt: skip
def test_nonsense_is_a_failure_and_stays_one(text: str, message: str) -> None:
    code = f"import sys; sys.stdin.readline(); {text}; sys.stdout.flush()"
    process = AdapterProcess("stdio:x")
    process._words = [sys.executable, "-c", code]
    with process:
        for _ in range(2):
            with pytest.raises(AdapterFailedError, match=message):
                process.call("send", {})


def test_an_adapter_that_is_silent_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_process, "_STOP_S", 0.1)
    with AdapterProcess(program("import time; time.sleep(3600)"), call_s=0.2) as process:
        with pytest.raises(AdapterFailedError, match="no answer to send within 0 s"):
            process.call("send", {"body": "x" * 1_000_000})
        assert process._process is not None
        assert process._process.poll() is not None


def test_a_line_without_an_end_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_process, "LINE_BYTES_MAX", 1000)
    text = "import sys; sys.stdout.write(2000 * chr(120)); sys.stdout.flush(); sys.stdin.read()"
    with AdapterProcess(program(text)) as process, pytest.raises(AdapterFailedError, match="longer than"):
        process.call("send", {})


def test_an_error_of_the_adapter_has_its_kind() -> None:
    text = 'input(); print("{\\"id\\":1,\\"error\\":{\\"kind\\":\\"target\\",\\"message\\":\\"a\\\\nb\\"}}")'
    with AdapterProcess(program(text)) as process, pytest.raises(RefusedCallError) as caught:
        process.call("send", {})
    assert str(caught.value) == "a b"
    assert caught.value.kind == "target"
