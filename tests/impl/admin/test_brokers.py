"""Tests the states and configurations of brokers with scripted answers.

Source: docs/reference/protocol/administration.md, "Administration commands".
"""

import pytest

from mqproof.impl.admin import brokers
from mqproof.impl.admin.run import targets
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import (
    AllTopics,
    DataVersion,
    SubscriptionGroup,
    SubscriptionGroups,
    Table,
    TopicConfig,
)
from mqproof.impl.remoting.codes import RequestCode
from tests.impl.admin.site import OK, Answer, Site, play

STATUS = {"brokerVersionDesc": "V4_9_8"}


def test_every_broker_of_every_cluster_is_listed_even_without_status() -> None:
    async def scenario(site: Site) -> None:
        answer: Answer = (0, {}, java_json.write(Table(STATUS)))
        await site.add_broker("b-b", {RequestCode.GET_BROKER_RUNTIME_INFO: answer}, cluster="D")
        silent = await site.add_broker("b-a", {})
        await site.add_broker("b-a", {RequestCode.GET_BROKER_RUNTIME_INFO: answer}, id_=1)
        await site.add_broker("b-c", {})
        site.network.silence(silent.address)
        states = await brokers.cluster_states(site.admin)
        assert [(state.cluster, state.name, state.id, state.status) for state in states] == [
            ("C", "b-a", 0, None),
            ("C", "b-a", 1, STATUS),
            ("C", "b-c", 0, None),
            ("D", "b-b", 0, STATUS),
        ]
        assert [state.name for state in await brokers.cluster_states(site.admin, "D")] == ["b-b"]
        assert await brokers.cluster_states(site.admin, "E") == []
        assert len(await site.admin.masters("C")) == 2
        assert len(await site.admin.masters("C", slaves=True)) == 3

    play(scenario)


def test_a_configuration_is_read_and_changed_line_by_line() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker(
            "b-a",
            {
                RequestCode.GET_BROKER_CONFIG: (0, {"version": "{}"}, b"brokerName=b-a\nlistenPort=1\n"),
                RequestCode.UPDATE_BROKER_CONFIG: OK,
            },
        )
        found = await brokers.config(site.admin, broker.address)
        assert found == {"brokerName": "b-a", "listenPort": "1"}
        await brokers.update_config(site.admin, [broker.address], "brokerPermission", "4")
        assert broker.bodies_of(RequestCode.UPDATE_BROKER_CONFIG) == [b"brokerPermission=4\n"]

    play(scenario)


def test_an_invalid_configuration_is_an_error() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker("b-a", {RequestCode.GET_BROKER_CONFIG: (0, {}, b"nonsense")})
        with pytest.raises(ClientError, match="is invalid"):
            await brokers.config(site.admin, broker.address)

    play(scenario)


def test_a_broker_with_a_cluster_is_that_broker_and_must_belong_to_the_cluster() -> None:
    async def scenario(site: Site) -> None:
        first = await site.add_broker("b-a", {})
        slave = await site.add_broker("b-a", {}, id_=1)
        other = await site.add_broker("b-b", {}, cluster="D")
        assert await targets(site.admin, first.address, "C") == [first.address]
        assert await targets(site.admin, slave.address, "C") == [slave.address]
        assert await targets(site.admin, other.address, None) == [other.address]
        with pytest.raises(ClientError, match=f"broker {other.address} is not in cluster C"):
            await targets(site.admin, other.address, "C")
        with pytest.raises(ClientError, match="no broker in cluster E"):
            await targets(site.admin, first.address, "E")

    play(scenario)


def test_measurements_are_those_of_the_masters_that_answer() -> None:
    async def scenario(site: Site) -> dict[str, dict[str, object]]:
        status = Table({**STATUS, "putTps": "1.0 1.0 1.0", "runtime": "[ 0 days ]"})
        groups = SubscriptionGroups(DataVersion(), {"G": SubscriptionGroup(group_name="G")})
        topics = AllTopics(DataVersion(), {"T": TopicConfig("T")})
        answers: dict[RequestCode, Answer] = {
            RequestCode.GET_BROKER_RUNTIME_INFO: (0, {}, java_json.write(status)),
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: (0, {}, java_json.write(groups)),
            RequestCode.GET_ALL_TOPIC_CONFIG: (0, {}, java_json.write(topics)),
        }
        await site.add_broker("b-a", answers)
        await site.add_broker("b-a", answers, id_=1)
        await site.add_broker("b-b", {})
        return await brokers.metrics(site.admin, "C")

    found = play(scenario)
    assert list(found) == ["b-a"]
    assert (found["b-a"]["topics"], found["b-a"]["groups"]) == (1, 1)
    assert found["b-a"]["runtime"] == {"brokerVersionDesc": "V4_9_8", "putTps": "1.0 1.0 1.0"}
