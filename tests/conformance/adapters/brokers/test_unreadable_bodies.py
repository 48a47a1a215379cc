"""Tests the last look at a broker whose body has another form: a violation, and no crash of the run."""

from types import SimpleNamespace
from typing import cast

import pytest

from mqproof.conformance.adapters.brokers.environments import Environment, OnEnvironment
from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.wire import chapters
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import TimeSpans


def test_a_body_that_no_client_can_read_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(lambda: 0, is_exact=False)
    target = OnEnvironment(cast(Environment, SimpleNamespace(name="broker", watch=watch)))
    body = b'{"consumeTimeSpanSet":[{"message_queue":{"topic":"t","brokerName":"b","queueId":0}}]}'
    monkeypatch.setattr(target, "_read_back", lambda: java_json.read(TimeSpans, body))

    target.read_back()

    (witness,) = target.wrong_answers
    assert "TimeSpans" in witness.text
    assert witness.values == {"rule": chapters.JSON_BODIES}
    assert target.afterwards
