"""Requests of all codes, valid ones and those with a value at or beyond a limit, chosen by numbers."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from msgspec import inspect

from mqproof.fuzz.hostile.field_values import Path, beyond, fields_of, good, leaves, replaced
from mqproof.impl.broker.processors.all_processors import PROCESSORS
from mqproof.impl.dledger.wire import REQUESTS as OF_MEMBERS
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode, request_name
from mqproof.impl.remoting.command import Command, encode, new_request
from mqproof.impl.remoting.requests import FORMS, Form

CODES: Final = tuple(code for code in PROCESSORS if code in FORMS)
"""The request codes of a broker."""
MEMBER_CODES: Final = tuple(OF_MEMBERS)
_V2: Final = (
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.SEND_REPLY_MESSAGE_V2,
)
_TEXT_BODY: Final = (None, str, bytes)


@dataclass(frozen=True, slots=True)
class Crafted:
    """A request with a value beyond its limit."""

    about: str
    request: Command


def valid(code: int, names: dict[str, str]) -> Command:
    """Return a valid request. `names` replaces the values of fields, such as topic and group."""
    form = FORMS[code]
    fields = {**_fields(form), **{name: value for name, value in names.items() if name in _fields(form)}}
    return new_request(code, _on_wire(code, fields), _body(form, names))


def beyond_limit(code: int, field: int, value: int) -> Crafted | None:
    """Return a request with one value beyond its limit; None if the code has no field."""
    form = FORMS[code]
    names = list(_fields(form))
    places = _places(code)
    if not names and not places:
        return None
    at = field % (len(names) + len(places))
    if at < len(names):
        kind = dict(fields_of(_header(form)))[names[at]]
        values = _beyond(kind)
        chosen = values[value % len(values)]
        fields = {**_fields(form), names[at]: _text(chosen)}
        about = f"{request_name(code)} with {names[at]} beyond its limit"
        return Crafted(about, new_request(code, _on_wire(code, fields), _body(form, {})))
    place, kind = places[at - len(names)]
    values = _beyond(kind)
    body = replaced(good(inspect.type_info(form.body)), place, values[value % len(values)])
    about = f"{request_name(code)} with {'.'.join(map(str, place))} beyond its limit"
    request = new_request(code, _on_wire(code, _fields(form)), json.dumps(body).encode())
    return Crafted(about, request)


def member_beyond_limit(code: int, field: int, value: int, common: dict[str, Any]) -> Crafted:
    """Return a request to a member of a group with one value beyond its limit."""
    kind = inspect.type_info(OF_MEMBERS[code])
    whole = {**good(kind), **common}
    places = [(place, one) for place, one in leaves(kind) if _is_limited(one) and len(place) == 1]
    place, of = places[field % len(places)]
    values = _beyond(of)
    body = replaced(whole, place, values[value % len(values)])
    about = f"member request {code} with {place[0]} beyond its limit"
    return Crafted(about, new_request(code, {}, json.dumps(body).encode()))


def member_request(kind: int, **fields: object) -> Command:
    """Return a request to a member of a group. `kind` is its request code."""
    return new_request(kind, {}, json.dumps(fields).encode())


@dataclass(frozen=True, slots=True)
class BadFrame:
    """Bytes that a correct server refuses or closes the connection for."""

    about: str
    data: bytes
    opaque: int = -1
    """The opaque of the answer, if there may be one."""


def _framed(about: str, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> BadFrame:
    request = new_request(code, fields or {}, body)
    return BadFrame(about, encode(request), request.opaque)


def _long_frame(choice: int) -> BadFrame:
    return BadFrame("a frame of more than 16 MiB", bytes((1, 0, 0, choice)) + bytes(100))


def _long_header(choice: int) -> BadFrame:
    fields = {"topic": "T", "queueId": "0", "x": "x" * ((1 << 20) + choice)}
    text = json.dumps({"code": RequestCode.GET_MAX_OFFSET, "opaque": choice, "flag": 0, "extFields": fields})
    header = text.encode()
    data = (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header
    return BadFrame("a header of more than 1 MiB", data, choice)


def _many_fields(choice: int) -> BadFrame:
    fields = {"topic": "T", "queueId": "0"} | {f"f{number}": "" for number in range(999 + choice % 9)}
    return _framed(f"{len(fields)} fields", RequestCode.GET_MAX_OFFSET, fields)


def _nested(choice: int) -> BadFrame:
    levels = 20 + choice % 40
    lists = b"[" * levels + b"]" * levels
    body = b'{"groupName":"T","groupRetryPolicy":{"a":' + lists + b"}}"
    return _framed(f"{levels} nested lists", RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)


def _long_body(choice: int) -> BadFrame:
    body = b'{"groupName":"T"}' + b" " * ((1 << 20) + choice)
    return _framed("a body of more than 1 MiB", RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)


def _bad_topic(choice: int) -> BadFrame:
    name = ("../../hostile", "T" * 128, "T\0", "T/T", " ", "T.T")[choice % 6]
    fields = headers.write(headers.UpdateTopicRequest(name, "TBW102", 1, 1, 6))
    return _framed(f"the topic {name[:20]!r}", RequestCode.UPDATE_AND_CREATE_TOPIC, fields)


BAD_FRAMES: Final[tuple[Callable[[int], BadFrame], ...]] = (
    _long_frame,
    _long_header,
    _many_fields,
    _nested,
    _long_body,
    _bad_topic,
)
"""Each returns a frame that a choice varies."""


def _header(form: Form) -> type:
    assert form.header is not None
    return form.header


@cache
def _fields(form: Form) -> dict[str, str]:
    if form.header is None:
        return {}
    return {name: _text(good(kind, name)) for name, kind in fields_of(form.header)}


def _body(form: Form, names: dict[str, str]) -> bytes:
    if form.body in _TEXT_BODY:
        return b"x" if form.body is bytes else b""
    text = json.dumps(good(inspect.type_info(form.body)))
    return text.replace('"T"', json.dumps(names.get("topic", "T"))).encode()


@cache
def _places(code: int) -> Sequence[tuple[Path, inspect.Type]]:
    form = FORMS[code]
    if form.body in _TEXT_BODY:
        return ()
    return [(place, kind) for place, kind in leaves(inspect.type_info(form.body)) if _is_small(kind)]


def _is_small(kind: inspect.Type) -> bool:
    """Return whether values beyond the limit have few bytes; long lists are left to the tests of limits."""
    return isinstance(kind, inspect.IntType | inspect.BoolType) or _is_short_text(kind)


def _is_short_text(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.StrType) and kind.max_length is not None and kind.max_length < 1 << 17


def _is_limited(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.IntType) or _is_short_text(kind)


def _beyond(kind: inspect.Type) -> list[Any]:
    return list(beyond(kind))


def _on_wire(code: int, fields: dict[str, str]) -> dict[str, str]:
    if code not in _V2:
        return dict(fields)
    return {headers._LETTERS[name]: value for name, value in fields.items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
