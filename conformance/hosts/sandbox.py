"""The sandbox in which filter servers run functions: an extra of the package."""

from importlib.util import find_spec
from typing import Final

MISSING: Final = "filter servers need: pip install 'mqproof[filter]'"
"""Why nothing about filter servers is tested."""


def is_installed() -> bool:
    """Return whether a filter server can run here."""
    return find_spec("wasmtime") is not None
