"""What is wrong with consumer groups now: messages behind, failures, members that do not agree."""

from dataclasses import dataclass

from mqproof.impl.admin import groups
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.times import now_ms
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting.bodies import RunningInfo


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a group."""

    group: str
    topic: str | None
    """The topic, if it is about one."""
    text: str


async def findings(admin: Admin) -> tuple[int, list[Finding]]:
    """Return the number of groups, and what is wrong with them, sorted by group.

    A group that cannot be examined is a finding too. Raises ClientError when no name server answers.
    """
    names = await groups.active_groups(admin)
    found: list[Finding] = []
    for name in names:
        try:
            found += await _of_group(admin, name)
        except ClientError as error:
            found.append(Finding(name, None, str(error)))
    return len(names), found


async def _of_group(admin: Admin, group: str) -> list[Finding]:
    summary = await groups.summary(admin, group)
    members = await groups.running(admin, group) if summary.connection else {}
    return [*_behind(summary), *_of_members(group, members)]


def _behind(summary: groups.GroupSummary) -> list[Finding]:
    """Return one finding per topic in which messages wait."""
    waiting: dict[str, int] = {}
    consumed_ms: dict[str, int] = {}
    for queue, at in (summary.progress.queues if summary.progress else {}).items():
        if at.broker_offset > at.consumer_offset:
            waiting[queue.topic] = waiting.get(queue.topic, 0) + at.broker_offset - at.consumer_offset
            # The queue whose last consumed message is oldest. Without one, the delay is not known.
            known = consumed_ms.setdefault(queue.topic, at.last_timestamp)
            consumed_ms[queue.topic] = min(known, at.last_timestamp)
    without = "" if summary.connection else ", no member is connected"
    found = []
    for topic, count in sorted(waiting.items()):
        since = consumed_ms[topic]
        age = f", the last consumed one is {(now_ms() - since) / 1000:.0f} s old" if since > 0 else ""
        found.append(Finding(summary.group, topic, f"{count} messages behind{age}{without}"))
    return found


def _of_members(group: str, members: dict[str, RunningInfo]) -> list[Finding]:
    found = []
    wanted = {
        client: sorted((each.topic, each.sub_string or "*") for each in info.subscription_set)
        for client, info in members.items()
    }
    if len({tuple(each) for each in wanted.values()}) > 1:
        found.append(Finding(group, None, f"the members {', '.join(wanted)} have different subscriptions"))
    for client, info in members.items():
        for topic, pace in sorted(info.status_table.items()):
            if pace.consume_failed_msgs > 0:
                failed = f"{pace.consume_failed_msgs} messages failed at {client}"
                found.append(Finding(group, topic, failed))
    return found
