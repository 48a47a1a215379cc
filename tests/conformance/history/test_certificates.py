"""The verifiers accept the certificates of all verdicts, and refuse each with one fact changed."""

import ast
import importlib
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from msgspec.structs import replace

from mqproof.conformance.history import (
    drain_verifier,
    fates,
    lines,
    takeovers,
    undisturbed,
    verification,
)
from mqproof.conformance.history.certificates import CERTIFIED, WITHOUT_REASON_MAX
from mqproof.conformance.history.columns_verifier import VERIFIERS
from mqproof.conformance.history.exact_delivery import LATER, ExactDelivery, clean
from mqproof.conformance.history.injected import INJECTED, parts, redelivery
from mqproof.conformance.history.injected.parts import QUEUE
from mqproof.conformance.history.judge import check
from mqproof.conformance.history.lines import Setup, encode
from tests.conformance.history.test_rules import EXPLAINED as LEGAL
from tests.conformance.history.test_rules import (
    committed_less_by_the_next_owner,
    committed_less_while_another_member_returns_the_queue,
    cut_off_by_a_power_loss,
    delayed_and_lost_with_a_flush_that_timed_out,
    deleted_on_purpose,
    delivered_again_after_a_rebalance,
    lost_with_the_master,
    no_client_waits_for_a_lost_tail,
    sent_twice,
)

LINES_MAX = 150
"""The maximum number of lines of a verifier with `verification`, and of any module."""
SHARED_LINES_MAX = 230
"""The maximum for a verifier that imports further modules, such as the one that finds lost messages."""
OF_RULE = {rule: verifier for verifier in VERIFIERS for rule in verifier.RULES}

Certificates = dict[str, dict[str, Any]]


def certified(folder: Path, world: ExactDelivery) -> Certificates:
    """Write the history and its certificates; return the certificates by rule."""
    (folder / "h.jsonl").write_bytes(b"".join(map(encode, world.lines)))
    with (folder / "c.jsonl").open("wb") as file:
        check(world.lines, "h.jsonl", None, file)
    texts = (folder / "c.jsonl").read_bytes().splitlines()
    return {each["rule"]: each for each in map(json.loads, texts)}


def refused(folder: Path, verifier: ModuleType, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return what the verifier prints about the rules whose certificate it refuses."""
    code = verification.main(verifier.RULES, str(folder / "h.jsonl"), str(folder / "c.jsonl"))
    said = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert set(said) == set(verifier.RULES)
    wrong = {rule: text for rule, text in said.items() if text.startswith("refused")}
    assert code == bool(wrong)
    return wrong


def refusals(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what is printed about refused certificates by all verifiers, which read the history once."""
    every = {rule: facts for verifier in VERIFIERS for rule, facts in verifier.RULES.items()}
    code = verification.main(every, str(folder / "h.jsonl"), str(folder / "c.jsonl"))
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in said] == [*every]
    wrong = [line for line in said if ": refused" in line]
    assert code == bool(wrong)
    return wrong


def asynchronous(world: ExactDelivery) -> None:
    world.edit(
        lambda line: (
            replace(line, value=replace(line.value, flush_mode="ASYNC_FLUSH"))
            if isinstance(line, Setup)
            else line
        )
    )


def lost_with_the_machine(world: ExactDelivery) -> None:
    asynchronous(world)
    INJECTED["message-lost"].inject(world)
    world.fault("crash_os")
    world.fault("start")


def expired(world: ExactDelivery) -> None:
    INJECTED["message-lost"].inject(world)
    end = len(world.queue(QUEUE))
    world.did("x4", lines.BoundsValue(QUEUE), lines.BoundsValue(QUEUE, end, end))


def cut_off(world: ExactDelivery) -> None:
    """After a restart, the queue ends before a message that no client received; C02 judges that."""
    message = parts.send(world)
    world.fault("kill")
    world.fault("start")
    world.did("x4", lines.BoundsValue(QUEUE), lines.BoundsValue(QUEUE, 0, message.offset))
    parts.read(world, parts.placed(parts.unknown(world), message.offset + 1))


def stored_again_by_a_killed_broker(world: ExactDelivery) -> None:
    message = redelivery.delayed(world, 10)
    world.fault("kill")
    world.fault("start")
    for place in (0, 1):
        parts.read(world, replace(message, offset=1000 + place), queue=f"{LATER}/b/0")


def consumed_after_a_failure(world: ExactDelivery) -> None:
    message = parts.send(world)
    value = lines.ConsumeValue("r", QUEUE, "x3", (message,))
    world.did("x3", value, value, lines.Type.FAIL)
    parts.consumed(world, "r", QUEUE, "x3", message)


def delivered_again_by_a_killed_broker(world: ExactDelivery) -> None:
    message = parts.send(world)
    parts.consumed(world, "r", QUEUE, "x3", message)
    world.fault("kill")
    world.fault("start")
    parts.consumed(world, "r", QUEUE, "x3", message)


def delivered_to_two_owners(world: ExactDelivery) -> None:
    message = parts.send(world)
    for name in ("x3", "x5"):
        world.did(name, lines.AssignValue("r", name, (QUEUE,)))
    for name in ("x3", "x5"):
        parts.consumed(world, "r", QUEUE, name, message)


def polled_again_after_a_seek(world: ExactDelivery) -> None:
    first = world.queue(QUEUE)[:2]
    parts.read(world, *first)
    answer = lines.PollValue(messages=tuple(first), next=2, min=0, max=len(world.queue(QUEUE)))
    world.did("x3", lines.PollValue("group of x3", QUEUE, 0, seek=True), answer)


def reversed_by_a_crash(world: ExactDelivery) -> None:
    asynchronous(world)
    for _ in range(2):
        parts.send(world)
    del world.queue(QUEUE)[-2:]
    world.fault("crash_os")
    world.fault("start")
    parts.send(world)


def read_as_another_after_a_crash(world: ExactDelivery) -> None:
    asynchronous(world)
    first = parts.placed(parts.unknown(world), 5000)
    parts.read(world, first)
    world.fault("crash_os")
    world.fault("start")
    parts.read(world, parts.placed(parts.unknown(world), 5000), process="x5")


def cut_by_a_crash(world: ExactDelivery) -> None:
    asynchronous(world)
    batch = world.message(), world.message()
    first, _ = (world.append(QUEUE, message) for message in batch)
    answer = lines.SendValue(status="SEND_OK", queue=QUEUE, offset=first)
    world.did("x1", lines.SendValue("T", batch), answer)
    world.queue(QUEUE).pop()
    world.fault("crash_os")
    world.fault("start")
    parts.read(world, world.queue(QUEUE)[first], parts.send(world, process="x2"))


def given_again(world: ExactDelivery) -> None:
    parts.given_again(world)


def drained_without_a_lost_message(world: ExactDelivery) -> None:
    """A delayed message is lost with the machine; its place is not known, so that only a drain shows it."""
    asynchronous(world)
    INJECTED["message-not-drained"].inject(world)
    world.fault("crash_os")
    world.fault("start")


def drained_without_a_lost_tail(world: ExactDelivery) -> None:
    no_client_waits_for_a_lost_tail(world)
    world.did("x4", lines.DrainValue("d", ("T",)))


EXPLAINED: dict[str, tuple[str, str, Callable[[ExactDelivery], None]]] = {
    "read": ("A01", "read", lambda _: None),
    "lost": ("A01", "fault", lost_with_the_machine),
    "expired": ("A01", "expired", expired),
    "cut off": ("A01", "end", cut_off),
    "read by some group": ("A02", "read", lambda _: None),
    "judged as lost": ("A02", "passed", lost_with_the_machine),
    "judged as cut off": ("A02", "end", no_client_waits_for_a_lost_tail),
    "judged as not drained": ("A02", "drained", drained_without_a_lost_message),
    "drained": ("A03", "read", lambda _: None),
    "drained, but expired": ("A03", "expired", expired),
    "drained, but passed": ("A03", "passed", lost_with_the_machine),
    "drained, but cut off": ("A03", "end", drained_without_a_lost_tail),
    "drained, but lost": ("A03", "fault", drained_without_a_lost_message),
    "not reached": ("A15", "end", no_client_waits_for_a_lost_tail),
    "not consumed": ("C10.2", "end", no_client_waits_for_a_lost_tail),
    "truncated": ("C02", "fault", cut_off_by_a_power_loss),
    "weakly stored": ("C19", "fault", lost_with_the_master),
    "committed after a rebalance": ("C06", "move", committed_less_by_the_next_owner),
    "committed by an owner": ("C06", "owner", committed_less_while_another_member_returns_the_queue),
    "delayed and lost": ("C12", "fault", delayed_and_lost_with_a_flush_that_timed_out),
    "deleted": ("C20", "deleted", deleted_on_purpose),
    "sent": ("A04", "sent", lambda _: None),
    "sent twice": ("A06", "retry", sent_twice),
    "stored again": ("A06", "fault", stored_again_by_a_killed_broker),
    "failed": ("A07", "failed", consumed_after_a_failure),
    "rebalanced": ("A07", "move", delivered_again_after_a_rebalance),
    "killed": ("A07", "fault", delivered_again_by_a_killed_broker),
    "sought": ("A07", "seek", polled_again_after_a_seek),
    "two owners": ("A07", "owner", delivered_to_two_owners),
    "freed and read": ("A08", "fault", read_as_another_after_a_crash),
    "freed and answered": ("C01", "fault", given_again),
    "torn": ("A12", "fault", cut_by_a_crash),
    "reversed": ("A11", "fault", reversed_by_a_crash),
}
"""For each kind of reason: the rule, the name of the reason, and the injected events."""


@pytest.mark.parametrize("name", sorted(INJECTED))
def test_the_certificates_of_any_history_are_accepted(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = clean(3, 20)
    INJECTED[name].inject(world)
    found = certified(tmp_path, world)
    assert set(found) == set(CERTIFIED)
    if INJECTED[name].rule in VIOLATIONS:
        assert found[INJECTED[name].rule]["verdict"] == "violated"
    assert refusals(tmp_path, capsys) == []


def expect_accepted_with_several_anomalies(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = clean(seed, 15)
    for name in random.Random(seed).sample(sorted(INJECTED), 3):
        INJECTED[name].inject(world)
    certified(tmp_path, world)
    assert refusals(tmp_path, capsys) == []


@pytest.mark.parametrize("seed", range(2))
def test_the_certificates_of_a_random_history_with_three_anomalies_are_accepted(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect_accepted_with_several_anomalies(seed, tmp_path, capsys)


@pytest.mark.deep("several minutes: every rule is compared with its verifier on 300 histories")
@pytest.mark.parametrize("seed", range(2, 302))
def test_the_certificates_of_many_random_histories_with_three_anomalies_are_accepted(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect_accepted_with_several_anomalies(seed, tmp_path, capsys)


@pytest.mark.parametrize("legal", LEGAL, ids=lambda each: each.__name__)
def test_the_certificates_of_events_with_a_known_cause_are_accepted(
    legal: Callable[[ExactDelivery], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = clean(5, 20)
    legal(world)
    certified(tmp_path, world)
    assert refusals(tmp_path, capsys) == []


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_reason_is_accepted_and_the_same_reason_at_another_line_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule, kind, inject = EXPLAINED[name]
    world = clean(3, 20)
    inject(world)
    found = certified(tmp_path, world)
    assert found[rule]["verdict"] == "held"
    assert refusals(tmp_path, capsys) == []
    fact = next(fact for fact in found[rule]["evidence"] if fact[1] == kind)
    changes: list[list[Any] | None] = [[fact[0], kind, 0], [fact[0], "guess", fact[2]], None]
    for changed in changes:
        evidence = [(changed if each is fact else each) for each in found[rule]["evidence"]]
        certificate = found[rule] | {"evidence": [each for each in evidence if each is not None]}
        (tmp_path / "c.jsonl").write_text(json.dumps(certificate))
        assert "no line shows" in refused(tmp_path, OF_RULE[rule], capsys)[rule]


VIOLATIONS = {each.rule: name for name, each in INJECTED.items() if each.rule not in ("A02", "L01")}
"""An injected anomaly of each rule that has certificates and can be violated."""


@pytest.mark.parametrize("rule", VIOLATIONS)
def test_a_false_verdict_is_refused(rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = clean(3, 20)
    INJECTED[VIOLATIONS[rule]].inject(world)
    found = certified(tmp_path, world)[rule]
    assert 0 < len(found["evidence"]) <= WITHOUT_REASON_MAX
    subjects = dict(
        OF_RULE[rule].RULES[rule](
            verification.History(map(json.loads, (tmp_path / "h.jsonl").read_bytes().splitlines()))
        )
    )
    explained = [[list(subject)] for subject, reasons in subjects.items() if reasons]
    false: dict[str, dict[str, Any]] = {
        "no line shows": {"verdict": "held", "evidence": []},
        "without evidence": {"evidence": []},
        "is not in the history": {"evidence": [[["m0"]]]},
        "undecided, without": {"verdict": "undecided"},
        "has no reason": {"verdict": "unknown", "evidence": []},
    }
    if explained:
        false["has a reason"] = {"evidence": explained[:1]}
    for text, change in false.items():
        (tmp_path / "c.jsonl").write_text(json.dumps(found | change))
        assert text in refused(tmp_path, OF_RULE[rule], capsys)[rule]


def test_an_unread_message_is_open_and_no_other_verdict_about_it_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = clean(3, 20)
    INJECTED["message-not-read"].inject(world)
    found = certified(tmp_path, world)["A02"]
    assert (found["verdict"], [fact[1] for fact in found["evidence"]]) == ("unknown", ["open"])
    (subject, _, line), read = found["evidence"][0], [0, 0]
    history = verification.History(map(json.loads, (tmp_path / "h.jsonl").read_bytes().splitlines()))
    every = [[list(each), *reasons[0]] for each, reasons in drain_verifier.unseen(history)]
    false: dict[str, dict[str, Any]] = {
        f"no line shows [('open', {line})]": {"verdict": "held", "evidence": every},
        "has a reason": {"verdict": "violated", "evidence": [[subject]]},
        f"no line shows [('open', {line + 1})]": {"evidence": [[subject, "open", line + 1]]},
        "is not in the history": {"evidence": [[read, "open", 0]]},
    }
    for text, change in false.items():
        (tmp_path / "c.jsonl").write_text(json.dumps(found | change))
        assert text in refused(tmp_path, drain_verifier, capsys)["A02"]


def test_of_many_faults_and_moves_the_first_of_each_kind_between_two_lines_is_a_reason() -> None:
    """So the time does not grow with their number for each fact."""
    world = clean(3, 5)
    begin = len(world.lines)
    for _ in range(20):
        world.fault("kill")
        world.fault("start")
        world.did("x3", lines.AssignValue("g", "x3", (QUEUE,)))
    history = verification.History(map(json.loads, map(encode, world.lines)))
    found = history.causes("g", begin, len(world.lines))
    assert sorted(found) == [("fault", begin + 1), ("fault", begin + 4), ("move", begin + 2)]
    assert history.causes("g", len(world.lines) - 1, verification.NEVER) == []
    assert history.between({"kill"}, begin, begin + 4) == []


def test_a_missing_certificate_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certified(tmp_path, clean(3, 5))
    (tmp_path / "c.jsonl").write_bytes(b"")
    assert len(refusals(tmp_path, capsys)) == len(OF_RULE)
    for verifier in VERIFIERS:
        assert set(refused(tmp_path, verifier, capsys)) == set(verifier.RULES)


def test_a_history_with_a_missing_line_has_no_certificate(tmp_path: Path) -> None:
    world = clean(3, 5)
    del world.lines[10]
    assert certified(tmp_path, world) == {}
    for verifier in VERIFIERS:
        with pytest.raises(verification.RefusedError, match="line 10 of the history is missing"):
            verification.main(verifier.RULES, str(tmp_path / "h.jsonl"), str(tmp_path / "c.jsonl"))


def code_lines(text: str, tree: ast.Module) -> int:
    """Return the number of lines that are not blank, nor part of a docstring or an import."""
    left = {number for number, line in enumerate(text.splitlines(), 1) if line.strip()}
    for node in (each for each in ast.walk(tree) if isinstance(each, ast.stmt)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            left -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(left)


def imported_by(tree: ast.Module) -> set[str]:
    found = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import))
    return found | {each.name for node in imports for each in node.names}


def sizes(module: ModuleType) -> dict[str, int]:
    """Return the numbers of code lines of a module and of those that it imports from this project."""
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    tree = ast.parse(text)
    found = {module.__name__: code_lines(text, tree)}
    for name in imported_by(tree):
        if name.partition(".")[0] not in sys.stdlib_module_names:
            found |= sizes(importlib.import_module(name))
    return found


@pytest.mark.parametrize("verifier", VERIFIERS)
def test_a_verifier_is_short_and_imports_only_the_standard_library(verifier: ModuleType) -> None:
    found = sizes(verifier)
    shared = found.keys() - {verifier.__name__}
    assert shared <= {each.__name__ for each in (fates, takeovers, undisturbed, verification)}
    assert max(found.values()) <= LINES_MAX
    assert sum(found.values()) <= (LINES_MAX if len(shared) == 1 else SHARED_LINES_MAX)


def test_each_rule_with_certificates_has_one_verifier() -> None:
    assert set(OF_RULE) == set(CERTIFIED)
    assert sum(len(verifier.RULES) for verifier in VERIFIERS) == len(CERTIFIED)
