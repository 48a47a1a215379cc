"""Tests that a server's options override its properties file, and the file overrides the defaults."""

from pathlib import Path
from typing import Any

import pytest
import typer

from mqproof.impl.command.server_config import broker_config, name_server_config
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.replication.config import Role
from mqproof.impl.store.config import FlushMode


def test_without_a_file_an_option_that_is_not_given_keeps_the_default() -> None:
    assert name_server_config(None, host="h", port=None, kv_path=None) == NameServerConfig(host="h")


def test_an_option_of_the_name_server_overrides_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_text("listenPort=1\nscanNotActiveBrokerInterval=7\nunknownKey=1\n")
    config = name_server_config(path, host="h", port=2, kv_path=None)
    assert (config.port, config.scan_interval_ms, config.config_path) == (2, 7, str(path))
    assert capsys.readouterr().err == f"{path}: not used: unknownKey\n"


def test_an_option_of_the_broker_overrides_its_file(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("brokerName=b-file\nflushDiskType=SYNC_FLUSH\n")
    config = broker_config("broker", path, store=tmp_path, flush="ASYNC_FLUSH", role="SLAVE", broker_id=1)
    assert (config.name, config.store_directory) == ("b-file", str(tmp_path))
    assert (config.store.flush_mode, config.replication.role) == (FlushMode.ASYNC_FLUSH, Role.SLAVE)


def test_peers_make_the_broker_a_member_of_a_group() -> None:
    peers = "n0-h:1;n1-h:2;n2-h:3"
    config = broker_config("broker", None, store=None, flush=None, peers=peers, self_id="n0")
    assert config.membership.is_member
    assert {peer.id for peer in config.membership.peers} == {"n0", "n1", "n2"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flush": "FAST"}, "--flush is 'FAST', SYNC_FLUSH or ASYNC_FLUSH expected"),
        ({"role": "KING"}, "--role is 'KING', "),
        ({"peers": "n0"}, "--peers is 'n0', "),
    ],
)
def test_a_mistake_is_reported_in_one_line(
    options: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        broker_config("broker", None, **{"store": None, "flush": None, **options})
    assert ended.value.exit_code == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"mqproof broker: {message}")
    assert printed.count("\n") == 1
