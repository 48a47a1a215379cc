"""Two functions in WebAssembly, and the messages that they select.

The first letter of a body decides. FIRST selects `a`, rejects `b`, and fails at each other letter.
SECOND, its correction, selects `a` and `c`, and fails at none.
"""

from typing import Final

from mqproof.conformance.wire.operations.filter_servers import MODULE

LETTERS: Final = "abcd"

FIRST: Final = MODULE
SECOND: Final = bytes.fromhex(
    "0061736d01000000"
    "010e0260017f017f60047f7f7f7f017f03030200010503010001"
    "071f03066d656d6f7279020008616c6c6f636174650000076d6174636865730001"
    "0a1102040041000b0a0020022d00004101710b"
)
"""The test of this module has its text form."""

SELECTED: Final = {FIRST: "a", SECOND: "ac"}
"""The letters that each function selects."""


def damaged(place: int, value: int, size: int) -> bytes:
    """Return FIRST with one byte changed, and for some sizes without its end."""
    module = bytearray(FIRST)
    module[place % len(module)] = value
    return bytes(module[: len(module) - size % 16 if size % 4 == 0 else len(module)])
