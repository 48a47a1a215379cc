"""The contracts of the pure functions, as predicates that CrossHair tries to make false.

Each contract is a function of plain arguments that returns True for all arguments that its `pre:` allows. It
calls the function under test through that function's module, so that an injected bug can replace it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise, product
from types import ModuleType
from typing import Any, Final

from mqproof.reference import election, queue_choice, routing
from mqproof.reference.rules import allocation, delay, offsets
from mqproof.reference.rules.allocation import Queue

QUEUES_MAX: Final = 5
CONSUMERS_MAX: Final = 3
PERMISSIONS: Final = ("none", "read", "write")
IDS: Final = ("c0", "c1", "c2", "c3", "c4", "c5", "c6")


@dataclass(frozen=True, slots=True)
class Contract:
    module: ModuleType
    function: str
    """The name of the function under test in that module."""
    holds: Callable[..., bool]
    cases: Callable[[], Iterable[tuple[Any, ...]]]
    """Returns arguments that are all tried, in case CrossHair neither refutes nor confirms the contract."""
    bound: str
    """Which arguments `cases` returns, in words."""

    @property
    def module_name(self) -> str:
        return self.module.__name__.removeprefix("mqproof.reference.")

    @property
    def name(self) -> str:
        return f"{self.module_name}.{self.function}"

    @property
    def statement(self) -> str:
        return self.holds.__name__.replace("_", " ")


# Queue allocation


def _is_partition(shares: list[list[int]], queues: list[int]) -> bool:
    return sorted(queue for share in shares for queue in share) == queues


def _is_balanced(shares: list[list[int]]) -> bool:
    sizes = [len(share) for share in shares]
    return max(sizes) - min(sizes) <= 1


def averagely_is_a_balanced_partition_into_blocks(queues: int, consumers: int) -> bool:
    """Each consumer gets a block of adjacent queues, and the sizes of blocks differ by at most one.

    pre: 0 <= queues <= QUEUES_MAX
    pre: 1 <= consumers <= CONSUMERS_MAX
    post: _
    """
    ids = IDS[:consumers]
    shares = [allocation.averagely(list(range(queues)), ids, each) for each in ids]
    in_order = [queue for share in shares for queue in share]
    return in_order == list(range(queues)) and _is_balanced(shares)


def averagely_by_circle_is_a_balanced_partition(queues: int, consumers: int) -> bool:
    """The queues are dealt to the consumers in turn, like cards.

    pre: 0 <= queues <= QUEUES_MAX
    pre: 1 <= consumers <= CONSUMERS_MAX
    post: _
    """
    ids = IDS[:consumers]
    shares = [allocation.averagely_by_circle(list(range(queues)), ids, each) for each in ids]
    dealt = all(b - a == consumers for share in shares for a, b in pairwise(share))
    return _is_partition(shares, list(range(queues))) and _is_balanced(shares) and dealt


def by_machine_room_is_a_balanced_partition_of_its_rooms(inside: int, outside: int, consumers: int) -> bool:
    """Only the queues of the configured room are shared out, and evenly.

    pre: 0 <= inside <= QUEUES_MAX
    pre: 0 <= outside <= 1
    pre: 1 <= consumers <= 2
    post: _
    """
    brokers = ["r1@a"] * inside + ["r2@b"] * outside
    queues = [Queue("t", broker, number) for number, broker in enumerate(brokers)]
    ids = IDS[:consumers]
    shares = [
        [queue.queue_id for queue in allocation.by_machine_room(queues, ids, each, {"r1"})] for each in ids
    ]
    return _is_partition(shares, list(range(inside))) and _is_balanced(shares)


def by_config_is_what_was_configured(configured: list[int]) -> bool:
    """The result is a copy of the configured list.

    pre: len(configured) <= 3
    post: _
    """
    share = allocation.by_config(configured)
    return share == configured and share is not configured


def owner_is_the_next_node_of_the_ring(position: int, nodes: list[int]) -> bool:
    """A position of the hash ring belongs to the first node at or after it, or else to the first node.

    pre: 1 <= len(nodes) <= 3
    pre: all(a < b for a, b in zip(nodes, nodes[1:]))
    post: _
    """
    ring = [(node, str(number)) for number, node in enumerate(nodes)]
    behind = [number for number, node in enumerate(nodes) if node >= position]
    return allocation.owner(position, ring) == str(behind[0] if behind else 0)


def consistent_hash_is_a_partition_and_moves_only_what_must(queues: int, consumers: int, gone: int) -> bool:
    """When a consumer leaves, the others keep their queues.

    pre: 0 <= queues <= 2
    pre: 2 <= consumers <= 3
    pre: 0 <= gone < consumers
    post: _
    """
    all_queues = [Queue("t", "a", number) for number in range(queues)]
    ids = IDS[:consumers]
    left = [each for each in ids if each != IDS[gone]]
    before = {each: allocation.consistent_hash(all_queues, ids, each) for each in ids}
    after = {each: allocation.consistent_hash(all_queues, left, each) for each in left}
    whole = [sorted(q for share in shares.values() for q in share) for shares in (before, after)]
    return whole == [all_queues, all_queues] and all(set(before[each]) <= set(after[each]) for each in left)


def no_other_consumer_gets_a_queue(queues: int, consumers: int) -> bool:
    """A consumer that is not in the list gets nothing.

    pre: 0 <= queues <= QUEUES_MAX
    pre: 0 <= consumers <= CONSUMERS_MAX
    post: _
    """
    all_queues = [Queue("t", "r1@a", number) for number in range(queues)]
    ids, stranger = IDS[:consumers], "stranger"
    return (
        not allocation.averagely(all_queues, ids, stranger)
        and not allocation.averagely_by_circle(all_queues, ids, stranger)
        and not allocation.by_machine_room(all_queues, ids, stranger, {"r1"})
        and not allocation.consistent_hash(all_queues, ids, stranger)
    )


# Retries


def retries_climb_the_ladder_and_end(retries: int) -> bool:
    """Each retry waits at least as long as the one before it, until the message becomes a dead letter.

    pre: 0 <= retries <= 20
    post: _
    """
    level, following = delay.send_back_level(0, retries), delay.send_back_level(0, retries + 1)
    if retries >= delay.RECONSUME_MAX:
        return level is None
    waits = delay.delay_seconds(level) if level else 0
    return level == min(retries + 3, 18) and waits >= 10 and (following is None or following >= level)


def a_level_that_is_asked_for_is_kept(delay_level: int, retries: int, retries_max: int) -> bool:
    """A positive delay level is used as requested, at most 18; a negative one means a dead letter.

    pre: retries >= 0
    post: _
    """
    level = delay.send_back_level(delay_level, retries, retries_max)
    if delay_level < 0 or retries >= retries_max:
        return level is None
    return level == min(delay_level if delay_level else retries + 3, 18)


def waits_do_not_shrink(level: int) -> bool:
    """A higher delay level never waits less than a lower one.

    post: _
    """
    shorter, longer = delay.delay_seconds(level), delay.delay_seconds(level + 1)
    return shorter <= longer <= 7200 and (shorter > 0) == (level >= 1)


# Offsets


def an_entry_is_found_where_it_was_put(queue_offset: int) -> bool:
    """Converting a queue offset to a place in a consume queue and back returns the queue offset.

    pre: queue_offset >= 0
    post: _
    """
    place = offsets.place_of_entry(queue_offset)
    whole = place.position % 20 == 0 and 0 <= place.position <= 6_000_000 - 20
    return whole and place.segment % 6_000_000 == 0 and offsets.entry_at(place) == queue_offset


def a_byte_of_the_log_has_one_place(commit_offset: int) -> bool:
    """A commit offset is the sum of its segment and its position in the segment.

    pre: commit_offset >= 0
    post: _
    """
    segment, position = offsets.place_in_log(commit_offset)
    return segment + position == commit_offset and 0 <= position < 1 << 30 and segment % (1 << 30) == 0


def a_record_and_a_filler_fit_their_segment(log_end: int, record_bytes: int) -> bool:
    """A record is appended at the end of the log, or at the next segment if it does not fit.

    pre: log_end >= 0
    pre: 91 <= record_bytes <= (1 << 30) - 8
    post: _
    """
    at = offsets.append_offset(log_end, record_bytes)
    position = at % (1 << 30)
    near = at == log_end or (position == 0 and log_end < at < log_end + record_bytes + 8)
    return near and position + record_bytes + 8 <= 1 << 30


# Elections


def two_quorums_meet_and_a_minority_is_not_needed(nodes: int) -> bool:
    """Any two quorums share a node, and a quorum exists while a minority is down.

    pre: nodes >= 1
    post: _
    """
    needed = election.quorum(nodes)
    return 2 * needed > nodes and needed <= nodes - (nodes - 1) // 2


def the_better_log_has_the_later_end(term: int, index: int, my_term: int, my_index: int) -> bool:
    """Logs are compared by the term and then by the index of their last entry.

    pre: term >= 0 and index >= 0
    pre: my_term >= 0 and my_index >= 0
    post: _
    """
    found = election.log_up_to_date(term, index, my_term, my_index)
    return found == ((term, index) >= (my_term, my_index))


def a_quorum_has_as_much_and_none_has_more(a: int, b: int, c: int) -> bool:
    """The majority index is the largest one that a quorum of three nodes has reached.

    pre: min(a, b, c) >= 0
    post: _
    """
    index, needed = election.majority_index((a, b, c)), election.quorum(3)
    as_much, more = [sum(each >= n for each in (a, b, c)) for n in (index, index + 1)]
    return as_much >= needed > more


def only_an_end_in_the_own_term_is_committed(a: int, b: int, c: int, older: int) -> bool:
    """A log of three entries, of which `older` have an older term.

    pre: 0 <= min(a, b, c) and max(a, b, c) <= 3
    pre: 0 <= older <= 3
    post: _
    """
    terms = [1 if index <= older else 2 for index in (1, 2, 3)]
    reached = election.majority_index((a, b, c))
    return election.commit_index((a, b, c), terms, 2) == (reached if reached > older else 0)


# Routes and the choice of a queue


def only_what_has_a_master_and_permission_is_written_to(a: int, b: int, a_has: bool, b_has: bool) -> bool:
    """Tested with two broker names.

    pre: 0 <= a < 3
    pre: 0 <= b < 3
    post: _
    """
    permissions, masters = [PERMISSIONS[a], PERMISSIONS[b]], [a_has, b_has]
    ids = [frozenset({0, 1} if master else {1}) for master in masters]
    found = routing.publishable(permissions, ids)
    return list(found) == [p == "write" and m for p, m in zip(permissions, masters, strict=True)]


def a_route_has_the_brokers_of_its_queues(a: int, b: int, a_has: bool) -> bool:
    """Tested with two broker names, one of which may have lost its master.

    pre: 0 <= a < 3
    pre: 0 <= b < 3
    post: _
    """
    permissions = [PERMISSIONS[a], PERMISSIONS[b]]
    ids = [frozenset({0, 1} if a_has else {1}), frozenset({0})]
    found = routing.route_members(permissions, ids)
    expected = zip(permissions, ids, strict=True)
    return list(found) == [known if p != "none" else frozenset() for p, known in expected]


def a_resting_broker_is_left_out_if_there_is_another(route: int, resting: int, strategy: bool) -> bool:
    """Sets of brokers are numbers here, with one bit per broker.

    pre: 0 <= route < 4
    pre: 0 <= resting < 4
    post: _
    """
    all_brokers, resting_brokers = _brokers(route), _brokers(resting)
    found = queue_choice.eligible(all_brokers, resting_brokers, strategy)
    return found == (
        all_brokers - resting_brokers if strategy and all_brokers - resting_brokers else all_brokers
    )


def a_retry_goes_elsewhere_if_it_can(candidates: int, last: int) -> bool:
    """A retry avoids the last broker, unless there is no other.

    pre: 0 <= candidates < 8
    pre: 0 <= last < 3
    post: _
    """
    before, avoided = _brokers(candidates), "abc"[last]
    found = queue_choice.wanted(before, avoided)
    return found == before if before <= {avoided} else found == before - {avoided}


def the_round_robin_stops_at_the_first_queue_of_a_broker(counter: int, wanted: int) -> bool:
    """Tested with two brokers of two queues each.

    pre: 0 <= counter < 4
    pre: 1 <= wanted < 4
    post: _
    """
    chosen = _brokers(wanted)
    at = queue_choice.passed("ab", 2, counter, chosen)
    names = ["aabb"[(counter + k) % 4] for k in range(4)]
    return 0 <= at < 4 and names[at] in chosen and not chosen & set(names[:at])


def _brokers(bits: int) -> set[str]:
    return {name for number, name in enumerate("abc") if bits >> number & 1}


def _edges(unit: int) -> list[int]:
    """Return numbers near the first multiples of a unit, and near a distant one."""
    return [max(0, near + step) for near in (0, unit, 2 * unit, 1000 * unit) for step in range(-130, 131)]


CONTRACTS: Final = (
    Contract(
        allocation,
        "averagely",
        averagely_is_a_balanced_partition_into_blocks,
        lambda: product(range(65), range(1, 8)),
        "up to 64 queues and 7 consumers",
    ),
    Contract(
        allocation,
        "averagely_by_circle",
        averagely_by_circle_is_a_balanced_partition,
        lambda: product(range(65), range(1, 8)),
        "up to 64 queues and 7 consumers",
    ),
    Contract(
        allocation,
        "by_machine_room",
        by_machine_room_is_a_balanced_partition_of_its_rooms,
        lambda: product(range(33), range(3), range(1, 8)),
        "up to 32 queues in the room, 2 outside, 7 consumers",
    ),
    Contract(
        allocation,
        "by_config",
        by_config_is_what_was_configured,
        lambda: ((list(each),) for size in range(4) for each in product(range(3), repeat=size)),
        "up to 3 queues",
    ),
    Contract(
        allocation,
        "owner",
        owner_is_the_next_node_of_the_ring,
        lambda: (
            (position, [n for n in range(6) if mask >> n & 1])
            for position in range(-1, 8)
            for mask in range(1, 64)
        ),
        "rings of up to 6 nodes",
    ),
    Contract(
        allocation,
        "consistent_hash",
        consistent_hash_is_a_partition_and_moves_only_what_must,
        lambda: ((q, c, gone) for q in (0, 1, 7, 16) for c in range(2, 8) for gone in range(c)),
        "up to 16 queues and 7 consumers, whose positions MD5 gives",
    ),
    Contract(
        allocation,
        "averagely",
        no_other_consumer_gets_a_queue,
        lambda: product(range(9), range(8)),
        "up to 8 queues and 7 consumers",
    ),
    Contract(
        delay,
        "send_back_level",
        retries_climb_the_ladder_and_end,
        lambda: product(range(100)),
        "up to 99 retries",
    ),
    Contract(
        delay,
        "send_back_level",
        a_level_that_is_asked_for_is_kept,
        lambda: product(range(-2, 40), range(20), range(-1, 20)),
        "levels up to 39, up to 19 retries",
    ),
    Contract(
        delay, "delay_seconds", waits_do_not_shrink, lambda: product(range(-20, 100)), "levels up to 99"
    ),
    Contract(
        offsets,
        "place_of_entry",
        an_entry_is_found_where_it_was_put,
        lambda: product(_edges(300_000)),
        "entries about the ends of segments",
    ),
    Contract(
        offsets,
        "place_in_log",
        a_byte_of_the_log_has_one_place,
        lambda: product(_edges(1 << 30)),
        "bytes about the ends of segments",
    ),
    Contract(
        offsets,
        "append_offset",
        a_record_and_a_filler_fit_their_segment,
        lambda: product(_edges(1 << 30), (91, 92, 100, 130, (1 << 30) - 8)),
        "ends of the log about the ends of segments",
    ),
    Contract(
        election,
        "quorum",
        two_quorums_meet_and_a_minority_is_not_needed,
        lambda: product(range(1, 100)),
        "up to 99 nodes",
    ),
    Contract(
        election,
        "log_up_to_date",
        the_better_log_has_the_later_end,
        lambda: product(range(5), repeat=4),
        "terms and indexes up to 4",
    ),
    Contract(
        election,
        "majority_index",
        a_quorum_has_as_much_and_none_has_more,
        lambda: product(range(8), repeat=3),
        "all logs of 3 nodes up to 7 entries",
    ),
    Contract(
        election,
        "commit_index",
        only_an_end_in_the_own_term_is_committed,
        lambda: product(range(4), repeat=4),
        "all logs of 3 nodes up to 3 entries",
    ),
    Contract(
        routing,
        "publishable",
        only_what_has_a_master_and_permission_is_written_to,
        lambda: product(range(3), range(3), (False, True), (False, True)),
        "all of 2 broker names",
    ),
    Contract(
        routing,
        "route_members",
        a_route_has_the_brokers_of_its_queues,
        lambda: product(range(3), range(3), (False, True)),
        "all of 2 broker names",
    ),
    Contract(
        queue_choice,
        "eligible",
        a_resting_broker_is_left_out_if_there_is_another,
        lambda: product(range(8), range(8), (False, True)),
        "all sets of 3 brokers",
    ),
    Contract(
        queue_choice,
        "wanted",
        a_retry_goes_elsewhere_if_it_can,
        lambda: product(range(8), range(3)),
        "all sets of 3 brokers",
    ),
    Contract(
        queue_choice,
        "passed",
        the_round_robin_stops_at_the_first_queue_of_a_broker,
        lambda: product(range(40), range(1, 4)),
        "all sets of 2 brokers, from 40 places",
    ),
)
