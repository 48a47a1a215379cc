"""Tests client ids: their form, and that two clients without a name have different ones."""

import os
import re
import socket
from typing import Self

import pytest

from mqproof.impl.client.connection.client_ids import client_id, is_unique, local_address


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


@pytest.mark.parametrize(
    ("error", "address"), [(None, "10.1.2.3"), (OSError("no route"), "127.0.0.1")], ids=["route", "no route"]
)
def test_the_address_is_that_of_the_route_or_else_the_loopback_address(
    error: OSError | None, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Probe:
        def __init__(self, family: int, kind: int) -> None:
            assert (family, kind) == (socket.AF_INET, socket.SOCK_DGRAM)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            closed.append(self)

        def connect(self, address: tuple[str, int]) -> None:
            assert address == ("192.0.2.1", 9)  # no machine has it, and the port discards what it gets
            if error is not None:
                raise error

        def getsockname(self) -> tuple[str, int]:
            return "10.1.2.3", 5

    closed: list[Probe] = []
    monkeypatch.setattr(socket, "socket", Probe)
    assert local_address() == address
    assert len(closed) == 1


@pytest.mark.parametrize(("instance", "expected"), [(None, True), ("DEFAULT", True), ("billing", False)])
def test_only_a_chosen_name_can_be_that_of_another_client(instance: str | None, expected: bool) -> None:
    assert is_unique(instance) is expected
