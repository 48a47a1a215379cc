"""Runs a campaign of mutants, caches every judgement, and counts.

A judgement is cached in a folder under the digest of everything that it depends on: the mutated module, the
other modules, the questions. A campaign that was stopped, or repeated after a change, judges only what is
new.
"""

import hashlib
import json
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from mqproof.report.model import Table
from mqproof.report.write import write_text
from mqproof.spec.checkout import cache_folder
from mqproof.spec.model_file import MODELS_FILE
from mqproof.spec.mutation.judge import Judge, Judgement, Noticed, Stage, Subject
from mqproof.spec.mutation.operators import Mutant
from mqproof.spec.tlc.toolbox import Toolbox, find_toolbox

CACHE: Final = cache_folder("mutation")
SCORES: Final = MODELS_FILE.with_name("mutation_scores.json")
SURVIVORS: Final = MODELS_FILE.with_name("survivors.toml")

_VERSION: Final = "2"  # version of the judge: a change of its questions makes old judgements invalid


_PROPERTIES: Final = (Noticed.PROPERTY, Noticed.EVALUATION)
_DIFFERENT: Final = (*_PROPERTIES, Noticed.WITNESS, Noticed.EQUIV, Noticed.UNDECIDED)


class SurvivorsError(ValueError):
    """survivors.toml is not a table of models, each a table from mutants to reasons."""


@dataclass(frozen=True, slots=True)
class Score:
    """The results of a model's mutants."""

    model: str
    judgements: tuple[Judgement, ...]

    def count(self, *noticed: Noticed) -> int:
        return sum(judgement.noticed in noticed for judgement in self.judgements)

    @property
    def different(self) -> int:
        """The number of mutants that behave differently within the bounds.

        Perfect invariants would detect all of them.
        """
        return self.count(*_DIFFERENT)

    @property
    def by_properties(self) -> float:
        """The fraction that is detected by the properties, including failed evaluations."""
        return self.count(*_PROPERTIES) / max(self.different, 1)

    @property
    def with_witnesses(self) -> float:
        """The fraction that `mqproof check` detects by everything except the recorded sizes."""
        return self.count(*_PROPERTIES, Noticed.WITNESS) / max(self.different, 1)

    @property
    def with_equiv(self) -> float:
        """The detected fraction of the mutants whose graph differs, also if only labels of steps differ."""
        known = self.count(*_DIFFERENT, Noticed.LABELS)
        return (known - self.count(Noticed.UNDECIDED)) / max(known, 1)


def campaign(
    subject: Subject,
    mutants: Sequence[Mutant],
    *,
    fresh: bool = False,
    cores: int = 2,
    on_judged: Callable[[int, Judgement], None] = lambda _number, _judgement: None,
) -> tuple[Judgement, ...]:
    """Return a judgement for each mutant, in order.

    With `fresh`, TLC is run again instead of using the cache.

    Raises:
        TlcError: TLC is missing or crashed. Earlier judgements are in the cache.
    """
    tools = find_toolbox()
    abandoned = threading.Event()
    judge = Judge(subject, tools, abandoned)
    stages = [(stage, _digest(subject, stage, tools)) for stage in subject.stages]
    found: dict[str, Judgement] = {}
    with ThreadPoolExecutor(max_workers=cores) as pool:
        todo = {pool.submit(_through, judge, mutant, stages, fresh) for mutant in mutants}
        try:
            for number, future in enumerate(as_completed(todo), start=1):
                judgement = future.result()
                found[judgement.mutant] = judgement
                on_judged(number, judgement)
        finally:
            abandoned.set()
            pool.shutdown(wait=True, cancel_futures=True)
    return tuple(found[mutant.id] for mutant in mutants)


def survivors(path: Path = SURVIVORS) -> dict[str, str]:
    """Map each mutant to the reason why it does not change the model. Empty if there is no such file.

    Raises:
        SurvivorsError: the file does not have the expected form.
    """
    if not path.exists():
        return {}
    try:
        tables = msgspec.toml.decode(path.read_bytes(), type=dict[str, dict[str, str]])
    except (OSError, msgspec.MsgspecError, tomllib.TOMLDecodeError) as error:
        raise SurvivorsError(f"{path}: {error}") from None
    return {f"{model}.{mutant}": why for model, table in tables.items() for mutant, why in table.items()}


def unexplained(judgements: Iterable[Judgement], reasons: Mapping[str, str]) -> list[str]:
    """Return the problems, one line each.

    A survivor may lack a reason. A reason may be given for a mutant that is detected or does not exist.
    """
    noticed = {judgement.mutant: judgement for judgement in judgements}
    lines = [
        f"{mutant}: {judgement.by or 'not detected'}, and no reason is given"
        for mutant, judgement in noticed.items()
        if judgement.noticed in (Noticed.NOT, Noticed.UNDECIDED) and mutant not in reasons
    ]
    lines += [
        f"{mutant}: no TLA+: {judgement.by}"
        for mutant, judgement in noticed.items()
        if judgement.noticed is Noticed.UNPARSED
    ]
    for mutant in reasons:
        if mutant not in noticed:
            lines.append(f"{mutant}: a reason is given, but there is no such mutant")
        elif noticed[mutant].noticed not in (Noticed.NOT, Noticed.UNDECIDED):
            lines.append(f"{mutant}: a reason is given, but {noticed[mutant].by} detects it")
    return lines


def table(scores: Sequence[Score]) -> Table:
    """Return the table with one row per model, and the sum."""
    columns = (
        "model", "mutants", "no TLA+", "by properties", "by evaluation", "by witnesses", "by equiv only",
        "labels only", "same graph", "undecided", "score, properties", "score, witnesses",
        "score, with equiv",
    )  # fmt: skip
    shown = [*scores, _together(scores)] if len(scores) > 1 else scores
    return Table("Mutants", columns, tuple(_row(score) for score in shown))


def kinds(scores: Sequence[Score]) -> Table:
    """Return the table of how many mutants of each kind the properties detect."""
    different: Counter[str] = Counter()
    by_properties: Counter[str] = Counter()
    for judgement in (judgement for score in scores for judgement in score.judgements):
        kind = judgement.mutant.split(".")[-2]
        different[kind] += judgement.noticed in _DIFFERENT
        by_properties[kind] += judgement.noticed in _PROPERTIES
    rows = tuple(
        (kind, str(number), str(by_properties[kind]), f"{by_properties[kind] / number:.0%}")
        for kind, number in sorted(different.items())
        if number
    )
    return Table("Kinds of mutants", ("kind", "behave otherwise", "by properties", "share"), rows)


def markdown(scores: Sequence[Score]) -> str:
    """Return the table of `docs/explanation/specification.md`."""
    columns = (
        "model", "mutants", "by properties", "by witnesses", "by equiv only", "labels only", "same graph",
        "score, properties", "with witnesses", "with equiv",
    )  # fmt: skip
    rows = [
        (
            score.model,
            str(len(score.judgements)),
            str(score.count(*_PROPERTIES)),
            *(str(score.count(n)) for n in (Noticed.WITNESS, Noticed.EQUIV, Noticed.LABELS, Noticed.NOT)),
            *(f"{share:.1%}" for share in (score.by_properties, score.with_witnesses, score.with_equiv)),
        )
        for score in [*scores, _together(scores)]
    ]
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _together(scores: Sequence[Score]) -> Score:
    return Score("all", tuple(judgement for score in scores for judgement in score.judgements))


def record(scores: Sequence[Score], path: Path = SCORES) -> None:
    """Write the judgements of these models into the file; those of other models are kept."""
    known = recorded(path)
    known.update({score.model: score for score in scores})
    document = {
        model: {j.mutant: [j.noticed.value, j.by, j.run] for j in known[model].judgements}
        for model in sorted(known)
    }
    write_text(path, json.dumps(document, indent=1) + "\n")


def recorded(path: Path = SCORES) -> dict[str, Score]:
    """Return the scores in the file."""
    if not path.exists():
        return {}
    document = msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, tuple[str, str, str]]])
    return {
        model: Score(
            model, tuple(Judgement(id_, Noticed(n), by, run) for id_, (n, by, run) in entries.items())
        )
        for model, entries in document.items()
    }


def _row(score: Score) -> tuple[str, ...]:
    counts = (
        Noticed.UNPARSED, Noticed.PROPERTY, Noticed.EVALUATION, Noticed.WITNESS, Noticed.EQUIV,
        Noticed.LABELS, Noticed.NOT, Noticed.UNDECIDED,
    )  # fmt: skip
    return (
        score.model,
        str(len(score.judgements)),
        *(str(score.count(noticed)) for noticed in counts),
        f"{score.by_properties:.1%}",
        f"{score.with_witnesses:.1%}",
        f"{score.with_equiv:.1%}",
    )


def _through(judge: Judge, mutant: Mutant, stages: Sequence[tuple[Stage, str]], fresh: bool) -> Judgement:
    """Return the judgement of the first stage that detects the mutant, or else of the last stage."""
    for stage, base in stages:
        judgement = _remembered(judge, mutant, stage, base, fresh)
        if judgement.noticed is not Noticed.NOT:
            break
    return judgement


def _remembered(judge: Judge, mutant: Mutant, stage: Stage, base: str, fresh: bool) -> Judgement:
    file = CACHE / f"{hashlib.sha256((base + mutant.text).encode()).hexdigest()}.json"
    if file.exists() and not fresh:
        noticed, by, run = json.loads(file.read_text(encoding="utf-8"))
        return Judgement(mutant.id, Noticed(noticed), by, run)
    judgement = judge.judge(mutant, stage)
    if judgement.noticed is not Noticed.UNDECIDED:
        write_text(file, json.dumps([judgement.noticed, judgement.by, judgement.run]))
    return judgement


def _digest(subject: Subject, stage: Stage, tools: Toolbox) -> str:
    """Return the text of everything that a stage's judgement depends on, except the mutated module."""
    questions = [f"{q.name} {q.module} {q.config.text()} {q.states} {q.deadlock}" for q in stage.runs]
    spaces = [f"{s.name} {s.ground.source} {s.ground.config.text()} {s.next_name}" for s in stage.spaces]
    witnesses = [f"{q.config.text()} {q.probes}" for q in stage.witnesses]
    others = list(_extended({question.module for question in stage.runs}, subject))
    shared = " ".join(sorted(subject.shared))
    texts = (*questions, *spaces, *witnesses, *others, shared)
    return "\n".join([_VERSION, str(tools.jar.stat().st_size), *texts])


def _extended(modules: Iterable[str], subject: Subject) -> Iterator[str]:
    """Yield the texts of the modules that the runs begin with, and of the modules they name."""
    todo, seen = list(modules), {subject.module}
    while todo:
        name = todo.pop()
        files = [folder / f"{name}.tla" for folder in subject.libraries]
        file = next((file for file in files if file.is_file()), None)
        if name in seen or file is None:
            continue
        seen.add(name)
        text = file.read_text(encoding="utf-8")
        yield text
        words = set(text.replace(",", " ").split())
        todo += [other.stem for other in file.parent.glob("*.tla") if other.stem in words]
