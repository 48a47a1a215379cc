"""Mutants that show when push consumers are the members of a group, used to judge the consumers suite.

Each replaces one rule by a wrong one.
"""

from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.offset_store import Offsets
from mqproof.impl.client.consuming.rebalance import Rebalancer
from mqproof.impl.client.model import MessageQueue

_load, _commit, _queues_of_member = Offsets.load, GroupRequests.commit, Rebalancer._queues_of_member


def _no_effect(*_args: Any) -> None:
    pass


async def _one_behind(offsets: Offsets, queue: MessageQueue) -> int | None:
    known = await _load(offsets, queue)
    return known - 1 if known else known


async def _one_ahead(offsets: Offsets, queue: MessageQueue) -> int | None:
    known = await _load(offsets, queue)
    return known + 1 if known else known


async def _back_too(
    calls: GroupRequests,
    queue: MessageQueue,
    offset: int,
    *,
    only_forward: bool = False,  # noqa: ARG001
) -> None:
    await _commit(calls, queue, offset)


async def nothing_is_no_share(rebalancer: Rebalancer, topic: str) -> set[MessageQueue]:
    """Keeps the queues of a member that should have none."""
    owned = {queue for queue in rebalancer._owner.owned() if queue.topic == topic}
    return await _queues_of_member(rebalancer, topic) or owned


MUTANTS: Final[dict[str, Mutant]] = {
    each.name: each
    for each in (
        Mutant(
            "reset-not-notified", "members are not notified that their offsets were reset", "SPEC-1",
            "mqproof.impl.broker.processors.offset_admin:_notify_members", _no_effect,
        ),
        Mutant(
            "reset-not-obeyed", "a push consumer ignores a reset and continues at its position", "SPEC-1",
            "mqproof.impl.client.consuming.push_consumer:PushConsumer.reset_offsets", _no_effect,
        ),
        Mutant(
            "taken-over-too-low", "a push consumer that takes over a queue reads its last message again",
            "SPEC-1", "mqproof.impl.client.consuming.offset_store:Offsets.load", _one_behind,
        ),
        Mutant(
            "taken-over-too-high", "a push consumer that takes a queue over skips a message", "SPEC-1",
            "mqproof.impl.client.consuming.offset_store:Offsets.load", _one_ahead,
        ),
        Mutant(
            "empty-share-kept", "a member that should have no queue keeps its queues", "SPEC-1",
            "mqproof.impl.client.consuming.rebalance:Rebalancer._queues_of_member", nothing_is_no_share,
        ),
        Mutant(
            "commit-of-slow-member-stored",
            "a member that lost its queue and is behind commits a lower offset than the new owner's",
            "DELIV-5",
            "mqproof.impl.client.consuming.group_requests:GroupRequests.commit", _back_too,
        ),
    )
}  # fmt: skip
"""The mutants by name."""
