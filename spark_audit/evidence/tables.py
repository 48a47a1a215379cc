"""The evidence: what the passes found, as the tables that the checks read.

Field names are those of docs/protocol.md, "What the audit reads".
"""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame

from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.passes.fingerprint import Buckets
from mqproof.spark_audit.sources.store_tables import Stored

IS_MESSAGE: Final = "part = 'message'"
"""Of a row of sums.JUDGED."""


@dataclass(frozen=True, slots=True)
class Evidence:
    events: DataFrame
    """The log's TRAFFIC columns, plus `broker` (whose queue, log or crash the row is about) and `reset`.
    Without the attrs map, whose decoding costs more than that of all other columns together."""
    rare: DataFrame
    """The few rows that are not traffic, with their attrs: crashes, recoveries, rebalances, resets, failed
    consumption."""
    buckets: Buckets | None
    """Which buckets of messages are not clean as a whole (fingerprint.py); None: every message is looked
    at."""
    judged: DataFrame
    """Of the messages of the buckets that are read, numbers only (sums.py): those that may be looked at, a
    row each, `clean` where no check has anything to find; and how many there are of each kind."""
    doubtful: DataFrame
    """The keys of the messages that are not clean."""
    doubted: DataFrame
    """The events of the messages that are not clean: of sums.KINDS, and what became of half messages."""
    messages: DataFrame
    """One row a msg_id that is not clean: what its producer tried and was told, where it was stored, who was
    handed it."""
    troubled: DataFrame
    """The events of the messages whose consumption failed, or of which a dead letter was made."""
    runs: DataFrame
    """What the tasks told of rows of which each is the next one of its sequence (sequences.py)."""
    steps: DataFrame
    """The deliveries and commits that do not."""
    spans: DataFrame
    """One row a (kind, node, group, broker, topic, queue_id) of deliver and offset_commit: its extent."""
    causes: DataFrame
    """One row a (scope, key): when something happened that explains what would otherwise be a violation."""
    log: DataFrame
    """The whole log with all its columns, and `broker`. For checks of rare kinds: what is not read of it
    costs nothing only where a file's statistics show that it has none of them."""
    profile: DataFrame
    """What the first pass told (profile.py)."""
    options: Options
    store: Stored | None = None
    """What the brokers' store directories hold, where they were given."""

    @property
    def sums(self) -> DataFrame:
        """The messages of `judged`."""
        return self.judged.where(IS_MESSAGE)

    @property
    def stored(self) -> Stored:
        assert self.store is not None, "a check of stores is run only where there are any"
        return self.store
