"""Values within and beyond the declared limits of header and body fields."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

Path = tuple[str | int, ...]
"""The place of a value in a JSON document."""

HUGE = (2**31, 2**63, -(2**63) - 1, 2**70, -(2**70))


def unbounded(kind: inspect.Type) -> bool:
    """Return whether a value of this type has no declared limit of its own."""
    match kind:
        case inspect.StrType():
            return kind.max_length is None
        case inspect.IntType():
            return kind.ge is None or kind.le is None
        case inspect.ListType() | inspect.DictType():
            return kind.max_length is None
    return False


def fields_of(struct: type) -> Iterator[tuple[str, inspect.Type]]:
    """Yield the name on the wire and the type of each field."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        yield field.encode_name, plain(field.type)


def plain(kind: inspect.Type) -> inspect.Type:
    """Return the type without None and UNSET; of several types, the first."""
    if isinstance(kind, inspect.Metadata):
        return plain(kind.type)
    if isinstance(kind, inspect.UnionType):
        kinds = [one for one in kind.types if not isinstance(one, (inspect.NoneType, inspect.AnyType))]
        return plain(next(one for one in kinds if "Unset" not in type(one).__name__))
    return kind


def good(kind: inspect.Type, name: str = "", *, least: bool = False) -> Any:
    """Return a valid value as JSON builtins, without optional fields if `least`. `name` is its field's."""
    constants = {
        "consumeFromWhere": "CONSUME_FROM_MAX_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
    }
    kind = plain(kind)
    match kind:
        case inspect.StrType():
            return constants.get(name, "T")
        case inspect.IntType():
            return 1
        case inspect.BoolType():
            return False
        case inspect.ListType():
            return [good(kind.item_type)]
        case inspect.DictType():
            key = good(kind.key_type)
            return {str(key): good(kind.value_type)}
        case inspect.StructType():
            fields = [field for field in kind.fields if field.required or not least]
            return {field.encode_name: good(field.type, field.encode_name) for field in fields}
    return "T"


def leaves(kind: inspect.Type, at: Path = ()) -> Iterator[tuple[Path, inspect.Type]]:
    """Yield every value of `good(kind)` with its place and type, containers included."""
    kind = plain(kind)
    if at:
        yield at, kind
    match kind:
        case inspect.ListType():
            yield from leaves(kind.item_type, (*at, 0))
        case inspect.DictType():
            yield from leaves(kind.value_type, (*at, str(good(kind.key_type))))
        case inspect.StructType():
            for field in kind.fields:
                yield from leaves(field.type, (*at, field.encode_name))


def beyond(kind: inspect.Type) -> Iterator[Any]:
    """Yield values beyond the limits of a type, as JSON builtins."""
    match kind:
        case inspect.StrType():
            assert kind.max_length is not None
            yield "x" * (kind.max_length + 1)
        case inspect.IntType():
            assert kind.ge is not None
            assert kind.le is not None
            yield from (
                int(kind.ge) - 1,
                int(kind.le) + 1,
                *(one for one in HUGE if not kind.ge <= one <= kind.le),
            )
            yield "1e30"
            yield 1.5
            yield "nonsense"
        case inspect.BoolType():
            yield "maybe"
            yield 7
        case inspect.ListType():
            assert kind.max_length is not None
            yield [good(kind.item_type, least=True)] * (kind.max_length + 1)
            yield "no list"
        case inspect.DictType():
            assert kind.max_length is not None
            value = good(kind.value_type, least=True)
            if not isinstance(plain(kind.key_type), inspect.IntType):
                yield {"x" * 2000: value}
            yield {str(number): value for number in range(kind.max_length + 1)}
            yield 7
        case inspect.StructType():
            yield 7


def replaced(document: Any, at: Path, value: Any) -> Any:
    """Return a copy of the document with another value at a place."""
    copy = msgspec.to_builtins(document)
    inner = copy
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return copy
