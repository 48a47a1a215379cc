"""Anomalies of DLedger groups, each in a group of its own."""

from collections.abc import Callable
from functools import partial

from tests.spark_audit.independent.anomalies import FIRST_S, Truth
from tests.spark_audit.independent.clean_cluster import Ledger
from tests.spark_audit.independent.simulation import BEGIN, SECOND, Cluster


def two_leaders(ledger: Ledger, truth: Truth) -> None:
    ledger.write(1, "become_leader", term=1)
    truth.add("RAFT-1", "two-leaders")


def leader_cuts(ledger: Ledger, truth: Truth) -> None:
    ledger.append(0, 1, members=(0,), commit=False)
    ledger.write(0, "truncate", {"index": str(ledger.index - 1)})
    truth.add("RAFT-2", "leader-cuts")


def divergent_entry(ledger: Ledger, truth: Truth) -> None:
    ledger.append(0, 1, members=(0, 1))
    attrs = {"index": str(ledger.index), "magic": "2", "role": "follower"}
    ledger.write(2, "raft_append", attrs, term=1, commit_offset=ledger.end + 40)
    truth.add("RAFT-3", "divergent-entry")


def entry_missing(ledger: Ledger, truth: Truth) -> None:
    ledger.append(0, 1, members=(0, 1))
    ledger.elect(2, term=2)
    truth.add("RAFT-4", "committed-entry-missing")


def entry_cut(ledger: Ledger, truth: Truth) -> None:
    ledger.write(1, "truncate", {"index": str(ledger.index - 1)})
    truth.add("RAFT-5", "committed-entry-cut")


def commit_back(ledger: Ledger, truth: Truth) -> None:
    ledger.write(1, "raft_commit", {"index": str(ledger.index - 1)})
    truth.add("RAFT-5", "commit-goes-back")


def entry_changed(ledger: Ledger, truth: Truth) -> None:
    ledger.append(0, 1, members=(0, 1))
    for kind, attrs in (("raft_append", {"magic": "2", "role": "follower"}), ("raft_commit", {})):
        place = {"commit_offset": ledger.end - 120, "term": 2} if kind == "raft_append" else {}
        ledger.write(2, kind, {"index": str(ledger.index), **attrs}, **place)
    truth.add("RAFT-5", "committed-entry-changed")


def voted_twice(ledger: Ledger, truth: Truth) -> None:
    ledger.write(2, "vote", {"candidate": "n1"}, term=1, status="ACCEPT")
    truth.add("RAFT-6", "voted-twice")


def term_back(ledger: Ledger, truth: Truth) -> None:
    ledger.write(2, "vote", {"voted_for": "n1"}, term=5, status="DURABLE")
    ledger.write(2, "vote", {"voted_for": "n1"}, term=3, status="DURABLE")
    truth.add("RAFT-6", "term-goes-back")


def ok_before_commit(ledger: Ledger, truth: Truth) -> None:
    index = ledger.append(0, 1, commit=False)
    ledger.write(0, "send_ack", {"index": str(index)}, term=1, status="SEND_OK")
    ledger.commit(0, 1)
    truth.add("REPL-3", "ok-before-commit")


SCRIPTS: dict[str, Callable[[Ledger, Truth], None]] = {
    "leaders": two_leaders,
    "cuts": leader_cuts,
    "divergent": divergent_entry,
    "missing": entry_missing,
    "entry-cut": entry_cut,
    "commit-back": commit_back,
    "changed": entry_changed,
    "votes": voted_twice,
    "term-back": term_back,
    "uncommitted": ok_before_commit,
}


def inject(cluster: Cluster, truth: Truth) -> None:
    for name, script in SCRIPTS.items():
        begin = BEGIN + FIRST_S * SECOND + cluster.between(0, 20 * SECOND)
        cluster.at(begin, partial(_run, cluster, truth, name, script))


def _run(cluster: Cluster, truth: Truth, name: str, script: Callable[[Ledger, Truth], None]) -> None:
    ledger = Ledger(cluster, f"d{name.replace('-', '')}")
    ledger.start()
    ledger.elect(0, term=1)
    for _ in range(cluster.between(2, 4)):
        ledger.append(0, term=1)
    begun = len(truth.violations)
    script(ledger, truth)
    # A ledger's finding names its members or their group in some column, or only in its evidence.
    for at in range(begun, len(truth.violations)):
        violation = truth.violations[at]
        truth.violations[at] = type(violation)(violation.invariant, violation.rule, (("names", ledger.name),))
