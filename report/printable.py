"""What is said to people. Makes any string safe to show: witnesses hold bytes of broken peers and torn files.

XML forbids most control characters even when escaped, terminals obey them, and bidirectional overrides make
text read differently from what it is. All of these become visible escapes like `\\x1b` or `\\u202e`.
"""

import re
from typing import Final

_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # marks that reorder text, line and paragraph separators
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff]"  # surrogates, noncharacters, byte order mark
)


def printable(text: str) -> str:
    """The text with every character that is unsafe in XML or on a terminal written as an escape."""
    return _UNSAFE.sub(_escape, text)


def one_line(text: str) -> str:
    """As `printable`, and newlines and tabs are escapes too: for table cells."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def counted(number: int, what: str) -> str:
    """As in "1 file" and "2 files"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
