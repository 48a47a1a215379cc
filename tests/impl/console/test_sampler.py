"""Tests the sampling of a cluster: counts, turns of topics, and failures."""

import asyncio

import pytest

from mqproof.impl.admin import brokers
from mqproof.impl.admin.admin import Admin
from mqproof.impl.console import sampler as sampler_module
from mqproof.impl.console.sampler import Sampler
from mqproof.impl.runtime.network import Address
from mqproof.testing import EmbeddedBroker
from tests.impl.console.desk import console_of, desk


def test_a_round_counts_what_brokers_and_topics_store_and_what_groups_have_not_consumed() -> None:
    async def run() -> None:
        async with desk() as d:
            await d.store("T", *[b"m"] * 3)
            now_s = 100.0
            sampler = Sampler(lambda: d.console.admin_of(None), lambda: now_s)
            await sampler.round()
            await d.store("T", *[b"m"] * 20)
            now_s = 110.0
            await sampler.round()
            assert (sampler.problem, sampler.sampled_s) == ("", 110.0)
            assert sampler.history.names("topic") == ["T"]  # not the topics of RocketMQ itself
            (topic,) = sampler.history.rates(("topic", "T"))
            assert (topic.at_s, topic.in_s, topic.out_s, topic.behind) == (110.0, 2.0, 0.0, 0)
            (broker,) = sampler.history.rates(("broker", "broker-a"))
            assert broker.in_s == 2.0

    asyncio.run(run())


def test_a_cluster_that_does_not_answer_is_a_problem_until_it_answers() -> None:
    async def run() -> None:
        async with EmbeddedBroker(sockets=True) as broker:
            down = console_of([Address("127.0.0.1", 1)])
            up = console_of([Address.parse(broker.name_server)])
            admins = [down.admin_of(None), up.admin_of(None)]
            sampler = Sampler(lambda: admins.pop(0), lambda: 5.0)
            await sampler.round()
            assert "GET_BROKER_CLUSTER_INFO" in sampler.problem
            await sampler.round()
            assert (sampler.problem, sampler.sampled_s) == ("", 5.0)

    asyncio.run(run())


def test_the_topics_of_a_large_cluster_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_module, "TOPICS_OF_ROUND", 2)
    sampler = Sampler(lambda: pytest.fail("not used"), lambda: 0.0)
    names = ["a", "b", "c", "d", "e"]
    assert [sampler._turn(names) for _ in range(4)] == [["a", "b"], ["c", "d"], ["e", "a"], ["b", "c"]]
    assert sampler._turn(["a"]) == ["a"]
    assert sampler._turn([]) == []


def test_a_round_that_takes_too_long_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_module, "ROUND_S", 0.01)

    async def silent(_: Admin) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(brokers, "cluster_states", silent)

    async def run() -> None:
        console = console_of([Address("127.0.0.1", 1)])
        sampler = Sampler(lambda: console.admin_of(None), lambda: 0.0)
        await sampler.round()
        assert sampler.problem == "a round of samples took more than 0 s"

    asyncio.run(run())


def test_a_defect_does_not_end_the_sampler(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: Admin) -> None:
        raise KeyError("x")

    monkeypatch.setattr(brokers, "cluster_states", broken)
    console = console_of([Address("127.0.0.1", 1)])
    sampler = Sampler(lambda: console.admin_of(None), lambda: 0.0)
    asyncio.run(sampler.round())
    assert sampler.problem == "a defect of the console: KeyError"
    assert "a round of samples failed" in caplog.text
