"""Tests `mqproof console` as a process: its ready line, its end, and wrong use."""

import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from mqproof.cli import main

MQPROOF = (sys.executable, "-m", "mqproof")


def test_a_console_says_where_it_listens_and_stops_on_a_signal() -> None:
    command = [*MQPROOF, "console", "--namesrv", "127.0.0.1:1", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready, _, address = process.stdout.readline().strip().partition(" console=")
            assert ready == "ready"
            with urllib.request.urlopen(f"http://{address}/healthz", timeout=60) as answer:
                assert answer.read() == b"ok\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()


def _fails(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the command in this process. Returns its one line on standard error."""
    monkeypatch.setattr(sys, "argv", ["mqproof", "console", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    output = capsys.readouterr()
    assert (ended.value.code, output.out, output.err.count("\n")) == (2, "", 1), output.err
    return output.err


def test_a_busy_port_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        line = _fails(["--namesrv", "127.0.0.1:1", "--port", str(port)], monkeypatch, capsys)
    assert line == f"mqproof console: cannot listen on 127.0.0.1:{port}: Address already in use\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--namesrv", "nonsense"], "--namesrv: 'nonsense' is not an address"),
        (["--namesrv", "127.0.0.1:1", "--certificate", "c"], "--certificate and --private-key must be given"),
        (["--namesrv", "127.0.0.1:1", "--account", "/nonexistent"], "/nonexistent: No such file"),
        (["--namesrv", "127.0.0.1:1", "--port", "70000"], "--port"),
        (
            ["--namesrv", "127.0.0.1:1", "--port", "0", "--certificate", "/none", "--private-key", "/none"],
            "the certificate cannot be used: /none, /none",
        ),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    assert text in _fails(arguments, monkeypatch, capsys)
