"""`mqproof serve --ephemeral`: announced in a file, controlled over HTTP, refused with useless options."""

import json
import socket
import urllib.request
from pathlib import Path

import pytest

from mqproof import BlockingClient, new_message
from tests.impl.command.test_cli import run, server, stop


def test_a_broker_for_tests_of_any_language(tmp_path: Path) -> None:
    ready_file, config = tmp_path / "ready.json", tmp_path / "broker.conf"
    config.write_text("autoCreateTopicEnable=true\n")
    arguments = ("serve", "--ephemeral", "--ready-file", str(ready_file), "--control", "0")
    with server(*arguments, "-c", str(config), "--name", "b") as (process, at):
        ready = json.loads(ready_file.read_text())
        assert ready == {"pid": process.pid, **at}
        with BlockingClient(at["namesrv"]) as client:
            client.send(new_message("T", b"x"))
        with urllib.request.urlopen(f"http://{at['control']}/messages?topic=T", timeout=60) as answer:
            assert json.load(answer)["count"] == 1
        busy = run("serve", "--ephemeral", "--control", at["control"].rpartition(":")[2])
        assert (busy.returncode, busy.stdout) == (2, "")
        assert busy.stderr == f"mqproof serve: {at['control']} is in use by another process\n"
        assert stop(process) == 0
    assert not ready_file.exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["broker.conf"]


def test_a_ready_file_that_cannot_be_written_ends_the_start_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = run("serve", "--ephemeral", "--ready-file", str(tmp_path / "file" / "ready.json"))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"mqproof serve: {tmp_path}/file/ready.json: Not a directory\n"


def test_a_busy_port_of_the_name_server_ends_the_start_with_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        busy = run("serve", "--ephemeral", "--namesrv-port", str(port))
    assert (busy.returncode, busy.stdout) == (2, "")
    assert busy.stderr == f"mqproof serve: 127.0.0.1:{port} is in use by another process\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--control", "0"], "--control needs --ephemeral"),
        (["--ephemeral", "--store", "x"], "--store has no effect with --ephemeral"),
        (["--ephemeral", "--flush", "SYNC_FLUSH"], "--flush has no effect"),
        (["--ephemeral", "--host", "0.0.0.0"], "--host is 0.0.0.0: with --ephemeral, only 127.0.0.1"),
        (["--ephemeral", "-c", "{tmp}/missing"], "missing: No such file"),
        (["--ephemeral", "-c", "{tmp}/wrong"], "listenPort: the embedded broker sets it itself"),
    ],
)
def test_wrong_options_are_refused(
    options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from mqproof.cli import main

    (tmp_path / "wrong").write_text("listenPort=1\n")
    given = [option.replace("{tmp}", str(tmp_path)) for option in options]
    monkeypatch.setattr("sys.argv", ["mqproof", "serve", *given])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr().err
    assert (ended.value.code, printed.count("\n")) == (2, 1), printed
    assert message in printed
