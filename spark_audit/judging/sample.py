"""What a log of a sample of the messages says about all messages: the rate of loss, with an interval of 99 %.

The nodes record a message only if it is in the sample (spec/sampling.py). Checks of single messages find what
happened to those; checks that need every message of a queue are not applied.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from mqproof.report.model import Result, Verdict
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.judging.findings import all_found, query
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.otel.sampling import interval
from mqproof.spec.sampling import DIGITS, sample_limit

LOSS: Final = "DELIV-1"
SAMPLED: Final = (LOSS, "DELIV-2", "DELIV-3")
"""The checks that need no message outside of the sample."""


def require_sample(log: DataFrame, rate: float) -> None:
    """Raise an InputError if the log has a message that is not in a sample of this rate."""
    digits = f.substring(f.md5("msg_id"), 1, DIGITS)
    others = log.where(f.col("msg_id").isNotNull() & (digits >= sample_limit(rate))).select("node", "msg_id")
    if row := others.first():
        raise InputError(
            f"--sampling {rate:g}: node {row['node']!r} records message {row['msg_id']}, which is not in that"
            " sample: all nodes must record the same share of the messages"
        )


def of_sample(
    results: tuple[Result, ...], tallies: Mapping[str, int], findings: Path, rate: float
) -> tuple[Result, ...]:
    """Return the results as verdicts about all messages."""
    return tuple(_of_all(each, tallies, findings, rate) for each in results)


def _of_all(result: Result, tallies: Mapping[str, int], findings: Path, rate: float) -> Result:
    texts = [result.detail] if result.detail else []
    texts.append(f"the log has a sample of {rate:.2%} of the messages")
    if result.id == LOSS:
        lost, in_flight = _lost(findings)
        low, high = loss_interval(lost, tallies["acked"] - in_flight)
        texts.append(f"between {low:.3%} and {high:.3%} of all acknowledged messages are lost (99 %)")
    verdict = Verdict.UNKNOWN if result.verdict is Verdict.HELD else result.verdict
    return replace(result, verdict=verdict, detail="; ".join(texts))


def loss_interval(lost: int, due: int) -> tuple[float, float]:
    """Return the interval of 99 % for the rate of loss, given the lost messages of a sample of due ones."""
    return interval(lost, max(due, lost))


def _lost(findings: Path) -> tuple[int, int]:
    """Return the number of lost messages, and of those that a group has not reached yet."""
    rows = query(
        "SELECT count(DISTINCT msg_id) FILTER (WHERE cause IS NULL),"
        " count(DISTINCT msg_id) FILTER (WHERE cause = 'unseen')"
        f" FROM {all_found(findings)} WHERE invariant = '{LOSS}' AND rule = 'lost-write'"
    )
    return rows[0]
