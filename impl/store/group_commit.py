"""Group commit: the puts of one turn of the event loop are written and flushed together.

A broker under load reads many requests in a turn. One write, one dispatch and one wait for all of them cost
little more than for a single request.
"""

from collections.abc import Callable

import msgspec

from mqproof.impl.remoting.message import Address, offset_message_ids
from mqproof.impl.store.dispatch import Appended
from mqproof.impl.store.results import PutResult, PutStatus

Done = Callable[[list[PutResult]], None]
"""Called once with the results of a put; must not raise."""


class Put(msgspec.Struct, frozen=True):
    """Messages that were staged together, and the callback that receives their status."""

    appended: list[Appended]
    store_host: Address
    wait: bool
    """Whether to wait for the flush and for slaves."""
    done: Done


def answer(puts: list[Put], status: PutStatus, reason: str) -> None:
    """Report this status to each put."""
    for put in puts:
        put.done(results(put.appended, put.store_host, status, reason))


def results(appended: list[Appended], store_host: Address, status: PutStatus, reason: str) -> list[PutResult]:
    """Return the results of messages that are in the log, whatever the status says about durability."""
    ids = offset_message_ids(store_host, [one.commit_offset for one in appended])
    return [
        PutResult(status, one.queue_offset, one.commit_offset, message_id, reason, one.size)
        for one, message_id in zip(appended, ids, strict=True)
    ]
