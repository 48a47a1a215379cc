"""The components of random graphs are those that reachability defines."""

import random

from mqproof.reference.explorer.components import components


def _reachable(edges: dict[int, list[int]], nodes: set[int], start: int) -> set[int]:
    found, waiting = {start}, [start]
    while waiting:
        for after in edges[waiting.pop()]:
            if after in nodes and after not in found:
                found.add(after)
                waiting.append(after)
    return found


def test_the_components_of_random_graphs_are_the_sets_of_nodes_that_reach_each_other() -> None:
    chance = random.Random(1)
    for size in range(1, 12):
        for _ in range(20):
            edges = {n: [m for m in range(size) if chance.random() < 1.3 / size] for n in range(size)}
            nodes = {n for n in range(size) if chance.random() < 0.9}
            reach = {n: _reachable(edges, nodes, n) for n in nodes}
            expected = {frozenset(m for m in nodes if m in reach[n] and n in reach[m]) for n in nodes}
            found = list(components(nodes, edges.__getitem__))
            assert set(found) == expected
            assert len(found) == len(expected)


def test_a_long_chain_needs_no_recursion() -> None:
    size = 50_000
    ring = list(components(range(size), lambda n: ((n + 1) % size,)))
    assert ring == [frozenset(range(size))]
