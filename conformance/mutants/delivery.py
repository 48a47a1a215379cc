"""Mutants of how a broker serves a group, used to judge the suite. Each replaces one rule by a wrong one."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.broker.services import Services
from mqproof.impl.broker.state.clients import ClientTable
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.remoting.bodies import Heartbeat
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.store import reader
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import GetResult, GetStatus

_read_messages, _get, _query = reader.read_messages, MessageStore.get, OffsetTable.query
_heartbeat, _consumer_ids = ClientTable.heartbeat, ClientTable.consumer_ids
_commit = OffsetTable.commit


def _closed_connection_stays(_table: ClientTable, _channel: Channel) -> set[str]:
    return set()


def _newest_id_missing(table: ClientTable, group: str) -> list[str]:
    ids = _consumer_ids(table, group)
    return ids[:-1] if len(ids) > 1 else ids


def _no_silent_clients(_table: ClientTable, _before_ms: int) -> list[Channel]:
    return []


def _no_notification(_services: Services, _groups: Iterable[str]) -> None:
    pass


def _notified_of_new_groups_only(
    table: ClientTable, channel: Channel, heartbeat: Heartbeat, member: Any
) -> set[str]:
    known = {data.group_name for data in heartbeat.consumer_data_set if table.consumer_group(data.group_name)}
    return _heartbeat(table, channel, heartbeat, member) - known


def _one_back(table: OffsetTable, group: str, topic: str, queue_id: int) -> int | None:
    offset = _query(table, group, topic, queue_id)
    return offset and offset - 1


def _one_ahead(table: OffsetTable, group: str, topic: str, queue_id: int) -> int | None:
    offset = _query(table, group, topic, queue_id)
    return offset and offset + 1


def _of_another_queue(table: OffsetTable, group: str, topic: str, queue_id: int, offset: int) -> None:
    _commit(table, group, topic, max(0, queue_id - 1), offset)


def _second_left_out(*args: Any) -> GetResult:
    found = _read_messages(*args)
    return replace(found, records=found.records[:1] + found.records[2:])


def _last_never_found(*args: Any) -> GetResult:
    """Leaves out the last message of a queue, which stays the last one."""
    found = _read_messages(*args)
    if not found.records or found.next_offset < found.max_offset:
        return found
    if len(found.records) == 1:
        return replace(found, status=GetStatus.OFFSET_OVERFLOW_ONE, records=(), next_offset=args[2])
    return replace(found, records=found.records[:-1], next_offset=found.next_offset - 1)


def _queue_of_the_neighbour(
    store: MessageStore, topic: str, queue_id: int, *args: Any, **options: Any
) -> GetResult:
    other = queue_id ^ 1
    return _get(store, topic, other if store.max_offset(topic, other) else queue_id, *args, **options)


def _empty(_table: OffsetTable, *_args: object, **_options: object) -> None:
    pass


_CLIENTS: Final = "mqproof.impl.broker.state.clients:ClientTable"
_OFFSETS: Final = "mqproof.impl.broker.state.offsets:OffsetTable"

MUTANTS: Final = by_name(
    Mutant(
        "group-begins-ahead", "a member that takes a queue over starts one message too late", "DELIV-1",
        f"{_OFFSETS}.query", _one_ahead,
    ),
    Mutant(
        "members-read-the-neighbour", "a member reads another queue than requested", "DELIV-2",
        "mqproof.impl.store.message_store:MessageStore.get", _queue_of_the_neighbour,
    ),
    Mutant(
        "group-begins-behind", "a member that takes a queue over receives its last message again",
        "DELIV-3",
        f"{_OFFSETS}.query", _one_back,
    ),
    Mutant(
        "second-left-out", "the second of several messages is not delivered", "DELIV-4",
        "mqproof.impl.store.base:read_messages", _second_left_out,
    ),
    Mutant(
        "commit-of-another-queue", "an offset is stored for the previous queue", "DELIV-5",
        f"{_OFFSETS}.commit", _of_another_queue,
    ),
    Mutant(
        "dead-member-stays", "a member whose connection closed is still listed", "DELIV-6",
        f"{_CLIENTS}.channel_closed", _closed_connection_stays,
    ),
    Mutant(
        "last-never-found", "the last message of a queue is not delivered before another one arrives",
        "DELIV-12",
        "mqproof.impl.store.base:read_messages", _last_never_found,
    ),
    Mutant(
        "newest-member-missing", "the list of members lacks the newest one", "SPEC-1",
        f"{_CLIENTS}.consumer_ids", _newest_id_missing,
    ),
    Mutant(
        "silent-member-stays", "a member that is silent for a long time is kept", "SPEC-1",
        f"{_CLIENTS}.silent_since", _no_silent_clients,
    ),
    Mutant(
        "members-not-notified", "members are not notified that others joined or left", "SPEC-1",
        "mqproof.impl.broker.processors.groups:notify", _no_notification,
    ),
    Mutant(
        "joining-not-notified", "members are notified when a member leaves, not when it joins", "SPEC-1",
        f"{_CLIENTS}.heartbeat", _notified_of_new_groups_only,
    ),
    Mutant(
        "offsets-not-read-at-start", "a broker that starts does not read the offsets of groups",
        "DELIV-3",
        f"{_OFFSETS}.load", _empty,
    ),
)  # fmt: skip
"""The mutants by name."""
