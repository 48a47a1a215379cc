"""Mutants of filter servers and of their consumers: those of conformance, and defects that faults reveal."""

from typing import Any, Final

from mqproof.conformance.mutants import filter_servers
from mqproof.fuzz.defects.defect import Mutant, as_of_target

TARGET: Final = "filter-server"


async def _once(_self: Any, _address: Any) -> None:
    """Register no more."""


async def _not_uploaded(_self: Any, _queue: Any, _filter_server: Any, _module: bytes) -> None:
    """Upload nothing."""


MUTANTS: Final = (
    *(as_of_target(each, TARGET, {}) for each in filter_servers.OF_DECISIONS.values()),
    Mutant(
        "RegisteredOnce",
        "a filter server does not register again at a broker that restarted",
        TARGET,
        "AckedDelivered",
        "mqproof.impl.filter_server.server:FilterServer._register_again",
        _once,
    ),
    Mutant(
        "NotUploaded",
        "a consumer does not upload its function to a filter server that does not know it",
        TARGET,
        "AckedDelivered",
        "mqproof.impl.client.consuming.group_requests:GroupRequests._upload",
        _not_uploaded,
    ),
)
