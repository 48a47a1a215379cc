"""Tests the settings of a console."""

import pytest

from mqproof.impl.console import cli
from mqproof.impl.console.config import PORT, ConsoleConfig


@pytest.mark.parametrize(
    ("host", "is_public"),
    [
        ("127.0.0.1", False),
        ("127.8.8.8", False),
        ("::1", False),
        ("localhost", False),
        ("0.0.0.0", True),
        ("::", True),
        ("10.0.0.1", True),
        ("mq.example.org", True),
        ("localhost.example.org", True),
    ],
)
def test_an_address_is_public_if_other_machines_reach_it(host: str, is_public: bool) -> None:
    assert ConsoleConfig([], host=host).is_public is is_public


def test_a_console_is_read_only_and_asks_for_a_login_by_default() -> None:
    config = ConsoleConfig([])
    assert (config.allow_changes, config.needs_login, config.is_public) == (False, True, False)
    assert config.port == PORT == cli._PORT
