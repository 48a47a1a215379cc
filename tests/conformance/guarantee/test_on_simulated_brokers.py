"""Entries of the guarantee matrix on our brokers: the losses match those of the model."""

import asyncio
import json
import re

import pytest

from mqproof.conformance.guarantee import show
from mqproof.conformance.guarantee.on_simulated_brokers import differing, live_through, live_through_all
from mqproof.conformance.hosts.simulated import Cluster
from mqproof.conformance.subjects.guarantee_entry import ReplayError, live, replay
from mqproof.spec.guarantee import recorded
from mqproof.spec.guarantee.document import MARK
from mqproof.spec.guarantee.matrix import Cell, Matrix, Outcome, Setup
from mqproof.spec.tlc.trace import Step, Trace
from mqproof.spec.tlc.values import Function, State

VERDICTS = recorded.load()
SAFE = [entry for entry, outcome in VERDICTS.items() if outcome is Outcome.SAFE]

NODES = ("master", "slave")


def _state(answer: str, **changes: object) -> State:
    """Return a state of Guarantee.tla with the variables that a replay reads."""
    state = {
        "answer": Function({"m1": answer}),
        "log": Function({"master": (), "slave": ()}),
        "flushed": Function({"master": 0, "slave": 0}),
        "up": Function({"master": "running", "slave": "running"}),
        "struck": (),
    }
    return Function({**state, **changes})  # type: ignore[dict-item]


def _struck(fault: str, node: str = "master") -> tuple[Function, ...]:
    return (Function({"fault": fault, "node": node}),)


def _trace(*steps: tuple[str, State]) -> Trace:
    first = Step(1, "", _state("unsent"))
    return Trace((first, *(Step(number, *step) for number, step in enumerate(steps, start=2))))


LOGGED = {"log": Function({"master": ("m1",), "slave": ()})}
IN_BOTH = {"log": Function({"master": ("m1",), "slave": ("m1",)})}

ASYNC_UNTIL_OK = (
    ("Send", _state("sent")),
    ("AppendRecord", _state("waiting", **LOGGED)),
    ("AnswerOk", _state("SEND_OK", **LOGGED)),
)
ASYNC_LOSS = _trace(
    *ASYNC_UNTIL_OK,
    ("MCPowerLoss", _state("SEND_OK", struck=_struck("power"))),
    ("Restart", _state("SEND_OK", struck=_struck("power"))),
)
"""ASYNC_FLUSH: the message was in one page cache."""

SLAVE_ONLY = _trace(
    ("Send", _state("sent")),
    ("AppendRecord", _state("waiting", **LOGGED)),
    ("Transfer", _state("waiting", **IN_BOTH)),
    ("Report", _state("waiting", **IN_BOTH)),
    ("AnswerOk", _state("SEND_OK", **IN_BOTH)),
    ("MCDiskLost", _state("SEND_OK", struck=_struck("disk"))),
    ("Restart", _state("SEND_OK", struck=_struck("disk"))),
)
"""SYNC_MASTER: the master restarts with an empty disk."""

LATE_FLUSH = _trace(
    ("Send", _state("sent")),
    ("AppendRecord", _state("waiting", **LOGGED)),
    ("AnswerDiskTimeout", _state("FLUSH_DISK_TIMEOUT", **LOGGED)),
    ("MCPowerLoss", _state("FLUSH_DISK_TIMEOUT", struck=_struck("power"))),
    ("Restart", _state("FLUSH_DISK_TIMEOUT", struck=_struck("power"))),
)


@pytest.mark.parametrize(
    ("setup", "fault", "trace"),
    [
        (Setup("ASYNC_FLUSH", "none", "sync"), "power", ASYNC_LOSS),
        (Setup("ASYNC_FLUSH", "SYNC_MASTER_5X", "async"), "power", ASYNC_LOSS),
        (Setup("ASYNC_FLUSH", "SYNC_MASTER", "sync"), "disk", SLAVE_ONLY),
        (Setup("SYNC_FLUSH", "none", "sync"), "power", LATE_FLUSH),
    ],
)
def test_a_counterexample_ends_on_brokers_as_in_the_model(setup: Setup, fault: str, trace: Trace) -> None:
    entry = Cell(setup, (fault,))
    lived = live_through(entry, VERDICTS[entry], trace, runs=1)
    assert lived.failure == ""
    assert lived.worst is VERDICTS[entry]


def _damaged(where: str, **logs: object) -> Trace:
    """Return the path on which a durable record is damaged on the master."""
    flushed = {"flushed": Function({"master": 1, "slave": 0}), **logs}
    harmed = {"struck": _struck(where), "damaged": Function({"master": frozenset({1}), "slave": frozenset()})}
    steps = [
        ("MCSend", _state("sent")),
        ("MCAppendRecord", _state("waiting", **LOGGED)),
        ("MCTransfer", _state("waiting", **logs)),
        ("MCReport", _state("waiting", **logs)),
        ("MCFlushLog", _state("waiting", **flushed)),
        ("MCAnswerOk", _state("SEND_OK", **flushed)),
        ("DamageBlock", _state("SEND_OK", **flushed, **harmed)),
    ]
    return _trace(*steps)


@pytest.mark.parametrize("damage", ["flip", "lost"])
@pytest.mark.parametrize("replication", ["none", "ASYNC_MASTER"])
def test_a_damaged_record_that_no_other_broker_has_is_gone(damage: str, replication: str) -> None:
    entry = Cell(Setup("SYNC_FLUSH", replication, "sync"), (damage,))
    steps = _damaged(damage, **LOGGED).steps
    without_slave = Trace(tuple(each for each in steps if each.action not in ("MCTransfer", "MCReport")))
    assert live_through(entry, VERDICTS[entry], without_slave).failure == ""


@pytest.mark.parametrize("damage", ["flip", "lost"])
def test_a_damaged_record_that_the_slave_has_is_safe(damage: str) -> None:
    """The model's verdict is silent, because another send may not reach the slave."""
    played = replay(Cell(Setup("SYNC_FLUSH", "SYNC_MASTER", "sync"), (damage,)), _damaged(damage, **IN_BOTH))
    assert (played.became, played.send_result) == (Outcome.SAFE, "SEND_OK")


@pytest.mark.parametrize("damage", ["flip", "lost"])
def test_random_damage_loses_no_message_that_the_slave_acknowledged(damage: str) -> None:
    entry = Cell(Setup("ASYNC_FLUSH", "SYNC_MASTER", "sync"), (damage,))
    assert live_through(entry, VERDICTS[entry], None, runs=4).failure == ""


def test_a_replay_that_ends_differently_from_the_model_is_a_failure() -> None:
    entry = Cell(Setup("ASYNC_FLUSH", "none", "sync"), ("process",))
    harmless = _trace(
        *ASYNC_UNTIL_OK,
        ("MCProcessCrash", _state("SEND_OK", **LOGGED, struck=_struck("process"))),
        ("Restart", _state("SEND_OK", **LOGGED, struck=_struck("process"))),
    )
    assert replay(entry, harmless).became is Outcome.SAFE
    lived = live_through(entry, Outcome.GONE, harmless)
    assert lived.failure == "the replay ends in safe (m1, whose sender received SEND_OK), the model in gone"
    assert differing([lived]) == [lived]


def test_a_step_that_does_not_end_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    started: set[str] = set()
    start = Cluster.start

    async def start_once(cluster: Cluster, node: str) -> None:
        if node in started:
            await asyncio.Event().wait()
        started.add(node)
        await start(cluster, node)

    monkeypatch.setattr(Cluster, "start", start_once)
    with pytest.raises(ReplayError, match="Restart did not end within 60 simulated s"):
        replay(Cell(Setup("ASYNC_FLUSH", "none", "sync"), ("power",)), ASYNC_LOSS)


def test_a_random_run_that_ends_worse_than_the_model_is_a_failure() -> None:
    entry = Cell(Setup("ASYNC_FLUSH", "none", "oneway"), ("machine",))
    lived = live_through(entry, Outcome.SAFE, None, runs=5)
    assert "worse than safe in the model" in lived.failure


def test_a_step_that_brokers_do_not_take_is_reported() -> None:
    entry = Cell(Setup("SYNC_FLUSH", "none", "sync"), ("process",))
    with pytest.raises(ReplayError, match="answered FLUSH_DISK_TIMEOUT, SEND_OK expected"):
        replay(entry, _trace(*ASYNC_UNTIL_OK))  # no step ends the fsync


@pytest.mark.parametrize("number", range(0, len(SAFE), 4))
def test_a_safe_entry_of_the_model_is_safe_on_brokers(number: int) -> None:
    assert live_through(SAFE[number], Outcome.SAFE, None, runs=2).failure == ""


def test_the_same_seed_gives_the_same_run() -> None:
    entry = Cell(Setup("SYNC_FLUSH", "SYNC_MASTER", "async"), ("os", "machine"))
    assert live(entry, 5) == live(entry, 5)


def test_the_document_has_all_tables_and_they_agree() -> None:
    text = show.DOCUMENT.read_text(encoding="utf-8")
    ours = text.partition(show.BEGIN)[2].partition(show.END)[0]
    assert text.index(show.END) < text.index(MARK)
    assert "690 cells" in ours
    assert " 0 cells differ" in ours
    pairs = [
        entry.strip().split(" : ")
        for line in ours.splitlines()
        if line.startswith("|")
        for entry in line.split("|")
        if " : " in entry
    ]
    assert len(pairs) == 24 * (6 + 2)
    assert all(model == broker.partition(",")[0] for model, broker in pairs)
    assert re.search(r"safe : safe, \d+ runs", ours)


def test_cells_are_shown_as_json_and_as_tables() -> None:
    entry = Cell(Setup("ASYNC_FLUSH", "none", "sync"), ("power",))
    never = Cell(entry.setup, ("machine", "machine"))
    matrix = Matrix({entry: Outcome.GONE, never: Outcome.NEVER}, {entry: ASYNC_LOSS}, 1, 1.0)
    (lived,) = live_through_all(matrix, {}, runs=1)
    assert list(live_through_all(matrix, {"fault": "disk"})) == []
    (cell,) = json.loads(show.as_json([lived]))["cells"]
    assert (cell["model"], cell["broker"], cell["replayed"], cell["send_result"]) == (
        "gone",
        "gone",
        "gone",
        "SEND_OK",
    )
    assert "| ASYNC_FLUSH | none | sync | – | – | – | LOST : LOST, replayed |" in show.markdown([lived])
    text = show.refreshed(f"head\n{show.BEGIN}old\n{show.END}tail", [lived])
    assert text.startswith(f"head\n{show.BEGIN}")
    assert text.endswith(f"{show.END}tail")
    assert "old" not in text
