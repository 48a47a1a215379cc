"""Mutants of a DLedger member: each replaces one rule of its core by a wrong one.

For each mutant of `MUTANTS`, `raft_members` replays behaviours of the model Election on a group. A client at
the ports of a group detects those of `OBSERVED` (`group_run`). `mqproof mutants --layer impl` runs all of
them. Other mutants belong to the simulation: `mqproof mutants --layer simulation`.
"""

from collections.abc import Collection, Iterable
from typing import Any, Final

from msgspec.structs import replace as with_fields

from mqproof.conformance.mutants.mutant import Mutant, by_name, nothing
from mqproof.impl.dledger import ballot_file, rules
from mqproof.impl.dledger.changes import Ballot, Written
from mqproof.impl.dledger.codes import ResponseCode, RoundResult, Vote
from mqproof.impl.dledger.election import Election
from mqproof.impl.dledger.member import Member
from mqproof.impl.dledger.node import Node
from mqproof.impl.dledger.rpc_bodies import Entry, HeartBeatRequest, HeartBeatResponse
from mqproof.impl.dledger.state import State

_vote_result, _round_result = rules.vote_result, rules.round_result
_append, _write = State.append, State.write
_append_of_client, _heart_beat_answered = Node.append, Election.heart_beat_answered


def _vote_for_any_candidate(
    candidate: str, term: int, end: Any, mine: Any, voter_state: tuple[int, str | None, str | None]
) -> Vote:
    my_term, _, leader = voter_state
    return _vote_result(candidate, term, end, mine, (my_term, None, leader))


def _majority_of_answers(results: Collection[Vote], _members: int) -> RoundResult:
    return _round_result(results, len(results))


def _whatever_the_leader(results: Collection[Vote], members: int) -> RoundResult:
    led = Vote.REJECT_ALREADY_HAS_LEADER
    return _round_result([Vote.REJECT_ALREADY_VOTED if one is led else one for one in results], members)


def _durable_when_written(state: State, entry: Entry) -> None:
    state.terms.append(entry.term)
    state.durable = state.terms.end
    state.changes.append(Written(entry))


def _durable_when_appended(state: State, magic: int, body: object) -> int:
    state.durable = _append(state, magic, body)
    return state.durable


def _most_advanced(kept: Iterable[int]) -> int:
    return max(kept)


def _always(*_: object) -> bool:
    return True


def _half(members: int) -> int:
    return members // 2


async def _removed_after_its_timeout(node: Node, body: object) -> tuple[ResponseCode, Entry | None]:
    """Removes the last entry of a leader if no quorum has it when its client stops waiting."""
    code, entry = await _append_of_client(node, body)
    state = node.member.core.state
    if code is ResponseCode.WAIT_QUORUM_ACK_TIMEOUT and entry and entry.index == state.terms.end:
        node._put(lambda _: state.cut(state.terms.end - 1))
    return code, entry


def _with_another_body(state: State, entry: Entry) -> None:
    _write(state, with_fields(entry, body=bytes(len(entry.body))))


def _whatever_its_log(
    candidate: str, term: int, _end: Any, mine: Any, voter_state: tuple[int, str | None, str | None]
) -> Vote:
    return _vote_result(candidate, term, (mine[0], mine[1]), mine, voter_state)


def _term_only(member: Member, ballot: Ballot) -> None:
    ballot_file.write(member._disk, member._ballot_path, Ballot(ballot.term, None))


def _for_ever(election: Election, _now: float) -> None:
    election._stand_at = float("inf")


def _counted_from_the_answer(
    election: Election, request: HeartBeatRequest, response: HeartBeatResponse, now: float
) -> None:
    """Counts the lease of a leader from the time of an answer, not from that of its request."""
    peer = response.local_id
    sent, _ = election._sent.get(peer, (None, 0.0))
    if sent is request:
        election._sent[peer] = request, now
    _heart_beat_answered(election, request, response, now)


_RULES: Final = "mqproof.impl.dledger.rules"
_STATE: Final = "mqproof.impl.dledger.state:State"

MUTANTS: Final = by_name(
    Mutant(
        "votes-again", "a voter accepts every candidate", "SPEC-1",
        f"{_RULES}:vote_result", _vote_for_any_candidate,
    ),
    Mutant(
        "majority-of-those-heard", "a majority of the received answers is enough to lead", "SPEC-1",
        f"{_RULES}:round_result", _majority_of_answers,
    ),
    Mutant(
        "leader-not-waited-for", "a candidate that hears from a leader requests the next term", "SPEC-1",
        f"{_RULES}:round_result", _whatever_the_leader,
    ),
    Mutant(
        "push-answered-before-sync", "a follower's entry counts as durable in the page cache", "SPEC-1",
        f"{_STATE}.write", _durable_when_written,
    ),
    Mutant(
        "own-entry-before-sync", "a leader counts its own entry before it is durable", "SPEC-1",
        f"{_STATE}.append", _durable_when_appended,
    ),
    Mutant(
        "one-copy-committed", "the entries of the most advanced member count as committed", "SPEC-1",
        f"{_RULES}:majority_index", _most_advanced,
    ),
    Mutant(
        "commit-not-learned", "a follower never receives the committed index", "SPEC-1",
        "mqproof.impl.dledger.log_replication:Following._learn_commit", nothing,
    ),
)  # fmt: skip
"""The mutants by name."""

OBSERVED: Final = by_name(
    Mutant(
        "half-is-enough", "half of the members, rounded down, count as a majority of votes", "RAFT-1",
        f"{_RULES}:quorum", _half,
    ),
    Mutant(
        "timed-out-entry-removed", "a leader removes an entry that no quorum confirmed in time", "RAFT-2",
        "mqproof.impl.dledger.node:Node.append", _removed_after_its_timeout,
    ),
    Mutant(
        "another-body-written", "a follower writes an entry with another body", "RAFT-3",
        f"{_STATE}.write", _with_another_body,
    ),
    Mutant(
        "log-of-candidate-ignored", "a voter accepts a candidate with a worse log", "RAFT-4",
        f"{_RULES}:vote_result", _whatever_its_log,
    ),
    Mutant(
        "leader-commits-alone", "an entry is committed when the leader has it", "RAFT-5",
        f"{_RULES}:majority_index", _most_advanced,
    ),
    Mutant(
        "vote-not-written", "a member forgets its vote when it restarts", "RAFT-6",
        "mqproof.impl.dledger.member:Member.persist", _term_only,
    ),
    Mutant(
        "stands-no-more", "a candidate never requests votes", "RAFT-7",
        "mqproof.impl.dledger.election:Election._stand", _for_ever,
    ),
    Mutant(
        "missing-entries-not-sent", "a leader does not go back to the entries that a follower lacks",
        "RAFT-8",
        "mqproof.impl.dledger.log_replication:Leading._parted", nothing,
    ),
    Mutant(
        "lease-from-the-answer", "a leader counts its lease from the answer to its heartbeat", "RAFT-9",
        "mqproof.impl.dledger.election:Election.heart_beat_answered", _counted_from_the_answer,
    ),
    Mutant(
        "voter-does-not-wait", "a follower that hears its leader votes in a later term", "RAFT-9",
        "mqproof.impl.dledger.election:Election._waits_for_another", nothing,
    ),
    Mutant(
        "checksum-not-checked", "a start accepts a ledger entry whose checksum does not match", "SPEC-1",
        "mqproof.impl.dledger.entry_format:is_whole", _always,
    ),
)  # fmt: skip
"""The mutants by name; a client at the ports of the members detects them."""
