"""The cluster: its brokers, and the state, configuration and replication of one broker."""

from collections.abc import Mapping

from mqproof.impl.admin import brokers, times
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.brokers import BrokerState
from mqproof.impl.client.model import ClientError
from mqproof.impl.console.page_parts import Cell, Facts, Note, Page, Part, Table, columns, counted, link
from mqproof.impl.console.visit import Visit

_NO_STATUS = (
    "A broker without a status does not answer, or it reports its state only to another account, such as an "
    "administrator's. A broker of 4.9 reports none in its first seconds."
)
_DISK_WARN = 0.75
"""The share of a disk from which a broker begins to delete old files, by default."""


async def cluster(visit: Visit) -> Page:
    """Return every broker that the name server knows."""
    async with visit.admin() as admin:
        states = await brokers.cluster_states(admin)
    rows = [_row(state) for state in states]
    table = Table(
        "Brokers",
        columns(
            "Cluster", "Broker", "Role", "Address", "Version", "#In/s", "#Out/s", "#Messages today", "#Disk"
        ),
        rows,
        "The name server knows no broker. Start one:",
        "mqproof broker --namesrv HOST:PORT --store DIR",
    )
    parts: list[Part] = [table]
    if any(state.status is None for state in states):
        parts.append(Note("warn", _NO_STATUS))
    return Page("Cluster", "/cluster", parts, _summary(states))


async def broker(visit: Visit) -> Page:
    """Return what one broker reports about itself."""
    name, id_ = visit.values.required("name", most=255), visit.values.number("id", 0, 0, 2**31)
    async with visit.admin() as admin:
        state = next((s for s in await brokers.cluster_states(admin) if (s.name, s.id) == (name, id_)), None)
        if state is None:
            raise ClientError(f"the name server knows no broker {name} with id {id_}")
        parts = await _broker_parts(admin, state)
    above = ("/cluster", "Cluster")
    return Page(
        f"Broker {name}",
        "/cluster",
        parts,
        f"{_role(id_)} of cluster {state.cluster}, at {state.address}",
        above,
    )


async def _broker_parts(admin: Admin, state: BrokerState) -> list[Part]:
    parts: list[Part] = [Note("bad", f"{state.address} does not answer, or refuses to report its state.")]
    if state.status is not None:
        parts = [_overview(state.status)]
    try:
        ha = await brokers.ha_status(admin, state.address)
    except ClientError as error:
        parts.append(Note("quiet", f"The state of its replication is not known: {error}"))
    else:
        rows = [
            (
                each.addr,
                f"{each.slave_ack_offset:,}",
                f"{each.diff:,}",
                f"{each.transferred_byte_in_second:,}",
                _yes(each.in_sync),
            )
            for each in ha.ha_connection_info
        ]
        titles = columns("Slave", "#Acknowledged offset", "#Bytes behind", "#Bytes/s", "In sync")
        parts.append(Table("Replication", titles, rows, "No slave is connected to this broker."))
    if state.status is not None:
        parts.append(Facts("All runtime information", sorted(state.status.items()), is_folded=True))
    try:
        config = await brokers.config(admin, state.address)
    except ClientError as error:
        parts.append(Note("quiet", f"Its configuration is not known: {error}"))
    else:
        parts.append(Facts("Configuration", sorted(config.items()), is_folded=True))
    return parts


def _row(state: BrokerState) -> tuple[Cell | str, ...]:
    name = Cell(state.name, href=link("/broker", name=state.name, id=state.id))
    start = (state.cluster, name, _role(state.id), Cell(str(state.address), is_code=True))
    if state.status is None:
        return (*start, Cell("no status", tone="bad"), "–", "–", "–", "–")
    status = state.status
    today = _difference(status, "msgPutTotalTodayNow", "msgPutTotalTodayMorning")
    out = "getTransferedTps" if "getTransferedTps" in status else "getTransferredTps"
    return (
        *start,
        status.get("brokerVersionDesc", "–"),
        _tps(status, "putTps"),
        _tps(status, out),
        today,
        _disk(status),
    )


def _overview(status: Mapping[str, str]) -> Facts:
    oldest = _number(status, "earliestMessageTimeStamp")
    values: list[tuple[str, Cell | str]] = [
        ("Version", status.get("brokerVersionDesc", "–")),
        ("Running for", status.get("runtime", "–").strip("[] ")),
        ("Messages in/s", _tps(status, "putTps")),
        (
            "Messages out/s",
            _tps(status, "getTransferedTps" if "getTransferedTps" in status else "getTransferredTps"),
        ),
        ("Oldest message", times.show(oldest) if oldest and oldest > 0 else "–"),
        ("Commit log", f"{status.get('commitLogMinOffset', '–')} to {status.get('commitLogMaxOffset', '–')}"),
        ("Disk", _disk(status)),
        ("Capacity", status.get("commitLogDirCapacity", "–")),
        ("Waiting sends", status.get("sendThreadPoolQueueSize", "–")),
        ("Waiting pulls", status.get("pullThreadPoolQueueSize", "–")),
        ("Bytes not flushed", status.get("remainHowManyDataToFlush", "–")),
        ("Bytes not dispatched", status.get("dispatchBehindBytes", "–")),
    ]
    return Facts("Overview", values)


def _summary(states: list[BrokerState]) -> str:
    masters = sum(state.id == 0 for state in states)
    silent = sum(state.status is None for state in states)
    clusters = len({state.cluster for state in states})
    nodes = f"{counted(masters, 'master')} and {counted(len(states) - masters, 'slave')}"
    text = f"{nodes} in {counted(clusters, 'cluster')}"
    return f"{text}; without a status: {silent}" if silent else text


def _role(id_: int) -> str:
    return "master" if id_ == 0 else f"slave {id_}"


def _yes(value: bool) -> Cell:
    return Cell("yes", tone="good") if value else Cell("no", tone="warn")


def _tps(status: Mapping[str, str], name: str) -> str:
    """Return the rate of the last ten seconds: the first of three numbers."""
    try:
        return f"{float(status[name].split()[0]):,.1f}"
    except (KeyError, IndexError, ValueError):
        return "–"


def _disk(status: Mapping[str, str]) -> Cell:
    try:
        ratio = float(status["commitLogDiskRatio"])
    except (KeyError, ValueError):
        return Cell("–")
    return Cell(f"{ratio:.0%}", tone="warn" if ratio >= _DISK_WARN else "")


def _number(status: Mapping[str, str], name: str) -> int | None:
    try:
        return int(status[name])
    except (KeyError, ValueError):
        return None


def _difference(status: Mapping[str, str], late: str, early: str) -> str:
    counts = (_number(status, late), _number(status, early))
    return "–" if counts[0] is None or counts[1] is None else f"{counts[0] - counts[1]:,}"
