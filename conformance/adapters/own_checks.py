"""Checks of our own servers and client, which only a checkout has: a user does not change their code."""

from typing import Final

from mqproof.report.model import Witness
from mqproof.spec.checkout import checkout

ARE_THERE: Final = checkout() is not None
"""Whether this is a checkout. The functions find nothing in an installed package."""


def inspections() -> tuple[str, ...]:
    """Return the names of the inspections of our servers."""
    if not ARE_THERE:
        return ()
    from mqproof.conformance.adapters.inspections.every import EVERY

    return tuple(EVERY)


def inspected(name: str) -> tuple[Witness, ...]:
    """Run one of the inspections of our servers; return what is wrong."""
    if not ARE_THERE:
        return ()
    from mqproof.conformance.adapters.inspections.every import EVERY
    from mqproof.conformance.adapters.inspections.site import inspect

    return inspect(EVERY[name])


def different_calls(seed: int) -> tuple[Witness, ...]:
    """Make every call of our client; return what differs."""
    if not ARE_THERE:
        return ()
    from mqproof.conformance.adapters.client_calls import every_call

    return every_call.differences(seed)
