"""Judges a sample of mutants in parallel, keeps every verdict in a folder, and counts.

A verdict is kept with the digest of the module and of everything that judges it, so that a campaign that was
stopped goes on, and one after a change judges only what may have changed.
"""

import hashlib
import json
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.engine.coverage_feedback import PARTS
from mqproof.conformance.mutation import reach
from mqproof.conformance.mutation.examiner import Outcome, Task, Verdict
from mqproof.conformance.mutation.operators import Mutant, mutants
from mqproof.conformance.registry.suite_registry import SUITES
from mqproof.report.write import write_text

ROOT: Final = Path(__file__).resolve().parents[2]
ALL_SUITES: Final = tuple(SUITES)
_JUDGES: Final = ("conformance", "reference", "impl/runtime")
"""The folders on which verdicts depend, beside the mutated module."""
_WALL_FACTOR: Final = 40
"""A process that waits instead of computing is ended after this multiple of its processor time."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """The options of a campaign."""

    folder: Path
    """Where verdicts are kept."""
    parts: tuple[str, ...] = PARTS
    suites: tuple[str, ...] = ALL_SUITES
    size: int = 100
    """The number of mutants in the sample."""
    seed: int = 0
    """Chooses the sample; it is also the first seed of every suite."""
    examples: int = 100
    cpu_s: int = 60
    workers: int = 2


@dataclass(frozen=True, slots=True)
class Judged:
    """A mutant, the suites that execute its line, and its verdict."""

    mutant: Mutant
    reached_by: tuple[str, ...]
    verdict: Verdict


def modules(parts: Iterable[str]) -> dict[str, Path]:
    """Return the modules of these folders of `impl/` with their files, by dotted name."""
    found = {}
    for part in parts:
        for file in sorted((ROOT / "impl" / part).rglob("*.py")):
            if file.name != "__init__.py":
                found[".".join(("mqproof", *file.relative_to(ROOT).with_suffix("").parts))] = file
    return found


def sample(parts: Iterable[str], size: int, seed: int) -> tuple[Mutant, ...]:
    """Draw mutants, from each module in proportion to its number of mutants, and at least one.

    The same seed draws the same mutants, as long as the code is the same.
    """
    by_module = {
        name: mutants(name, file.read_text(encoding="utf-8")) for name, file in modules(parts).items()
    }
    total = sum(map(len, by_module.values()))
    chosen: list[Mutant] = []
    for name, made in by_module.items():
        share = max(1, round(size * len(made) / total)) if made else 0
        drawn = random.Random(f"{seed} {name}").sample(made, min(share, len(made)))
        chosen += sorted(drawn, key=lambda mutant: mutant.number)
    random.Random(seed).shuffle(chosen)
    return tuple(chosen[:size])


def run(campaign: Campaign, on_judged: Callable[[Judged, int, int], None]) -> tuple[Judged, ...]:
    """Judge the sample; return the verdicts in its order.

    `on_judged` is called with each verdict, the number of judged mutants so far, and their total number.

    Raises:
        ReachError: a suite does not hold on the original code.
    """
    campaign.folder.mkdir(parents=True, exist_ok=True)
    lines, seconds = _reach(campaign)
    chosen = sample(campaign.parts, campaign.size, campaign.seed)
    kept = _Kept(campaign)
    judged: dict[str, Judged] = {}
    with ThreadPoolExecutor(campaign.workers) as pool:
        waiting = {}
        for mutant in chosen:
            suites = _reaching(mutant, lines, seconds)
            waiting[pool.submit(_judge, mutant, suites, campaign, kept)] = mutant
        try:
            for done in as_completed(waiting):
                judged[waiting[done].id] = done.result()
                on_judged(done.result(), len(judged), len(chosen))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return tuple(judged[mutant.id] for mutant in chosen)


def _reaching(
    mutant: Mutant, lines: Mapping[str, reach.Lines], seconds: Mapping[str, float]
) -> tuple[str, ...]:
    """Return the suites that execute the line of a mutant, the fastest first."""
    reaching = [name for name, found in lines.items() if mutant.line in found.get(mutant.module, ())]
    return tuple(sorted(reaching, key=lambda name: seconds[name]))


def _judge(mutant: Mutant, suites: tuple[str, ...], campaign: Campaign, kept: "_Kept") -> Judged:
    if not suites:
        return Judged(mutant, suites, Verdict(Outcome.UNREACHED))
    if (verdict := kept.get(mutant, suites)) is None:
        task = Task(mutant.module, mutant.number, suites, campaign.examples, campaign.seed, campaign.cpu_s)
        verdict = _in_a_process(task)
        kept.put(mutant, suites, verdict)
    return Judged(mutant, suites, verdict)


def _in_a_process(task: Task) -> Verdict:
    """Judge in a new process, which ends by itself or by the limit of its time."""
    command = [sys.executable, "-m", "mqproof.conformance.mutation.examiner"]
    try:
        ran = subprocess.run(
            command, input=json.dumps(asdict(task)), capture_output=True, text=True,
            timeout=_WALL_FACTOR * task.cpu_s, check=False,
        )  # fmt: skip
        out, is_late = ran.stdout, ran.returncode < 0
    except subprocess.TimeoutExpired as late:
        out, is_late = (late.stdout or b"").decode(), True
    lines = [json.loads(line) for line in out.splitlines()]
    if lines and "outcome" in lines[-1]:
        return _verdict(lines[-1])
    suite = lines[-1]["suite"] if lines else task.suites[0]
    if is_late:
        return Verdict(Outcome.ENDLESS, suite, "no verdict within the time", cpu_s=float(task.cpu_s))
    return Verdict(Outcome.BROKEN, suite, "the process ended", ran.stderr.strip()[-300:])


def _verdict(fields: Mapping[str, Any]) -> Verdict:
    return Verdict(**{**fields, "outcome": Outcome(fields["outcome"])})


class _Kept:
    """The verdicts in the folder of a campaign, in one file of JSON lines."""

    def __init__(self, campaign: Campaign) -> None:
        self._file = campaign.folder / "verdicts.ndjson"
        self._judges = _digest(ROOT / each for each in _JUDGES)
        self._options = f"{campaign.examples} {campaign.seed} {campaign.cpu_s}"
        self._files = modules(campaign.parts)
        self._verdicts: dict[str, Verdict] = {}
        if self._file.exists():
            for line in self._file.read_text(encoding="utf-8").splitlines():
                try:
                    fields = json.loads(line)
                except ValueError:
                    continue  # the campaign was killed while it wrote this line
                key = fields.pop("key")
                self._verdicts[key] = _verdict(fields)

    def get(self, mutant: Mutant, suites: Sequence[str]) -> Verdict | None:
        return self._verdicts.get(self._key(mutant, suites))

    def put(self, mutant: Mutant, suites: Sequence[str], verdict: Verdict) -> None:
        line = json.dumps({"key": self._key(mutant, suites), **asdict(verdict)})
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")  # the line before may be incomplete

    def _key(self, mutant: Mutant, suites: Sequence[str]) -> str:
        source = _digest([self._files[mutant.module]])
        text = f"{mutant.id} {source} {self._judges} {self._options} {' '.join(suites)}"
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def _reach(campaign: Campaign) -> tuple[dict[str, reach.Lines], dict[str, float]]:
    """Return the executed lines and the seconds of each suite; measured once for the same code."""
    code = _digest([ROOT / "impl", ROOT / "conformance"])

    def kept(suite: str) -> tuple[reach.Lines, float]:
        digest, file = f"{code} {campaign.examples} {campaign.seed}", campaign.folder / f"reach-{suite}.json"
        if not file.exists() or json.loads(file.read_text(encoding="utf-8"))["digest"] != digest:
            lines, seconds = reach.measure(suite, campaign.examples, campaign.seed)
            plain = {module: sorted(found) for module, found in lines.items()}
            write_text(file, json.dumps({"digest": digest, "lines": plain, "seconds": seconds}))
        found = json.loads(file.read_text(encoding="utf-8"))
        return {module: frozenset(lines) for module, lines in found["lines"].items()}, found["seconds"]

    with ThreadPoolExecutor(campaign.workers) as pool:
        by_suite = dict(zip(campaign.suites, pool.map(kept, campaign.suites), strict=True))
    return (
        {suite: lines for suite, (lines, _) in by_suite.items()},
        {suite: seconds for suite, (_, seconds) in by_suite.items()},
    )


def _digest(paths: Iterable[Path]) -> str:
    """Return a digest of these Python files, and of those below these folders."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def by_module(judged: Iterable[Judged]) -> Iterator[tuple[str, list[Judged]]]:
    """Yield each module with its judged mutants, in the order of the names."""
    groups: defaultdict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        groups[one.mutant.module].append(one)
    yield from sorted(groups.items())
