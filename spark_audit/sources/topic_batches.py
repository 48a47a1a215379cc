"""The topics of a watch without Spark: the next messages of each queue become an event log."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.client.model import ClientError
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.store.ranges import StoreError
from mqproof.spark_audit.sources.topic_positions import (
    Options,
    Positions,
    Slice,
    advance,
    begin,
    offset_ranges,
    pulled,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum size of a batch, approximately; each queue advances."""

    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TopicBatch:
    files: tuple[Path, ...]
    """One event log for each queue with new messages. Its name is that of the queue."""
    places: Positions
    """Where the next batch begins."""


def next_messages(
    options: Options, places: Mapping[str, int], limits: Limits, folder: Path, say: Callable[[str], None]
) -> TopicBatch:
    """Write the messages after `places` into event logs; without places, those from the beginning.

    A queue whose broker does not answer keeps its place, and a line says so.

    Raises:
        InputError: messages were deleted before they were read, or no broker has ever answered.
    """
    try:
        ends = offset_ranges(options, skip_unavailable=bool(places))
        start = dict(places) or begin(options, ends)
        until = advance(start, ends, limits.messages, options)
        return _written(options, start, until, limits.bytes, folder, say)
    except (StoreError, ClientError) as error:
        raise InputError(f"--topic: {error}") from None


def _written(
    options: Options,
    start: Positions,
    until: Positions,
    bytes_max: int,
    folder: Path,
    say: Callable[[str], None],
) -> TopicBatch:
    ahead = sorted(name for name, end in until.items() if end > start.get(name, 0))
    places = until | {name: start.get(name, 0) for name in ahead}
    files = []
    with options.client() as client:
        for name in ahead:
            part = Slice(name, places[name], until[name])
            # A broker's name may contain separators of a path.
            file = folder / f"{quote(name, safe='@:')}.ndjson"
            try:
                for place in _copied(client, part, options, file, bytes_max // len(ahead)):
                    places[name] = place
            except ClientError as error:
                say(f"{name}: skipped for now: {error}")
            if file.exists() and file.stat().st_size:
                files.append(file)
    return TopicBatch(tuple(files), places)


def _copied(
    client: BlockingClient, part: Slice, options: Options, file: Path, bytes_max: int
) -> Iterator[int]:
    """Append the lines of messages to the file, and yield each offset that follows those in the file."""
    for messages, place in pulled(client, part, fail_on_loss=options.fail_on_loss):
        with file.open("ab") as log:
            bodies = (message.message.body.strip() for message in messages)
            log.writelines(body + b"\n" for body in bodies if body)
            size = log.tell()
        yield place
        if size >= bytes_max:
            return
