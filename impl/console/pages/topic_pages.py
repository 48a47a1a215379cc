"""The topics: their list, and for each its route, queues, groups, settings, sending, and removal."""

from mqproof.impl.admin import groups, times, topics
from mqproof.impl.admin.admin import Admin, address_of
from mqproof.impl.admin.system_names import TopicKind, topic_kind
from mqproof.impl.admin.tables import permission
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ClientError, RefusalError, Refused, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.console.form_values import FormError
from mqproof.impl.console.page_parts import (
    Cell,
    Field,
    Form,
    Links,
    Page,
    Part,
    Redirect,
    Table,
    columns,
    counted,
    link,
)
from mqproof.impl.console.pages.dashboard_page import topic_chart
from mqproof.impl.console.pages.offset_forms import reset_form
from mqproof.impl.console.paging import Paging
from mqproof.impl.console.visit import Visit
from mqproof.impl.remoting.bodies import PERM_READ, PERM_READ_WRITE, PERM_WRITE, TopicConfig, TopicRoute
from mqproof.impl.remoting.topic_names import NAME_CHARACTERS_MAX
from mqproof.impl.runtime.network import Address

_KINDS = {"all": None, **{kind.value: kind for kind in TopicKind}}
_PERMISSIONS = {"6": PERM_READ_WRITE, "4": PERM_READ, "2": PERM_WRITE}
_PERMISSION_NAMES = (("6", "read and write"), ("4", "read only"), ("2", "write only"))
_BODY_CHARACTERS_MAX = 64 * 1024
_QUEUES_MAX = 1024
SENDER_GROUP = "mqproof_console"


async def topic_list(visit: Visit) -> Page:
    """Return the topics of one kind whose names contain a text."""
    search = visit.values.text("search", most=NAME_CHARACTERS_MAX)
    chosen = visit.values.text("kind", TopicKind.NORMAL.value)
    kind = visit.values.choice("kind", _KINDS, TopicKind.NORMAL.value)
    async with visit.admin() as admin:
        info = await admin.cluster_info()
        names = await topics.topic_names(admin)
    own = frozenset({*info.cluster_addr_table, *info.broker_addr_table})
    kinds = {name: topic_kind(name, own) for name in names}
    found = [n for n in names if kind in (None, kinds[n]) and search.lower() in n.lower()]
    paging = Paging.of(visit.values, len(found))
    rows = [(Cell(name, href=link("/topic", name=name)), kinds[name].value) for name in paging.part(found)]
    counts = [(each, link("/topics", kind=each, search=search)) for each in _KINDS]
    parts: list[Part] = [Links("Kind of topic", counts, chosen), _search_form(search, chosen)]
    hint = f"No topic of this kind contains {search!r}." if search else "There is no topic of this kind yet."
    parts.append(
        Table(
            counted(len(found), "topic"),
            columns("Topic", "Kind"),
            rows,
            hint,
            "mqproof admin updateTopic -c CLUSTER -t Orders",
        )
    )
    parts += paging.links("/topics", kind=chosen, search=search)
    if visit.allows_changes:
        parts.append(_create_form(sorted(info.cluster_addr_table)))
    return Page("Topics", "/topics", parts)


async def topic(visit: Visit) -> Page:
    """Return everything about one topic."""
    name = visit.values.name("name")
    async with visit.admin() as admin:
        route = await admin.route(name)
        parts: list[Part] = [_route(route), *await _queues(admin, name), *await _groups(admin, name)]
    kind = topic_kind(name)
    if kind is TopicKind.NORMAL:
        parts.insert(0, topic_chart(visit.console.sampler.history, name, visit.console.now_s()))
    messages = [("Messages of the last hour", link("/messages", topic=name))]
    if name.startswith(groups.RETRY_PREFIX):
        messages.append(("Its group", link("/consumer", group=name.removeprefix(groups.RETRY_PREFIX))))
    parts.insert(0, Links("Related pages", messages))
    if visit.allows_changes:
        parts += _change_forms(name, route)
    return Page(f"Topic {name}", "/topics", parts, f"{kind.value} topic", ("/topics", "Topics"))


async def save(visit: Visit) -> Redirect:
    """Create a topic at all masters of a cluster, or change it at the brokers that have it."""
    values = visit.values
    name = values.name("name")
    config = TopicConfig(
        name,
        perm=values.choice("permission", _PERMISSIONS, "6"),
        read_queue_nums=values.number("read_queues", 8, 1, _QUEUES_MAX),
        write_queue_nums=values.number("write_queues", 8, 1, _QUEUES_MAX),
    )
    async with visit.admin() as admin:
        cluster = values.text("cluster")
        brokers = await admin.masters(cluster) if cluster else await _masters(admin, name)
        await topics.update_topic(admin, brokers, config)
    where = ", ".join(map(str, brokers))
    return Redirect(link("/topic", name=name), "good", f"Topic {name} is saved at {where}.")


async def send(visit: Visit) -> Redirect:
    """Send one message."""
    values = visit.values
    name, body = values.name("name"), values.lines("body")
    if len(body) > _BODY_CHARACTERS_MAX:
        raise FormError(f"body has {len(body)} characters, at most {_BODY_CHARACTERS_MAX} expected")
    keys, tag = values.text("keys").split(), values.text("tag") or None
    message = new_message(
        name, body.encode(), tag=tag, keys=keys, delay_level=values.number("delay_level", 0, 0, 18)
    )
    async with visit.admin() as admin:
        await admin.route(name)  # otherwise the broker would create a topic whose name has a typing error
        outcome = await Producer(admin.session, ProducerConfig(group=SENDER_GROUP)).send(message)
    if isinstance(outcome, Sent):
        place = f"{outcome.queue} at offset {outcome.queue_offset}"
        text = f"{outcome.status}: {outcome.message_id} is stored in {place}."
        return Redirect(link("/topic", name=name), "good", text)
    sure = "is not stored" if isinstance(outcome, Refused) else "may be stored"
    return Redirect(link("/topic", name=name), "bad", f"The message {sure}: {outcome.remark}")


async def delete(visit: Visit) -> Redirect:
    """Delete a topic at its masters and at the name servers. The form repeats its name."""
    name = visit.values.confirmed_name("name", "topic")
    async with visit.admin() as admin:
        clusters = {broker.cluster for broker in (await admin.route(name)).broker_datas}
        for cluster in sorted(clusters):
            await topics.delete_topic(admin, await admin.masters(cluster), name, cluster)
    return Redirect("/topics", "good", f"Topic {name} is deleted.")


async def _masters(admin: Admin, name: str) -> list[Address]:
    route = await admin.route(name)
    found = [address_of(b.broker_addrs[0]) for b in route.broker_datas if 0 in b.broker_addrs]
    if not found:
        raise ClientError(f"no master of topic {name} is known")
    return found


def _route(route: TopicRoute) -> Table:
    queues = {data.broker_name: data for data in route.queue_datas}
    rows = []
    for broker in sorted(route.broker_datas, key=lambda data: data.broker_name):
        data = queues.get(broker.broker_name)
        addresses = ", ".join(
            f"{'master' if id_ == 0 else f'slave {id_}'} {at}"
            for id_, at in sorted(broker.broker_addrs.items())
        )
        counts = (
            (str(data.read_queue_nums), str(data.write_queue_nums), permission(data.perm))
            if data
            else ("–",) * 3
        )
        href = link("/broker", name=broker.broker_name, id=min(broker.broker_addrs, default=0))
        rows.append((broker.cluster, Cell(broker.broker_name, href=href), addresses, *counts))
    titles = columns("Cluster", "Broker", "Addresses", "#Read queues", "#Write queues", "Permission")
    return Table("Route", titles, rows, "No broker has this topic now.")


async def _queues(admin: Admin, name: str) -> list[Part]:
    titles = columns("Broker", "#Queue", "#First offset", "#End offset", "#Messages", "Last message")
    try:
        found = await topics.topic_stats(admin, name)
    except RefusalError as error:
        return [Table("Queues", titles, [], f"The broker refuses to report the queues: {error}")]
    rows = [
        (
            queue.broker_name,
            str(queue.queue_id),
            f"{e.min_offset:,}",
            f"{e.max_offset:,}",
            f"{e.max_offset - e.min_offset:,}",
            times.show(e.last_update_timestamp) or "–",
        )
        for queue, e in found.items()
    ]
    return [Table("Queues", titles, rows, "The topic has no queue yet; the first message creates them.")]


async def _groups(admin: Admin, name: str) -> list[Part]:
    titles = columns("Group", "#Not consumed", "Members")
    try:
        names = await topics.groups_of(admin, name)
    except RefusalError as error:
        return [Table("Consumer groups", titles, [], f"The broker refuses to report the groups: {error}")]
    rows = []
    for group in names[:100]:
        try:
            behind = f"{(await groups.progress(admin, group, name)).behind:,}"
        except ClientError:
            behind = "–"
        try:
            members = await groups.connection(admin, group)
        except ClientError:
            members = None
        online = (
            Cell(f"{len(members.connection_set)} online", tone="good")
            if members
            else Cell("offline", tone="quiet")
        )
        rows.append((Cell(group, href=link("/consumer", group=group)), behind, online))
    return [
        Table(
            "Consumer groups",
            titles,
            rows,
            "No group consumes this topic. Start one:",
            f"mqproof consume --namesrv HOST:PORT --topic {name} --group G --from-min",
        )
    ]


def _search_form(search: str, kind: str) -> Form:
    fields = [
        Field("search", "Name contains", search, most=NAME_CHARACTERS_MAX),
        Field("kind", "", kind, "hidden"),
    ]
    return Form("Find a topic", "/topics", fields, "Find", "get")


def _queue_fields(read: int, write: int, perm: int) -> list[Field]:
    return [
        Field("read_queues", "Read queues at each broker", str(read), "number", least=1, most=_QUEUES_MAX),
        Field("write_queues", "Write queues at each broker", str(write), "number", least=1, most=_QUEUES_MAX),
        Field("permission", "Permission", str(perm), "select", _PERMISSION_NAMES),
    ]


def _create_form(clusters: list[str]) -> Form:
    fields = [
        Field("name", "Name", is_required=True, most=NAME_CHARACTERS_MAX, hint="Letters, digits, _ - % |"),
        Field("cluster", "Cluster", type="select", options=[(each, each) for each in clusters]),
        *_queue_fields(8, 8, PERM_READ_WRITE),
    ]
    return Form("Create a topic", "/topic/save", fields, "Create", is_folded=True)


def _change_forms(name: str, route: TopicRoute) -> list[Part]:
    data = route.queue_datas[0] if route.queue_datas else None
    read, write = (data.read_queue_nums, data.write_queue_nums) if data else (8, 8)
    perm = data.perm & PERM_READ_WRITE if data else PERM_READ_WRITE
    hidden = Field("name", "", name, "hidden")
    message = [
        hidden,
        Field("tag", "Tag", most=127),
        Field("keys", "Keys", hint="Words by which the message is found, separated by spaces."),
        Field(
            "delay_level",
            "Delay level",
            "0",
            "number",
            least=0,
            most=18,
            hint="0: at once; 1 to 18: 1 s to 2 h.",
        ),
        Field("body", "Body", type="textarea", is_required=True, most=_BODY_CHARACTERS_MAX),
    ]
    warning = "Its messages and the offsets of its groups are lost."
    confirm = Field("confirm", "Name of the topic, to confirm", is_required=True, most=NAME_CHARACTERS_MAX)
    return [
        Form("Send a message", "/topic/send", message, "Send", is_folded=True),
        Form(
            "Change the topic",
            "/topic/save",
            [hidden, *_queue_fields(read, write, perm)],
            "Save",
            is_folded=True,
            note="At every master that has the topic.",
        ),
        reset_form(topic=name),
        Form(
            "Delete the topic",
            "/topic/delete",
            [hidden, confirm],
            "Delete",
            note=warning,
            is_folded=True,
            is_danger=True,
        ),
    ]
