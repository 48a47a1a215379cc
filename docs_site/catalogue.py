"""The page of all invariants, from spec/invariants.toml."""

import re
from collections.abc import Iterator
from typing import Final

from docs_site.markdown import code, escaped, table
from mqproof.report.markdown import anchor
from mqproof.spec.catalogue import LAYERS, Invariant, catalogue

_SOURCE: Final = re.compile(r'docs/reference/(\S+\.md), "([^"]+)"')
_HEAD: Final = """# Catalogue of invariants

Generated from `spec/invariants.toml` when the site is built. Every layer checks the same named
invariants. `mqproof coverage` prints the same table, and `mqproof coverage --id ID` prints one entry.

In the table, "n/a" means that a layer cannot check the invariant, and "open" means that its check is not
built yet. "Source" is a section of the protocol documentation.
"""


def page() -> str:
    """Return the page as Markdown."""
    invariants = list(catalogue().values())
    overview = table(["id", "name", *LAYERS], map(_row, invariants))
    return "\n".join([_HEAD, overview, *map(_entry, invariants)])


def _row(invariant: Invariant) -> list[str]:
    states = (invariant.cell(layer) for layer in LAYERS)
    return [f"[{invariant.id}](#{invariant.id.lower()})", invariant.name, *states]


def _entry(invariant: Invariant) -> str:
    parts = [
        f"## {invariant.id} {invariant.name} {{: #{invariant.id.lower()} }}",
        escaped(invariant.statement),
        f"Kind: {invariant.kind}. Scope: {escaped(invariant.scope)}. Source: {_link(invariant.source)}.",
    ]
    if invariant.rules:
        parts.append(f"Anomalies that it covers: {', '.join(map(code, invariant.rules))}.")
    parts.append(table(["layer", "check", "mutants that the check must catch"], _layers(invariant)))
    return "\n\n".join(parts)


def _link(source: str) -> str:
    """A source such as `docs/reference/protocol/storing.md, "Flush"` as a link from this page."""
    match = _SOURCE.fullmatch(source)
    if match is None:
        return escaped(source)
    return f"[{match[2]}]({match[1]}#{anchor(match[2])})"


def _layers(invariant: Invariant) -> Iterator[list[str]]:
    for layer in LAYERS:
        if layer in invariant.checks:
            checks = ", ".join(map(code, invariant.checks[layer]))
            yield [layer, checks, ", ".join(map(code, invariant.mutants.get(layer, ())))]
        else:
            yield [layer, f"none: {escaped(invariant.why[layer])}" if layer in invariant.why else "open", ""]
