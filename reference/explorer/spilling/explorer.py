"""The explorer with a bounded memory: it identifies states by 64-bit fingerprints, and spills to the disk.

A state is a row of numbers. `decisions.py` remembers the results of the model's functions, and `loops.py`
looks them up for all rows of a level. A level has two halves. The first takes all steps and collects the
successors that were not met recently, as sorted runs of (fingerprint, source, edge). The second merges the
runs, removes the fingerprints that are known, and makes the rows of the next level.

The source and edge of each state are kept. A counterexample is found by walking back from the violation, and
taking the same steps from the initial state.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from mqproof.reference.explorer.memory import resident_bytes
from mqproof.reference.explorer.search import OnLevel, Step, Violation, broken_step, check_size, first_broken
from mqproof.reference.explorer.spilling.columns import columns_of
from mqproof.reference.explorer.spilling.decisions import Decisions, EdgeList, Items
from mqproof.reference.explorer.spilling.known import Known, Run, ranges
from mqproof.reference.explorer.spilling.loops import (
    Fingerprints,
    Found,
    Longs,
    Rows,
    expand,
    fingerprints_of,
    judge,
    succeed,
)
from mqproof.reference.explorer.spilling.numbering import Numbering
from mqproof.reference.explorer.spilling.shelf import Shelf, Stored, opened
from mqproof.reference.explorer.spilling.watched import written
from mqproof.reference.explorer.summary import Summary
from mqproof.reference.model import Model, Parameters

_RECORD: Final = np.dtype([("fingerprint", np.uint64), ("source", np.uint32), ("edge", np.uint32)])
_LINK: Final = np.dtype([("source", np.uint32), ("edge", np.uint32)])
_LEVEL_MAX: Final = 1 << 32
_ALL: Final = np.empty((0, 2), np.int64)
"""No pairs: evaluate every function in every row."""


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The memory for each purpose."""

    shelf_bytes: int
    recent_max: int
    """Fingerprints that were met recently; a power of two."""
    found: int
    """Successors in one sorted run."""
    merged: int
    """Fingerprints that are merged at once."""
    rows: int
    """States that are expanded at once."""
    decisions_bytes: int


def _sizes(memory_bytes: int) -> _Sizes:
    return _Sizes(
        shelf_bytes=memory_bytes // 4,
        recent_max=1 << (memory_bytes // 4 // 8).bit_length() - 1,
        found=min(max(memory_bytes // 1024, 1 << 12), 1 << 22),
        merged=max(memory_bytes // 512, 1 << 6),
        rows=min(max(memory_bytes // 4096, 1 << 6), 1 << 16),
        decisions_bytes=max(memory_bytes // 4, 1 << 20),
    )


def explore(
    model: Model[Any, Any],
    config: Any,
    *,
    memory_bytes: int,
    folder: Path | None = None,
    on_level: OnLevel | None = None,
    states_max: int | None = None,
) -> Summary[Any]:
    """Return the result of `mqproof.reference.explorer.search.explore`, computed in a bounded memory.

    Args:
        memory_bytes: about how much memory the exploration may take, beyond what Python has loaded.
        folder: where a folder for the files is made; the default is that for temporary files.

    Raises:
        MemoryError: more than `states_max` states are reachable, or the model's functions have more results
          than a fourth of the memory can hold.
        DiskError: the files cannot be written.
    """
    sizes = _sizes(memory_bytes)
    with opened(folder, sizes.shelf_bytes) as shelf:
        return _Search(model, config, shelf, sizes, states_max).run(on_level)


def collision(distinct: int, generated: int) -> float:
    """Return the probability that two different states had the same fingerprint, as TLC calculates it.

    Of two such states the second is taken for the first, and what only it leads to is not explored.
    """
    return distinct * (generated - distinct) / 2**64


class _Search:
    def __init__(
        self, model: Model[Any, Any], config: Any, shelf: Shelf, sizes: _Sizes, states_max: int | None
    ) -> None:
        self.model = model
        self.config = config
        self.shelf = shelf
        self.sizes = sizes
        self.states_max = states_max
        self.initial = tuple(dict.fromkeys(model.initial(config)))
        self.numbering = Numbering(columns_of(self.initial[0]))
        self.edges = EdgeList(self.numbering, tuple(model.actions))
        self.decisions = Decisions(self.numbering, self.edges)
        self.steps: dict[tuple[str, Parameters], int] = {}
        """The root of each step's function."""
        self.roots = np.array([*self._fixed(), *self._chosen()], np.int64)
        judged = [partial(self._judged, holds) for holds in model.invariants.values()]
        self.judges = np.array([self.decisions.add(function) for function in judged], np.int64)
        self.found = _buffers(sizes.found, len(model.actions))
        self.recent: Fingerprints = np.zeros(min(1 << 12, sizes.recent_max), np.uint64)
        self.known = Known(shelf, sizes.merged)
        self.links: list[Stored] = []
        """By level: the source and edge of each state."""
        self.states = len(self.initial)

    # The model's functions

    def _fixed(self) -> Iterator[int]:
        for name, action in self.model.actions.items():
            if action.choices is None:
                for parameters in action.domain(self.config):
                    yield self._step(name, parameters)

    def _chosen(self) -> Iterator[int]:
        for name, action in self.model.actions.items():
            if action.choices is not None:
                yield self.decisions.add(partial(self._choices, name, action.choices))

    def _step(self, name: str, parameters: Parameters) -> int:
        """Return the root of the function that takes one step."""
        label = (name, parameters)
        if label not in self.steps:
            self.steps[label] = self.decisions.add(partial(self._taken, name, parameters))
        return self.steps[label]

    def _taken(self, name: str, parameters: Parameters, state: Any) -> Items:
        after = self.model.actions[name].apply(self.config, state, *parameters)
        if after is None:
            return ()
        broken = broken_step(self.model, self.config, state, name, after)
        return (self.edges.add((name, parameters), written(self.numbering.columns, after), broken),)

    def _choices(self, name: str, choices: Callable[..., Any], state: Any) -> Items:
        items = tuple(~self._step(name, parameters) for parameters in choices(self.config, state))
        if len(items) > self.sizes.found:
            raise MemoryError(f"{self.model.name}: {len(items)} choices of {name} in one state")
        return items

    def _judged(self, holds: Callable[..., bool], state: Any) -> Items:
        return () if holds(self.config, state) else (0,)

    # The search

    def run(self, on_level: OnLevel | None) -> Summary[Any]:
        before = resident_bytes()
        depth = 0
        frontier = self._start()
        broken = first_broken(self.model, self.config, self.initial)
        violation = broken and Violation(broken[0], (Step("Init", (), broken[1]),))
        while len(frontier) and violation is None:
            depth += 1
            runs = self._expand(frontier)
            violation = self._broken_step()
            following = self._merge(runs, frontier)
            violation = violation or self._broken_state(following)
            frontier.remove()
            frontier = following
            self.states += len(frontier)
            check_size(self.model, self.states, self.states_max)
            self._limit_memory()
            if on_level is not None:
                on_level(depth, self.states)
        taken = dict(zip(self.model.actions, self.found.taken.tolist(), strict=True))
        return Summary(
            self.states,
            depth,
            taken,
            violation,
            memory_bytes=max(resident_bytes() - before, 0),
            disk_bytes=self.shelf.disk_bytes_max,
            collision=collision(self.states, sum(taken.values()) + len(self.initial)),
        )

    def _start(self) -> Stored:
        rows = self.numbering.rows(self.initial)
        frontier = self.shelf.new(np.uint32, rows.shape[1])
        frontier.append(rows)
        run = Run(self.shelf.new(np.uint64))
        run.append(np.sort(fingerprints_of(rows, self.numbering.random)))
        self.known.add(run)
        self.links.append(self.shelf.new(_LINK))
        return frontier

    def _expand(self, frontier: Stored) -> list[Run]:
        """Take all steps of a level. Returns the successors that were not met recently, as sorted runs."""
        runs: list[Run] = []
        self.found.counts[2:] = -1
        for offset, rows in frontier.blocks(self.sizes.rows):
            prints = fingerprints_of(rows, self.numbering.random)
            todo = [_ALL]
            while todo:
                self._evaluate(rows, prints, offset, todo, runs)
        self._flush(runs)
        return runs

    def _evaluate(
        self, rows: Rows, prints: Fingerprints, offset: int, todo: list[Longs], runs: list[Run]
    ) -> None:
        """Evaluate the last of the pairs that are to do. Those whose results are not known yet are added."""
        pairs = todo.pop()
        total = len(pairs) or len(rows) * len(self.roots)
        done = 0
        while done < total:
            done = expand(
                rows,
                prints,
                offset,
                self.roots,
                pairs,
                done,
                self.decisions.tree,
                self.edges.arrays,
                self.numbering.random,
                self.recent,
                self.found,
            )
            if done < total:
                self._flush(runs)
            if self.found.counts[1]:
                todo.append(self.decisions.evaluate(rows, self.found))

    def _flush(self, runs: list[Run]) -> None:
        """Move the found successors to a sorted run."""
        count = self.found.counts[0]
        self.found.counts[0] = 0
        if count == 0:
            return
        order = np.argsort(self.found.fingerprints[:count])
        records = np.empty(count, _RECORD)
        records["fingerprint"] = self.found.fingerprints[order]
        records["source"] = self.found.sources[order]
        records["edge"] = self.found.edges[order]
        run = Run(self.shelf.new(_RECORD))
        run.append(records)
        runs.append(run)

    def _merge(self, runs: list[Run], frontier: Stored) -> Stored:
        """Return the rows of the new states, and remove the runs."""
        following = self.shelf.new(np.uint32, len(self.numbering.names))
        links = self.shelf.new(_LINK)
        level = Run(self.shelf.new(np.uint64))
        size = max(sum(len(run.stored) for run in runs), len(self.known))
        for low, high in ranges(size if runs else 0, self.sizes.merged):
            parts = [run.between(low, high) for run in runs]
            records = np.concatenate((np.empty(0, _RECORD), *parts))
            _, first = np.unique(records["fingerprint"], return_index=True)
            records = records[first]
            records = records[self.known.are_new(np.ascontiguousarray(records["fingerprint"]), low, high)]
            level.append(np.ascontiguousarray(records["fingerprint"]))
            records = records[np.argsort(records["source"], kind="stable")]
            links.append(np.ascontiguousarray(records[["source", "edge"]]).astype(_LINK))
            self._succeed(frontier, records, following)
        for run in runs:
            run.stored.remove()
        if len(following) > _LEVEL_MAX:
            raise MemoryError(f"{self.model.name}: more than {_LEVEL_MAX} states in one level")
        self.known.add(level)
        self.links.append(links)
        return following

    def _succeed(self, frontier: Stored, records: Any, following: Stored) -> None:
        sources = records["source"].astype(np.int64)
        taken = np.ascontiguousarray(records["edge"])
        for offset, rows in frontier.blocks(self.sizes.rows):
            low, high = np.searchsorted(sources, (offset, offset + len(rows)))
            if low < high:
                some = sources[low:high] - offset
                following.append(succeed(rows, some, taken[low:high], self.edges.arrays))

    # Violations

    def _broken_step(self) -> Violation[Any] | None:
        source, edge = self.found.counts[2:].tolist()
        if edge < 0:
            return None
        path = self._path(len(self.links) - 1, source)
        name, parameters = self.edges.labels[edge]
        after = self.model.actions[name].apply(self.config, path[-1].state, *parameters)
        invariant = self.edges.broken[edge]
        assert invariant is not None
        return Violation(invariant, (*path, Step(name, parameters, after)))

    def _broken_state(self, frontier: Stored) -> Violation[Any] | None:
        self.found.counts[2:] = -1
        for offset, rows in frontier.blocks(self.sizes.rows):
            done = 0
            while done < len(rows):
                before = done
                done = judge(rows, self.judges, done, self.decisions.tree, self.found)
                if self.found.counts[1]:
                    self.decisions.evaluate(rows, self.found)
                    done = before  # and with the results that are known now
            at, invariant = self.found.counts[2:].tolist()
            if invariant >= 0:
                name = list(self.model.invariants)[invariant]
                return Violation(name, self._path(len(self.links) - 1, offset + at))
        return None

    def _path(self, level: int, place: int) -> tuple[Step[Any], ...]:
        """Return the path to a state of a level."""
        labels: list[tuple[str, Parameters]] = []
        for links in reversed(self.links[1 : level + 1]):
            (link,) = links.read(place, place + 1)
            labels.append(self.edges.labels[link["edge"]])
            place = int(link["source"])
        state = self.initial[place]
        path = [Step("Init", (), state)]
        for name, parameters in reversed(labels):
            state = self.model.actions[name].apply(self.config, state, *parameters)
            path.append(Step(name, parameters, state))
        return tuple(path)

    # Memory

    def _limit_memory(self) -> None:
        """Enlarge the set of recent fingerprints with the number of states; bound the remembered results."""
        if self.decisions.bytes() > self.sizes.decisions_bytes:
            raise MemoryError(
                f"{self.model.name}: its actions have too many different results; allow more memory"
            )
        size = len(self.recent)
        while size < 4 * self.states and 2 * size <= self.sizes.recent_max:
            size *= 2
        if size > len(self.recent):
            known = self.recent[self.recent != 0]
            self.recent = np.zeros(size, np.uint64)
            self.recent[known & np.uint64(size - 1)] = known


def _buffers(size: int, actions: int) -> Found:
    return Found(
        np.empty(size, np.uint64),
        np.empty(size, np.uint32),
        np.empty(size, np.uint32),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.uint64),
        np.array([0, 0, -1, -1], np.int64),
        np.zeros(actions, np.int64),
    )
