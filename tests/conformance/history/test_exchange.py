"""Formats of other tools: a round trip keeps the meaning, and other files are refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqproof.conformance.history import edn, lines
from mqproof.conformance.history.edn import Keyword
from mqproof.conformance.history.exact_delivery import clean
from mqproof.conformance.history.exchange import read_jepsen, read_openchaos, write_elle, write_jepsen
from mqproof.conformance.history.injected import INJECTED
from mqproof.conformance.history.judge import judge
from mqproof.conformance.history.lines import HistoryError, Line
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.record import Outcome, Record
from mqproof.report.model import Verdict

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.from_regex("[a-z]{1,8}", fullmatch=True).map(Keyword),
    lambda inner: st.lists(inner) | st.dictionaries(st.integers() | st.text(), inner),
    max_leaves=12,
)


@given(VALUES)
def test_edn_is_read_back_as_it_was_written(value: object) -> None:
    assert edn.read(edn.write(value)) == value


@pytest.mark.parametrize("text", ["", "[1", "{:a}", "1 2", '"open', "[1]]", "{1 2} 3", "abc"])
def test_text_that_is_not_edn_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        edn.read(text)


def violated(history: list[Line]) -> set[str]:
    return {judged.rule.id for judged in judge(history) if judged.finding.verdict is Verdict.VIOLATED}


def to_jepsen_and_back(history: list[Line], folder: Path) -> list[Line]:
    file = folder / "history.edn"
    file.write_bytes(write_jepsen(history))
    return read_jepsen(file)


def sends(history: Record) -> list[tuple[Outcome, int, int]]:
    return [(sent.span.outcome, sent.batch, sent.offset) for sent in history.sends if sent.topic != "L"]


def test_a_history_converted_to_jepsen_and_back_keeps_its_meaning(tmp_path: Path) -> None:
    world = clean(3)
    before, after = record(world.lines), record(to_jepsen_and_back(world.lines, tmp_path))
    assert after.gap_count == 0
    assert len(after.sends) == len(before.sends)
    assert sorted(s.offset for s in after.placed) == sorted(s.offset for s in before.placed)
    polled = [
        r for r in before.reads if r.kind == "poll" and r.group != "f" and "%" not in r.queue and r.messages
    ]
    again = [r for r in after.reads if r.messages]
    assert [[m.offset for m in r.messages] for r in polled] == [[m.offset for m in r.messages] for r in again]


@pytest.mark.parametrize(
    "name",
    [
        "unsent-message",
        "two-messages-at-one-place",
        "sends-reversed",
        "poll-goes-back",
        "two-answers-one-place",
    ],
)
def test_an_anomaly_survives_the_conversion_to_jepsen_and_back(name: str, tmp_path: Path) -> None:
    world = clean(3)
    assert violated(to_jepsen_and_back(world.lines, tmp_path)) == set()
    INJECTED[name].inject(world)
    assert INJECTED[name].rule in violated(to_jepsen_and_back(world.lines, tmp_path))


def test_written_operations_have_the_form_of_jepsens_kafka_checker() -> None:
    """Checks the form that jepsen.tests.kafka requires.

    Every key is a keyword of Jepsen's. Micro-operations are [:send k v], answered [:send k [offset v]], or
    [:poll {k [[offset v] ...]}]. Indexes are dense. No process has two operations at a time, or one after
    :info. If an answer has no place (delayed messages), the offset is nil.
    """
    unreported = 0
    open_: dict[int, str] = {}
    crashed: set[int] = set()
    for index, text in enumerate(write_jepsen(clean(2).lines).decode().splitlines()):
        history = edn.read(text)
        assert set(history) == {Keyword(k) for k in ("type", "f", "value", "process", "time", "index")}
        assert history[Keyword("index")] == index
        process, type_ = history[Keyword("process")], str(history[Keyword("type")])
        if process == Keyword("nemesis"):
            assert type_ == "info"
            continue
        assert process not in crashed
        assert (process in open_) is (type_ != "invoke")
        open_.pop(process, None) if type_ != "invoke" else open_.update({process: "open"})
        crashed |= {process} if type_ == "info" else set()
        for micro in history[Keyword("value")] if history[Keyword("f")] != Keyword("assign") else ():
            if micro[0] == Keyword("send"):
                _, key, value = micro
                assert isinstance(key, int)
                assert isinstance(value, list) is (type_ == "ok")
                if type_ == "ok":
                    offset, value = value
                    unreported += offset is None
                assert isinstance(value, int)
            else:
                assert micro[0] == Keyword("poll")
                assert len(micro) == (2 if type_ == "ok" else 1)
    assert unreported


def test_elle_reads_are_prefixes_of_the_appended_values() -> None:
    history = [edn.read(text) for text in write_elle(clean(2).lines).decode().splitlines()]
    appended: dict[int, set[int]] = {}
    lists: dict[int, list[list[int]]] = {}
    for operation in history:
        assert operation[Keyword("f")] == Keyword("txn")
        for f, key, value in operation[Keyword("value")]:
            if f == Keyword("append"):
                appended.setdefault(key, set()).add(value)
            elif value is not None:
                lists.setdefault(key, []).append(value)
    assert lists
    for key, reads in lists.items():
        longest = max(reads, key=len)
        assert set(longest) <= appended[key]
        assert all(read == longest[: len(read)] for read in reads)


@pytest.mark.parametrize(
    "text", ["{:type :ok}", "[1 2]", "nonsense", "{:type :ok, :f :send, :process 0, :value 3}"]
)
def test_a_file_that_is_not_jepsens_is_refused_with_its_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "history.edn"
    file.write_text("{:type :invoke, :f :poll, :process 1, :value [[:poll]]}\n" + text)
    with pytest.raises(HistoryError, match=r"history\.edn:2"):
        read_jepsen(file)


OPENCHAOS = """\
0\tREQUEST\tenqueue\t-\tv1\t1000\tk1\t-\t-\t-
0\tRESPONSE\tenqueue\tSUCCESS\tv1\t1002\tk1\t0\t5\t2
1\tREQUEST\tdequeue\t-\t-\t1003\t-\t-\t-\t-
1\tRESPONSE\tdequeue\tSUCCESS\tv1\t1004\tk1\t0\t5\t1
fault\tminor-kill\tstart\t1005
fault\tminor-kill\tend\t1006
0\tREQUEST\tenqueue\t-\tv2\t1007\tk1\t-\t-\t-
0\tRESPONSE\tenqueue\tUNKNOWN\tv2\t1010\tk1\t-\t-\t3
1\tREQUEST\tdequeue\t-\t-\t1011\t-\t-\t-\t-
1\tRESPONSE\tdequeue\tSUCCESS\tv3\t1012\tk1\t0\t6\t1
"""


def test_an_openchaos_history_is_read(tmp_path: Path) -> None:
    file = tmp_path / "history-file"
    file.write_text(OPENCHAOS)
    history = read_openchaos(file)
    sorted_out = record(history)
    assert sorted_out.gap_count == 0
    assert [(s.message.id, s.span.outcome, s.offset) for s in sorted_out.sends] == [
        ("v1", Outcome.OK, 5),
        ("v2", Outcome.UNKNOWN, -1),
    ]
    assert [line.value.kind for line in history if isinstance(line, lines.Fault)] == ["kill", "start"]
    assert violated(history) == {"A04"}  # v3 was never sent


def _chaos(*columns: str) -> str:
    return "\t".join((*columns, *["-"] * (10 - len(columns))))


@pytest.mark.parametrize(
    "line",
    [
        "0\tREQUEST",
        _chaos("0", "REQUEST", "enqueue", "-", "v", "1", "-", "-", "-", "-", "more"),
        _chaos("0", "ASKED", "enqueue", "-", "v", "1"),
        _chaos("0", "REQUEST", "cas", "-", "v", "1"),
        _chaos("0", "RESPONSE", "enqueue", "MAYBE", "v", "1"),
        _chaos("0", "RESPONSE", "enqueue", "SUCCESS", "v", "1020"),
        _chaos("2", "RESPONSE", "dequeue", "SUCCESS", "v", "1020"),
        _chaos("2", "RESPONSE", "enqueue", "SUCCESS", "v", "1020"),
        _chaos("2", "RESPONSE", "enqueue", "SUCCESS", "v4", "999"),
        _chaos("2", "RESPONSE", "enqueue", "SUCCESS", "v4", "1020", "-", "0", "1", "-3"),
        _chaos("2", "REQUEST", "dequeue", "-", "-", "1020"),
        _chaos("2", "RESPONSE", "enqueue", "SUCCESS", "1020", "v4"),
        "fault\tminor-kill\tmiddle\t1005",
    ],
    ids=[
        "too few columns", "too many", "no kind", "no operation", "no result", "no open request",
        "another operation", "another message", "before it was asked", "less than no time",
        "asked twice", "columns exchanged", "no phase of a fault",
    ],
)  # fmt: skip
def test_a_file_that_is_not_openchaos_is_refused_with_its_line(line: str, tmp_path: Path) -> None:
    file = tmp_path / "history-file"
    waiting = _chaos("2", "REQUEST", "enqueue", "-", "v4", "1013")
    file.write_text(f"{OPENCHAOS}{waiting}\n{line}\n")
    with pytest.raises(HistoryError, match=r"history-file:12: not a line of OpenChaos"):
        read_openchaos(file)
