"""Makes any string safe to show to people. Witnesses contain bytes of faulty peers and torn files.

XML forbids most control characters even when escaped, and terminals execute them. Bidirectional overrides
make text look different from its content. All of these become visible escapes like `\\x1b` or `\\u202e`.
"""

import re
from typing import Final

_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and newline, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # marks that reorder text, line and paragraph separators
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff]"  # surrogates, noncharacters, byte order mark
)


def printable(text: str) -> str:
    """Return the text with every character that is unsafe in XML or on a terminal written as an escape."""
    return _UNSAFE.sub(_escape, text)


def one_line(text: str) -> str:
    """Return the text as `printable` does, with newlines and tabs escaped too: for table cells."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def counted(number: int, what: str) -> str:
    """Return the number with its noun, as in "1 file" and "2 files"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
