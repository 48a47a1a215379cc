"""Where the machine code of loops is kept, and when it is recompiled.

numba by itself looks at the file of a loop alone; ours have parts and constants of other files compiled into
them.
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

SOURCES: Final = ("append_outcomes.py", "bucket_plan.py", "loops.py", "message_columns.py")
"""What loops have of other files, they have of these."""

_STAMP_DIGITS: Final = 12


@cache
def _digest() -> str:
    folder = resources.files(__package__)
    return sha256(b"".join(folder.joinpath(name).read_bytes() for name in SOURCES)).hexdigest()


class _Stamped:
    def get_source_stamp(self) -> Any:
        own: Any = super().get_source_stamp()  # type: ignore[misc]
        return own, _digest()

    def get_disambiguator(self) -> str:
        """Part of the name of a cache file: other sources have other files.

        numba unpickles a cache file before it compares stamps, which fails where a class that the loop takes
        has been renamed since.
        """
        place: str = super().get_disambiguator()  # type: ignore[misc]
        stamp = sha256(repr(self.get_source_stamp()).encode()).hexdigest()
        return f"{place}-{stamp[:_STAMP_DIGITS]}"


class WhereSaid(_Stamped, UserProvidedCacheLocator):
    """NUMBA_CACHE_DIR."""


class BesideSource(_Stamped, InTreeCacheLocator):
    pass


class AmongCaches(_Stamped, UserWideCacheLocator):
    pass


class OfArchive(_Stamped, ZipCacheLocator):
    """The package as it is shipped to executors."""


_OF_CHECKOUT: Final = (BesideSource,) if checkout() else ()
"""An installed package's folder stays as it is."""

LOCATORS: Final = ",".join(
    f"{__name__}.{kind.__name__}" for kind in (WhereSaid, *_OF_CHECKOUT, AmongCaches, OfArchive)
)
"""As numba's setting CACHE_LOCATOR_CLASSES wants them."""
