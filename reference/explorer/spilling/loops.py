"""The loops of the search that look at every state: compiled by numba when they are first called.

All of them are in this file, because numba compiles them again only if this file changes.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

_Loop = TypeVar("_Loop", bound=Callable[..., Any])

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.uint32]
"""One row for each state, one column for each field: the numbers of the field's values."""
Fingerprints = npt.NDArray[np.uint64]

LEAF: Final = -1
UNKNOWN: Final = -2
"""In place of a column: the node is a result, or nothing is known about the node yet."""

_HALF: Final = np.uint64(32)
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_ZERO: Final = np.uint64(0)


def compiled(loop: _Loop) -> _Loop:
    """Compile a loop when it is first called; numba caches the machine code for other processes."""
    try:
        result: Any = numba.njit(cache=True, nogil=True)(loop)
    except RuntimeError:
        result = numba.njit(nogil=True)(loop)  # no cache folder is writable
    return cast(_Loop, result)


class Tree(NamedTuple):
    """Decision trees of functions. A node reads one column, and the value there leads to the next node."""

    column: Ints
    """By node: the column that it reads, LEAF, or UNKNOWN."""
    first: Ints
    """By leaf: the place of its first item."""
    last: Ints
    """By leaf: the place after its last item."""
    keys: Fingerprints
    """A hash table from a node and a value to the next node; 0 where it is empty."""
    children: Ints
    items: Longs
    """The results in the leaves: an edge, or ~root of another function to evaluate."""


class Edges(NamedTuple):
    """By edge: what it does to a row."""

    action: Ints
    is_broken: Flags
    """Whether the step violates an invariant."""
    first: Ints
    last: Ints
    """The places of its writes: [first, last)."""
    columns: Ints
    values: Rows


class Found(NamedTuple):
    """Buffers for the successors that a loop finds, and for the functions whose result it does not know."""

    fingerprints: Fingerprints
    sources: Rows
    edges: Rows
    missing_rows: Longs
    missing_roots: Longs
    missing_keys: Fingerprints
    counts: Longs
    """Successors found; functions missing; the source and edge of the first broken step, or -1."""
    taken: Longs
    """How often each action was taken."""


@compiled
def slot_of(keys: Fingerprints, key: np.uint64) -> np.int64:
    """Return the place of a key in a hash table, or the empty place where it belongs."""
    mask = np.uint64(len(keys) - 1)
    mixed = key * _MIX
    slot = np.int64((mixed ^ (mixed >> _HALF)) & mask)
    while keys[slot] != key and keys[slot] != _ZERO:
        slot = (slot + 1) & np.int64(mask)
    return slot


@compiled
def lookup(tree: Tree, root: int, row: Rows) -> tuple[int, np.uint64]:
    """Follow the tree of a function from its root.

    Returns the leaf, or -1 and the key of the first step that is not known.
    """
    node = root
    while True:
        column = tree.column[node]
        if column == LEAF:
            return node, _ZERO
        if column == UNKNOWN:
            return -1, np.uint64(node) << _HALF
        key = (np.uint64(node) << _HALF) | np.uint64(row[column])
        slot = slot_of(tree.keys, key)
        if tree.keys[slot] != key:
            return -1, key
        node = tree.children[slot]


@compiled
def learn(
    tree: Tree,
    nodes: int,
    roots: Longs,
    begins: Longs,
    columns: Ints,
    values: Rows,
    firsts: Ints,
    lasts: Ints,
) -> int:
    """Add paths to the trees, each from its root to a leaf. Returns the new number of nodes, or -1.

    -1 means that a function read another column than before after it had read the same values.
    """
    for path in range(len(roots)):
        node = roots[path]
        for at in range(begins[path], begins[path + 1]):
            if tree.column[node] == UNKNOWN:
                tree.column[node] = columns[at]
            if tree.column[node] != columns[at]:
                return -1
            key = (np.uint64(node) << _HALF) | np.uint64(values[at])
            slot = slot_of(tree.keys, key)
            if tree.keys[slot] != key:
                tree.keys[slot] = key
                tree.children[slot] = nodes
                tree.column[nodes] = UNKNOWN
                nodes += 1
            node = tree.children[slot]
        if tree.column[node] >= 0:
            return -1
        tree.column[node] = LEAF
        tree.first[node] = firsts[path]
        tree.last[node] = lasts[path]
    return nodes


@compiled
def rehash(keys: Fingerprints, children: Ints, new_keys: Fingerprints, new_children: Ints) -> None:
    """Copy a hash table into a larger one."""
    for old in range(len(keys)):
        if keys[old] != _ZERO:
            slot = slot_of(new_keys, keys[old])
            new_keys[slot] = keys[old]
            new_children[slot] = children[old]


@compiled
def fingerprints_of(rows: Rows, numbers: Fingerprints) -> Fingerprints:
    """Return the fingerprint of each row: the sum of the random numbers of its values."""
    result = np.zeros(len(rows), np.uint64)
    for at in range(len(rows)):
        for column in range(rows.shape[1]):
            result[at] += numbers[rows[at, column]]
    return result


@compiled
def _record_missing(found: Found, at: int, root: int, key: np.uint64) -> None:
    place = found.counts[1]
    found.missing_rows[place] = at
    found.missing_roots[place] = root
    found.missing_keys[place] = key
    found.counts[1] = place + 1


@compiled
def _take(
    edge: int,
    source: int,
    row: Rows,
    fingerprint: np.uint64,
    edges: Edges,
    numbers: Fingerprints,
    recent: Fingerprints,
    found: Found,
) -> None:
    """Take one step, and record its successor unless its fingerprint was met recently."""
    found.taken[edges.action[edge]] += 1
    if edges.is_broken[edge] and found.counts[2] < 0:
        found.counts[2] = source
        found.counts[3] = edge
    for at in range(edges.first[edge], edges.last[edge]):
        fingerprint += numbers[edges.values[at]] - numbers[row[edges.columns[at]]]
    slot = np.int64(fingerprint & np.uint64(len(recent) - 1))
    if recent[slot] == fingerprint and fingerprint != _ZERO:
        return
    recent[slot] = fingerprint
    place = found.counts[0]
    found.fingerprints[place] = fingerprint
    found.sources[place] = source
    found.edges[place] = edge
    found.counts[0] = place + 1


@compiled
def expand(
    rows: Rows,
    prints: Fingerprints,
    offset: int,
    roots: Longs,
    pairs: Longs,
    begin: int,
    tree: Tree,
    edges: Edges,
    numbers: Fingerprints,
    recent: Fingerprints,
    found: Found,
) -> int:
    """Evaluate functions in rows, and record the successors.

    Evaluates every root in every row if `pairs` is empty; otherwise each pair of a row and a root. Begins at
    one of these evaluations and returns the first that it did not make, because a buffer was full.

    Args:
        offset: the number of the first row in its level.
        recent: fingerprints met before, each at the place that its lowest bits name.
    """
    total = len(pairs) if len(pairs) else len(rows) * len(roots)
    for number in range(begin, total):
        if len(pairs):
            at, root = pairs[number, 0], pairs[number, 1]
        else:
            at, root = number // len(roots), roots[number % len(roots)]
        leaf, key = lookup(tree, root, rows[at])
        most = 0 if leaf < 0 else tree.last[leaf] - tree.first[leaf]
        if found.counts[1] + most >= len(found.missing_rows):
            return number
        if leaf < 0:
            _record_missing(found, at, root, key)
            continue
        if found.counts[0] + most > len(found.fingerprints):
            return number
        for place in range(tree.first[leaf], tree.last[leaf]):
            item = tree.items[place]
            if item < 0:
                inner, key = lookup(tree, ~item, rows[at])
                if inner < 0:
                    _record_missing(found, at, ~item, key)
                    continue
                if tree.first[inner] == tree.last[inner]:
                    continue
                item = tree.items[tree.first[inner]]
            _take(item, offset + at, rows[at], prints[at], edges, numbers, recent, found)
    return total


@compiled
def judge(rows: Rows, roots: Longs, begin: int, tree: Tree, found: Found) -> int:
    """Evaluate predicates in rows; a leaf with an item is a violation. Returns as `expand`."""
    for at in range(begin, len(rows)):
        if found.counts[1] + len(roots) > len(found.missing_rows):
            return at
        for number in range(len(roots)):
            leaf, key = lookup(tree, roots[number], rows[at])
            if leaf < 0:
                _record_missing(found, at, roots[number], key)
            elif tree.first[leaf] < tree.last[leaf] and found.counts[2] < 0:
                found.counts[2] = at
                found.counts[3] = number
    return len(rows)


@compiled
def succeed(rows: Rows, sources: Longs, taken: Rows, edges: Edges) -> Rows:
    """Return the row after each edge, taken in the row that its source names."""
    result = np.empty((len(sources), rows.shape[1]), np.uint32)
    for at in range(len(sources)):
        edge = taken[at]
        result[at] = rows[sources[at]]
        for place in range(edges.first[edge], edges.last[edge]):
            result[at, edges.columns[place]] = edges.values[place]
    return result


@compiled
def mark_known(prints: Fingerprints, known: Fingerprints, is_new: Flags) -> None:
    """Clear the flag of each fingerprint that is in `known`. Both are sorted."""
    at = 0
    for number in range(len(prints)):
        wanted = prints[number]
        stride = 1
        while at + stride < len(known) and known[at + stride] < wanted:
            stride *= 2
        low, high = at + stride // 2, min(at + stride, len(known))
        while low < high:
            middle = (low + high) // 2
            if known[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        at = low
        if at >= len(known):
            return
        if known[at] == wanted:
            is_new[number] = False
