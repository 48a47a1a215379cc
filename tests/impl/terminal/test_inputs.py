"""Tests that texts and files of options become values, or one line and exit code 2."""

from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.terminal import inputs


def test_name_servers_are_parsed_as_addresses() -> None:
    assert inputs.name_servers("send", "a:1;b:2") == (Address("a", 1), Address("b", 2))


def test_an_address_that_is_not_given_is_none() -> None:
    assert inputs.address("broker", "--ha-master", None) is None
    assert inputs.address("broker", "--ha-master", "a:1") == Address("a", 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inputs.name_servers("send", "x"), "send: --namesrv: 'x' is not an address"),
        (lambda: inputs.name_servers("send", ""), "send: --namesrv: HOST:PORT expected"),
        (lambda: inputs.address("broker", "--ha-master", "x"), "broker: --ha-master: 'x' is not an address"),
        (
            lambda: inputs.check_text("send", topic="\udcff"),
            "send: --topic is '\\udcff', UTF-8 text expected",
        ),
        (
            lambda: inputs.read_account("send", Path("/nowhere/tools.yml")),
            "send: /nowhere/tools.yml: No such",
        ),
        (lambda: inputs.new_runtime("send", Path("/nowhere/tls.properties")), "send: /nowhere/tls.propert"),
        (lambda: inputs.client_event_log("send", Path("/nowhere/e")), "send: /nowhere/e: No such file"),
    ],
)
def test_a_mistake_is_reported_in_one_line(
    call: Callable[[], object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        call()
    assert ended.value.exit_code == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"mqproof {message}")
    assert printed.count("\n") == 1


def test_a_file_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"broker\.conf: not UTF-8 text"):
        inputs.read_text(path)


def test_without_a_file_there_is_no_event_log_and_no_account() -> None:
    assert inputs.server_event_log(None, "broker-a") is None
    assert inputs.client_event_log("send", None) is None
    assert inputs.read_account("send", None) is None
