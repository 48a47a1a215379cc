"""Tests the tables of producers and consumers: who is a member, on which channel, and when a group ends.

Source: docs/reference/protocol/groups.md, "Client registration".
"""

from typing import cast

import pytest

from mqproof.impl.broker.state import clients
from mqproof.impl.broker.state.clients import ClientTable, ConsumerGroup, Member
from mqproof.impl.remoting.bodies import ConsumerData, Heartbeat, ProducerData, Subscription
from mqproof.impl.remoting.budget import Percentages
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.runtime.simulated_loop import run_simulated


class Connection:
    """What the tables need of a channel."""

    def __init__(self, host: str = "10.0.0.1", *, takes: bool = True) -> None:
        self.remote = (host, 1)
        self.takes = takes


def channel(host: str = "10.0.0.1", *, takes: bool = True) -> Channel:
    return cast("Channel", Connection(host, takes=takes))


def member(client_id: str, at_ms: int = 0) -> Member:
    return Member(client_id, "PYTHON", 1, at_ms)


def subscribed(*topics: str, version: int = 0, text: str = "*") -> list[Subscription]:
    return [Subscription(topic, text, sub_version=version) for topic in topics]


def consumes(table: ClientTable, at: Channel, client_id: str, group: str = "G", at_ms: int = 0) -> set[str]:
    data = ConsumerData(group, subscription_data_set=subscribed("T"))
    return table.heartbeat(at, Heartbeat(client_id, consumer_data_set=[data]), member(client_id, at_ms))


def produces(table: ClientTable, at: Channel, client_id: str, *groups: str, at_ms: int = 0) -> None:
    data = [ProducerData(group) for group in groups]
    table.heartbeat(at, Heartbeat(client_id, producer_data_set=data), member(client_id, at_ms))


def test_a_group_has_the_topics_of_its_latest_heartbeat_and_the_latest_version_of_each() -> None:
    group = ConsumerGroup()
    assert not group.is_broadcasting
    first = ConsumerData("G", subscription_data_set=subscribed("T", "U", version=5, text="a"))
    assert group.update(first)
    assert not group.update(first)
    same = ConsumerData("G", subscription_data_set=subscribed("T", "U", version=5, text="b"))
    assert not group.update(same)
    assert [each.sub_string for each in group.subscriptions.values()] == ["a", "a"], "not a later version"
    later = ConsumerData("G", subscription_data_set=subscribed("T", version=6, text="c"))
    assert group.update(later), "U is gone"
    assert {topic: each.sub_string for topic, each in group.subscriptions.items()} == {"T": "c"}
    assert group.data is later
    assert not group.is_broadcasting
    group.update(ConsumerData("G", message_model="BROADCASTING"))
    assert (group.is_broadcasting, group.subscriptions) == (True, {})


def test_a_client_with_two_channels_is_one_member_and_reached_on_the_later_one() -> None:
    table, old, new = ClientTable(), channel(), channel()
    assert consumes(table, new, "c", at_ms=2) == {"G"}
    assert consumes(table, old, "c", at_ms=1) == {"G"}
    assert consumes(table, channel(), "d", at_ms=9) == {"G"}
    assert consumes(table, new, "c", at_ms=2) == set(), "known, and with the same topics"
    assert table.consumer_ids("G") == ["c", "d"]
    assert len(table.consumer_channels("G")) == 3
    group = table.consumer_group("G")
    assert group is not None
    assert group.channel_of("c") is new
    assert group.channel_of("unknown") is None
    assert table.subscribed() == {"G": (3, ["T"])}
    assert (table.groups_of_topic("T"), table.groups_of_topic("U")) == (["G"], [])
    assert (table.consumer_ids("unknown"), table.consumer_channels("unknown")) == ([], [])


def test_a_group_ends_with_its_last_member_and_only_changed_groups_are_reported() -> None:
    table, one, two = ClientTable(), channel(), channel()
    consumes(table, one, "c1", "G")
    consumes(table, two, "c2", "G")
    consumes(table, one, "c1", "H")
    produces(table, one, "c1", "P")
    assert table.membership_count(one) == 3
    assert table.unregister(one, "P", "G") == {"G"}
    assert (table.consumer_ids("G"), table.consumer_ids("H"), table.producers()) == (["c2"], ["c1"], {})
    assert table.unregister(one, "P", "G") == set(), "it has left already"
    assert table.unregister(one, None, None) == set()
    assert table.channel_closed(one) == {"H"}
    assert table.consumer_group("H") is None
    assert table.membership_count(one) == 0
    assert table.channel_closed(one) == set()
    assert table.channel_closed(two) == {"G"}
    assert table.subscribed() == {}
    assert not table._memberships


def test_a_check_goes_to_the_producers_of_a_group_in_turn_and_only_to_those_that_read() -> None:
    table, one, two, deaf = ClientTable(), channel(), channel(), channel(takes=False)
    for number, at in enumerate((one, deaf, two)):
        produces(table, at, f"p{number}", "P")
    assert [table.next_producer("P") for _ in range(4)] == [one, two, one, two]
    assert table.next_producer("unknown") is None
    table.channel_closed(one)
    table.channel_closed(two)
    assert table.next_producer("P") is None


def test_a_reply_goes_to_the_channel_with_the_latest_heartbeat_of_its_client() -> None:
    table, one, two = ClientTable(), channel(), channel()
    produces(table, one, "p", "P")
    produces(table, two, "p", "P", "Q")
    assert table.producer_channel("p") is two
    produces(table, one, "p", "P")
    assert table.producer_channel("p") is one
    table.channel_closed(one)
    assert table.producer_channel("p") is two
    table.unregister(two, "P", None)
    assert table.producer_channel("p") is two, "it is a producer of Q still"
    table.unregister(two, "Q", None)
    assert table.producer_channel("p") is None


def test_a_channel_whose_client_id_changes_is_found_by_the_new_one_only() -> None:
    table, at = ClientTable(), channel()
    produces(table, at, "before", "P")
    produces(table, at, "after", "P")
    assert (table.producer_channel("before"), table.producer_channel("after")) == (None, at)
    consumes(table, at, "consumer only")
    assert table.producer_channel("consumer only") is None


def test_a_channel_is_silent_if_any_of_its_memberships_was_not_confirmed() -> None:
    table, quiet, lively = ClientTable(), channel(), channel()
    consumes(table, quiet, "c1", at_ms=100)
    produces(table, quiet, "c1", "P", at_ms=99)
    produces(table, lively, "p1", "P", at_ms=100)
    assert table.silent_since(99) == []
    assert table.silent_since(100) == [quiet]
    assert set(table.silent_since(101)) == {quiet, lively}
    consumes(table, lively, "c2", at_ms=50)
    assert table.silent_since(51) == [lively]
    table.count_as_heard(500)
    assert table.silent_since(500) == []
    assert set(table.silent_since(501)) == {quiet, lively}


def test_the_bytes_of_memberships_are_limited_and_given_back() -> None:
    async def scenario() -> None:
        table = ClientTable(Percentages(address=100, connection=100))
        one = channel()
        producers = Heartbeat("p", producer_data_set=[ProducerData("P"), ProducerData("Q")])
        table.heartbeat(one, producers, member("p"))
        table.heartbeat(one, producers, member("p"))
        assert table.budget.used == 512, "a repeated heartbeat takes no more"
        consumes(table, one, "p")
        assert table.budget.used > 768, "a subscription is counted with its text"
        room = clients.MEMBERSHIP_BYTES_MAX - table.budget.used
        table.budget.take(one, room - 256)
        more = Heartbeat("p", producer_data_set=[ProducerData("R")])
        assert table.refusal(one, more) is None
        assert table.refusal(one, producers) is None, "it is known"
        table.budget.take(one, 1)
        refusal = table.refusal(one, more)
        assert refusal is not None
        assert "bytes of group memberships of this connection, at most 134217728 allowed" in refusal
        table.budget.take(one, 255 - room)
        table.channel_closed(one)
        assert table.budget.used == 0

    run_simulated(scenario())


@pytest.mark.parametrize(("percent", "most"), [(None, 13_421_772), (Percentages(10, 1), 1_342_177)])
def test_one_connection_has_its_share_of_the_bytes(percent: Percentages | None, most: int) -> None:
    assert ClientTable(percent).budget.limits.connection == most
