"""The name of a function that selects messages: the hash of its module, so that none can replace another."""

import hashlib
from typing import Final

MAGIC: Final = b"\0asm"
"""The first bytes of every module of WebAssembly."""


def function_name(module: bytes) -> str:
    """Return the SHA-256 of a module in 64 hexadecimal digits."""
    return hashlib.sha256(module).hexdigest()
