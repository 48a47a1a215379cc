"""Checks of our own servers and client, which only a checkout has: a user does not change their code."""

from typing import Final

from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.hosts.simulated import Machine
from mqproof.impl.broker.config import BrokerConfig
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


async def examine_copies(machine: Machine, config: BrokerConfig, watch: Watch) -> None:
    """Start stores on copies of a broker's disk; compare all files with the log."""
    if ARE_THERE:
        from mqproof.conformance.adapters.store_copies.recovered_copies import RecoveredCopies

        runtime = machine.runtime()
        copies = RecoveredCopies(machine.disk, config.store_directory, config.store, runtime, watch)
        await copies.examine(watch.answers)


async def examine_drawn_store(machine: Machine, watch: Watch) -> None:
    """Do the same with a store whose content is drawn, on an empty disk."""
    if ARE_THERE:
        from mqproof.conformance.adapters.store_copies.drawn_stores import DrawnStore

        await DrawnStore(machine.disk, machine.runtime(), watch, watch.answers).examine()


def different_calls(seed: int) -> tuple[Witness, ...]:
    """Make every call of our client; return what differs."""
    if not ARE_THERE:
        return ()
    from mqproof.conformance.adapters.client_calls import every_call

    return every_call.differences(seed)
