"""The named invariant of orderly consumption, a pure function of a run."""

from functools import partial

from mqproof.conformance.engine.broker_faults import ENDS, InjectFault
from mqproof.conformance.engine.finding import Finding, Tally
from mqproof.conformance.engine.stepped_run import Checkers, Run
from mqproof.conformance.suites.ordering.steps import Begin, End, Lock, Operation

_Key = tuple[str, int, str]
"""Group, queue and member."""


def never_overlaps(lease_s: float, run: Run[Operation]) -> Finding:
    """DELIV-13 NeverOverlaps: the listeners of two members never process one queue at the same time.

    An overlap is allowed if the lease of the first member has expired meanwhile. Every listener starts under
    a granted lock.
    """
    tally = Tally()
    granted_s: dict[_Key, float] = {}
    calls: set[_Key] = set()
    for step, operation in run.numbered():
        match operation:
            case Lock(group, member, _, granted, span) if granted is not None:
                granted_s |= {(group, queue_id, member): span.begin_s for queue_id in granted}
            case Begin(group, member, queue_id, at_s):
                tally.looked += 1
                for other in sorted(calls):
                    same_queue = other[:2] == (group, queue_id) and other[2] != member
                    if same_queue and at_s - granted_s[other] <= lease_s:
                        text = f"step {step}: {member} of {group} consumes queue {queue_id}, {other[2]} still"
                        tally.found(f"{text} consumes it, with a lock granted at {granted_s[other]:.3f} s")
                calls.add((group, queue_id, member))
            case InjectFault(fault) if fault in ENDS:
                calls.clear()
            case End(group, member, queue_id):
                calls.discard((group, queue_id, member))
    return tally.finding("calls")


def checkers(lease_s: float) -> Checkers[Operation]:
    return {"DELIV-13": partial(never_overlaps, lease_s)}
