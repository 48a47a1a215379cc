"""The fields of a query or a form, bounded and converted. A wrong value is an error that names the field."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, TypeVar
from urllib.parse import parse_qsl

from mqproof.impl.remoting.topic_names import NAME_CHARACTERS_MAX, name_problem
from mqproof.impl.runtime.network import Address

T = TypeVar("T")

FORM_BYTES_MAX: Final = 256 * 1024
FIELDS_MAX: Final = 64
TEXT_CHARACTERS_MAX: Final = 1024


class FormError(ValueError):
    """A field has a wrong value. The message names the field, the value, and what was expected."""


class FormValues:
    """The values by name. Each method removes the spaces around a value; an absent field is empty."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        """Raises FormError: a field occurs twice."""
        self._values: dict[str, str] = {}
        for name, value in pairs:
            if name in self._values:
                raise FormError(f"field {name[:40]!r} occurs twice")
            self._values[name] = value

    def text(self, name: str, default: str = "", *, most: int = TEXT_CHARACTERS_MAX) -> str:
        """Return one line of text."""
        value = self._values.get(name, "").strip()
        if len(value) > most:
            raise FormError(f"{name} has {len(value)} characters, at most {most} expected")
        if not value.isprintable():
            raise FormError(f"{name} is {value[:80]!r}, one line of printable text expected")
        return value or default

    def required(self, name: str, *, most: int = TEXT_CHARACTERS_MAX) -> str:
        """Return one line of text that is not empty."""
        if not (value := self.text(name, most=most)):
            raise FormError(f"{name} is empty, a value expected")
        return value

    def lines(self, name: str) -> str:
        """Return text as it was typed; browsers end each line with CR LF, which becomes LF."""
        return self._values.get(name, "").replace("\r\n", "\n")

    def name(self, name: str) -> str:
        """Return the name of a topic or a group."""
        value = self.required(name, most=NAME_CHARACTERS_MAX)
        if problem := name_problem(value):
            raise FormError(f"{name}: {problem.replace('the topic', 'the name')}")
        return value

    def confirmed_name(self, name: str, what: str) -> str:
        """Return the name of a topic or a group, which the field `confirm` repeats. `what` is its kind."""
        value, repeated = self.name(name), self.text("confirm")
        if repeated != value:
            raise FormError(f"confirm is {repeated!r}, the name of the {what}, {value!r}, expected")
        return value

    def number(self, name: str, default: int, least: int, most: int) -> int:
        value = self.text(name, str(default), most=20)
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and least <= int(value) <= most):
            raise FormError(f"{name} is {value!r}, a number from {least} to {most} expected")
        return int(value)

    def choice(self, name: str, options: Mapping[str, T], default: str) -> T:
        """Return the value of the chosen option."""
        chosen = self.text(name, default)
        if chosen not in options:
            raise FormError(f"{name} is {chosen[:80]!r}, one of {', '.join(options)} expected")
        return options[chosen]

    def flag(self, name: str) -> bool:
        """Return whether a checkbox is checked."""
        return self.choice(name, {"yes": True, "no": False}, "no")

    def address(self, name: str) -> Address:
        try:
            return Address.parse(self.required(name))
        except ValueError as error:
            raise FormError(f"{name}: {error}") from None

    def time_ms(self, name: str) -> int | None:
        """Return a local time, as browsers write it, in milliseconds; None if the field is empty."""
        value = self.text(name, most=30)
        if not value:
            return None
        try:
            return int(datetime.fromisoformat(value).timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            raise FormError(f"{name} is {value!r}, a time such as 2026-05-01T08:00 expected") from None


def parse_values(text: str) -> FormValues:
    """Parse a query, or the body of a form. Raises FormError when it is not one."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError:
        raise FormError(f"not a form of at most {FIELDS_MAX} fields in UTF-8") from None
    return FormValues(pairs)
