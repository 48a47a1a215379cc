"""The page of the limits of requests: what a broker and a name server accept on the remoting port."""

from collections.abc import Iterator
from typing import Final

from msgspec import inspect

from docs_site.markdown import code, table
from mqproof.impl.remoting.budget import INCOMPLETE_BYTES_MAX, UNANSWERED_BYTES_MAX
from mqproof.impl.remoting.codes import request_name
from mqproof.impl.remoting.command import FIELDS_MAX, HEADER_BYTES_MAX
from mqproof.impl.remoting.frame import FRAME_BYTES_MAX
from mqproof.impl.remoting.requests import FORMS

_HEAD: Final = """# Limits of requests

Generated from the declarations in `impl/remoting/` when the site is built. A broker and a name server
refuse a value beyond its limit with SYSTEM_ERROR and a remark that names the field. A frame that is
malformed or too long closes its connection. [Bounds](../how-to/broker.md#bounds) describes the shares of
connections and addresses.
"""

_WORDS: Final = {
    -(2**63): "-2^63",
    2**63 - 1: "2^63-1",
    -(2**31): "-2^31",
    2**31 - 1: "2^31-1",
}


def page() -> str:
    """Return the page as Markdown."""
    whole = table(
        ["limit", "value"],
        (
            ["a frame", f"{FRAME_BYTES_MAX} bytes"],
            ["a header", f"{HEADER_BYTES_MAX} bytes, {FIELDS_MAX} fields"],
            ["incomplete frames of all connections", f"{INCOMPLETE_BYTES_MAX} bytes"],
            ["unanswered requests of all connections", f"{UNANSWERED_BYTES_MAX} bytes"],
        ),
    )
    parts = [_HEAD, whole, "## Requests\n", table(["code", "request", "header", "body"], _requests())]
    parts += ["## Header fields\n", table(["header", "field", "limit"], _headers())]
    parts += ["## Body fields\n", table(["body", "field", "limit"], _bodies())]
    return "\n".join(parts)


def limit(kind: inspect.Type) -> str:
    """Return the limit of a type as text."""
    match kind:
        case inspect.Metadata():
            return limit(kind.type)
        case inspect.UnionType():
            texts = [limit(one) for one in kind.types if not isinstance(one, inspect.NoneType)]
            return " or ".join(dict.fromkeys(text for text in texts if text))
        case inspect.StrType():
            return f"at most {kind.max_length} characters" if kind.max_length is not None else "text"
        case inspect.IntType():
            return f"{_number(kind.ge)} to {_number(kind.le)}"
        case inspect.BoolType():
            return "true or false"
        case inspect.ListType():
            return f"at most {kind.max_length} of: {limit(kind.item_type)}"
        case inspect.DictType():
            keys, values = limit(kind.key_type), limit(kind.value_type)
            return f"at most {kind.max_length} of: {keys}, with {values}"
        case inspect.StructType():
            return f"a {kind.cls.__name__}"
        case inspect.AnyType():
            return "any value, nested at most 16 levels deep"
    return ""


def _number(value: float | None) -> str:
    if value is None:
        return "any number"
    return _WORDS.get(int(value), str(value))


def _requests() -> Iterator[list[str]]:
    for number, form in sorted(FORMS.items()):
        header = form.header.__name__ if form.header else "none"
        body = "not used"
        if form.body is not None:
            name = {str: "text", bytes: "messages"}.get(form.body) or form.body.__name__
            body = f"{name}, at most {form.body_bytes_max} bytes"
        yield [str(number), code(request_name(number)), header, body]


def _headers() -> Iterator[list[str]]:
    for header in sorted(
        {form.header for form in FORMS.values() if form.header}, key=lambda one: one.__name__
    ):
        yield from _fields(inspect.type_info(header))


def _bodies() -> Iterator[list[str]]:
    waiting = [inspect.type_info(form.body) for form in FORMS.values() if form.body not in (None, str, bytes)]
    seen: set[type] = set()
    while waiting:
        kind = waiting.pop(0)
        if not isinstance(kind, inspect.StructType):
            waiting += _inner(kind)
        elif kind.cls not in seen:
            seen.add(kind.cls)
            yield from _fields(kind)
            waiting += [field.type for field in kind.fields]


def _inner(kind: inspect.Type) -> list[inspect.Type]:
    match kind:
        case inspect.Metadata():
            return [kind.type]
        case inspect.UnionType():
            return list(kind.types)
        case inspect.ListType():
            return [kind.item_type]
        case inspect.DictType():
            return [kind.key_type, kind.value_type]
    return []


def _fields(kind: inspect.Type) -> Iterator[list[str]]:
    assert isinstance(kind, inspect.StructType)
    for field in kind.fields:
        yield [kind.cls.__name__, code(field.encode_name), limit(field.type)]
