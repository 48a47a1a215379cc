"""`mqproof audit cluster` at a running broker: verdicts, exit codes, and what they rest on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mqproof.client import new_message
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.model import MessageQueue
from mqproof.report.model import Exit
from mqproof.spark_audit.cli import app
from mqproof.testing import ThreadedBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    with ThreadedBroker() as started:
        with started.client() as client:
            for _ in range(8):
                client.send(new_message("Orders", b"coffee"))
        yield started


def audit(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["audit", "cluster", *map(str, arguments)], env={"NAMESRV_ADDR": ""})


@pytest.mark.deep("an audit more than the test that follows")
def test_a_healthy_cluster_is_inconclusive_and_the_report_says_why(broker: ThreadedBroker) -> None:
    done = audit("--namesrv", broker.name_server, "--id", "DELIV-1")
    assert done.exit_code == Exit.INCONCLUSIVE, done.output
    assert "8 messages, the newest of each queue; 0 older ones were not read" in done.stdout
    assert "not in any of it: refused and unconfirmed sends, deliveries without trace" in done.stdout
    assert f"replay: mqproof audit cluster --namesrv {broker.name_server} --id DELIV-1" in done.stdout


def test_an_offset_beyond_its_queue_is_a_violation_and_the_collected_events_can_be_kept(
    broker: ThreadedBroker, tmp_path: Path
) -> None:
    with broker.client() as client:
        calls = GroupRequests(client._session, "billing")
        client._run(calls.commit(MessageQueue("Orders", "broker-a", 0), 99))
    done = audit("--namesrv", broker.name_server, "--id", "DELIV-1", "--keep", tmp_path / "kept")
    assert done.exit_code == Exit.VIOLATED, done.output
    assert "offset-ahead: group billing at broker-a/Orders/0" in done.stdout
    assert "8 messages, the newest of each queue; 0 older ones were not read" in done.stdout
    assert "not in any of it: refused and unconfirmed sends, deliveries without trace" in done.stdout
    assert f"replay: mqproof audit run --events {tmp_path}/kept/cluster.ndjson" in done.stdout
    assert (tmp_path / "kept" / "cluster.ndjson").exists()


def test_wrong_use_and_an_absent_name_server(tmp_path: Path) -> None:
    assert audit().exit_code == Exit.USAGE
    assert audit("--namesrv", "nonsense").exit_code == Exit.USAGE
    missing = audit("--namesrv", "127.0.0.1:1", "--tls", tmp_path / "absent")
    assert (missing.exit_code, "absent: No such file" in missing.stderr) == (Exit.USAGE, True)
    gone = audit("--namesrv", "127.0.0.1:1")
    assert gone.exit_code == Exit.TOOL
    assert "no connection to 127.0.0.1:1" in gone.stderr
