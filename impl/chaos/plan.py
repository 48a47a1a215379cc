"""A plan: which faults the proxy injects, at which requests, and how often. Written as TOML.

docs/reference/chaos.md describes the file for users.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from mqproof.impl.chaos.fault_table import FAULTS, FaultKind, Point

TEXT_BYTES_MAX: Final = 1 << 20
FAULTS_MAX: Final = 1000
DELAY_MS_MAX: Final = 60_000
COUNT_MAX: Final = 1 << 40

_FIELDS: Final = {
    Point.SEND: ("topic",),
    Point.PULL: ("topic", "group"),
    Point.COMMIT: ("topic", "group"),
    Point.QUERY_OFFSET: ("topic", "group"),
    Point.MEMBERS: ("group",),
    Point.NOTIFICATION: ("group",),
    Point.SEND_BACK: ("group",),
    Point.ROUTE: ("topic",),
    Point.ANY: ("topic",),
}
"""The fields of a plan by which the requests of a point can be selected. The others have neither."""


class PlanError(ValueError):
    """A plan cannot be used. The message names the file, the fault and what is expected."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault, and the requests at which it may act."""

    kind: FaultKind
    probability: float
    spacing: int
    delay_ms: tuple[int, int]
    skip: int = 0
    """How many requests pass before the first one at which it may act."""
    at: tuple[int, ...] = ()
    """The requests at which it acts, numbered from 1. Replaces `probability`."""
    limit: int | None = None
    """How often it acts in the whole run."""
    topic: str | None = None
    group: str | None = None
    broker: str | None = None

    def matches(self, broker: str, topic: str, group: str) -> bool:
        """Return whether it may act on requests about this broker, topic and group."""
        return self.broker in (None, broker) and self.topic in (None, topic) and self.group in (None, group)


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults of a run. With the same seed and the same requests, the same faults happen."""

    seed: int = 0
    faults: tuple[PlannedFault, ...] = ()
    is_lawful: bool = False
    """Whether only lawful faults are allowed."""


_Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
_Delay = Annotated[int, Meta(ge=0, le=DELAY_MS_MAX)]
_Name = Annotated[str, Meta(min_length=1, max_length=255)]


class _Fault(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    probability: Annotated[float, Meta(ge=0, le=1)] | None = None
    spacing: _Count | None = None
    delay_ms: _Delay | Annotated[list[_Delay], Meta(min_length=2, max_length=2)] | None = None
    skip: _Count = 0
    at: Annotated[tuple[Annotated[int, Meta(ge=1, le=COUNT_MAX)], ...], Meta(max_length=10_000)] = ()
    limit: Annotated[int, Meta(ge=1, le=COUNT_MAX)] | None = None
    topic: _Name | None = None
    group: _Name | None = None
    broker: _Name | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    fault: Annotated[list[_Fault], Meta(min_length=1, max_length=FAULTS_MAX)]
    seed: Annotated[int, Meta(ge=0, le=COUNT_MAX)] | None = None
    lawful: bool = False


def parse(text: str, name: str, *, seed: int | None = None, lawful: bool = False) -> Plan:
    """Return the plan in the text of a file called `name`. `seed` replaces the file's own seed.

    Raises:
        PlanError: not TOML, an unknown key or fault, a wrong value, or an unlawful fault in a lawful plan.
    """
    if len(text) > TEXT_BYTES_MAX:
        raise PlanError(f"{name}: {len(text)} characters, at most {TEXT_BYTES_MAX} expected")
    try:
        file = msgspec.convert(tomllib.loads(text), _File)
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{name}: {error}") from None
    is_lawful = lawful or file.lawful
    faults = tuple(
        _planned(entry, f"{name}: fault {number}", is_lawful) for number, entry in enumerate(file.fault, 1)
    )
    chosen = seed if seed is not None else file.seed or 0
    return Plan(chosen, faults, is_lawful)


def of_faults(texts: Iterable[str], *, seed: int = 0, lawful: bool = False) -> Plan:
    """Return a plan of faults written as NAME or NAME=PROBABILITY, or of all lawful faults without any.

    Raises:
        PlanError: an unknown fault, a probability that is none, or an unlawful fault in a lawful plan.
    """
    given = list(texts) or [fault.name for fault in FAULTS.values() if fault.is_lawful]
    return Plan(seed, tuple(_of_text(text, lawful) for text in given), lawful)


def _of_text(text: str, lawful: bool) -> PlannedFault:
    name, sign, number = text.partition("=")
    if not sign:
        return _planned(_Fault(name), f"fault {text!r}", lawful)
    try:
        entry = msgspec.convert({"name": name, "probability": float(number)}, _Fault)
    except ValueError:
        raise PlanError(
            f"fault {text!r}: NAME or NAME=PROBABILITY expected, with a probability from 0 to 1"
        ) from None
    return _planned(entry, f"fault {text!r}", lawful)


def _planned(entry: _Fault, where: str, lawful: bool) -> PlannedFault:
    kind = FAULTS.get(entry.name)
    if kind is None:
        near = get_close_matches(entry.name, FAULTS, n=1)
        hint = f", did you mean {near[0]!r}" if near else ""
        raise PlanError(f"{where}: {entry.name!r} is not a fault{hint}; there are {', '.join(FAULTS)}")
    if lawful and not kind.is_lawful:
        raise PlanError(
            f"{where}: {kind.name} breaks {', '.join(kind.breaks)}; a lawful run has only faults that the "
            "specification permits"
        )
    for field in ("topic", "group"):
        if getattr(entry, field) is not None and field not in _FIELDS.get(kind.point, ()):
            raise PlanError(f"{where}: {kind.name} acts on {kind.point}, which have no {field}")
    return PlannedFault(
        kind,
        kind.probability if entry.probability is None else entry.probability,
        kind.spacing if entry.spacing is None else entry.spacing,
        _range(entry, kind, where),
        entry.skip,
        tuple(sorted(set(entry.at))),
        entry.limit,
        entry.topic,
        entry.group,
        entry.broker,
    )


def _range(entry: _Fault, kind: FaultKind, where: str) -> tuple[int, int]:
    delay_ms = entry.delay_ms
    if delay_ms is None:
        return kind.delay_ms
    if kind.delay_ms == (0, 0):
        raise PlanError(f"{where}: {kind.name} has no duration, so delay_ms has no use")
    low, high = (delay_ms, delay_ms) if isinstance(delay_ms, int) else delay_ms
    if low > high:
        raise PlanError(f"{where}: delay_ms is [{low}, {high}], the lower value first expected")
    return low, high
