"""The explorer with a bounded memory: it identifies states by 64-bit fingerprints, and spills to the disk.

A state is a row of numbers. `decisions.py` remembers the results of the model's functions, and `loops.py`
looks them up for all rows of a level. A level has two halves. The first takes all steps and collects the
successors that were not met recently, as sorted runs of (fingerprint, source, edge). The second merges the
runs, removes the fingerprints that are known, and makes the rows of the next level.

The source and edge of each state are kept. A counterexample is found by walking back from the violation, and
taking the same steps from the initial state.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from mqproof.reference.explorer.columns import columns_of
from mqproof.reference.explorer.memory import resident_bytes
from mqproof.reference.explorer.search import OnLevel, Step, Violation, broken_step, check_size, first_broken
from mqproof.reference.explorer.spilling.decisions import Decisions, EdgeList, Items
from mqproof.reference.explorer.spilling.known import Known, Run, ranges
from mqproof.reference.explorer.spilling.loops import Fingerprints, Rows, fingerprints_of, succeed
from mqproof.reference.explorer.spilling.numbering import Numbering
from mqproof.reference.explorer.spilling.shelf import Array, Shelf, Stored, opened
from mqproof.reference.explorer.spilling.takers import RECORD, Taker, together
from mqproof.reference.explorer.summary import Summary
from mqproof.reference.explorer.watched import written
from mqproof.reference.model import Model, Parameters

_LINK: Final = np.dtype([("source", np.uint32), ("edge", np.uint32)])
_LEVEL_MAX: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The memory for each purpose."""

    shelf_bytes: int
    recent_max: int
    """Fingerprints that a thread met recently; a power of two."""
    found: int
    """Successors in one sorted run."""
    merged: int
    """Fingerprints that a thread merges at once."""
    rows: int
    """States that a thread expands at once."""
    decisions_bytes: int


def _sizes(memory_bytes: int, threads: int) -> _Sizes:
    own = memory_bytes // threads
    return _Sizes(
        shelf_bytes=memory_bytes // 4,
        recent_max=1 << (own // 4 // 8).bit_length() - 1,
        found=min(max(own // 1024, 1 << 12), 1 << 22),
        merged=max(own // 256, 1 << 6),
        rows=min(max(own // 4096, 1 << 6), 1 << 16),
        decisions_bytes=max(memory_bytes // 4, 1 << 20),
    )


def explore(
    model: Model[Any, Any],
    config: Any,
    *,
    memory_bytes: int,
    folder: Path | None = None,
    threads: int = 1,
    on_level: OnLevel | None = None,
    states_max: int | None = None,
) -> Summary[Any]:
    """Return the result of `mqproof.reference.explorer.search.explore`, computed in a bounded memory.

    Args:
        memory_bytes: about how much memory the exploration may take, beyond what Python has loaded.
        folder: where a folder for the files is made; the default is that for temporary files.
        threads: how many threads share the work of a level. The memory does not grow with them.

    Raises:
        MemoryError: more than `states_max` states are reachable, or the model's functions have more results
          than a fourth of the memory can hold.
        DiskError: the files cannot be written.
    """
    sizes = _sizes(memory_bytes, threads)
    with opened(folder, sizes.shelf_bytes) as shelf, ThreadPoolExecutor(threads) as pool:
        return _Search(model, config, shelf, sizes, states_max, pool, threads).run(on_level)


def collision(distinct: int, generated: int) -> float:
    """Return the probability that two different states had the same fingerprint, as TLC calculates it.

    Of two such states the second is taken for the first, and what only it leads to is not explored.
    """
    return distinct * (generated - distinct) / 2**64


class _Search:
    def __init__(
        self,
        model: Model[Any, Any],
        config: Any,
        shelf: Shelf,
        sizes: _Sizes,
        states_max: int | None,
        pool: ThreadPoolExecutor,
        threads: int,
    ) -> None:
        self.model = model
        self.config = config
        self.shelf = shelf
        self.sizes = sizes
        self.states_max = states_max
        self.pool = pool
        self.initial = tuple(dict.fromkeys(model.initial(config)))
        self.numbering = Numbering(columns_of(self.initial[0]))
        self.edges = EdgeList(self.numbering, tuple(model.actions))
        self.decisions = Decisions(self.numbering, self.edges)
        self.steps: dict[tuple[str, Parameters], int] = {}
        """The root of each step's function."""
        self.roots = np.array([*self._fixed(), *self._chosen()], np.int64)
        judged = [partial(self._judged, holds) for holds in model.invariants.values()]
        self.judges = np.array([self.decisions.add(function) for function in judged], np.int64)
        self.takers = [Taker(sizes.found, sizes.recent_max, len(model.actions)) for _ in range(threads)]
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
        counts = sum(taker.found.taken for taker in self.takers)
        taken = dict(zip(self.model.actions, np.asarray(counts).tolist(), strict=True))
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
        for taker in self.takers:
            taker.found.counts[2:] = -1
        for active in self._blocks(frontier):
            while any(list(self.pool.map(self._take, active))):  # when all threads have stopped
                for taker in active:
                    if taker.is_missing:
                        taker.again(self.decisions.evaluate(taker.rows, taker.found))
        runs: list[Run] = []
        for taker in self.takers:
            taker.flush()
            runs += map(self._stored, taker.runs)
            taker.runs = []
        return runs

    def _blocks(self, frontier: Stored) -> Iterator[list[Taker]]:
        """Assign the rows of a level to the threads, block by block. Yields the threads that have one."""
        blocks = frontier.blocks(self.sizes.rows)
        while active := [
            taker.begin(rows, fingerprints_of(rows, self.numbering.random), offset)
            for taker, (offset, rows) in zip(self.takers, blocks, strict=False)
        ]:
            yield active

    def _take(self, taker: Taker) -> bool:
        return taker.run(self.roots, self.decisions.tree, self.edges.arrays, self.numbering.random)

    def _stored(self, records: Array) -> Run:
        run = Run(self.shelf.new(RECORD))
        run.append(records)
        return run

    def _merge(self, runs: list[Run], frontier: Stored) -> Stored:
        """Return the rows of the new states, and remove the runs."""
        following = self.shelf.new(np.uint32, len(self.numbering.names))
        links = self.shelf.new(_LINK)
        level = Run(self.shelf.new(np.uint64))
        size = max(sum(len(run.stored) for run in runs), len(self.known))
        part = partial(self._part, runs, frontier)
        bounds = ranges(size if runs else 0, self.sizes.merged)
        for prints, some, rows in together(self.pool, len(self.takers), part, bounds):
            level.append(prints)
            links.append(some)
            for each in rows:
                following.append(each)
        for run in runs:
            run.stored.remove()
        if len(following) > _LEVEL_MAX:
            raise MemoryError(f"{self.model.name}: more than {_LEVEL_MAX} states in one level")
        self.known.add(level)
        self.links.append(links)
        return following

    def _part(
        self, runs: list[Run], frontier: Stored, bounds: tuple[int, int]
    ) -> tuple[Fingerprints, Array, list[Rows]]:
        """Return the new fingerprints in a range; in the order of their sources, the links and rows."""
        parts = [run.between(*bounds) for run in runs]
        records = np.concatenate((np.empty(0, RECORD), *parts))
        _, first = np.unique(records["fingerprint"], return_index=True)
        records = records[first]
        records = records[self.known.are_new(np.ascontiguousarray(records["fingerprint"]), *bounds)]
        prints = np.ascontiguousarray(records["fingerprint"])
        records = records[np.argsort(records["source"], kind="stable")]
        links = np.ascontiguousarray(records[["source", "edge"]]).astype(_LINK)
        return prints, links, list(self._succeed(frontier, records))

    def _succeed(self, frontier: Stored, records: Array) -> Iterator[Rows]:
        sources = records["source"].astype(np.int64)
        taken = np.ascontiguousarray(records["edge"])
        for offset, rows in frontier.blocks(self.sizes.rows):
            low, high = np.searchsorted(sources, (offset, offset + len(rows)))
            if low < high:
                yield succeed(rows, sources[low:high] - offset, taken[low:high], self.edges.arrays)

    # Violations

    def _broken_step(self) -> Violation[Any] | None:
        broken = [tuple(taker.found.counts[2:].tolist()) for taker in self.takers]
        source, edge = min((each for each in broken if each[1] >= 0), default=(-1, -1))
        if edge < 0:
            return None
        path = self._path(len(self.links) - 1, source)
        name, parameters = self.edges.labels[edge]
        after = self.model.actions[name].apply(self.config, path[-1].state, *parameters)
        invariant = self.edges.broken[edge]
        assert invariant is not None
        return Violation(invariant, (*path, Step(name, parameters, after)))

    def _broken_state(self, frontier: Stored) -> Violation[Any] | None:
        for taker in self.takers:
            taker.found.counts[2:] = -1
        for active in self._blocks(frontier):
            while any(list(self.pool.map(self._judge, active))):  # when all threads have stopped
                for taker in active:
                    if taker.is_missing:
                        self.decisions.evaluate(taker.rows, taker.found)
            for taker in active:
                at, invariant = taker.found.counts[2:].tolist()
                if invariant >= 0:
                    name = list(self.model.invariants)[invariant]
                    return Violation(name, self._path(len(self.links) - 1, taker.offset + at))
        return None

    def _judge(self, taker: Taker) -> bool:
        return taker.judge(self.judges, self.decisions.tree)

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
        """Enlarge the sets of recent fingerprints with the number of states; bound the remembered results."""
        if self.decisions.bytes() > self.sizes.decisions_bytes:
            raise MemoryError(
                f"{self.model.name}: its actions have too many different results; allow more memory"
            )
        for taker in self.takers:
            taker.enlarge(self.states)
