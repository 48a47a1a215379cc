"""A broker process keeps its address and its messages when it is killed and started again."""

from pathlib import Path

import pytest

from mqproof import BlockingClient, Sent, new_message
from mqproof.impl.embedded.broker_process import BrokerProcess, ProcessError


def test_acknowledged_messages_survive_a_kill(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--flush", "SYNC_FLUSH") as process:
        address = process.name_server
        with BlockingClient(address) as client:
            assert isinstance(client.send(new_message("T", b"x")), Sent)
        process.restart()
        assert process.name_server == address
        with BlockingClient(address) as client:
            (queue,) = [each for each in client.queues("T") if client.pull(each, 0).messages]
            assert [stored.message.body for stored in client.pull(queue, 0).messages] == [b"x"]


def test_a_process_that_does_not_start_is_reported_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match="--flosh"), BrokerProcess(tmp_path, "--flosh"):
        pass
