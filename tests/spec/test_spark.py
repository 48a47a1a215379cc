"""An invalid Spark master is reported before a JVM starts, and signals wait for the JVM."""

import signal

import pytest

from mqproof.spec.spark import MASTER, SessionError, _uninterrupted, start


@pytest.mark.parametrize(
    "master",
    ["local", "local[2]", "local[*]", "local[2,3]", "spark://host:7077", "yarn", "k8s://https://host"],
)
def test_each_form_of_a_spark_master_is_accepted(master: str) -> None:
    assert MASTER.fullmatch(master)


@pytest.mark.parametrize("master", ["nonsense", "local[x]", "local[2", "spark:/host", ""])
def test_an_invalid_spark_master_is_rejected_with_a_one_line_message(master: str) -> None:
    with pytest.raises(SessionError, match="is not a master of Spark, expected local"):
        start("test", master)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_is_handled_only_after_the_jvm_has_started(number: signal.Signals) -> None:
    events: list[str] = []
    before = signal.signal(number, lambda *_: events.append("ended"))
    try:
        with _uninterrupted():
            signal.raise_signal(number)
            events.append("started")
        assert events == ["started", "ended"]
        signal.raise_signal(number)
        assert events[2:] == ["ended"]
    finally:
        signal.signal(number, before)
