"""Turns the name passed to `--target` into a factory of targets of the flush suite."""

from collections.abc import Callable

from mqproof.conformance.engine.fault_commands import NO_COMMANDS, FaultCommands
from mqproof.conformance.engine.targets import (
    IMPL,
    MUTANT,
    PYTHON,
    REFERENCE,
    REMOTING,
    UnknownTargetError,
    mutant_named,
)
from mqproof.conformance.suites.flush.target import Target


def resolve(name: str, commands: FaultCommands = NO_COMMANDS) -> Callable[[], Target]:
    """Return the factory of the target with the given name.

    The names are `reference`, `impl`, `remoting://HOST:PORT`, `mutant:NAME` and `python:MODULE:CLASS`.
    `commands` inject faults into a running broker that the wire cannot inject.

    Raises:
        UnknownTargetError: the name is none of these.
    """
    # Imported late: a test of a cluster does not need our broker, and vice versa.
    if name == REFERENCE:
        from mqproof.conformance.adapters.reference import ReferenceTarget

        return ReferenceTarget
    if name == IMPL:
        from mqproof.conformance.adapters.impl import ImplTarget

        return ImplTarget
    if name.startswith(REMOTING):
        return _remoting(name, commands)
    if name.startswith(MUTANT):
        from mqproof.conformance.adapters.mutant_broker import MutantTarget
        from mqproof.conformance.mutants.flush import MUTANTS

        mutant = mutant_named(name, MUTANTS)
        return lambda: MutantTarget(mutant)
    if name.startswith(PYTHON):
        from mqproof.conformance.adapters.python_class import adapter

        return adapter(name, Target)
    raise UnknownTargetError(
        f"{name!r} is not a target, expected reference, impl, remoting://HOST:PORT, apache:LINE, mutant:NAME"
        " or python:MODULE:CLASS"
    )


def _remoting(name: str, commands: FaultCommands) -> Callable[[], Target]:
    from mqproof.conformance.adapters.remoting import RemotingTarget, read_flush_mode
    from mqproof.conformance.faults.controls import by_shell
    from mqproof.impl.runtime.network import Address

    try:
        address = Address.parse(name.removeprefix(REMOTING))
    except ValueError:
        raise UnknownTargetError(f"{name!r}: remoting://HOST:PORT of a name server expected") from None
    mode = read_flush_mode(address)
    return lambda: RemotingTarget(address, name, by_shell(commands), mode)
