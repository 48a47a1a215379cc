"""Tests when a consumer can be started, used and stopped."""

import pytest

from mqproof.impl.client.consuming.lifecycle import Lifecycle
from mqproof.impl.client.model import ClientError


def test_a_consumer_is_started_once_used_and_stopped() -> None:
    life = Lifecycle("the consumer of group G")
    with pytest.raises(ClientError, match="the consumer of group G is not started, so it cannot be stopped"):
        life.stop()
    with pytest.raises(ClientError, match="is not started: use it between"):
        life.require_started()
    life.require_new()
    states = [life.is_started]
    life.start()
    states.append(life.is_started)
    life.require_started()
    with pytest.raises(ClientError, match="is started, and can be started only once"):
        life.start()
    assert life.stop()
    states.append(life.is_started)
    assert states == [False, True, False]
    assert not life.stop()
    with pytest.raises(ClientError, match="is stopped: use it between"):
        life.require_started()
    with pytest.raises(ClientError, match="is stopped, and can be started only once"):
        life.start()
