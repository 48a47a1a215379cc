"""The verifier of columns accepts the certificates of the judge, and refuses each forged one.

A certificate is forged by the name of a queue that is not regular, by a changed column, or by another
verdict.
Most tests have their columns in memory: a folder consists of many files.
"""

import ast
import inspect
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from msgspec.structs import replace

from mqproof.conformance.history import column_files, columns_verifier, queue_log, queue_replay, verification
from mqproof.conformance.history import lines as of
from mqproof.conformance.history.column_files import TABLES, Columns
from mqproof.conformance.history.columns import conversion, tables, writer
from mqproof.conformance.history.columns.conversion import write_columns
from mqproof.conformance.history.columns.writer import Writer
from mqproof.conformance.history.columns_verifier import RULES, VERIFIERS, Verification, results
from mqproof.conformance.history.exact_delivery import clean
from mqproof.conformance.history.injected import INJECTED
from mqproof.conformance.history.judge import check_files
from mqproof.conformance.history.lines import Line, Type, decode_lines, encode
from mqproof.conformance.history.pairing import Builder, pair
from mqproof.conformance.history.record import Record
from mqproof.conformance.history.rules.linear import linearizable
from tests.conformance.commands.test_histories import mqproof
from tests.conformance.history.columns.changed import changed
from tests.conformance.history.columns.healthy import healthy
from tests.conformance.history.columns.irregular import CHANGES, ORDERS, QUEUE, Edit, irregular
from tests.conformance.history.test_certificates import LINES_MAX, code_lines, imported_by

Given = dict[str, dict[str, Any]]


class InMemory(Columns):
    """The columns of a history, without files."""

    def __init__(self, history: list[Line]) -> None:
        splitter = conversion._Splitter(Writer(Path("unused")))
        pair(splitter.read(history), splitter)
        made = splitter.writer

        def table(queue: int, name: str) -> Any:
            return SimpleNamespace(**dict(writer.arrays(name, made._rows[queue, name])))

        self.tables = {
            name: column_files.resolved({each: table(queue, each) for each in TABLES})
            for name, queue in made.queues.items()
        }
        self.queues, self.names, self.texts = [*self.tables], [*made.names], list(map(str, made.names))
        self.size, self.last_time = made.lines, 0
        rest = sorted(splitter.rest, key=lambda line: line.index)
        self.rest = [json.loads(encode(line)) for line in rest]

    def spans(self) -> Iterator[tuple[str, Any]]:
        for name, queue in self.tables.items():
            yield from ((name, each) for each in (queue.sends, queue.reads, queue.commits))

    def queue(self, name: str) -> Any:
        return self.tables[name]


def forged(columns: Columns, *regular: str) -> Given:
    """Return a certificate that these queues are regular."""
    tables = [(name, columns.queue(name)) for name in regular]
    sizes = [(name, sum(len(each.start) for each in (q.sends, q.reads, q.commits))) for name, q in tables]
    return {"regular": {"evidence": sizes}}


def refused(columns: Columns, given: Given) -> dict[str, str]:
    """Return what is said about the certificates that are refused, but for those that are missing."""
    said = results(columns, given)
    known = {"columns", *columns_verifier.IDS, *dict(given["regular"]["evidence"]), *given}
    texts = {name: text.removeprefix("refused: ") for name, text in said if text.startswith("refused: ")}
    return {name: text for name, text in texts.items() if name in known}


def undecided(history: verification.History) -> set[tuple[str, Any]]:
    """Return the subjects of all rules that are open or have no reason."""
    every = ((rule, subject, reasons) for rule, facts in RULES.items() for subject, reasons in facts(history))
    return {(rule, subject) for rule, subject, reasons in every if not reasons or reasons[0][0] == "open"}


def without_order(history: Iterable[Line]) -> set[str]:
    """Return what is wrong with the order of queues."""
    builder = Builder(Record())
    pair(history, builder, is_whole=False)
    return set(map(str, linearizable(builder.record).witnesses))


def regular_queues(columns: Columns) -> list[str]:
    """Return queues that the verifier accepts as regular; none if these share an id with other operations."""
    said = refused(columns, forged(columns, *columns.queues))
    found = [queue for queue in columns.queues if queue not in said]
    return [] if refused(columns, forged(columns, *found)) else found


def expect_same_violations(history: list[Line], columns: Columns) -> None:
    """Expect that no operation of the queues that the verifier accepts is needed to find any violation."""
    regular = forged(columns, *regular_queues(columns))
    left = Verification(columns, regular).history
    assert undecided(left) == undecided(verification.History(map(json.loads, map(encode, history))))
    lines, _ = columns.besides(dict(regular["regular"]["evidence"]))
    texts = [json.dumps(line).encode() + b"\n" for line in sorted(lines, key=itemgetter("index"))]
    assert without_order(decode_lines(texts, "left")) == without_order(history)


def certified(folder: Path, history: list[Line]) -> tuple[Columns, Given]:
    """Write the columns of a history and their certificates."""
    write_columns(history, "h.jsonl", folder / "h.columns")
    file = BytesIO()
    check_files([folder / "h.columns"], certificate_file=file)
    (folder / "c.jsonl").write_bytes(file.getvalue())
    return Columns(folder / "h.columns"), {
        each["rule"]: each for each in map(json.loads, file.getvalue().splitlines())
    }


@pytest.fixture(scope="module")
def healthy_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("healthy")
    certified(folder, healthy(1, 10).lines)
    return folder


@pytest.fixture
def sound() -> InMemory:
    return InMemory(healthy(1, 10).lines)


def test_the_certificates_of_a_healthy_history_are_accepted(
    healthy_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert columns_verifier.main(str(healthy_files / "h.columns"), str(healthy_files / "c.jsonl")) == 0
    said = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    queues = Columns(healthy_files / "h.columns").queues
    assert list(said) == [*queues, *columns_verifier.IDS, *RULES]
    assert all(said[queue].startswith("regular, accepted with ") for queue in queues)
    assert said["A01"] == "held, accepted with 0 facts"
    assert said["C11"] == "unknown, accepted with 0 facts"


def test_the_command_writes_certificates_of_columns_but_no_orders(
    healthy_files: Path, tmp_path: Path
) -> None:
    folder, out = healthy_files / "h.columns", tmp_path / "c.jsonl"
    assert mqproof("check-history", folder, "--certificates", out).exit_code == 0
    assert out.read_bytes() == (healthy_files / "c.jsonl").read_bytes()
    result = mqproof("check-history", folder, "--orders", out)
    assert result.exit_code == 2
    assert "columns have no --orders or --parts; convert them" in result.output


def test_a_missing_certificate_is_refused(
    healthy_files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (healthy_files / "c.jsonl").read_text(encoding="utf-8").splitlines()
    for missing, said in (('"regular"', "columns: refused: 'regular'"), ('"C18"', "C18: refused: 'C18'")):
        left = [line for line in lines if f'"rule":{missing}' not in line]
        assert len(left) == len(lines) - 1
        (tmp_path / "c.jsonl").write_text("\n".join(left), encoding="utf-8")
        assert columns_verifier.main(str(healthy_files / "h.columns"), str(tmp_path / "c.jsonl")) == 1
        assert said in capsys.readouterr().out.splitlines()


def test_a_false_number_of_operations_and_an_unknown_queue_are_refused(sound: InMemory) -> None:
    given = forged(sound, QUEUE, ORDERS)
    (_, size), other = given["regular"]["evidence"]
    given["regular"]["evidence"] = [(QUEUE, size + 1), other]
    assert refused(sound, given) == {QUEUE: f"it has {size} operations, not {size + 1}"}
    given["regular"]["evidence"] = [(QUEUE, size), ("T/b/9", size)]
    assert list(refused(sound, given)) == ["T/b/9"]


def test_a_folder_has_only_the_queues_of_its_header(healthy_files: Path) -> None:
    with pytest.raises(verification.RefusedError, match="the columns have no queue T/b/9"):
        Columns(healthy_files / "h.columns").queue("T/b/9")


def test_a_folder_of_another_version_is_refused(healthy_files: Path, tmp_path: Path) -> None:
    shutil.copytree(healthy_files / "h.columns", tmp_path / "h.columns")
    file = tmp_path / "h.columns" / "columns.json"
    file.write_text(
        json.dumps(json.loads(file.read_text(encoding="utf-8")) | {"schema": 1}), encoding="utf-8"
    )
    with pytest.raises(verification.RefusedError, match="schema 1, expected 2"):
        Columns(tmp_path / "h.columns")


def test_the_verifier_reads_what_the_judge_reads(healthy_files: Path) -> None:
    folder = healthy_files / "h.columns"
    columns, judged = Columns(folder), tables.Columns(folder)
    for number, name in enumerate(columns.queues):
        queue = judged.queue(number)
        for table, names in TABLES.items():
            found = column_files.table(columns.file(name), table)
            assert list(names) == list(vars(found)) == list(tables.TABLES[table])
            for each in names:
                assert getattr(found, each).tolist() == getattr(getattr(queue, table), each).tolist()


@pytest.mark.parametrize("window", [7, 100])
def test_lines_are_verified_in_windows_as_at_once(
    window: int, sound: InMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_files, "WINDOW", window)
    assert refused(sound, forged(sound, *sound.queues)) == {}
    sound.tables[QUEUE].sends.began[1] = 0
    assert refused(sound, forged(sound, *sound.queues)) == {"columns": "time goes back"}


IRREGULAR: Final = {
    "a client is in two broadcast groups": "a client is in two broadcast groups",
    "a commit is ahead": "a commit is ahead",
    "a consumer continued elsewhere": "a consumer continued elsewhere",
    "a group drained without a message": "a group drained without a message",
    "a group received a message twice": "a message was received twice",
    "a group received another tag": "a group received another tag",
    "a member missed a message": "a member missed a message",
    "a member received a message twice": "a message was received twice",
    "a message was not delivered": "a message was not read",
    "a message was stored before its birth": "a message was stored before its birth",
    "a poll has no offset": "",
    "a poll lags": "a poll lags",
    "a poll passed a message": "a poll passed a message",
    "a poll passed a selected message": "a poll passed a message",
    "a poll passed the end": "a poll goes back, or beyond the end",
    "a poll returned an earlier offset": "a message is outside of its poll",
    "a poll returned an offset beyond its next": "a message is outside of its poll",
    "a poll was moved back": "a poll goes back, or beyond the end",
    "a read is not in the order of offsets": "a read is not in the order of offsets",
    "a {name} differs from the one that was sent": "a message is not the one that was sent",
    "an empty poll counts": "an empty poll counts",
    "an end is stated before a known message": "an end is stated before a known message",
    "an orderly group is broadcast": "",
    "an orderly group is not at the end": "an orderly group is not at the end",
    "calls are not in the order of offsets": "calls are not in the order of offsets",
    "calls overlap": "calls overlap",
    "commits go back": "commits go back",
    "commits overlap": "",
    "offsets of sends are not contiguous": "offsets are not contiguous",
    "only some polls name their node": "",
    "polls overtake each other": "polls overtake each other",
    "read before its send": "a message was read before its send",
    "sends are not in the order of offsets": "a send begins after a later message was answered",
    "store times go back": "store times go back",
    "unknown offsets": "an unknown offset was read",
    "{name} of a place differ": "a time or offset id of a message changes",
}
"""Maps the conditions of the sieve to those of the verifier.

Four of them decide no verdict, only counts: the verifier accepts such queues.
"""


@pytest.mark.parametrize("condition", CHANGES)
def test_an_irregular_queue_is_refused(condition: str) -> None:
    history = irregular(condition)
    columns = InMemory(history)
    said = refused(columns, forged(columns, *columns.queues))
    assert {*said.values()} == {*filter(None, [IRREGULAR[condition]])}
    expect_same_violations(history, columns)


def _set(table: str, column: str, row: int, value: Any) -> Callable[[InMemory], None]:
    def change(columns: InMemory) -> None:
        getattr(getattr(columns.tables[QUEUE], table), column)[row] = value

    return change


def _no_messages(columns: InMemory) -> None:
    messages = vars(columns.tables[QUEUE].messages)
    messages.update((name, column[:0]) for name, column in messages.items())


CHANGED: Final[dict[str, Callable[[InMemory], None]]] = {
    "an offset id is not the one that was answered": _set("sends", "offset_id", 2, b"other"),
    "counts are not those of the rows": _set("reads", "count", 0, 9),
    "no message was sent": _no_messages,
}
"""For other conditions of the verifier, a change of a column of a regular queue."""


@pytest.mark.parametrize("condition", CHANGED)
def test_a_changed_column_is_refused(condition: str, sound: InMemory) -> None:
    CHANGED[condition](sound)
    assert refused(sound, forged(sound, *sound.queues)) == {QUEUE: condition}


@pytest.mark.parametrize("kind", [of.Commit, of.Consume, of.Query])
def test_a_queue_that_other_operations_name_is_refused(kind: type) -> None:
    edit = Edit(healthy(1, 10).lines)
    edit.append(of.Query, of.QueryValue("g", QUEUE), of.QueryValue(offset=3))
    _, last = edit.operations(kind, queue=QUEUE)[-1]
    if kind is of.Query:
        columns = InMemory(edit.finished())
    else:
        edit.lines[last] = replace(edit.lines[last], type=Type.FAIL)
        columns = InMemory(edit.finished()[:-2])
    said = refused(columns, forged(columns, *columns.queues))
    assert said == {QUEUE: "operations outside of the columns name it"}


def test_of_a_regular_queue_the_rules_about_topics_need_a_send_and_a_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edit = Edit(healthy(1, 10).lines)
    time, end = edit.lines[-1].time, len(edit.at[QUEUE])
    edit.append(of.Send, of.SendValue("T", (of.Message("refused"),)), of.SendValue())
    edit.lines[-1] = replace(edit.lines[-1], type=Type.FAIL, error="TOPIC_NOT_EXIST")
    delayed = of.SendValue("T", (of.Message("late", deliver_at=time + 1),))
    edit.append(of.Send, delayed, of.SendValue(status="SEND_OK"))
    edit.lines[-1] = replace(edit.lines[-1], time=time + 10**12)
    edit.append(of.Poll, of.PollValue("new", QUEUE, end), of.PollValue(next=end, max=end))
    history = edit.finished()
    columns = InMemory(history)
    assert regular_queues(columns) == columns.queues
    expect_same_violations(history, columns)
    given = forged(columns, *columns.queues)
    found = undecided(Verification(columns, given).history)
    assert {rule for rule, _ in found} == {"A02", "C12", "C20"}
    monkeypatch.setattr(Columns, "outline", lambda *_: [])
    assert {rule for rule, _ in undecided(Verification(columns, given).history)} == {"A02"}


def test_each_condition_of_the_replay_is_tested() -> None:
    source = inspect.getsource(queue_log) + inspect.getsource(queue_replay)
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    mine = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "expect")
    texts = {ast.literal_eval(call.args[1]) for call in mine}
    named = "operations outside of the columns name it"
    assert texts == {*filter(None, IRREGULAR.values()), *CHANGED, named}
    assert IRREGULAR.keys() == CHANGES.keys()


def _time(columns: InMemory) -> None:
    columns.tables[QUEUE].sends.began[1] = 0


def _twice(columns: InMemory) -> None:
    sends = columns.tables[QUEUE].sends
    sends.start[1], sends.end[1] = sends.start[0], sends.end[0]


def _ends_first(columns: InMemory) -> None:
    commits = columns.tables[QUEUE].commits
    commits.start[0], commits.end[0] = int(commits.end[0]), int(commits.start[0])


def _at_a_time(columns: InMemory) -> None:
    """Let a process begin an operation before it ended another one."""
    tables = (each for queue in columns.tables.values() for each in (queue.sends, queue.reads))
    rows = ((each.start[row], each.end[row], each, row) for each in tables for row in range(len(each.start)))
    (_, _, one, first), (_, _, two, second) = next(
        (a, b) for a, b in pairwise(sorted(rows, key=itemgetter(0))) if b[0] < a[1]
    )
    two.process[second] = one.process[first]


def _other_time(columns: InMemory) -> None:
    columns.rest[3]["time"] = 1 << 62


NO_HISTORY: Final[dict[str, tuple[Callable[[InMemory], None], str]]] = {
    "time": (_time, "time goes back"),
    "twice": (_twice, "a line is missing, or belongs to two operations"),
    "order": (_ends_first, f"{QUEUE}: the lines of an operation do not belong together"),
    "several": (_at_a_time, "a process has several operations at a time"),
    "rest": (_other_time, "time goes back"),
    "missing": (lambda columns: columns.rest.pop(), "a line is missing, or belongs to two operations"),
}


@pytest.mark.parametrize("name", NO_HISTORY)
def test_columns_that_are_not_a_history_are_refused(name: str, sound: InMemory) -> None:
    change, text = NO_HISTORY[name]
    change(sound)
    said = refused(sound, forged(sound, *sound.queues))
    assert list(said) == ["columns"]
    assert text in said["columns"]


@pytest.mark.parametrize("name", ["id", "offset_id"])
def test_an_id_that_occurs_twice_is_refused(name: str, sound: InMemory) -> None:
    assert refused(sound, forged(sound, *sound.queues)) == {}
    orders, queue = sound.tables[ORDERS], sound.tables[QUEUE]
    sent = "messages" if name == "id" else "sends"
    old, new = (getattr(getattr(each, sent), name)[0] for each in (orders, queue))
    for table in (sent, "contents"):
        texts = getattr(getattr(orders, table), name)
        texts[texts == old] = new
    for regular in (sound.queues, [QUEUE], [ORDERS]):
        assert refused(sound, forged(sound, *regular)) == {name: "one of a regular queue occurs twice"}


@pytest.mark.parametrize("seed", [0, 1, 2, 8, 24])
def test_the_certificates_of_a_changed_history_are_accepted(seed: int, tmp_path: Path) -> None:
    expect_accepted(changed(seed), tmp_path)


@pytest.mark.deep("minutes: the verifier is compared with the judge and with the rules on 300 histories")
@pytest.mark.parametrize("seed", range(25, 325))
def test_the_certificates_of_many_changed_histories_are_accepted(seed: int, tmp_path: Path) -> None:
    expect_accepted(changed(seed), tmp_path)


def expect_accepted(history: list[Line], folder: Path) -> None:
    columns, given = certified(folder, history)
    assert [text for _, text in results(columns, given) if text.startswith("refused")] == []
    expect_same_violations(history, InMemory(history))


@pytest.mark.parametrize("name", ["message-lost", "body-changed", "delayed-too-late"])
def test_a_violation_besides_regular_queues_is_accepted_and_its_denial_refused(
    name: str, tmp_path: Path
) -> None:
    world = clean(3, 20)
    INJECTED[name].inject(world)
    columns, given = certified(tmp_path, world.lines)
    rule = INJECTED[name].rule
    assert given[rule]["verdict"] == "violated"
    assert refused(columns, given) == {}
    given[rule] = given[rule] | {"verdict": "held", "evidence": []}
    assert list(refused(columns, given)) == [rule]


@pytest.mark.parametrize("module", [column_files, columns_verifier, queue_log, queue_replay])
def test_a_verifier_of_columns_is_short_and_shares_no_code_with_the_sieve(module: Any) -> None:
    tree = ast.parse(inspect.getsource(module))
    assert code_lines(inspect.getsource(module), tree) <= LINES_MAX
    ours = {name for name in imported_by(tree) if name.startswith("mqproof")}
    mine = {each.__name__ for each in (column_files, queue_log, queue_replay, verification, *VERIFIERS)}
    assert ours <= {*mine, "mqproof.conformance.history"}
