"""`mqproof diagnose` against a broker over sockets: output, exit codes and errors."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mqproof.client import Sent, new_message
from mqproof.impl.diagnosis.cli import app
from mqproof.testing import ThreadedBroker


def diagnose(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["diagnose", *arguments], env={"NAMESRV_ADDR": ""})


@pytest.fixture(scope="module")
def broker() -> object:
    with ThreadedBroker() as started:
        yield started


def test_a_message_is_diagnosed_at_a_running_broker(broker: ThreadedBroker, tmp_path: Path) -> None:
    with broker.client() as client:
        sent = client.send(new_message("Orders", b"coffee", keys="order-7"))
    assert isinstance(sent, Sent)
    result = diagnose(sent.message_id, "--namesrv", broker.name_server, "--json", str(tmp_path / "x.json"))
    assert result.exit_code == 3, result.output
    assert result.output.startswith(f"message {sent.message_id}: unknown\n  cause     no_group: ")
    (answer,) = json.loads((tmp_path / "x.json").read_text())["answers"]
    assert (answer["cause"], answer["topic"]) == ("no_group", "Orders")

    by_key = diagnose("--key", "order-7", "--topic", "Orders", "--namesrv", broker.name_server)
    assert by_key.output == result.output
    by_place = diagnose(sent.offset_message_id, "--namesrv", broker.name_server)
    assert by_place.output == result.output
    absent = diagnose("--key", "x", "--topic", "Orders", "--namesrv", broker.name_server)
    assert (absent.exit_code, absent.output) == (3, "no message with key x is known\n")


def test_a_backlog_is_diagnosed_at_a_running_broker(broker: ThreadedBroker) -> None:
    result = diagnose("--topic", "Absent", "--group", "billing", "--namesrv", broker.name_server)
    assert result.exit_code == 1
    assert result.output.startswith("topic Absent, group billing: never stored\n  cause     topic_missing: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("m",), "no evidence: give --namesrv HOST:PORT, --log PATH, or both"),
        ((), "name a message by MSG_ID or --key, or a backlog by --topic and --group"),
        (("m", "--key", "k", "--log", "x"), "MSG_ID and --key: give one of them"),
        (
            ("--topic", "T", "--group", "g", "--log", "x"),
            "--topic and --group: a running cluster is needed, with --namesrv HOST:PORT",
        ),
        (("--key", "k", "--namesrv", "127.0.0.1:1"), "--key: brokers find a key only with --topic"),
        (("m", "--log", "/absent"), "/absent: no such file or folder"),
        (("m", "--namesrv", "nonsense"), "--namesrv: "),
    ],
)
def test_wrong_use_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = diagnose(*arguments)
    assert result.exit_code == 2
    assert result.output.startswith(f"mqproof diagnose: {message}")
    assert result.output.count("\n") == 1


def test_a_name_server_that_does_not_answer_is_exit_code_4() -> None:
    result = diagnose("m", "--namesrv", "127.0.0.1:1", "--topic", "T")
    assert (result.exit_code, result.output.count("\n")) == (4, 1), result.output


def test_logs_alone_are_enough(tmp_path: Path) -> None:
    log = tmp_path / "p.ndjson"
    log.write_text(
        '{"ts":1,"seq":0,"node":"p","kind":"send","msg_id":"m","topic":"T","attempt":1}\n'
        '{"ts":2,"seq":1,"node":"p","kind":"send_fail","msg_id":"m","topic":"T","attempt":1,'
        '"status":"NO_PERMISSION"}\n'
    )
    result = diagnose("m", "--log", os.fspath(tmp_path))
    assert result.exit_code == 1
    assert "cause     send_refused: " in result.output
