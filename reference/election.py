"""DLedger's Raft in its correct form, action for action as in spec/tla/Election.tla.

The order is the same: rules that need no state, state, messages, elections, entries, faults, safety. The
model makes the same abstractions as the TLA+ module. Indexes of entries count from 1, as in TLA+.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import FIRST, PAIR, Obligations, leads_to, strong, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named, once
from mqproof.reference.tlc_terms import as_sets, configuration, operators
from mqproof.reference.updates import replace, with_item

NONE: Final = "none"
NO_OP: Final = "noop"
"""The entry with which a leader begins its term: entries of older terms are committed through it."""


@dataclass(frozen=True)
class Config:
    """The constants, with the bounds of MCElection."""

    nodes: tuple[str, ...] = ("n1", "n2", "n3")
    messages: tuple[str, ...] = ("m1",)
    candidates: tuple[str, ...] = ("n1",)
    """Nodes that may be candidates; the others only vote."""
    terms_max: int = 1
    """The number of terms that may begin before the calm."""
    crashes_max: int = 1
    losses_max: int = 0
    calm_terms: int = 0
    """The number of terms that may begin in the calm; with 0 there is no calm."""
    refusals: bool = False
    """Whether clients send requests to nodes that do not lead."""

    # Used in every state, so computed once.

    @cached_property
    def quorum(self) -> int:
        return quorum(len(self.nodes))

    @cached_property
    def number(self) -> dict[str, int]:
        return {n: i for i, n in enumerate(self.nodes)}

    @cached_property
    def peers(self) -> dict[str, tuple[str, ...]]:
        return {n: tuple(p for p in self.nodes if p != n) for n in self.nodes}

    @cached_property
    def no_answers(self) -> tuple[str, ...]:
        return (NONE,) * len(self.nodes)

    @cached_property
    def zero(self) -> tuple[int, ...]:
        return (0,) * len(self.nodes)


# Rules that need no state


def quorum(nodes: int) -> int:
    """Quorum: the majority of this number of nodes."""
    return nodes // 2 + 1


def log_up_to_date(candidate_term: int, candidate_index: int, my_term: int, my_index: int) -> bool:
    """UpToDate: whether a log with the candidate's end is at least as good as mine."""
    return candidate_term > my_term or (candidate_term == my_term and candidate_index >= my_index)


def majority_index(match: Sequence[int]) -> int:
    """Return the highest index that a quorum has reached.

    `match` holds what each node, including the leader, keeps durably.
    """
    return sorted(match, reverse=True)[quorum(len(match)) - 1]


def commit_index(match: Sequence[int], entry_terms: Sequence[int], term: int) -> int:
    """CommitIndex: the index that a quorum has, if its entry has the leader's term; else 0 (Raft's figure 8).

    `entry_terms` are the terms of the leader's entries; the first entry's term is at 0.
    """
    index = majority_index(match)
    return index if index and entry_terms[index - 1] == term else 0


class Entry(NamedTuple):
    term: int
    message: str


Log = tuple[Entry, ...]


def term_at(log: Log, index: int) -> int:
    """TermAt: the term of an entry; 0 before the first entry."""
    return log[index - 1].term if index else 0


def end_term(log: Log) -> int:
    """EndTerm: the term of the last entry; 0 for an empty log."""
    return log[-1].term if log else 0


def ends_as_well_as(one: Log, other: Log) -> bool:
    """EndsAsWellAs: whether one log is at least as up to date as the other."""
    return log_up_to_date(end_term(one), len(one), end_term(other), len(other))


BETTER_LEDGER: Final = frozenset({"REJECT_EXPIRED_LEDGER_TERM", "REJECT_SMALL_LEDGER_END_INDEX"})


def vote_result(
    candidate: str,
    vote_term: int,
    end: tuple[int, int],
    mine: tuple[int, int],
    voter: tuple[int, str, str],
) -> str:
    """VoteResult, in DLedger's order: first the logs, then the terms.

    `end` and `mine` are (term, index) of the candidate's and the voter's last entries. `voter` is the
    voter's term, vote and leader.
    """
    term, voted_for, leader = voter
    if end[0] < mine[0]:
        return "REJECT_EXPIRED_LEDGER_TERM"
    if not log_up_to_date(*end, *mine):
        return "REJECT_SMALL_LEDGER_END_INDEX"
    if vote_term < term:
        return "REJECT_EXPIRED_VOTE_TERM"
    if vote_term == term and voted_for not in (NONE, candidate):
        return "REJECT_ALREADY_VOTED" if leader == NONE else "REJECT_ALREADY_HAS_LEADER"
    if vote_term > term:
        return "REJECT_TERM_NOT_READY"
    return "REJECT_TERM_SMALL_THAN_LEDGER" if vote_term < mine[0] else "ACCEPT"


def round_result(results: Collection[str], nodes: int) -> str:
    """RoundResult: the result of the answers that a candidate received, including its own."""
    needed = quorum(nodes)
    better = sum(result in BETTER_LEDGER for result in results)
    accepted = sum(result == "ACCEPT" for result in results)
    not_ready = sum(result == "REJECT_TERM_NOT_READY" for result in results)
    if "REJECT_ALREADY_HAS_LEADER" in results or len(results) - better < needed:
        return "WAIT_TO_REVOTE"
    if accepted >= needed:
        return "PASSED"
    return "REVOTE_IMMEDIATELY" if accepted + not_ready >= needed else "WAIT_TO_VOTE_NEXT"


# State


class Message(NamedTuple):
    kind: str  # VOTE | HEART_BEAT | PUSH | COMMIT
    source: str
    target: str
    term: int
    entry_index: int = 0  # VOTE: the index of the log's last entry
    entry_term: int = 0  # COMMIT: the entry's term; VOTE: the last entry's; PUSH: the previous entry's
    entry: Entry | None = None


class Ballot(NamedTuple):
    term: int
    candidates: frozenset[str]


class Committed(NamedTuple):
    entry: Entry
    by: int  # the term of the leader that committed it


@dataclass(frozen=True, slots=True)
class State:
    """The state of the model. Tuples by node and by message are in the order of the configuration."""

    role: tuple[str, ...]  # CANDIDATE | FOLLOWER | LEADER | DOWN
    term: tuple[int, ...]  # durable
    voted_for: tuple[str, ...]  # durable, in one write with the term
    log: tuple[Log, ...]  # page cache over disk
    durable: tuple[int, ...]  # the number of durable entries
    leader: tuple[str, ...]  # memory: the leader it knows of in this term
    known: tuple[int, ...]  # memory: the term it is about to enter, if larger than its own
    answers: tuple[tuple[str, ...], ...]  # memory of a candidate: by node, in its round of votes
    watermark: tuple[tuple[int, ...], ...]  # memory of a leader: by node, the end of the equal entries
    commit: tuple[int, ...]  # memory: the number of entries it knows to be committed
    network: frozenset[Message]
    answer: tuple[str, ...]  # by message: unsent | waiting | SUCCESS | NOT_LEADER | unknown
    calm: bool  # no more faults
    ballots: tuple[Ballot, ...]  # history: the latest term in which each node voted, and its candidates
    winners: frozenset[tuple[int, str]]  # history: term and leader
    committed: tuple[Committed, ...]  # history
    crashes: int  # history
    losses: int  # history


def initial(config: Config) -> tuple[State, ...]:
    """Init: the one initial state."""
    size = len(config.nodes)
    return (
        State(
            role=("CANDIDATE",) * size,
            term=(1,) * size,
            voted_for=(NONE,) * size,
            log=((),) * size,
            durable=config.zero,
            leader=(NONE,) * size,
            known=(1,) * size,
            answers=(config.no_answers,) * size,
            watermark=(config.zero,) * size,
            commit=config.zero,
            network=frozenset(),
            answer=("unsent",) * len(config.messages),
            calm=False,
            ballots=(Ballot(0, frozenset()),) * size,
            winners=frozenset(),
            committed=(),
            crashes=0,
            losses=0,
        ),
    )


# Messages


def in_round(config: Config, state: State, n: int) -> bool:
    """InRound: whether a candidate is in a round of votes."""
    return state.answers[n] != config.no_answers


def leads(state: State, n: int, term: int) -> bool:
    """Leads: whether a node leads this term."""
    return state.role[n] == "LEADER" and state.term[n] == term


def votes(config: Config, state: State, node: str) -> list[Message]:
    """Votes: a candidate's vote requests to its peers."""
    n = config.number[node]
    log = state.log[n]
    return [Message("VOTE", node, p, state.term[n], len(log), end_term(log)) for p in config.peers[node]]


def heart_beats(config: Config, state: State, node: str) -> list[Message]:
    """HeartBeats: a leader's heartbeats to its peers."""
    term = state.term[config.number[node]]
    return [Message("HEART_BEAT", node, p, term) for p in config.peers[node]]


def push(source: str, target: str, term: int, log: Log, index: int) -> Message:
    """Push: the entry at an index of the leader's log, and the term of the one before it."""
    return Message("PUSH", source, target, term, index, term_at(log, index - 1), log[index - 1])


def push_to_all(config: Config, state: State, node: str, log: Log) -> list[Message]:
    """PushToAll: a push of the last entry to each peer."""
    term = state.term[config.number[node]]
    return [push(node, p, term, log, len(log)) for p in config.peers[node]]


def commits(config: Config, state: State, node: str, index: int) -> list[Message]:
    """Commits: messages with the commit index of a leader to its peers."""
    n = config.number[node]
    entry_term = term_at(state.log[n], index)
    return [Message("COMMIT", node, p, state.term[n], index, entry_term) for p in config.peers[node]]


def void(config: Config, message: Message, term: tuple[int, ...]) -> bool:
    """Void: the target refuses the message, and the source no longer needs an answer."""
    if term[config.number[message.target]] <= message.term:
        return False
    return message.kind in ("PUSH", "COMMIT") or term[config.number[message.source]] > message.term


def send(config: Config, state: State, messages: list[Message]) -> frozenset[Message]:
    """Send: the network with these messages."""
    return state.network.union(m for m in messages if not void(config, m, state.term))


def arrives(config: Config, state: State, message: Message) -> bool:
    """Arrives: in the calm, only messages that still match their sender's role and term arrive."""
    if not state.calm:
        return True
    source = config.number[message.source]
    stands = in_round(config, state, source) if message.kind == "VOTE" else state.role[source] == "LEADER"
    return stands and state.term[source] == message.term


def _find(state: State, key: tuple[Any, ...]) -> Message | None:
    """Return the message with this kind, source, target, term and, for entries, index."""
    return next((m for m in state.network if m[: len(key)] == key), None)


# Elections


def _become_candidate(config: Config, state: State, n: int, term: int) -> State:
    """BecomeCandidate: the node learned of a term, or wants a new one because its own has no leader."""
    return replace(
        state,
        role=with_item(state.role, n, "CANDIDATE"),
        leader=with_item(state.leader, n, NONE),
        known=with_item(state.known, n, max(state.known[n], term)),
        answers=with_item(state.answers, n, config.no_answers),
        watermark=with_item(state.watermark, n, config.zero),
    )


def _term_max(config: Config, state: State) -> int:
    return config.terms_max + config.calm_terms if state.calm else config.terms_max


def next_term(config: Config, state: State, node: str) -> State | None:
    """NextTerm: the new term is durable before the node sends it to another."""
    n = config.number[node]
    wanted = state.known[n]
    if state.role[n] != "CANDIDATE" or not state.term[n] < wanted <= _term_max(config, state):
        return None
    term = with_item(state.term, n, wanted)
    return replace(
        state,
        term=term,
        voted_for=with_item(state.voted_for, n, NONE),
        network=frozenset(m for m in state.network if not void(config, m, term)),
    )


def _cast(state: State, n: int, candidate: str) -> tuple[tuple[str, ...], tuple[Ballot, ...]]:
    """Cast: return the changed votes and ballots."""
    ballot, term = state.ballots[n], state.term[n]
    if ballot.term == term:
        ballot = Ballot(term, ballot.candidates | {candidate})
    elif ballot.term < term:
        ballot = Ballot(term, frozenset({candidate}))
    return with_item(state.voted_for, n, candidate), with_item(state.ballots, n, ballot)


def request_votes(config: Config, state: State, node: str) -> State | None:
    """RequestVotes: a round of votes begins with the candidate's own."""
    n = config.number[node]
    if state.role[n] != "CANDIDATE" or state.known[n] != state.term[n] or in_round(config, state, n):
        return None
    if state.voted_for[n] not in (NONE, node):
        return None
    if state.calm:
        mine = state.log[n]
        for p, log in enumerate(state.log):
            if in_round(config, state, p):
                return None
            if state.role[p] != "DOWN" and not ends_as_well_as(mine, log):
                return None
    voted_for, ballots = _cast(state, n, node)
    return replace(
        state,
        voted_for=voted_for,
        ballots=ballots,
        answers=with_item(state.answers, n, with_item(config.no_answers, n, "ACCEPT")),
        network=send(config, state, votes(config, state, node)),
    )


def answer_to_vote(config: Config, state: State, message: Message) -> str:
    """VoteResult: a voter's answer to a vote request, from its state."""
    n = config.number[message.target]
    log = state.log[n]
    return vote_result(
        message.source,
        message.term,
        (message.entry_term, message.entry_index),
        (end_term(log), len(log)),
        (state.term[n], state.voted_for[n], state.leader[n]),
    )


def handle_vote(config: Config, state: State, source: str, target: str, term: int) -> State | None:
    """HandleVote: a voter answers a candidate, which records the answer.

    A voter with a lower term becomes a candidate. A candidate with a lower term ends its round.
    """
    message = _find(state, ("VOTE", source, target, term))
    voter, candidate = config.number[target], config.number[source]
    if message is None or state.role[voter] == "DOWN" or not arrives(config, state, message):
        return None
    result = answer_to_vote(config, state, message)
    changed = state
    if in_round(config, state, candidate) and state.term[candidate] == term:
        if state.term[voter] > term:
            known = max(state.known[candidate], state.term[voter])
            changed = replace(
                changed,
                answers=with_item(changed.answers, candidate, config.no_answers),
                known=with_item(changed.known, candidate, known),
            )
        elif state.answers[candidate][voter] != result:
            heard = with_item(state.answers[candidate], voter, result)
            changed = replace(changed, answers=with_item(changed.answers, candidate, heard))
    if result == "REJECT_TERM_NOT_READY":
        if state.role[voter] != "CANDIDATE" or state.known[voter] < term or in_round(config, state, voter):
            changed = _become_candidate(config, changed, voter, term)
    elif result == "ACCEPT" and state.voted_for[voter] == NONE:
        voted_for, ballots = _cast(state, voter, source)
        changed = replace(changed, voted_for=voted_for, ballots=ballots)
    return None if changed is state else changed


def end_round(config: Config, state: State, node: str, heard: tuple[str, ...]) -> State | None:
    """EndRound: with the answers received, including its own.

    In the calm the candidate waits for all answers.
    """
    n = config.number[node]
    answers = state.answers[n]
    if answers[n] == NONE:
        return None
    results = [answers[config.number[p]] for p in heard]
    if NONE in results or node not in heard:
        return None
    if state.calm:
        if len(results) != len(answers) - answers.count(NONE):
            return None
        for m in votes(config, state, node):
            target = config.number[m.target]
            if answers[target] == NONE and state.role[target] != "DOWN" and m in state.network:
                return None
    result = round_result(results, len(config.nodes))
    if result == "PASSED":
        return _become_leader(config, state, node)
    return _ask_again(config, state, n, result)


def _ask_again(config: Config, state: State, n: int, result: str) -> State | None:
    """AskAgain: the term stays, or the next one is wanted.

    The round continues at once or begins after a wait.
    """
    if result == "REVOTE_IMMEDIATELY":
        own = with_item(config.no_answers, n, "ACCEPT")
        return replace(state, answers=with_item(state.answers, n, own))
    answers = with_item(state.answers, n, config.no_answers)
    if result == "WAIT_TO_REVOTE":
        return replace(state, answers=answers)
    wanted = state.term[n] + 1
    if wanted > _term_max(config, state):
        return None
    return replace(state, known=with_item(state.known, n, wanted), answers=answers)


def _become_leader(config: Config, state: State, node: str) -> State:
    """BecomeLeader: the candidate leads, appends a no-op entry and sends heartbeats and the entry."""
    n = config.number[node]
    log = (*state.log[n], Entry(state.term[n], NO_OP))
    return replace(
        state,
        role=with_item(state.role, n, "LEADER"),
        leader=with_item(state.leader, n, node),
        answers=with_item(state.answers, n, config.no_answers),
        log=with_item(state.log, n, log),
        winners=state.winners | {(state.term[n], node)},
        network=send(config, state, heart_beats(config, state, node) + push_to_all(config, state, node, log)),
    )


def heart_beat_code(term: int, source: str, my_term: int, my_leader: str) -> str:
    """HeartBeatCode: the response code to a heartbeat."""
    if term < my_term:
        return "EXPIRED_TERM"
    if term > my_term:
        return "TERM_NOT_READY"
    return "SUCCESS" if my_leader in (NONE, source) else "INCONSISTENT_LEADER"


def handle_heart_beat(config: Config, state: State, source: str, target: str, term: int) -> State | None:
    """HandleHeartBeat: a leader that receives a higher term steps down, independent of the other answers."""
    message = _find(state, ("HEART_BEAT", source, target, term))
    n, sender = config.number[target], config.number[source]
    if message is None or state.role[n] == "DOWN" or not arrives(config, state, message):
        return None
    match heart_beat_code(term, source, state.term[n], state.leader[n]):
        case "SUCCESS":
            return None if state.leader[n] == source else _become_follower(config, state, n, source)
        case "TERM_NOT_READY":
            if state.role[n] == "CANDIDATE" and state.known[n] >= term:
                return None
            return _become_candidate(config, state, n, term)
        case "EXPIRED_TERM" if leads(state, sender, term):
            return _become_candidate(config, state, sender, state.term[n])
        case "INCONSISTENT_LEADER" if leads(state, sender, term):
            return _become_candidate(config, state, sender, term + 1)
    return None


def _become_follower(config: Config, state: State, n: int, leader: str) -> State:
    """BecomeFollower: the node follows this leader."""
    return replace(
        state,
        role=with_item(state.role, n, "FOLLOWER"),
        leader=with_item(state.leader, n, leader),
        known=with_item(state.known, n, state.term[n]),
        answers=with_item(state.answers, n, config.no_answers),
    )


def give_up(config: Config, state: State, node: str) -> State | None:
    """GiveUp: a follower timed out on its leader.

    It may also be a node that voted for another and timed out on any leader.
    """
    n = config.number[node]
    term = state.term[n]
    if term >= _term_max(config, state):
        return None
    if state.role[n] != "FOLLOWER" and not (
        state.role[n] == "CANDIDATE" and state.known[n] == term and state.voted_for[n] not in (NONE, node)
    ):
        return None
    everyone = range(len(config.nodes))
    if state.calm and any(in_round(config, state, p) or leads(state, p, term) for p in everyone):
        return None
    return _become_candidate(config, state, n, term + 1)


def step_down(config: Config, state: State, node: str) -> State | None:
    """StepDown: a leader received no answer from a quorum for too long."""
    n = config.number[node]
    if state.role[n] != "LEADER" or state.calm or state.term[n] >= _term_max(config, state):
        return None
    return _become_candidate(config, state, n, state.term[n] + 1)


# Entries


def append_entry(config: Config, state: State, node: str, message: str) -> State | None:
    """AppendEntry: the leader accepts a message, appends it to its page cache and pushes it to the others."""
    n, m = config.number[node], config.messages.index(message)
    if state.role[n] != "LEADER" or state.answer[m] not in ("unsent", "NOT_LEADER"):
        return None
    log = (*state.log[n], Entry(state.term[n], message))
    return replace(
        state,
        log=with_item(state.log, n, log),
        network=send(config, state, push_to_all(config, state, node, log)),
        answer=with_item(state.answer, m, "waiting"),
    )


def refuse(config: Config, state: State, node: str, message: str) -> State | None:
    """Refuse: any other node answers NOT_LEADER and stores nothing."""
    m = config.messages.index(message)
    if not config.refusals or state.role[config.number[node]] not in ("FOLLOWER", "CANDIDATE"):
        return None
    return (
        replace(state, answer=with_item(state.answer, m, "NOT_LEADER"))
        if state.answer[m] == "unsent"
        else None
    )


def flush(config: Config, state: State, node: str) -> State | None:
    """Flush: the whole log of a node becomes durable."""
    n = config.number[node]
    end = len(state.log[n])
    if state.role[n] == "DOWN" or state.durable[n] == end:
        return None
    return replace(state, durable=with_item(state.durable, n, end))


def follows(config: Config, state: State, message: Message) -> bool:
    """Follows: whether the target of a message follows its source in its term."""
    n = config.number[message.target]
    return state.role[n] == "FOLLOWER" and state.term[n] == message.term and state.leader[n] == message.source


def matches(log: Log, index: int, entry_term: int) -> bool:
    """Matches: whether a log has an entry of this term at the index."""
    return index <= len(log) and term_at(log, index) == entry_term


def handle_push(
    config: Config, state: State, source: str, target: str, term: int, index: int
) -> State | None:
    """HandlePush: if the previous entry is missing, the leader pushes it.

    Only durable entries are confirmed.
    """
    message = _find(state, ("PUSH", source, target, term, index))
    if message is None or not follows(config, state, message) or not arrives(config, state, message):
        return None
    assert message.entry is not None
    n, sender = config.number[target], config.number[source]
    log = state.log[n]
    if not matches(log, index - 1, message.entry_term):
        if not leads(state, sender, term):
            return None
        earlier = push(source, target, term, state.log[sender], index - 1)
        if earlier in state.network:
            return None
        return replace(state, network=state.network | {earlier})
    if matches(log, index, message.entry.term):
        reached = state.watermark[sender]
        if not leads(state, sender, term) or reached[n] >= index or index > state.durable[n]:
            return None
        return replace(state, watermark=with_item(state.watermark, sender, with_item(reached, n, index)))
    return replace(
        state,
        log=with_item(state.log, n, (*log[: index - 1], message.entry)),
        durable=with_item(state.durable, n, min(state.durable[n], index - 1)),
    )


def advance_commit(config: Config, state: State, node: str) -> State | None:
    """AdvanceCommit: a leader commits what a quorum keeps, and sends the new commit index."""
    n = config.number[node]
    if state.role[n] != "LEADER":
        return None
    log, term = state.log[n], state.term[n]
    match = with_item(state.watermark[n], n, state.durable[n])
    index = commit_index(match, [entry.term for entry in log], term)
    if index <= state.commit[n]:
        return None
    more = tuple(Committed(entry, term) for entry in log[len(state.committed) : index])
    return replace(
        state,
        commit=with_item(state.commit, n, index),
        committed=state.committed + more,
        network=send(config, state, commits(config, state, node, index)),
    )


def handle_commit(
    config: Config, state: State, source: str, target: str, term: int, index: int
) -> State | None:
    """HandleCommit: a follower that has the entry advances its commit index."""
    message = _find(state, ("COMMIT", source, target, term, index))
    n = config.number[target]
    if message is None or state.commit[n] >= index or not follows(config, state, message):
        return None
    if not matches(state.log[n], index, message.entry_term) or not arrives(config, state, message):
        return None
    return replace(state, commit=with_item(state.commit, n, index))


def acknowledge(config: Config, state: State, node: str, message: str) -> State | None:
    """Acknowledge: the leader that accepted the message answers when it is committed."""
    n, m = config.number[node], config.messages.index(message)
    if state.role[n] != "LEADER" or state.answer[m] != "waiting":
        return None
    if Entry(state.term[n], message) not in state.log[n][: state.commit[n]]:
        return None
    return replace(state, answer=with_item(state.answer, m, "SUCCESS"))


def fail(config: Config, state: State, message: str) -> State | None:
    """Fail: the client gives up; the entry may be lost, or committed later."""
    m = config.messages.index(message)
    return (
        replace(state, answer=with_item(state.answer, m, "unknown")) if state.answer[m] == "waiting" else None
    )


def repeat(config: Config, state: State, node: str) -> State | None:
    """Repeat: a candidate resends its votes; a leader its heartbeats, newest entry and commit index."""
    n = config.number[node]
    if state.role[n] == "LEADER":
        messages = heart_beats(config, state, node) + push_to_all(config, state, node, state.log[n])
        if state.commit[n]:
            messages += commits(config, state, node, state.commit[n])
    elif in_round(config, state, n):
        messages = votes(config, state, node)
    else:
        return None
    network = send(config, state, messages)
    return None if len(network) == len(state.network) else replace(state, network=network)


# Faults


def crash(config: Config, state: State, node: str, kept: int) -> State | None:
    """Crash: any part of the entries that were not durable may be lost; the rest is durable afterwards."""
    n = config.number[node]
    if state.crashes >= config.crashes_max or state.role[n] == "DOWN" or state.calm:
        return None
    if not state.durable[n] <= kept <= len(state.log[n]):
        return None
    return replace(
        state,
        role=with_item(state.role, n, "DOWN"),
        leader=with_item(state.leader, n, NONE),
        known=with_item(state.known, n, state.term[n]),
        answers=with_item(state.answers, n, config.no_answers),
        watermark=with_item(state.watermark, n, config.zero),
        commit=with_item(state.commit, n, 0),
        log=with_item(state.log, n, state.log[n][:kept]),
        durable=with_item(state.durable, n, kept),
        crashes=state.crashes + 1,
    )


def restart(config: Config, state: State, node: str) -> State | None:
    """Restart: a node that may have led its term is not a candidate in it again (StandsFrom)."""
    n = config.number[node]
    if state.role[n] != "DOWN":
        return None
    known = state.term[n] + (state.voted_for[n] == node)
    return replace(state, role=with_item(state.role, n, "CANDIDATE"), known=with_item(state.known, n, known))


def lose(config: Config, state: State, *key: Any) -> State | None:
    """Lose: the message with this kind, source, target, term and, for entries, index is lost."""
    if state.losses >= config.losses_max or state.calm:
        return None
    message = _find(state, key)
    if message is None:
        return None
    return replace(state, network=state.network - {message}, losses=state.losses + 1)


def calm(config: Config, state: State) -> State | None:
    """Calm: the faults are over, and a quorum is up."""
    up = len(config.nodes) - state.role.count("DOWN")
    if not config.calm_terms or state.calm or up < config.quorum:
        return None
    return replace(state, calm=True)


# Actions


def _each_round(config: Config) -> Iterator[Parameters]:
    for n in config.candidates:
        for size in range(len(config.nodes)):
            for others in combinations(config.peers[n], size):
                yield n, tuple(sorted((n, *others)))


def _index_max(config: Config) -> int:
    """Return the maximum index. A leader appends one no-op per term, and each message is appended once."""
    return config.terms_max + config.calm_terms + len(config.messages)


def _each_request(config: Config) -> Iterator[Parameters]:
    for n in config.candidates:
        yield from product((n,), config.peers[n], range(1, config.terms_max + config.calm_terms + 1))


def _each_entry(config: Config) -> Iterator[Parameters]:
    return ((*p, i) for p in _each_request(config) for i in range(1, _index_max(config) + 1))


def _each_crash(config: Config) -> Iterator[Parameters]:
    return product(config.nodes, range(_index_max(config) + 1)) if config.crashes_max else iter(())


def _each_loss(config: Config) -> Iterator[Parameters]:
    if config.losses_max:
        yield from ((kind, *p) for kind in ("VOTE", "HEART_BEAT") for p in _each_request(config))
        yield from ((kind, *p) for kind in ("PUSH", "COMMIT") for p in _each_entry(config))


def _rounds(config: Config, state: State) -> Iterator[Parameters]:
    for node in config.candidates:
        answers = state.answers[config.number[node]]
        if answers != config.no_answers:
            answered = [p for p in config.peers[node] if answers[config.number[p]] != NONE]
            for size in range(len(answered) + 1):
                for others in combinations(answered, size):
                    yield node, tuple(sorted((node, *others)))


def _pending(kind: str, length: int) -> Any:
    def choices(_config: Config, state: State) -> list[Parameters]:
        return [m[1:length] for m in state.network if m.kind == kind]

    return choices


def _losable(config: Config, state: State) -> list[Parameters]:
    if state.losses >= config.losses_max:
        return []
    return [m[: 4 if m.kind in ("VOTE", "HEART_BEAT") else 5] for m in state.network]


ACTIONS: Final = by_name(
    Action("HandleVote", handle_vote, _each_request, _pending("VOTE", 4)),
    Action("HandleHeartBeat", handle_heart_beat, _each_request, _pending("HEART_BEAT", 4)),
    Action("HandlePush", handle_push, _each_entry, _pending("PUSH", 5)),
    Action("HandleCommit", handle_commit, _each_entry, _pending("COMMIT", 5)),
    Action("NextTerm", next_term, each("nodes")),
    Action("RequestVotes", request_votes, each("candidates")),
    Action("EndRound", end_round, _each_round, _rounds),
    Action("GiveUp", give_up, each("nodes")),
    Action("StepDown", step_down, each("candidates")),
    Action("AppendEntry", append_entry, lambda c: product(c.candidates, c.messages)),
    Action("Refuse", refuse, lambda c: product(c.nodes, c.messages) if c.refusals else ()),
    Action("Acknowledge", acknowledge, lambda c: product(c.candidates, c.messages)),
    Action("Fail", fail, each("messages")),
    Action("Flush", flush, each("nodes")),
    Action("AdvanceCommit", advance_commit, each("candidates")),
    Action("Repeat", repeat, each("candidates")),
    Action("Crash", crash, _each_crash),
    Action("Restart", restart, each("nodes")),
    Action("Lose", lose, _each_loss, _losable),
    Action("Calm", calm, once),
)


# Safety


def election_safety(_config: Config, state: State) -> bool:
    """RAFT-1 ElectionSafety: a term has at most one leader."""
    return len({term for term, _ in state.winners}) == len(state.winners)


def leader_append_only(_config: Config, before: State, _action: str, after: State) -> bool:
    """RAFT-2 LeaderAppendOnly: a leader only appends to its log."""
    if before.log is after.log:
        return True
    return all(
        new[: len(old)] == old
        for role, new_role, old, new in zip(before.role, after.role, before.log, after.log, strict=True)
        if role == new_role == "LEADER"
    )


def log_matching(_config: Config, state: State) -> bool:
    """RAFT-3 LogMatching: logs with an equal term at an index are equal up to that index."""
    for one, other in combinations(state.log, 2):
        for i in range(min(len(one), len(other)), 0, -1):
            if one[i - 1].term == other[i - 1].term:
                if one[:i] != other[:i]:
                    return False
                break
    return True


def leader_completeness(_config: Config, state: State) -> bool:
    """RAFT-4 LeaderCompleteness: a leader has each entry that leaders of earlier terms committed."""
    return all(
        log[i : i + 1] == (entry,)
        for role, term, log in zip(state.role, state.term, state.log, strict=True)
        if role == "LEADER"
        for i, (entry, by) in enumerate(state.committed)
        if by < term
    )


def committed_stable(_config: Config, state: State) -> bool:
    """RAFT-5 CommittedStable: up to its commit index, a node's log equals the committed entries."""
    return all(
        commit <= len(log)
        and commit <= len(state.committed)
        and all(log[i] == state.committed[i].entry for i in range(commit))
        for commit, log in zip(state.commit, state.log, strict=True)
        if commit
    )


def vote_once_per_term(_config: Config, state: State) -> bool:
    """RAFT-6 VoteOncePerTerm: a node votes for at most one candidate per term."""
    return all(len(ballot.candidates) <= 1 for ballot in state.ballots)


# Liveness


FAIRNESS: Final = (
    weak("Arrive", "HandleVote", "HandleHeartBeat", "HandlePush", "HandleCommit", each=PAIR),
    weak("Term", "NextTerm", each=FIRST),
    strong("Request", "RequestVotes", each=FIRST),
    weak("Round", "EndRound", each=FIRST),
    weak("GiveUp", "GiveUp", each=FIRST),
    weak("Flush", "Flush", each=FIRST),
    weak("Commit", "AdvanceCommit", each=FIRST),
    weak("Repeat", "Repeat", each=FIRST),
)


def led(config: Config, state: State, n: int) -> bool:
    """Led: the node leads, and all nodes that are up follow it."""
    followers = [p for p in range(len(config.nodes)) if p != n and state.role[p] != "DOWN"]
    return state.role[n] == "LEADER" and all(
        state.leader[p] == config.nodes[n] and state.term[p] == state.term[n] for p in followers
    )


def converged(config: Config, state: State, n: int) -> bool:
    """Converged: all nodes that are up have the log of their leader, and know that it is committed."""
    up = [p for p in range(len(config.nodes)) if state.role[p] != "DOWN"]
    return led(config, state, n) and all(
        state.log[p] == state.log[n] and state.commit[p] == len(state.log[n]) for p in up
    )


def leader_eventually(config: Config) -> Obligations[State]:
    """RAFT-7 LeaderEventually: when no more faults happen, all nodes that are up follow one leader."""
    return leads_to(lambda s: s.calm, lambda s: any(led(config, s, n) for n in range(len(config.nodes))))


def logs_converge(config: Config) -> Obligations[State]:
    """RAFT-8 LogsConverge: when no more faults happen, all logs become equal and committed."""
    return leads_to(
        lambda s: s.calm, lambda s: any(converged(config, s, n) for n in range(len(config.nodes)))
    )


# The model in TLC's terms


def _entry(record: Mapping[str, Any]) -> Entry:
    return Entry(record["term"], record["message"])


def _message(record: Mapping[str, Any]) -> Message:
    common = (record["kind"], record["source"], record["target"], record["term"])
    match record["kind"]:
        case "VOTE":
            return Message(*common, record["endIndex"], record["endTerm"])
        case "PUSH":
            return Message(*common, record["index"], record["prevTerm"], _entry(record["entry"]))
        case "COMMIT":
            return Message(*common, record["index"], record["entryTerm"])
    return Message(*common)


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints: records and functions are mappings, sequences are tuples."""

    def by_node(name: str) -> tuple[Any, ...]:
        return tuple(variables[name][n] for n in config.nodes)

    def table(name: str) -> tuple[tuple[Any, ...], ...]:
        return tuple(tuple(row[p] for p in config.nodes) for row in by_node(name))

    return State(
        role=by_node("role"),
        term=by_node("term"),
        voted_for=by_node("votedFor"),
        log=tuple(tuple(map(_entry, log)) for log in by_node("log")),
        durable=by_node("durable"),
        leader=by_node("leader"),
        known=by_node("known"),
        answers=table("answers"),
        watermark=table("watermark"),
        commit=by_node("commit"),
        network=frozenset(map(_message, variables["network"])),
        answer=tuple(variables["answer"][m] for m in config.messages),
        calm=variables["calm"],
        ballots=tuple(Ballot(b["term"], frozenset(b["candidates"])) for b in by_node("ballots")),
        winners=frozenset((w["term"], w["node"]) for w in variables["winners"]),
        committed=tuple(Committed(_entry(c["entry"]), c["by"]) for c in variables["committed"]),
        crashes=variables["faults"]["crashes"],
        losses=variables["faults"]["losses"],
    )


_BOUNDED: Final = frozenset(
    {"NextTerm", "RequestVotes", "EndRound", "GiveUp", "StepDown", "Refuse", "Crash", "Calm"}
    | {"HandleVote", "HandleHeartBeat", "HandlePush", "HandleCommit", "LoseEntry", "LoseRequest"}
)


_operator = operators(_BOUNDED, as_sets)


def operator(config: Config, name: str, parameters: Parameters) -> tuple[str, tuple[str, ...]]:
    """Return the operator of an action.

    The bounded module loses requests and entries by different operators.
    """
    if name == "Lose":
        name = "LoseEntry" if len(parameters) == 5 else "LoseRequest"
    return _operator(config, name, parameters)


MODEL: Final = Model(
    name="Election",
    initial=initial,
    actions=ACTIONS,
    invariants=named(
        election_safety, log_matching, leader_completeness, committed_stable, vote_once_per_term
    ),
    step_invariants=named(leader_append_only),
    fairness=FAIRNESS,
    liveness=named(leader_eventually, logs_converge),
    from_constants=configuration(
        Config,
        nodes="Nodes",
        messages="Messages",
        candidates="Candidates",
        terms_max="MaxTerm",
        crashes_max="MaxCrashes",
        losses_max="MaxLosses",
        calm_terms="CalmTerms",
        refusals="Refusals",
    ),
    from_tla=from_tla,
    operator=operator,
)
