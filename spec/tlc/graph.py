"""The state graph of a model with the parameters of every action, in an order that depends on content alone.

TLC labels edges with an action's name, without parameters. Therefore a generated module names each ground
action (`Ground_3 == TRUE /\\ Flush(2)`; without the `TRUE /\\` TLC would print `Flush`), and `Next` is their
disjunction. With that module TLC can also check that these are the base model's steps, and all of them.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from mqproof.spec.tlc import config, values
from mqproof.spec.tlc.errors import Reason, TlcError
from mqproof.spec.tlc.run import Job, Outcome, run
from mqproof.spec.tlc.toolbox import Toolbox
from mqproof.spec.tlc.values import State, Value, parse_state

Label = tuple[str, tuple[Value, ...]]
"""An action's name and its parameters."""
Edge = tuple[int, Label, int]
"""Source, label, target; source and target are indexes into `Graph.states`."""

Move = tuple[str, str]
"""Two different states, one step apart, by TLC's own numbers."""

GROUND_COVERS: Final = "GroundCovers"
NEXT_COVERS: Final = "NextCovers"

_NODE: Final = re.compile(r'^(-?\d+) \[label="((?:[^"\\]|\\.)*)"(,style = filled)?', re.MULTILINE)
_EDGE: Final = re.compile(r'^(-?\d+) -> (-?\d+) \[label="(\w*)"', re.MULTILINE)
_ESCAPE: Final = re.compile(r"\\(.)")
_IDENTIFIER: Final = re.compile(r'"(?:[^"\\]|\\.)*"|([A-Za-z_]\w*)')


@dataclass(frozen=True, slots=True)
class Graph:
    states: tuple[State, ...]
    """The states, sorted by content."""
    initial: frozenset[int]
    edges: frozenset[Edge]
    moves: frozenset[Move] = field(default=frozenset(), compare=False)
    """The state changes of the edges, independent of their labels."""

    def enabled(self, state: int) -> frozenset[Label]:
        """Return the labels of the edges that leave a state. Slow for many states: use `successors` there."""
        return frozenset(label for source, label, _ in self.edges if source == state)

    def successors(self) -> dict[int, list[tuple[Label, int]]]:
        """Map each state to its labelled targets; every state has an entry."""
        table: dict[int, list[tuple[Label, int]]] = {index: [] for index in range(len(self.states))}
        for source, label, target in self.edges:
            table[source].append((label, target))
        return table


@dataclass(frozen=True, slots=True)
class Ground:
    """A generated module whose actions are all ground, and the meaning of their names."""

    module: str
    source: str
    config: config.Config
    labels: Mapping[str, Label]
    init: str

    def stepping_by(self, next_name: str) -> "Ground":
        """Return the same module with another next-state relation, so that TLC numbers the states alike."""
        return replace(self, config=self.config.behaviour(self.init, next_name))


def ground(
    base: str, config_text: str, actions: Mapping[str, Iterable[tuple[str, ...]]], init: str = "Init"
) -> Ground:
    """Return the module that names each ground action of `base`.

    `actions` maps an action's name to its parameter tuples. Each parameter is a TLA+ literal (`"m1"` with its
    quotes, `2`, `n1`). An action without parameters has the one tuple `()`. Constants and constraints are
    those of `config_text`. `init` is used if that text has no INIT.
    """
    base_config = config.parse(config_text)
    labels: dict[str, Label] = {}
    definitions: list[str] = []
    mentioned: set[str] = set()
    for action, tuples in actions.items():
        for parameters in tuples:
            name = f"Ground_{len(labels)}"
            labels[name] = (action, tuple(map(values.parse, parameters)))
            arguments = f"({', '.join(parameters)})" if parameters else ""
            definitions.append(f"{name} == TRUE /\\ {action}{arguments}")
            mentioned |= {word for text in parameters for word in _IDENTIFIER.findall(text) if word}
    # A model value is a word of the configuration; the module may use it once it is declared as a constant.
    declared = sorted(mentioned & base_config.model_values())
    module = f"{base}Ground"
    source = [f"---- MODULE {module} ----", f"EXTENDS {base}"]
    source += [f"CONSTANTS {', '.join(declared)}"] if declared else []
    source += [*definitions, "GroundNext ==", *(f"    \\/ {name}" for name in labels), "===="]
    start = (base_config.names("INIT") or (init,))[0]
    ground_config = base_config.behaviour(start, "GroundNext")
    for name in declared:
        ground_config = ground_config.with_section("CONSTANT", f"{name} = {name}")
    return Ground(module, "\n".join(source) + "\n", ground_config, labels, start)


def dump_ground(
    made: Ground, libraries: tuple[Path, ...], *, seconds_max: float = 600, toolbox: Toolbox | None = None
) -> Graph:
    """Return the labelled state graph of a ground module.

    Raises:
        TlcError: TLC gave no verdict.
    """
    with _dumped(made, libraries, seconds_max, toolbox) as (text, outcome):
        graph = read_dot(text, made.labels)
    if len(graph.states) != outcome.distinct:
        raise TlcError(
            Reason.CRASH,
            f"TLC: dumped {len(graph.states)} states, but counted {outcome.distinct}",
            outcome.text,
        )
    return graph


def dump_moves(
    made: Ground,
    next_name: str,
    libraries: tuple[Path, ...],
    *,
    seconds_max: float = 600,
    toolbox: Toolbox | None = None,
) -> frozenset[Move]:
    """Return the moves of the base module's own next-state relation, numbered as those of `dump_ground`.

    Raises:
        TlcError: TLC gave no verdict.
    """
    with _dumped(made.stepping_by(next_name), libraries, seconds_max, toolbox) as (text, _):
        return _moves(text)


@contextmanager
def _dumped(
    made: Ground, libraries: tuple[Path, ...], seconds_max: float, toolbox: Toolbox | None
) -> Iterator[tuple[str, Outcome]]:
    with tempfile.TemporaryDirectory(prefix="mqproof-graph-") as name:
        dot = Path(name) / "graph.dot"
        sources = {made.module: made.source}
        # A graph that Python reads is too small for Java's second compiler to be useful.
        job = Job(
            made.module, made.config.text(), libraries, sources, dump=dot, seconds_max=seconds_max, brief=True
        )
        outcome = run(job, toolbox)
        yield dot.read_text(encoding="utf-8"), outcome


def check_ground_is_complete(
    made: Ground,
    next_name: str,
    libraries: tuple[Path, ...],
    *,
    variables: str = "vars",
    seconds_max: float = 600,
    toolbox: Toolbox | None = None,
) -> Outcome:
    """Check with TLC that the steps of the base module's `next_name` are exactly the ground actions.

    If not, the outcome is VIOLATED, with a trace that ends in the differing step. GROUND_COVERS means that
    the table lacks the step. NEXT_COVERS means that `next_name` never takes a step that an action allows.

    Raises:
        TlcError: TLC gave no verdict.
    """
    question = [
        f"EitherSpec == {made.init} /\\ [][GroundNext \\/ {next_name}]_{variables}",
        f"{GROUND_COVERS} == [][GroundNext]_{variables}",
        f"{NEXT_COVERS} == [][{next_name}]_{variables}",
        "====",
    ]
    source = made.source.removesuffix("====\n") + "\n".join(question) + "\n"
    asked = made.config.without("INIT", "NEXT").specified("EitherSpec")
    asked = asked.with_section("PROPERTY", f"{GROUND_COVERS} {NEXT_COVERS}")
    job = Job(
        made.module, asked.text(), libraries, {made.module: source}, seconds_max=seconds_max, brief=True
    )
    return run(job, toolbox)


def read_dot(text: str, labels: Mapping[str, Label] | None = None) -> Graph:
    """Return the graph in the text of a `-dump dot,actionlabels` of a run without liveness properties.

    Edge labels are looked up in `labels`. Without it an edge has TLC's action name and no parameters.

    Raises:
        TlcError: the text is truncated or holds no state (Reason.CRASH).
    """
    nodes = _NODE.findall(text)
    if not nodes or not text.rstrip().endswith("}"):
        raise TlcError(Reason.CRASH, "TLC: the state graph was not written to its end")
    by_id = {node: parse_state(_ESCAPE.sub(_unescape, label)) for node, label, _ in nodes}
    states = sorted(by_id.values(), key=_order)
    index = {state: position for position, state in enumerate(states)}
    position_of = {node: index[state] for node, state in by_id.items()}
    named: Mapping[str, Label] = labels if labels is not None else _Names()
    return Graph(
        states=tuple(states),
        initial=frozenset(position_of[node] for node, _, filled in nodes if filled),
        edges=frozenset(
            (position_of[source], named[label], position_of[target])
            for source, target, label in _EDGE.findall(text)
        ),
        moves=_moves(text),
    )


def _moves(text: str) -> frozenset[Move]:
    return frozenset((found[1], found[2]) for found in _EDGE.finditer(text) if found[1] != found[2])


class _Names(dict[str, Label]):
    def __missing__(self, name: str) -> Label:
        return (name, ())


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _order(state: State) -> tuple[str, ...]:
    return tuple(_show(state[name]) for name in sorted(state, key=str))


# A value occurs in many states.
_show = lru_cache(maxsize=1 << 17)(values.show)
