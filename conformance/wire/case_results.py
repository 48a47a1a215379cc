"""Runs the selected cases one after the other, and converts the judgements into results."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.wire import runner
from mqproof.conformance.wire.fixtures import fixtures
from mqproof.conformance.wire.model import Case, Since, Verdict
from mqproof.conformance.wire.runner import Judged
from mqproof.conformance.wire.server_connection import Address
from mqproof.report import model
from mqproof.report.model import Result, Table, Witness

SECONDS_MAX: Final = 10.0
"""Maximum time for an answer; released brokers check held pulls only every 5 s."""
LAYER: Final = "wire"


@dataclass(frozen=True, slots=True)
class Run:
    """The options of the run, as the replay command repeats them."""

    target: str
    since: Since = Since.V5
    strict: bool = False


Progress = Callable[[int, int], None]


def examine(
    addresses: list[Address], cases: Sequence[Case], progress: Progress, seconds_max: float = SECONDS_MAX
) -> list[Judged | Case]:
    """Return each case judged, or unchanged if there is no server for it.

    Raises:
        UnreachableError, FixturesError.
    """
    judged: list[Judged | Case] = []
    with fixtures(addresses, seconds_max) as made:
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
    """Return a result for each case.

    FAILED is violated, and so is NON-STRICT in a strict run. UNIMPLEMENTED, INFORMATIONAL and cases without a
    server are not tested.
    """
    return [_result(one, run) for one in judged]


def untested(case: Case) -> Result:
    """Return the result of a case that has not been run."""
    return Result(case.id, case.title, LAYER, model.Verdict.NOT_TESTED)


def summary(results: Sequence[Result]) -> Iterator[Result]:
    """Yield each violated result, and one row for all others."""
    rest = [result for result in results if result.verdict is not model.Verdict.VIOLATED]
    yield from (result for result in results if result.verdict is model.Verdict.VIOLATED)
    if rest:
        yield _summed(rest)


def operation_of(case_id: str) -> str:
    return case_id.rpartition("/")[0]


def verdict_of(result: Result) -> str:
    """Return the wire verdict of a result; `-` if there was no server."""
    return result.witnesses[0].values["verdict"] if result.witnesses else Verdict.OK


def _summed(members: list[Result]) -> Result:
    held = sum(result.verdict is model.Verdict.HELD for result in members)
    verdict = model.Verdict.HELD if held else members[0].verdict
    detail = "" if held else members[0].detail
    seconds = sum(result.seconds for result in members)
    counts = {"cases": len(members), "held": held, "not tested": len(members) - held}
    return Result("wire", "Cases", LAYER, verdict, counts, detail=detail, seconds=seconds)


def _result(one: Judged | Case, run: Run) -> Result:
    if isinstance(one, Case):
        witness = Witness(f"there is no {one.server} to test", {"verdict": "-"})
        return Result(
            one.id, one.title, LAYER, model.Verdict.NOT_TESTED, witnesses=(witness,), detail=witness.text
        )  # fmt: skip
    case = one.case
    verdict = _VERDICTS[one.verdict]
    if run.strict and one.verdict is Verdict.NON_STRICT:
        verdict = model.Verdict.VIOLATED
    detail = "" if one.verdict is Verdict.OK else f"{one.verdict}: {one.detail}"
    values = {
        "verdict": one.verdict.value, "strength": case.strength.value, "since": case.since.value,
        "source": case.source,
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
    return f"{case.strength} since {case.since}, {case.source}: {case.title}"


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


def table(judged: Iterable[Judged | Case]) -> Table:
    """Return a table of the number of verdicts by operation."""
    counts: dict[str, Counter[str]] = {}
    for one in judged:
        case, verdict = (one, "-") if isinstance(one, Case) else (one.case, one.verdict.value)
        counts.setdefault(operation_of(case.id), Counter())[verdict] += 1
    columns = [verdict.value for verdict in Verdict]
    rows = [(name, *(str(of[column] or "") for column in columns)) for name, of in counts.items()]
    total = sum(counts.values(), Counter())
    rows.append(("all", *(str(total[column]) for column in columns)))
    return Table("Wire cases by operation", ("operation", *columns), tuple(rows))
