"""One anomaly put into a clean history: what each rule must find, and what it must not be alone to notice.

A check that cannot fail is a defect, so every rule has at least one entry here; `also` names the rules that
see the same thing from another side, and may say so.

A module for each family of rules, as in conformance/history/rules; parts.py has what they share.
"""

from typing import Final

from mqproof.conformance.history.injected import groups, loss, offsets, order, places, redelivery, service
from mqproof.conformance.history.injected.parts import Injected

_FAMILIES: Final = (loss, places, order, offsets, groups, redelivery, service)

INJECTED: Final[dict[str, Injected]] = {
    injected.name: injected for family in _FAMILIES for injected in family.INJECTED
}
"""By name."""
