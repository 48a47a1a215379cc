"""The Raft cores of a group as a target for behaviours of Election: no clocks, each step taken when it is
asked for.

In the model a request and its answer are one step, and what a member makes of answers another. So answers are
held back: those to votes until their round ends, those to pushes, and what a leader's own fsync says, until
it commits. A follower's answer waits for its fsync; in the model it is pushed to again. A member's ledger is
what its core had it write.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeVar

from conformance.behaviours.corpus import Script, Stimulus, Variables, configuration
from conformance.behaviours.target import DeviationError, ImpossibleError
from impl.dledger.changes import Appended, Ballot, Cut, Written
from impl.dledger.codes import Vote
from impl.dledger.config import GroupConfig
from impl.dledger.core import Core
from impl.dledger.messages import (
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
from impl.dledger.state import Role
from impl.dledger.terms import Terms
from reference.equiv import constants
from reference.models import MODELS

R = TypeVar("R", bound=Request)

_FIRST_TERM: Final = 1
_PUSH_TIMEOUT_MS: Final = 10.0
_NONE: Final = "none"
_REFUSED: Final = ("HandleVote", "HandleHeartBeat", "HandlePush", "HandleCommit", "AdvanceCommit", "Flush")


@cache
def _nodes() -> tuple[str, ...]:
    config = MODELS["Election"].from_constants(constants(configuration("Election")))
    names: tuple[str, ...] = config.nodes
    return names


class _Member:
    """A core with its ledger, and what it has said and not yet been told."""

    def __init__(self, name: str) -> None:
        # Nobody loses patience by himself: time is what the script says.
        config = GroupConfig(
            "G", name, _nodes(), give_up_ms=1e12, push_timeout_ms=_PUSH_TIMEOUT_MS, commit_idle_ms=0
        )
        self.now = 0.0
        self.core = Core(config, Ballot(_FIRST_TERM, None), Terms(), random.Random(0), self.now)
        self.entries: list[Entry] = []
        self.synced = 0
        """So many entries are durable; the core may not have been told yet."""
        self.asked: list[Request] = []
        self.answered: list[tuple[Request, Response]] = []
        """Answers to others that are under way."""

    def does(self, call: Callable[[], object]) -> None:
        """Call the core, and carry out what it wants."""
        call()
        for change in self.core.take_changes():
            match change:
                case Appended(index, term, magic):
                    self.entries.append(Entry(magic, 0, index, term, 0))
                case Written(entry):
                    self.entries.append(entry)
                case Cut(end):
                    del self.entries[end + 1 :]
                    self.synced = min(self.synced, end + 1)
                case _:
                    pass  # a ballot is durable at once
        requests, answers = self.core.take_messages(self.entries.__getitem__, self.now)
        self.asked += requests
        self.answered += answers

    def last_asked(self, kind: type[R], member: str) -> R | None:
        """Its last request of this kind to a member."""
        found = (one for one in reversed(self.asked) if isinstance(one, kind) and one.remote_id == member)
        return next(found, None)

    @property
    def round(self) -> Mapping[str, VoteRequest] | None:
        """Whom it has asked for votes, if a round goes on."""
        going_on = self.core._election._round
        return going_on.asked if going_on else None

    def watermark(self, member: str) -> int:
        followers = self.core._leading._followers if self.core.state.role is Role.LEADER else {}
        return followers[member].watermark + 1 if member in followers else 0


class SteppedGroup:
    """Names of variables and actions are those of Election.tla. Indexes count from 1 there, from 0 here."""

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._members = {name: _Member(name) for name in _nodes()}
        self._arrived: list[Response] = []
        """Answers to pushes that leaders have, and have not looked at."""

    def take(self, at: int) -> None:
        step = self._steps[at]
        _ACTIONS[step.action](self, *step.parameters)

    def refuses(self, step: Stimulus) -> bool:
        """What arrived before may arrive again, and nothing comes of it."""
        if step.action not in _REFUSED:
            return False
        before = self.look()
        try:
            _ACTIONS[step.action](self, *step.parameters)
        except ImpossibleError:
            return False
        if self.look() != before:
            raise DeviationError(f"{step.action}{step.parameters} is disabled, and changed something")
        return True

    def look(self) -> Variables:
        members = self._members.values()
        states = [member.core.state for member in members]
        return {
            "role": [str(state.role) for state in states],
            "term": [state.term for state in states],
            "voted_for": [state.voted_for or _NONE for state in states],
            "leader": [state.leader or _NONE for state in states],
            "known": [state.known for state in states],
            "commit": [state.commit + 1 for state in states],
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

    def _handle_vote(self, source: str, target: str, term: int) -> None:
        self._deliver(self._last(VoteRequest, source, target, term))

    def _end_round(self, node: str, heard: Sequence[str]) -> None:
        """Who says no is heard first: a majority that says yes ends the round. Of two answers the later one
        counts, as if the other had been lost."""
        member, going_on = self._members[node], self._members[node].core._election._round
        votes = {
            response.local_id: (request, response)
            for request, response in self._under_way(node)
            if isinstance(response, VoteResponse) and response.local_id in heard
        }
        for request, response in sorted(votes.values(), key=lambda vote: _says_yes(vote[1])):
            self._tell(member, request, response)
        if going_on is not None and member.core._election._round is going_on:
            member.now = member.core.deadline()
            member.does(lambda: member.core.tick(member.now))

    # Leaders and followers

    def _handle_heart_beat(self, source: str, target: str, term: int) -> None:
        self._deliver(self._last(HeartBeatRequest, source, target, term))
        self._tell_all(source, lambda request, _: isinstance(request, HeartBeatRequest))

    def _handle_push(self, source: str, target: str, term: int, index: int) -> None:
        """The follower's answer, if it has given one; else the push as it first left, with what was committed
        by then."""
        for _, response in self._under_way(source):
            if _keeps(response, target, index - 1) and response not in self._arrived:
                self._arrived.append(response)
                return
        pushes = (one for one in self._members[source].asked if isinstance(one, PushRequest))
        request = next(
            (one for one in pushes if one.remote_id == target and _carries(one, term, index - 1)), None
        )
        if request is None:
            raise ImpossibleError(f"{source} has not pushed entry {index} to {target}")
        self._deliver(request)

    def _flush(self, node: str) -> None:
        """A follower tells its leader; a leader looks at it when it commits."""
        member = self._members[node]
        member.synced = len(member.entries)
        if member.core.state.role is not Role.LEADER:
            member.does(lambda: member.core.flushed(member.synced - 1))

    def _advance_commit(self, node: str) -> None:
        member = self._members[node]
        if member.core.state.role is not Role.LEADER:
            raise ImpossibleError(f"{node} does not lead")
        member.does(lambda: member.core.flushed(member.synced - 1))
        self._tell_all(node, lambda _, response: response in self._arrived)

    def _handle_commit(self, source: str, target: str, term: int, index: int) -> None:
        """A leader tells it when it has nothing else to say, or says again what was not answered."""
        leader = self._members[source]
        if leader.core.state.role is not Role.LEADER or leader.core.state.commit < index - 1:
            raise ImpossibleError(f"{source} has not committed entry {index}")
        leader.now += _PUSH_TIMEOUT_MS
        leader.does(lambda: leader.core.tick(leader.now))
        self._deliver(self._last(PushRequest, source, target, term))

    # Parts

    def _last(self, kind: type[R], source: str, target: str, term: int) -> R:
        found = self._members[source].last_asked(kind, target)
        if found is None or found.term != term:
            raise ImpossibleError(f"{source} has not asked {target} in term {term}")
        return found

    def _deliver(self, request: Request) -> None:
        member = self._members[request.remote_id]
        member.does(lambda: member.core.handle(request, member.now))

    def _tell(self, member: _Member, request: Request, response: Response) -> None:
        self._members[response.local_id].answered.remove((request, response))
        member.does(lambda: member.core.answered(request, response, member.now))

    def _tell_all(self, node: str, which: Callable[[Request, Response], bool]) -> None:
        for request, response in self._under_way(node):
            if which(request, response):
                self._tell(self._members[node], request, response)

    def _under_way(self, node: str) -> list[tuple[Request, Response]]:
        """The answers to a member, in the order in which they were given."""
        return [
            (request, response)
            for member in self._members.values()
            for request, response in member.answered
            if request.local_id == node
        ]

    def _answers(self, member: _Member) -> list[str]:
        """A candidate's own vote, and the answers of its round that are under way to it."""
        asked = member.round
        if asked is None:
            return [_NONE] * len(self._members)
        votes = {member.core.config.self_id: str(Vote.ACCEPT)}
        for request, response in self._under_way(member.core.config.self_id):
            if isinstance(response, VoteResponse) and asked.get(response.local_id) is request:
                votes[response.local_id] = str(response.vote_result)
        return [votes.get(name, _NONE) for name in self._members]

    def _watermarks(self, name: str, member: _Member) -> list[int]:
        """How far each follower is known to be, or will be when its answer has come."""
        reached = {each: member.watermark(each) for each in self._members}
        if member.core.state.role is Role.LEADER:
            for _, response in self._under_way(name):
                if isinstance(response, PushResponse) and response in self._arrived:
                    reached[response.local_id] = max(reached[response.local_id], response.index + 1)
        return list(reached.values())


_ACTIONS: Final[Mapping[str, Any]] = {
    "RequestVotes": SteppedGroup._request_votes,
    "HandleVote": SteppedGroup._handle_vote,
    "EndRound": SteppedGroup._end_round,
    "HandleHeartBeat": SteppedGroup._handle_heart_beat,
    "HandlePush": SteppedGroup._handle_push,
    "Flush": SteppedGroup._flush,
    "AdvanceCommit": SteppedGroup._advance_commit,
    "HandleCommit": SteppedGroup._handle_commit,
}
"""Those that the smoke model takes: it has one term, no messages and no crashes."""


def _says_yes(response: VoteResponse) -> bool:
    return response.vote_result is Vote.ACCEPT


def _keeps(response: Response, follower: str, index: int) -> bool:
    """The follower says that it has the entry."""
    return isinstance(response, PushResponse) and response.local_id == follower and response.index >= index


def _carries(push: PushRequest, term: int, index: int) -> bool:
    return push.term == term and any(entry.index == index for entry in push.batch_entry)


def _entry(entry: Entry) -> dict[str, Any]:
    assert entry.magic == NO_OP, f"entry {entry.index} is of nobody"
    return {"term": entry.term, "message": "noop"}
