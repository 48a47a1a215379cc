"""Tests the settings of a client: from a file, the environment and code, in their order."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from mqproof.impl.client.connection.client_settings import ClientSettings
from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting.bodies import ConsumerData
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.properties import ConfigError

FILE = """
namesrvAddr=10.0.0.1:9876;10.0.0.2:9876
instanceName=billing
unitName=eu
accessKey=access-key
secretKey=secret-key
"""


def test_a_file_names_the_servers_the_instance_and_the_account(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(FILE)
    settings = ClientSettings.from_file(path)
    session = connect(settings=settings)
    assert sorted(map(str, session.name_servers.addresses)) == ["10.0.0.1:9876", "10.0.0.2:9876"]
    assert session.client_id.endswith("@billing@eu")
    assert session.remoting.credentials is not None
    assert session.remoting.credentials.access_key == "access-key"
    assert "secret" not in repr(settings)
    other = connect("10.0.0.9:9876", settings=settings, instance="mine")
    assert list(map(str, other.name_servers.addresses)) == ["10.0.0.9:9876"]
    assert other.client_id.endswith("@mine@eu")


def test_an_argument_counts_before_the_client_id_of_the_settings() -> None:
    settings = ClientSettings("10.0.0.1:9876", client_id="whole", unit="eu")
    assert connect(settings=settings).client_id == "whole"
    assert connect(settings=settings, instance="mine").client_id.endswith("@mine@eu")
    assert connect(settings=settings, client_id="other").client_id == "other"
    with pytest.raises(ValueError, match="'other' has no use for an instance or a unit"):
        connect(settings=settings, client_id="other", instance="mine")
    with pytest.raises(ValueError, match="instance '': some text without @ expected"):
        connect(settings=settings, instance="")


def test_each_name_of_the_arguments_counts_before_that_of_the_settings() -> None:
    settings = ClientSettings("10.0.0.1:9876", instance="billing", unit="eu")
    for arguments, end in (
        ({"instance": "mine", "unit": "us"}, "@mine@us"),
        ({"instance": "mine"}, "@mine@eu"),
        ({"unit": "us"}, "@billing@us"),
        ({}, "@billing@eu"),
    ):
        assert connect(settings=settings, **cast(Any, arguments)).client_id.endswith(end)


def test_the_environment_counts_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "10.0.0.3:9876")
    assert list(map(str, connect().name_servers.addresses)) == ["10.0.0.3:9876"]
    settings = ClientSettings(name_servers="10.0.0.4:9876")
    assert list(map(str, connect(settings=settings).name_servers.addresses)) == ["10.0.0.4:9876"]
    monkeypatch.delenv("NAMESRV_ADDR")
    with pytest.raises(ValueError, match="no name server: pass HOST:PORT, or set NAMESRV_ADDR"):
        connect()
    monkeypatch.setenv("NAMESRV_ADDR", "")  # as good as absent
    with pytest.raises(ValueError, match="no name server: pass HOST:PORT, or set NAMESRV_ADDR"):
        connect()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nameserver=x", "client.properties:1: nameserver is not known, one of namesrvAddr"),
        ("no setting", "client.properties"),
    ],
)
def test_a_file_with_an_unknown_key_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        ClientSettings.from_file(path)


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(b"instanceName=\xff")
    with pytest.raises(ConfigError, match=r"client\.properties: not UTF-8: invalid start byte at byte 13"):
        ClientSettings.from_file(path)


@pytest.mark.parametrize(
    "part", [ClientSettings(access_key="access-key"), ClientSettings(security_token="token")]
)
def test_a_part_of_an_account_is_refused(part: ClientSettings) -> None:
    with pytest.raises(ConfigError, match="accessKey and secretKey are needed together"):
        connect("10.0.0.1:9876", settings=part)


@pytest.mark.parametrize(
    ("arguments", "is_chosen"),
    [
        ({}, False),
        ({"instance": "DEFAULT"}, False),
        ({"unit": "eu"}, False),
        ({"instance": "billing"}, True),
        ({"client_id": "10.0.0.1@x"}, True),
        ({"settings": ClientSettings(instance="billing")}, True),
        ({"settings": ClientSettings(client_id="10.0.0.1@x")}, True),
    ],
)
def test_only_an_id_that_two_processes_can_have_is_checked(
    arguments: dict[str, Any], is_chosen: bool
) -> None:
    assert connect("10.0.0.9:9876", **arguments)._is_id_chosen is is_chosen


def test_a_text_without_a_name_server_is_refused() -> None:
    with pytest.raises(ValueError, match="' ; ' names no name server, HOST:PORT expected"):
        connect(" ; ")


@pytest.mark.parametrize(
    ("argument", "setting", "used"), [("a.properties", "b.properties", "a"), (None, "b.properties", "b")]
)
def test_the_tls_file_of_the_argument_counts_before_that_of_the_settings(
    argument: str | None, setting: str, used: str
) -> None:
    with pytest.raises(OSError, match=f"{used}.properties"):
        connect("n:1", tls=argument, settings=ClientSettings(tls=setting))


def test_the_account_of_the_argument_counts_before_that_of_the_settings() -> None:
    settings = ClientSettings("n:1", access_key="a", secret_key="s", security_token="t")
    own = Credentials("mine", "secret")
    assert connect(settings=settings).remoting.credentials == Credentials("a", "s", "t")
    assert connect(settings=settings, credentials=own).remoting.credentials is own
    assert connect("n:1").remoting.credentials is None


def test_two_sessions_of_a_process_cannot_be_the_same_member() -> None:
    first, second = (connect("n:1", "me") for _ in range(2))
    first.join_as_consumer(ConsumerData("claimed"), cast(Any, object()))
    with pytest.raises(ClientError, match="group claimed already has a consumer with client id me"):
        second.join_as_consumer(ConsumerData("claimed"), cast(Any, object()))
    asyncio.run(first.leave_as_consumer("claimed"))
    second.join_as_consumer(ConsumerData("claimed"), cast(Any, object()))
    asyncio.run(second.leave_as_consumer("claimed"))
