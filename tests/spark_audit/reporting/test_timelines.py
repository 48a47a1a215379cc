"""Adds complete timelines to the example messages of a report."""

from mqproof.report.model import Result, Verdict, Witness
from mqproof.spark_audit.reporting import timelines
from tests.spark_audit.conftest import LogBuilder, embedded_log


def test_the_first_examples_of_each_rule_have_timelines() -> None:
    builder = LogBuilder(subscribed=())
    for number in range(6):
        builder.stored(f"m_{number}", number)
    witnesses = tuple(
        Witness(f"{rule} {number}", {"rule": rule, "msg_id": f"m_{number}"})
        for rule in ("lost", "late")
        for number in range(5)
    )
    nameless = Witness("an offset", {"rule": "late", "first_ts": "1790000041430227"})
    results = (
        Result("DELIV-1", "NoAckedLost", "audit", Verdict.VIOLATED, {"messages": 6}, (*witnesses, nameless)),
        Result("DELIV-2", "NoPhantom", "audit", Verdict.HELD, {"messages": 6}),
    )
    with embedded_log(builder.rows) as log:
        spark = log.events.sparkSession
        with_timelines = timelines.with_timelines(spark, results, log.events, ("broker",), None)
    first, second = with_timelines
    assert second == results[1]
    assert first.witnesses[-1].values == {"at": "2026-09-21 14:14:01.430227"} | nameless.values
    lengths = {witness.text: len(witness.timeline) for witness in first.witnesses}
    assert [text for text, moments in lengths.items() if moments] == [
        "lost 0", "lost 1", "lost 2", "late 0", "late 1", "late 2"
    ]  # fmt: skip
    [send, *_] = first.witnesses[0].timeline
    assert (send.who, send.what.split()[0]) == ("producer", "send")
    assert send.at.startswith("20") or send.at.startswith("19")


def test_a_long_timeline_is_cut_and_states_how_much_is_left() -> None:
    builder = LogBuilder(subscribed=())
    for _ in range(timelines._MOMENTS_MAX + 5):
        builder.send("m_0")
    result = Result(
        "DELIV-1", "NoAckedLost", "audit", Verdict.VIOLATED, {"messages": 1},
        (Witness("lost", {"rule": "lost", "msg_id": "m_0"}),),
    )  # fmt: skip
    with embedded_log(builder.rows) as log:
        spark = log.events.sparkSession
        [with_timelines] = timelines.with_timelines(spark, (result,), log.events, (), None)
    *_, last = with_timelines.witnesses[0].timeline
    assert len(with_timelines.witnesses[0].timeline) == timelines._MOMENTS_MAX + 1
    assert last.what.startswith("and 5 more")
