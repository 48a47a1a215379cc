"""The fixtures of the pytest plugin, used by a test run of its own, as in an application."""

import subprocess
import sys
from pathlib import Path

import pytest

import mqproof.testing

TESTS = """
import asyncio
from concurrent.futures import ThreadPoolExecutor
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

@pytest.mark.rocketmq_chaos("send_answer_lost=0.9", seed=1)
def test_chaos(rocketmq_chaos, rocketmq):
    with rocketmq_chaos.client() as client:
        for number in range(5):
            client.send(new_message("Orders", b"%d" % number))
    assert rocketmq_chaos.injected
    assert len(rocketmq.messages("Orders")) > 5

@pytest.mark.rocketmq_chaos("sent_not_stored=1", lawful=False)
def test_unlawful_chaos_is_not_judged(rocketmq_chaos, rocketmq):
    with rocketmq_chaos.client() as client:
        for number in range(9):
            client.send(new_message("Orders", b"%d" % number))
    assert len(rocketmq.messages("Orders")) < 9

@pytest.mark.rocketmq_chaos("sent_not_stored")
def test_unlawful(rocketmq_chaos):
    pass

@pytest.mark.rocketmq_chaos(sead=1)
def test_misspelt_chaos(rocketmq_chaos):
    pass

def test_process(rocketmq_process):
    rocketmq_process.restart()
    assert rocketmq_process.name_server

def test_cluster_of_the_option(rocketmq_cluster):
    assert rocketmq_cluster.running == ["n0", "n1", "n2"]

@pytest.mark.rocketmq_cluster(kind="master-slave", properties={"autoCreateTopicEnable": "false"})
def test_cluster_of_the_marker(rocketmq_cluster):
    with rocketmq_cluster.client() as client:
        assert type(client.send(new_message("Orders", b"coffee"))).__name__ == "Refused"
    assert rocketmq_cluster.stop_master() == "master"

def test_cluster_in_threads_and_in_an_event_loop(rocketmq_cluster):
    async def send(number):
        async with rocketmq_cluster.session() as session:
            await Producer(session).send_or_raise(new_message("Orders", b"%d" % number))

    with ThreadPoolExecutor(3) as threads:
        for number in range(3):
            threads.submit(asyncio.run, send(number))
    assert len(rocketmq_cluster.expect("Orders", 3)) == 3

@pytest.mark.rocketmq_cluster(kind="raft")
def test_no_such_kind(rocketmq_cluster):
    pass
"""


def test_the_fixtures_give_each_test_a_broker(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "mqproof.pytest_plugin"]
    ran = subprocess.run(
        [*command, "-n", "2", "--rocketmq-cluster", "dledger", "-p", "no:cacheprovider",
         "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "9 passed, 4 errors" in ran.stdout, ran.stdout + ran.stderr
    assert "marker rocketmq: unexpected 'propertys', expected properties= or store=" in ran.stdout
    assert "marker rocketmq_chaos: fault 'sent_not_stored': sent_not_stored breaks DELIV-1" in ran.stdout
    assert "marker rocketmq_chaos: unexpected 'sead', expected faults, or lawful, plan, seed" in ran.stdout
    assert "marker rocketmq_cluster: kind is 'raft', expected master-slave or dledger" in ran.stdout


@pytest.mark.parametrize("name", mqproof.testing.__all__)
def test_each_public_name_of_the_testing_module_exists(name: str) -> None:
    assert hasattr(mqproof.testing, name)
