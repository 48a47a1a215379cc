"""All inspections by name."""

from collections.abc import Mapping
from typing import Final

from mqproof.conformance.adapters.inspections.account_changes import (
    ACCOUNTS_OF_4_9,
    NO_ACCOUNTS,
    USERS_OF_5_X,
)
from mqproof.conformance.adapters.inspections.accounts import PERMISSIONS
from mqproof.conformance.adapters.inspections.channels import CHANNELS
from mqproof.conformance.adapters.inspections.consumer_requests import REPLIES, TO_CONSUMERS
from mqproof.conformance.adapters.inspections.copies import SLAVE_COPIES
from mqproof.conformance.adapters.inspections.frame_limits import FRAMES
from mqproof.conformance.adapters.inspections.json_dialects import JSON_DIALECTS
from mqproof.conformance.adapters.inspections.loaded import (
    FAR_BEHIND,
    FLOW_CONTROL,
    FULL_DISK,
    FULL_TABLES,
    STOPS,
)
from mqproof.conformance.adapters.inspections.name_server_limits import NAME_SERVER_LIMITS
from mqproof.conformance.adapters.inspections.request_bodies import REQUEST_BODIES
from mqproof.conformance.adapters.inspections.returned import RETURNED
from mqproof.conformance.adapters.inspections.scraped import METRICS
from mqproof.conformance.adapters.inspections.sends import MESSAGES, TOPICS
from mqproof.conformance.adapters.inspections.settings import NAME_SERVER_SETTINGS, SETTINGS
from mqproof.conformance.adapters.inspections.site import Inspection
from mqproof.conformance.adapters.inspections.statistics import STATISTICS
from mqproof.conformance.adapters.inspections.strange_brokers import KEY_VALUES, REGISTRATIONS
from mqproof.conformance.adapters.inspections.subscribed_pulls import FILTERS, HELD_PULLS

EVERY: Final[Mapping[str, Inspection]] = {
    each.name: each
    for each in (
        SETTINGS, REGISTRATIONS, STATISTICS, MESSAGES, TOPICS, FILTERS, HELD_PULLS, NAME_SERVER_SETTINGS,
        KEY_VALUES, REPLIES, TO_CONSUMERS, METRICS, FLOW_CONTROL, FULL_TABLES, FAR_BEHIND, FRAMES,
        FULL_DISK, STOPS, SLAVE_COPIES, RETURNED, PERMISSIONS, ACCOUNTS_OF_4_9, USERS_OF_5_X, NO_ACCOUNTS,
        CHANNELS, NAME_SERVER_LIMITS, JSON_DIALECTS, REQUEST_BODIES,
    )
}  # fmt: skip
