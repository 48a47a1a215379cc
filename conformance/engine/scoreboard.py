"""The scoreboard: the results of all suites for a target, as a report for the renderers of report/."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from mqproof.conformance.engine.coverage_feedback import Reached, statements
from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.suite_results import SCRIPT
from mqproof.report.model import Report, Result, Table, Verdict
from mqproof.spec.catalogue import catalogue

EVIDENCE: Final = "Evidence"
"""The title of the table with the amount of evidence of each suite."""
BROKEN: Final = "Rules of the protocol that were broken"
"""The title of the table with the rule and the first difference of each violated invariant."""
WHITE_SPOTS: Final = "Lines of impl/ that no suite executes"
"""The title of the table with a row for each module."""
FAULTS: Final = "Faults"
"""The title of the table with the number of faults of each kind in each suite."""


def scoreboard(parts: Sequence[Part], options: RunOptions) -> Report:
    """Return a report with every result, the minimal script of each violation, and each suite's evidence."""
    results = (result for part in parts for result in part.results)
    tables = (*_broken(parts), *_minimal_scripts(parts), *_tables(parts), *_white_spots(parts))
    return _report(parts, options, results, tables)


def page(parts: Sequence[Part], options: RunOptions) -> Report:
    """Return the report for a page: summarized rows, and each script only at its violation."""
    return _report(parts, options, _summed(parts), (*_broken(parts), *_tables(parts), *_white_spots(parts)))


def screen(parts: Sequence[Part], options: RunOptions) -> Report:
    """Return the report for a terminal: without tables of single suites if there are several suites."""
    tables = _tables(parts) if len(parts) == 1 else _tables_of_all(parts)
    return _report(parts, options, _summed(parts), (*_broken(parts), *_minimal_scripts(parts), *tables))


def _report(
    parts: Sequence[Part], options: RunOptions, results: Iterable[Result], tables: Iterable[Table]
) -> Report:
    return Report(f"Conformance of {options.target}", tuple(results), _facts(parts, options), tuple(tables))


def _summed(parts: Sequence[Part]) -> Iterator[Result]:
    for part in parts:
        yield from part.results if part.summary is None else part.summary


def _facts(parts: Sequence[Part], options: RunOptions) -> dict[str, str]:
    return {
        "target": options.target,
        "suites": ", ".join(part.suite for part in parts),
        "seed": str(options.seed),
        "examples": str(options.examples),
        "minutes of a suite at most": f"{options.minutes:g}",
        "since": options.since,
        "strict": str(options.strict).lower(),
        "seconds": f"{sum(part.seconds for part in parts):.1f}",
    }


def _tables_of_all(parts: Sequence[Part]) -> Iterator[Table]:
    yield from _untried(parts)
    yield _evidence(parts)
    yield from _faults(parts)
    yield from _executed(parts)


def _tables(parts: Sequence[Part]) -> Iterator[Table]:
    yield from _tables_of_all(parts)
    for part in parts:
        yield from part.tables


def _untried(parts: Sequence[Part]) -> Iterator[Table]:
    """Yield the table of results that are held, but were not tested in every way."""
    held = [one for part in parts for one in part.results if one.verdict is Verdict.HELD and one.detail]
    if held:
        rows = tuple((f"{one.id} {one.name}", one.layer, one.detail) for one in held)
        yield Table("Held, but not tested in every way", ("invariant", "suite", "why"), rows)


def _broken(parts: Sequence[Part]) -> Iterator[Table]:
    """Yield the table of violated invariants: what the protocol reference says, and what was observed first.

    Wire cases and attacks are not in it: each of their witnesses names its section of the reference.
    """
    rows = tuple(
        (result.id, invariant.statement, _sections(result, part), _difference(result))
        for part in parts
        for result in part.results
        if result.verdict is Verdict.VIOLATED and (invariant := catalogue().get(result.id))
    )
    if rows:
        yield Table(BROKEN, ("invariant", "expected", "section", "observed first"), rows)


def _sections(result: Result, part: Part) -> str:
    """Return the sections of the protocol reference that have the rule.

    An observation that the model does not explain breaks a rule of one of the suite's sections.
    """
    ids = [each.id for each in part.results if each.id != SPEC_1] if result.id == SPEC_1 else [result.id]
    sources = dict.fromkeys(catalogue()[each].source for each in ids if each in catalogue())
    return "; ".join(source.removeprefix("docs/reference/protocol/") for source in sources)


def _difference(result: Result) -> str:
    """Return the first witness, with its values."""
    if not result.witnesses:
        return result.detail
    first = result.witnesses[0]
    return "; ".join((first.text, *(f"{name}: {value}" for name, value in first.values.items())))


def _minimal_scripts(parts: Sequence[Part]) -> Iterator[Table]:
    """Yield the shortest script of each suite, with the invariants that it violates.

    The other scripts are among the witnesses of the results.
    """
    for part in parts:
        scripts = {
            result.id: witness.timeline
            for result in part.results
            for witness in result.witnesses
            if witness.text == SCRIPT
        }
        if scripts:
            shortest = min(scripts.values(), key=len)
            violated = ", ".join(invariant for invariant, script in scripts.items() if script == shortest)
            rows = tuple((moment.at, moment.who, moment.what) for moment in shortest)
            title = f"Minimal script that violates {violated}"
            yield Table(title, ("step", "what was done", "answer"), rows)


def _evidence(parts: Sequence[Part]) -> Table:
    columns = tuple(dict.fromkeys(what for part in parts for what in part.looked_at))
    rows = tuple(
        (part.suite, *(f"{part.looked_at[what]:,}" if what in part.looked_at else "" for what in columns),
         f"{part.seconds:.1f}")
        for part in parts
    )  # fmt: skip
    return Table(EVIDENCE, ("suite", *columns, "seconds"), rows)


def _faults(parts: Sequence[Part]) -> Iterator[Table]:
    """Yield a table with a row for each kind of fault that occurred, and a column for each suite with any."""
    met = {part.suite: part.faults for part in parts if part.faults is not None}
    rows = tuple(
        (kind.value, *(f"{faults.get(kind, 0):,}" for faults in met.values()))
        for kind in FaultKind
        if any(faults.get(kind) for faults in met.values())
    )
    if rows:
        yield Table(FAULTS, ("fault", *met), rows)


def _executed(parts: Sequence[Part]) -> Iterator[Table]:
    """Yield a table with the lines of impl/ that each suite executes, if they were recorded."""
    reached = {part.suite: _statements_reached(part.reached) for part in parts if part.reached is not None}
    if not reached:
        return
    total = sum(map(len, statements().values()))
    rows = [
        (suite, f"{len(lines):,}", _percent(len(lines), total),
         f"{len(lines.difference(*(more for other, more in reached.items() if other != suite))):,}")
        for suite, lines in reached.items()
    ]  # fmt: skip
    together = len(frozenset().union(*reached.values()))
    rows.append(("all", f"{together:,}", _percent(together, total), ""))
    title = f"Lines of impl/ that the suites execute, of {total:,} in functions"
    yield Table(title, ("suite", "executed", "share", "by this suite only"), tuple(rows))


def _white_spots(parts: Sequence[Part]) -> Iterator[Table]:
    """Yield a table with the lines of each module of impl/ that no suite executes, if they were recorded."""
    recorded = [part.reached for part in parts if part.reached is not None]
    if not recorded:
        return
    rows = []
    for module, lines in statements().items():
        missed = lines.difference(*(reached.get(module, frozenset()) for reached in recorded))
        if missed:
            rows.append((module, str(len(lines)), str(len(missed)), _ranges(missed, lines)))
    yield Table(WHITE_SPOTS, ("module", "lines", "not executed", "which"), tuple(rows))


def _statements_reached(reached: Reached) -> frozenset[tuple[str, int]]:
    return frozenset(
        (module, line)
        for module, lines in statements().items()
        for line in lines & reached.get(module, frozenset())
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def _ranges(missed: Collection[int], lines: Collection[int]) -> str:
    """Return the missed lines as ranges; a range ends before a line that was executed."""
    ranges: list[list[int]] = []
    previous = 0
    for line in sorted(lines):
        if line in missed:
            if ranges and previous in missed:
                ranges[-1][1:] = [line]
            else:
                ranges.append([line])
        previous = line
    return ", ".join("-".join(map(str, each)) for each in ranges)
