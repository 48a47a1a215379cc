"""What is observed of our own group alone, besides the answers to a client. An installed package lacks it."""

from collections.abc import Iterator
from typing import Final

from mqproof.conformance.adapters import own_checks
from mqproof.conformance.suites.dledger.steps import Operation, Recovered, Scripted, Shown

_SCRIPTED_EACH: Final = 2
_BROKERS_EACH: Final = 4
"""One run in so many has a member among scripted ones, or brokers that elect their master."""


def observed(seed: int) -> Iterator[Operation]:
    """Yield what the run with the seed observes."""
    if own_checks.ARE_THERE:
        yield files(seed)
    if own_checks.ARE_THERE and seed % _SCRIPTED_EACH == 0:
        yield messages()
    if own_checks.ARE_THERE and seed % _BROKERS_EACH == 1:
        yield reads()


def messages() -> Scripted:
    """Run a member among scripted ones."""
    from mqproof.conformance.adapters.scripted_members import lives

    sent = lives.sent()
    return Scripted(len(sent), tuple(lives.differences(sent)))


def reads() -> Shown:
    """Run brokers that elect their master."""
    from mqproof.conformance.subjects import elected_group

    return Shown(elected_group.wrong_reads())


def files(seed: int) -> Recovered:
    """Draw ledgers, and load damaged copies of them."""
    from mqproof.conformance.adapters.scripted_members import drawn_ledgers

    return Recovered(drawn_ledgers.wrong_ledgers(seed))
