"""The Raft cores of a group as a target for behaviours of Election, without clocks, one step at a time.

In the model a request and its answer are one step, and a member's reaction to answers is another. Therefore
answers are held: answers to votes until the round ends, and answers to pushes until the leader commits. The
result of a leader's own fsync is held until it commits, too. A follower's answer waits for its fsync; the
model repeats the push instead. A core enters a term when it receives it, which is a separate step in the
model. Until that step the old term is shown, and no request may be sent to the member. A member's ledger
contains the entries that its core wrote.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.impl.dledger.changes import Appended, Ballot, Cut, Written
from mqproof.impl.dledger.codes import PushType, ResponseCode, Vote
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.core import Core
from mqproof.impl.dledger.rpc_bodies import (
    NO_OP,
    Entry,
    HeartBeatRequest,
    PushRequest,
    PushResponse,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from mqproof.impl.dledger.state import Role
from mqproof.impl.dledger.terms import Terms

R = TypeVar("R", bound=Request)

_FIRST_TERM: Final = 1
_PUSH_TIMEOUT_MS: Final = 10.0
_NONE: Final = "none"


class _Member:
    """A core with its ledger, its sent messages, and the results it has not received yet."""

    def __init__(self, name: str, nodes: tuple[str, ...]) -> None:
        # Timeouts never fire on their own; the script controls time.
        self._config = GroupConfig(
            "G",
            name,
            nodes,
            give_up_ms=1e12,
            push_timeout_ms=_PUSH_TIMEOUT_MS,
            commit_idle_ms=0,
            batch_entries_max=1,  # a push has one entry in the model
        )
        self.now = 0.0
        self.entries: list[Entry] = []
        self.start(Ballot(_FIRST_TERM, None))
        self.term, self.voted_for = self.core.state.term, self.core.state.voted_for
        """The term and vote as shown: the term changes when the script says so."""
        self.is_down = False
        self.synced = 0
        """The number of durable entries; the core may not know of all of them yet."""
        self.requests: list[Request] = []
        self.answered: list[tuple[Request, Response]] = []
        """Answers to other members that are in transit."""

    def start(self, ballot: Ballot) -> None:
        terms = Terms(entry.term for entry in self.entries)
        self.core = Core(self._config, ballot, terms, random.Random(0), self.now)

    @property
    def is_ahead(self) -> bool:
        """True if the core has entered a term that the script has not entered yet."""
        return self.core.state.term != self.term

    def does(self, call: Callable[[], object]) -> None:
        """Call the core and apply the changes that it requests."""
        call()
        for change in self.core.take_changes():
            match change:
                case Appended(index, term, magic, body):
                    assert isinstance(body, bytes), "the script's messages are bytes"
                    self.entries.append(Entry(magic, 0, index, term, 0, body=body))
                case Written(entry):
                    self.entries.append(entry)
                case Cut(end):
                    del self.entries[end + 1 :]
                    self.synced = min(self.synced, end + 1)
                case _:
                    pass  # a ballot is durable immediately
        if not self.is_ahead:
            self.voted_for = self.core.state.voted_for
        requests, answers = self.core.take_messages(self.entries.__getitem__, self.now)
        self.requests += requests
        self.answered += answers

    def last_request(self, kind: type[R], member: str) -> R | None:
        """Return its last request of this kind to a member; None if there is none."""
        found = (one for one in reversed(self.requests) if isinstance(one, kind) and one.remote_id == member)
        return next(found, None)

    @property
    def round(self) -> Mapping[str, VoteRequest] | None:
        """The vote requests of its current round, by member; None if there is no round."""
        going_on = self.core._election._round
        return going_on.asked if going_on else None

    def watermark(self, member: str) -> int:
        followers = self.core._leading._followers if self.core.state.role is Role.LEADER else {}
        return followers[member].watermark + 1 if member in followers else 0


class SteppedGroup:
    """Drives the cores of a group through a behaviour of Election.

    Names of variables and actions are those of Election.tla. Indexes count from 1 there, from 0 here.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        nodes = bounded("Election", script.configuration).nodes
        self._members = {name: _Member(name, nodes) for name in nodes}
        self._arrived: list[Response] = []
        """Answers to pushes that leaders have received but not processed."""
        self._is_calm = False
        self._answer = ["unsent"] * len(script.initial["answer"])
        self._taken: dict[str, tuple[int, int]] = {}
        """Message to its index in its leader's ledger and the term."""

    def take(self, at: int) -> None:
        step = self._steps[at]
        if step.action not in _ACTIONS:
            raise ImpossibleError(f"the action {step.action} is not supported")
        _ACTIONS[step.action](self, *step.parameters)

    def refuses(self, step: Stimulus) -> bool:
        """Try a disabled action, which must have no effect: for example, deliver an old message again.

        After the Calm action, the model delivers only current messages, so old ones are not tried.
        """
        tried = _REFUSALS.get(step.action)
        if tried is None or (self._is_calm and step.action.startswith("Handle")):
            return False
        return tried(self, *step.parameters) is not False

    def look(self) -> Variables:
        members = self._members.values()
        up = [None if member.is_down else member.core.state for member in members]
        return {
            "role": [str(state.role) if state else "DOWN" for state in up],
            "term": [member.term for member in members],
            "voted_for": [member.voted_for or _NONE for member in members],
            "leader": [(state and state.leader) or _NONE for state in up],
            "known": [
                state.known if state else member.term for state, member in zip(up, members, strict=True)
            ],
            "commit": [state.commit + 1 if state else 0 for state in up],
            "answer": list(self._answer),
            "log": [[_entry(entry) for entry in member.entries] for member in members],
            "durable": [member.synced for member in members],
            "answers": [self._answers(member) for member in members],
            "watermark": [self._watermarks(name, member) for name, member in self._members.items()],
        }

    def close(self) -> None:
        pass

    # Votes

    def _request_votes(self, node: str) -> None:
        member = self._members[node]
        member.now = member.core.deadline()
        member.does(lambda: member.core.tick(member.now))

    def _next_term(self, node: str) -> None:
        """Enter the known later term; a restarted member enters it when its election timeout has passed."""
        member = self._members[node]
        if not member.is_ahead:
            self._tick(member)
        if not member.is_ahead:
            raise ImpossibleError(f"{node} does not know a later term")
        member.term, member.voted_for = member.core.state.term, member.core.state.voted_for

    def _handle_vote(self, source: str, target: str, term: int) -> None:
        """Deliver the vote request. A member that receives a later term ends its round immediately.

        A follower has waited long enough for its leader: the model has no time.
        """
        request, voter = self._last(VoteRequest, source, target, term), self._members[target]
        if voter.core.state.role is Role.FOLLOWER:
            voter.now = voter.core.deadline()
        self._deliver(request)
        self._deliver_answers(
            source, lambda request, response: _is_vote(response) and response.term > request.term
        )

    def _end_round(self, node: str, answering: Sequence[str]) -> None:
        """Deliver the answers and end the round.

        Rejections are delivered first, because a majority of acceptances ends the round. Of two answers from
        one member, the later one is delivered last, as if the other had been lost.
        """
        member, going_on = self._members[node], self._members[node].core._election._round
        votes = {
            response.local_id: (request, response)
            for request, response in self._under_way(node)
            if isinstance(response, VoteResponse) and response.local_id in answering
        }
        for request, response in sorted(votes.values(), key=lambda vote: _is_accepted(vote[1])):
            self._deliver_answer(member, request, response)
        if going_on is not None and member.core._election._round is going_on:
            member.now = member.core.deadline()
            member.does(lambda: member.core.tick(member.now))

    def _give_up(self, node: str) -> None:
        """Let a follower, or a candidate that gave its vote away, time out."""
        self._tick(self._members[node])

    def _step_down(self, node: str) -> None:
        member = self._members[node]
        member.now = member.core._election._gives_up_at()
        member.does(lambda: member.core.tick(member.now))

    def _tick(self, member: _Member) -> None:
        member.now = member.core.deadline()
        member.does(lambda: member.core.tick(member.now))

    # Leaders and followers

    def _handle_heart_beat(self, source: str, target: str, term: int) -> None:
        self._deliver(self._last(HeartBeatRequest, source, target, term))
        self._deliver_answers(source, lambda request, _: isinstance(request, HeartBeatRequest))

    def _handle_push(self, source: str, target: str, term: int, index: int) -> None:
        """Deliver the follower's answer if there is one; otherwise deliver the push as it was first sent.

        The push then has the commit index of that time.
        """
        for _, response in self._under_way(source):
            if _keeps(response, target, index - 1) and response not in self._arrived:
                self._arrived.append(response)
                return
        compare_request = self._members[source].last_request(PushRequest, target)
        compared = (PushType.COMPARE, term, index - 2)
        if (
            compare_request is None
            or (compare_request.type, compare_request.term, compare_request.pre_log_index) != compared
            or self._agrees(compare_request)
        ):
            self._deliver(self._push(source, target, term, index - 1))

    def _agrees(self, compare: PushRequest) -> bool:
        """Deliver a comparison and its answer; return whether the entries agree.

        In the model a push checks whether the previous entry exists. Here a leader that does not know this
        compares first, and steps back if the entry is missing.
        """
        leader, follower = self._members[compare.local_id], self._members[compare.remote_id]
        self._deliver(compare)
        response = next(response for request, response in follower.answered if request is compare)
        self._deliver_answer(leader, compare, response)
        return response.code == ResponseCode.SUCCESS

    def _push(self, source: str, target: str, term: int, index: int) -> PushRequest:
        pushes = (one for one in self._members[source].requests if isinstance(one, PushRequest))
        request = next(
            (one for one in pushes if one.remote_id == target and _carries(one, term, index)), None
        )
        if request is None:
            raise ImpossibleError(f"{source} has not pushed entry {index + 1} to {target}")
        return request

    def _flush(self, node: str) -> None:
        """Flush the ledger. A follower reports it to its leader; a leader processes it when it commits."""
        member = self._members[node]
        member.synced = len(member.entries)
        if member.core.state.role is not Role.LEADER:
            member.does(lambda: member.core.flushed(member.synced - 1))

    def _advance_commit(self, node: str) -> None:
        member = self._members[node]
        if member.core.state.role is not Role.LEADER:
            raise ImpossibleError(f"{node} is not the leader")
        member.does(lambda: member.core.flushed(member.synced - 1))
        self._deliver_answers(node, lambda _, response: response in self._arrived)

    def _handle_commit(self, source: str, target: str, term: int, index: int) -> None:
        """Deliver the commit index.

        A leader sends it when it has nothing else to send, or when it repeats an unanswered request.
        """
        leader = self._members[source]
        if leader.core.state.role is not Role.LEADER or leader.core.state.commit < index - 1:
            raise ImpossibleError(f"{source} has not committed entry {index}")
        leader.now += _PUSH_TIMEOUT_MS
        leader.does(lambda: leader.core.tick(leader.now))
        request = self._last(PushRequest, source, target, term)
        has = {(entry.index, entry.term) for entry in self._members[target].entries}
        if not has.issuperset((entry.index, entry.term) for entry in request.batch_entry):
            raise ImpossibleError(f"{source} also sends an entry to {target}")
        self._deliver(request)

    # Messages

    def _append_entry(self, node: str, message: str) -> None:
        member = self._members[node]
        appended: list[tuple[ResponseCode, int]] = []
        member.does(lambda: appended.append(member.core.append(message.encode(), member.now)))
        code, index = appended[0]
        if code is not ResponseCode.SUCCESS:
            raise DeviationError(f"{node} answered {code}")
        self._taken[message] = (index, member.core.state.term)
        self._answer[self._number(message)] = "waiting"

    def _refuse(self, node: str, message: str) -> None:
        member = self._members[node]
        if member.core.append(message.encode(), member.now)[0] is not ResponseCode.NOT_LEADER:
            raise DeviationError(f"{node} accepted a message although it is not the leader")
        self._answer[self._number(message)] = "NOT_LEADER"

    def _acknowledge(self, node: str, message: str) -> None:
        state, (index, term) = self._members[node].core.state, self._taken[message]
        if (state.role, state.term) != (Role.LEADER, term) or state.commit < index:
            raise DeviationError(f"{message} is not committed by the leader that accepted it")
        self._answer[self._number(message)] = "SUCCESS"

    def _fail(self, message: str) -> None:
        self._answer[self._number(message)] = "unknown"

    def _refuses_entry(self, node: str, message: str) -> bool:
        """Append at a member that does not lead, which must refuse."""
        del message
        member = self._members[node]
        if member.is_down or member.core.state.role is Role.LEADER:
            return False
        if member.core.append(b".", member.now)[0] is not ResponseCode.NOT_LEADER:
            raise DeviationError(f"{node} accepted a message although it is not the leader")
        return True

    def _refuses_acknowledging(self, node: str, message: str) -> bool:
        """Acknowledge a message that is not committed, or belongs to another leader, which must fail."""
        if self._answer[self._number(message)] != "waiting":
            return False
        try:
            self._acknowledge(node, message)
        except DeviationError:
            return True
        raise DeviationError(f"{message} was acknowledged by {node}")

    def _number(self, message: str) -> int:
        return int(message.removeprefix("m")) - 1

    # Faults

    def _crash(self, node: str, kept: int) -> None:
        member = self._members[node]
        if member.is_ahead:
            raise ImpossibleError(f"{node} has entered another term")
        del member.entries[kept:]
        member.synced, member.is_down = kept, True

    def _restart(self, node: str) -> None:
        member = self._members[node]
        member.is_down = False
        member.start(Ballot(member.term, member.voted_for))

    def _calm(self) -> None:
        self._is_calm = True

    def _nothing(self, *_: object) -> None:
        """Do nothing: a lost message does not arrive, and a repeated one is already there."""

    # Helper methods

    def _last(self, kind: type[R], source: str, target: str, term: int) -> R:
        found = self._members[source].last_request(kind, target)
        if found is None or found.term != term:
            raise ImpossibleError(f"{source} has not sent a request to {target} in term {term}")
        return found

    def _deliver(self, request: Request) -> None:
        member = self._members[request.remote_id]
        if member.is_ahead or member.is_down:
            raise ImpossibleError(f"{request.remote_id} is down, or has entered another term")
        member.does(lambda: member.core.handle(request, member.now))

    def _deliver_answer(self, member: _Member, request: Request, response: Response) -> None:
        self._members[response.local_id].answered.remove((request, response))
        member.does(lambda: member.core.answered(request, response, member.now))

    def _deliver_answers(self, node: str, which: Callable[[Request, Response], bool]) -> None:
        for request, response in self._under_way(node):
            if which(request, response):
                self._deliver_answer(self._members[node], request, response)

    def _under_way(self, node: str) -> list[tuple[Request, Response]]:
        """Return the answers in transit to a member, in the order in which they were given."""
        return [
            (request, response)
            for member in self._members.values()
            for request, response in member.answered
            if request.local_id == node
        ]

    def _answers(self, member: _Member) -> list[str]:
        """Return a candidate's own vote, and the answers of its round that are in transit to it."""
        round_requests = member.round
        if round_requests is None or member.is_down:
            return [_NONE] * len(self._members)
        votes = {member.core.config.self_id: str(Vote.ACCEPT)}
        for request, response in self._under_way(member.core.config.self_id):
            if isinstance(response, VoteResponse) and round_requests.get(response.local_id) is request:
                votes[response.local_id] = str(response.vote_result)
        return [votes.get(name, _NONE) for name in self._members]

    def _watermarks(self, name: str, member: _Member) -> list[int]:
        """Return the known progress of each follower, including answers that have arrived at the leader."""
        if member.is_down:
            return [0] * len(self._members)
        reached = {each: member.watermark(each) for each in self._members}
        if member.core.state.role is Role.LEADER:
            for request, response in self._under_way(name):
                if not isinstance(response, PushResponse) or request.term != member.core.state.term:
                    continue
                if response in self._arrived:
                    reached[response.local_id] = max(reached[response.local_id], response.index + 1)
        return list(reached.values())


_ACTIONS: Final[Mapping[str, Any]] = {
    "NextTerm": SteppedGroup._next_term,
    "RequestVotes": SteppedGroup._request_votes,
    "HandleVote": SteppedGroup._handle_vote,
    "EndRound": SteppedGroup._end_round,
    "HandleHeartBeat": SteppedGroup._handle_heart_beat,
    "HandlePush": SteppedGroup._handle_push,
    "Flush": SteppedGroup._flush,
    "AdvanceCommit": SteppedGroup._advance_commit,
    "HandleCommit": SteppedGroup._handle_commit,
    "GiveUp": SteppedGroup._give_up,
    "StepDown": SteppedGroup._step_down,
    "AppendEntry": SteppedGroup._append_entry,
    "Refuse": SteppedGroup._refuse,
    "Acknowledge": SteppedGroup._acknowledge,
    "Fail": SteppedGroup._fail,
    "Crash": SteppedGroup._crash,
    "Restart": SteppedGroup._restart,
    "Repeat": SteppedGroup._nothing,
    "Lose": SteppedGroup._nothing,
    "Calm": SteppedGroup._calm,
}
_REFUSALS: Final[Mapping[str, Any]] = {
    "HandleVote": SteppedGroup._handle_vote,
    "HandleHeartBeat": SteppedGroup._handle_heart_beat,
    "HandlePush": SteppedGroup._handle_push,
    "HandleCommit": SteppedGroup._handle_commit,
    "AdvanceCommit": SteppedGroup._advance_commit,
    "Flush": SteppedGroup._flush,
    "AppendEntry": SteppedGroup._refuses_entry,
    "Acknowledge": SteppedGroup._refuses_acknowledging,
}
"""Functions that try a disabled action; they return False if it could not be tried."""


def _is_vote(response: Response) -> bool:
    return isinstance(response, VoteResponse)


def _is_accepted(response: VoteResponse) -> bool:
    return response.vote_result is Vote.ACCEPT


def _keeps(response: Response, follower: str, index: int) -> bool:
    """Return whether the follower reports that it has the entry."""
    return isinstance(response, PushResponse) and response.local_id == follower and response.index >= index


def _carries(push: PushRequest, term: int, index: int) -> bool:
    return push.term == term and any(entry.index == index for entry in push.batch_entry)


def _entry(entry: Entry) -> dict[str, Any]:
    message = "noop" if entry.magic == NO_OP else entry.body.decode()
    return {"term": entry.term, "message": message}
