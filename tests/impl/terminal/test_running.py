"""Tests the end of a command whose work raises an exception."""

import pytest

from mqproof.impl.terminal.running import run_command


def test_a_programming_error_is_not_reported_as_a_mistake_of_the_user() -> None:
    async def broken() -> None:
        raise ValueError("injected")

    with pytest.raises(ValueError, match="injected"):
        run_command("send", broken())
