"""Goal: the routing model computes the steps of name servers and clients, and matches TLC's state graph.

Method: examples of its pure functions, short sequences of actions, a small model against TLC.
"""

from pathlib import Path
from typing import Any

import pytest

from mqproof import spec
from mqproof.reference import routing
from mqproof.reference.constants import constants
from mqproof.reference.equivalence.equiv import compare
from mqproof.reference.explorer.search import explore
from mqproof.reference.routing import NO_RECORD, TOPICS, Config, State

TLA = Path(spec.__file__).parent / "tla"
ONE = Config(name_servers=("n1",), holders=("a",))
MASTER, SLAVE = ("a", 0), ("a", 1)
NONE: frozenset[int] = frozenset()


def after(config: Config, *steps: tuple[str, *tuple[Any, ...]], state: State | None = None) -> State:
    """Return the state after these steps; each step must be enabled."""
    current = state or routing.initial(config)[0]
    for name, *parameters in steps:
        following = routing.ACTIONS[name].apply(config, current, *parameters)
        assert following is not None, (name, parameters)
        current = following
    return current


def test_a_route_contains_only_brokers_that_have_a_queue_of_the_topic() -> None:
    members = (frozenset({0, 1}), frozenset({0}), NONE)
    assert routing.route_members(("write", "none", "read"), members) == (frozenset({0, 1}), NONE, NONE)


@pytest.mark.parametrize(
    ("permission", "members", "writable"),
    [("write", {0}, True), ("write", {1}, False), ("read", {0, 1}, False), ("none", {0}, False)],
)
def test_a_queue_is_publishable_only_if_it_is_writable_and_its_broker_has_a_master(
    permission: str, members: set[int], writable: bool
) -> None:
    assert routing.publishable((permission,), (frozenset(members),)) == (writable,)


def test_a_registration_with_a_known_version_does_not_change_the_queues() -> None:
    table = routing.registered(ONE, routing.empty_tables(ONE), MASTER, TOPICS)
    changed = table._replace(queues=(("read",), ("read",)))
    assert routing.registered(ONE, changed, MASTER, TOPICS).queues == (("read",), ("read",))
    outdated = changed._replace(live=(routing.Record(1, 1), NO_RECORD))
    assert routing.registered(ONE, outdated, MASTER, TOPICS).queues == (("write",), ("write",))


def test_topics_missing_from_a_registration_are_kept() -> None:
    table = routing.registered(ONE, routing.empty_tables(ONE), MASTER, TOPICS)
    assert routing.registered(ONE, table, MASTER, ("TBW102",)).queues == (("write",), ("write",))


def test_the_queues_of_a_broker_are_removed_with_its_last_member() -> None:
    table = routing.empty_tables(ONE)
    for broker in (MASTER, SLAVE):
        table = routing.registered(ONE, table, broker, TOPICS)
    without_master = routing.forgotten(ONE, table, {MASTER})
    assert without_master.queues == table.queues
    assert without_master.members == (frozenset({1}),)
    assert routing.forgotten(ONE, without_master, {SLAVE}) == routing.empty_tables(ONE)


def test_a_slave_registers_queues_if_no_master_is_registered() -> None:
    state = after(ONE, ("Register", SLAVE), ("Poll", "c1"))
    assert state.route[0] == routing.Route("topic", ("write",), (frozenset({1}),))
    assert state.publish[0] == (False,)


def test_a_topic_is_created_automatically_through_the_route_of_the_default_topic() -> None:
    config = Config(name_servers=("n1",), holders=())
    state = after(config, ("Register", MASTER), ("Register", SLAVE), ("Poll", "c1"))
    assert state.route[0].source == "default"
    state = after(config, ("AutoCreate", "c1", "a"), ("Tick",), ("Scan", "n1"), ("Poll", "c1"), state=state)
    assert state.route[0].source == "topic"


def test_a_failed_broker_stays_in_the_route_until_its_registration_expires() -> None:
    config = Config(name_servers=("n1",), slaves=(), holders=("a",))
    state = after(config, ("Register", MASTER), ("Poll", "c1"), ("MachineDies", MASTER))
    for _ in range(config.expiry):
        state = after(config, ("Tick",), ("Scan", "n1"), ("Poll", "c1"), state=state)
        assert state.publish[0] == (True,)
    state = after(config, ("Tick",), ("Scan", "n1"), ("Poll", "c1"), state=state)
    assert state.route[0] == routing.no_route(config)


def test_time_cannot_advance_before_due_actions_are_taken() -> None:
    assert routing.tick(ONE, routing.initial(ONE)[0]) is None
    state = after(ONE, ("Register", MASTER), ("Register", SLAVE), ("Poll", "c1"))
    assert routing.tick(ONE, state) is not None


def test_a_client_without_a_response_switches_to_another_name_server() -> None:
    config = Config()
    state = after(config, ("NameServerDies", "n1"), ("PollFails", "c1", "n2"))
    assert state.server == ("n2",)
    assert routing.poll_fails(config, after(config, ("CutClient", "n1", "c1")), "c1", "n1") is None


def test_the_smoke_model_has_as_many_states_as_in_tlc_and_no_violation() -> None:
    text = (TLA / "MCRouting_smoke.cfg").read_text(encoding="utf-8")
    config = routing.MODEL.from_constants(constants(text))
    exploration = explore(routing.MODEL, config)
    assert exploration.violation is None
    assert (len(exploration.parents), exploration.depth) == (2590, 30)


SMALL = """
CONSTANTS
    NameServers = {"n1"}
    Clients = {"c1"}
    Masters = {"a"}
    Slaves = {"a"}
    Holders = {}
    HeartbeatEvery = 2
    ScanEvery = 1
    Expiry = 2
    PollEvery = 1
    MaxFaults = 0
"""


def test_the_routing_model_has_the_same_state_graph_as_tlc() -> None:
    equivalence = compare(routing.MODEL, "MCRouting", SMALL, (TLA,), next_name="MCNext")
    assert equivalence.equal, equivalence.difference
    assert equivalence.states > 100
