"""Judges runs that their seeds determine, one after the other, for suites whose steps no machine draws."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from mqproof.conformance.engine.directed_scenarios import PairCoverage
from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.finding import Finding
from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.suite_results import scripted, with_time
from mqproof.conformance.engine.targets import IMPL, UnknownTargetError
from mqproof.conformance.engine.time_bounds import bounded, do_not_interrupt, is_used_up
from mqproof.conformance.engine.value_pairs import NO_DIMENSIONS, Dimensions, Pair
from mqproof.report.model import Result, Verdict
from mqproof.spec.catalogue import catalogue


class SeededRun(Protocol):
    """A finished run."""

    @property
    def operations(self) -> int:
        """The number of its operations."""
        ...

    def findings(self) -> dict[str, Finding]:
        """Judge every invariant of the suite on the run; return the findings by id."""
        ...

    def faults(self) -> Counter[FaultKind]:
        """Return how often each kind of fault occurred."""
        ...

    def script(self) -> list[str]:
        """Return the run as steps for people."""
        ...

    def scenarios(self) -> Sequence[str]:
        """Return the texts in which values of the dimensions are found; those of one text are a pair."""
        ...


class Life(Protocol):
    """The observations of a run."""

    @property
    def operations(self) -> Sequence[object]:
        """The operations, in order. As text, each is a line of the script."""
        ...


LifeT = TypeVar("LifeT", bound=Life)


@dataclass(frozen=True, slots=True)
class ScriptedRun(Generic[LifeT]):
    """A finished run whose operations are its script, with the faults among them."""

    life: LifeT
    checkers: Mapping[str, Callable[[LifeT], Finding]]
    """Catalogue id to its checker."""
    opening: str
    """The first line of the script: what the run examines."""

    @property
    def operations(self) -> int:
        return len(self.life.operations)

    def findings(self) -> dict[str, Finding]:
        return {id_: check(self.life) for id_, check in self.checkers.items()}

    def faults(self) -> Counter[FaultKind]:
        """Return nothing: the script has the faults, in words."""
        return Counter()

    def script(self) -> list[str]:
        return [self.opening, *map(str, self.life.operations)]

    def scenarios(self) -> tuple[str, ...]:
        return ("\n".join(self.script()),)


@dataclass(frozen=True, slots=True)
class SeededSuite:
    name: str
    ids: tuple[str, ...]
    """The invariants that the suite judges."""
    counted: str
    """The plural noun for its runs."""
    examples_per_run: int
    needs: str
    """What the suite examines, for the message about another target than our own code."""
    dimensions: Dimensions = NO_DIMENSIONS
    """The values whose pairs the runs must meet."""
    kind: str = IMPL
    """The part of its targets' names before a colon."""

    def listed(self, options: RunOptions) -> tuple[Result, ...]:
        """Return the selected invariants, as results that are not tested."""
        return tuple(
            Result(id_, catalogue()[id_].name, self.name, Verdict.NOT_TESTED)
            for id_ in options.chosen(self.ids)
        )

    def lines(self, options: RunOptions) -> Iterator[str]:
        """Return one line for each selected invariant."""
        for each in self.listed(options):
            yield f"{each.id}  {self.name}  {catalogue()[each.id].statement}"

    def run(
        self,
        options: RunOptions,
        progress: Callable[[int, int], None],
        play: Callable[[int], SeededRun],
    ) -> Part:
        """Judge one run for each seed.

        Raises:
            UnknownTargetError: the suite does not examine this target. EndlessError: a run never ends.
        """
        if options.target.partition(":")[0] != self.kind:
            raise UnknownTargetError(
                f"{options.target!r}: the suite examines only {self.needs}, on {self.kind}"
            )
        began = time.perf_counter()
        found: dict[str, list[Finding]] = {each.id: [] for each in self.listed(options)}
        scripts: dict[str, tuple[int, list[str]]] = {}
        do_not_interrupt()
        examples, operations, faults, met = 0, 0, Counter[FaultKind](), set[Pair]()
        for number in range(-(-options.examples // self.examples_per_run)):
            seed = options.seed + number
            if is_used_up():
                break
            with bounded():
                run = play(seed)
            examples += self.examples_per_run
            operations += run.operations
            faults.update(run.faults())
            if self.dimensions is not NO_DIMENSIONS:
                met.update(*map(self.dimensions.shown_in, run.scenarios()))
            for id_, finding in run.findings().items():
                if id_ in found:
                    found[id_].append(finding)
                    if finding.verdict is Verdict.VIOLATED:
                        scripts.setdefault(id_, (seed, run.script()))
            progress(min((number + 1) * self.examples_per_run, options.examples), options.examples)
        seconds = time.perf_counter() - began
        results = (self._result(options, id_, found[id_], scripts.get(id_)) for id_ in found)
        pairs = PairCoverage(
            self.name, self.dimensions.pairs(()), frozenset(met), tuple(self.dimensions.excluded(()))
        )
        looked_at = {
            "examples": min(examples, options.examples),
            "operations": operations,
            **pairs.evidence(),
        }
        tables = () if scripts else pairs.tables()
        return Part(self.name, with_time(results, seconds), looked_at, seconds, tables, faults=faults)

    def _result(
        self,
        options: RunOptions,
        id_: str,
        found: Sequence[Finding],
        failed: tuple[int, list[str]] | None,
    ) -> Result:
        counts = Counter({self.counted: len(found)})
        for finding in found:
            counts.update(finding.counts)
        if failed is not None:
            seed, script = failed
            first = next(finding for finding in found if finding.verdict is Verdict.VIOLATED)
            replay = options.replay(self.name, "--seed", str(seed), "--examples", "1")
            witnesses = (*first.witnesses, scripted(script))
            return Result(
                id_, catalogue()[id_].name, self.name, Verdict.VIOLATED, dict(counts), witnesses,
                f"violated in the run with seed {seed}", replay,
            )  # fmt: skip
        held = any(finding.verdict is Verdict.HELD for finding in found)
        verdict = Verdict.HELD if held else Verdict.UNKNOWN
        return Result(id_, catalogue()[id_].name, self.name, verdict, dict(counts))
