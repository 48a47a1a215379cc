"""Goal: TLC accepts exactly the traces that the model explains. Method: a trace module for Counter."""

from pathlib import Path

import pytest

from mqproof.spec.tlc.errors import TlcError
from mqproof.spec.tlc.trace_check import TraceCheckError, TraceVerdict, check_traces
from tests.spec.tlc.counter import CONFIG, LIBRARIES, TLA

TAKE: dict[str, object] = {"kind": "take"}
ADD_1: dict[str, object] = {"kind": "add", "by": 1}
ADD_2: dict[str, object] = {"kind": "add", "by": 2}
MUST_REFUSE = [ADD_1]


def test_each_trace_has_the_length_of_its_longest_explained_prefix() -> None:
    traces = [[TAKE, ADD_2, TAKE], [TAKE, ADD_2, ADD_1, TAKE], [TAKE] * 30, [ADD_1, TAKE]]
    outcome = check_traces("TraceCounter", CONFIG, traces, MUST_REFUSE, LIBRARIES)
    assert outcome.verdicts == (
        TraceVerdict(3, 3),
        TraceVerdict(4, 2),
        TraceVerdict(30, 30),
        TraceVerdict(2, 0),
    )
    assert [verdict.accepted for verdict in outcome.verdicts] == [True, False, True, False]


def test_every_behaviour_that_may_explain_a_trace_is_explored() -> None:
    # The trace does not record which node took the lock. Four adds of 1 fit only if both nodes held it.
    outcome = check_traces(
        "TraceCounter", CONFIG, [[TAKE, ADD_1, ADD_1, TAKE, ADD_1, ADD_1]], MUST_REFUSE, LIBRARIES
    )
    assert outcome.verdicts[0].accepted


def test_a_module_that_accepts_the_trace_it_must_refuse_is_an_error() -> None:
    with pytest.raises(TraceCheckError, match="accepted the trace that it must refuse"):
        check_traces("TraceCounter", CONFIG, [[TAKE]], [TAKE, ADD_1], LIBRARIES)


@pytest.mark.parametrize(
    ("traces", "message"), [([], "no trace"), ([[TAKE], []], "trace 2 of 3 has no events")]
)
def test_an_empty_list_of_traces_or_an_empty_trace_is_rejected(
    traces: list[list[dict[str, object]]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_traces("TraceCounter", CONFIG, traces, MUST_REFUSE, LIBRARIES)


def test_a_module_that_skips_a_trace_is_an_error(tmp_path: Path) -> None:
    text = (TLA / "TraceCounter.tla").read_text(encoding="utf-8").replace("t \\in DOMAIN Traces", "t = 1")
    (tmp_path / "TraceCounter.tla").write_text(text, encoding="utf-8")
    with pytest.raises(TraceCheckError, match="never began trace 2 of 2"):
        check_traces("TraceCounter", CONFIG, [[TAKE]], MUST_REFUSE, (tmp_path, *LIBRARIES))


def test_an_event_without_a_field_that_the_module_reads_is_an_error() -> None:
    with pytest.raises(TlcError, match="evaluation error"):
        check_traces("TraceCounter", CONFIG, [[TAKE, {"kind": "add"}]], MUST_REFUSE, LIBRARIES)
