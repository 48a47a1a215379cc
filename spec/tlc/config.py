r"""TLC's configuration files: the specification, the constants and the properties to check.

Only the parts needed to derive one question from another are supported: the same constants with one named
invariant, or with another next-state relation. Each section's entries stay as written.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_SINGULAR: Final = {
    "CONSTANTS": "CONSTANT",
    "INVARIANTS": "INVARIANT",
    "PROPERTIES": "PROPERTY",
    "CONSTRAINTS": "CONSTRAINT",
    "ACTION_CONSTRAINTS": "ACTION_CONSTRAINT",
}
_SECTIONS: Final = (
    "SPECIFICATION",
    "INIT",
    "NEXT",
    "CONSTANT",
    "CONSTRAINT",
    "ACTION_CONSTRAINT",
    "INVARIANT",
    "PROPERTY",
    "VIEW",
    "SYMMETRY",
)
_KEYWORD: Final = re.compile(rf"(?<![\w\"])({'|'.join((*_SINGULAR, *_SECTIONS))})(?![\w\"])")
_COMMENT: Final = re.compile(r"\\\*[^\n]*|\(\*.*?\*\)", re.DOTALL)
_BOUNDS: Final = ("CONSTANT", "CONSTRAINT", "ACTION_CONSTRAINT")


@dataclass(frozen=True, slots=True)
class Config:
    """Section names (singular) and their texts, in file order; a section may appear several times."""

    sections: tuple[tuple[str, str], ...]

    def text(self) -> str:
        """Return the configuration as TLC reads it."""
        return "".join(f"{name} {body}\n" for name, body in self.sections)

    def of(self, section: str) -> tuple[str, ...]:
        """Return the texts of all sections with this name."""
        return tuple(body for name, body in self.sections if name == section)

    def names(self, section: str) -> tuple[str, ...]:
        """Return the names listed under INVARIANT, PROPERTY, INIT, ..."""
        return tuple(name for body in self.of(section) for name in body.split())

    @property
    def properties(self) -> tuple[str, ...]:
        """All properties to check: invariants, then properties."""
        return self.names("INVARIANT") + self.names("PROPERTY")

    def without(self, *sections: str) -> "Config":
        return Config(tuple(entry for entry in self.sections if entry[0] not in sections))

    def with_section(self, section: str, body: str) -> "Config":
        """Return a copy with one more section."""
        return Config((*self.sections, (section, body)))

    def asking(self, name: str, section: str | None = None) -> "Config":
        """Return a copy that checks only the property `name`.

        Its section is looked up; the default is INVARIANT.
        """
        found = section or ("PROPERTY" if name in self.names("PROPERTY") else "INVARIANT")
        return self.without("INVARIANT", "PROPERTY").with_section(found, name)

    def specified(self, specification: str) -> "Config":
        """Return a copy with another specification."""
        return self.without("SPECIFICATION", "INIT", "NEXT").with_section("SPECIFICATION", specification)

    def behaviour(self, init: str, next_name: str) -> "Config":
        """Return the constants and constraints with INIT and NEXT: no property, view or symmetry."""
        bounds = tuple(entry for entry in self.sections if entry[0] in _BOUNDS)
        return Config((*bounds, ("INIT", init), ("NEXT", next_name)))

    def model_values(self) -> frozenset[str]:
        """Return the identifiers that only the configuration defines: n1 and n2 in `Nodes = {n1, n2}`."""
        assigned: set[str] = set()
        known: set[str] = set()
        for body in self.of("CONSTANT"):
            words = re.sub(r'"(?:[^"\\]|\\.)*"', "", body)
            known |= set(re.findall(r"(\w+)\s*(?:=|<-)", words))
            known |= set(re.findall(r"<-\s*(?:\[\w+\]\s*)?(\w+)", words))
            assigned |= set(re.findall(r"[A-Za-z_]\w*", words))
        return frozenset(assigned - known - {"TRUE", "FALSE"})


def parse(text: str) -> Config:
    """Split a configuration into its sections. Text before the first keyword is ignored."""
    bare = _COMMENT.sub(" ", text)
    parts = _KEYWORD.split(bare)
    entries: Iterable[tuple[str, str]] = zip(parts[1::2], parts[2::2], strict=True)
    return Config(tuple((_SINGULAR.get(name, name), body.strip()) for name, body in entries))
