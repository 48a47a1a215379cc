"""Mutants of replication: each replaces one rule by a wrong one in a run of a pair (`pair_run`).

Each names the invariant that must detect it; `mqproof mutants --layer impl` runs them with the others.
Defects that these runs do not reach are detected by behaviours of Replication (`STEPPED`).
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import LogCheck
from mqproof.impl.store.base import Store
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.results import PutStatus


def _always(*_arguments: Any) -> bool:
    return True


def _as_shipped() -> LogCheck:
    return LogCheck.AS_SHIPPED


def _flush_status_wins(flush: PutStatus, _replica: PutStatus) -> PutStatus:
    return flush


def _written_and_not_dispatched(store: MessageStore, records: Sequence[tuple[bytes, StoredMessage]]) -> None:
    for data, stored in records:
        store._log.stage_stored(stored.commit_offset, data, stored.store_timestamp_ms)
    store._log.write_staged()


async def _stays_for_ever(_client: object, receiver: Any, _master: object) -> None:
    await receiver.ended.wait()
    await asyncio.sleep(0)


def _masters_offset(_own: int | None, masters: int, *, unsent: bool) -> int:  # noqa: ARG001
    return masters


def _of_any(acks: Acks, _slaves: int) -> int:
    return acks.highest


def _not_challenged(_network: object, end: Any, allowed: Any) -> Any:
    return allowed(end)


_RULES: Final = "mqproof.impl.replication.rules"
_STORE: Final = "mqproof.impl.store.message_store"

OF_TWO_SLAVES: Final = by_name(
    Mutant(
        "one-of-two-slaves-is-enough",
        "a master that waits for two slaves waits for one",
        "SPEC-1",
        "mqproof.impl.replication.acks:Acks.reached",
        _of_any,
    ),
)
"""The mutants of a master with two slaves, which the programs of the fuzzer do not have."""
MUTANTS: Final = by_name(
    Mutant(
        "no-slave-waited-for",
        "a synchronous master answers before a slave has the message",
        "REPL-1",
        f"{_RULES}:replica_reached",
        _always,
    ),
    Mutant(
        "last-record-not-compared",
        "a slave follows any master that sends bytes for the end of its log",
        "REPL-2",
        f"{_RULES}:agrees",
        _always,
    ),
    Mutant(
        "logs-compared-as-shipped",
        "only positions are compared, as in released brokers",
        "REPL-2",
        "mqproof.conformance.subjects.pair_run:log_check",
        _as_shipped,
    ),
    Mutant(
        "absent-slave-waited-for",
        "a send waits for a slave although none is connected",
        "REPL-3",
        f"{_RULES}:slave_usable",
        _always,
    ),
    Mutant(
        "replica-status-lost",
        "a send reports the status of the flush and not that of the replica",
        "REPL-3",
        "mqproof.impl.store.results:put_status",
        _flush_status_wins,
    ),
    Mutant(
        "slave-shows-nothing",
        "messages that a slave receives get no queue entries",
        "REPL-4",
        f"{_STORE}:MessageStore.append_replicated",
        _written_and_not_dispatched,
    ),
    Mutant(
        "slave-never-hangs-up",
        "a slave stays on a connection whose other end no longer exists",
        "REPL-5",
        "mqproof.impl.replication.client:SlaveClient._stay",
        _stays_for_ever,
    ),
    Mutant(
        "slave-takes-older-offsets",
        "a slave overwrites newer offsets that were committed to it with its master's",
        "DELIV-5",
        f"{_RULES}:merged_offset",
        _masters_offset,
    ),
)
"""The mutants by name."""

STEPPED: Final = by_name(
    Mutant(
        "reader-of-the-slave-sent-back",
        "a master corrects a consumer that read data from its slave which the master has not synced",
        "SPEC-1",
        f"{_STORE}:MessageStore.taken_end",
        Store.taken_end,
    ),
)
"""The mutants by name; a stepped pair detects them (`replicating_pair`)."""

CONDITIONAL: Final = by_name(
    Mutant(
        "stranger-counted",
        "a peer that did not prove the peer secret acknowledges a master's log",
        "TRUST-1",
        "mqproof.impl.runtime.security.peer_network:PeerNetwork._challenge",
        _not_challenged,
    ),
)
"""The mutants by name; a stepped pair detects them where a condition of an action decides."""
