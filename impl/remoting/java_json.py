"""JSON as RocketMQ's Java peers write it, in which keys that are not strings are not quoted.

They send `{0:"10.0.0.1:10911"}` and `{{"topic":"T","queueId":0}:7}`. `quote_keys` turns such text into
standard JSON: an object used as a key becomes a string with its text. `write` writes either dialect. See
docs/reference/protocol/framing.md, "JSON bodies".
"""

import json
import re
from io import StringIO
from json.encoder import encode_basestring
from typing import Any, Final, TypeVar

import msgspec

_T = TypeVar("_T")

# An unterminated string is a token too. Otherwise each quote in it would start a search for its end.
_TOKEN: Final = re.compile(r"""\s+|"(?:[^"\\]|\\.)*+"?|[{}\[\],:]|[^\s{}\[\],:"]+""", re.DOTALL)

# The text before an integer key without quotes, and the integer. Strings are passed over as a whole.
_TO_INTEGER_KEY: Final = re.compile(
    r"""((?:[^"{,]++|"(?:[^"\\]|\\.)*+"|[{,](?!-?\d++:))*+[{,])(-?\d++)(?=:)""", re.DOTALL
)

_DEPTH_MAX: Final = 100
"""The maximum nesting of brackets. No real body has a depth of ten."""

_TOKENS_JOINED: Final = 4096
"""The number of tokens after which they are joined. Separate tokens take twenty times as much memory."""


class BodyError(ValueError):
    """A body is not the JSON that its operation expects. The message says where."""


class ObjectKey:
    """An object that is a key of a table: its standard JSON text, members sorted. Compared by that text."""

    __slots__ = ("text",)

    def __init__(self, value: Any) -> None:
        self.text = json.dumps(msgspec.to_builtins(value), sort_keys=True, separators=(",", ":"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectKey) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"ObjectKey({self.text})"

    def as_a(self, kind: type[_T]) -> _T:
        """Return the object. Raises BodyError when it is not a `kind`."""
        return read(kind, self.text.encode())


def read(kind: type[_T], body: bytes) -> _T:
    """Return the body as a `kind`. Numbers written as strings and unquoted keys are accepted.

    Raises:
        BodyError: not JSON in either dialect, or not of the shape of `kind`.
    """
    try:
        return msgspec.json.decode(body, type=kind, strict=False, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        raise BodyError(f"{kind.__name__}: {error}") from None
    except (ValueError, RecursionError):  # msgspec's own errors, and invalid UTF-8
        pass
    try:
        text = body.decode()
        try:
            return msgspec.json.decode(_integer_keys_quoted(text), type=kind, strict=False, dec_hook=_decoded)
        except (msgspec.DecodeError, RecursionError):  # other keys have no quotes either
            return msgspec.json.decode(quote_keys(text), type=kind, strict=False, dec_hook=_decoded)
    except (ValueError, RecursionError) as error:
        raise BodyError(f"{kind.__name__}: {error}") from None


def _integer_keys_quoted(text: str) -> str:
    """Return `text` with every integer key quoted: all that most Java peers leave unquoted.

    It takes a tenth of the time of `quote_keys`. Text that is not JSON in either dialect stays invalid JSON.
    """
    out, position = StringIO(), 0  # a list of the parts would take fifty times the memory of the text
    while found := _TO_INTEGER_KEY.match(text, position):
        out.write(f'{found[1]}"{found[2]}"')
        position = found.end()
    out.write(text[position:])
    return out.getvalue()


def quote_keys(text: str) -> str:
    """Return `text` with every unquoted key quoted.

    Text that is not JSON in either dialect stays invalid JSON.

    Raises:
        BodyError: a bracket is unmatched, the nesting is too deep, or an object used as a key contains
            another one. Each such level would quote text that is already quoted, and double its length.
    """
    # One entry for each open bracket: where its text starts in `out`, and whether it is a key.
    done: list[str] = []
    out: list[str] = []
    open_at: list[tuple[int, bool]] = []
    brackets: list[str] = []
    key_next = False
    keys_open = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token.isspace():
            continue
        if len(out) >= _TOKENS_JOINED and not keys_open:
            done.append("".join(out))
            out.clear()
        if token in "{[":
            if len(open_at) >= _DEPTH_MAX or (key_next and keys_open):
                raise BodyError(f"brackets nested too deeply at character {match.start()}")
            keys_open += key_next
            open_at.append((len(out), key_next))
            brackets.append(token)
            out.append(token)
            key_next = token == "{"
        elif token in "}]":
            out.append(token)
            if not open_at:
                raise BodyError(f"unmatched {token!r} at character {match.start()}")
            start, was_key = open_at.pop()
            brackets.pop()
            keys_open -= was_key
            if was_key:
                out[start:] = [json.dumps("".join(out[start:]), ensure_ascii=False)]
            key_next = False
        elif token == ",":
            out.append(token)
            key_next = bool(brackets) and brackets[-1] == "{"
        elif token == ":":
            out.append(token)
            key_next = False
        else:
            quoted = token.startswith('"')
            out.append(json.dumps(token.strip("'")) if key_next and not quoted else token)
            key_next = False
    if open_at:
        raise BodyError(f"{len(open_at)} bracket(s) never closed")
    return "".join([*done, *out])


def write(value: Any, *, standard: bool = False) -> bytes:
    """Return a struct, dict, list or scalar as JSON.

    With `standard`: strictly standard JSON, as RocketMQ 4.9.4 and later request it (sorted quoted keys,
    escaped slashes, ASCII only). Otherwise: keys that are integers or objects are not quoted, members that
    are None are omitted, and text is UTF-8.
    """
    if standard and (quick := _quick(value)) is not None:
        return quick
    plain = msgspec.to_builtins(value, str_keys=False, enc_hook=_encoded)
    if standard:
        return _standard(plain).encode()
    return _raw(plain).encode()


def _decoded(kind: type, value: Any) -> Any:
    if kind is ObjectKey and isinstance(value, str):
        return ObjectKey(json.loads(value))
    raise NotImplementedError(kind)


def _encoded(value: Any) -> Any:
    if isinstance(value, ObjectKey):
        return (value.text,)  # no other key is a tuple
    raise NotImplementedError(type(value))


def _quick(value: Any) -> bytes | None:
    """Return the same text as `_standard`, about twenty times as fast, or None if the text would differ.

    A broker has tables of tens of thousands of topics, and serves no client while it encodes one.
    """
    try:
        data = msgspec.json.encode(value, order="sorted")
    except (TypeError, ValueError, OverflowError):  # keys that are objects, text that is not Unicode
        return None
    if b":null" in data or b"\\" in data or b"\x7f" in data or not data.isascii():
        return None
    return data.replace(b"/", b"\\/")


def _standard(plain: Any) -> str:
    text = json.dumps(_without_none(plain), sort_keys=True, separators=(",", ":"))
    return text.replace("/", "\\/").replace("\x7f", "\\u007f")


def _without_none(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {_key_text(key): _without_none(value) for key, value in plain.items() if value is not None}
    if isinstance(plain, list):
        return [_without_none(value) for value in plain]
    return plain


def _key_text(key: Any) -> str:
    return str(key[0] if isinstance(key, tuple) else key)


def _raw(plain: Any) -> str:
    if isinstance(plain, str):
        return encode_basestring(plain)
    if type(plain) is int:  # most values of a table; `json.dumps` takes five times as long
        return str(plain)
    if isinstance(plain, dict):
        members = [
            f"{key[0] if isinstance(key, tuple) else _raw(key)}:{_raw(value)}"
            for key, value in plain.items()
            if value is not None
        ]
        return "{" + ",".join(members) + "}"
    if isinstance(plain, list):
        return "[" + ",".join(map(_raw, plain)) + "]"
    return json.dumps(plain)  # a fraction, true, false or null
