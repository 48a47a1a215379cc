"""The real run, with few messages: everything sent is acknowledged and delivered, in spite of kills."""

from pathlib import Path

import pytest

from mqproof.demo.real_run import KILLS, real_run


@pytest.mark.deep
def test_all_messages_are_acknowledged_and_delivered_while_brokers_are_killed(tmp_path: Path) -> None:
    shown: list[str] = []
    run = real_run(tmp_path, 600, shown.append)
    assert sum("SIGKILL" in line for line in shown) == KILLS == run.counts["kills"]
    assert run.counts["messages acknowledged"] == 600 + 500
    assert run.counts["deliveries"] >= 2 * 600 + 500
    assert run.master.exists()
