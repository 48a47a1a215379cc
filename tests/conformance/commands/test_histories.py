"""The commands on histories: exit codes, files, and a one-line error for wrong input."""

import errno
import json
import os
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mqproof.conformance.bench import history_checks
from mqproof.conformance.commands.histories import app
from mqproof.conformance.history import delivery_verifier, place_verifier, value_verifier, verification
from mqproof.conformance.history.exact_delivery import ExactDelivery, clean
from mqproof.conformance.history.injected import INJECTED
from mqproof.conformance.history.lines import decode_lines, encode
from mqproof.conformance.history.rules import RULES
from mqproof.conformance.history.split import judged_parts


def mqproof(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def written(world: ExactDelivery, file: Path) -> Path:
    file.write_bytes(b"".join(map(encode, world.lines)))
    return file


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return written(clean(1), tmp_path / "h.jsonl")


def test_a_history_without_anomalies_exits_with_0(history: Path, tmp_path: Path) -> None:
    out = tmp_path / "h.json"
    result = mqproof("check-history", history, "--json", out)
    assert result.exit_code == 0, result.output
    report = json.loads(out.read_text())
    assert report["exit_code"] == 0
    assert [each["id"] for each in report["results"]] == [rule.id for rule in RULES]
    assert all(each["layer"] == "history" for each in report["results"])


def test_an_anomaly_exits_with_1_and_reports_its_place_and_replay_command(tmp_path: Path) -> None:
    world = clean(1)
    INJECTED["unsent-message"].inject(world)
    file, out = written(world, tmp_path / "h.jsonl"), tmp_path / "h.json"
    result = mqproof("check-history", file, "--json", out, "--report", tmp_path / "h.xml")
    assert result.exit_code == 1
    (found,) = [each for each in json.loads(out.read_text())["results"] if each["verdict"] == "violated"]
    assert (found["id"], found["name"], found["counts"]["wrong"]) == ("A04", "phantom", 1)
    assert found["witnesses"][0]["text"] == "x3 received ghost, which was never sent"
    assert found["replay"] == f"mqproof check-history {file}"
    assert found["detail"] == "DELIV-2 NoPhantom"
    assert "<failure" in (tmp_path / "h.xml").read_text()


def test_the_orders_of_the_queues_are_shown_and_written(history: Path, tmp_path: Path) -> None:
    out = tmp_path / "orders.jsonl"
    result = mqproof("check-history", history, "--orders", out)
    assert result.exit_code == 0, result.output
    assert "Orders of the queues" in result.output
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert {each["queue"] for each in written if each["group"] == "g"} == {"T/b/0", "T/b/1"}
    assert all(each["order"] for each in written if each["group"] == "g")
    assert mqproof("check-history", history, "--orders", tmp_path).exit_code == 2


def test_a_history_in_parts_has_the_same_report_and_certificates(history: Path, tmp_path: Path) -> None:
    reports, proofs = [], tmp_path / "c.jsonl"
    for parts in (1, 3):
        out = tmp_path / f"{parts}.json"
        result = mqproof("check-history", history, "--parts", parts, "--json", out, "--certificates", proofs)
        assert result.exit_code == 0, result.output
        reports.append([each | {"seconds": 0} for each in json.loads(out.read_text())["results"]])
    assert reports[0] == reports[1]
    for verifier in (delivery_verifier, place_verifier, value_verifier):
        assert verification.main(verifier.RULES, str(history), str(proofs)) == 0


def test_an_invalid_line_is_named_and_a_number_of_parts_is_limited(history: Path) -> None:
    with history.open("ab") as file:
        file.write(b'{"f": "send"}\n')
    number = len(history.read_bytes().splitlines())
    invalid, many = (mqproof("check-history", history, "--parts", parts) for parts in (2, 257))
    assert (invalid.exit_code, many.exit_code) == (2, 2)
    assert f"h.jsonl:{number}: not a line of a history" in invalid.output
    assert "256" in many.output


def test_a_full_disk_of_the_parts_exits_with_4(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(judged_parts, "split", full)
    result = mqproof("check-history", history, "--parts", 2)
    assert result.exit_code == 4
    assert "No space left on device" in result.output


@pytest.mark.parametrize("option", ["--orders", "--certificates"])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_full_disk_of_an_output_names_the_file_and_exits_with_4(
    option: str, parts: int, history: Path
) -> None:
    result = mqproof("check-history", history, "--parts", parts, option, "/dev/full")
    assert result.exit_code == 4
    assert "/dev/full: No space left on device" in result.output


def test_a_killed_process_exits_with_4(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_parts, "judge_queues", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    result = mqproof("check-history", history, "--parts", 2, "--processes", 2)
    assert result.exit_code == 4
    assert "use more --parts or fewer --processes" in result.output


def test_missing_lines_exit_with_3(tmp_path: Path) -> None:
    world = clean(1)
    del world.lines[50]
    result = mqproof("check-history", written(world, tmp_path / "h.jsonl"))
    assert result.exit_code == 3
    assert "line 50 is missing" in result.output


def test_an_empty_history_holds_nothing(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"")
    assert mqproof("check-history", empty).exit_code == 3


def test_several_histories_are_judged_independently(history: Path, tmp_path: Path) -> None:
    world = clean(2)
    INJECTED["body-changed"].inject(world)
    other, out = written(world, tmp_path / "other.jsonl"), tmp_path / "out.json"
    assert mqproof("check-history", history, other, "--json", out).exit_code == 1
    found = [each for each in json.loads(out.read_text())["results"] if each["verdict"] == "violated"]
    assert [(each["id"], each["detail"]) for each in found] == [("C17", f"{other}: FLUSH-5 RecoveredPrefix")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check-history", "nowhere.jsonl"), "nowhere.jsonl: No such file"),
        (("check-history", __file__), "test_histories.py:1: not a line of a history"),
        (
            ("convert-history", "a", "b", "--from", "csv"),
            "--from csv: expected jsonl, columns, jepsen, openchaos",
        ),
        (("convert-history", "a", "b", "--to", "csv"), "--to csv: expected jsonl, columns, jepsen, elle"),
        (("convert-history", "nowhere", "b"), "nowhere: No such file"),
        (("workload", "--target", "reference", "--out", "x"), "impl, mutant:NAME, remoting://HOST:PORT"),
    ],
)
def test_wrong_input_exits_with_2_and_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = mqproof(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_history_is_converted_to_another_format_and_back(history: Path, tmp_path: Path) -> None:
    edn, back = tmp_path / "h.edn", tmp_path / "back.jsonl"
    assert mqproof("convert-history", history, edn).exit_code == 0
    assert edn.read_text().startswith("{:type :invoke, :f :")
    assert mqproof("convert-history", edn, back, "--from", "jepsen", "--to", "jsonl").exit_code == 0
    assert len(list(decode_lines(back.read_bytes().splitlines(keepends=True), "back"))) > 100
    assert mqproof("convert-history", history, tmp_path / "elle.edn", "--to", "elle").exit_code == 0
    assert ":append" in (tmp_path / "elle.edn").read_text()


def test_a_workload_is_written_and_checked(tmp_path: Path) -> None:
    out = tmp_path / "w.jsonl"
    result = mqproof("workload", "--target", "impl", "--messages", 10, "--faults", 1, "--out", out)
    assert result.exit_code == 0, result.output
    checked = mqproof("check-history", out)
    assert checked.exit_code in (0, 3), (
        checked.output
    )  # a small workload does not do everything, so some rules stay undecided


def test_the_benchmark_generates_a_clean_history_and_finds_no_anomaly(tmp_path: Path) -> None:
    result = history_checks.measure(2000, tmp_path)
    assert 1000 < result["operations"] < 4000
    assert result["rules_violated"] == []
    assert result["rules_held"] > 25
    assert "operations a second" in history_checks.table(result)
    assert list(tmp_path.iterdir()) == []
