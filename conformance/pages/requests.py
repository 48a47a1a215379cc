"""The page of all requests and their fields, made of the tables that the cases are made of.

python -m mqproof.conformance.pages.requests
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mqproof.conformance.wire.model import Field, Operation, Since
from mqproof.conformance.wire.operations import ALL
from mqproof.report.write import write_text
from mqproof.spec.checkout import expect_checkout

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "conformance" / "requests.md"

_INTRODUCTION: Final = """# Requests and their fields

Every operation that the wire cases ask for. **Bold** fields are mandatory; I and L are signed decimal numbers
of 32 and 64 bit, B is `true` or `false`, the others are text; ⁵ marks what came with 5.x. A body is JSON
unless docs/protocol.md says otherwise. Made by `python -m mqproof.conformance.pages.requests`.

| code | name | asked of | fields | body | described in protocol.md |
|---|---|---|---|---|---|
"""


def page() -> str:
    return _INTRODUCTION + "".join(_rows())


def _rows() -> Iterator[str]:
    for operation in sorted(ALL, key=lambda one: one.code):
        fields = ", ".join(map(_field, operation.fields)) or "–"
        body = "yes" if operation.body else "–"
        name = operation.name + _since(operation)
        yield f"| {operation.code} | {name} | {operation.server} | {fields} | {body} | {operation.source} |\n"


def _field(field: Field) -> str:
    kind = "" if field.kind.value == "S" else f" {field.kind.value}"
    name = f"**{field.name}**" if field.required else field.name
    return f"{name}{kind}{_since(field)}"


def _since(what: Field | Operation) -> str:
    return "⁵" if what.since is Since.V5 else ""


if __name__ == "__main__":
    expect_checkout("mqproof.conformance.pages.requests")
    write_text(PAGE, page())
