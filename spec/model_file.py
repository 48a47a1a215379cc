"""Loads models.toml: the questions for TLC and their expected answers (docs/how-to/tla-runner.md).

Some questions must be answered "yes", others "no". The latter are probes (the situation does happen),
fairness (the clause is needed) and mutants (the invariant catches a broken design).
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

import msgspec

from mqproof.spec.tlc import config

MODELS_FILE: Final = Path(__file__).with_name("models.toml")

Profile = Literal["smoke", "mutation", "ci", "deep"]
PROFILES: Final[tuple[Profile, ...]] = ("smoke", "mutation", "ci", "deep")
_SLOW_NEGATIVES: Final[tuple[Profile, ...]] = ("ci", "deep")


class ModelFileError(ValueError):
    """models.toml does not have the expected form; the message names the file, the entry and the field."""


class Kind(StrEnum):
    """The kind of a question to TLC, which determines the expected answer."""

    CHECK = "check"  # every property holds, or the named one is violated
    PROBES = "probes"  # each named invariant is false somewhere; one run covers all of them
    ACTION_PROBE = "action probe"  # the named action property is violated
    FAIRNESS = "fairness"  # without a fairness clause the named liveness property is violated
    MUTANT = "mutant"  # the broken design violates the named property
    VACUITY = "vacuity"  # every action is taken, every antecedent of a property is true somewhere


@dataclass(frozen=True, slots=True)
class Band:
    """The permitted range of a count, both ends included."""

    low: int
    high: int

    def __contains__(self, number: int) -> bool:
        return self.low <= number <= self.high

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


@dataclass(frozen=True, slots=True)
class Question:
    """One run of TLC and its expected answer."""

    model: str
    name: str
    kind: Kind
    module: str
    config: config.Config
    profiles: tuple[str, ...]
    violates: str | None
    """The property that must be violated; None if all must hold, and for PROBES."""
    probes: tuple[str, ...] = ()
    states: Band | None = None
    """Recorded number of distinct states of a run that holds."""
    depth: Band | None = None
    """Recorded depth.

    With several workers TLC may report a greater depth, so only the lower end is checked.
    """
    workers: int = 1
    deadlock: bool = False
    seconds_max: int = 600
    heap_mib: int = 2048
    never: tuple[str, ...] = ()
    """Actions and properties that these constants exclude on purpose: never taken, never tested."""

    def probe(self, name: str) -> "Question":
        """Return the question for one of the probes alone, so that its witness can be shown."""
        asked = self.config.asking(name, "INVARIANT")
        return replace(self, name=name, kind=Kind.ACTION_PROBE, config=asked, violates=name, probes=())


@dataclass(frozen=True, slots=True)
class TraceModule:
    """The module that explains recorded traces of a model, for `mqproof.spec.tlc.trace_check`."""

    model: str
    module: str
    config: str
    """The configuration's text."""
    refused: Path
    """A trace that the model must refuse. Without it, a module that accepts anything would go unnoticed."""


@dataclass(frozen=True, slots=True)
class Models:
    """The questions by model, and the location of their modules."""

    file: Path
    questions: dict[str, tuple[Question, ...]]
    traces: dict[str, TraceModule] = field(default_factory=dict)
    """The trace modules by model, for the models that have one."""

    @property
    def libraries(self) -> tuple[Path, ...]:
        return _libraries(self.file)


class _Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cfg: str
    profiles: list[Profile]
    states: int | tuple[int, int] | None = None
    depth: int | tuple[int, int] | None = None
    violates: str | None = None
    workers: int = 1
    deadlock: bool = False
    seconds_max: int = 600
    heap_mib: int = 2048
    never: list[str] = []


class _Trace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    module: str
    cfg: str
    refused: str


class _Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    about: str
    module: str
    cfg: str
    """Constants and specification of the probes, and of the fairness runs unless these have their own."""
    runs: list[_Run]
    fairness_cfg: str = ""
    probes: list[str] = []
    action_probes: list[str] = []
    fairness: dict[str, str] = {}
    mutants: dict[str, str] = {}
    trace: _Trace | None = None


def load(path: Path = MODELS_FILE) -> Models:
    """Load the questions of a models.toml.

    Modules and configurations are in `tla/` and `tla/mutants/` beside it. If there is no folder `tla/`, they
    are beside it and in `mutants/`.

    Raises:
        ModelFileError: no such file, bad TOML, a missing or unknown field, a missing configuration file, a
          run with only half of its recorded size, or a name used twice in a model.
    """
    try:
        tables = msgspec.toml.decode(path.read_bytes(), type=dict[str, _Model])
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ModelFileError(f"{path}: {error}") from None
    if not tables:
        raise ModelFileError(f"{path}: no model; a table [MODEL] for each is expected")
    questions = {name: _questions(name, table, path) for name, table in tables.items()}
    traces = {name: _trace(name, table.trace, path) for name, table in tables.items() if table.trace}
    return Models(path, questions, traces)


def _questions(model: str, table: _Model, path: Path) -> tuple[Question, ...]:
    found = [_check(model, table, run, path) for run in table.runs]
    base = _config(model, table.cfg, path)
    if table.probes:
        asked = base.without("INVARIANT", "PROPERTY")
        probes = tuple(table.probes)
        found.append(
            Question(model, "probes", Kind.PROBES, table.module, asked, _SLOW_NEGATIVES, None, probes)
        )
    for name in table.action_probes:
        asked = base.asking(name, "PROPERTY")
        found.append(Question(model, name, Kind.ACTION_PROBE, table.module, asked, _SLOW_NEGATIVES, name))
    fair = _config(model, table.fairness_cfg or table.cfg, path)
    for name, violates in table.fairness.items():
        asked = fair.specified(name).asking(violates, "PROPERTY")
        profiles = _SLOW_NEGATIVES
        found.append(Question(model, name, Kind.FAIRNESS, table.module, asked, profiles, violates))
    for name, violates in table.mutants.items():
        # Only the named property is checked: a violation of another one would say nothing about this one.
        asked = _config(model, f"{name}.cfg", path).asking(violates)
        found.append(Question(model, name, Kind.MUTANT, name, asked, (), violates))
    found += _vacuity(found)
    names = [question.name for question in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ModelFileError(f"{path}: [{model}]: {', '.join(twice)} appears twice")
    return tuple(found)


def _check(model: str, table: _Model, run: _Run, path: Path) -> Question:
    if run.violates is None and (run.states is None) != (run.depth is None):
        raise ModelFileError(f"{path}: [{model}] {run.cfg}: record both states and depth, or neither")
    return Question(
        model=model,
        name=run.cfg.removesuffix(".cfg"),
        kind=Kind.CHECK,
        module=table.module,
        config=_config(model, run.cfg, path),
        profiles=tuple(run.profiles),
        violates=run.violates,
        states=_band(run.states),
        depth=_band(run.depth),
        workers=run.workers,
        deadlock=run.deadlock,
        seconds_max=run.seconds_max,
        heap_mib=run.heap_mib,
        never=tuple(run.never),
    )


def _trace(model: str, table: _Trace, path: Path) -> TraceModule:
    config_text = _config(model, table.cfg, path).text()
    refused = path.parent / table.refused
    if not refused.is_file():
        raise ModelFileError(f"{path}: [{model}.trace] refused: there is no file {refused}")
    return TraceModule(model, table.module, config_text, refused)


def _vacuity(checks: list[Question]) -> list[Question]:
    """Return one question per choice of constants among the ci runs that must hold.

    It has the properties of all runs with these constants.
    """
    together: dict[tuple[str, ...], Question] = {}
    for check in checks:
        if check.kind is not Kind.CHECK or check.violates is not None or "ci" not in check.profiles:
            continue
        constants = check.config.of("CONSTANT")
        if (first := together.get(constants)) is None:
            name = f"{check.name}_vacuity"
            together[constants] = replace(check, name=name, kind=Kind.VACUITY, profiles=("ci",), workers=1)
            continue
        asked = first.config
        for section in ("INVARIANT", "PROPERTY"):
            for body in check.config.of(section):
                asked = asked.with_section(section, body)
        together[constants] = replace(first, config=asked, never=(*first.never, *check.never))
    return list(together.values())


def _band(recorded: int | tuple[int, int] | None) -> Band | None:
    if recorded is None:
        return None
    return Band(recorded, recorded) if isinstance(recorded, int) else Band(*recorded)


def _config(model: str, name: str, path: Path) -> config.Config:
    for folder in _libraries(path):
        file = folder / name
        if file.is_file():
            return config.parse(file.read_text(encoding="utf-8"))
    places = " or ".join(f"{folder.relative_to(path.parent)}/" for folder in _libraries(path))
    raise ModelFileError(f"{path}: [{model}]: there is no {name} in {places}")


def _libraries(path: Path) -> tuple[Path, ...]:
    folder = path.parent / "tla"
    place = folder if folder.is_dir() else path.parent
    return (place, place / "mutants")
