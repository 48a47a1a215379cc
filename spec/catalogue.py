"""Loads spec/invariants.toml: the one catalogue of invariants that every layer checks.

An entry's `checks` names, for each layer, the object that checks the invariant there. Its `why` states why a
layer cannot check it. A layer that has neither is "open": the check is still to be built. `mqproof coverage`
shows it as open and never counts it as checked.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

LAYERS: Final = ("tla", "reference", "conformance", "fuzz", "audit")
_FILE: Final = Path(__file__).with_name("invariants.toml")


class CatalogueError(ValueError):
    """invariants.toml does not have the expected form; the message names the entry and the field."""


@dataclass(frozen=True, slots=True)
class Invariant:
    id: str
    name: str
    statement: str
    source: str
    kind: str
    """One of: safety, liveness."""
    scope: str
    """The configuration and faults under which the statement is claimed."""
    checks: dict[str, tuple[str, ...]]
    """Maps a layer to the objects that check it, e.g. {"tla": ("Flush!NoAckedLost",)}."""
    why: dict[str, str]
    """Maps a layer to the reason why it has no check there."""
    mutants: dict[str, list[str]]
    """Maps a layer to the names of the broken variants that its check must catch."""
    rules: list[str]
    """Anomalies known elsewhere in the field that this invariant covers, e.g. "lost-write"."""

    @property
    def snake_name(self) -> str:
        """The name in Python spelling: sync_acked_durable for SyncAckedDurable."""
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in self.name).lstrip("_")

    def cell(self, layer: str) -> str:
        """Return the state of a layer: checked, n/a or open."""
        if layer in self.checks:
            return "checked"
        return "n/a" if layer in self.why else "open"


def parse(text: str, where: str = "invariants.toml") -> dict[str, Invariant]:
    """Return the catalogue by id, in file order.

    Raises:
        CatalogueError: bad TOML, a missing or unknown field, an unknown layer, or an id or name used twice.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"{where}: {error}") from None
    invariants: dict[str, Invariant] = {}
    names: set[str] = set()
    for entry in document.get("invariant", []):
        invariant = _invariant(entry, where)
        if invariant.id in invariants or invariant.name in names:
            raise CatalogueError(f"{where}: {invariant.id} {invariant.name} appears twice")
        names.add(invariant.name)
        invariants[invariant.id] = invariant
    return invariants


@cache
def catalogue() -> dict[str, Invariant]:
    """Return the catalogue that is part of mqproof."""
    return parse(_FILE.read_text(encoding="utf-8"), str(_FILE))


def by_name(name: str) -> Invariant:
    """Return the invariant called `name`, as in TLA+. Raises KeyError if there is none."""
    for invariant in catalogue().values():
        if invariant.name == name:
            return invariant
    raise KeyError(name)


def id_of(model: str, name: str) -> str:
    """Return the id of the invariant called `name`, or MODEL.NAME for a property that only a model has."""
    return next((i.id for i in catalogue().values() if i.name == name), f"{model}.{name}")


def _invariant(entry: dict[str, Any], where: str) -> Invariant:
    fields = {"rules": [], "checks": {}, "why": {}, "mutants": {}, **entry}
    expected = set(Invariant.__slots__)
    label = f"{where}: {entry.get('id', 'an entry without id')}"
    if missing := sorted(expected - set(fields)):
        raise CatalogueError(f"{label}: missing {', '.join(missing)}")
    if unknown := sorted(set(fields) - expected):
        raise CatalogueError(f"{label}: unknown {', '.join(unknown)}, expected {', '.join(sorted(expected))}")
    if fields["kind"] not in ("safety", "liveness"):
        raise CatalogueError(f"{label}: kind is {fields['kind']!r}, expected safety or liveness")
    for table in ("checks", "why", "mutants"):
        if strange := sorted(set(fields[table]) - set(LAYERS)):
            raise CatalogueError(f"{label}: {table} names {strange}, layers are {', '.join(LAYERS)}")
    fields["checks"] = {layer: _several(named) for layer, named in fields["checks"].items()}
    return Invariant(**fields)


def _several(named: str | list[str]) -> tuple[str, ...]:
    """Return the names as a tuple. Most layers have one check, whose name is written without brackets."""
    return (named,) if isinstance(named, str) else tuple(named)
