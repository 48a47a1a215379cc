"""The transactions example: message sent if and only if row committed, with kills at every step."""

from pathlib import Path

import pytest

from tests.examples.programs import run
from tests.impl.command.test_cli import SERVE, server

SETTINGS = """
transactionTimeOut=300
transactionCheckInterval=500
transactionCheckMax=1000
"""


def test_messages_equal_rows_after_kills_of_the_producer_and_of_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "broker.conf"
    settings.write_text(SETTINGS)
    monkeypatch.setenv("EXAMPLE_DATABASE", str(tmp_path / "orders.sqlite"))
    monkeypatch.setenv("EXAMPLE_SETTLE_S", "5")
    arguments = (*SERVE, "--store", str(tmp_path / "store"), "--config", str(settings))
    placed = []
    with server(*arguments) as (broker, at):
        placed += run("transactions.py", "place", "1", namesrv=at["namesrv"]).split()
        for step in ("half", "claimed", "row", "committed", "reported"):
            monkeypatch.setenv("DIE_AT", step)
            run("transactions.py", "place", "1", namesrv=at["namesrv"], code=9)
        monkeypatch.delenv("DIE_AT")
        broker.kill()
    with server(*arguments) as (_, at):
        rows, messages = run("transactions.py", "settle", namesrv=at["namesrv"]).splitlines()
    assert rows.split()[1:] == messages.split()[1:]
    assert len(rows.split()) == 1 + 3  # without a kill, and killed after the commit
    assert placed[0] in rows
