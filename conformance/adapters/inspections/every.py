"""All inspections by name."""

from collections.abc import Mapping
from typing import Final

from mqproof.conformance.adapters.inspections.account_changes import (
    ACCOUNTS_OF_4_9,
    NO_ACCOUNTS,
    USERS_OF_5_X,
)
from mqproof.conformance.adapters.inspections.accounts import PERMISSIONS
from mqproof.conformance.adapters.inspections.acting_masters import ACTING_MASTERS
from mqproof.conformance.adapters.inspections.address_servers import ADDRESS_SERVERS
from mqproof.conformance.adapters.inspections.admin_cases import ADMIN_CASES
from mqproof.conformance.adapters.inspections.answer_limits import ANSWER_LIMITS
from mqproof.conformance.adapters.inspections.byte_shares import BYTE_SHARES, USUAL_BYTE_SHARES
from mqproof.conformance.adapters.inspections.changing_tables import CHANGING_TABLES
from mqproof.conformance.adapters.inspections.channels import CHANNELS
from mqproof.conformance.adapters.inspections.checks import (
    CHECK_TIMES,
    KEPT_ENDS,
    MANY_ENDS,
    OPEN_BESIDE,
    SLOW_ENDS,
)
from mqproof.conformance.adapters.inspections.code_numbers import CODE_NUMBERS
from mqproof.conformance.adapters.inspections.consumer_requests import REPLIES, TO_CONSUMERS
from mqproof.conformance.adapters.inspections.copies import SLAVE_COPIES
from mqproof.conformance.adapters.inspections.corner_cases import CORNER_CASES, RUNNING_TIME
from mqproof.conformance.adapters.inspections.damaged_stores import (
    CRASHED_STARTS,
    DAMAGED_END,
    DAMAGED_END_SYNC,
    DAMAGED_FILES,
    DAMAGED_RECORDS,
    EXPIRED_SEGMENTS,
)
from mqproof.conformance.adapters.inspections.delays import DELAYS
from mqproof.conformance.adapters.inspections.deletions import (
    DELETIONS,
    DELETIONS_AT_SLAVE,
    DELETIONS_AT_SYNC_SLAVE,
)
from mqproof.conformance.adapters.inspections.elected import ELECTED
from mqproof.conformance.adapters.inspections.exact_timers import (
    EXACT_TIMERS,
    RECALLED_COPIES,
    UNFLUSHED_FINALS,
)
from mqproof.conformance.adapters.inspections.expressions import KEPT_EXPRESSIONS
from mqproof.conformance.adapters.inspections.failing_reads import FAILING_READS
from mqproof.conformance.adapters.inspections.failing_writes import FAILING_WRITES, FAILING_WRITES_SYNC
from mqproof.conformance.adapters.inspections.first_start import FIRST_START
from mqproof.conformance.adapters.inspections.flushed_files import (
    CHECKPOINTS,
    COLLIDING_KEYS,
    DEFAULT_FILES,
    FLUSHED_IN_TIME,
    HELD_DISK,
    USED_DISK,
    WITHOUT_INDEX,
)
from mqproof.conformance.adapters.inspections.frame_limits import FRAMES
from mqproof.conformance.adapters.inspections.header_texts import HEADER_TEXTS
from mqproof.conformance.adapters.inspections.heartbeats import HEARTBEATS
from mqproof.conformance.adapters.inspections.held_connections import HELD_CONNECTIONS
from mqproof.conformance.adapters.inspections.identifiers import IDENTIFIERS
from mqproof.conformance.adapters.inspections.json_dialects import JSON_DIALECTS
from mqproof.conformance.adapters.inspections.late_deliveries import (
    DURABLE_DELIVERIES,
    LATE_TRANSACTIONS,
    UNNAMED_DELIVERIES,
)
from mqproof.conformance.adapters.inspections.list_limits import LIST_LIMITS
from mqproof.conformance.adapters.inspections.loaded import (
    FAR_BEHIND,
    FLOW_CONTROL,
    FULL_DISK,
    FULL_TABLES,
    STOPS,
)
from mqproof.conformance.adapters.inspections.long_polls import LONG_POLLS
from mqproof.conformance.adapters.inspections.lost_power import LOST_POWER
from mqproof.conformance.adapters.inspections.many_pulls import MANY_PULLS
from mqproof.conformance.adapters.inspections.members import MEMBERS
from mqproof.conformance.adapters.inspections.name_server_limits import NAME_SERVER_LIMITS
from mqproof.conformance.adapters.inspections.old_timers import (
    COPIES,
    DAMAGED,
    OF_5_X,
    VERY_MANY,
    WRONG_PROGRESS,
)
from mqproof.conformance.adapters.inspections.overlapping import OVERLAPPING, OVERLAPPING_ACCOUNTS
from mqproof.conformance.adapters.inspections.overlapping_writes import LATE_FLUSHES, OVERLAPPING_TABLES
from mqproof.conformance.adapters.inspections.overlaps import OVERLAPS
from mqproof.conformance.adapters.inspections.pairs import (
    DAMAGED_ENDS,
    PARTLY_ACKNOWLEDGED,
    PROVED_ENDS,
    REFUSED_COMMITS,
    UNREAD,
)
from mqproof.conformance.adapters.inspections.pull_cases import PULL_CASES
from mqproof.conformance.adapters.inspections.queue_extents import MANY_MESSAGES, QUEUE_EXTENTS
from mqproof.conformance.adapters.inspections.registered import ADVERTISED, BY_DEFAULT, FETCHED, REGISTERED
from mqproof.conformance.adapters.inspections.remoting_clients import REMOTING_CLIENTS
from mqproof.conformance.adapters.inspections.remoting_servers import REMOTING_SERVERS
from mqproof.conformance.adapters.inspections.remoting_values import REMOTING_VALUES
from mqproof.conformance.adapters.inspections.repaired_records import DAMAGED_TAGS, REPAIRED
from mqproof.conformance.adapters.inspections.replication_streams import (
    SLAVES_AS_SHIPPED,
    SLAVES_COMPARED,
    SLAVES_MANY,
    SLAVES_PROVED,
)
from mqproof.conformance.adapters.inspections.request_bodies import REQUEST_BODIES
from mqproof.conformance.adapters.inspections.returned import RETURNED
from mqproof.conformance.adapters.inspections.routing_tables import ROUTING_TABLES
from mqproof.conformance.adapters.inspections.scraped import METRICS
from mqproof.conformance.adapters.inspections.scraped_pair import PAIR_METRICS
from mqproof.conformance.adapters.inspections.scripted_masters import STRANGE_MASTERS, UNKNOWN_DELETIONS
from mqproof.conformance.adapters.inspections.send_cases import SEND_CASES
from mqproof.conformance.adapters.inspections.sends import MESSAGES, TOPICS
from mqproof.conformance.adapters.inspections.sent_back import AT_A_SLAVE, SENT_BACK, SLOW_DISK
from mqproof.conformance.adapters.inspections.settings import NAME_SERVER_SETTINGS, SETTINGS
from mqproof.conformance.adapters.inspections.shares import (
    AT_ONCE,
    FILTER_SERVERS,
    MEMBERSHIPS,
    SHARES,
)
from mqproof.conformance.adapters.inspections.silent_names import SILENT_NAMES
from mqproof.conformance.adapters.inspections.site import Inspection
from mqproof.conformance.adapters.inspections.slave_changes import SLAVE_CHANGES, SLAVE_SEGMENTS
from mqproof.conformance.adapters.inspections.slave_tables import (
    FULL_SLAVE,
    SLAVE_EXPRESSIONS,
    SLAVE_OFFSETS,
)
from mqproof.conformance.adapters.inspections.slow_upkeep import (
    NEEDED_SEGMENTS,
    NO_SCRUB,
    OLD_SEGMENTS,
    SENDS_AT_ONCE,
    SLOW_SCRUB,
)
from mqproof.conformance.adapters.inspections.sql_expressions import SQL_EXPRESSIONS
from mqproof.conformance.adapters.inspections.statistics import STATISTICS
from mqproof.conformance.adapters.inspections.strange_brokers import KEY_VALUES, REGISTRATIONS
from mqproof.conformance.adapters.inspections.strange_internals import STRANGE_DELAYS, STRANGE_HALVES
from mqproof.conformance.adapters.inspections.strange_stores import (
    CHECKPOINT_TIMES,
    STRANGE_FILES,
    STRANGE_TABLES,
)
from mqproof.conformance.adapters.inspections.subscribed_pulls import FILTERS, HELD_PULLS
from mqproof.conformance.adapters.inspections.taken_over import TAKEN_OVER
from mqproof.conformance.adapters.inspections.transactions import TRANSACTIONS
from mqproof.conformance.adapters.inspections.value_limits import VALUE_LIMITS
from mqproof.conformance.adapters.inspections.waiting import WAITING
from mqproof.conformance.adapters.inspections.written_logs import (
    ALTERED_LOG,
    DAMAGED_LOG,
    SEARCHED_LOG,
    VISITED_LOG,
    WRITTEN_LOG,
)

EVERY: Final[Mapping[str, Inspection]] = {
    each.name: each
    for each in (
        # Those that need the least time are first: a mutant of impl/ has a bound of it.
        # Those of what every request has in common come before them, because all others execute it, too.
        CODE_NUMBERS, REMOTING_VALUES, REMOTING_SERVERS, REMOTING_CLIENTS, HELD_CONNECTIONS,
        FRAMES, HEADER_TEXTS, VALUE_LIMITS, JSON_DIALECTS, ROUTING_TABLES, REQUEST_BODIES,
        SLAVES_COMPARED, SLAVES_MANY, SLAVES_AS_SHIPPED, SLAVES_PROVED, STRANGE_MASTERS, FLUSHED_IN_TIME,
        CHECKPOINTS, WITHOUT_INDEX, HELD_DISK, USED_DISK, DAMAGED_TAGS, REPAIRED, DEFAULT_FILES,
        SETTINGS, REGISTRATIONS, STATISTICS, MESSAGES, TOPICS, FILTERS, HELD_PULLS, NAME_SERVER_SETTINGS,
        KEY_VALUES, REPLIES, TO_CONSUMERS, METRICS, FLOW_CONTROL, FULL_TABLES, FAR_BEHIND,
        CHANNELS, NAME_SERVER_LIMITS,
        WAITING, COPIES, DAMAGED, OF_5_X, VERY_MANY, TRANSACTIONS, DELAYS, FAILING_READS,
        SHARES, AT_ONCE, MEMBERSHIPS, FILTER_SERVERS, CORNER_CASES, RUNNING_TIME,
        REGISTERED, BY_DEFAULT, FETCHED, SLAVE_OFFSETS, FULL_SLAVE, SLAVE_EXPRESSIONS,
        PAIR_METRICS, MANY_PULLS, TAKEN_OVER, LONG_POLLS, PULL_CASES, MEMBERS, QUEUE_EXTENTS,
        SENT_BACK, SLOW_DISK, AT_A_SLAVE, MANY_MESSAGES,
        CHECK_TIMES, SLOW_ENDS, MANY_ENDS, LOST_POWER, CHANGING_TABLES, ELECTED,
        SILENT_NAMES, STRANGE_HALVES, STRANGE_DELAYS, HEARTBEATS, SLAVE_CHANGES,
        FULL_DISK, STOPS, SLAVE_COPIES, RETURNED, COLLIDING_KEYS, EXPIRED_SEGMENTS, DAMAGED_FILES,
        DAMAGED_RECORDS, CRASHED_STARTS, DAMAGED_END, DAMAGED_END_SYNC,
        PERMISSIONS, ACCOUNTS_OF_4_9, USERS_OF_5_X, NO_ACCOUNTS,
        LATE_FLUSHES, DAMAGED_LOG, WRITTEN_LOG, OVERLAPPING_TABLES, ALTERED_LOG, DELETIONS_AT_SYNC_SLAVE,
        DELETIONS_AT_SLAVE, LATE_TRANSACTIONS, DURABLE_DELIVERIES, REFUSED_COMMITS, DAMAGED_ENDS,
        PROVED_ENDS, UNREAD, ACTING_MASTERS, ANSWER_LIMITS, FAILING_WRITES, FAILING_WRITES_SYNC, DELETIONS,
        LIST_LIMITS, BYTE_SHARES, USUAL_BYTE_SHARES,
        SEND_CASES, ADMIN_CASES, SQL_EXPRESSIONS,
        KEPT_ENDS, OPEN_BESIDE, FIRST_START,
        EXACT_TIMERS, RECALLED_COPIES,
        SENDS_AT_ONCE, OLD_SEGMENTS, NO_SCRUB, SLOW_SCRUB, STRANGE_TABLES, STRANGE_FILES,
        IDENTIFIERS,
        SLAVE_SEGMENTS, UNFLUSHED_FINALS, ADVERTISED, KEPT_EXPRESSIONS,
        SEARCHED_LOG, CHECKPOINT_TIMES, UNKNOWN_DELETIONS,
        OVERLAPS,
        NEEDED_SEGMENTS, VISITED_LOG, PARTLY_ACKNOWLEDGED,
        OVERLAPPING, OVERLAPPING_ACCOUNTS,
        WRONG_PROGRESS,
        UNNAMED_DELIVERIES,
        ADDRESS_SERVERS,
    )
}  # fmt: skip
