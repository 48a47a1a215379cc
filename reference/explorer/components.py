"""Strongly connected components of a finite graph, without recursion."""

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol


class Successors(Protocol):
    """Returns the successors of a node."""

    def __call__(self, node: int, /) -> Iterable[int]: ...


def components(nodes: Collection[int], successors: Successors) -> Iterator[frozenset[int]]:
    """Yield the strongly connected components of the subgraph of `nodes` (Tarjan's algorithm).

    A node without a cycle is a component of its own. Successors outside `nodes` are ignored.
    """
    inside = nodes if isinstance(nodes, (set, frozenset)) else set(nodes)
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in nodes:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(successors(root)))]
        while work:
            node, rest = work[-1]
            for after in rest:
                if after not in inside:
                    continue
                if after not in number:
                    number[after] = low[after] = len(number)
                    stack.append(after)
                    on_stack.add(after)
                    work.append((after, iter(successors(after))))
                    break
                if after in on_stack:
                    low[node] = min(low[node], number[after])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == number[node]:
                    at = len(stack) - 1
                    while stack[at] != node:
                        at -= 1
                    found = frozenset(stack[at:])
                    del stack[at:]
                    on_stack -= found
                    yield found
