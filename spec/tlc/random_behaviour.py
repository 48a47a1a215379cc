"""A random behaviour with the names of its actions: a walk over the state graph, dumped level by level.

TLC's own simulation prints no action names, and does not evaluate every function that it prints.
"""

import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from mqproof.spec.tlc import config
from mqproof.spec.tlc.graph import Graph, read_dot
from mqproof.spec.tlc.run import Job, run
from mqproof.spec.tlc.toolbox import Toolbox
from mqproof.spec.tlc.trace import Step, Trace
from mqproof.spec.tlc.values import State, show

_LEVELS: Final = 3
"""The number of steps taken in one dump."""


def walk(job: Job, depth: int, seed: int, init: str, next_name: str, toolbox: Toolbox | None = None) -> Trace:
    """Return a random behaviour of `depth` states, or fewer if it ends earlier. The seed determines it.

    Each step is chosen with equal probability among those that change something. No property is checked.

    Raises:
        TlcError: TLC gave no verdict.
    """
    chance = random.Random(seed)
    graph = _levels(job, init, next_name, None, toolbox)
    at = chance.choice(sorted(graph.initial))
    steps = [Step(1, "", graph.states[at])]
    while len(steps) < depth:
        successors = graph.successors()
        for _ in range(min(_LEVELS, depth - len(steps))):
            choices = sorted((name, target) for (name, _), target in successors[at] if target != at)
            if not choices:
                return Trace(tuple(steps))
            name, at = chance.choice(choices)
            steps.append(Step(len(steps) + 1, name, graph.states[at]))
        if len(steps) < depth:
            graph = _levels(job, init, next_name, steps[-1].state, toolbox)
            (at,) = graph.initial
    return Trace(tuple(steps))


def _levels(job: Job, init: str, next_name: str, start: State | None, toolbox: Toolbox | None) -> Graph:
    """Return the graph of the states up to _LEVELS steps away from `start`, or from the initial states."""
    asked = config.parse(job.config)
    module = f"{job.module}Near"
    source = [f"---- MODULE {module} ----", f"EXTENDS {job.module}, TLC"]
    bounded = asked.with_section("CONSTRAINT", "Near")
    if start is not None:
        init = "Here"
        # A model value is a word of the configuration; the module may use it once it is declared as a
        # constant.
        words = sorted(asked.model_values())
        source += [f"CONSTANTS {', '.join(words)}"] if words else []
        for word in words:
            bounded = bounded.with_section("CONSTANT", f"{word} = {word}")
        source.append("Here == " + " /\\ ".join(f"{name} = {show(value)}" for name, value in start.items()))
    source += [f'Near == TLCGet("level") <= {_LEVELS + 1}', "====", ""]
    text = bounded.behaviour(init, next_name).text()
    with tempfile.TemporaryDirectory(prefix="mqproof-walk-") as name:
        dot = Path(name) / "graph.dot"
        sources = {module: "\n".join(source)}
        run(
            replace(job, module=module, config=text, sources=sources, dump=dot, workers=1, brief=True),
            toolbox,
        )
        return read_dot(dot.read_text(encoding="utf-8"))
