"""Tests a real killed process: acknowledged messages are in the files, and its event log is a true prefix."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mqproof.impl.runtime.disk import RealDisk
from mqproof.impl.store.config import FlushMode
from mqproof.spec.events import Kind, read_log
from tests.impl.store.site import SMALL, Site, stored_messages

WRITER = """
import asyncio, itertools, random, sys
from dataclasses import replace
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.impl.store.config import FlushMode
from mqproof.impl.store.message_store import MessageStore
from tests.impl.store.site import SMALL, message

async def write(directory, mode):
    runtime = production(SimulatedNetwork())
    log = EventLog.to_file(directory + "/events.ndjson", "broker", runtime.clock)
    config = replace(SMALL, flush_mode=FlushMode(mode), commit_log_segment_bytes=4096)
    store = MessageStore(directory + "/store", config, runtime, log)
    store.load()
    await store.start()
    numbers = itertools.count(int(sys.argv[3]))
    async def produce(queue_id):
        while True:
            name = f"m{next(numbers)}"
            result = await store.put(message(name, queue_id))
            print(result.status, name, flush=True)
            await asyncio.sleep(0)
    await asyncio.gather(*(produce(queue_id) for queue_id in range(4)))

asyncio.run(write(sys.argv[1], sys.argv[2]))
"""
ACKS = 60


def _run_and_kill(directory: Path, mode: FlushMode, first: int) -> set[str]:
    """Return the names acknowledged before the kill."""
    command = [sys.executable, "-c", WRITER, str(directory), mode, str(first)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    try:
        lines = [writer.stdout.readline() for _ in range(ACKS)]
    finally:
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().splitlines(keepends=True)
        writer.stdout.close()
        writer.wait(timeout=60)
    whole = [line.split() for line in [*lines, *rest] if line.endswith("\n")]
    assert len(whole) >= ACKS, "the writer ended by itself"
    return {name for status, name in whole if status == "PUT_OK"}


@pytest.mark.parametrize("mode", list(FlushMode))
def test_two_killed_processes_lose_no_acknowledged_message(mode: FlushMode, tmp_path: Path) -> None:
    acked = _run_and_kill(tmp_path, mode, 0)
    acked |= _run_and_kill(tmp_path, mode, 1_000_000)
    config = replace(SMALL, flush_mode=mode, commit_log_segment_bytes=4096)
    events_file = tmp_path / "events.ndjson"
    site = Site(config, RealDisk(), str(tmp_path / "store"))
    site.to_file(events_file)
    site.open()
    assert site.recovery.abnormal
    found = {stored.message_id for queue_id in range(4) for stored in stored_messages(site.store, queue_id)}
    site.close()
    assert len(acked) >= 2 * ACKS
    assert acked <= found

    events = list(read_log(events_file))
    assert [event.seq for event in events] == list(range(len(events)))
    appended = {event.msg_id for event in events if event.kind is Kind.APPEND}
    assert found == appended
