"""Injected bugs, at least one per contract: CrossHair must find arguments that reveal each of them."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from mqproof.reference import election
from mqproof.reference.proofs.contracts import CONTRACTS, Contract
from mqproof.reference.rules import allocation, offsets
from mqproof.reference.rules.allocation import Queue
from mqproof.reference.rules.offsets import Place


@dataclass(frozen=True, slots=True)
class Bug:
    contract: Contract
    name: str
    function: Callable[..., Any]
    """Replaces the function that the contract is about."""


def _remainder_forgotten(queues: Sequence[Any], ids: Sequence[str], own: str) -> list[Any]:
    each, index = len(queues) // len(ids), ids.index(own)
    return list(queues[index * each : (index + 1) * each])


def _one_card_short(queues: Sequence[Any], ids: Sequence[str], own: str) -> list[Any]:
    return list(queues[ids.index(own) : -1 : len(ids)])


def _all_rooms(queues: Sequence[Queue], ids: Sequence[str], own: str, _rooms: Set[str]) -> list[Queue]:
    return allocation.averagely(queues, ids, own)


def _first_only(configured: Sequence[Any]) -> list[Any]:
    return list(configured[:1])


def _no_way_round(position: int, ring: Sequence[tuple[int, str]]) -> str:
    """After its last node the ring does not continue with the first."""
    return next((each for at, each in ring if at >= position), ring[-1][1])


def _modulo(queues: Sequence[Queue], ids: Sequence[str], own: str) -> list[Queue]:
    """Hash modulo members: a member that leaves moves every member's queues."""
    return [q for q in queues if ids[allocation.ring_position(str(q)) % len(ids)] == own]


def _strangers_are_first(queues: Sequence[Any], ids: Sequence[str], own: str) -> list[Any]:
    """Treats an unknown member as the first, as an index of -1 from find() would in other languages."""
    return list(queues) if own not in ids else []


def _one_more_retry(delay_level: int, reconsume_times: int, reconsume_max: int = 16) -> int | None:
    if delay_level < 0 or reconsume_times > reconsume_max:
        return None
    return min(delay_level or 3 + reconsume_times, 18)


def _off_the_ladder(delay_level: int, reconsume_times: int, reconsume_max: int = 16) -> int | None:
    if delay_level < 0 or reconsume_times >= reconsume_max:
        return None
    return delay_level or min(3 + reconsume_times, 18)


def _counted_from_zero(level: int) -> int:
    ladder = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
    return ladder[level % 18] if level > 0 else 0


def _bytes_for_entries(queue_offset: int) -> Place:
    return offsets.place_in_log(queue_offset, offsets.QUEUE_SEGMENT_ENTRIES * offsets.ENTRY_BYTES)


def _segments_from_one(commit_offset: int, segment_bytes: int = offsets.LOG_SEGMENT_BYTES) -> Place:
    position = (commit_offset - 1) % segment_bytes + 1
    return Place(commit_offset - position, position)


def _no_room_for_the_filler(log_end: int, record_bytes: int) -> int:
    left = (1 << 30) - log_end % (1 << 30)
    return log_end if record_bytes <= left else log_end + left


def _half_is_enough(nodes: int) -> int:
    return (nodes + 1) // 2


def _longer_is_better(_term: int, index: int, _my_term: int, my_index: int) -> bool:
    return index >= my_index


def _highest_match(match: Sequence[int]) -> int:
    return max(match)


def _old_term_counted(match: Sequence[int], _entry_terms: Sequence[int], _term: int) -> int:
    """Commits by counting in an older term (Raft's figure 8)."""
    return election.majority_index(match)


def _slaves_are_written_to(queues: Sequence[str], members: Sequence[frozenset[int]]) -> tuple[bool, ...]:
    return tuple(p == "write" and bool(ids) for p, ids in zip(queues, members, strict=True))


def _brokers_without_queues(
    _queues: Sequence[str], members: Sequence[frozenset[int]]
) -> tuple[frozenset[int], ...]:
    return tuple(members)


def _no_broker_left(route: Set[str], resting: Set[str], strategy: bool) -> frozenset[str]:
    """If all brokers are avoided, no broker is left to send to."""
    return frozenset(route - resting) if strategy else frozenset(route)


def _same_broker_again(candidates: Set[str], _last: str | None) -> frozenset[str]:
    return frozenset(candidates)


def _always_one_on(route: Sequence[str], queue_count: int, counter: int, brokers: Set[str]) -> int:
    """The counter moves first, so that a broker of one queue is skipped."""
    size = len(route) * queue_count
    return next(k for k in range(1, size + 1) if route[(counter + k) % size // queue_count] in brokers)


_BUGS: Final[dict[str, Callable[..., Any]]] = {
    "averagely_is_a_balanced_partition_into_blocks": _remainder_forgotten,
    "averagely_by_circle_is_a_balanced_partition": _one_card_short,
    "by_machine_room_is_a_balanced_partition_of_its_rooms": _all_rooms,
    "by_config_is_what_was_configured": _first_only,
    "owner_is_the_next_node_of_the_ring": _no_way_round,
    "consistent_hash_is_a_partition_and_moves_only_what_must": _modulo,
    "no_other_consumer_gets_a_queue": _strangers_are_first,
    "retries_climb_the_ladder_and_end": _one_more_retry,
    "a_level_that_is_asked_for_is_kept": _off_the_ladder,
    "waits_do_not_shrink": _counted_from_zero,
    "an_entry_is_found_where_it_was_put": _bytes_for_entries,
    "a_byte_of_the_log_has_one_place": _segments_from_one,
    "a_record_and_a_filler_fit_their_segment": _no_room_for_the_filler,
    "two_quorums_meet_and_a_minority_is_not_needed": _half_is_enough,
    "the_better_log_has_the_later_end": _longer_is_better,
    "a_quorum_has_as_much_and_none_has_more": _highest_match,
    "only_an_end_in_the_own_term_is_committed": _old_term_counted,
    "only_what_has_a_master_and_permission_is_written_to": _slaves_are_written_to,
    "a_route_has_the_brokers_of_its_queues": _brokers_without_queues,
    "a_resting_broker_is_left_out_if_there_is_another": _no_broker_left,
    "a_retry_goes_elsewhere_if_it_can": _same_broker_again,
    "the_round_robin_stops_at_the_first_queue_of_a_broker": _always_one_on,
}
"""Maps a contract to the bug that must break it."""

BUGS: Final = tuple(
    Bug(contract, bug.__name__.lstrip("_").replace("_", "-"), bug)
    for contract in CONTRACTS
    if (bug := _BUGS.get(contract.holds.__name__))
)
