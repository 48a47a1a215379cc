"""What is observed of our own group alone, besides the answers to a client. An installed package lacks it."""

from mqproof.conformance.adapters import own_checks
from mqproof.conformance.suites.dledger.steps import Operation, Recovered


def observed(seed: int) -> tuple[Operation, ...]:
    """Return what the run with the seed observes."""
    return (files(seed),) if own_checks.ARE_THERE else ()


def files(seed: int) -> Recovered:
    """Draw ledgers, and load damaged copies of them."""
    from mqproof.conformance.adapters.scripted_members import drawn_ledgers

    return Recovered(drawn_ledgers.wrong_ledgers(seed))
