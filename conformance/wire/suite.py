"""Runs the chosen cases one after the other and makes a report of what was judged."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from conformance.wire import runner
from conformance.wire.model import Case, Since, Verdict
from conformance.wire.runner import Judged
from conformance.wire.scene import scene
from conformance.wire.talk import Address
from report import model
from report.model import Report, Result, Table, Witness

SECONDS_MAX: Final = 10.0
"""How long an answer may take; released brokers look at held pulls every 5 s only."""
LAYER: Final = "wire"


@dataclass(frozen=True, slots=True)
class Run:
    """What was asked for, as the replay command repeats it."""

    target: str
    since: Since = Since.V5
    strict: bool = False


Progress = Callable[[int, int], None]


def examine(
    addresses: list[Address], cases: Sequence[Case], progress: Progress, seconds_max: float = SECONDS_MAX
) -> list[Judged | Case]:
    """Each case judged, or as it is where there is no server to ask.

    Raises:
        UnreachableError, SceneError.
    """
    judged: list[Judged | Case] = []
    with scene(addresses, seconds_max) as made:
        for number, case in enumerate(cases):
            progress(number, len(cases))
            address = made.servers.get(case.server)
            if address is None:
                judged.append(case)
                continue
            made.keep()
            judged.append(runner.run(case, address, made.of_case(number), seconds_max))
    return judged


def results(judged: Iterable[Judged | Case], run: Run) -> list[Result]:
    """A result a case: FAILED is violated, and NON-STRICT too in a strict run. UNIMPLEMENTED, INFORMATIONAL
    and what nobody could be asked is not tested."""
    return [_result(one, run) for one in judged]


def report(results: Sequence[Result], judged: Iterable[Judged | Case], run: Run, seconds: float) -> Report:
    """All results, and how many of each verdict an operation has."""
    facts = {
        "target": run.target,
        "since": run.since.value,
        "strict": str(run.strict).lower(),
        "cases": str(len(results)),
        "seconds": f"{seconds:.1f}",
    }
    return Report(f"Wire cases at {run.target}", tuple(results), facts, (_table(judged),))


def shown(whole: Report) -> Report:
    """For a terminal: what is violated one by one, of the rest a line an operation."""
    groups: dict[str, list[Result]] = {}
    for result in whole.results:
        groups.setdefault(operation_of(result.id), []).append(result)
    rows: list[Result] = []
    for name, members in groups.items():
        bad = [result for result in members if result.verdict is model.Verdict.VIOLATED]
        rows += bad or [_summed(name, members)]
    return Report(whole.title, tuple(rows), whole.facts, whole.tables)


def operation_of(case_id: str) -> str:
    return case_id.rpartition("/")[0]


def verdict_of(result: Result) -> str:
    """The wire verdict that a result was made of; `-` where nobody could be asked."""
    return result.witnesses[0].values["verdict"] if result.witnesses else Verdict.OK


def _summed(name: str, members: list[Result]) -> Result:
    held = sum(result.verdict is model.Verdict.HELD for result in members)
    verdict = model.Verdict.HELD if held else model.Verdict.NOT_TESTED
    detail = "" if held else members[0].detail
    seconds = sum(result.seconds for result in members)
    counts = {"cases": len(members), "held": held}
    return Result(name, "", LAYER, verdict, counts, detail=detail, seconds=seconds)


def _result(one: Judged | Case, run: Run) -> Result:
    if isinstance(one, Case):
        told = Witness(f"there is no {one.server} to ask", {"verdict": "-"})
        return Result(
            one.id, one.title, LAYER, model.Verdict.NOT_TESTED, witnesses=(told,), detail=told.text
        )  # fmt: skip
    case = one.case
    verdict = _VERDICTS[one.verdict]
    if run.strict and one.verdict is Verdict.NON_STRICT:
        verdict = model.Verdict.VIOLATED
    detail = "" if one.verdict is Verdict.OK else f"{one.verdict}: {one.detail}"
    values = {
        "verdict": one.verdict.value, "strength": case.strength.value, "since": case.since.value,
        "source": f"docs/protocol.md, {case.source}",
    }  # fmt: skip
    return Result(
        case.id,
        case.title,
        LAYER,
        verdict,
        {"exchanges": max(one.exchanges, 1)},
        () if one.verdict is Verdict.OK else (Witness(_rule(case), values),),
        detail,
        _replay(case, run) if verdict is model.Verdict.VIOLATED else "",
        one.seconds,
    )


def _rule(case: Case) -> str:
    return f"{case.strength} since {case.since}, docs/protocol.md, {case.source!r}: {case.title}"


_VERDICTS: Final = {
    Verdict.OK: model.Verdict.HELD,
    Verdict.NON_STRICT: model.Verdict.HELD,
    Verdict.INFORMATIONAL: model.Verdict.NOT_TESTED,
    Verdict.UNIMPLEMENTED: model.Verdict.NOT_TESTED,
    Verdict.FAILED: model.Verdict.VIOLATED,
}


def _replay(case: Case, run: Run) -> str:
    strict = " --strict" if run.strict else ""
    target, name = shlex.quote(run.target), shlex.quote(case.id)
    return f"mqproof conform --target {target} --suite wire{strict} --id {name}"


def _table(judged: Iterable[Judged | Case]) -> Table:
    counts: dict[str, Counter[str]] = {}
    for one in judged:
        case, verdict = (one, "-") if isinstance(one, Case) else (one.case, one.verdict.value)
        counts.setdefault(operation_of(case.id), Counter())[verdict] += 1
    columns = [verdict.value for verdict in Verdict]
    rows = [(name, *(str(of[column] or "") for column in columns)) for name, of in counts.items()]
    total = sum(counts.values(), Counter())
    rows.append(("all", *(str(total[column]) for column in columns)))
    return Table("Verdicts", ("operation", *columns), tuple(rows))


def listed(cases: Iterable[Case]) -> str:
    """What a dry run tells: id, server, since, strength, title and source of each case."""
    return "".join(
        f"{case.id}  {case.server}  since {case.since}  {case.strength}  {case.title}"
        f"  (docs/protocol.md, {case.source})\n"
        for case in cases
    )
