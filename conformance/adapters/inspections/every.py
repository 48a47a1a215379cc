"""The inspections of servers without accounts, for the suite whose examples are the cheapest."""

from typing import Final

from mqproof.conformance.adapters.inspections.consumers import FILTERS, HELD_PULLS
from mqproof.conformance.adapters.inspections.name_servers import KEY_VALUES, REGISTRATIONS
from mqproof.conformance.adapters.inspections.sends import MESSAGES, TOPICS
from mqproof.conformance.adapters.inspections.settings import NAME_SERVER_SETTINGS, SETTINGS
from mqproof.conformance.adapters.inspections.site import Inspection
from mqproof.conformance.adapters.inspections.statistics import STATISTICS

WITHOUT_ACCOUNTS: Final[tuple[Inspection, ...]] = (
    SETTINGS, REGISTRATIONS, STATISTICS, MESSAGES, TOPICS, FILTERS, HELD_PULLS, NAME_SERVER_SETTINGS,
    KEY_VALUES,
)  # fmt: skip
