"""Mutants that push consumers show as the members of a group: one rule replaced by a wrong one each. They
judge the suite consumers."""

from typing import Any, Final

from conformance.targets.mutants import Mutant


def _nobody(*_told: Any) -> None:
    pass


MUTANTS: Final[dict[str, Mutant]] = {
    each.name: each
    for each in (
        Mutant(
            "reset-told-to-nobody", "members do not hear that they are to go on elsewhere", "SPEC-1",
            "impl.broker.offset_admin:_tell_members", _nobody,
        ),
        Mutant(
            "reset-not-obeyed", "a push consumer that is sent elsewhere reads on where it is", "SPEC-1",
            "impl.client.push_consumer:PushConsumer.reset_offsets", _nobody,
        ),
    )
}  # fmt: skip
"""By name."""
