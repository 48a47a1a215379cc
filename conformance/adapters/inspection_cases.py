"""The suite `inspections` of `mqproof conform`: each inspection of our servers is one case."""

import time
from collections.abc import Callable, Iterator
from typing import Final

from mqproof.conformance.adapters import own_checks
from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.targets import IMPL, UnknownTargetError
from mqproof.report.model import Result, Verdict

LAYER: Final = "inspections"


def listed(options: RunOptions) -> tuple[Result, ...]:
    """Return each selected inspection, as not tested. An installed package has none."""
    return tuple(Result(id_, name, LAYER, Verdict.NOT_TESTED) for id_, name in _chosen(options).items())


def lines(options: RunOptions) -> Iterator[str]:
    """Id and name of each selected inspection."""
    for id_, name in _chosen(options).items():
        yield f"{id_}  {LAYER}  {name}"


def in_short(results: tuple[Result, ...]) -> tuple[Result, ...]:
    """Return each violated result, and one row for the others."""
    violated = tuple(each for each in results if each.verdict is Verdict.VIOLATED)
    rest = [each for each in results if each.verdict is not Verdict.VIOLATED]
    if not rest:
        return violated
    counts = {"inspections": len(rest)} if rest[0].verdict is Verdict.HELD else {}
    seconds = sum(each.seconds for each in rest)
    row = Result(LAYER, "Answers", LAYER, rest[0].verdict, counts, detail=rest[0].detail, seconds=seconds)
    return (*violated, row)


def run(options: RunOptions, progress: Callable[[int, int], None]) -> Part:
    """Run each selected inspection on servers of its own.

    Raises:
        UnknownTargetError: the target is not our own code.
    """
    if options.target.partition(":")[0] != IMPL:
        raise UnknownTargetError(f"{options.target!r}: the inspections examine our own servers, on {IMPL}")
    began = time.perf_counter()
    chosen = _chosen(options)
    found = []
    for number, (id_, name) in enumerate(chosen.items()):
        progress(number, len(chosen))
        found.append(_result(id_, name, options))
    seconds, results = time.perf_counter() - began, tuple(found)
    return Part(LAYER, results, {"cases": len(found)}, seconds, summary=in_short(results))


def _chosen(options: RunOptions) -> dict[str, str]:
    """Return the names of the selected inspections by id."""
    ids = {f"{LAYER}/{name.replace(' ', '-')}": name for name in own_checks.inspections()}
    return {id_: ids[id_] for id_ in options.chosen(ids)}


def _result(id_: str, name: str, options: RunOptions) -> Result:
    began = time.perf_counter()
    wrong = own_checks.inspected(name)
    verdict = Verdict.VIOLATED if wrong else Verdict.HELD
    replay = options.replay(LAYER, "--id", id_) if wrong else ""
    detail = f"{len(wrong)} values differ" if wrong else ""
    return Result(
        id_, name, LAYER, verdict, {"runs": 1}, wrong, detail, replay, time.perf_counter() - began
    )  # fmt: skip
