"""DLedger's Raft in logic, action for action as in spec/tla/Election.tla, with its inductive invariant.

The numbers of terms, entries, messages and crashes are unbounded; the number of nodes is fixed. Every step of
the TLA+ module is a step here. The parts of the module that are left out only restrict it, or are read by no
safety invariant:
- The network is a growing set, and a message may also reach another node than its target. So `Lose`, and the
  dropping of void messages, are not steps.
- `calm` and the clients' knowledge are left out: `Calm`, `Refuse`, `Acknowledge` and `Fail` are not steps.

The invariant follows Raft's own argument. `canon` is the log of each term's leader. It only grows, and it
contains every entry of term u of any node, with all entries before it. An index is choosable in term u while
a quorum may still keep it. In that case every later leader has it, and so does every node that reported to
keep it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

from mqproof.reference import election
from mqproof.reference.proofs.logic import (
    FLAG,
    Function,
    Kind,
    Scope,
    Term,
    choose,
    conjunction,
    disjunction,
    implies,
    maximum,
    minimum,
    negation,
    updated,
)
from mqproof.reference.proofs.proof import Action, Proof
from mqproof.reference.proofs.variables import of

TERM: Final = Kind("term")
LENGTH: Final = Kind("length")
INDEX: Final = Kind("index", low=1)  # an index into a log
MESSAGE: Final = Kind("message", names=("m",))  # 0 is the no-op
NODE: Final = Kind("node", optional=True, names=("n",), alike=True)

NO_NODE: Final = -1
NO_OP: Final = 0

ROLE: Final = Kind("role", size=4, names=("CANDIDATE", "FOLLOWER", "LEADER", "DOWN"))
CANDIDATE, FOLLOWER, LEADER, DOWN = range(4)

RESULT: Final = Kind(
    "result",
    size=9,
    names=(
        "none",
        "ACCEPT",
        "REJECT_EXPIRED_LEDGER_TERM",
        "REJECT_SMALL_LEDGER_END_INDEX",
        "REJECT_EXPIRED_VOTE_TERM",
        "REJECT_ALREADY_HAS_LEADER",
        "REJECT_ALREADY_VOTED",
        "REJECT_TERM_NOT_READY",
        "REJECT_TERM_SMALL_THAN_LEDGER",
    ),
)
(
    NO_RESULT,
    ACCEPT,
    EXPIRED_LEDGER_TERM,
    SMALL_LEDGER_END_INDEX,
    EXPIRED_VOTE_TERM,
    ALREADY_HAS_LEADER,
    ALREADY_VOTED,
    TERM_NOT_READY,
    TERM_SMALL_THAN_LEDGER,
) = range(9)


@dataclass(frozen=True, slots=True)
class State:
    """The state, in the order of the module. Each kind of message of the network is a relation."""

    role: Function = of(ROLE, NODE)
    term: Function = of(TERM, NODE)
    voted_for: Function = of(NODE, NODE)
    log_length: Function = of(LENGTH, NODE)
    log_term: Function = of(TERM, NODE, INDEX, length="log_length")
    log_message: Function = of(MESSAGE, NODE, INDEX, length="log_length")
    durable: Function = of(LENGTH, NODE)
    leader: Function = of(NODE, NODE)
    known: Function = of(TERM, NODE)
    answers: Function = of(RESULT, NODE, NODE)
    watermark: Function = of(LENGTH, NODE, NODE)
    commit: Function = of(LENGTH, NODE)
    ballot_term: Function = of(TERM, NODE)
    ballot: Function = of(FLAG, NODE, NODE)
    winner: Function = of(FLAG, TERM, NODE)
    committed_length: Term = of(LENGTH)
    committed_term: Function = of(TERM, INDEX, length="committed_length")
    committed_message: Function = of(MESSAGE, INDEX, length="committed_length")
    committed_by: Function = of(TERM, INDEX, length="committed_length")
    vote_sent: Function = of(FLAG, NODE, TERM, LENGTH, TERM, grows=True)  # source, term, end index, end term
    heart_beat_sent: Function = of(FLAG, NODE, TERM, grows=True)
    push_sent: Function = of(FLAG, NODE, TERM, INDEX, TERM, TERM, MESSAGE, grows=True)  # index, prev, entry
    commit_sent: Function = of(FLAG, NODE, TERM, INDEX, TERM, grows=True)  # index, entry's term
    vote: Function = of(NODE, NODE, TERM, auxiliary=True)  # the candidate it voted for in each term
    leader_of: Function = of(NODE, TERM, auxiliary=True)
    canon_length: Function = of(LENGTH, TERM, auxiliary=True)  # the log of the term's leader
    canon_term: Function = of(TERM, TERM, INDEX, length="canon_length", auxiliary=True)
    canon_message: Function = of(MESSAGE, TERM, INDEX, length="canon_length", auxiliary=True)
    reached: Function = of(LENGTH, NODE, TERM, auxiliary=True)  # the index up to which it reported that log
    point: Function = of(LENGTH, INDEX, auxiliary=True)  # the last index committed together with the entry


# Rules that need no state


def most(scope: Scope, holds: Callable[[Term], Term]) -> Term:
    """IsQuorum: whether a quorum of the nodes satisfies `holds`."""
    nodes = scope.values(NODE)
    assert nodes is not None
    quorums = combinations(nodes, election.quorum(len(nodes)))
    return disjunction(*(conjunction(*(holds(n) for n in quorum)) for quorum in quorums))


def term_at(terms: Function, index: Term) -> Term:
    return choose(index == 0, 0, terms(index))


def _end_term(s: State, n: Term) -> Term:
    return term_at(lambda i: s.log_term(n, i), s.log_length(n))


def _in_round(scope: Scope, s: State, n: Term) -> Term:
    return scope.some(NODE, lambda p: s.answers(n, p) != NO_RESULT)


def _leads(s: State, n: Term, t: Term) -> Term:
    return conjunction(s.role(n) == LEADER, s.term(n) == t)


def initial(scope: Scope, s: State) -> Term:
    """Init: the condition of initial states."""
    return conjunction(
        scope.every(
            NODE,
            lambda n: conjunction(
                s.role(n) == CANDIDATE,
                s.term(n) == 1,
                s.voted_for(n) == NO_NODE,
                s.log_length(n) == 0,
                s.durable(n) == 0,
                s.leader(n) == NO_NODE,
                s.known(n) == 1,
                s.commit(n) == 0,
                s.ballot_term(n) == 0,
            ),
        ),
        scope.every(
            NODE,
            NODE,
            lambda n, p: conjunction(
                s.answers(n, p) == NO_RESULT, s.watermark(n, p) == 0, negation(s.ballot(n, p))
            ),
        ),
        s.committed_length == 0,
        scope.every(TERM, NODE, lambda t, n: negation(s.winner(t, n))),
        scope.every(NODE, TERM, LENGTH, TERM, lambda *m: negation(s.vote_sent(*m))),
        scope.every(NODE, TERM, lambda *m: negation(s.heart_beat_sent(*m))),
        scope.every(NODE, TERM, INDEX, TERM, TERM, MESSAGE, lambda *m: negation(s.push_sent(*m))),
        scope.every(NODE, TERM, INDEX, TERM, lambda *m: negation(s.commit_sent(*m))),
        scope.every(TERM, lambda t: conjunction(s.leader_of(t) == NO_NODE, s.canon_length(t) == 0)),
        scope.every(NODE, TERM, lambda n, t: conjunction(s.vote(n, t) == NO_NODE, s.reached(n, t) == 0)),
    )


# Messages


def _send_votes(s: State, n: Term) -> State:
    return replace(s, vote_sent=updated(s.vote_sent, n, s.term(n), s.log_length(n), _end_term(s, n), True))


def _send_heart_beats(s: State, n: Term) -> State:
    return replace(s, heart_beat_sent=updated(s.heart_beat_sent, n, s.term(n), True))


def _push(s: State, n: Term, index: Term) -> State:
    before = term_at(lambda i: s.log_term(n, i), index - 1)
    message = (n, s.term(n), index, before, s.log_term(n, index), s.log_message(n, index))
    return replace(s, push_sent=updated(s.push_sent, *message, True))


def _send_commit(s: State, n: Term, index: Term) -> State:
    return replace(s, commit_sent=updated(s.commit_sent, n, s.term(n), index, s.log_term(n, index), True))


# Elections


def _no_answers(s: State, n: Term) -> Function:
    return lambda m, p: choose(m == n, NO_RESULT, s.answers(m, p))


def _no_watermark(s: State, n: Term) -> Function:
    return lambda m, p: choose(m == n, 0, s.watermark(m, p))


def _become_candidate(s: State, n: Term, t: Term) -> State:
    return replace(
        s,
        role=updated(s.role, n, CANDIDATE),
        leader=updated(s.leader, n, NO_NODE),
        known=updated(s.known, n, maximum(s.known(n), t)),
        answers=_no_answers(s, n),
        watermark=_no_watermark(s, n),
    )


def _either(condition: Term, then: State, otherwise: State) -> State:
    """Return, variable by variable, IF condition THEN then ELSE otherwise."""

    def of_variable(a: Any, b: Any) -> Any:
        if a is b:
            return a
        if callable(a):
            return lambda *at: choose(condition, a(*at), b(*at))
        return choose(condition, a, b)

    names = State.__dataclass_fields__
    return State(**{name: of_variable(getattr(then, name), getattr(otherwise, name)) for name in names})


def next_term(_scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    return conjunction(s.role(n) == CANDIDATE, s.known(n) > s.term(n)), replace(
        s, term=updated(s.term, n, s.known(n)), voted_for=updated(s.voted_for, n, NO_NODE)
    )


def _cast(s: State, n: Term, candidate: Term) -> State:
    old, new = s.ballot_term(n) == s.term(n), s.ballot_term(n) < s.term(n)

    def ballot(m: Term, p: Term) -> Term:
        here = conjunction(m == n, disjunction(old, new))
        chosen = disjunction(p == candidate, conjunction(old, s.ballot(m, p)))
        return choose(here, chosen, s.ballot(m, p))

    return replace(
        s,
        voted_for=updated(s.voted_for, n, candidate),
        ballot_term=updated(s.ballot_term, n, maximum(s.ballot_term(n), s.term(n))),
        ballot=ballot,
        vote=updated(s.vote, n, s.term(n), candidate),
    )


def request_votes(scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    free = disjunction(s.voted_for(n) == NO_NODE, s.voted_for(n) == n)
    waits = negation(_in_round(scope, s, n))
    guard = conjunction(s.role(n) == CANDIDATE, s.known(n) == s.term(n), free, waits)
    after = replace(_cast(s, n, n), answers=updated(_no_answers(s, n), n, n, ACCEPT))
    return guard, _send_votes(after, n)


def vote_result(s: State, c: Term, v: Term, t: Term, index: Term, end: Term) -> Term:
    """VoteResult: a voter's answer."""
    mine, length = _end_term(s, v), s.log_length(v)
    up_to_date = disjunction(end > mine, conjunction(end == mine, index >= length))
    taken = conjunction(t == s.term(v), s.voted_for(v) != NO_NODE, s.voted_for(v) != c)
    cases = (
        (end < mine, EXPIRED_LEDGER_TERM),
        (negation(up_to_date), SMALL_LEDGER_END_INDEX),
        (t < s.term(v), EXPIRED_VOTE_TERM),
        (conjunction(taken, s.leader(v) != NO_NODE), ALREADY_HAS_LEADER),
        (taken, ALREADY_VOTED),
        (t > s.term(v), TERM_NOT_READY),
        (t < mine, TERM_SMALL_THAN_LEDGER),
    )
    result: Term = ACCEPT
    for condition, value in reversed(cases):
        result = choose(condition, value, result)
    return result


def handle_vote(
    scope: Scope, s: State, c: Term, v: Term, t: Term, index: Term, end: Term
) -> tuple[Term, State]:
    """HandleVote: the message of candidate `c` at voter `v`."""
    guard = conjunction(c != v, s.vote_sent(c, t, index, end), s.role(v) != DOWN)
    result = vote_result(s, c, v, t, index, end)
    waits = conjunction(_in_round(scope, s, c), s.term(c) == t)
    learns = conjunction(waits, s.term(v) > t)
    informed = replace(
        s, answers=_no_answers(s, c), known=updated(s.known, c, maximum(s.known(c), s.term(v)))
    )
    answered = replace(s, answers=updated(s.answers, c, v, result))
    heard = _either(learns, informed, _either(waits, answered, s))
    return guard, _either(
        result == TERM_NOT_READY,
        _become_candidate(heard, v, t),
        _either(result == ACCEPT, _cast(heard, v, c), heard),
    )


def _become_leader(s: State, n: Term) -> State:
    t, end = s.term(n), s.log_length(n) + 1
    after = replace(
        s,
        role=updated(s.role, n, LEADER),
        leader=updated(s.leader, n, n),
        winner=updated(s.winner, t, n, True),
        leader_of=updated(s.leader_of, t, n),
    )
    return _push(_send_heart_beats(_append(after, n, end, NO_OP), n), n, end)


def _append(s: State, n: Term, end: Term, message: Term) -> State:
    """Append to a leader's log, and so to the log of its term."""
    t = s.term(n)
    log_length = updated(s.log_length, n, end)
    log_term = updated(s.log_term, n, end, t)
    log_message = updated(s.log_message, n, end, message)
    return replace(
        s,
        log_length=log_length,
        log_term=log_term,
        log_message=log_message,
        canon_length=updated(s.canon_length, t, end),
        canon_term=lambda u, i: choose(u == t, log_term(n, i), s.canon_term(u, i)),
        canon_message=lambda u, i: choose(u == t, log_message(n, i), s.canon_message(u, i)),
    )


def end_round(scope: Scope, s: State, n: Term, heard: Function) -> tuple[Term, State]:
    nodes = scope.values(NODE)
    assert nodes is not None

    def count(holds: Callable[[Term], Term]) -> Term:
        return sum(choose(conjunction(heard(p), holds(p)), 1, 0) for p in nodes)

    def among(*results: int) -> Callable[[Term], Term]:
        return lambda p: disjunction(*(s.answers(n, p) == result for result in results))

    needed = election.quorum(len(nodes))
    worse = count(lambda p: negation(among(EXPIRED_LEDGER_TERM, SMALL_LEDGER_END_INDEX)(p)))
    again = disjunction(count(among(ALREADY_HAS_LEADER)) > 0, worse < needed)
    passed = conjunction(negation(again), count(among(ACCEPT)) >= needed)
    soon = count(among(ACCEPT, TERM_NOT_READY)) >= needed
    give_up_term = conjunction(negation(again), negation(passed), negation(soon))
    guard = conjunction(
        s.answers(n, n) != NO_RESULT,
        heard(n),
        scope.every(NODE, lambda p: implies(heard(p), s.answers(n, p) != NO_RESULT)),
    )
    own = replace(s, answers=updated(_no_answers(s, n), n, n, s.answers(n, n)))
    ended = replace(s, answers=_no_answers(s, n))
    later = replace(ended, known=updated(s.known, n, s.term(n) + 1))
    asked_again = _either(conjunction(negation(again), soon), own, _either(give_up_term, later, ended))
    return guard, _either(passed, _become_leader(ended, n), asked_again)


def handle_heart_beat(_scope: Scope, s: State, source: Term, n: Term, t: Term) -> tuple[Term, State]:
    follower = replace(
        s,
        role=updated(s.role, n, FOLLOWER),
        leader=updated(s.leader, n, source),
        known=updated(s.known, n, s.term(n)),
        answers=_no_answers(s, n),
    )
    success = conjunction(t == s.term(n), s.leader(n) == NO_NODE)
    same_term = conjunction(t == s.term(n), s.leader(n) != NO_NODE)
    inconsistent = conjunction(same_term, s.leader(n) != source)
    guard = conjunction(
        source != n,
        s.heart_beat_sent(source, t),
        s.role(n) != DOWN,
        disjunction(
            success,
            t > s.term(n),
            conjunction(_leads(s, source, t), disjunction(t < s.term(n), inconsistent)),
        ),
    )
    deposed = _become_candidate(s, source, choose(t < s.term(n), s.term(n), t + 1))
    return guard, _either(success, follower, _either(t > s.term(n), _become_candidate(s, n, t), deposed))


def give_up(_scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    gave_away = conjunction(s.voted_for(n) != NO_NODE, s.voted_for(n) != n)
    waiting = conjunction(s.role(n) == CANDIDATE, s.known(n) == s.term(n), gave_away)
    return disjunction(s.role(n) == FOLLOWER, waiting), _become_candidate(s, n, s.term(n) + 1)


def step_down(_scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    return s.role(n) == LEADER, _become_candidate(s, n, s.term(n) + 1)


# Entries


def append_entry(_scope: Scope, s: State, n: Term, message: Term) -> tuple[Term, State]:
    end = s.log_length(n) + 1
    return conjunction(s.role(n) == LEADER, message != NO_OP), _push(_append(s, n, end, message), n, end)


def flush(_scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    guard = conjunction(s.role(n) != DOWN, s.durable(n) < s.log_length(n))
    return guard, replace(s, durable=updated(s.durable, n, s.log_length(n)))


def _follows(s: State, source: Term, n: Term, t: Term) -> Term:
    return conjunction(source != n, s.role(n) == FOLLOWER, s.term(n) == t, s.leader(n) == source)


def _matches(s: State, n: Term, index: Term, entry_term: Term) -> Term:
    found = term_at(lambda i: s.log_term(n, i), index) == entry_term
    return conjunction(index <= s.log_length(n), found)


def handle_push(
    _scope: Scope,
    s: State,
    source: Term,
    n: Term,
    t: Term,
    index: Term,
    before: Term,
    entry_term: Term,
    message: Term,
) -> tuple[Term, State]:
    sent = s.push_sent(source, t, index, before, entry_term, message)
    gap = negation(_matches(s, n, index - 1, before))
    there = _matches(s, n, index, entry_term)
    kept = conjunction(_leads(s, source, t), s.watermark(source, n) < index, index <= s.durable(n))
    guard = conjunction(
        _follows(s, source, n, t),
        sent,
        implies(gap, _leads(s, source, t)),
        implies(conjunction(negation(gap), there), kept),
    )
    acknowledged = replace(
        s,
        watermark=updated(s.watermark, source, n, index),
        reached=updated(s.reached, n, t, maximum(s.reached(n, t), index)),
    )
    taken = replace(
        s,
        log_length=updated(s.log_length, n, index),
        log_term=updated(s.log_term, n, index, entry_term),
        log_message=updated(s.log_message, n, index, message),
        durable=updated(s.durable, n, minimum(s.durable(n), index - 1)),
    )
    return guard, _either(gap, _push(s, source, index - 1), _either(there, acknowledged, taken))


def is_what_a_quorum_has(scope: Scope, s: State, n: Term, index: Term) -> Term:
    """Whether the index is the last one of a leader's log that a quorum keeps, and is not committed yet."""

    def held(i: Term) -> Term:
        return most(scope, lambda p: choose(p == n, s.durable(n), s.watermark(n, p)) >= i)

    return conjunction(
        s.role(n) == LEADER,
        index > s.commit(n),
        index <= s.log_length(n),
        held(index),
        negation(conjunction(index < s.log_length(n), held(index + 1))),
    )


def advance_commit(scope: Scope, s: State, n: Term, index: Term) -> tuple[Term, State]:
    """AdvanceCommit: `index` is CommitIndex, which must be of this term."""
    t, old = s.term(n), s.committed_length
    guard = conjunction(is_what_a_quorum_has(scope, s, n, index), s.log_term(n, index) == t)

    def more(function: Function, value: Function) -> Function:
        return lambda i: choose(conjunction(i > old, i <= index), value(i), function(i))

    after = replace(
        s,
        commit=updated(s.commit, n, index),
        committed_length=maximum(old, index),
        committed_term=more(s.committed_term, lambda i: s.log_term(n, i)),
        committed_message=more(s.committed_message, lambda i: s.log_message(n, i)),
        committed_by=more(s.committed_by, lambda _i: t),
        point=more(s.point, lambda _i: index),
        reached=updated(
            s.reached, n, t, choose(s.durable(n) >= index, maximum(s.reached(n, t), index), s.reached(n, t))
        ),
    )
    return guard, _send_commit(after, n, index)


def handle_commit(
    _scope: Scope, s: State, source: Term, n: Term, t: Term, index: Term, entry_term: Term
) -> tuple[Term, State]:
    guard = conjunction(
        _follows(s, source, n, t),
        s.commit_sent(source, t, index, entry_term),
        index > s.commit(n),
        _matches(s, n, index, entry_term),
    )
    return guard, replace(s, commit=updated(s.commit, n, index))


def repeat(scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    leads, asks = s.role(n) == LEADER, _in_round(scope, s, n)
    again = _push(_send_heart_beats(s, n), n, s.log_length(n))
    again = _either(s.commit(n) == 0, again, _send_commit(again, n, s.commit(n)))
    return disjunction(leads, asks), _either(leads, again, _send_votes(s, n))


# Faults


def crash(_scope: Scope, s: State, n: Term, kept: Term) -> tuple[Term, State]:
    guard = conjunction(s.role(n) != DOWN, s.durable(n) <= kept, kept <= s.log_length(n))
    return guard, replace(
        s,
        role=updated(s.role, n, DOWN),
        leader=updated(s.leader, n, NO_NODE),
        known=updated(s.known, n, s.term(n)),
        answers=_no_answers(s, n),
        watermark=_no_watermark(s, n),
        commit=updated(s.commit, n, 0),
        log_length=updated(s.log_length, n, kept),
        durable=updated(s.durable, n, kept),
    )


def restart(_scope: Scope, s: State, n: Term) -> tuple[Term, State]:
    stands_from = choose(s.voted_for(n) == n, s.term(n) + 1, s.term(n))
    return s.role(n) == DOWN, replace(
        s, role=updated(s.role, n, CANDIDATE), known=updated(s.known, n, stands_from)
    )


# The inductive invariant


def terms_and_counts_are_sane(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(
            NODE,
            lambda n: conjunction(
                s.term(n) >= 1,
                s.known(n) >= s.term(n),
                s.durable(n) >= 0,
                s.durable(n) <= s.log_length(n),
                s.commit(n) >= 0,
                implies(s.role(n) == CANDIDATE, s.leader(n) == NO_NODE),
                implies(s.role(n) == DOWN, s.leader(n) == NO_NODE),
            ),
        ),
        s.committed_length >= 0,
    )


def a_vote_is_not_taken_back(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(NODE, lambda n: s.voted_for(n) == s.vote(n, s.term(n))),
        scope.every(NODE, TERM, lambda n, t: implies(t > s.term(n), s.vote(n, t) == NO_NODE)),
    )


def ballots_are_votes(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(NODE, lambda n: conjunction(s.ballot_term(n) >= 0, s.ballot_term(n) <= s.term(n))),
        scope.every(NODE, NODE, lambda n, p: implies(s.ballot(n, p), s.vote(n, s.ballot_term(n)) == p)),
    )


def a_round_is_of_a_candidate(scope: Scope, s: State) -> Term:
    return scope.every(
        NODE,
        NODE,
        lambda n, p: implies(
            s.answers(n, p) != NO_RESULT,
            s.answers(n, n) == ACCEPT,
            s.role(n) == CANDIDATE,
            s.known(n) == s.term(n),
            s.voted_for(n) == n,
        ),
    )


def _may_stand(s: State, n: Term) -> Term:
    """The node asked for votes in this term and may ask again: it has not led, and has lost nothing since."""
    return conjunction(s.role(n) == CANDIDATE, s.known(n) == s.term(n), s.voted_for(n) == n)


def a_candidate_has_not_led(scope: Scope, s: State) -> Term:
    return scope.every(NODE, lambda n: implies(_may_stand(s, n), s.leader_of(s.term(n)) != n))


def accepted_is_voted(scope: Scope, s: State) -> Term:
    return scope.every(
        NODE,
        NODE,
        lambda n, p: implies(s.answers(n, p) == ACCEPT, s.vote(p, s.term(n)) == n, s.term(p) >= s.term(n)),
    )


def a_leader_was_elected(scope: Scope, s: State) -> Term:
    """A leader was elected by a quorum that includes its own vote.

    The log of its term is not empty, and its last entry has that term.
    """

    def elected(t: Term, n: Term) -> Term:
        return implies(
            s.leader_of(t) == n,
            s.vote(n, t) == n,
            s.term(n) >= t,
            most(scope, lambda p: conjunction(s.vote(p, t) == n, s.term(p) >= t)),
        )

    return conjunction(
        scope.every(TERM, NODE, elected),
        scope.every(TERM, NODE, lambda t, n: implies(s.winner(t, n), s.leader_of(t) == n)),
        scope.every(
            TERM,
            lambda t: conjunction(
                s.canon_length(t) >= 0,
                implies(s.leader_of(t) == NO_NODE, s.canon_length(t) == 0),
                implies(
                    s.leader_of(t) != NO_NODE,
                    s.canon_length(t) >= 1,
                    s.canon_term(t, s.canon_length(t)) == t,
                    disjunction(*(s.leader_of(t) == n for n in scope.values(NODE) or ())),
                ),
            ),
        ),
    )


def a_leader_has_its_terms_log(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(
            NODE,
            lambda n: implies(
                s.role(n) == LEADER,
                s.leader_of(s.term(n)) == n,
                s.leader(n) == n,
                s.log_length(n) == s.canon_length(s.term(n)),
            ),
        ),
        scope.every(
            NODE,
            INDEX,
            lambda n, i: implies(
                conjunction(s.role(n) == LEADER, i <= s.log_length(n)),
                s.log_term(n, i) == s.canon_term(s.term(n), i),
                s.log_message(n, i) == s.canon_message(s.term(n), i),
            ),
            when=lambda n, i: ((s.log_term(n, i),), (s.log_message(n, i),)),
        ),
    )


def a_follower_knows_its_leader(scope: Scope, s: State) -> Term:
    return scope.every(
        NODE,
        lambda n: conjunction(
            implies(s.leader(n) != NO_NODE, s.leader_of(s.term(n)) == s.leader(n)),
            implies(s.role(n) == FOLLOWER, s.leader(n) != NO_NODE, s.leader(n) != n),
        ),
    )


def heart_beats_are_leaders(scope: Scope, s: State) -> Term:
    return scope.every(NODE, TERM, lambda n, t: implies(s.heart_beat_sent(n, t), s.leader_of(t) == n))


def votes_are_asked_for_with_the_log(scope: Scope, s: State) -> Term:
    def honest(n: Term, t: Term, index: Term, end: Term) -> Term:
        same = conjunction(index == s.log_length(n), end == _end_term(s, n))
        return implies(
            s.vote_sent(n, t, index, end),
            s.vote(n, t) == n,
            s.term(n) >= t,
            implies(conjunction(s.term(n) == t, _may_stand(s, n)), same),
        )

    return scope.every(NODE, TERM, LENGTH, TERM, honest)


def entries_stand_in_their_terms_logs(scope: Scope, s: State) -> Term:
    """Every entry of a node is in the log of its term, with all entries before it."""
    return conjunction(
        scope.every(NODE, lambda n: s.log_length(n) >= 0),
        scope.every(
            NODE,
            INDEX,
            lambda n, i: implies(
                i <= s.log_length(n),
                s.log_term(n, i) >= 1,
                s.log_term(n, i) <= s.term(n),
                i <= s.canon_length(s.log_term(n, i)),
                s.canon_term(s.log_term(n, i), i) == s.log_term(n, i),
            ),
        ),
        scope.every(
            NODE,
            INDEX,
            INDEX,
            lambda n, i, j: implies(
                conjunction(j <= i, i <= s.log_length(n)),
                s.log_term(n, j) == s.canon_term(s.log_term(n, i), j),
                s.log_message(n, j) == s.canon_message(s.log_term(n, i), j),
            ),
            when=lambda n, i, j: (
                (s.log_term(n, i), s.log_term(n, j)),
                (s.log_term(n, i), s.log_message(n, j)),
            ),
        ),
    )


def terms_logs_agree(scope: Scope, s: State) -> Term:
    """Every entry of a term's log is in the log of its own term, with all entries before it."""
    return conjunction(
        scope.every(
            TERM,
            INDEX,
            lambda t, i: implies(
                i <= s.canon_length(t),
                s.canon_term(t, i) >= 1,
                s.canon_term(t, i) <= t,
                i <= s.canon_length(s.canon_term(t, i)),
                s.canon_term(s.canon_term(t, i), i) == s.canon_term(t, i),
            ),
        ),
        scope.every(
            TERM,
            INDEX,
            INDEX,
            lambda t, i, j: implies(
                conjunction(j <= i, i <= s.canon_length(t)),
                s.canon_term(t, j) == s.canon_term(s.canon_term(t, i), j),
                s.canon_message(t, j) == s.canon_message(s.canon_term(t, i), j),
                s.canon_term(t, j) <= s.canon_term(t, i),
            ),
            when=lambda t, i, j: (
                (s.canon_term(t, i), s.canon_term(t, j)),
                (s.canon_term(t, i), s.canon_message(t, j)),
            ),
        ),
    )


def pushes_are_of_the_terms_log(scope: Scope, s: State) -> Term:
    def honest(n: Term, t: Term, i: Term, before: Term, entry_term: Term, message: Term) -> Term:
        return implies(
            s.push_sent(n, t, i, before, entry_term, message),
            s.leader_of(t) == n,
            i <= s.canon_length(t),
            entry_term == s.canon_term(t, i),
            message == s.canon_message(t, i),
            before == term_at(lambda k: s.canon_term(t, k), i - 1),
        )

    return scope.every(NODE, TERM, INDEX, TERM, TERM, MESSAGE, honest)


def reached_is_of_the_past(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(
            NODE,
            TERM,
            lambda n, t: conjunction(
                s.reached(n, t) >= 0,
                s.reached(n, t) <= s.canon_length(t),
                implies(s.reached(n, t) > 0, s.term(n) >= t),
            ),
        ),
        scope.every(
            NODE,
            NODE,
            lambda n, p: conjunction(
                s.watermark(n, p) >= 0,
                choose(
                    s.role(n) == LEADER,
                    s.watermark(n, p) <= s.reached(p, s.term(n)),
                    s.watermark(n, p) == 0,
                ),
            ),
        ),
    )


def _choosable(scope: Scope, s: State, u: Term, i: Term) -> Term:
    """An entry of term u that a quorum keeps, or may still come to keep."""
    return conjunction(
        i <= s.canon_length(u),
        s.canon_term(u, i) == u,
        most(scope, lambda p: disjunction(s.reached(p, u) >= i, s.term(p) <= u)),
    )


def _chosen(scope: Scope, s: State, u: Term, i: Term) -> Term:
    return conjunction(
        i >= 1,
        i <= s.canon_length(u),
        s.canon_term(u, i) == u,
        most(scope, lambda p: s.reached(p, u) >= i),
    )


def acknowledged_entries_are_kept(scope: Scope, s: State) -> Term:
    return scope.every(
        NODE,
        TERM,
        INDEX,
        lambda n, u, i: implies(
            conjunction(i <= s.reached(n, u), _choosable(scope, s, u, i)),
            i <= s.durable(n),
            s.log_term(n, i) == u,
        ),
        when=lambda n, u, i: ((s.reached(n, u), s.canon_term(u, i)),),
    )


def later_leaders_have_it(scope: Scope, s: State) -> Term:
    return scope.every(
        TERM,
        TERM,
        INDEX,
        lambda t, u, i: implies(
            conjunction(s.leader_of(t) != NO_NODE, u < t, _choosable(scope, s, u, i)),
            i <= s.canon_length(t),
            s.canon_term(t, i) == u,
        ),
        when=lambda t, u, i: ((s.leader_of(t), s.canon_term(u, i)),),
    )


def accepted_candidates_have_it(scope: Scope, s: State) -> Term:
    """An accepted candidate has the choosable entries that the voter reported to keep."""
    return scope.every(
        NODE,
        NODE,
        TERM,
        INDEX,
        lambda n, p, u, i: implies(
            conjunction(
                s.answers(n, p) == ACCEPT, u < s.term(n), i <= s.reached(p, u), _choosable(scope, s, u, i)
            ),
            i <= s.log_length(n),
            s.log_term(n, i) == u,
        ),
        when=lambda _n, p, u, i: ((s.reached(p, u), s.canon_term(u, i)),),
    )


def committed_was_chosen(scope: Scope, s: State) -> Term:
    return scope.every(
        INDEX,
        lambda i: implies(
            i <= s.committed_length,
            s.committed_by(i) >= 1,
            i <= s.point(i),
            _chosen(scope, s, s.committed_by(i), s.point(i)),
            s.committed_term(i) == s.canon_term(s.committed_by(i), i),
            s.committed_message(i) == s.canon_message(s.committed_by(i), i),
        ),
        when=lambda i: ((s.committed_by(i),), (s.committed_term(i),), (s.committed_message(i),)),
    )


def _holds_what_was_committed(scope: Scope, s: State) -> Term:
    """Up to its commit index, a node's log equals the committed entries."""
    return scope.every(
        NODE,
        INDEX,
        lambda n, i: implies(
            i <= s.commit(n),
            s.log_term(n, i) == s.committed_term(i),
            s.log_message(n, i) == s.committed_message(i),
        ),
    )


def known_commits_were_chosen(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(
            NODE,
            lambda n: implies(
                s.commit(n) > 0,
                s.commit(n) <= s.log_length(n),
                s.commit(n) <= s.committed_length,
                _chosen(scope, s, s.log_term(n, s.commit(n)), s.commit(n)),
            ),
        ),
        _holds_what_was_committed(scope, s),
    )


def sent_commits_were_chosen(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(
            NODE,
            TERM,
            INDEX,
            TERM,
            lambda n, t, i, entry_term: implies(
                s.commit_sent(n, t, i, entry_term),
                s.leader_of(t) == n,
                i <= s.canon_length(t),
                i <= s.committed_length,
                entry_term == s.canon_term(t, i),
                _chosen(scope, s, entry_term, i),
            ),
        ),
        scope.every(
            NODE,
            TERM,
            INDEX,
            TERM,
            INDEX,
            lambda n, t, i, entry_term, j: implies(
                conjunction(s.commit_sent(n, t, i, entry_term), j <= i),
                s.canon_term(t, j) == s.committed_term(j),
                s.canon_message(t, j) == s.committed_message(j),
            ),
            when=lambda n, t, i, entry_term, j: (
                (s.commit_sent(n, t, i, entry_term), s.committed_term(j)),
                (s.commit_sent(n, t, i, entry_term), s.committed_message(j)),
            ),
        ),
    )


CLAUSES: Final = {
    clause.__name__: clause
    for clause in (
        terms_and_counts_are_sane,
        a_vote_is_not_taken_back,
        ballots_are_votes,
        a_round_is_of_a_candidate,
        a_candidate_has_not_led,
        accepted_is_voted,
        a_leader_was_elected,
        a_leader_has_its_terms_log,
        a_follower_knows_its_leader,
        heart_beats_are_leaders,
        votes_are_asked_for_with_the_log,
        entries_stand_in_their_terms_logs,
        terms_logs_agree,
        pushes_are_of_the_terms_log,
        reached_is_of_the_past,
        acknowledged_entries_are_kept,
        later_leaders_have_it,
        accepted_candidates_have_it,
        committed_was_chosen,
        known_commits_were_chosen,
        sent_commits_were_chosen,
    )
}


# Safety, as the module states it


def election_safety(scope: Scope, s: State) -> Term:
    return scope.every(
        TERM, NODE, NODE, lambda t, a, b: implies(conjunction(s.winner(t, a), s.winner(t, b)), a == b)
    )


def leader_append_only(scope: Scope, before: State, _action: str, after: State) -> Term:
    def only_appends(n: Term) -> Term:
        same = scope.every(
            INDEX,
            lambda i: implies(
                i <= before.log_length(n),
                after.log_term(n, i) == before.log_term(n, i),
                after.log_message(n, i) == before.log_message(n, i),
            ),
        )
        return conjunction(before.log_length(n) <= after.log_length(n), same)

    return scope.every(
        NODE,
        lambda n: implies(conjunction(before.role(n) == LEADER, after.role(n) == LEADER), only_appends(n)),
    )


def log_matching(scope: Scope, s: State) -> Term:
    return scope.every(
        NODE,
        NODE,
        INDEX,
        INDEX,
        lambda a, b, i, j: implies(
            conjunction(
                i <= s.log_length(a), i <= s.log_length(b), s.log_term(a, i) == s.log_term(b, i), j <= i
            ),
            s.log_term(a, j) == s.log_term(b, j),
            s.log_message(a, j) == s.log_message(b, j),
        ),
    )


def leader_completeness(scope: Scope, s: State) -> Term:
    return scope.every(
        NODE,
        INDEX,
        lambda n, i: implies(
            conjunction(s.role(n) == LEADER, i <= s.committed_length, s.committed_by(i) < s.term(n)),
            i <= s.log_length(n),
            s.log_term(n, i) == s.committed_term(i),
            s.log_message(n, i) == s.committed_message(i),
        ),
    )


def committed_stable(scope: Scope, s: State) -> Term:
    return conjunction(
        scope.every(
            NODE,
            lambda n: conjunction(s.commit(n) <= s.log_length(n), s.commit(n) <= s.committed_length),
        ),
        _holds_what_was_committed(scope, s),
    )


def vote_once_per_term(scope: Scope, s: State) -> Term:
    return scope.every(
        NODE, NODE, NODE, lambda n, a, b: implies(conjunction(s.ballot(n, a), s.ballot(n, b)), a == b)
    )


def proof(nodes: int) -> Proof:
    """Return the proof for a group of `nodes` nodes."""
    return Proof(
        name=f"Election-{nodes}",
        module="Election",
        state=State,
        initial=initial,
        actions=(
            Action("NextTerm", next_term, (NODE,)),
            Action("RequestVotes", request_votes, (NODE,)),
            Action("HandleVote", handle_vote, (NODE, NODE, TERM, LENGTH, TERM)),
            Action("EndRound", end_round, (NODE, (FLAG, NODE))),
            Action("HandleHeartBeat", handle_heart_beat, (NODE, NODE, TERM)),
            Action("GiveUp", give_up, (NODE,)),
            Action("StepDown", step_down, (NODE,)),
            Action("AppendEntry", append_entry, (NODE, MESSAGE)),
            Action("Flush", flush, (NODE,)),
            Action("HandlePush", handle_push, (NODE, NODE, TERM, INDEX, TERM, TERM, MESSAGE)),
            Action("AdvanceCommit", advance_commit, (NODE, INDEX)),
            Action("HandleCommit", handle_commit, (NODE, NODE, TERM, INDEX, TERM)),
            Action("Repeat", repeat, (NODE,)),
            Action("Crash", crash, (NODE, LENGTH)),
            Action("Restart", restart, (NODE,)),
        ),
        clauses=CLAUSES,
        safety={
            "ElectionSafety": election_safety,
            "LogMatching": log_matching,
            "LeaderCompleteness": leader_completeness,
            "CommittedStable": committed_stable,
            "VoteOncePerTerm": vote_once_per_term,
        },
        step_safety={"LeaderAppendOnly": leader_append_only},
        unbounded=("terms", "entries of the logs", "messages", "crashes"),
        assumptions=(
            f"there are {nodes} nodes",
            "nodes are alike: an action is asked of n0, or of n0 and n1, as no formula names a node",
            "the network loses nothing and delivers to any node: a superset of the module's steps",
            "Calm, Lose, Refuse, Acknowledge and Fail are left out: they change nothing that is asked about",
        ),
        base=Scope({"node": nodes}),
        scope=Scope({"node": nodes, "term": 4, "length": 3, "index": 2, "message": 2}),
    )


PROOFS: Final = (proof(3), proof(5))


# The reference's states in terms of the proof


def from_reference(config: election.Config, state: election.State) -> dict[str, Any]:
    """Return the shape of a reference state, without the auxiliary variables, which depend on its history."""
    nodes = config.nodes

    def node(name: str) -> int:
        return NO_NODE if name == election.NONE else nodes.index(name)

    def message(name: str) -> int:
        return NO_OP if name == election.NO_OP else 1 + config.messages.index(name)

    def facts(kind: str, fact: Callable[[election.Message], tuple[int, ...]]) -> set[tuple[int, ...]]:
        return {(node(m.source), m.term, *fact(m)) for m in state.network if m.kind == kind}

    def push(m: election.Message) -> tuple[int, ...]:
        assert m.entry is not None
        return m.entry_index, m.entry_term, m.entry.term, message(m.entry.message)

    return {
        "role": tuple(map(ROLE.names.index, state.role)),
        "term": state.term,
        "voted_for": tuple(map(node, state.voted_for)),
        "log_length": tuple(map(len, state.log)),
        "log_term": tuple(tuple(entry.term for entry in log) for log in state.log),
        "log_message": tuple(tuple(message(entry.message) for entry in log) for log in state.log),
        "durable": state.durable,
        "leader": tuple(map(node, state.leader)),
        "known": state.known,
        "answers": tuple(tuple(map(RESULT.names.index, answers)) for answers in state.answers),
        "watermark": state.watermark,
        "commit": state.commit,
        "ballot_term": tuple(ballot.term for ballot in state.ballots),
        "ballot": tuple(tuple(p in ballot.candidates for p in nodes) for ballot in state.ballots),
        "winner": {(term, node(name)) for term, name in state.winners},
        "committed_length": len(state.committed),
        "committed_term": tuple(each.entry.term for each in state.committed),
        "committed_message": tuple(message(each.entry.message) for each in state.committed),
        "committed_by": tuple(each.by for each in state.committed),
        "vote_sent": facts("VOTE", lambda m: (m.entry_index, m.entry_term)),
        "heart_beat_sent": facts("HEART_BEAT", lambda _m: ()),
        "push_sent": facts("PUSH", push),
        "commit_sent": facts("COMMIT", lambda m: (m.entry_index, m.entry_term)),
    }
