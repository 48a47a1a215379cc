"""The fixtures of the pytest plugin, used by a test run of its own, as in an application."""

import subprocess
import sys
from pathlib import Path

import pytest

import mqproof.testing

TESTS = """
import asyncio
import pytest
from mqproof import Producer, new_message
from mqproof.testing import broker

def test_plain(rocketmq):
    with rocketmq.client() as client:
        client.send(new_message("Orders", b"coffee"))
    assert [m.body for m in rocketmq.expect("Orders")] == [b"coffee"]

def test_the_next_test_has_a_broker_of_its_own(rocketmq):
    assert rocketmq.messages("Orders") == []

@pytest.mark.rocketmq(properties={"autoCreateTopicEnable": "false"}, store=True)
def test_marked(rocketmq, tmp_path):
    with rocketmq.client() as client:
        assert type(client.send(new_message("Orders", b"coffee"))).__name__ == "Refused"
    assert (tmp_path / "rocketmq" / "config").exists()

@pytest.mark.rocketmq(propertys={})
def test_misspelt(rocketmq):
    pass

def test_process(rocketmq_process):
    rocketmq_process.restart()
    assert rocketmq_process.name_server
"""


def test_the_fixtures_give_each_test_a_broker(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "mqproof.pytest_plugin"]
    ran = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "4 passed, 1 error" in ran.stdout, ran.stdout + ran.stderr
    assert "marker rocketmq: unexpected 'propertys', expected properties= or store=" in ran.stdout


@pytest.mark.parametrize("name", mqproof.testing.__all__)
def test_each_public_name_of_the_testing_module_exists(name: str) -> None:
    assert hasattr(mqproof.testing, name)
