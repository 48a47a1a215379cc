"""Test a message store of your own against the specification.

`SqliteBroker` keeps its queues in SQLite. It implements the methods that the conformance suite `flush` calls,
and declares what can be done to it: choose the flush mode, kill it, stop it and start it again. `EarlyAck`
contains an error: it confirms a message before the transaction is committed.

    cd examples/adapter
    mqproof conform check-adapter python:sqlite_broker:SqliteBroker
    mqproof conform --target python:sqlite_broker:SqliteBroker --suite flush --examples 20
    mqproof conform --target python:sqlite_broker:EarlyAck --suite flush --examples 20      # exit code 1
"""

import sqlite3
import tempfile

from mqproof.conformance.suites.flush.target import (
    Capability,
    Outcome,
    Pulled,
    PulledMessage,
    PullStatus,
    Sent,
    Setup,
    WireOnly,
)

SCHEMA = """
CREATE TABLE messages (queue INTEGER, place INTEGER, id TEXT, body BLOB, PRIMARY KEY (queue, place));
CREATE TABLE offsets (queue INTEGER PRIMARY KEY, place INTEGER);
"""


class SqliteBroker(WireOnly):
    """A store with one topic and one consumer group."""

    name = "python:sqlite_broker:SqliteBroker"
    capabilities = frozenset(
        {Capability.SYNC_FLUSH, Capability.COMMIT_OFFSET, Capability.KILL, Capability.CLEAN_RESTART}
    )

    def open(self, setup: Setup) -> None:  # noqa: ARG002  # the target names topic and queues in each call
        self.folder = tempfile.TemporaryDirectory()
        self.restart()
        self.database.executescript(SCHEMA)

    def restart(self) -> None:
        self.database = sqlite3.connect(f"{self.folder.name}/store.db", check_same_thread=False)

    def send(self, topic: str, queue_id: int, msg_id: str, body: bytes) -> Sent:
        place = self.max_offset(topic, queue_id)
        self.database.execute("INSERT INTO messages VALUES (?, ?, ?, ?)", (queue_id, place, msg_id, body))
        self.confirm()
        return Sent(Outcome.OK, "SEND_OK", place)

    def confirm(self) -> None:
        self.database.commit()

    def pull(self, topic: str, queue_id: int, offset: int, max_count: int) -> Pulled:
        end = self.max_offset(topic, queue_id)
        if offset > end:
            return Pulled(PullStatus.OFFSET_MOVED, (), end, 0, end)
        query = "SELECT id, body, place FROM messages WHERE queue = ? AND place >= ? ORDER BY place LIMIT ?"
        rows = self.database.execute(query, (queue_id, offset, max_count)).fetchall()
        found = tuple(PulledMessage(key, body, topic, queue_id, place) for key, body, place in rows)
        return Pulled(PullStatus.FOUND if found else PullStatus.NO_NEW, found, offset + len(found), 0, end)

    def min_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        return 0

    def max_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        query = "SELECT coalesce(max(place) + 1, 0) FROM messages WHERE queue = ?"
        return int(self.database.execute(query, (queue_id,)).fetchone()[0])

    def commit_offset(self, topic: str, queue_id: int, offset: int) -> bool:  # noqa: ARG002
        self.database.execute("INSERT OR REPLACE INTO offsets VALUES (?, ?)", (queue_id, offset))
        self.confirm()
        return True

    def query_offset(self, topic: str, queue_id: int) -> int:  # noqa: ARG002
        query = "SELECT coalesce(max(place), 0) FROM offsets WHERE queue = ?"
        return int(self.database.execute(query, (queue_id,)).fetchone()[0])

    def kill(self) -> None:
        """Close without a commit: SQLite rolls the open transaction back, as after a SIGKILL."""
        self.database.close()

    def shutdown(self) -> None:
        self.database.commit()
        self.database.close()

    def close(self) -> None:
        self.database.close()
        self.folder.cleanup()


class EarlyAck(SqliteBroker):
    """A broken variant: a message is confirmed before it is committed."""

    name = "python:sqlite_broker:EarlyAck"

    def confirm(self) -> None:
        pass
