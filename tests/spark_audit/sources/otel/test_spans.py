"""What spans show: certain only without sampling, else bounds."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mqproof.report.model import Result, Verdict
from mqproof.spark_audit.sources.otel.spans import JudgedSpans, SpanOptions, judge_spans
from tests.spark_audit.sources.span_lines import exchange, span, write

ALL = SpanOptions(rate=1, subscriptions=(("*", "*", "*"),))


def _judged(
    folder: Path, spans: Iterable[dict[str, Any]], options: SpanOptions = ALL, rest: str = ""
) -> JudgedSpans:
    return judge_spans([write(folder / "spans.jsonl", spans, rest=rest)], folder, options)


def _loss(folder: Path, spans: Iterable[dict[str, Any]], options: SpanOptions = ALL) -> Result:
    return _judged(folder, spans, options).results[0]


def test_without_sampling_a_complete_exchange_is_held_and_a_loss_is_shown(tmp_path: Path) -> None:
    assert {each.verdict for each in _judged(tmp_path, exchange(9)).results} == {Verdict.HELD}
    found = _loss(tmp_path, exchange(9, lost={4, 8}))
    assert (found.verdict, found.counts["lost_min"], found.counts["lost_max"]) == (Verdict.VIOLATED, 1, 1)
    assert [each.values["msg_id"] for each in found.witnesses] == ["m4"]
    assert found.counts["spanned_in_flight"] == 1  # nothing later shows that the group passed m8


def test_with_sampling_loss_is_unknown_with_bounds_from_the_rate(tmp_path: Path) -> None:
    found = _loss(tmp_path, exchange(200, lost={20, 21}), SpanOptions(rate=0.1))
    assert found.verdict is Verdict.UNKNOWN
    assert 0 <= found.counts["lost_min"] <= 20 <= found.counts["lost_max"] <= 130
    assert "of about 2000 messages are lost; 0.1 of the traces are sampled" in found.detail
    none = _loss(tmp_path, exchange(200), SpanOptions(rate=0.1))
    assert (none.verdict, none.counts["lost_min"]) == (Verdict.UNKNOWN, 0)
    assert 0 < none.counts["lost_max"] < 120


def test_deliveries_in_traces_of_their_own_are_sampled_on_their_own(tmp_path: Path) -> None:
    sampled = exchange(400, lost=set(range(0, 400, 2)), same_trace=False)
    found = _loss(tmp_path, sampled, SpanOptions(rate=0.5))
    assert found.counts["lost_min"] == 0  # half of the deliveries are not sampled
    assert found.counts["spanned_unseen"] > 190


def test_the_rate_may_be_in_the_trace_state_and_without_one_nothing_is_certain(tmp_path: Path) -> None:
    states = [{**each, "traceState": "ot=th:c"} for each in exchange(40)]
    judged = _judged(tmp_path, states, SpanOptions())
    assert (judged.rate, judged.results[0].verdict) == (0.25, Verdict.UNKNOWN)
    unstated = _judged(tmp_path, exchange(40, lost={3}), SpanOptions())
    assert unstated.rate is None
    assert unstated.results[0].counts["lost_max"] == 1
    assert "give --sampling RATE, 1 for none" in unstated.results[0].detail
    assert {each.verdict for each in unstated.results} == {Verdict.UNKNOWN}


def test_a_group_that_filters_has_not_lost_what_it_does_not_select(tmp_path: Path) -> None:
    sent = [span("send", f"m{n}", n, messaging__rocketmq__message__tag="ab"[n % 2]) for n in range(8)]
    received = [span("process", f"m{n}", n + 0.5, group="g") for n in (0, 2, 6)]
    by_tag = SpanOptions(rate=1, subscriptions=(("g", "Orders", "a"),))
    found = _loss(tmp_path, [*sent, *received], by_tag)
    assert [each.values["msg_id"] for each in found.witnesses] == ["m4"]
    unknown = _loss(tmp_path, [*sent, *received], SpanOptions(rate=1))
    assert (unknown.verdict, unknown.counts["lost_min"]) == (Verdict.UNKNOWN, 0)
    assert "subscription is not known" in unknown.detail


def test_spans_without_message_id_prevent_certainty(tmp_path: Path) -> None:
    judged = _judged(tmp_path, [*exchange(9, lost={4}), span("process", None, 5, group="billing")])
    assert judged.counts.without_id == 1
    assert {each.verdict for each in judged.results} == {Verdict.UNKNOWN}
    assert "1 without message id" in judged.line()
    damaged = _judged(tmp_path, exchange(9), rest="{\n")
    assert {each.verdict for each in damaged.results} == {Verdict.UNKNOWN}


def test_failed_sends_and_delayed_messages_are_not_due(tmp_path: Path) -> None:
    failed = span("send", "f", 1, failed=True)
    delayed = span("send", "d", 1, messaging__rocketmq__message__delivery_timestamp=1_795_999_999_999)
    assert _loss(tmp_path, [*exchange(9), failed, delayed]).verdict is Verdict.HELD


def test_repeats_after_a_success_and_deliveries_without_a_send_are_unknown(tmp_path: Path) -> None:
    again = span("process", "m2", 8, group="billing")
    failed_once = span("process", "m3", 3.2, group="billing", failed=True)
    stranger = span("process", "x", 8, group="billing")
    _, phantoms, repeats = _judged(tmp_path, [*exchange(9), again, failed_once, stranger]).results
    assert (phantoms.verdict, phantoms.counts["spanned_unsent"]) == (Verdict.UNKNOWN, 1)
    assert (repeats.verdict, repeats.counts["spanned_repeats"]) == (Verdict.UNKNOWN, 1)


def test_a_pull_consumer_receives_and_settles(tmp_path: Path) -> None:
    pulled = [
        *(span("send", f"m{n}", n, trace=f"p{n}") for n in range(3)),
        *(span("receive", f"m{n}", n + 0.4, group="g", links=(f"p{n}",)) for n in range(3)),
        *(span("settle", f"m{n}", n + 0.5, group="g", messaging__operation__name="ack") for n in range(3)),
        span("settle", "m0", 0.45, group="g", messaging__operation__name="nack"),
    ]
    assert {each.verdict for each in _judged(tmp_path, pulled).results} == {Verdict.HELD}


def test_without_spans_of_messages_nothing_is_known(tmp_path: Path) -> None:
    judged = _judged(tmp_path, [span("send", "k", 0, system="kafka")])
    assert {each.verdict for each in judged.results} == {Verdict.UNKNOWN}
    assert judged.counts.other == 1
