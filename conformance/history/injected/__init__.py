"""One anomaly injected into a clean history, for tests that each rule detects its anomaly.

A check that cannot fail is a defect, so every rule has at least one entry here. `also` names other rules that
may report the same anomaly.

There is a module for each family of rules, as in conformance/history/rules; parts.py has shared helpers.
"""

from typing import Final

from mqproof.conformance.history.injected import groups, loss, offsets, order, places, redelivery, service
from mqproof.conformance.history.injected.parts import Injected

_FAMILIES: Final = (loss, places, order, offsets, groups, redelivery, service)

INJECTED: Final[dict[str, Injected]] = {
    injected.name: injected for family in _FAMILIES for injected in family.INJECTED
}
"""Maps the name of an injected anomaly to its entry."""
