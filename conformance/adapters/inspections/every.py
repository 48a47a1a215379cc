"""All inspections, for the suite whose examples are the cheapest."""

from typing import Final

from mqproof.conformance.adapters.inspections.account_changes import (
    ACCOUNTS_OF_4_9,
    NO_ACCOUNTS,
    USERS_OF_5_X,
)
from mqproof.conformance.adapters.inspections.accounts import PERMISSIONS
from mqproof.conformance.adapters.inspections.consumers import FILTERS, HELD_PULLS
from mqproof.conformance.adapters.inspections.name_servers import KEY_VALUES, REGISTRATIONS
from mqproof.conformance.adapters.inspections.sends import MESSAGES, TOPICS
from mqproof.conformance.adapters.inspections.settings import NAME_SERVER_SETTINGS, SETTINGS
from mqproof.conformance.adapters.inspections.site import Inspection
from mqproof.conformance.adapters.inspections.statistics import STATISTICS

ALL: Final[tuple[Inspection, ...]] = (
    SETTINGS, REGISTRATIONS, STATISTICS, MESSAGES, TOPICS, FILTERS, HELD_PULLS, USERS_OF_5_X, PERMISSIONS,
    ACCOUNTS_OF_4_9, NO_ACCOUNTS, NAME_SERVER_SETTINGS, KEY_VALUES,
)  # fmt: skip
