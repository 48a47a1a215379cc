"""One Java gives the verdict of a Java of its own, whatever ran before. Without a reset it does not."""

import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqproof.spec.tlc.errors import Reason, TlcError
from mqproof.spec.tlc.run import Job, Outcome, Verdict
from mqproof.spec.tlc.shared_java import JavaEndedError, SharedJava, can_share, is_shareable
from mqproof.spec.tlc.toolbox import find_toolbox
from tests.spec.tlc.counter import CONFIG, DISTINCT, LIBRARIES


def tiny(body: str, config: str) -> Job:
    source = f"---- MODULE Tiny ----\nEXTENDS Naturals, TLC\n{body}\n====\n"
    return Job("Tiny", config, sources={"Tiny": source}, seconds_max=60)


VARIABLE_TWICE = tiny(
    "VARIABLES first, twice\nInit == first = 0 /\\ twice = 7\nNext == UNCHANGED <<first, twice>>",
    "INIT Init\nNEXT Next",
)
OPERATOR_TWICE = tiny(
    "VARIABLES a, b\nInit == a = 0 /\\ b = 0\nNext == UNCHANGED <<a, b>>\n"
    "Four == LET twice(n) == 2 * n IN twice(2) = 4",
    "INIT Init\nNEXT Next\nINVARIANT Four",
)
NEVER_TEN = tiny(
    "VARIABLE x\nUp == x < 3 /\\ x' = x + 1\nSpec == x = 0 /\\ [][Up]_x /\\ WF_x(Up)\nTen == <>(x = 10)",
    "SPECIFICATION Spec\nPROPERTY Ten",
)


def register(number: int) -> Job:
    body = f"ASSUME TLCSet(1, {number})\nSaved == TLCGet(1)\nOK == x = 0 /\\ Saved = {number}\nInit == x = 0"
    return tiny(f"VARIABLE x\n{body}\nNext == UNCHANGED x", "INIT Init\nNEXT Next\nINVARIANT OK")


def run(java: SharedJava, job: Job) -> Outcome:
    return java.run(job, threading.Event(), lambda _: None)


def outcome_of(java: SharedJava, job: Job) -> str:
    try:
        return run(java, job).verdict
    except (TlcError, JavaEndedError):
        return "none"


@pytest.fixture(scope="module")
def java() -> Iterator[SharedJava]:
    started = SharedJava(find_toolbox(), brief=True)
    yield started
    started.close()


@pytest.mark.parametrize(
    ("reset", "before", "job", "verdict"),
    [
        ("places", VARIABLE_TWICE, OPERATOR_TWICE, Verdict.HELD),
        ("violation", NEVER_TEN, NEVER_TEN, Verdict.VIOLATED),
        ("checker", register(5), register(7), Verdict.HELD),
    ],
)
def test_a_run_does_not_depend_on_the_one_before_and_would_without_the_reset(
    java: SharedJava, reset: str, before: Job, job: Job, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(java, before)
    assert run(java, job).verdict is verdict
    monkeypatch.delitem(java.resets, reset)
    outcome_of(java, before)
    assert outcome_of(java, job) != verdict


def test_files_after_one_that_was_closed_twice_share_no_buffer_and_would_without_the_reset(
    java: SharedJava, tmp_path: Path
) -> None:
    def opened(name: str) -> Any:
        return java._gateway.jvm.tlc2.util.BufferedRandomAccessFile(str(tmp_path / name), "rw")

    def read_after_writing_two_files() -> int:
        one, other = opened("one"), opened("other")
        one.writeInt(1)
        other.writeInt(2)
        one.seek(0)
        return int(one.readInt())

    for expected, resets in ((1, java.resets.values()), (2, ())):
        twice = opened("twice")
        twice.close()
        twice.close()
        for reset in resets:
            reset()
        assert read_after_writing_two_files() == expected


def test_the_outcome_is_that_of_a_java_of_its_own(java: SharedJava) -> None:
    outcome = run(java, Job("Counter", CONFIG, LIBRARIES))
    assert (outcome.verdict, outcome.distinct, outcome.depth) == (Verdict.HELD, DISTINCT, 9)
    with pytest.raises(TlcError) as caught:
        run(java, Job("Lost", CONFIG, LIBRARIES))
    assert caught.value.reason is Reason.PARSE


def test_a_run_beyond_its_time_ends_with_its_java_and_leaves_no_files() -> None:
    java = SharedJava(find_toolbox(), brief=True)
    endless = tiny("VARIABLE x\nInit == x = 0\nNext == x' = x + 1", "INIT Init\nNEXT Next")
    with pytest.raises(TlcError, match="no verdict within 1 seconds") as caught:
        run(java, replace(endless, seconds_max=1))
    java.close()
    assert caught.value.reason is Reason.TIMEOUT
    assert not Path(java._folder.name).exists()
    assert java._process.returncode is not None


@pytest.mark.parametrize("program", ["missing", "true"])
def test_a_java_that_does_not_start_is_reported(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tools = find_toolbox()
    java = replace(tools.java, executable=Path(shutil.which(program) or program))
    with pytest.raises(JavaEndedError, match="did not start"):
        SharedJava(replace(tools, java=java), brief=True)
    assert list(tmp_path.iterdir()) == []


def test_a_job_whose_options_would_outlive_it_is_not_shareable() -> None:
    job = Job("Counter", CONFIG, LIBRARIES)
    assert is_shareable(replace(job, deadlock=True, brief=True))
    assert not is_shareable(replace(job, coverage=True))
    assert not is_shareable(replace(job, heap_mib=4096))
    assert not is_shareable(replace(job, workers=2))


def test_another_jar_is_not_shared(tmp_path: Path) -> None:
    tools = find_toolbox()
    assert can_share(tools)
    (tmp_path / "other.jar").write_bytes(b"another TLC")
    assert not can_share(replace(tools, jar=tmp_path / "other.jar"))
