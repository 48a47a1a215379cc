"""Mutants of a broker that only the rules for all answers detect, and the last look at each example.

Each one belongs to a suite that otherwise does not look at the broken value.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from mqproof.conformance.mutants.mutant import by_name, unexplained
from mqproof.impl.broker import half_messages
from mqproof.impl.broker.processors import offset_admin, retries
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import QueueEntry, QueueExtent, TimeSpan
from mqproof.impl.remoting.headers import PullResponse, StoreTimeResponse
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.store.entry_repair import EntryRepair
from mqproof.impl.store.files import record, sealed_file
from mqproof.impl.store.files.index_file import IndexFile
from mqproof.impl.store.recovery import is_record_of

_PROCESSORS: Final = "mqproof.impl.broker.processors"

_encode, _write_send_response = record.encode, headers.write_send_response
_write_out, _write_sealed, _correct = IndexFile.write_out, sealed_file.write_sealed, EntryRepair._correct
_restore = sealed_file._restore
_final, _progress, _again = half_messages.final, offset_admin._progress, retries._again


def _changed(message: Message, **values: Any) -> bytearray:
    return _encode(msgspec.structs.replace(message, **values))


def _no_flag(message: Message) -> bytearray:
    return _changed(message, flag=0)


def _brokers_own_host(message: Message) -> bytearray:
    return _changed(message, born_host=message.store_host)


def _born_when_stored(message: Message) -> bytearray:
    return _changed(message, born_timestamp_ms=1 + message.born_timestamp_ms)


def _own_properties_dropped(message: Message) -> bytearray:
    known = {name: value for name, value in message.properties.items() if " " not in name}
    return _changed(message, properties=known)


def _no_region(_services: object) -> dict[str, str]:
    return {}


def _id_for_the_key(**values: Any) -> dict[str, str]:
    return _write_send_response(**{**values, "transaction_id": values["msg_id"]})


def _slave_suggested(_broker_id: int, *offsets: int) -> PullResponse:
    return PullResponse(1, *offsets)


def _half_unnamed(stored: StoredMessage, store_host: Any) -> Message:
    return msgspec.structs.replace(_final(stored, store_host), prepared_transaction_offset=0)


def _original_unnamed(*arguments: Any) -> Message:
    again = _again(*arguments)
    kept = {name: value for name, value in again.properties.items() if name != "ORIGIN_MESSAGE_ID"}
    return msgspec.structs.replace(again, properties=kept)


def _where_it_is_stored(message: Message) -> Message:
    """Shows a producer the half message in the topic of half messages."""
    return message


def _never_empty(timestamp: int) -> StoreTimeResponse:
    return StoreTimeResponse(max(0, timestamp))


def _never_is_zero(**values: Any) -> TimeSpan:
    times = {name: max(0, value) for name, value in values.items() if name != "message_queue"}
    return TimeSpan(**times, message_queue=values["message_queue"])


def _updated_never(last_update_timestamp: int, **offsets: int) -> QueueExtent:  # noqa: ARG001
    return QueueExtent(last_update_timestamp=0, **offsets)


def _consumed_before(services: Any, group: str, topic: str, queue_id: int) -> Any:
    found = _progress(services, group, topic, queue_id)
    last_ms = services.store.store_time_ms(topic, queue_id, found.consumer_offset)
    return msgspec.structs.replace(found, last_timestamp=last_ms or 0)


def _no_code(*values: Any, **named: Any) -> QueueEntry:
    return msgspec.structs.replace(QueueEntry(*values, **named), tags_code=0)


def _written_at_start_only(file: IndexFile) -> None:
    if file.header.entry_next == 2:
        _write_out(file)


def _without_backup(disk: Any, path: str, data: bytes) -> None:
    _write_sealed(disk, path, data)
    disk.remove(f"{path}.bak")


def _first_entry_only(repair: EntryRepair, queue: Any, found: dict[int, Any]) -> None:
    _correct(repair, queue, {offset: unit for offset, unit in found.items() if offset == 0})


def _newer_replaced(disk: Any, main: Any, backup: Any, chosen: Any, damage: Any) -> None:
    _restore(disk, main, chosen, backup, damage)


async def _kept(_cleaner: object, _log_begin: int) -> None:
    """Delete nothing."""


_RECORD: Final = "mqproof.impl.store.files.record:encode"

SUITES: Final[Mapping[str, str]] = {
    "half-unnamed": "transactions",
    "checked-in-half-topic": "transactions",
    "never-is-zero": "offsets",
    "original-unnamed": "retry",
    "entries-without-tags": "offsets",
    "consumed-before": "offsets",
}
"""The suites of the mutants that do not concern every suite."""
ANY_SUITE: Final = "delivery"

MUTANTS: Final = by_name(
    unexplained(
        "answers-without-region", "answers to sends have no MSG_REGION and TRACE_ON",
        "mqproof.impl.broker.services:Services.tracing_fields", _no_region,
    ),
    unexplained(
        "id-for-the-key", "the transactionId is the offset message id",
        f"{_PROCESSORS}.send:headers.write_send_response", _id_for_the_key,
    ),
    unexplained(
        "slave-suggested", "every pull suggests a slave", f"{_PROCESSORS}.pull:PullResponse", _slave_suggested
    ),
    unexplained("flag-dropped", "the flag of a message is not stored", _RECORD, _no_flag),
    unexplained("born-at-the-broker", "the born host is that of the broker", _RECORD, _brokers_own_host),
    unexplained("born-later", "the born time is a millisecond late", _RECORD, _born_when_stored),
    unexplained(
        "own-properties-dropped", "properties with a space in their name are dropped", _RECORD,
        _own_properties_dropped,
    ),
    unexplained(
        "half-unnamed", "a final message does not name its half message",
        "mqproof.impl.broker.half_messages:final", _half_unnamed,
    ),
    unexplained(
        "checked-in-half-topic", "a check shows the half message in the topic of half messages",
        "mqproof.impl.broker.half_messages:for_producer", _where_it_is_stored,
    ),
    unexplained(
        "never-is-zero", "a queue without messages has times", f"{_PROCESSORS}.offset_admin:TimeSpan",
        _never_is_zero,
    ),
    unexplained(
        "original-unnamed", "a message that is sent back does not name its first delivery",
        f"{_PROCESSORS}.retries:_again", _original_unnamed,
    ),
    unexplained(
        "earliest-never-missing", "an empty queue has an earliest message",
        f"{_PROCESSORS}.queries:StoreTimeResponse", _never_empty,
    ),
    unexplained(
        "updated-never", "the statistics of a topic have no times",
        f"{_PROCESSORS}.offset_admin:QueueExtent", _updated_never,
    ),
    unexplained(
        "consumed-before", "the last consumed message is the next one",
        f"{_PROCESSORS}.offset_admin:_progress", _consumed_before,
    ),
    unexplained(
        "entries-without-tags", "the entries of a queue have no tag codes",
        f"{_PROCESSORS}.inspection:QueueEntry", _no_code,
    ),
    unexplained(
        "index-not-written", "the files of the key index lack all entries but the first",
        "mqproof.impl.store.files.index_file:IndexFile.write_out", _written_at_start_only,
    ),
    unexplained(
        "tables-without-backup", "the tables of a broker have no backup",
        "mqproof.impl.broker.state.durable_table:write_sealed", _without_backup,
    ),
    unexplained(
        "only-first-entry-repaired", "an altered entry is repaired only at the beginning of its queue",
        "mqproof.impl.store.entry_repair:EntryRepair._correct", _first_entry_only,
    ),
    unexplained(
        "expired-files-kept", "expired segments are not read any more, but their files stay",
        "mqproof.impl.store.expiry:Cleaner._follow", _kept,
    ),
    unexplained(
        "unqueued-in-place-of-lost", "a rolled-back message is delivered in place of a damaged one",
        "mqproof.impl.store.entry_repair:has_offset", is_record_of,
    ),
    unexplained(
        "newer-table-replaced", "of a table and its backup, the older one replaces the newer one",
        "mqproof.impl.store.files.sealed_file:_restore", _newer_replaced,
    ),
)  # fmt: skip
"""The mutants by name."""
