"""Prints the contents of a store directory as tables for people."""

from rich import box
from rich.console import Console
from rich.table import Table

from mqproof.impl.examine.contents import Contents
from mqproof.impl.runtime.clock import local_text


def show(found: Contents) -> None:
    """Print the contents to standard output, without wrapping lines."""
    console = Console(width=160, soft_wrap=True)
    state = "a broker is using it" if found.in_use else "the last exit was clean"
    if not (found.in_use or found.is_clean):
        state = "abort is there: the last exit was not clean"
    console.print(f"{found.directory}: {state}", highlight=False)
    if (ledger := found.ledger) is not None:
        begins = "empty" if ledger.begin_index is None else f"from entry {ledger.begin_index} on"
        voted = (
            f"term {ledger.term}, vote for {ledger.voted_for or 'no member'}"
            if ledger.term
            else "no currterm"
        )
        console.print(f"member {ledger.member} of a group: ledger {begins}, {voted}", highlight=False)
    console.print(
        f"commit log from {found.log_begin} to {found.log_end},"
        f" {len(found.segments)} segments of {found.segment_bytes} bytes",
        highlight=False,
    )
    for table in _tables(found):
        if table.row_count:
            console.print(table)
    for problem in found.problems:
        console.print(f"problem: {problem}", highlight=False, markup=False)


def _tables(found: Contents) -> list[Table]:
    segments = _table("commit log", "segment", "first record stored")
    for segment in found.segments:
        segments.add_row(segment.name, local_text(segment.first_store_ms))
    topics = _table("topics.json", "topic", "#perm", "#read queues", "#write queues")
    for topic in found.topics:
        topics.add_row(topic.name, str(topic.perm), str(topic.read_queues), str(topic.write_queues))
    queues = _table("consume queues", "topic", "#queue", "#min", "#max", "#files", "last stored")
    for queue in found.queues:
        numbers = (queue.queue_id, queue.min_offset, queue.max_offset, queue.files)
        queues.add_row(queue.topic, *map(str, numbers), local_text(queue.last_store_ms))
    index = _table(
        "index", "file", "#entries", "#first offset", "#last offset", "first stored", "last stored"
    )
    for file in found.index:
        extent = (file.entries, file.begin_offset, file.end_offset)
        index.add_row(file.name, *map(str, extent), local_text(file.begin_ms), local_text(file.end_ms))
    checkpoint = _table("checkpoint", "of", "durable up to what was stored")
    if found.checkpoint is not None:
        known = found.checkpoint
        for name, time_ms in (("log", known.log_ms), ("queues", known.queues_ms), ("index", known.index_ms)):
            checkpoint.add_row(name, local_text(time_ms))
    offsets = _table("consumerOffset.json", "topic", "group", "#queue", "#offset")
    for progress in found.offsets:
        offsets.add_row(progress.topic, progress.group, str(progress.queue_id), str(progress.offset))
    return [segments, topics, queues, index, checkpoint, offsets]


def _table(title: str, *columns: str) -> Table:
    """Return an empty table. A column whose name starts with # has numbers."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.removeprefix("#"), justify="right" if column.startswith("#") else "left")
    return table
