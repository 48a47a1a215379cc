"""The producers that are connected to brokers."""

from contextlib import suppress

from mqproof.impl.admin import groups, times
from mqproof.impl.admin.admin import Admin
from mqproof.impl.client.model import ClientError
from mqproof.impl.console.page_parts import Cell, Field, Form, Page, Table, columns
from mqproof.impl.console.visit import Visit
from mqproof.impl.remoting.topic_names import NAME_CHARACTERS_MAX

_ROWS_MAX = 500


async def producers(visit: Visit) -> Page:
    """Return all connected producers, or those of one group at the brokers of a topic."""
    group, topic = (visit.values.text(name, most=NAME_CHARACTERS_MAX) for name in ("group", "topic"))
    async with visit.admin() as admin:
        table = await _of_group(admin, group, topic) if group and topic else await _all(admin)
    fields = [
        Field("group", "Producer group", group, is_required=True, most=NAME_CHARACTERS_MAX),
        Field("topic", "Topic", topic, is_required=True, most=NAME_CHARACTERS_MAX),
    ]
    form = Form("Find the producers of a group", "/producers", fields, "Find", "get")
    return Page("Producers", "/producers", [table, form])


async def _of_group(admin: Admin, group: str, topic: str) -> Table:
    found = await groups.producers(admin, group, topic)
    rows = [
        (Cell(each.client_id), Cell(each.client_addr, is_code=True), each.language or "–", str(each.version))
        for each in found
    ]
    empty = f"No producer of group {group} is connected to a broker of topic {topic}."
    return Table(f"Producers of {group}", columns("Client", "Address", "Language", "#Version"), rows, empty)


async def _all(admin: Admin) -> Table:
    rows, refusals = [], []
    for cluster in sorted((await admin.cluster_info()).cluster_addr_table):
        with suppress(ClientError):  # a cluster of slaves only
            for broker in await admin.masters(cluster):
                try:
                    table = await groups.all_producers(admin, broker)
                except ClientError as error:
                    refusals.append(str(error))
                    continue
                for group, members in sorted(table.items()):
                    last = (
                        (
                            group,
                            each.client_id,
                            Cell(each.remote_ip, is_code=True),
                            each.language or "–",
                            str(each.version),
                            times.show(each.last_update_timestamp) or "–",
                        )
                        for each in members
                    )
                    rows += [(str(broker), *each) for each in last]
    empty = "No producer is connected. A producer appears with its first message or heartbeat."
    if refusals:
        empty = f"A broker does not list all producers: name a group and a topic below. ({refusals[0]})"
    note = f"The first {_ROWS_MAX} of {len(rows)}." if len(rows) > _ROWS_MAX else ""
    titles = columns("Broker", "Group", "Client", "Address", "Language", "#Version", "Last heartbeat")
    return Table("Connected producers", titles, rows[:_ROWS_MAX], empty, note=note)
