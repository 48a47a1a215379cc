"""The evidence: the results of the passes, as the tables that the checks read.

Field names are those of docs/reference/protocol/event-log.md, "Audit inputs".
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.gaps import Gap
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.sources.store.stored import Stored

if TYPE_CHECKING:
    from mqproof.spark_audit.passes.fingerprint import Buckets

IS_MESSAGE: Final = "part = 'message'"
"""Condition for message rows in sums.JUDGED."""


@dataclass(frozen=True, slots=True)
class Evidence:
    events: DataFrame
    """The log's TRAFFIC columns, plus `broker` (whose queue, log or crash the row is about) and `reset`.

    It omits the attrs map, because decoding it costs more than all other columns together.
    """
    rare: DataFrame
    """The few rows that are not traffic, with attrs.

    These are crashes, recoveries, rebalances, resets and failed consumption.
    """
    buckets: "Buckets | None"
    """The buckets of messages that are not clean as a whole (fingerprint.py).

    None means that all messages are checked.
    """
    judged: DataFrame
    """Numeric aggregates of the messages of the buckets that are read (sums.py).

    There is a row for each message that may need a check, with `clean` if no check can find anything, and
    tallies of all messages.
    """
    ambiguous: DataFrame
    """The keys of the messages that are not clean."""
    ambiguous_events: DataFrame
    """The events of the messages that are not clean, including commits of half messages."""
    messages: DataFrame
    """One row per msg_id that is not clean: its attempts with outcomes, its places, and its deliveries."""
    failure_events: DataFrame
    """The events of the messages whose consumption failed or that became dead letters."""
    runs: DataFrame
    """The runs found by tasks: stretches of rows, each the successor of the one before it (sequences.py)."""
    steps: DataFrame
    """The deliveries and commits that do not follow the previous one of their sequence."""
    spans: DataFrame
    """One row per (kind, node, group, broker, topic, queue_id) of deliver and offset_commit: its extent."""
    causes: DataFrame
    """One row per cause and key: the times of events that explain what would otherwise be a violation."""
    log: DataFrame
    """The whole log with all its columns, and `broker`. For checks of rare kinds.

    A file without rows of these kinds is skipped only if its statistics show that it has none.
    """
    profile: DataFrame
    """The profile from the first pass (profile.py)."""
    options: Options
    complete_from: int | None = None
    """The time from which the log of each node is complete; None as in profile.Overview."""
    gaps: tuple[Gap, ...] = ()
    """The times from which rows of nodes are missing."""
    sql_selected: DataFrame | None = None
    """msg_id and the SQL92 subscriptions that select it; None if no group subscribes by SQL92."""
    store: Stored | None = None
    """The contents of the brokers' store directories, if they were given."""

    @property
    def sums(self) -> DataFrame:
        """The messages of `judged`."""
        return self.judged.where(IS_MESSAGE)

    @property
    def stored(self) -> Stored:
        assert self.store is not None, "a check of stores is run only where there are any"
        return self.store
