"""A watch without Spark: each batch is read and judged by DuckDB in this process.

The state records which files and messages were read, so a batch and its place in the input become durable
together.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.incremental.carried_state import NO_BATCH, Batch
from mqproof.spark_audit.incremental.state_folder import newest, open_run, read_manifest
from mqproof.spark_audit.incremental.watch import ReportViolation, Watch, announce_again, judge_batch
from mqproof.spark_audit.incremental.watched_sources import LOCAL, check_sources
from mqproof.spark_audit.runtime.scratch import scratch as scratch_folder
from mqproof.spark_audit.sources.embedded_read import NotEmbeddedError, read_embedded
from mqproof.spark_audit.sources.inputs import InputError, Inputs, find_files, logs_inside
from mqproof.spark_audit.sources.log_size import estimated_events

if TYPE_CHECKING:
    from mqproof.spark_audit.engine.embedded.database import Database

BATCH_EVENTS: Final = 2_000_000
"""About the maximum number of events in a batch, which DuckDB keeps in memory."""

_POLL_S: Final = 1.0


def watch_locally(
    database: "Database",
    request: Watch,
    scratch: Path,
    report: ReportViolation,
    say: Callable[[str], None],
) -> None:
    """Judge batches until the process is asked to end, or, with `once`, until all input is judged.

    Raises:
        InputError: not a folder; a state of another watch; rows of an earlier batch; a file that `audit run`
            refuses, or that only Spark reads.
    """
    check_sources(request.state, request.source, LOCAL)
    if (state := newest(request.state)) and (batch := read_manifest(state).newest_batch).number >= 0:
        announce_again(state, batch.number, report, say)
    while True:
        began_s = time.monotonic()
        while _judge_next(database, request, scratch, report, say):
            pass
        if request.once:
            return
        _wait(began_s + request.every_s, request.poll)


def _wait(until_s: float, poll: Callable[[], None] | None) -> None:
    """Wait in short intervals, and poll in each."""
    while True:
        if poll:
            poll()
        remaining_s = until_s - time.monotonic()
        if remaining_s <= 0:
            return
        time.sleep(min(remaining_s, _POLL_S))


def _judge_next(
    database: "Database",
    request: Watch,
    scratch: Path,
    report: ReportViolation,
    say: Callable[[str], None],
) -> bool:
    """Judge the next batch. Return whether there was one."""
    state = newest(request.state)
    before = read_manifest(state).newest_batch if state else NO_BATCH
    with database.scope(), scratch_folder(scratch) as folder:
        inputs, messages, batch = _next_input(request, before, folder, say)
        if not (inputs.files or messages):
            return False
        run = open_run(database, request.state, request.late_us, request.forget_us)
        try:
            log = read_embedded(database, inputs, folder, messages=messages)
        except NotEmbeddedError as error:
            raise InputError(f"{error}; only --engine spark reads it, with another --state") from None
        # Of a message, the queue is named, and not the file that has its lines for now.
        shown = f.regexp_replace("file", "^" + re.escape(f"{folder}/"), "")
        log = replace(log, corrupt=log.corrupt.withColumn("file", shown))
        judge_batch(request, run, log, batch, folder, report, say)
    return True


def _next_input(
    request: Watch, before: Batch, folder: Path, say: Callable[[str], None]
) -> tuple[Inputs, tuple[Path, ...], Batch]:
    """Return the event logs of the next batch, those of messages, and what has been read with it."""
    present = present_logs(request.source.folders)
    unread = [file for file in present if str(file) not in set(before.files)]
    files = next_files(unread, request.batch_bytes)
    inputs = find_files([str(file) for file in files]) if files else Inputs(())
    messages: tuple[Path, ...] = ()
    places = before.places
    if request.source.topics:
        # Late, because the client takes 0.2 s to import.
        from mqproof.spark_audit.sources.topic_batches import Limits, next_messages
        from mqproof.spark_audit.sources.topic_positions import read_options

        limits = Limits(request.batch_messages, request.batch_bytes)
        taken = next_messages(read_options(request.source.topics), places, limits, folder, say)
        messages, places = taken.files, taken.places
    # A file that was removed from its folder need not be remembered.
    known = set(before.files).intersection(map(str, present))
    batch = Batch(before.number + 1, tuple(sorted(known.union(map(str, files)))), places)
    return inputs, messages, batch


def present_logs(folders: Sequence[Path]) -> list[Path]:
    """Return the event logs in the folders, those with the oldest time of change first."""
    found: dict[Path, int] = {}
    for folder in folders:
        for file in logs_inside(folder.absolute()):
            try:
                found[file] = file.stat().st_mtime_ns
            except FileNotFoundError:
                continue  # removed after it was listed
    return sorted(found, key=lambda file: (found[file], file))


def next_files(unread: Sequence[Path], bytes_max: int, events_max: int = BATCH_EVENTS) -> list[Path]:
    """Return the files of the next batch: at least one, if there is one."""
    taken: list[Path] = []
    for file in unread:
        bytes_max -= file.stat().st_size
        events_max -= estimated_events([file])
        if taken and min(bytes_max, events_max) < 0:
            break
        taken.append(file)
    return taken
