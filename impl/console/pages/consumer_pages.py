"""The consumer groups: their list, and for each its progress, members, subscriptions, and settings."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from mqproof.impl.admin import groups, times
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.groups import GroupSummary, Progress
from mqproof.impl.admin.system_names import is_system_group
from mqproof.impl.admin.topics import queue_of, topic_names
from mqproof.impl.client.model import ClientError, NoRouteError, RefusalError
from mqproof.impl.console.page_parts import (
    Cell,
    Facts,
    Field,
    Form,
    Links,
    Note,
    Page,
    Part,
    Redirect,
    Table,
    columns,
    counted,
    link,
)
from mqproof.impl.console.pages.offset_forms import reset_form
from mqproof.impl.console.paging import Paging
from mqproof.impl.console.visit import Visit
from mqproof.impl.remoting.bodies import ConsumerConnection, RunningInfo, SubscriptionGroup
from mqproof.impl.remoting.topic_names import NAME_CHARACTERS_MAX
from mqproof.impl.runtime.network import Address

_AT_ONCE: Final = 8
_KINDS: Final = {"applications": False, "system": True}
_RETRIES_MAX: Final = 1000


async def consumer_list(visit: Visit) -> Page:
    """Return the groups whose names contain a text, with their members and progress."""
    search = visit.values.text("search", most=NAME_CHARACTERS_MAX)
    chosen = visit.values.text("kind", "applications")
    is_system = visit.values.choice("kind", _KINDS, "applications")
    async with visit.admin() as admin:
        clusters = sorted((await admin.cluster_info()).cluster_addr_table)
        names = [
            n for n in await _names(admin) if is_system_group(n) is is_system and search.lower() in n.lower()
        ]
        paging = Paging.of(visit.values, len(names))
        rows = await _rows(admin, paging.part(names))
    kinds = [(each, link("/consumers", kind=each, search=search)) for each in _KINDS]
    fields = [
        Field("search", "Name contains", search, most=NAME_CHARACTERS_MAX),
        Field("kind", "", chosen, "hidden"),
    ]
    parts: list[Part] = [
        Links("Kind of group", kinds, chosen),
        Form("Find a group", "/consumers", fields, "Find", "get"),
    ]
    hint = f"No group contains {search!r}." if search else "No group has consumed anything yet. Start one:"
    titles = columns("Group", "#Members", "Kind", "Model", "#Consumed/s", "#Not consumed")
    parts.append(
        Table(
            counted(len(names), "group"),
            titles,
            rows,
            hint,
            "mqproof consume --namesrv HOST:PORT --topic T --group G --from-min",
        )
    )
    parts += paging.links("/consumers", kind=chosen, search=search)
    if visit.allows_changes:
        cluster = Field("cluster", "Cluster", type="select", options=[(each, each) for each in clusters])
        name = Field("group", "Name", is_required=True, most=NAME_CHARACTERS_MAX)
        parts.append(_settings_form("Create a group", [name, cluster], SubscriptionGroup(), "Create"))
    return Page("Consumers", "/consumers", parts)


async def consumer(visit: Visit) -> Page:
    """Return everything about one group."""
    group = visit.values.name("group")
    async with visit.admin() as admin:
        progress = await _progress(admin, group)
        members = await _members(admin, group)
        running: dict[str, RunningInfo] = {}
        with suppress(ClientError):
            running = await groups.running(admin, group)
        settings = await _settings(admin, group)
        has_dead = groups.DEAD_LETTER_PREFIX + group in await topic_names(admin)
    if progress is None and members is None and not settings:
        raise NoRouteError(f"no broker knows group {group}")
    related = [("Messages that failed", link("/topic", name=groups.RETRY_PREFIX + group))]
    if has_dead:
        related.insert(0, ("Dead letters", link("/dead-letters", group=group)))
    parts: list[Part] = [Links("Related pages", related), *_verdict(progress, members)]
    parts += [
        _progress_table(group, progress, _owners(running)),
        _members_table(group, members),
        _subscriptions(members),
    ]
    if settings:
        parts.append(_settings_facts(settings))
    if visit.allows_changes:
        parts += _change_forms(group, next(iter(settings.values()), SubscriptionGroup()))
    return Page(f"Group {group}", "/consumers", parts, _subtitle(members), ("/consumers", "Consumers"))


async def member(visit: Visit) -> Page:
    """Return what one member of a group reads and holds."""
    group, client = visit.values.name("group"), visit.values.required("client", most=255)
    async with visit.admin() as admin:
        info = (await groups.running(admin, group, client)).get(client)
    back = (link("/consumer", group=group), f"Group {group}")
    if info is None:
        text = "This member is not connected, or does not report its state. Some clients never report it."
        return Page(f"Member {client}", "/consumers", [Note("warn", text)], back=back, status=404)
    queues = sorted((queue_of(key), held) for key, held in info.mq_table.items())
    rows = [
        (
            q.topic,
            q.broker_name,
            str(q.queue_id),
            f"{h.commit_offset:,}",
            f"{h.cached_msg_count:,}",
            "yes" if h.locked else "no",
            times.show(h.last_pull_timestamp) or "–",
            times.show(h.last_consume_timestamp) or "–",
        )
        for q, h in queues
    ]
    titles = columns(
        "Topic", "Broker", "#Queue", "#Committed", "#Held", "Locked", "Last pull", "Last consumed"
    )
    paces = [
        (
            topic,
            f"{p.pull_tps:.1f}",
            f"{p.consume_ok_tps:.1f}",
            f"{p.consume_failed_tps:.1f}",
            f"{p.consume_rt:.1f}",
            f"{p.consume_failed_msgs:,}",
        )
        for topic, p in sorted(info.status_table.items())
    ]
    pace_titles = columns(
        "Topic", "#Pulled/s", "#Consumed/s", "#Failed/s", "#ms for each", "#Failed in an hour"
    )
    parts: list[Part] = [
        Table(
            "Queues", titles, rows, "No queue is assigned to this member: there are more members than queues."
        ),
        Table("Pace", pace_titles, paces, "It has reported no rates yet."),
        Facts("Properties", sorted(info.properties.items()), is_folded=True),
    ]
    return Page(f"Member {client}", "/consumers", parts, back=back)


async def save(visit: Visit) -> Redirect:
    """Create a group at all masters of a cluster, or change it at the brokers that have it."""
    values = visit.values
    group, cluster = values.name("group"), values.text("cluster")
    async with visit.admin() as admin:
        known = await _settings(admin, group)
        brokers = await admin.masters(cluster) if cluster else list(known)
        if not brokers:
            raise ClientError(f"no broker has settings of group {group}")
        for broker in brokers:
            changed = msgspec.structs.replace(
                known.get(broker, SubscriptionGroup(group_name=group)),
                consume_enable=values.flag("consume"),
                consume_broadcast_enable=values.flag("broadcast"),
                retry_queue_nums=values.number("retry_queues", 1, 0, 64),
                retry_max_times=values.number("retry_max", 16, -1, _RETRIES_MAX),
            )
            await groups.update_group(admin, [broker], changed)
    return Redirect(
        link("/consumer", group=group), "good", f"Group {group} is saved at {', '.join(map(str, brokers))}."
    )


async def delete(visit: Visit) -> Redirect:
    """Delete a group with its offsets and its retry and dead letter topics. The form repeats its name."""
    group = visit.values.confirmed_name("group", "group")
    async with visit.admin() as admin:
        for cluster in sorted((await admin.cluster_info()).cluster_addr_table):
            brokers = await admin.masters(cluster)
            await groups.delete_group(admin, brokers, group, offsets=True)
            await groups.delete_group_topics(admin, brokers, group, cluster)
    return Redirect("/consumers", "good", f"Group {group} is deleted.")


async def _names(admin: Admin) -> list[str]:
    """Return all groups: those that had members, and those that brokers have settings of."""
    names = set(await groups.active_groups(admin))
    for table in (await _all_settings(admin)).values():
        names.update(table)
    return sorted(names)


async def _all_settings(admin: Admin) -> dict[Address, dict[str, SubscriptionGroup]]:
    """Return the settings at each master that reports them; only administrators may read them."""
    found = {}
    for cluster in sorted((await admin.cluster_info()).cluster_addr_table):
        with suppress(ClientError):
            for broker in await admin.masters(cluster):
                with suppress(ClientError):
                    found[broker] = await groups.settings(admin, broker)
    return found


async def _settings(admin: Admin, group: str) -> dict[Address, SubscriptionGroup]:
    return {at: table[group] for at, table in (await _all_settings(admin)).items() if group in table}


async def _rows(admin: Admin, names: Sequence[str]) -> list[tuple[Cell | str, ...]]:
    found: list[tuple[Cell | str, ...]] = []
    for start in range(0, len(names), _AT_ONCE):
        part = names[start : start + _AT_ONCE]
        found += map(_row, part, await asyncio.gather(*(_summary(admin, name) for name in part)))
    return found


async def _summary(admin: Admin, group: str) -> GroupSummary:
    try:
        return await groups.summary(admin, group)
    except (NoRouteError, RefusalError):
        return GroupSummary(group, None, None)


def _row(group: str, found: GroupSummary) -> tuple[Cell | str, ...]:
    members, progress = found.connection, found.progress
    name = Cell(group, href=link("/consumer", group=group))
    behind = _behind(progress.behind) if progress else Cell("–")
    rate = f"{progress.tps:.1f}" if progress else "–"
    if members is None:
        return (name, Cell("0", tone="quiet"), "–", "–", rate, behind)
    return (
        name,
        str(len(members.connection_set)),
        _kind(members),
        members.message_model.lower(),
        rate,
        behind,
    )


def _kind(members: ConsumerConnection) -> str:
    return {"CONSUME_PASSIVELY": "push", "CONSUME_ACTIVELY": "pull"}.get(
        members.consume_type, members.consume_type.lower()
    )


def _behind(count: int) -> Cell:
    return Cell(f"{count:,}", tone="warn") if count > 1000 else Cell(f"{count:,}")


async def _progress(admin: Admin, group: str) -> Progress | None:
    try:
        return await groups.progress(admin, group)
    except (groups.NoOffsetsError, NoRouteError):
        return None


async def _members(admin: Admin, group: str) -> ConsumerConnection | None:
    try:
        return await groups.connection(admin, group)
    except NoRouteError:
        return None


def _verdict(progress: Progress | None, members: ConsumerConnection | None) -> list[Part]:
    """Return a line about what needs attention."""
    if members is None and progress is not None and progress.behind:
        text = f"No member is connected, and {progress.behind:,} messages wait. Start a consumer."
        return [Note("bad", text)]
    if members is None:
        return [Note("warn", "No member is connected. The progress is that of its last members.")]
    if members.message_model == "BROADCASTING":
        return [Note("quiet", "Every member receives every message. The brokers do not know its offsets.")]
    if progress is not None and not progress.behind:
        return [Note("good", "Every message is consumed.")]
    return []


def _subtitle(members: ConsumerConnection | None) -> str:
    if members is None:
        return "consumer group, offline"
    count = len(members.connection_set)
    model = members.message_model.lower()
    return f"consumer group, {_kind(members)}, {model}, {count} {'member' if count == 1 else 'members'}"


def _owners(running: dict[str, RunningInfo]) -> dict[tuple[str, str, int], str]:
    owners = {}
    for client, info in running.items():
        for key in info.mq_table:
            queue = queue_of(key)
            owners[queue.topic, queue.broker_name, queue.queue_id] = client
    return owners


def _progress_table(group: str, progress: Progress | None, owners: dict[tuple[str, str, int], str]) -> Table:
    rows = []
    for queue, at in progress.queues.items() if progress else ():
        owner = owners.get((queue.topic, queue.broker_name, queue.queue_id), "")
        client = Cell(owner, href=link("/client", group=group, client=owner)) if owner else Cell("–")
        behind = _behind(at.broker_offset - at.consumer_offset)
        topic = Cell(queue.topic, href=link("/topic", name=queue.topic))
        last = times.show(at.last_timestamp) or "–"
        rows.append(
            (
                topic,
                queue.broker_name,
                str(queue.queue_id),
                f"{at.broker_offset:,}",
                f"{at.consumer_offset:,}",
                behind,
                last,
                client,
            )
        )
    titles = columns("Topic", "Broker", "#Queue", "#End", "#Group", "#Behind", "Last consumed", "Member")
    note = f"{progress.tps:.1f} messages a second, {progress.behind:,} not consumed" if progress else ""
    return Table(
        "Progress",
        titles,
        rows,
        "No broker has offsets of this group: it has not consumed anything yet.",
        note=note,
    )


def _members_table(group: str, members: ConsumerConnection | None) -> Table:
    rows = [
        (
            Cell(each.client_id, href=link("/client", group=group, client=each.client_id)),
            Cell(each.client_addr, is_code=True),
            each.language or "–",
            str(each.version),
        )
        for each in (members.connection_set if members else ())
    ]
    return Table(
        "Members", columns("Client", "Address", "Language", "#Version"), rows, "No member is connected."
    )


def _subscriptions(members: ConsumerConnection | None) -> Table:
    rows = [
        (
            Cell(topic, href=link("/topic", name=topic)),
            Cell(each.sub_string or "*", is_code=True),
            each.expression_type or "TAG",
        )
        for topic, each in sorted(members.subscription_table.items() if members else ())
    ]
    return Table(
        "Subscriptions",
        columns("Topic", "Expression", "Type"),
        rows,
        "No member is connected, so that no subscription is known.",
    )


def _settings_facts(settings: dict[Address, SubscriptionGroup]) -> Table:
    rows = [
        (
            str(at),
            *("yes" if each else "no" for each in (s.consume_enable, s.consume_broadcast_enable)),
            str(s.retry_max_times),
            str(s.retry_queue_nums),
        )
        for at, s in sorted(settings.items())
    ]
    return Table(
        "Settings", columns("Broker", "May consume", "May broadcast", "#Retries", "#Retry queues"), rows, ""
    )


def _settings_form(title: str, first: list[Field], now: SubscriptionGroup, submit: str) -> Form:
    fields = [
        *first,
        Field(
            "retry_max",
            "Retries before a dead letter",
            str(now.retry_max_times),
            "number",
            least=-1,
            most=_RETRIES_MAX,
            hint="-1 means as many as the client wants.",
        ),
        Field(
            "retry_queues",
            "Retry queues",
            str(now.retry_queue_nums),
            "number",
            least=0,
            most=64,
            hint="0 drops messages that fail.",
        ),
        Field("consume", "May consume", "yes" if now.consume_enable else "", "checkbox"),
        Field("broadcast", "May broadcast", "yes" if now.consume_broadcast_enable else "", "checkbox"),
    ]
    return Form(title, "/consumer/save", fields, submit, is_folded=True)


def _change_forms(group: str, now: SubscriptionGroup) -> list[Part]:
    hidden = Field("group", "", group, "hidden")
    confirm = Field("confirm", "Name of the group, to confirm", is_required=True, most=NAME_CHARACTERS_MAX)
    note = "Its offsets and its retry and dead letter topics are lost. Stop its members first."
    return [
        reset_form(group=group),
        _settings_form("Change the group", [hidden], now, "Save"),
        Form(
            "Delete the group",
            "/consumer/delete",
            [hidden, confirm],
            "Delete",
            note=note,
            is_folded=True,
            is_danger=True,
        ),
    ]
