"""Compares two runs: changed verdicts, results that got worse, and the evidence behind each run."""

from collections.abc import Iterator
from typing import Final

from mqproof.conformance.engine.scoreboard import EVIDENCE, FAULTS
from mqproof.report.model import Report, Result, Table, Verdict

ABSENT: Final = "absent"
"""The verdict shown when a run does not contain the result."""

_Key = tuple[str, str, str]
_Entries = dict[tuple[str, str], str]


def compare(before: Report, after: Report) -> Report:
    """Return a report with one result for each changed verdict and one result for all unchanged ones.

    A result is VIOLATED if the second run violates it and the first did not. If the first run held it and the
    second does not show that it holds (unknown, not tested or absent), it is UNKNOWN: the change does not
    prove that the target got worse.
    """
    first, then = _by_key(before), _by_key(after)
    keys = tuple(dict.fromkeys((*first, *then)))
    changed = [key for key in keys if _verdict(first, key) != _verdict(then, key)]
    results = [_change(key, first.get(key), then.get(key)) for key in changed]
    if same := len(keys) - len(changed):
        results.append(Result("same", "Unchanged", "diff", Verdict.HELD, {"results": same}))
    facts = {
        f"{when}, {fact}": run.facts[fact]
        for when, run in (("before", before), ("after", after))
        for fact in ("target", "suites", "seed", "examples")
        if fact in run.facts
    }
    tables = (_changes(changed, first, then), _evidence(before, after))
    return Report(
        "Comparison of two runs (held: not worse)", tuple(results), facts, tuple(t for t in tables if t.rows)
    )


def _by_key(run: Report) -> dict[_Key, Result]:
    return {(result.layer, result.id, result.name): result for result in run.results}


def _verdict(results: dict[_Key, Result], key: _Key) -> str:
    return results[key].verdict if key in results else ABSENT


def _change(key: _Key, before: Result | None, after: Result | None) -> Result:
    layer, invariant, name = key
    then = after.verdict if after else ABSENT
    if then is Verdict.VIOLATED:
        verdict = Verdict.VIOLATED
    elif before is not None and before.verdict is Verdict.HELD:
        verdict = Verdict.UNKNOWN
    else:
        verdict = Verdict.HELD
    detail = f"{before.verdict if before else ABSENT} before, {then} after"
    detail += f": {after.detail}" if after and after.detail else ""
    return Result(
        invariant,
        name,
        layer,
        verdict,
        {"results": 1},
        after.witnesses if after and verdict is not Verdict.HELD else (),
        detail,
        after.replay if after else "",
    )


def _changes(changed: list[_Key], first: dict[_Key, Result], then: dict[_Key, Result]) -> Table:
    rows = tuple(
        (layer, f"{invariant} {name}", _verdict(first, key), _verdict(then, key))
        for key in changed
        for layer, invariant, name in [key]
    )
    return Table("Changed verdicts", ("suite", "invariant", "before", "after"), rows)


def _evidence(before: Report, after: Report) -> Table:
    first, then = dict(_entries(before)), dict(_entries(after))
    rows = tuple(
        (*entry, first.get(entry, ""), then.get(entry, "")) for entry in dict.fromkeys((*first, *then))
    )
    return Table(EVIDENCE, ("suite", "what", "before", "after"), rows)


def _entries(run: Report) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield ((suite, name), number) for each entry of the scoreboard's evidence and fault tables."""
    for table in run.tables:
        if table.title in (EVIDENCE, FAULTS):
            for row, *entries in table.rows:
                for column, entry in zip(table.columns[1:], entries, strict=True):
                    if entry and column != "seconds":
                        yield ((row, column) if table.title == EVIDENCE else (column, row)), entry
