"""Compares what was observed of a cluster with what is promised of it; each function raises Finding.

The rules are those of conformance; the names are those of the catalogue. The actions of group members are
judged by fuzz/raft/judge.py.
"""

from collections import Counter
from collections.abc import Collection

from mqproof.conformance.engine.finding import Finding as Found
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.rules.places import phantom
from mqproof.conformance.suites.flush import checkers as single_client
from mqproof.conformance.suites.flush.step_history import as_lines
from mqproof.conformance.suites.flush.steps import History
from mqproof.conformance.suites.replication import checkers as replication
from mqproof.conformance.suites.replication.checkers import Life
from mqproof.fuzz.target import Finding
from mqproof.report.model import Verdict
from mqproof.spec import catalogue


def store_holds(history: History, checked: Counter[str]) -> None:
    """Check FLUSH-1 to 5 and 8, and DELIV-1, 2, 4 and 5, on the observed queues of one topic."""
    for invariant, found in single_client.judge(history).items():
        _take(invariant, found, checked)


def nothing_invented(history: History, checked: Counter[str]) -> None:
    """Check DELIV-2 NoPhantom on the messages that consumers received."""
    _take("DELIV-2", phantom(record(as_lines(history))), checked)


def pair_holds(life: Life, checked: Counter[str]) -> None:
    """Check REPL-1 to 5, and DELIV-5 on the slave."""
    for invariant, check in replication.CHECKERS.items():
        _take(invariant, check(life), checked)


def send_answered(status: str, waited_s: float, checked: Counter[str]) -> None:
    """Check FLUSH-7 SendAnswered: after the faults end, a send is eventually answered SEND_OK."""
    checked["SendAnswered"] += 1
    if status != "SEND_OK":
        raise Finding("SendAnswered", f"{waited_s:g} s after the last fault a send is answered {status}")


def acked_delivered(left: Collection[str], waited_s: float, checked: Counter[str]) -> None:
    """Check DELIV-12 AckedDelivered: after the faults end, the group receives all acknowledged messages."""
    checked["AckedDelivered"] += 1
    if left:
        text = f"{waited_s:g} s after the last fault {min(left)} and {len(left) - 1} others"
        raise Finding("AckedDelivered", f"{text}, answered SEND_OK, are not delivered")


def _take(invariant: str, found: Found, checked: Counter[str]) -> None:
    name = catalogue.catalogue()[invariant].name
    if found.verdict is Verdict.VIOLATED:
        raise Finding(name, found.witnesses[0].text)
    if found.verdict is Verdict.HELD:
        checked[name] += 1
