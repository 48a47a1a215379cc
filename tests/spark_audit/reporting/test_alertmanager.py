"""Alerts for Alertmanager: grouped by labels, and posted as it expects them."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from mqproof.spark_audit.command.watch_command import Outlets
from mqproof.spark_audit.reporting.alertmanager import alerts, is_address, post
from mqproof.spark_audit.schema import FINDING_COLUMNS


def violation(msg_id: str, first_ts: int | None = 1_795_574_419_000_000, **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(FINDING_COLUMNS)
    of = {
        "invariant": "DELIV-1",
        "rule": "lost-write",
        "severity": "critical",
        "topic": "Orders",
        "group": "g",
    }
    return empty | of | {"msg_id": msg_id, "first_ts": first_ts, "evidence": "why"} | more


def test_violations_of_one_group_and_topic_are_one_alert() -> None:
    many = [violation(f"m{number}", 1_795_574_419_000_000 + number) for number in range(5)]
    one, other = alerts([*many, violation("x", None, topic="Stock")])
    assert one["labels"] == {
        "alertname": "MqproofAuditViolation", "invariant": "DELIV-1", "rule": "lost-write",
        "severity": "critical", "topic": "Orders", "group": "g",
    }  # fmt: skip
    assert one["annotations"] == {
        "summary": "DELIV-1 lost-write: 5 violations",
        "description": "why",
        "messages": "m0, m1, m2 and 2 more",
    }
    assert one["startsAt"] == "2026-11-25T02:40:19.000000Z"
    assert "startsAt" not in other


@contextmanager
def receiver(status: int = 200) -> Iterator[tuple[str, list[Any]]]:
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/api/v2/alerts", got
        finally:
            server.shutdown()
            thread.join()


def test_alerts_are_posted_as_json() -> None:
    with receiver() as (url, got):
        post(url, alerts([violation("m")]))
    assert got == [alerts([violation("m")])]


def test_a_receiver_that_refuses_gets_the_violations_after_the_next_batch(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with receiver(500) as (url, got):
        outlets = Outlets(None, url)
        outlets.report(violation("m"))
        outlets._send()
        outlets._send()
    assert len(got) == 2
    assert "1 violation will be sent after the next batch" in capsys.readouterr().err
    with receiver() as (url, got):
        outlets._webhook = url
        outlets._send()
        outlets._send()
    assert len(got) == 1


@pytest.mark.parametrize("url", ["", "alerts", "ftp://h/x", "http://", "file:///etc/passwd"])
def test_only_web_addresses_are_accepted(url: str, tmp_path: Path) -> None:
    del tmp_path
    assert not is_address(url)
    assert is_address("https://alerts.example:9093/api/v2/alerts")
