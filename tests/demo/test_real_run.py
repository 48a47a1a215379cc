"""Tests the real run with few messages: every message is acknowledged and delivered despite kills."""

from pathlib import Path

import pytest

from mqproof.demo.real_run import KILLS, real_run
from mqproof.spec.events import Kind, read_log


@pytest.mark.deep("clusters of processes whose brokers are killed; `make demo` has the same run")
def test_all_messages_are_acknowledged_and_delivered_while_brokers_are_killed(tmp_path: Path) -> None:
    shown: list[str] = []
    run = real_run(tmp_path, 600, shown.append)
    assert sum("SIGKILL" in line for line in shown) == KILLS == run.counts["kills"]
    # A message that was stored, but not safely, is sent again, so it has several acknowledgements.
    acknowledged = {
        event.msg_id
        for log in tmp_path.glob("events/*.ndjson")
        for event in read_log(log)
        if event.kind is Kind.SEND_ACK and event.status == "SEND_OK" and event.node == log.stem
        if log.stem.startswith(("producer", "ordered", "delayed", "retried"))
    }
    assert len(acknowledged) == 600 + 500 <= run.counts["messages acknowledged"]
    assert run.counts["deliveries"] >= 2 * 600 + 500
    assert run.master.exists()
