"""Which member may answer clients, action for action as in spec/tla/LeaderLease.tla.

The order is the same: state, elections, transfers, clients, safety, liveness. Nodes have names; what belongs
to a node is in tuples, in the order of the configuration.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import FIRST, Obligations, leads_to, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named
from mqproof.reference.tlc_terms import as_sets, configuration, operators
from mqproof.reference.updates import with_item
from mqproof.spec.tlc.values import show

NONE: Final = "none"


@dataclass(frozen=True)
class Config:
    nodes: tuple[str, ...] = ("n1", "n2", "n3")
    candidates: tuple[str, ...] = ("n1", "n2")
    """Nodes that may be candidates; the others only vote."""
    terms_max: int = 2

    def is_quorum(self, size: int) -> bool:
        """IsQuorum: whether so many nodes are a majority."""
        return 2 * size > len(self.nodes)


# State


class Request(NamedTuple):
    """A leader's request to take over, which has no answer yet."""

    source: str
    target: str
    term: int
    taken: bool = False
    """Whether the target has stood because of it."""


class State(NamedTuple):
    """The state of the model. A named tuple, because the explorer copies and hashes states most often."""

    role: tuple[str, ...]  # CANDIDATE | VOTER | FOLLOWER | LEADER
    term: tuple[int, ...]
    leader: tuple[str, ...]  # the leader that a follower waits for, or that asked a candidate to take over
    answered: tuple[frozenset[str], ...]  # memory of a leader: the followers whose last answer still counts
    successor: tuple[str, ...]  # memory of a leader: the node that it asked to take over
    network: frozenset[Request]
    commits: frozenset[int]  # history: the terms whose leader has committed an entry


def initial(config: Config) -> tuple[State, ...]:
    """Init: the one initial state."""
    size = len(config.nodes)
    none: tuple[str, ...] = (NONE,) * size
    answered: tuple[frozenset[str], ...] = (frozenset(),) * size
    return (State(("CANDIDATE",) * size, (0,) * size, none, answered, none, frozenset(), frozenset()),)


# Elections


def _leads(config: Config, state: State, node: str, term: int) -> bool:
    n = config.nodes.index(node)
    return state.role[n] == "LEADER" and state.term[n] == term


def _follows(state: State, p: int, node: str, term: int) -> bool:
    return state.role[p] == "FOLLOWER" and state.term[p] == term and state.leader[p] == node


def _stand(state: State, n: int, asker: str) -> State:
    """Stand: the node enters a new term, perhaps because its leader asked it to take over."""
    return state._replace(
        role=with_item(state.role, n, "CANDIDATE"),
        term=with_item(state.term, n, state.term[n] + 1),
        leader=with_item(state.leader, n, asker),
    )


def _may_stand(config: Config, state: State, n: int) -> bool:
    return config.nodes[n] in config.candidates and state.term[n] < config.terms_max


def _forget(state: State, n: int) -> State:
    """Forget: the node has no memory of a leader any more."""
    return state._replace(
        answered=with_item(state.answered, n, frozenset()), successor=with_item(state.successor, n, NONE)
    )


def give_up(config: Config, state: State, node: str) -> State | None:
    """GiveUp: a follower received no heartbeat for too long, and its last answer counts no more."""
    n = config.nodes.index(node)
    if state.role[n] != "FOLLOWER" or not _may_stand(config, state, n):
        return None
    leader = config.nodes.index(state.leader[n])
    answered = with_item(state.answered, leader, state.answered[leader] - {node})
    return _stand(state, n, NONE)._replace(answered=answered)


def step_down(config: Config, state: State, node: str) -> State | None:
    """StepDown: a leader receives no answers of a quorum, or learns of a later term."""
    n = config.nodes.index(node)
    if state.role[n] != "LEADER" or state.term[n] >= config.terms_max:
        return None
    return _forget(_stand(state, n, NONE), n)


def stand_again(config: Config, state: State, node: str) -> State | None:
    """StandAgain: the round of a candidate failed, or a voter receives no heartbeat."""
    n = config.nodes.index(node)
    if state.role[n] not in ("CANDIDATE", "VOTER") or not _may_stand(config, state, n):
        return None
    return _stand(state, n, NONE)


def may_vote_for(config: Config, state: State, voter: str, candidate: str) -> bool:
    """MayVoteFor: a follower waits for its leader, unless that one stepped down or asked for a takeover."""
    p, n = config.nodes.index(voter), config.nodes.index(candidate)
    if state.term[p] >= state.term[n]:
        return False
    return state.role[p] != "FOLLOWER" or state.leader[p] in (candidate, state.leader[n])


def elected(config: Config, state: State, node: str, voters: tuple[str, ...]) -> State | None:
    """Return the state in which these nodes have elected a candidate, or None if they are too few."""
    n = config.nodes.index(node)
    if state.role[n] != "CANDIDATE" or node in voters or not config.is_quorum(len(voters) + 1):
        return None
    after = state._replace(role=with_item(state.role, n, "LEADER"), leader=with_item(state.leader, n, NONE))
    for p in map(config.nodes.index, voters):
        after = _forget(after, p)._replace(
            role=with_item(after.role, p, "VOTER"),
            term=with_item(after.term, p, state.term[n]),
            leader=with_item(after.leader, p, NONE),
        )
    return after


def elect(config: Config, state: State, node: str, voters: tuple[str, ...]) -> State | None:
    """Elect: a quorum votes for a candidate. The voters wait for no leader yet."""
    may_vote = all(may_vote_for(config, state, voter, node) for voter in voters)
    return elected(config, state, node, voters) if may_vote else None


def heart_beat(config: Config, state: State, node: str, peer: str) -> State | None:
    """HeartBeat: a node receives a heartbeat and answers it. It enters the leader's term."""
    n, p = config.nodes.index(node), config.nodes.index(peer)
    if state.role[n] != "LEADER" or p == n or state.term[p] > state.term[n]:
        return None
    after = _forget(state, p)
    after = after._replace(
        role=with_item(state.role, p, "FOLLOWER"),
        term=with_item(state.term, p, state.term[n]),
        leader=with_item(state.leader, p, node),
        answered=with_item(after.answered, n, state.answered[n] | {peer}),
    )
    return after if after != state else None


def commit(config: Config, state: State, node: str) -> State | None:
    """Commit: a quorum keeps an entry of the leader's term."""
    n = config.nodes.index(node)
    term = state.term[n]
    if state.role[n] != "LEADER" or term in state.commits:
        return None
    following = sum(_follows(state, p, node, term) for p in range(len(config.nodes)))
    return state._replace(commits=state.commits | {term}) if config.is_quorum(following + 1) else None


# Transfers


def asked(config: Config, state: State, node: str, peer: str) -> State:
    """Return the state in which a leader has asked another node to take over."""
    n = config.nodes.index(node)
    return state._replace(
        successor=with_item(state.successor, n, peer),
        network=state.network | {Request(node, peer, state.term[n])},
    )


def transfer(config: Config, state: State, node: str, peer: str) -> State | None:
    """Transfer: a leader asks another node to take over, and serves no client from here on."""
    n = config.nodes.index(node)
    if state.role[n] != "LEADER" or node == peer or state.term[n] >= config.terms_max:
        return None
    return asked(config, state, node, peer) if state.successor[n] == NONE else None


def _go_on(config: Config, state: State, request: Request) -> State:
    """GoOn: the transfer ends without a new leader."""
    after = state._replace(network=state.network - {request})
    if not _leads(config, state, request.source, request.term):
        return after
    n = config.nodes.index(request.source)
    return after._replace(successor=with_item(state.successor, n, NONE))


def find(state: State, source: str, target: str, term: int) -> Request | None:
    """Return the request with this source, target and term."""
    return next((request for request in state.network if request[:3] == (source, target, term)), None)


def not_sent(config: Config, state: State, source: str, target: str, term: int) -> State | None:
    """NotSent: the request was not sent, and the leader knows it."""
    request = find(state, source, target, term)
    return None if request is None or request.taken else _go_on(config, state, request)


def refuse(config: Config, state: State, source: str, target: str, term: int) -> State | None:
    """Refuse: a node that is in no later term refuses, or does not have all entries in time."""
    request = find(state, source, target, term)
    if request is None or request.taken or state.term[config.nodes.index(target)] > term:
        return None
    return _go_on(config, state, request)


def lose(_config: Config, state: State, source: str, target: str, term: int) -> State | None:
    """Lose: the request or its answer is lost. An answer of a later term changes nothing either."""
    request = find(state, source, target, term)
    return None if request is None else state._replace(network=state.network - {request})


def take_over(config: Config, state: State, source: str, target: str, term: int) -> State | None:
    """TakeOver: the follower is a candidate at once, although it hears its leader."""
    request, p = find(state, source, target, term), config.nodes.index(target)
    if request is None or target not in config.candidates or not _follows(state, p, source, term):
        return None
    network = state.network - {request} | {request._replace(taken=True)}
    return _stand(state, p, source)._replace(network=network)


def hand_over(config: Config, state: State, node: str) -> State | None:
    """HandOver: there is no answer in time, so the leader steps down."""
    n = config.nodes.index(node)
    return None if state.successor[n] == NONE else _forget(_stand(state, n, NONE), n)


# Clients


def serves(config: Config, state: State, node: str) -> bool:
    """Serves: whether a leader may answer a client."""
    n = config.nodes.index(node)
    if state.role[n] != "LEADER" or state.successor[n] != NONE:
        return False
    return config.is_quorum(len(state.answered[n]) + 1) and state.term[n] in state.commits


# Actions


def _pairs(config: Config) -> Iterable[Parameters]:
    return permutations(config.nodes, 2)


def _elections(config: Config) -> Iterable[Parameters]:
    sizes = range(len(config.nodes) + 1)
    return product(config.nodes, (some for size in sizes for some in combinations(config.nodes, size)))


def _requests(config: Config) -> Iterable[Parameters]:
    return ((*pair, term) for pair in permutations(config.nodes, 2) for term in range(config.terms_max + 1))


def _pending(_config: Config, state: State) -> Iterable[Parameters]:
    return (request[:3] for request in state.network)


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("GiveUp", give_up, each("nodes")),
    Action("StepDown", step_down, each("nodes")),
    Action("StandAgain", stand_again, each("nodes")),
    Action("Commit", commit, each("nodes")),
    Action("HandOver", hand_over, each("nodes")),
    Action("Elect", elect, _elections),
    Action("HeartBeat", heart_beat, _pairs),
    Action("Transfer", transfer, _pairs),
    Action("NotSent", not_sent, _requests, _pending),
    Action("Refuse", refuse, _requests, _pending),
    Action("Lose", lose, _requests, _pending),
    Action("TakeOver", take_over, _requests, _pending),
)


# Safety


def reads_current(config: Config, state: State) -> bool:
    """RAFT-9 ReadsCurrent: a leader that may answer a client knows all committed entries."""
    return all(
        term == max(state.commits, default=term)
        for node, term in zip(config.nodes, state.term, strict=True)
        if serves(config, state, node)
    )


# Liveness


FAIRNESS: Final = (weak("HandOver", "HandOver", each=FIRST),)


def transfer_eventually_ends(config: Config) -> Obligations[State]:
    """TransferEventuallyEnds: clients do not wait for the end of a transfer for ever."""
    return leads_to(
        lambda state, n: state.successor[n] != NONE,
        lambda state, n: state.successor[n] == NONE,
        of=((n,) for n in range(len(config.nodes))),
    )


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints."""

    def by_node(name: str) -> tuple[Any, ...]:
        return tuple(variables[name][node] for node in config.nodes)

    return State(
        role=by_node("role"),
        term=by_node("term"),
        leader=by_node("leader"),
        answered=tuple(map(frozenset, by_node("answered"))),
        successor=by_node("successor"),
        network=frozenset(
            Request(m["source"], m["target"], m["term"], m["taken"]) for m in variables["network"]
        ),
        commits=frozenset(variables["commits"]),
    )


_BOUNDED: Final = {"GiveUp", "StepDown", "StandAgain", "Transfer"}


def operator(config: Config, name: str, parameters: Parameters) -> tuple[str, tuple[str, ...]]:
    """Return the TLA+ operator of an action. A request is selected by its fields."""
    if name in ("NotSent", "Refuse", "Lose", "TakeOver"):
        return f"MC{name}Request", tuple(map(show, parameters))
    return operators(_BOUNDED, as_sets)(config, name, parameters)


MODEL: Final = Model(
    name="LeaderLease",
    initial=initial,
    actions=ACTIONS,
    invariants=named(reads_current),
    fairness=FAIRNESS,
    liveness=named(transfer_eventually_ends),
    from_constants=configuration(Config, nodes="Nodes", candidates="Candidates", terms_max="MaxTerm"),
    from_tla=from_tla,
    operator=operator,
)
