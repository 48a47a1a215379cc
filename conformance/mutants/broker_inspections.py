"""Mutants of a broker's work that the inspections detect: what waits, is counted, shared and registered."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, Final

import msgspec

from mqproof.conformance.mutants.mutant import Mutant, by_name, nothing, unexplained
from mqproof.impl.broker import half_messages, services, timed_messages
from mqproof.impl.broker.state.clients import ConsumerGroup
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.broker.state.open_transactions import End, HalfMessage, OpenTransactions
from mqproof.impl.broker.state.unwritten import Unwritten
from mqproof.impl.broker.state.waiting_timers import WaitingTimers
from mqproof.impl.broker.transactions import Transactions
from mqproof.impl.remoting.headers import RegisterBrokerRequest
from mqproof.impl.runtime.network import Address

_BROKER: Final = "mqproof.impl.broker"

_checked_copy, _rolled = half_messages.checked_copy, timed_messages.rolled
_merge, _mark_sent = OffsetTable.merge, OffsetTable.mark_sent
_without_operation = OpenTransactions.without_operation
_end_read = Transactions._end_read
_finish, _point, _named = WaitingTimers.finish, WaitingTimers.point, WaitingTimers.named


def _a_millisecond_more(*arguments: Any) -> timed_messages.Point:
    found = _point(*arguments)
    return found._replace(due_ms=found.due_ms + 1)


def _always_the_first(*arguments: Any) -> Any:
    copy = _rolled(*arguments)
    return msgspec.structs.replace(copy, properties={**copy.properties, timed_messages.ROLL_TIMES: "1"})


def _with_evidence_only(table: WaitingTimers, original: int, evidence: int | None) -> None:
    if evidence is not None:
        _finish(table, original, evidence)


def _held_only(table: WaitingTimers, original: int, evidence: int | None) -> None:
    before = len(table._heap)
    _finish(table, original, evidence)
    if len(table._heap) < before:
        table._heap = []


def _not_counted(*arguments: Any) -> Any:
    copy = _checked_copy(*arguments)
    return msgspec.structs.replace(copy, properties={**copy.properties, half_messages.CHECK_TIMES: "1"})


def _without_written(table: Any) -> int:
    return len(table._values) + len(table._next.values)


def _none_silent(*_: object) -> bool:
    return False


def _always(*_: object) -> bool:
    return True


def _a_minute_more() -> int:
    return services.loop_ms() + 60_000


def _merged_until_unknown(table: OffsetTable, masters: Mapping[str, Mapping[int, int]]) -> None:
    known = takewhile(lambda key: key in table._table or len(table._table) < table._pairs_max, masters)
    _merge(table, {key: masters[key] for key in known})


def _no_reason(_: object) -> str:
    return ""


async def _is_always_news(*_: object) -> bool:
    return True


def _with_another_port(**fields: Any) -> Any:
    return RegisterBrokerRequest(**{**fields, "ha_server_addr": "10.0.0.3:10999"})


async def _nothing_fetched(_: object) -> None:
    """Do nothing."""


@contextmanager
def _clean_after_the_write(unwritten: Unwritten) -> Iterator[None]:
    yield
    unwritten.is_any = False


def _own_time_if_not_zero(half: HalfMessage, now_ms: int, timeout_ms: int, most_ms: int) -> bool:
    return half.times > 0 or now_ms - half.stored_ms >= min(half.immunity_ms or timeout_ms, most_ms)


def _open_until_stored(table: OpenTransactions, original: int) -> HalfMessage | None:
    return None if original in table._ended else table._halves.get(original)


def _of_any_size(table: OpenTransactions, _: int) -> list[HalfMessage]:
    return _without_operation(table, 1 << 30)


async def _seek_at_the_first(registrar: Any, known: Any) -> None:
    if await registrar._is_news(registrar._name_servers[0], known):
        await registrar.register()


def _any_queue(message: Any) -> tuple[str, int]:
    return message.properties.get("REAL_TOPIC", "t"), 0


def _a_second_late(due_ms: int, now_ms: int) -> bool:
    return due_ms <= now_ms - 1000


def _originals_only(table: WaitingTimers, key: tuple[str, str]) -> list[Any]:
    return [each for each in _named(table, key) if each.original == each.place]


def _needed_if_waiting(table: WaitingTimers, _flushed: int) -> int | None:
    oldest = table.oldest()
    return oldest.commit_offset if oldest else None


def _all_delivered(_disk: object, store: Any) -> timed_messages.Point:
    return timed_messages.Point(0, 99, 10**15, store.next_commit_offset)


def _at_the_own_address(host: str, port: int) -> Address:
    return Address(host.replace("10.0.9.50", "10.0.0.3"), port)


def _no_system_topic(*_: object) -> bool:
    return False


def _first_channel(group: ConsumerGroup, client_id: str) -> Any:
    return next(each for each, one in group.members.items() if one.client_id == client_id)


def _sent_in_memory(table: OffsetTable, topic: str, group: str, queue_id: int, offset: int) -> None:
    before = table._unwritten.is_any
    _mark_sent(table, topic, group, queue_id, offset)
    table._unwritten.is_any = before


def _commits_only(transactions: Transactions, original: int, end: End, commit_offset: int) -> None:
    if end is End.COMMIT:
        _end_read(transactions, original, end, commit_offset)


def _mutant(name: str, defect: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    return unexplained(name, defect, f"{_BROKER}.{where}", wrong)


INSPECTIONS: Final[Mapping[str, str]] = {
    "point-a-millisecond-late": "waiting messages",
    "copies-not-counted": "copies of waiting messages",
    "dropped-messages-still-wait": "damaged waiting messages",
    "timercheck-ignored": "waiting messages of 5.x",
    "waiting-forgotten-after-recalls": "very many waiting messages",
    "checks-not-counted": "transactions",
    "delay-progress-not-lowered": "delays",
    "held-after-a-failed-read": "failing reads",
    "names-never-free": "shares",
    "written-changes-not-counted": "last places",
    "memberships-not-limited": "memberships",
    "silent-filter-servers-kept": "filter servers",
    "no-room-for-copies": "corner cases",
    "longer-running": "running time",
    "registered-at-each-look": "registration",
    "other-port-for-slaves": "registration by default",
    "list-never-fetched": "fetched name servers",
    "sent-offsets-still-unsent": "offsets of a slave",
    "no-offsets-after-an-unknown-pair": "full slave",
    "masters-expression-always": "expressions of a slave",
    "ready-with-a-failed-disk": "metrics of a pair",
    "dropped-pulls-still-held": "many held pulls",
    "slave-deletes-what-waits": "a slave's disk",
    "changes-during-a-write-forgotten": "changing tables",
    "progress-before-the-log": "lost power",
    "own-time-of-zero-ignored": "times of checks",
    "ended-twice-at-once": "ends on a slow disk",
    "operations-of-any-size": "many ends",
    "leader-still-a-slave": "elected master",
    "first-name-server-asked-only": "silent name servers",
    "half-messages-of-any-queue": "strange half messages",
    "delays-of-no-time": "strange delayed messages",
    "requests-to-the-first-connection": "heartbeats",
    "sent-offsets-not-noted-on-disk": "changes at a slave",
    "discarded-messages-checked-again": "ends without operations",
    "operations-forgotten": "ends beside an open transaction",
    "system-topics-of-no-broker": "first start",
    "a-second-late": "exact timers",
    "copies-not-recalled": "recalled copies",
    "slave-deletes-delayed-messages": "segments of a slave",
    "finals-need-no-flush": "segments of waiting messages",
    "slaves-at-the-own-address": "advertised address",
    "expressions-kept-for-good": "kept expressions",
    "any-timercheck-counts": "wrong progress of 5.x",
}
"""The inspection that detects each mutant."""

MUTANTS: Final = by_name(
    _mutant(
        "point-a-millisecond-late", "a point covers the messages of the next millisecond",
        "state.waiting_timers:WaitingTimers.point", _a_millisecond_more,
    ),
    _mutant(
        "copies-not-counted", "each copy of a waiting message counts as the first one",
        "timed_messages:rolled", _always_the_first,
    ),
    _mutant(
        "dropped-messages-still-wait", "a waiting message that is dropped still counts as one that waits",
        "state.waiting_timers:WaitingTimers.finish", _with_evidence_only,
    ),
    _mutant(
        "timercheck-ignored", "the progress of a released broker's timers is not read",
        "processors.recalls:released_progress", nothing,
    ),
    _mutant(
        "waiting-forgotten-after-recalls", "a table that shrinks forgets the messages that wait",
        "state.waiting_timers:WaitingTimers.finish", _held_only,
    ),
    _mutant(
        "checks-not-counted", "each check of a transaction counts as the first one",
        "half_messages:checked_copy", _not_counted,
    ),
    _mutant(
        "delay-progress-not-lowered", "progress beyond the end of a delay level is kept",
        "delayed:DelayedDelivery.cut", nothing,
    ),
    _mutant(
        "held-after-a-failed-read", "a waiting message that could not be read is not tried again",
        "state.waiting_timers:WaitingTimers.release", nothing,
    ),
    _mutant(
        "names-never-free", "names that could not be created, or are deleted, count for the share of a peer",
        "state.subscription_groups:NameBudget.deleted", nothing,
    ),
    _mutant(
        "written-changes-not-counted", "changes that are being written do not count for the limit of a table",
        "state.durable_table:DurableTable.__len__", _without_written,
    ),
    _mutant(
        "memberships-not-limited", "heartbeats may fill the memory of the broker",
        "state.clients:ClientTable.refusal", nothing,
    ),
    _mutant(
        "silent-filter-servers-kept", "a filter server that is silent stays registered",
        "state.filter_servers:FilterServers.drop_silent", _none_silent,
    ),
    _mutant(
        "no-room-for-copies", "a message is accepted whose copies cannot be stored",
        "timed_messages:has_room_for_copies", _always,
    ),
    _mutant(
        "longer-running", "the broker counts a minute that it did not run",
        "processors.broker_admin:loop_ms", _a_minute_more,
    ),
    _mutant(
        "registered-at-each-look", "a slave without its master registers whenever it looks for one",
        "registration:Registrar._is_news", _is_always_news,
    ),
    _mutant(
        "other-port-for-slaves", "a master registers another port for slaves than that on which it listens",
        "registration:RegisterBrokerRequest", _with_another_port,
    ),
    _mutant(
        "list-never-fetched", "the list of an address server is not fetched",
        "registration:Registrar.fetch", _nothing_fetched,
    ),
    _mutant(
        "sent-offsets-still-unsent", "a slave never accepts a lower offset of its master once it had its own",
        "state.offsets:OffsetTable.mark_sent", nothing,
    ),
    _mutant(
        "no-offsets-after-an-unknown-pair", "a slave with a full table ignores what follows an unknown pair",
        "state.offsets:OffsetTable.merge", _merged_until_unknown,
    ),
    _mutant(
        "masters-expression-always", "the expression of the master replaces that of a member at the slave",
        "state.consumer_filters:_is_newer", _always,
    ),
    _mutant(
        "ready-with-a-failed-disk", "a broker is ready as long as it runs",
        "broker_metrics:BrokerMetrics.unready", _no_reason,
    ),
    _mutant(
        "dropped-pulls-still-held", "the pulls of a connection that has ended count as held",
        "long_polling:PullHolds.drop", nothing,
    ),
    _mutant(
        "slave-deletes-what-waits", "a slave deletes the segments of messages that its master has to deliver",
        "timers:Timers._needed_by_point", nothing,
    ),
    _mutant(
        "changes-during-a-write-forgotten", "a table counts as written with what changed during the write",
        "state.unwritten:Unwritten.writing", _clean_after_the_write,
    ),
    unexplained(
        "progress-before-the-log", "a broker stores its progress before the log is durable",
        "mqproof.impl.store.message_store:MessageStore.flush_log", _nothing_fetched,
    ),
    _mutant(
        "own-time-of-zero-ignored", "a half message without an immunity time waits as long as others",
        "transactions:is_due", _own_time_if_not_zero,
    ),
    _mutant(
        "ended-twice-at-once", "a transaction can end in another way while its commit is being stored",
        "state.open_transactions:OpenTransactions.find", _open_until_stored,
    ),
    _mutant(
        "operations-of-any-size", "an operation contains all ends, however many there are",
        "state.open_transactions:OpenTransactions.without_operation", _of_any_size,
    ),
    _mutant(
        "leader-still-a-slave", "a member that leads its group still counts its offsets as those of a slave",
        "state.offsets:OffsetTable.lead", nothing,
    ),
    _mutant(
        "first-name-server-asked-only", "a slave asks only the first name server for its master",
        "registration:Registrar.seek_master", _seek_at_the_first,
    ),
    _mutant(
        "half-messages-of-any-queue", "a half message that names no queue is committed to the first one",
        "half_messages:real_queue", _any_queue,
    ),
    _mutant(
        "delays-of-no-time", "a delayed message is due at once", "delayed:is_due", _always,
    ),
    _mutant(
        "requests-to-the-first-connection", "a client that connected again is asked on its old connection",
        "state.clients:ConsumerGroup.channel_of", _first_channel,
    ),
    _mutant(
        "sent-offsets-not-noted-on-disk", "a slave forgets at a restart which offsets its master has",
        "state.offsets:OffsetTable.mark_sent", _sent_in_memory,
    ),
    _mutant(
        "discarded-messages-checked-again", "a restart forgets which half messages were discarded",
        "transactions:Transactions._end_read", _commits_only,
    ),
    _mutant(
        "operations-forgotten", "the progress passes operations that a restart needs",
        "state.open_transactions:OpenTransactions.note_operation", nothing,
    ),
    _mutant(
        "system-topics-of-no-broker", "an administrator may delete the broker's own topics",
        "processors.topic_admin:is_system_topic", _no_system_topic,
    ),
    _mutant(
        "a-second-late", "a message that waits is delivered a second after its time",
        "state.waiting_timers:is_due", _a_second_late,
    ),
    _mutant(
        "copies-not-recalled", "a message that was copied cannot be recalled",
        "state.waiting_timers:WaitingTimers.named", _originals_only,
    ),
    _mutant(
        "slave-deletes-delayed-messages", "a slave deletes segments that its master's delayed messages need",
        "delayed:DelayedDelivery._needed_from", nothing,
    ),
    _mutant(
        "finals-need-no-flush", "the segment of a message is deleted before its delivery is durable",
        "state.waiting_timers:WaitingTimers.needed_from", _needed_if_waiting,
    ),
    _mutant(
        "slaves-at-the-own-address", "a master with an advertised address registers another one for slaves",
        "replicas:Address", _at_the_own_address,
    ),
    _mutant(
        "expressions-kept-for-good", "the expression of a group without members is never removed",
        "state.consumer_filters:ConsumerFilterTable.drop_expired", _is_always_news,
    ),
    _mutant(
        "any-timercheck-counts", "the progress of a released broker counts, whatever its file has",
        "processors.recalls:released_progress", _all_delivered,
    ),
)  # fmt: skip
