"""RocketMQ's configuration files: Java properties, `key=value` lines.

Reads lines, comments and continuation lines. It records the position of each value, so that an error can name
its line.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar


class ConfigError(Exception):
    """A configuration that cannot be used.

    The message is one line: file, line, key, value found and value expected.
    """


class ProtectedKeyError(Exception):
    """A remote request to change a protected key."""


@dataclass(frozen=True, slots=True)
class Property:
    value: str
    where: str
    """Where the property is defined, as FILE:LINE."""


def as_text(value: Any) -> str:
    """Return a value as it is written in a file; the elements of a tuple are separated by `;`."""
    if type(value) is tuple:  # not an Address, which is a tuple too
        return ";".join(map(as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Option:
    """The conversion between one key of the file and one field of a configuration, in both directions."""

    field: str
    convert: Callable[[str], Any]
    """Converts text to the value; raises ValueError with a description of the expected value."""
    show: Callable[[Any], str] = as_text


def parse(text: str, where: str) -> dict[str, Property]:
    """Return the properties by key; if a key occurs twice, the last one wins. `where` names the file.

    Raises:
        ConfigError: a line without a separator.
    """
    found = {}
    for first, _, line in _entries(text):
        key, value = _split(line, f"{where}:{first}")
        found[key] = Property(value, f"{where}:{first}")
    return found


def with_values(text: str, values: Mapping[str, str]) -> str:
    """Return the text of a file with these values added at its end; all other lines stay.

    Raises:
        ConfigError: a line without a separator.
    """
    gone: set[int] = set()
    for first, last, line in _entries(text):
        key, _ = _split(line, f"line {first}")
        if key in values:
            gone.update(range(first, last + 1))
    kept = [line for number, line in enumerate(text.splitlines(), start=1) if number not in gone]
    return "".join(f"{line}\n" for line in [*kept, *(f"{key}={value}" for key, value in values.items())])


def _entries(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the first and last line number, counted from 1, and the joined text of each entry."""
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not pending and (not line or line[0] in "#!"):
            continue
        first = first if pending else number
        pending += line
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        yield first, number, pending
        pending = ""


def apply(properties: Mapping[str, Property], options: Mapping[str, Option]) -> dict[str, Any]:
    """Convert the values of the known keys, and return them by field. The caller handles unknown keys.

    Raises:
        ConfigError: a value is not what its option expects.
    """
    fields = {}
    for key, option in options.items():
        if key in properties:
            given = properties[key]
            try:
                fields[option.field] = option.convert(given.value)
            except ValueError as error:
                raise ConfigError(f"{given.where}: {key} is {given.value!r}, {error} expected") from None
    return fields


def from_afar(
    properties_text: str, *, protected: frozenset[str], fixed: frozenset[str]
) -> Mapping[str, Property]:
    """Return the properties of a remote change of a running server: all can be applied, or none is.

    Raises:
        ProtectedKeyError: a protected key is among them.
        ConfigError: the text is not in the format of properties, or a key is used only at the start.
    """
    properties = parse(properties_text, "the body")
    if forbidden := protected & properties.keys():
        raise ProtectedKeyError(f"{', '.join(sorted(forbidden))} cannot be changed over the network")
    if late := fixed & properties.keys():
        raise ConfigError(f"{', '.join(sorted(late))} has an effect only at the start")
    return properties


# Converters.


def text(value: str) -> str:
    if not value:
        raise ValueError("some text")
    return value


def boolean(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return value.lower() == "true"


def number(least: int, most: int) -> Callable[[str], int]:
    """Return a converter that accepts whole numbers from `least` to `most`."""

    def convert(value: str) -> int:
        if not (value.isascii() and value.isdecimal() and least <= int(value) <= most):
            raise ValueError(f"a whole number from {least} to {most}")
        return int(value)

    return convert


_T = TypeVar("_T")


def one_of(values: Mapping[str, _T]) -> Callable[[str], _T]:
    """Return a converter that accepts the names in `values`."""

    def convert(value: str) -> _T:
        if value not in values:
            raise ValueError(" or ".join(values))
        return values[value]

    return convert


def _split(line: str, where: str) -> tuple[str, str]:
    for position, character in enumerate(line):
        if character in "=:":
            return line[:position].strip(), line[position + 1 :].strip()
    raise ConfigError(f"{where}: {line!r} has no '=', KEY=VALUE expected")
