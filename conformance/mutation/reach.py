"""Records which lines of `impl/` each suite executes, and how often, with coverage.py; one process a suite.

A mutant is judged by the suites that execute its line. Lines that no suite executes are white spots.
"""

import json
import logging
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Final, TypedDict

import coverage

from mqproof.conformance.engine.coverage_feedback import IMPL_FOLDER
from mqproof.conformance.mutation.examiner import CASE_SUITES, examined
from mqproof.conformance.mutation.loading import import_all
from mqproof.report.model import Verdict

EXAMPLES_MAX: Final = 16
"""The number of examples while lines are recorded; a line that only a later example executes is unreached."""
STEPS_KEPT: Final = 256
"""For each line, this many of the examples or cases that execute it are kept, spread over all of them."""
_NEAR_LINES: Final = 20
"""At this distance, a line has half the weight in the order of the cases."""
_CASE_S_MIN: Final = 0.05
_TIMEOUT_S: Final = 3600
_IMPORT: Final = "import"


class ReachError(RuntimeError):
    """A suite does not hold on the original code, or its process failed."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The examples or cases that execute a line."""

    count: int
    steps: tuple[int, ...]
    """Some of their numbers, from 0: the first one, and others spread evenly."""


class Stored(TypedDict):
    """A Reach as JSON."""

    cpu_s: float
    cases: list[str]
    at_import: dict[str, list[int]]
    by_line: dict[str, dict[str, list[int]]]
    case_s: list[float]


@dataclass(frozen=True, slots=True)
class Reach:
    """What one suite executes."""

    cpu_s: float
    """The processor time of the suite, with that of coverage.py and without that of imports."""
    cases: tuple[str, ...]
    """The names of its cases, by number; empty for a suite that draws its examples."""
    at_import: Mapping[str, frozenset[int]]
    """Maps a module to the lines that its import executes."""
    by_line: Mapping[str, Mapping[int, Hits]]
    case_s: tuple[float, ...] = ()
    """The processor time of each case, by number."""

    def hits(self, module: str, line: int) -> Hits | None:
        """Return what executes the line; None if nothing does.

        A line that only the import executes, such as that of a constant, counts as executed by what executes
        its module; its package, if the module has no other lines. Any case of a suite may show it.
        """
        found = self.by_line.get(module, {}).get(line)
        if found or line not in self.at_import.get(module, ()):
            return found
        together = _together([self.by_line.get(module, {})]) or _together(self._package(module))
        return spread(range(len(self.cases))) if together and self.cases else together

    def closest(self, module: str, line: int, steps: Iterable[int]) -> tuple[int, ...]:
        """Return these examples or cases in the order in which they probably show a change of the line.

        Those that execute lines of the module that few others execute, near the given one, in little time,
        alternate with those in their own order, because nearly all cases execute some lines.
        """
        weights: Counter[int] = Counter()
        lines = self.by_line.get(module)
        for each in [lines] if lines else self._package(module):
            for other, hits in each.items():
                weight = _NEAR_LINES / (hits.count * (_NEAR_LINES + abs(other - line)))
                weights.update(dict.fromkeys(hits.steps, weight))
        in_order = tuple(steps)
        by_weight = sorted(in_order, key=lambda step: -weights[step] / self._cost_s(step))
        return tuple(dict.fromkeys(chain.from_iterable(zip(by_weight, in_order, strict=True))))

    def _cost_s(self, step: int) -> float:
        return max(self.case_s[step], _CASE_S_MIN) if self.case_s else 1.0

    def _package(self, module: str) -> list[Mapping[int, Hits]]:
        package = module.rpartition(".")[0] + "."
        return [lines for name, lines in self.by_line.items() if name.startswith(package)]

    def stored(self) -> Stored:
        return Stored(
            cpu_s=self.cpu_s,
            cases=list(self.cases),
            at_import={module: sorted(lines) for module, lines in self.at_import.items()},
            by_line={
                module: {str(line): [each.count, *each.steps] for line, each in lines.items()}
                for module, lines in self.by_line.items()
            },
            case_s=list(self.case_s),
        )

    @classmethod
    def of(cls, stored: Stored) -> "Reach":
        return cls(
            stored["cpu_s"],
            tuple(stored["cases"]),
            {module: frozenset(lines) for module, lines in stored["at_import"].items()},
            {
                module: {int(line): Hits(count, tuple(steps)) for line, (count, *steps) in lines.items()}
                for module, lines in stored["by_line"].items()
            },
            tuple(stored["case_s"]),
        )


def _together(modules: Iterable[Mapping[int, Hits]]) -> Hits | None:
    hits = [each for lines in modules for each in lines.values()]
    if not hits:
        return None
    steps = spread({step for each in hits for step in each.steps})
    return Hits(max(steps.count, *(each.count for each in hits)), steps.steps)


def measure(suite: str, examples: int, seed: int) -> Reach:
    """Run a suite on the original code, in a process of its own.

    Raises:
        ReachError: the suite does not hold on the original code.
    """
    command = [sys.executable, "-m", "mqproof.conformance.mutation.reach", suite, str(examples), str(seed)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if ran.returncode:
        raise ReachError(f"suite {suite} on the original code: {ran.stderr.strip()[-500:]}")
    return Reach.of(json.loads(ran.stdout.splitlines()[-1]))


def spread(steps: Iterable[int]) -> Hits:
    """Return the hits of these steps; only some of their numbers are kept."""
    every = sorted(steps)
    kept = every
    if len(every) > STEPS_KEPT:
        kept = [every[at * len(every) // STEPS_KEPT] for at in range(STEPS_KEPT)]
    return Hits(len(every), tuple(kept))


def durations(began_s: Mapping[int, float], ended_s: float, cases: int) -> tuple[float, ...]:
    """Return how long each case took; it ends when the next one begins."""
    limits = (*(began_s[case] for case in range(cases)), began_s.get(cases, ended_s))
    return tuple(round(end - begin, 3) for begin, end in pairwise(limits))


def _main(suite: str, examples: int, seed: int) -> None:
    # Connections that are open at the end would hide the reason of a failure, which is the last line.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    recorder = coverage.Coverage(data_file=None, include=[f"{IMPL_FOLDER}/*"], config_file=False)
    recorder.set_option("run:disable_warnings", ["no-data-collected"])
    recorder.start()
    recorder.switch_context(_IMPORT)
    import_all()
    recorder.switch_context("0")
    began = time.process_time()
    began_s = {0: began}

    def on_progress(done: int, _: int) -> None:
        recorder.switch_context(str(done))
        began_s[done] = time.process_time()

    part = examined(suite, examples, seed, on_progress)
    recorder.stop()
    ended = time.process_time()
    violated = [result for result in part.results if result.verdict is Verdict.VIOLATED]
    if part.refusal is not None or violated:
        sys.exit(str(part.refusal or f"{violated[0].id}: {violated[0].detail}"))
    results = part.results if suite in CASE_SUITES else ()
    found = replace(
        _reach(recorder.get_data(), ended - began, tuple(each.id for each in results)),
        case_s=durations(began_s, ended, len(results)),
    )
    print(json.dumps(found.stored()))


def _reach(data: coverage.CoverageData, cpu_s: float, cases: tuple[str, ...]) -> Reach:
    at_import, by_line = {}, {}
    for file in sorted(data.measured_files()):
        module, contexts = _module(file), data.contexts_by_lineno(file)
        at_import[module] = frozenset(line for line, names in contexts.items() if _IMPORT in names)
        by_line[module] = {
            line: spread(steps)
            for line, names in contexts.items()
            if (steps := [int(name) for name in names if name not in ("", _IMPORT)])
        }
    return Reach(cpu_s, cases, at_import, by_line)


def _module(file: str) -> str:
    inside = Path(file).resolve().relative_to(IMPL_FOLDER.parent).with_suffix("")
    name = ".".join(("mqproof", *inside.parts))
    return name.removesuffix(".__init__")


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
