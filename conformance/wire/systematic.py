"""The cases that are derived from an operation's fields alone.

Numbers are stable: 1 to 9 are about the frame, 10 to 299 about the header's fields (ten for each, in the
order of the table), 300 to 309 about the body. Handwritten cases begin at 400.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Header
from mqproof.conformance.wire.model import (
    ANY,
    Call,
    Case,
    Expect,
    Field,
    Kind,
    Manner,
    Operation,
    Strength,
)
from mqproof.conformance.wire.requests import valid

HANDWRITTEN: Final = 400
_BODY: Final = 300
_FIELD: Final = 10

_BINARY_CODE_MAX: Final = 32_767
_LONG_TEXT: Final = "x" * 40_000
_REFUSED: Final = Expect(codes=(), not_codes=(0,))
_EXTREMES: Final = {
    Kind.INT: (2**31 - 1, -(2**31)),
    Kind.LONG: (2**63 - 1, -(2**63)),
}
_FRAME: Final = chapters.REMOTING_COMMAND
_HEADERS: Final = chapters.OPERATION_HEADERS


def systematic(operation: Operation) -> Iterator[Case]:
    """Yield all cases of an operation, in the order of their numbers."""
    yield from _frame_cases(operation)
    for position, field in enumerate(operation.fields, 1):
        yield from _field_cases(operation, field, _FIELD * position)
    if isinstance(operation.body, str) and operation.body.startswith("{"):
        yield from _body_cases(operation)


def _frame_cases(operation: Operation) -> Iterator[Case]:
    request, expect = valid(operation), operation.expect
    yield _case(operation, 1, "is answered as described", Call(request, expect))
    if operation.code <= _BINARY_CODE_MAX:
        binary = replace(request, header=Header.BINARY)
        yield _case(
            operation,
            2,
            "is answered in the same way with a binary header",
            Call(binary, expect),
            source=_FRAME,
        )
    extra = replace(request, fields={**request.fields, "wireUnknownField": "1"})
    yield _case(operation, 3, "ignores an unknown field", Call(extra, expect), source=_HEADERS)
    for number, manner, title in (
        (4, Manner.OPAQUE_REUSED, "answers each of three requests with one opaque"),
        (5, Manner.ONEWAY, "is never answered when it is one-way"),
        (6, Manner.BATCH, "answers each of five frames in one write"),
        (7, Manner.CUTS, "is answered wherever its frame is split"),
    ):
        yield _case(
            operation, number, title, Call(request, expect, manner, operation.cut_step), source=_FRAME
        )
    lowest = Call(replace(request, opaque=-(2**31)), expect)
    highest = Call(replace(request, opaque=2**31 - 1), expect)
    yield _case(operation, 8, "repeats the smallest and the largest opaque", lowest, highest, source=_FRAME)


def _field_cases(operation: Operation, field: Field, number: int) -> Iterator[Case]:
    request = valid(operation)

    def case(at: int, title: str, value: str | None, expect: Expect, strength: Strength) -> Case:
        others = {name: text for name, text in request.fields.items() if name != field.name}
        given = others if value is None else {**others, field.name: value}
        step = Call(replace(request, fields=given), expect)
        since = max(operation.since, field.since)
        made = _case(operation, number + at, f"{field.name} {title}", step, source=_HEADERS)
        return replace(made, since=since, strength=_weaker(operation.strength, strength))

    if field.required:
        yield case(0, "missing is refused", None, _REFUSED, Strength.SHOULD)
    if field.kind is not Kind.TEXT and field.required:
        yield case(1, f"of another type than {field.kind.name} is refused", "x1", _REFUSED, Strength.SHOULD)
    elif field.kind is not Kind.TEXT:
        yield case(1, f"of another type than {field.kind.name} is answered", "x1", ANY, Strength.MUST)
    if field.kind in _EXTREMES:
        greatest, least = _EXTREMES[field.kind]
        yield case(2, f"{greatest} is answered", str(greatest), ANY, Strength.MUST)
        yield case(3, f"{least} is answered", str(least), ANY, Strength.MUST)
        beyond = str(greatest + 1)
        yield case(4, f"{beyond}, beyond its type, is answered", beyond, ANY, Strength.MUST)
    elif field.kind is Kind.TEXT:
        yield case(5, "empty is answered", "", ANY, Strength.MUST)
        yield case(6, f"of {len(_LONG_TEXT)} characters is answered", _LONG_TEXT, ANY, Strength.MUST)


def _body_cases(operation: Operation) -> Iterator[Case]:
    """Yield cases for a body that is one JSON object."""
    assert isinstance(operation.body, str)
    request = valid(operation)
    unknown = '{"wireUnknownMember":[1],' + operation.body[1:]
    for number, title, body, expect in (
        (_BODY, "without its body is answered", "", ANY),
        (_BODY + 1, "with an incomplete body is answered", operation.body[:-1], ANY),
        (_BODY + 2, "with a body that is an array is answered", "[1]", ANY),
        (_BODY + 3, "ignores an unknown member of the body", unknown, operation.expect),
    ):
        step = Call(replace(request, body=body), expect)
        yield _case(operation, number, title, step, source=chapters.JSON_BODIES)


def _case(operation: Operation, number: int, title: str, *asks: Call, source: str | None = None) -> Case:
    return Case(
        id=f"remoting/{operation.slug}/{number}",
        title=f"{operation.name} {title}",
        server=operation.server,
        source=source or operation.source,
        steps=(*operation.before, *asks),
        since=operation.since,
        strength=operation.strength,
    )


def _weaker(one: Strength, other: Strength) -> Strength:
    order = list(Strength)
    return max(one, other, key=order.index)
