"""The sandbox in which filter servers run functions: an extra of the package."""

from typing import Final

from mqproof import extras

MISSING: Final = "filter servers need: pip install 'mqproof[filter]'"
"""Why nothing about filter servers is tested."""


def is_installed() -> bool:
    """Return whether a filter server can run here."""
    return extras.is_installed("filter")
