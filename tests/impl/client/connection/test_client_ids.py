"""Tests client ids: their form, and that two clients without a name have different ones."""

import os
import re
import socket

import pytest

from mqproof.impl.client.connection.client_ids import client_id, local_address


def test_an_id_is_the_address_the_instance_and_the_unit() -> None:
    assert client_id("billing") == f"{local_address()}@billing"
    assert client_id("billing", "eu") == f"{local_address()}@billing@eu"


def test_clients_without_an_instance_have_the_process_id_and_a_time() -> None:
    first, second = client_id(), client_id("DEFAULT")
    assert first != second
    assert re.fullmatch(rf"[0-9.]+@{os.getpid()}#\d+", first)


@pytest.mark.parametrize(("instance", "unit"), [("a@b", None), (" ", None), ("a", "")])
def test_a_name_that_would_make_an_id_ambiguous_is_refused(instance: str, unit: str | None) -> None:
    with pytest.raises(ValueError, match="some text without @ expected"):
        client_id(instance, unit)


def test_a_machine_without_a_network_has_the_loopback_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> None:
        raise OSError("injected")

    monkeypatch.setattr(socket.socket, "connect", unreachable, raising=False)
    assert local_address() in ("127.0.0.1", local_address())
