"""Loads that use more than plain sends or plain pulls: a live consumer, delayed messages, transactions.

Times are in seconds, counts are messages. Like the loads of `load.py`, none waits without a bound.
"""

import asyncio
import time
from typing import Final

from mqproof.conformance.bench.load import (
    FIRST_OPAQUE,
    Address,
    Answer,
    Messages,
    connected,
    expect,
    frame_of,
    header_of,
    reading,
    send_rate,
    sends,
    until_done,
)

HALF: Final = "TRAN_MSG\x01true\x02PGROUP\x01bench"
"""The properties of a half message."""
PREPARED: Final = 4
"""The system flag of a half message."""
_END_TRANSACTION: Final = 37
_COMMIT: Final = 8
_FIRST_END: Final = FIRST_OPAQUE + 500_000_000
"""The opaque number of the first end of a transaction. It has as many digits as those of sends."""


async def live_rate(
    address: Address, messages: Messages, total: int, outstanding: int, delay_s: float = 0.0
) -> float:
    """Return the messages per second that are sent and also read by a consumer that waits for them.

    The time is that from the first send to the last delivery, without the messages' delay.

    Raises:
        LoadError: the broker refused, closed a connection, or did not deliver all messages.
    """
    async with reading(address, messages, total, "delivered") as all_read:
        began = time.perf_counter()
        await asyncio.gather(send_rate(address, messages, total, outstanding), all_read())
        return total / (time.perf_counter() - began - delay_s)


async def transaction_rate(address: Address, messages: Messages, total: int, outstanding: int) -> float:
    """Return the committed transactions per second, with a constant number that is not committed yet.

    `messages` are half messages. Each is committed after it is stored, and the next one follows.

    Raises:
        LoadError: the broker refused a message or its end, closed the connection, or stopped answering.
    """
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    frames = sends(messages)
    begun = committed = 0

    def begin() -> None:
        nonlocal begun
        begun += 1
        _, head, body = next(frames)
        wire.send(head + body)

    def on_answer(answer: Answer, _body: memoryview) -> None:
        nonlocal committed
        expect(answer)
        if answer.opaque < _FIRST_END:
            wire.send(_commit(answer))
            return
        committed += 1
        if begun < total:
            begin()
        elif committed == total:
            done.set_result(None)

    async with connected(address, on_answer) as wire:
        began = time.perf_counter()
        for _ in range(min(outstanding, total)):
            begin()
        wire.flush()
        await until_done(done, wire, progress=lambda: f"{committed} of {total} transactions were committed")
        return total / (time.perf_counter() - began)


def _commit(half: Answer) -> bytes:
    """Return the request that commits a half message, from the answer to its send."""
    stored = half.extFields or {}
    fields = {
        "producerGroup": "bench",
        "tranStateTableOffset": stored["queueOffset"],
        "commitLogOffset": int(stored["msgId"][-16:], 16),
        "commitOrRollback": _COMMIT,
        "msgId": stored["transactionId"],
        "transactionId": stored["transactionId"],
    }
    opaque = _FIRST_END + half.opaque - FIRST_OPAQUE
    return frame_of(header_of(_END_TRANSACTION, fields, opaque).encode())
