"""Where numba caches the machine code of loops, and when it is recompiled.

By default numba checks only the source file of a loop. Our loops also contain functions and constants of
other files.
"""

from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any, Final

from numba.core.caching import (
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
    ZipCacheLocator,
)

from mqproof.spec.checkout import checkout

SOURCES: Final = (
    "passes/append_outcomes.py",
    "passes/bucket_plan.py",
    "passes/message_columns.py",
    "scan/loops.py",
)
"""Files of spark_audit whose functions and constants are compiled into loops."""

_STAMP_DIGITS: Final = 12


@cache
def _digest() -> str:
    folder = resources.files(__package__.rpartition(".")[0])
    return sha256(b"".join(folder.joinpath(name).read_bytes() for name in SOURCES)).hexdigest()


class _Stamped:
    def get_source_stamp(self) -> Any:
        own: Any = super().get_source_stamp()  # type: ignore[misc]
        return own, _digest()

    def get_disambiguator(self) -> str:
        """Return a part of the cache file's name that depends on the sources.

        numba unpickles a cache file before it compares stamps. That fails if a class used by the loop has
        since been renamed.
        """
        place: str = super().get_disambiguator()  # type: ignore[misc]
        stamp = sha256(repr(self.get_source_stamp()).encode()).hexdigest()
        return f"{place}-{stamp[:_STAMP_DIGITS]}"


class ConfiguredFolder(_Stamped, UserProvidedCacheLocator):
    """Cache in NUMBA_CACHE_DIR."""


class SourceFolder(_Stamped, InTreeCacheLocator):
    pass


class UserCacheFolder(_Stamped, UserWideCacheLocator):
    pass


class ArchiveFolder(_Stamped, ZipCacheLocator):
    """Cache for the package when it is imported from the archive sent to executors."""


_OF_CHECKOUT: Final = (SourceFolder,) if checkout() else ()
"""Cache files are written beside the sources only in a checkout; an installed package is not modified."""

LOCATORS: Final = ",".join(
    f"{__name__}.{kind.__name__}"
    for kind in (ConfiguredFolder, *_OF_CHECKOUT, UserCacheFolder, ArchiveFolder)
)
"""The locators in the format of numba's setting CACHE_LOCATOR_CLASSES."""
