"""Writes the page of all requests and their fields, from the tables of the wire cases.

python -m mqproof.conformance.pages.request_page
"""

from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from typing import Final

from mqproof.conformance.wire.model import Field, Operation, Since
from mqproof.conformance.wire.operations import ALL
from mqproof.report.markdown import anchor
from mqproof.report.write import write_text

_ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = _ROOT / "docs" / "reference" / "conformance" / "requests.md"

_INTRODUCTION: Final = """# Requests and their fields

This page is for developers of brokers and clients: it lists every request of the wire cases, with its fields.

- **Bold** fields are mandatory.
- I and L are signed decimal numbers of 32 and 64 bits, B is `true` or `false`, other fields are text.
- ⁵ marks requests and fields that 5.x added.
- A body is JSON unless the described section names another format.

`python -m mqproof.conformance.pages.request_page` writes this page.

| code | name | server | fields | body | described in |
|---|---|---|---|---|---|
"""


def page() -> str:
    return _INTRODUCTION + "".join(_rows())


def _rows() -> Iterator[str]:
    for operation in sorted(ALL, key=lambda one: one.code):
        fields = ", ".join(map(_field, operation.fields)) or "–"
        body = "yes" if operation.body else "–"
        name = operation.name + _since(operation)
        section = _link(operation.source)
        yield f"| {operation.code} | {name} | {operation.server} | {fields} | {body} | {section} |\n"


def _link(source: str) -> str:
    chapter, _, quoted = source.partition(", ")
    title = quoted.strip('"')
    return f"[{title}]({relpath(_ROOT / chapter, PAGE.parent)}#{anchor(title)})"


def _field(field: Field) -> str:
    kind = "" if field.kind.value == "S" else f" {field.kind.value}"
    name = f"**{field.name}**" if field.required else field.name
    return f"{name}{kind}{_since(field)}"


def _since(what: Field | Operation) -> str:
    return "⁵" if what.since is Since.V5 else ""


if __name__ == "__main__":
    write_text(PAGE, page())
