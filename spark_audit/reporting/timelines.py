"""Adds times to the report's witnesses, and timelines to example messages."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from mqproof.report.model import Moment, Result, Witness
from mqproof.spark_audit.engine.frames import DataFrame, SparkSession
from mqproof.spark_audit.reporting.explain import message_steps, utc
from mqproof.spark_audit.sources.store.stored import Stored

EXAMPLES: Final = 3
"""Number of messages per rule that get a timeline."""
_MOMENTS_MAX: Final = 200
"""Maximum number of moments of a message; a longer timeline is truncated, with a note."""


def with_timelines(
    spark: SparkSession,
    results: tuple[Result, ...],
    log: DataFrame,
    brokers: tuple[str, ...],
    store: Stored | None,
) -> tuple[Result, ...]:
    """Return the results with each witness's time, and timelines for the first messages of each rule."""
    examples = [witness for result in results for witness in _examples(result.witnesses)]
    wanted = {witness.values["msg_id"] for witness in examples}
    steps_by_id = message_steps(spark, wanted, log, brokers, store) if wanted else {}
    timelines = {
        msg_id: tuple(_shortened([step.moment() for step in steps])) for msg_id, steps in steps_by_id.items()
    }

    def shown(result: Result) -> Iterator[Witness]:
        chosen = _examples(result.witnesses)
        for witness in result.witnesses:
            timeline = timelines.get(witness.values["msg_id"], ()) if witness in chosen else ()
            yield replace(witness, values=_when(witness.values) | witness.values, timeline=timeline)

    return tuple(replace(result, witnesses=tuple(shown(result))) for result in results)


def _when(values: Mapping[str, str]) -> dict[str, str]:
    return {"at": utc(int(values["first_ts"]))} if "first_ts" in values else {}


def _examples(witnesses: Iterable[Witness]) -> list[Witness]:
    seen: Counter[str] = Counter()
    chosen = []
    for witness in witnesses:
        if "msg_id" in witness.values:
            rule = witness.values["rule"]
            seen[rule] += 1
            if seen[rule] <= EXAMPLES:
                chosen.append(witness)
    return chosen


def _shortened(moments: list[Moment]) -> list[Moment]:
    if len(moments) <= _MOMENTS_MAX:
        return moments
    left = len(moments) - _MOMENTS_MAX
    return [
        *moments[:_MOMENTS_MAX],
        Moment("", "", f"and {left} more: mqproof audit explain shows all of them"),
    ]
