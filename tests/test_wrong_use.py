"""Tests that wrong arguments and bad files end every command with exit code 2 and one clear line.

Method: give each option that reads a file one that is missing, a folder or invalid, and each option with a
fixed set of values another value. Few commands run in a process of their own, the others in this one, because
the imports of a process cost more than all that it then does.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mqproof.cli import main

MQPROOF = (sys.executable, "-m", "mqproof")
SEND = "send --namesrv 127.0.0.1:1 --topic T --body b"

READING = [
    "check --models {file}",
    "simulate Flush --models {file}",
    "bounds --models {file}",
    "mutate --models {file}",
    "trace-check {file}",
    "trace-check --models {file} log.ndjson",
    "conform diff {file} {file}",
    "fuzz replay {file}",
    "check-history {file}",
    "convert-history {file} out.edn --from openchaos --to jsonl",
    "store inspect {file}",
    "namesrv -c {file}",
    "broker -c {file}",
    "serve --tls {file}",
    SEND + " --account {file}",
    "admin clusterList -n 127.0.0.1:1 --tls {file}",
    "console --namesrv 127.0.0.1:1 --tls {file}",
    "console --namesrv 127.0.0.1:1 --account {file}",
]
WRONG = [
    "consume --namesrv 127.0.0.1:1 --topic T --group G --tags a=1",
    "consume --namesrv 127.0.0.1:1 --topic T --group G --sql a>",
    "consume --namesrv 127.0.0.1:1 --topic T --group G --tags a --sql a>1",
    "admin printMsg -n 127.0.0.1:1 -t T -s a=1",
    "check Nope",
    "check --profile huge",
    "check --only Nope",
    "check Flush --json {folder}",
    "check Flush --draw {folder}",
    "simulate Nope",
    "explore Flush --master nonsense",
    "equiv Nope",
    "prove Nope",
    "mutate --kind nope",
    "bounds Nope",
    "bounds Flush --seconds 0",
    "matrix --on nope",
    "matrix --fault nope",
    "mutants --layer nope",
    "coverage --id NOPE-1",
    "namesrv --port 70000",
    "broker --role NOPE --port 0",
    "serve --flush NOPE",
    "send --namesrv nope --topic T --body b",
    SEND + " --property x",
    "consume --namesrv 127.0.0.1:1 --topic T --group G --from-min --from-max",
    "admin nope",
    "admin topicStatus",
    "conform --target nope",
    "conform --target impl --suite nope",
    "behaviours Nope",
    "workload --target impl --out {folder}",
    "fuzz run nope",
    "audit run",
    "audit explain X --events {folder}/missing",
    "audit generate --count 10 --out {folder}/new --anomaly nope=1",
    "bench nope",
    "completion tcsh",
    "demo --out {file}",
]


Expect = Callable[[str], None]


def judge(code: object, out: str, err: str) -> None:
    assert (code, out) == (2, ""), err
    assert err.startswith("mqproof")
    assert err.count("\n") == 1, err


@pytest.fixture
def expect_wrong_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Expect:
    """Return a function that runs a command in an empty directory of its own and judges how it ends."""
    monkeypatch.chdir(tmp_path)

    def expect(command: str) -> None:
        monkeypatch.setattr(sys, "argv", ["mqproof", *command.split()])
        with pytest.raises(SystemExit) as ended:
            main()
        judge(ended.value.code, *capsys.readouterr())

    return expect


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize("kind", ["missing", "folder", "garbage"])
def test_an_unusable_file_is_reported_in_one_line(
    command: str, kind: str, tmp_path: Path, expect_wrong_use: Expect
) -> None:
    if kind == "folder" and command.startswith("store"):
        pytest.skip("a store is a folder")
    (tmp_path / "folder").mkdir()
    (tmp_path / "garbage").write_bytes(b"\xff\xfe\x00garbage\n{")
    expect_wrong_use(command.format(file=tmp_path / kind))


@pytest.mark.parametrize("command", WRONG)
def test_a_wrong_value_is_reported_in_one_line(
    command: str, tmp_path: Path, expect_wrong_use: Expect
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    expect_wrong_use(command.format(folder=tmp_path / "folder", file=tmp_path / "file"))


@pytest.mark.parametrize("command", ["namesrv --port 70000", "conform --target nope", "check Nope"])
def test_a_process_ends_with_the_same_line_and_code(command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*MQPROOF, *command.split()], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    judge(done.returncode, done.stdout, done.stderr)
