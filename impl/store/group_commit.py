"""Group commit: the puts of one turn of the event loop are written and flushed together.

A broker under load reads many requests in a turn. One write, one dispatch and one wait for all of them cost
little more than for a single request.
"""

from collections.abc import Callable
from itertools import groupby
from typing import Final

import msgspec

from mqproof.impl.remoting.message import Address, address_digits
from mqproof.impl.store.dispatch import Run
from mqproof.impl.store.results import PutResult, PutStatus

Done = Callable[[list[PutResult]], None]
"""Called once with the results of a put; must not raise."""

TRANSFER_BYTES: Final = 32 << 10
"""The most bytes of the log that a master sends in one transfer, as released masters do.

A slave confirms them together.
"""


class Put(msgspec.Struct, frozen=True):
    """Messages that were staged together, and the callback that receives their status."""

    run: Run
    store_host: Address
    wait: bool
    """Whether to wait for the flush and for slaves."""
    done: Done


def parts(puts: list[Put]) -> list[list[Put]]:
    """Return the puts of one turn in the parts in which a slave confirms them, if it has all before them.

    While the slave stores the next part, the master answers this one, and the producers send more.
    """
    begin = puts[0].run.offsets[0]
    by_transfer = groupby(puts, lambda put: (put.run.end - begin - 1) // TRANSFER_BYTES)
    return [list(part) for _, part in by_transfer]


def answer(puts: list[Put], status: PutStatus, reason: str) -> None:
    """Report this status to each put."""
    for put in puts:
        put.done(results(put.run, put.store_host, status, reason))


def results(run: Run, store_host: Address, status: PutStatus, reason: str) -> list[PutResult]:
    """Return the results of messages that are in the log, whatever the status says about durability."""
    host, queue_offset, stored_ms = address_digits(store_host), run.queue_offset, run.store_timestamp_ms
    found = []
    for commit_offset, size in zip(run.offsets, run.sizes, strict=True):
        message_id = f"{host}{commit_offset:016X}"
        found.append(PutResult(status, queue_offset, commit_offset, message_id, reason, size, stored_ms))
        queue_offset += 1
    return found
