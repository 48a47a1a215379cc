"""Splits an SQL92 expression into tokens. See docs/reference/protocol/filters.md, "Grammar"."""

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

CHARACTERS_MAX: Final = 4096
"""The longest expression, in characters."""
TOKENS_MAX: Final = 512
"""The most tokens of an expression: it bounds the time that one message takes."""


class ExpressionError(ValueError):
    """A text that is not an expression. The message says what is wrong, and where."""


class Kind(Enum):
    """The kind of a token."""

    KEYWORD = auto()
    NAME = auto()
    STRING = auto()
    WHOLE = auto()
    DECIMAL = auto()
    SYMBOL = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    """A keyword in upper case, a string without its quotes, anything else as written."""
    at: int
    """The position in the expression, from 1."""

    def is_one_of(self, *texts: str) -> bool:
        """Return whether this is one of these keywords or symbols."""
        return self.kind in (Kind.KEYWORD, Kind.SYMBOL) and self.text in texts


_KEYWORDS: Final = frozenset(
    ["AND", "BETWEEN", "CONTAINS", "ENDSWITH", "FALSE", "IN", "IS", "NOT", "NULL", "OR", "STARTSWITH", "TRUE"]
)
_TOKEN: Final = re.compile(
    r"""
    (?P<space>   [ \t\n\r\f]+ | --[^\n\r]* | /\*.*?\*/ )
    | (?P<decimal> (?: [0-9]+\.[0-9]* | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )? | [0-9]+[eE][+-]?[0-9]+ )
    | (?P<whole>   (?: 0 | [1-9][0-9]* ) [lL]? )
    | (?P<name>    [A-Za-z_$][A-Za-z0-9_$]* )
    | (?P<string>  '(?: '' | [^'] )*' )
    | (?P<symbol>  <> | <= | >= | [=<>()+,-] )
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD_CHARACTER: Final = re.compile(r"[A-Za-z0-9_$.]")


def tokens(text: str) -> list[Token]:
    """Return the tokens, and the END token behind them.

    Raises:
        ExpressionError: a part of the text is not a token, or there are too many.
    """
    if len(text) > CHARACTERS_MAX:
        raise ExpressionError(f"{len(text)} characters, at most {CHARACTERS_MAX} are allowed")
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f"{text[at : at + 10]!r} at position {at + 1} is not part of an expression")
        if match.lastgroup != "space":
            if len(found) == TOKENS_MAX:
                raise ExpressionError(f"more than {TOKENS_MAX} operands, operators and parentheses")
            found.append(_token(match, at + 1))
            _check_end(text, match, at + 1)
        at = match.end()
    return [*found, Token(Kind.END, "", len(text) + 1)]


def _token(match: re.Match[str], at: int) -> Token:
    text = match.group()
    match match.lastgroup:
        case "name":
            upper = text.upper()
            return Token(Kind.KEYWORD, upper, at) if upper in _KEYWORDS else Token(Kind.NAME, text, at)
        case "string":
            return Token(Kind.STRING, text[1:-1].replace("''", "'"), at)
        case "whole":
            return Token(Kind.WHOLE, text, at)
        case "decimal":
            return Token(Kind.DECIMAL, text, at)
    return Token(Kind.SYMBOL, text, at)


def _check_end(text: str, match: re.Match[str], at: int) -> None:
    """Refuse a number that runs into a letter or digit, such as 05 or 5kg."""
    is_number = match.lastgroup in ("whole", "decimal")
    if is_number and _WORD_CHARACTER.match(text, match.end()):
        raise ExpressionError(f"{text[at - 1 : match.end() + 1]!r} at position {at} is not a number")
