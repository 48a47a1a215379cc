"""The text format of Prometheus, version 0.0.4.

The package `prometheus_client` would do the same. It is not used because it adds half a MiB to an
installation that is limited to 40 MiB. The tests parse the result with that package.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from mqproof.impl.metrics.families import Distribution, Family, Value

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
_ESCAPES_OF_HELP: Final = str.maketrans({"\\": "\\\\", "\n": "\\n"})


def render(families: Iterable[Family]) -> bytes:
    """Return the page. The families of one metric, of several sources, come together."""
    by_name: dict[str, list[Family]] = {}
    for family in families:
        by_name.setdefault(family.metric.name, []).append(family)
    lines: list[str] = []
    for name, same in by_name.items():
        metric = same[0].metric
        lines.append(f"# HELP {name} {metric.meaning.translate(_ESCAPES_OF_HELP)}\n")
        lines.append(f"# TYPE {name} {metric.type}\n")
        for family in same:
            lines.extend(_lines(family))
    return "".join(lines).encode(errors="replace")


def _lines(family: Family) -> Iterator[str]:
    name, names = family.metric.name, family.metric.labels
    for values, value in family.values.items():
        yield from _sample(name, {**family.source_labels, **dict(zip(names, values, strict=True))}, value)


def _sample(name: str, labels: Mapping[str, str], value: Value) -> Iterator[str]:
    if not isinstance(value, Distribution):
        yield f"{name}{_braces(labels)} {number(value)}\n"
        return
    for bound, count in zip((*value.bounds, math.inf), accumulate(value.counts), strict=True):
        yield f"{name}_bucket{_braces({**labels, 'le': number(float(bound))})} {count}\n"
    yield f"{name}_sum{_braces(labels)} {number(value.sum)}\n"
    yield f"{name}_count{_braces(labels)} {sum(value.counts)}\n"


def _braces(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items()) + "}"


def number(value: float) -> str:
    """Return a number as Prometheus reads it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
