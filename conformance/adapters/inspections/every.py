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
from mqproof.conformance.adapters.inspections.client_parts import CLIENT_PARTS
from mqproof.conformance.adapters.inspections.code_numbers import CODE_NUMBERS
from mqproof.conformance.adapters.inspections.consumer_requests import REPLIES, TO_CONSUMERS
from mqproof.conformance.adapters.inspections.copies import SLAVE_COPIES
from mqproof.conformance.adapters.inspections.corner_cases import CORNER_CASES, RUNNING_TIME
from mqproof.conformance.adapters.inspections.crafted_starts import CRAFTED_STARTS, CRAFTED_STARTS_SYNC
from mqproof.conformance.adapters.inspections.damaged_stores import (
    CRASHED_STARTS,
    DAMAGED_END,
    DAMAGED_END_SYNC,
    DAMAGED_FILES,
    DAMAGED_RECORDS,
    EXPIRED_SEGMENTS,
)
from mqproof.conformance.adapters.inspections.delayed_entries import DAMAGED_DELAYS, DUE_TIMES
from mqproof.conformance.adapters.inspections.delays import DELAYS
from mqproof.conformance.adapters.inspections.deletions import (
    DELETIONS,
    DELETIONS_AT_SLAVE,
    DELETIONS_AT_SYNC_SLAVE,
)
from mqproof.conformance.adapters.inspections.elected import ELECTED
from mqproof.conformance.adapters.inspections.exact_leases import EXACT_LEASES
from mqproof.conformance.adapters.inspections.exact_limits import EXACT_LIMITS
from mqproof.conformance.adapters.inspections.exact_timers import (
    EXACT_TIMERS,
    RECALLED_COPIES,
    UNFLUSHED_FINALS,
)
from mqproof.conformance.adapters.inspections.expired_points import EXPIRED_POINTS
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
from mqproof.conformance.adapters.inspections.group_members import (
    GROUP_DISKS,
    GROUP_FILES,
    GROUP_MESSAGES,
    GROUP_TIMES,
)
from mqproof.conformance.adapters.inspections.group_stores import (
    DRAWN_LEDGERS,
    GROUP_STORES,
    MEMBERSHIP_SETTINGS,
)
from mqproof.conformance.adapters.inspections.header_texts import HEADER_TEXTS
from mqproof.conformance.adapters.inspections.heartbeats import HEARTBEATS
from mqproof.conformance.adapters.inspections.identifiers import IDENTIFIERS
from mqproof.conformance.adapters.inspections.idle_waits import IDLE_WAITS
from mqproof.conformance.adapters.inspections.index_files import (
    DAMAGED_INDEX,
    PARTLY_INDEXED,
    PERIODS,
    SENDS_AND_DELETIONS,
)
from mqproof.conformance.adapters.inspections.json_dialects import JSON_DIALECTS
from mqproof.conformance.adapters.inspections.late_deliveries import (
    DURABLE_DELIVERIES,
    LATE_TRANSACTIONS,
    UNNAMED_DELIVERIES,
)
from mqproof.conformance.adapters.inspections.late_settings import LATE_SETTINGS
from mqproof.conformance.adapters.inspections.limited_expressions import LIMITED_EXPRESSIONS
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
from mqproof.conformance.adapters.inspections.masters_in_turn import MASTERS_IN_TURN
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
from mqproof.conformance.adapters.inspections.recorded_events import RECORDED_ACCOUNTS, RECORDED_EVENTS
from mqproof.conformance.adapters.inspections.registered import ADVERTISED, BY_DEFAULT, FETCHED, REGISTERED
from mqproof.conformance.adapters.inspections.remembered_ends import REMEMBERED_ENDS
from mqproof.conformance.adapters.inspections.remoting_clients import REMOTING_CLIENTS
from mqproof.conformance.adapters.inspections.remoting_servers import REMOTING_SERVERS
from mqproof.conformance.adapters.inspections.repaired_records import DAMAGED_TAGS, MANY_REPAIRS, REPAIRED
from mqproof.conformance.adapters.inspections.replication_cases import (
    LARGE_FILLERS,
    MASTER_TIMES,
    SHIPPED_BY_49,
    SHORT_ENDS,
    SLAVE_TIMES,
)
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
from mqproof.conformance.adapters.inspections.send_times import SEND_TIMES
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
from mqproof.conformance.adapters.inspections.store_bounds import (
    CLOCK_SET_BACK,
    FAILING_STARTS,
    KEPT_SEGMENTS,
    MANY_BYTES,
    SEGMENT_ENDS,
    TOPIC_LENGTHS,
)
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
from mqproof.conformance.adapters.inspections.unknown_names import UNKNOWN_NAMES
from mqproof.conformance.adapters.inspections.unread_waits import UNREAD_WAITS
from mqproof.conformance.adapters.inspections.value_limits import VALUE_LIMITS
from mqproof.conformance.adapters.inspections.waiting import WAITING
from mqproof.conformance.adapters.inspections.without_events import (
    GROUP_WITHOUT_EVENTS,
    PAIR_WITHOUT_EVENTS,
    WITHOUT_EVENTS,
)
from mqproof.conformance.adapters.inspections.written_logs import (
    ALTERED_LOG,
    DAMAGED_LOG,
    SEARCHED_LOG,
    VISITED_LOG,
    WRITTEN_LOG,
)
from mqproof.conformance.adapters.inspections.wrong_characters import WRONG_CHARACTERS

EVERY: Final[Mapping[str, Inspection]] = {
    each.name: each
    for each in (
        # The suite runs them in this order. A judgement of a mutant of impl/ has it in turn with another one.
        SHIPPED_BY_49, SLAVE_TIMES, MASTER_TIMES, LARGE_FILLERS, SHORT_ENDS,
        GROUP_DISKS, GROUP_TIMES, GROUP_FILES, GROUP_MESSAGES,
        SLAVES_COMPARED, SLAVES_MANY, SLAVES_AS_SHIPPED, SLAVES_PROVED, STRANGE_MASTERS, FLUSHED_IN_TIME,
        CHECKPOINTS, WITHOUT_INDEX, HELD_DISK, USED_DISK, DAMAGED_TAGS, REPAIRED, DEFAULT_FILES,
        SETTINGS, REGISTRATIONS, STATISTICS, MESSAGES, TOPICS, FILTERS, HELD_PULLS, NAME_SERVER_SETTINGS,
        KEY_VALUES, REPLIES, TO_CONSUMERS, METRICS, FLOW_CONTROL, FULL_TABLES, FAR_BEHIND, FRAMES,
        CHANNELS, NAME_SERVER_LIMITS, JSON_DIALECTS, REQUEST_BODIES,
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
        HEADER_TEXTS, VALUE_LIMITS, LIST_LIMITS, BYTE_SHARES, USUAL_BYTE_SHARES,
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
        RECORDED_EVENTS, RECORDED_ACCOUNTS, SEND_TIMES, EXACT_LIMITS, UNKNOWN_NAMES,
        CLOCK_SET_BACK, KEPT_SEGMENTS, SEGMENT_ENDS, TOPIC_LENGTHS, FAILING_STARTS, MANY_BYTES,
        SENDS_AND_DELETIONS, DAMAGED_INDEX, PERIODS, CRAFTED_STARTS, CRAFTED_STARTS_SYNC,
        *CLIENT_PARTS,
        CODE_NUMBERS, WRONG_CHARACTERS, REMOTING_SERVERS, REMOTING_CLIENTS,
        MANY_REPAIRS, MEMBERSHIP_SETTINGS, GROUP_STORES, MASTERS_IN_TURN, DRAWN_LEDGERS,
        LATE_SETTINGS,
        REMEMBERED_ENDS, IDLE_WAITS, LIMITED_EXPRESSIONS, EXACT_LEASES, WITHOUT_EVENTS, PAIR_WITHOUT_EVENTS,
        UNREAD_WAITS, GROUP_WITHOUT_EVENTS, EXPIRED_POINTS,
        DUE_TIMES, DAMAGED_DELAYS, PARTLY_INDEXED,
        ROUTING_TABLES,
    )
}  # fmt: skip
