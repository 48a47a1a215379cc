"""A history that is judged in parts has the verdicts, evidence and certificates of the whole.

Method: judge clean histories, histories with one injected anomaly or one legal surprise, and histories whose
lines were changed at random, as a whole and in parts, and compare all that a user receives.
"""

import errno
import io
import json
import os
import random
import re
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mqproof.conformance.engine.finding import WITNESSES_MAX, Finding
from mqproof.conformance.history import linearizations
from mqproof.conformance.history.certificates import WITHOUT_REASON_MAX, certificates
from mqproof.conformance.history.exact_delivery import ExactDelivery, clean
from mqproof.conformance.history.injected import INJECTED
from mqproof.conformance.history.lines import HistoryError, Line, Setup, encode
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.parallel import KilledProcessError, findings
from mqproof.conformance.history.record import Record
from mqproof.conformance.history.rules import OF_KEY, RULES, Key
from mqproof.conformance.history.split import judged_parts, part_stages
from mqproof.conformance.history.split.judged_parts import Found, FullDiskError, judge_in_parts
from tests.conformance.history.test_rules import EXPLAINED, ID, PAGE

Certificates = dict[str, Any]


def whole(lines: list[Line]) -> tuple[Record, dict[str, Finding], Certificates, list[bytes]]:
    """Return the record, findings, certificates and orders of a history that is judged as a whole."""
    history = record(lines)
    found = {rule: finding for rule, (finding, _) in findings(history, 1).items()}
    given = [] if history.gap_count else list(certificates(history, found))
    return (
        history,
        found,
        _by_rule(given),
        sorted(map(linearizations.written, linearizations.orders(history))),
    )


def in_parts(
    lines: list[Line], folder: Path, parts: int, processes: int = 1
) -> tuple[Found, Certificates, list[bytes]]:
    path, given, orders = folder / "h.jsonl", io.BytesIO(), io.BytesIO()
    path.write_bytes(b"".join(map(encode, lines)))
    found = judge_in_parts(path, parts, processes, given, orders)
    return found, _by_rule(given.getvalue().splitlines()), sorted(orders.getvalue().splitlines(keepends=True))


def _by_rule(texts: list[bytes]) -> Certificates:
    return {each["rule"]: each for each in map(json.loads, texts)}


def compare(lines: list[Line], folder: Path, parts: int, processes: int = 1) -> dict[str, Finding]:
    """Assert that the parts show what the whole history shows; return the findings."""
    history, one, certified, orders = whole(lines)
    found, proofs, part_orders = in_parts(lines, folder, parts, processes)
    assert set(found.findings) == set(one) == {rule.id for rule in RULES}
    for rule, finding in one.items():
        _compare_findings(rule, finding, found.findings[rule][0])
    assert set(proofs) == set(certified)
    for rule, proof in certified.items():
        _compare_certificates(proof, proofs[rule])
    assert part_orders == orders
    assert sorted(row[:3] for row in found.rows) == sorted(
        linearizations.row(order)[:3] for order in linearizations.orders(history)
    )
    for name in ("operations", "gaps", "gap_count", "setup", "faults", "last_time", "asked"):
        assert getattr(found.whole, name) == getattr(history, name), name
    return one


def _compare_findings(rule: str, one: Finding, merged: Finding) -> None:
    assert (rule, merged.verdict, merged.counts) == (rule, one.verdict, one.counts)
    assert sorted(merged.explained) == sorted(one.explained)
    assert len(merged.witnesses) == len(one.witnesses), rule
    limit = WITNESSES_MAX if one.counts.get("wrong") else WITHOUT_REASON_MAX
    if len(one.witnesses) < limit:
        assert sorted(map(repr, merged.witnesses)) == sorted(map(repr, one.witnesses)), rule


def _compare_certificates(one: dict[str, Any], merged: dict[str, Any]) -> None:
    rule, verdict = one["rule"], one["verdict"]
    assert merged["verdict"] == verdict
    assert len(merged["evidence"]) == len(one["evidence"]), rule
    if verdict == "held" or len(one["evidence"]) < WITHOUT_REASON_MAX:
        assert sorted(map(repr, merged["evidence"])) == sorted(map(repr, one["evidence"])), rule


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_rule_has_one_key_and_the_table_has_every_rule() -> None:
    assert {rule: key for key, rules in OF_KEY.items() for rule in rules if rule != "C16"} == {
        rule.id: rule.key for rule in RULES if rule.id != "C16"
    }
    assert [key for key, rules in OF_KEY.items() if "C16" in rules] == [Key.MESSAGE, Key.OFFSET_ID]


def test_the_page_names_the_rules_of_each_key() -> None:
    rows = {key: re.findall(rf"^\| {key.value} \| (.*?) \|", PAGE, re.MULTILINE) for key in Key}
    named = {key: set(ID.findall(row)) for key, (row,) in rows.items()}
    assert named.pop(Key.QUEUE) == set()
    assert named == {key: set(rules) for key, rules in OF_KEY.items() if key is not Key.QUEUE}


@pytest.mark.parametrize("name", INJECTED)
def test_an_injected_anomaly_is_found_in_parts_as_in_the_whole(name: str, tmp_path: Path) -> None:
    world = clean(5, 16)
    INJECTED[name].inject(world)
    compare(world.lines, tmp_path, 3)


@pytest.mark.parametrize("explained", EXPLAINED, ids=lambda each: each.__name__)
def test_an_event_with_a_known_cause_is_explained_in_parts_as_in_the_whole(
    explained: Callable[[ExactDelivery], None], tmp_path: Path
) -> None:
    world = clean(5, 16)
    explained(world)
    compare(world.lines, tmp_path, 4)


class Changes:
    """Changes lines of a history at random: other messages, places, outcomes, times and queues."""

    def __init__(self, seed: int, world: ExactDelivery) -> None:
        self.chance = random.Random(seed)
        self.queues = [*world.queues, "T/b/9"]
        self.ids = [message.id for queue in world.queues.values() for message in queue] + ["ghost"]

    def line(self, line: Line) -> Line:
        if isinstance(line, Setup):
            crash = {"flush_mode": "ASYNC_FLUSH"} if self.chance.random() < 0.5 else {"visible_within_ms": 0}
            return replace(line, value=replace(line.value, **crash))
        if self.chance.random() > 0.04:
            return line
        value: Any = line.value
        changed = {name: self.of(name, getattr(value, name)) for name in value.__struct_fields__}
        return replace(line, value=replace(value, **changed))

    def of(self, name: str, value: Any) -> Any:
        """Return another value of a field, or the same."""
        if self.chance.random() < 0.5:
            return value
        match name:
            case "queue" if value:
                return self.chance.choice(self.queues)
            case "offset" | "next" | "max" | "min":
                return max(-1, value + self.chance.randrange(-2, 3))
            case "offset_id":
                return f"{self.chance.choice(self.queues)}#{self.chance.randrange(4)}"
            case "id":
                return self.chance.choice(self.ids)
            case "reset" | "seek" | "left":
                return not value
            case "status" if value:
                return self.chance.choice(["SEND_OK", "FLUSH_DISK_TIMEOUT", "SLAVE_NOT_AVAILABLE"])
            case "messages":
                return tuple(self.message(each) for each in value)
        return value

    def message(self, message: Any) -> Any:
        names = {"id", "offset", "offset_id"} & set(message.__struct_fields__)
        return replace(message, **{name: self.of(name, getattr(message, name)) for name in names})


@pytest.mark.parametrize("seed", range(30))
def test_a_changed_history_is_judged_in_parts_as_the_whole(seed: int, tmp_path: Path) -> None:
    world = clean(seed, 16)
    world.fault("crash_os")
    world.fault("start")
    found = compare(list(map(Changes(seed, world).line, world.lines)), tmp_path, 2 + seed % 6)
    assert sum(finding.counts.get("wrong", 0) > 0 for finding in found.values()) > 3


@pytest.mark.parametrize("seed", range(4))
def test_missing_lines_are_found_in_parts_as_in_the_whole(seed: int, tmp_path: Path) -> None:
    world, chance = clean(seed, 16), random.Random(seed)
    compare([line for line in world.lines if chance.random() > 0.02], tmp_path, 3)


def test_two_processes_judge_the_parts(tmp_path: Path, temporary: Path) -> None:
    world = clean(3, 16)
    INJECTED["message-lost"].inject(world)
    compare(world.lines, tmp_path, 4, processes=2)
    assert list(temporary.iterdir()) == []


def test_an_empty_history_has_parts_without_lines(tmp_path: Path) -> None:
    compare([], tmp_path, 2)


@pytest.mark.parametrize("stage", ["split", "judge_messages"])
def test_a_full_disk_is_one_error_that_names_the_folder(
    stage: str, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(judged_parts, stage, full)
    with pytest.raises(
        FullDiskError, match=f"{temporary}/mqproof-history-.*: No space left on device; .*TMPDIR"
    ):
        in_parts(clean(3, 4).lines, tmp_path, 2)
    assert list(temporary.iterdir()) == []


def test_a_full_disk_cancels_the_parts_that_are_not_judged_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()

    def judge(_: object, part: int) -> tuple[dict[str, Any], dict[int, bytes]]:
        (begun / str(part)).touch()
        time.sleep(0.02 * (part > 0))
        return {}, {0: b"foreign"}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(judged_parts, "judge_messages", judge)
    monkeypatch.setattr(judged_parts, "_append", full)
    with pytest.raises(FullDiskError):
        in_parts(clean(3, 4).lines, tmp_path, 64, processes=2)
    assert 0 < len(list(begun.iterdir())) < 64


def test_a_killed_process_is_one_error_that_says_what_to_do(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged_parts, "judge_queues", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(KilledProcessError, match=r"killed.* use more --parts or fewer --processes"):
        in_parts(clean(3, 4).lines, tmp_path, 2, processes=2)
    assert list(temporary.iterdir()) == []


def test_an_index_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    lines = clean(3, 4).lines
    last = lines[-1].index
    with pytest.raises(HistoryError, match=f"h.jsonl: the line with index 0 follows .* {last};"):
        in_parts(lines + lines, tmp_path, 2)


def test_rules_that_are_judged_by_another_key_find_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swapped = {Key.MESSAGE: OF_KEY[Key.QUEUE], Key.QUEUE: OF_KEY[Key.MESSAGE]}
    monkeypatch.setattr(part_stages, "OF_KEY", OF_KEY | swapped)
    world = clean(5, 16)
    lines = list(map(Changes(5, world).line, world.lines))
    (tmp_path / "h.jsonl").write_bytes(b"".join(map(encode, lines)))
    found = judge_in_parts(tmp_path / "h.jsonl", 3, 1, None, None).findings
    one = whole(lines)[1]
    other = {rule for rule in one if one[rule].counts != found[rule][0].counts}
    assert other > {"A06", "A07", "A08", "A09", "C06", "C08", "C13", "C15", "C16", "C18"}


def test_a_part_without_what_others_know_would_find_another_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_stages, "_foreign", lambda *_: {})
    with pytest.raises(AssertionError):
        compare(clean(5, 16).lines, tmp_path, 4)
