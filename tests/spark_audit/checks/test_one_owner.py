"""DELIV-6 examines only overlapping runs of two nodes, and finds the same as a check of every delivery."""

import random
from collections import defaultdict
from typing import Any

from mqproof.spark_audit.checks.one_owner import one_owner
from mqproof.spark_audit.evidence.options import Options
from tests.spark_audit.conftest import embedded_evidence

NODES = ("a", "b", "c")
WINDOW_US, SKEW_US = 20, 10
OPTIONS = Options(skew_us=SKEW_US, rebalance_us=WINDOW_US)

Found = set[tuple[str, str, int, int]]


def log_of_queue(seed: int) -> list[dict[str, Any]]:
    """Return the log of a queue that changes its owner, mostly after a rebalance of its group."""
    chance = random.Random(seed)
    rows: list[dict[str, Any]] = []
    numbers: defaultdict[str, int] = defaultdict(int)
    owner, offset, ts = "a", 0, 0

    def add(kind: str, node: str, **fields: Any) -> None:
        common = {"kind": kind, "node": f"{node}{seed}", "group": f"g{seed}", "attrs": {"broker": "broker"}}
        rows.append({"ts": ts, "seq": numbers[node], **common, **fields})
        numbers[node] += 1

    for _ in range(60):
        ts += chance.randrange(1, 30)
        match chance.random():
            case p if p < 0.04:
                add("rebalance", owner)
                owner = chance.choice(NODES)
            case p if p < 0.1:
                owner = chance.choice(NODES)
            case p if p < 0.13:
                offset = max(0, offset - 2)
        at = {"topic": "t", "queue_id": 0, "queue_offset": offset}
        add("deliver", owner, msg_id=f"m_{seed}_{offset}", client=owner, **at)
        offset += 1
    return rows


def owned_twice(rows: list[dict[str, Any]]) -> Found:
    """Return (group, node, first and last time) of each simultaneous owner, by the definition."""
    changes = sorted(row["ts"] for row in rows if row["kind"] == "rebalance")
    spans: defaultdict[int, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["kind"] == "deliver" and all(abs(at - row["ts"]) > WINDOW_US for at in changes):
            spans[sum(at <= row["ts"] for at in changes)][row["node"]].append(row["ts"])
    found: Found = set()
    for owners in spans.values():
        ordered = sorted((min(times), node, max(times)) for node, times in owners.items())
        for i, (first, node, last) in enumerate(ordered):
            if any(other > first + SKEW_US for _, _, other in ordered[:i]):
                found.add((rows[0]["group"], node, first, last))
    return found


def test_every_queue_with_two_owners_is_found() -> None:
    logs = [log_of_queue(seed) for seed in range(60)]
    expected = set[tuple[str, str, int, int]]().union(*map(owned_twice, logs))
    with embedded_evidence([row for log in logs for row in log], ("broker",), OPTIONS) as evidence:
        rows = one_owner(evidence).collect()
    found = {(row.group, f"{row.client}{row.group[1:]}", row.first_ts, row.last_ts) for row in rows}
    assert found == expected
    assert 20 < len({group for group, *_ in expected}) < len(logs), "only some logs have two owners"
