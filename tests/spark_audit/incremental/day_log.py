"""The event log of a day: one broker, one producer, two groups, and a random fault every few minutes."""

from collections import Counter, defaultdict
from random import Random
from typing import Any, Final

Row = dict[str, Any]

SECOND_US: Final = 1_000_000
DAY_S: Final = 86_400
BEGIN_US: Final = 1_795_574_400 * SECOND_US
LATE_S: Final = 300
"""Longer than the time between related events of this log."""


class DayLog:
    """Builds the log; times are in seconds after its beginning."""

    def __init__(self, seed: int, every_s: float) -> None:
        self._chance = Random(seed)
        self._rows: list[tuple[float, str, str, Row]] = []
        self.faults: Counter[str] = Counter()
        self._add(0, "broker", "recover", commit_offset=0, attrs={"flush_disk_type": "SYNC_FLUSH"})
        for group in ("g", "h"):
            attrs = {"type": "TAG", "expression": "*"}
            self._add(0, "broker", "subscribe", topic="t", group=group, attrs=attrs)
        for offset in range(int(DAY_S / every_s)):
            self._message(1 + offset * every_s, offset)

    def rows(self) -> list[Row]:
        """Return the rows in order of time, numbered by node."""
        numbers: Counter[str] = Counter()
        done = []
        for at_s, node, kind, fields in sorted(self._rows, key=lambda row: row[0]):
            row = {"ts": BEGIN_US + int(at_s * SECOND_US), "seq": numbers[node], "node": node, "kind": kind}
            done.append({"attrs": {}, **row, **fields})
            numbers[node] += 1
        return done

    def _add(self, at_s: float, node: str, kind: str, **fields: Any) -> None:
        self._rows.append((at_s, node, kind, fields))

    def _message(self, at_s: float, offset: int) -> None:
        about = {"msg_id": f"m_{offset}", "topic": "t"}
        place = {"queue_id": 0, "queue_offset": offset}
        self._add(at_s, "producer", "send", attempt=1, **about)
        self._add(at_s + 0.01, "broker", "append", commit_offset=offset * 200, **about, **place)
        self._add(at_s + 0.02, "producer", "send_ack", status="SEND_OK", **about, **place)
        for group, wait_s in (("g", 1.0), ("h", 100.0)):
            self._deliver(at_s + wait_s, offset, group)
        if offset % 50 == 0:
            self._commit(at_s + 2, offset)

    def _deliver(self, at_s: float, offset: int, group: str) -> None:
        fault = self._chance.random() * 500
        if fault < 1:
            self.faults["lost"] += 1
            return
        self._delivery(at_s, offset, group)
        if fault < 2:
            self.faults["repeated"] += 1
            self._delivery(at_s + self._chance.uniform(1, 90), offset, group)
        elif fault < 3:
            # A member that joins explains a repetition.
            client = {"group": group, "client": f"consumer-{group}"}
            self._add(at_s + 5, f"consumer-{group}", "rebalance", **client)
            self._delivery(at_s + 10, offset, group)

    def _delivery(self, at_s: float, offset: int, group: str) -> None:
        node = f"consumer-{group}"
        about = {"msg_id": f"m_{offset}", "topic": "t", "queue_id": 0, "queue_offset": offset}
        self._add(at_s, node, "deliver", group=group, client=node, **about)

    def _commit(self, at_s: float, offset: int) -> None:
        about = {"topic": "t", "queue_id": 0, "group": "g", "attrs": {"broker": "broker"}}
        self._add(at_s, "broker", "offset_commit", queue_offset=offset, **about)
        if self._chance.random() < 0.01:
            self.faults["back"] += 1
            self._add(at_s + 1, "broker", "offset_commit", queue_offset=max(0, offset - 7), **about)


def by_period(rows: list[Row], seconds: int) -> list[list[Row]]:
    """Return the rows of each period."""
    periods: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        periods[(row["ts"] - BEGIN_US) // (seconds * SECOND_US)].append(row)
    return [periods[number] for number in sorted(periods)]
