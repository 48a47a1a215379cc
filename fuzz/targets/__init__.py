"""The fuzz targets: one module each, whose class `TARGET` implements `mqproof.fuzz.target.Target`.

Begin at `canary.py`, which fails on purpose. Modules are imported late, so that a worker can first prepare
the tracing of the modules that a target imports.
"""

import importlib
from typing import Final

from mqproof.fuzz.target import Target

NAMES: Final = (
    "canary",
    "remoting-decode",
    "ha-stream",
    "store-recovery",
    "store-rot",
    "record-repair",
    "cluster-rot",
    "dledger-group",
    "cluster",
    "deferred-messages",
    "consumer-groups",
    "routes-and-replies",
    "hostile-peers",
    "client-traces",
    "filter-server",
)
"""All targets, in the order of `mqproof fuzz list`. Module names have underscores instead of hyphens."""


class UnknownTargetError(ValueError):
    """There is no fuzz target of this name; the message lists the existing ones."""


def load(name: str) -> Target:
    """Return a new target.

    Raises:
        UnknownTargetError: no target has this name.
    """
    if name not in NAMES:
        raise UnknownTargetError(f"no fuzz target {name!r}, expected one of {', '.join(NAMES)}")
    module = name.replace("-", "_")
    target: Target = importlib.import_module(f"mqproof.fuzz.targets.{module}").TARGET()
    assert target.name == name, f"fuzz/targets/{module}.py calls itself {target.name!r}"
    return target
