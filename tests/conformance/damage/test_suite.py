"""Tests the suite damage: our broker withstands every damage, and each defect of a store is found.

Each rule is tested on observations written by hand; some cases and mutants run on our broker by default.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from mqproof.conformance.adapters.damaged_brokers import LogFile, RemoteBroker, brokers, embedded
from mqproof.conformance.damage import checkers, damage_run, observation, store_files
from mqproof.conformance.damage.cases import CASES, Moment
from mqproof.conformance.damage.checkers import PeersSeen
from mqproof.conformance.damage.damage_run import Broker, RefusedStartError
from mqproof.conformance.damage.observation import Record, Seen, Sent, Stored, parse, split
from mqproof.conformance.damage.suite import lines, listed
from mqproof.conformance.damage.suite import run as run_suite
from mqproof.conformance.engine import time_bounds
from mqproof.conformance.engine.fault_commands import FaultCommands
from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.targets import TargetError, UnknownTargetError
from mqproof.conformance.mutants.damage import MUTANTS
from mqproof.conformance.registry import mutant_judge
from mqproof.conformance.subjects import damaged_peers
from mqproof.conformance.wire.frames import Frame
from mqproof.conformance.wire.server_connection import Address
from mqproof.report.model import Verdict

TRUTH = Stored("T", Record(b"record", 0, 3, 700, b"body", "T"))
OTHER = Stored("T", Record(b"other", 0, 4, 900, b"another body", "T"))
SEEN = Seen((TRUTH, OTHER), report="", files=("commitlog/00000000000000000000", "checkpoint"))
SOME = ("record-body/running", "entry-zeroed/stopped", "topics-empty/stopped", "log-missing/stopped")
SETTLED = PeersSeen(
    "slave", peer_had=True, is_wrong=False, is_repaired=True, is_reported=True, is_logged=True
)
QUICK = ("body-not-checked", "loss-not-logged", "entry-not-repaired")


def _record(body: bytes, queue_offset: int = 3) -> bytes:
    numbers = [0, 0, 0, 0, 0]
    front = b"".join(each.to_bytes(4, "big") for each in numbers)
    front += queue_offset.to_bytes(8, "big") + (700).to_bytes(8, "big")
    rest = len(body).to_bytes(4, "big") + body + b"\x01T" + bytes(2)
    data = front.ljust(84, b"\0") + rest
    return len(data).to_bytes(4, "big") + data[4:]


def test_a_record_is_parsed_and_other_bytes_are_returned() -> None:
    data = _record(b"body")
    assert parse(data) == Record(data, 0, 3, 700, b"body", "T")
    assert parse(data[:-1]) == data[:-1]
    assert split(data + data + b"rest") == [data, data, b"rest"]


def test_an_altered_record_is_silently_wrong() -> None:
    right = _record(b"body")
    stored = replace(TRUTH, record=parse(right))  # type: ignore[arg-type]
    for data, count in ((right, 0), (_record(b"bodx"), 1), (_record(b"body", 4), 1), (b"noise", 1)):
        assert len(checkers.never_silently_wrong(replace(SEEN, got=[(stored, data)]))) == count
    assert checkers.never_silently_wrong(replace(SEEN, got=[(None, right)])) != ()


def test_a_field_without_a_checksum_may_be_altered() -> None:
    right = bytearray(_record(b"body"))
    stored = replace(TRUTH, record=parse(bytes(right)))  # type: ignore[arg-type]
    right[60] ^= 1  # the store time
    assert checkers.never_silently_wrong(replace(SEEN, got=[(stored, bytes(right))])) == ()


@pytest.mark.parametrize(
    ("report", "is_named"),
    [
        ("", False),
        ("damaged record at commitlog/0, commit offset 700 (topic T, queue 0, offset 3)", True),
        ("record 700 is damaged", True),
        ("topic T: offset 3 is damaged", True),
        ("topic T: offset 33 is damaged, 7000", False),
        ("something is wrong", False),
    ],
)
def test_a_loss_must_be_reported_by_its_place(report: str, is_named: bool) -> None:
    found = checkers.never_silently_lost(replace(SEEN, passed={("T", 3)}, report=report))
    assert (found == ()) is is_named


def test_a_loss_without_a_log_is_unknown() -> None:
    seen = replace(SEEN, passed={("T", 3)}, report=None)
    assert checkers.never_silently_lost(seen) == ()
    assert checkers.is_unknown(seen)


def test_a_new_message_follows_all_earlier_ones_and_is_delivered() -> None:
    two = replace(SEEN, sent=[Sent("T", 2, b"new")], received={("T", 2): b"new"})
    assert checkers.offsets_not_reused(two) == ()
    assert "gets offset 1" in checkers.offsets_not_reused(replace(two, sent=[Sent("T", 1, b"new")]))[0]
    assert "does not deliver" in checkers.offsets_not_reused(replace(two, received={}))[0]


def test_a_refused_start_names_a_file() -> None:
    assert checkers.refused_by_name(replace(SEEN, refusal="/store/checkpoint: damaged")) == ()
    assert checkers.refused_by_name(replace(SEEN, refusal="the files are damaged")) != ()
    assert checkers.refused_by_name(SEEN) == ()


class _Answers:
    """A connection that returns these answers, one for each request."""

    def __init__(self, *answers: Frame) -> None:
        self._answers = list(answers)

    def write(self, _: bytes) -> None:
        pass

    def answer(self, _: int) -> Frame:
        return self._answers.pop(0)


def _behind(count: int) -> Frame:
    return Frame(0, 1, body=b'{"table":{"dispatchBehindBytes":"%d"}}' % count)


@pytest.mark.parametrize(
    ("answers", "is_dispatched"),
    [((_behind(9), _behind(0)), True), ((_behind(9), _behind(9)), False), ((Frame(0, 1),), False)],
    ids=["done", "stalled", "unknown"],
)
def test_the_dispatch_of_a_log_is_awaited(answers: tuple[Frame, ...], is_dispatched: bool) -> None:
    assert observation.is_dispatched(_Answers(*answers), 0.0) == is_dispatched  # type: ignore[arg-type]


def test_a_consumer_asks_a_busy_broker_again() -> None:
    answers = _Answers(Frame(2, 1), Frame(19, 1))
    assert observation.consume(answers, "T") == {}  # type: ignore[arg-type]
    assert not answers._answers


def test_a_copy_of_a_store_has_the_same_bytes_and_keeps_the_holes(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    (source / "commitlog").mkdir(parents=True)
    with (source / "commitlog" / "0").open("wb") as file:
        file.truncate(1 << 22)
        file.seek(1 << 20)
        file.write(b"record")
    (target / "old").mkdir(parents=True)
    store_files.copy_store(source, target)
    assert store_files.names(target) == ("commitlog/0",)
    copied = target / "commitlog" / "0"
    assert copied.read_bytes() == (source / "commitlog" / "0").read_bytes()
    assert copied.stat().st_blocks * 512 < 1 << 21


def test_the_place_of_a_record_and_of_an_entry_is_found(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / "00000000000000000000").write_bytes(b"\1" * 100 + b"record" + bytes(50))
    assert store_files.record(tmp_path, b"record").offset == 100
    with pytest.raises(store_files.StoreFilesError, match="commitlog"):
        store_files.record(tmp_path, b"other")
    queue = tmp_path / "consumequeue" / "T" / "0"
    queue.mkdir(parents=True)
    (queue / "00000000000000000040").write_bytes(bytes(40))
    assert store_files.entry(tmp_path, "T", 0, 3).offset == 20
    with pytest.raises(store_files.StoreFilesError, match="no entry 1"):
        store_files.entry(tmp_path, "T", 0, 1)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, ""),
        ({"is_wrong": True}, "other bytes"),
        ({"is_repaired": False}, "does not repair"),
        ({"is_logged": False}, "without a report"),
        ({"peer_had": False, "is_repaired": False, "is_reported": False}, "does not report"),
        ({"peer_had": False, "is_repaired": False, "is_logged": False}, ""),
    ],
)
def test_a_record_that_a_peer_has_is_repaired(changes: dict[str, bool], problem: str) -> None:
    found = checkers.damage_settled(replace(SETTLED, **changes))  # type: ignore[arg-type]
    assert [problem in line for line in found] == [True] * bool(problem)


def test_peers_repair_the_records_of_our_brokers() -> None:
    for seed in range(8):
        assert checkers.damage_settled(damaged_peers.live(damaged_peers.point(seed))) == (), seed


def test_a_broker_that_does_not_ask_its_peers_is_found() -> None:
    (result,) = mutant_judge.run(["peer-not-asked"])
    assert (result.verdict, result.id) == (Verdict.HELD, "ROT-5")


def test_peers_are_not_tested_without_ours() -> None:
    """The brokers of other targets run alone."""

    @contextmanager
    def ours(_: RunOptions) -> Iterator[Broker]:
        with embedded() as inner:
            yield inner

    options = RunOptions("apache:5", ids=("ROT-5", "damage/record-body/running"))
    verdicts = {result.id: result.verdict for result in run_suite(options, lambda *_: None, ours).results}
    assert verdicts == {"ROT-5": Verdict.NOT_TESTED}
    with_peers = run_suite(options, lambda *_: None, ours, lambda _: replace(SETTLED, is_repaired=False))
    assert [result.verdict for result in with_peers.results] == [Verdict.VIOLATED]


def _conduct(*ids: str, target: str = "impl") -> Part:
    options = RunOptions(target, ids=tuple(f"damage/{each}" for each in ids))
    return run_suite(options, lambda *_: None, brokers)


def test_cases_that_ended_in_time_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def two_cases(*_: object) -> Iterator[damage_run.Observed]:
        yield damage_run.Observed(CASES[0], Moment.STOPPED, SEEN)
        yield damage_run.Observed(CASES[1], Moment.STOPPED, replace(SEEN, passed={("T", 3)}))
        time.sleep(60)  # the third case is interrupted

    monkeypatch.setattr(damage_run, "run", two_cases)
    broker = cast(Broker, None)  # the cases above use none
    assert listed(RunOptions("impl")), "the catalogue is read before the time begins"
    with time_bounds.budget(0.3):
        part = run_suite(
            RunOptions("impl"), lambda *_: None, lambda _: nullcontext(broker), lambda _: SETTLED
        )
    verdicts = {result.id: result.verdict for result in part.results}
    assert verdicts["ROT-2"] is Verdict.VIOLATED
    assert verdicts["ROT-1"] is Verdict.HELD
    assert verdicts["ROT-5"] is Verdict.UNKNOWN
    assert part.looked_at["cases"] == 2


def test_our_broker_withstands_some_damages() -> None:
    part = _conduct(*SOME)
    assert {result.id: result.verdict for result in part.results} == dict.fromkeys(
        checkers.CHECKERS, Verdict.HELD
    )
    (table,) = part.tables
    assert [row[2] for row in table.rows] == ["reported", "repaired", "refused by name", "repaired"]


@pytest.mark.deep("all cases; a few are judged in every run")
def test_our_broker_withstands_every_damage() -> None:
    part = _conduct("*")
    assert {result.verdict for result in part.results} == {Verdict.HELD}
    assert part.looked_at["cases"] == sum(len(case.moments) for case in CASES)


DEEP = pytest.mark.deep("needs more cases: up to 8 CPU seconds for all such mutants")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [DEEP]) for name in MUTANTS]
)
def test_the_named_invariant_finds_the_mutant(name: str) -> None:
    (result,) = mutant_judge.run([name])
    assert (result.verdict, result.id) == (Verdict.HELD, MUTANTS[name].breaks)


def test_a_violation_names_its_case_and_its_replay() -> None:
    part = _conduct("record-body/stopped", target="mutant:body-not-checked")
    (wrong,) = [result for result in part.results if result.verdict is Verdict.VIOLATED]
    assert wrong.id == "ROT-1"
    assert wrong.replay.endswith("--suite damage --id damage/record-body/stopped")
    assert "record-body/stopped" in wrong.witnesses[0].text


def test_cases_have_unique_names_and_are_listed() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    everything = list(lines(RunOptions("impl")))
    assert len(everything) == len(checkers.CHECKERS) + 1 + sum(len(case.moments) for case in CASES)
    assert [result.id for result in listed(RunOptions("impl", ids=("ROT-2",)))] == ["ROT-2"]
    assert listed(RunOptions("impl", ids=("FLUSH-1",))) == ()
    assert {moment for case in CASES for moment in case.moments} == set(Moment)


def test_a_remote_broker_needs_its_store_and_its_commands(tmp_path: Path) -> None:
    options = RunOptions("remoting://127.0.0.1:9")
    with pytest.raises(UnknownTargetError, match="--store, --start and --stop"), brokers(options):
        pass
    given = replace(options, store=tmp_path, controls=FaultCommands(start="true", stop="true"))
    with pytest.raises(UnknownTargetError, match="no commitlog"), brokers(given):
        pass
    with pytest.raises(UnknownTargetError, match="needs impl"), brokers(RunOptions("reference")):
        pass


def test_a_remote_broker_that_does_not_start_is_refused_with_its_log(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    log = tmp_path / "broker.log"
    log.write_text("earlier\n", encoding="utf-8")
    commands = FaultCommands(start=f"echo damaged >> {log}; false", stop="true")
    options = RunOptions("remoting://127.0.0.1:9", store=tmp_path, controls=commands, broker_log=log)
    with pytest.raises(RefusedStartError, match=r"(?s)--start.*damaged"):
        RemoteBroker(options).start()
    assert RemoteBroker(replace(options, broker_log=None)).report() is None


def test_a_log_file_is_read_from_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("old\n", encoding="utf-8")
    log = LogFile(path)
    path.write_text("old\nnew\n", encoding="utf-8")
    assert log.take() == "new\n"
    path.write_text("1\n", encoding="utf-8")  # it was rotated
    assert log.take() == "1\n"
    path.unlink()
    assert log.take() == ""


class _Empty:
    """A broker that forgets its messages when it stops."""

    def __init__(self, inner: Broker) -> None:
        self.store = inner.store
        self.dispatch_s = inner.dispatch_s
        self._inner = inner

    def start(self) -> Address:
        return self._inner.start()

    def stop(self) -> None:
        self._inner.stop()
        shutil.rmtree(self.store)

    def report(self) -> str | None:
        return self._inner.report()


def test_a_broker_that_loses_its_messages_without_damage_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def forgetful(_: RunOptions) -> Iterator[Broker]:
        with embedded() as inner:
            yield _Empty(inner)

    monkeypatch.setattr("mqproof.conformance.damage.observation.SECONDS_MAX", 0.0)
    with pytest.raises(TargetError, match="does not serve before any damage"):
        run_suite(RunOptions("impl"), lambda *_: None, forgetful)


def test_the_verdict_of_a_case_is_in_words() -> None:
    def verdict(seen: Seen) -> str:
        return damage_run.Observed(CASES[0], Moment.STOPPED, seen).verdict

    assert verdict(SEEN) == "harmless"
    assert verdict(replace(SEEN, report="checkpoint: rebuilt")) == "repaired"
    assert verdict(replace(SEEN, refusal="checkpoint: damaged")) == "refused by name"
    assert verdict(replace(SEEN, passed={("T", 3)}, report="record 700 is damaged")) == "reported"
    assert verdict(replace(SEEN, passed={("T", 3)}, report=None)) == "unknown"
    assert verdict(replace(SEEN, passed={("T", 3)})) == "violated"
