"""Which engine runs the DataFrame code of this process: Spark, unless the embedded engine is in use."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

_SPARK: Final = "pyspark.sql.functions"
_EMBEDDED: Final = "mqproof.spark_audit.engine.embedded.column_functions"

_in_use: list[str] = []
"""The engines in use, innermost last. It is global, as the session on which PySpark's functions depend is."""


def is_embedded() -> bool:
    return bool(_in_use) and _in_use[-1] == _EMBEDDED


@contextmanager
def embedded() -> Iterator[None]:
    """Run DataFrame code on the embedded engine. Threads that start inside use it too."""
    _in_use.append(_EMBEDDED)
    try:
        yield
    finally:
        _in_use.pop()


def functions() -> ModuleType:
    """Return the module that has the functions of the active engine."""
    return importlib.import_module(_in_use[-1] if _in_use else _SPARK)
