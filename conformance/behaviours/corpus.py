"""Writes behaviours as JSON Lines, for replay in any language; corpus/README.md describes the format.

The first line has the model, its constants and initial states. The second line has all different steps: an
action with its parameters and the variables that it changed. Each other line is a behaviour: its initial
state, and the numbers of its steps. The content of a file is determined by the model, byte for byte; its
compression is not.
"""

import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from mqproof.conformance.behaviours.conditions import Outcome
from mqproof.conformance.behaviours.cover import Path as Behaviour
from mqproof.conformance.behaviours.cover import Steps, cover, graph
from mqproof.conformance.behaviours.json_values import order, plain
from mqproof.reference.constants import constants
from mqproof.reference.explorer.search import Label
from mqproof.reference.models import MODELS

SCHEMA: Final = 2
CORPUS: Final = Path(__file__).parent / "corpus"
TLA: Final = Path(__file__).parents[2] / "spec" / "tla"
SAMPLE_EVERY: Final = 16
"""One in SAMPLE_EVERY behaviours lists the disabled actions of one of its states."""
_SPREAD: Final = 7919

Variables = Mapping[str, Any]
"""Maps a variable to its value: numbers, texts, lists and objects."""


class CorpusError(ValueError):
    """A file does not contain behaviours. The message names file and line."""


_COMPRESSION: Final = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "pb": 0, "nice_len": 273}]
"""A third smaller than the plain preset: the lines are text, and have long parts in common."""


@dataclass(frozen=True, slots=True)
class Stimulus:
    action: str
    parameters: tuple[Any, ...]
    changes: Variables
    """The changed variables, with their new values."""


@dataclass(frozen=True, slots=True)
class Script:
    """One behaviour of a model, as steps to replay."""

    initial: Variables
    steps: tuple[Stimulus, ...]
    disabled_at: int | None = None
    """In the state after this many steps, the actions of `disabled` must be refused."""
    disabled: tuple[Stimulus, ...] = ()
    configuration: str = ""
    """The bounded model; empty for the smoke model."""
    outcomes: tuple[Outcome, ...] = ()
    """The outcomes of conditions with which it ends."""

    def states(self) -> Iterator[Variables]:
        """Yield the initial state, and the state after each step."""
        state = dict(self.initial)
        yield dict(state)
        for step in self.steps:
            state.update(step.changes)
            yield dict(state)


def configuration(model: str, name: str = "") -> str:
    """Return the text of a model's configuration; of its smoke configuration, if no name is given."""
    return (TLA / f"{name or f'MC{model}_smoke'}.cfg").read_text(encoding="utf-8")


@cache
def bounded(model: str, name: str = "") -> Any:
    """Return the reference's configuration; the smoke configuration, if no name is given."""
    return MODELS[model].from_constants(constants(configuration(model, name)))


def lines(model: str) -> Iterator[str]:
    """Yield the lines of the file with the behaviours that cover every step of the smoke model."""
    reference = MODELS[model]
    given = constants(configuration(model))
    config = bounded(model)
    steps = graph(reference, config)
    labels = [(name, each) for name, action in reference.actions.items() for each in action.domain(config)]
    return written(model, given, steps, labels, cover(steps))


def written(
    model: str,
    given: Mapping[str, Any],
    steps: Steps[Any],
    labels: Sequence[Label],
    behaviours: Sequence[Behaviour],
) -> Iterator[str]:
    """Yield the lines for these behaviours; `labels` are all actions with all their parameters."""
    every = sorted(((name, plain(parameters)) for name, parameters in labels), key=order)
    initial = {number: at for at, number in enumerate(steps.initial)}
    state_of = lru_cache(maxsize=None)(lambda number: plain(steps.states[number]))
    # Keyed by the whole label: 0 in one action equals False in another.
    words = lru_cache(maxsize=None)(lambda label: (label[0], plain(label[1])))
    head = {
        "schema": SCHEMA,
        "model": model,
        "constants": plain(given),
        "states": len(steps.states),
        "steps": steps.count,
        "initial": [state_of(number) for number in steps.initial],
    }
    found = []
    for number, behaviour in enumerate(behaviours):
        rows: list[Any] = []
        before = state_of(behaviour.initial)
        for step in behaviour.steps:
            after = state_of(step.target)
            changes = {name: value for name, value in after.items() if value != before[name]}
            rows.append([*words(step.label), changes])
            before = after
        row: dict[str, Any] = {"initial": initial[behaviour.initial], "steps": rows}
        if number % SAMPLE_EVERY == 0:
            at = number * _SPREAD % (len(rows) + 1)
            state = behaviour.steps[at - 1].target if at else behaviour.initial
            enabled = [(step.label[0], plain(step.label[1])) for step in steps.out[state]]
            row["disabled"] = [at, [list(label) for label in every if label not in enabled]]
        found.append(row)
    yield from in_lines(head, found)


def in_lines(head: Mapping[str, Any], behaviours: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a file; the steps of the behaviours become numbers of different steps."""
    numbers: dict[bytes, int] = {}
    rows = [
        {**each, "steps": [numbers.setdefault(_json(step), len(numbers)) for step in each["steps"]]}
        for each in behaviours
    ]
    yield _json(head).decode()
    yield _json({"steps": [msgspec.Raw(step) for step in numbers]}).decode()
    yield from (_json(row).decode() for row in rows)


def read(text_lines: Iterable[str], where: str) -> Iterator[Script]:
    """Yield the behaviours of a file; `where` names it in errors.

    Raises:
        CorpusError: not a file of behaviours, or of a newer schema, or of a version with other variables.
    """
    rows = iter(text_lines)
    head = _object(next(rows, ""), f"{where}:1")
    if head.get("schema") != SCHEMA:
        raise CorpusError(f"{where}:1: schema {head.get('schema')!r}, {SCHEMA} expected")
    _expect_variables(head, f"{where}:1")
    steps = _steps(next(rows, ""), f"{where}:2")
    for number, row in enumerate(rows, start=3):
        behaviour = _object(row, f"{where}:{number}")
        try:
            begins = head["initial"][behaviour["initial"]]
            taken = tuple([steps[step] for step in behaviour["steps"]])
            at, refused = behaviour.get("disabled", (None, ()))
            disabled = tuple(Stimulus(name, tuple(values), {}) for name, values in refused)
            outcomes = tuple(Outcome(*each) for each in behaviour.get("outcomes", ()))
        except (KeyError, IndexError, TypeError, ValueError):
            raise CorpusError(
                f"{where}:{number}: not a behaviour: the fields initial and steps are expected"
            ) from None
        yield Script(begins, taken, at, disabled, head.get("configuration", ""), outcomes)


def _steps(row: str, where: str) -> list[Stimulus]:
    try:
        return [
            Stimulus(name, tuple(values), changes) for name, values, changes in _object(row, where)["steps"]
        ]
    except (KeyError, TypeError, ValueError):
        raise CorpusError(f"{where}: not the list of steps: the field steps is expected") from None


def _expect_variables(head: Mapping[str, Any], where: str) -> None:
    """Check that the states have the variables of this version's model."""
    try:
        model, states = MODELS[head["model"]], head["initial"]
        found = {name for state in states for name in state}
    except (KeyError, TypeError):
        raise CorpusError(f"{where}: not a head: the fields model and initial are expected") from None
    expected = plain(model.initial(bounded(head["model"], head.get("configuration", "")))[0]).keys()
    if other := sorted(found ^ expected):
        raise CorpusError(
            f"{where}: variables of another version ({', '.join(other)} differ);"
            " write the behaviours again: mqproof behaviours --out DIR"
        )


def file_of(model: str, folder: Path = CORPUS) -> Path:
    return folder / f"{model}.jsonl.xz"


def write_file(model: str, folder: Path) -> Path:
    write_lines(lines(model), file_of(model, folder))
    return file_of(model, folder)


def write_lines(text_lines: Iterable[str], path: Path) -> None:
    """Write a file of behaviours, compressed."""
    text = "".join(line + "\n" for line in text_lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode(), filters=_COMPRESSION))


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file of behaviours, compressed or not.

    Raises:
        OSError: it cannot be read.
        CorpusError: it is damaged.
    """
    data = path.read_bytes()
    try:
        text = lzma.decompress(data) if path.suffix == ".xz" else data
        return text.decode().splitlines()
    except (lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: {error}") from None


_json: Final = msgspec.json.Encoder().encode


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise CorpusError(f"{where}: not JSON: {error}") from None
    if not isinstance(decoded, dict):
        raise CorpusError(f"{where}: an object expected")
    return decoded
