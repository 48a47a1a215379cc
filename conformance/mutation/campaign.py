"""Judges a sample of mutants in parallel, keeps every verdict in a folder, and counts.

A verdict is kept with the digest of the module and of everything that judges it, so that a campaign that was
stopped goes on, and one after a change judges only what may have changed. One with more time for each mutant
judges only those again that no suite detected and that can be shown.
"""

import hashlib
import json
import math
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from queue import Queue
from typing import Final

from mqproof.conformance.engine.coverage_feedback import PARTS
from mqproof.conformance.mutation import patches, reach, unit_tests
from mqproof.conformance.mutation.examiner import (
    CASE_SUITES,
    DETECTED,
    ONCE,
    Judge,
    Outcome,
    Task,
    Verdict,
)
from mqproof.conformance.mutation.fork_server import ForkServer, verdict_of
from mqproof.conformance.mutation.loading import modules
from mqproof.conformance.mutation.operators import Mutant, mutants
from mqproof.conformance.mutation.reach import EXAMPLES_MAX, Hits, Reach
from mqproof.conformance.mutation.survivors import SHOWN, stated, stated_of
from mqproof.conformance.registry.suite_registry import SUITES
from mqproof.report.write import write_text

ROOT: Final = Path(__file__).resolve().parents[2]
ALL_SUITES: Final = tuple(SUITES)
_JUDGES: Final = ("conformance", "reference", "impl/runtime")
"""The folders on which verdicts depend, beside the mutated module."""
_ORIGINAL_CPU_S: Final = 120
"""The processor time of a suite with all examples on the original code."""


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
    patches: Path | None = None
    """A folder of patches that are judged instead of a sample; None for the sample."""
    minutes: float = math.inf
    """The real time after which no further mutant is judged."""
    unit_tests: bool = False
    """Whether the unit tests judge what no suite detects."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A mutant, the suites that execute its line, and its verdict."""

    mutant: Mutant
    reached_by: tuple[str, ...]
    verdict: Verdict
    first_input: str = ""
    """The example or case of the first suite that executes the line; empty if none does."""
    by_unit_tests: Verdict | None = None
    """The verdict of the unit tests; None if they did not judge."""


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
    """Judge the sample, or the patches; return the verdicts in their order.

    When the time of the campaign is used up, the verdicts are those of the first part of the sample. A kept
    verdict under less processor time stands for a mutant that was not judged again.

    `on_judged` is called with each verdict, the number of judged mutants so far, and their total number.

    Raises:
        ReachError: a suite does not hold on the original code. PatchError: a patch is wrong.
        ServerError: the process that judges ended.
    """
    deadline = time.monotonic() + 60 * campaign.minutes
    campaign.folder.mkdir(parents=True, exist_ok=True)
    chosen = _chosen(campaign)
    reached = _reach(campaign)
    kept = _Kept(campaign)
    judged: dict[str, Judged] = {}
    with ExitStack() as stack, ThreadPoolExecutor(campaign.workers) as pool:
        servers = Queue[ForkServer]()
        for _ in range(campaign.workers):
            servers.put(stack.enter_context(ForkServer()))
        waiting = {pool.submit(_judge, each, reached, campaign, kept, servers): each for each in chosen}
        try:
            for done in as_completed(waiting):
                judged[waiting[done].mutant.id] = done.result()
                on_judged(done.result(), len(judged), len(chosen))
                if time.monotonic() > deadline:
                    break
        finally:
            pool.shutdown(cancel_futures=True)
    found = [judged.get(each.mutant.id) or _kept_verdict(each, reached, kept) for each in chosen]
    is_ended = None in found
    while is_ended and found and (found[-1] is None or found[-1].verdict.outcome is Outcome.UNREACHED):
        found.pop()  # the rest of the sample was not judged
    return tuple(one for one in found if one is not None)


@dataclass(frozen=True, slots=True)
class _Change:
    """A mutant, or a patch that is judged as one."""

    mutant: Mutant
    lines: Mapping[str, frozenset[int]]
    """Maps each changed module to the lines that change."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The changed source text of each module; empty for a mutant, whose number determines it."""


def _chosen(campaign: Campaign) -> tuple[_Change, ...]:
    if campaign.patches is None:
        drawn = sample(campaign.parts, campaign.size, campaign.seed)
        return tuple(_Change(each, {each.module: frozenset({each.line})}) for each in drawn)
    return tuple(_Change(each.mutant, each.lines, each.sources) for each in patches.read(campaign.patches))


def _judge(
    change: _Change,
    reached: Mapping[str, Reach],
    campaign: Campaign,
    kept: "_Kept",
    servers: "Queue[ForkServer]",
) -> Judged:
    judges = _judges(change, reached)
    suites = _suites_of(judges)
    task = Task(
        "" if change.sources else change.mutant.module, change.mutant.number, judges, campaign.examples,
        campaign.seed, campaign.cpu_s, _is_imported(change, reached), change.sources,
    )  # fmt: skip
    verdict = Verdict(Outcome.UNREACHED)
    if suites:
        is_shown = stated_of(change.mutant, kept.survivors).kind in SHOWN
        cpu_s = campaign.cpu_s if is_shown else 0
        verdict = kept.judged(kept.key(change, suites), lambda: _examined(servers, task, kept), cpu_s)
    judged = Judged(change.mutant, suites, verdict, _first_input(judges))
    if not campaign.unit_tests or verdict.outcome in DETECTED:
        return judged
    files = unit_tests.files_of(change.mutant.module)
    key = kept.key(change, (unit_tests.NAME, _digest(ROOT / file for file in files)))
    return replace(judged, by_unit_tests=kept.judged(key, lambda: _tested(servers, task, files)))


def _kept_verdict(change: _Change, reached: Mapping[str, Reach], kept: "_Kept") -> Judged | None:
    """Return the verdict that is known without judging; None if there is none."""
    judges = _judges(change, reached)
    suites = _suites_of(judges)
    verdict = kept.verdict(kept.key(change, suites)) if suites else Verdict(Outcome.UNREACHED)
    return None if verdict is None else Judged(change.mutant, suites, verdict, _first_input(judges))


def _suites_of(judges: Iterable[Judge]) -> tuple[str, ...]:
    return tuple(judge.suite for judge in judges)


def _first_input(judges: Sequence[Judge]) -> str:
    return judges[0].first_input if judges else ""


def _examined(servers: "Queue[ForkServer]", task: Task, kept: "_Kept") -> Verdict:
    """Return the verdict of the suites; one that fails on the original code in the same way is left out.

    The first examples hold there, because the lines that each suite executes were recorded in them. A case
    may depend on those before it, or on the machine, so it runs there once more, alone.
    """
    verdict = _served(servers, task) if task.judges else Verdict(Outcome.SURVIVED)
    suite, is_case = verdict.suite, verdict.suite in CASE_SUITES
    if verdict.outcome is not Outcome.VIOLATION or not (is_case or verdict.examples > EXAMPLES_MAX):
        return verdict
    judge = Judge(suite, 0 if is_case else task.examples, (verdict.by,) if is_case else (), is_whole=True)
    original = replace(task, module="", judges=(judge,), cpu_s=_ORIGINAL_CPU_S, is_imported=False, patched={})
    key = kept.original_key(" ".join((suite, *judge.cases)))
    fails = kept.judged(key, lambda: _served(servers, original))
    if fails.by != verdict.by or not (is_case or fails.witness == verdict.witness):
        return verdict
    judges = tuple(judge for judge in task.judges if judge.suite != suite)
    return _examined(servers, replace(task, judges=judges), kept)


def _tested(servers: "Queue[ForkServer]", mutant: Task, files: tuple[str, ...]) -> Verdict:
    """Return the verdict of these tests; a test that fails on the original code detects nothing."""
    every = Judge(unit_tests.NAME, cases=files, is_whole=True)
    task = replace(mutant, judges=(every,), cpu_s=unit_tests.CPU_S)
    verdict = _served(servers, task)
    if verdict.outcome is not Outcome.VIOLATION:
        return verdict
    failed = Judge(unit_tests.NAME, cases=(verdict.by,), is_whole=True)
    original = _served(servers, replace(task, module="", judges=(failed,), is_imported=False, patched={}))
    if original.outcome is Outcome.SURVIVED:
        return verdict
    return replace(verdict, outcome=Outcome.SURVIVED, by=f"{verdict.by} fails on the original code, too")


def _served(servers: "Queue[ForkServer]", task: Task) -> Verdict:
    server = servers.get()
    try:
        return server.judge(task)
    finally:
        servers.put(server)


def _judges(change: _Change, reached: Mapping[str, Reach]) -> tuple[Judge, ...]:
    """Return the suites that execute a changed line, that with the cheapest execution first.

    A patch whose lines no suite executes is judged by the suites that execute its modules.
    """
    lines = change.lines
    if change.sources and not any(
        executed.hits(module, line)
        for executed in reached.values()
        for module, changed in lines.items()
        for line in changed
    ):
        lines = {
            module: frozenset(line for each in reached.values() for line in each.by_line.get(module, ()))
            for module in lines
        }
    judges: list[tuple[float, Judge]] = []
    for suite, executed in reached.items():
        places = ((module, line) for module, changed in lines.items() for line in changed)
        hits = [(found, place) for place in places if (found := executed.hits(*place))]
        if hits:
            busiest, place = max(hits, key=lambda each: each[0].count)
            judges.append((executed.cpu_s / busiest.count, _judge_of(suite, executed, busiest, place)))
    return tuple(judge for _, judge in sorted(judges, key=lambda each: each[0]))


def _judge_of(suite: str, executed: Reach, hits: Hits, place: tuple[str, int]) -> Judge:
    if suite in CASE_SUITES:
        steps = executed.closest(*place, hits.steps)
        cases = tuple(executed.cases[step] for step in steps if step < len(executed.cases))
        return Judge(suite, cases=cases, is_whole=hits.count <= len(hits.steps))
    return Judge(suite, hits.steps[0], is_whole=suite in ONCE)


def _is_imported(change: _Change, reached: Mapping[str, Reach]) -> bool:
    """Return whether the import of a module executes a changed line."""
    return any(
        lines & executed.at_import.get(module, frozenset())
        for executed in reached.values()
        for module, lines in change.lines.items()
    )


class _Kept:
    """The verdicts in the folder of a campaign, in one file of JSON lines, each with its processor time."""

    def __init__(self, campaign: Campaign) -> None:
        self._file = campaign.folder / "verdicts.ndjson"
        self._judges = _digest(ROOT / each for each in _JUDGES)
        self._code = _code_digest()
        self._options = f"{campaign.examples} {campaign.seed}"
        self._files = modules(campaign.parts)
        self._verdicts: dict[str, tuple[Verdict, int]] = {}
        self.survivors: Final = stated()
        if self._file.exists():
            for line in self._file.read_text(encoding="utf-8").splitlines():
                try:
                    fields = json.loads(line)
                except ValueError:
                    continue  # the campaign was killed while it wrote this line
                key, cpu_s = fields.pop("key"), fields.pop("allowed_cpu_s", 0)
                self._verdicts[key] = verdict_of(fields), cpu_s

    def verdict(self, key: str) -> Verdict | None:
        """Return the kept verdict, whatever processor time it was given; None without one."""
        return self._verdicts.get(key, (None, 0))[0]

    def judged(self, key: str, judge: Callable[[], Verdict], cpu_s: int = 0) -> Verdict:
        """Return the kept verdict; judge and keep it if there is none.

        A mutant that survived less than this processor time, in seconds, is judged again.
        """
        verdict, allowed = self._verdicts.get(key, (None, 0))
        if verdict is not None and (verdict.outcome in DETECTED or allowed >= cpu_s):
            return verdict
        verdict = judge()
        self._verdicts[key] = verdict, cpu_s
        line = json.dumps({"key": key, "allowed_cpu_s": cpu_s, **asdict(verdict)})
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")  # the line before may be incomplete
        return verdict

    def original_key(self, suite: str) -> str:
        """Return the key of the verdict of a suite on the original code."""
        return f"original {suite} {self._code} {self._options}"

    def key(self, change: _Change, suites: Sequence[str]) -> str:
        source = "".join(change.sources.values()) or _digest([self._files[change.mutant.module]])
        text = f"{change.mutant.id} {source} {self._judges} {self._options} {' '.join(suites)}"
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def _reach(campaign: Campaign) -> dict[str, Reach]:
    """Return what each suite executes; measured once for the same code."""
    code = _code_digest()
    examples = min(campaign.examples, EXAMPLES_MAX)

    def kept(suite: str) -> Reach:
        digest, file = f"{code} {examples} {campaign.seed}", campaign.folder / f"reach-{suite}.json"
        if file.exists():
            found = json.loads(file.read_text(encoding="utf-8"))
            if found["digest"] == digest:
                return Reach.of(found["reach"])
        measured = reach.measure(suite, examples, campaign.seed)
        write_text(file, json.dumps({"digest": digest, "reach": measured.stored()}))
        return measured

    with ThreadPoolExecutor(campaign.workers) as pool:
        return dict(zip(campaign.suites, pool.map(kept, campaign.suites), strict=True))


def _code_digest() -> str:
    """Return a digest of the code that the suites examine, and of the suites."""
    return _digest([ROOT / "impl", ROOT / "conformance"])


def _digest(paths: Iterable[Path]) -> str:
    """Return a digest of these Python files, and of those below these folders."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
