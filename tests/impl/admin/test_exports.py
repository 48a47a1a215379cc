"""Tests what a cluster is configured to do, from brokers with scripted answers."""

import pytest

from mqproof.impl.admin import exports
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import (
    AllTopics,
    DataVersion,
    SubscriptionGroup,
    SubscriptionGroups,
    TopicConfig,
)
from mqproof.impl.remoting.codes import RequestCode
from tests.impl.admin.site import Answer, Site, play


def answers(*topics: TopicConfig, groups: tuple[str, ...] = ()) -> dict[RequestCode, Answer]:
    table = AllTopics(DataVersion(1), {topic.topic_name: topic for topic in topics})
    of_groups = {name: SubscriptionGroup(group_name=name) for name in groups}
    return {
        RequestCode.GET_ALL_TOPIC_CONFIG: (0, {}, java_json.write(table)),
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: (
            0,
            {},
            java_json.write(SubscriptionGroups(DataVersion(1), of_groups)),
        ),
        RequestCode.GET_BROKER_CONFIG: (0, {}, b"brokerName=b\nmaxMessageSize=9\nsecretKey=12345678\n"),
    }


def test_topics_and_groups_of_all_brokers_without_those_of_the_system() -> None:
    async def scenario(site: Site) -> None:
        names = ("T", "TBW102", "b-a", "C", "C_REPLY_TOPIC", "%RETRY%G", "%DLQ%G", "rmq_sys_x")
        first = await site.add_broker(
            "b-a", answers(*map(TopicConfig, names), groups=("G", "TOOLS_CONSUMER", "CID_RMQ_SYS_X"))
        )
        second = await site.add_broker(
            "b-b", answers(TopicConfig("T", perm=4), TopicConfig("A"), groups=("F",))
        )
        brokers = [first.address, second.address]
        topics = await exports.topics_at(site.admin, brokers, special=False)
        assert list(topics) == ["A", "T"]
        assert topics["T"]["perm"] == 6  # the first broker's
        special = await exports.topics_at(site.admin, brokers, special=True)
        assert list(special) == ["%DLQ%G", "%RETRY%G", "A", "T"]
        groups = await exports.groups_at(site.admin, brokers)
        assert list(groups) == ["F", "G"]
        assert groups["G"]["retryMaxTimes"] == 16

    play(scenario)


def test_settings_are_exported_without_secrets_and_with_the_number_of_servers() -> None:
    async def scenario(site: Site) -> None:
        for name, id_ in (("b-a", 0), ("b-a", 1), ("b-b", 0), ("b-c", 2)):
            await site.add_broker(name, answers(), id_=id_)
        found = await exports.configurations(site.admin, "C")
        assert found["clusterScale"] == {"namesrvSize": 2, "masterBrokerSize": 2, "slaveBrokerSize": 2}
        setting = {"brokerName": "b", "maxMessageSize": "9"}
        assert found["brokerConfigs"] == {"b-a": setting, "b-b": setting}
        with pytest.raises(ClientError, match="no master in cluster D"):
            await exports.configurations(site.admin, "D")

    play(scenario)
