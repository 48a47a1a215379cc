"""The fuzz targets: a module each, whose class `TARGET` follows `mqproof.fuzz.target.Target`.

Begin at `canary.py`, which fails on purpose. Modules are imported late: a worker must be able to prepare the
tracing of what a target imports.
"""

import importlib
from typing import Final

from mqproof.fuzz.target import Target

NAMES: Final = ("canary", "remoting-decode", "ha-stream", "store-recovery", "dledger-group", "cluster")
"""Every target, in the order of `mqproof fuzz list`; the module has underscores for the hyphens."""


class UnknownTargetError(ValueError):
    """There is no fuzz target of this name; the message lists those there are."""


def load(name: str) -> Target:
    """A fresh target.

    Raises:
        UnknownTargetError: no target has this name.
    """
    if name not in NAMES:
        raise UnknownTargetError(f"no fuzz target {name!r}, expected one of {', '.join(NAMES)}")
    module = name.replace("-", "_")
    target: Target = importlib.import_module(f"mqproof.fuzz.targets.{module}").TARGET()
    assert target.name == name, f"fuzz/targets/{module}.py calls itself {target.name!r}"
    return target
