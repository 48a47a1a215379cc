"""How a command ends when its work raises."""

import pytest

from mqproof.impl.terminal.running import run_command


def test_a_programming_error_is_not_taken_for_a_mistake_of_the_user() -> None:
    async def broken() -> None:
        raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"):
        run_command("send", broken())
