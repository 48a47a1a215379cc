"""Mutants of a client's traces: each replaces one rule by a wrong one. Behaviours of Tracing detect them."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.client.model import Sent
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.client.tracing.trace_dispatcher import TraceDispatcher
from mqproof.impl.client.tracing.trace_records import Published, TraceRecord
from mqproof.impl.remoting.message import Message

_add, _lost, _send = TraceDispatcher.add, TraceDispatcher._lost, Producer.send
_AT: Final = "mqproof.impl.client.tracing.trace_dispatcher:TraceDispatcher"
_PAUSE_S: Final = 0.1


async def _waits_for_room(producer: Any, *args: Any, **options: Any) -> Any:
    outcome = await _send(producer, *args, **options)
    traces = producer._traces
    while traces is not None and len(traces._waiting) >= traces._waiting_max:
        await asyncio.sleep(_PAUSE_S)
    return outcome


def _raises_without_room(traces: TraceDispatcher, records: Iterable[TraceRecord]) -> None:
    if len(traces._waiting) >= traces._waiting_max:
        raise RuntimeError("no room for a trace")
    _add(traces, records)


def _without_bound(traces: TraceDispatcher, records: Iterable[TraceRecord]) -> None:
    traces._waiting_max = 1 << 30
    _add(traces, records)


def _always_good(traces: TraceDispatcher, records: Iterable[TraceRecord]) -> None:
    _add(traces, (replace(one, ok=True) if isinstance(one, Published) else one for one in records))


def _full_not_counted(traces: TraceDispatcher, count: int, reason: str) -> None:
    if "wait" not in reason:
        _lost(traces, count, reason)


def _batch_counted_once(traces: TraceDispatcher, count: int, reason: str) -> None:
    _lost(traces, min(count, 1), reason)


async def _stop_forgets_batch(traces: TraceDispatcher) -> None:
    """End as clients of ours did before: the batch that is being sent is nowhere counted."""
    traces._is_stopped = True
    before = traces.dropped
    if traces._task is not None:
        traces._task.cancel()
        await asyncio.gather(traces._task, return_exceptions=True)
    traces.dropped = before + len(traces._waiting)
    traces._waiting.clear()


async def _ends_with_failure(traces: TraceDispatcher) -> None:
    batch, body = traces._next_batch()
    outcome = (await asyncio.gather(traces._send(Message(traces.topic, body)), return_exceptions=True))[0]
    if not isinstance(outcome, Sent):
        traces._lost(len(batch), "failed")
        await asyncio.Event().wait()


MUTANTS: Final = by_name(
    Mutant(
        "send-waits-for-its-trace",
        "a send ends only when there is room for another trace",
        "TRACE-5",
        "mqproof.impl.client.producing.producer:Producer.send",
        _waits_for_room,
    ),
    Mutant(
        "send-fails-with-its-trace",
        "a send fails if there is no room for its trace",
        "TRACE-1",
        f"{_AT}.add",
        _raises_without_room,
    ),
    Mutant("traces-unbounded", "traces wait without a bound", "TRACE-2", f"{_AT}.add", _without_bound),
    Mutant(
        "each-trace-good",
        "a trace states SEND_OK, whatever the broker answered",
        "TRACE-3",
        f"{_AT}.add",
        _always_good,
    ),
    Mutant(
        "full-not-counted",
        "a trace for which there is no room is not counted",
        "TRACE-4",
        f"{_AT}._lost",
        _full_not_counted,
    ),
    Mutant(
        "batch-counted-once",
        "a batch that fails is counted as one trace",
        "TRACE-4",
        f"{_AT}._lost",
        _batch_counted_once,
    ),
    Mutant(
        "stop-forgets-batch",
        "a stop does not count the batch that is being sent",
        "TRACE-4",
        f"{_AT}.stop",
        _stop_forgets_batch,
    ),
    Mutant(
        "tracing-ends-with-failure",
        "after a failed batch no other batch is sent",
        "TRACE-6",
        f"{_AT}._send_batch",
        _ends_with_failure,
    ),
)
