"""A broker as a source of metrics: messages and consumers, and the state of the broker itself."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.message_metrics import MESSAGE_METRICS, message_families
from mqproof.impl.broker.services import Services
from mqproof.impl.dledger import state as dledger
from mqproof.impl.metrics.families import Family, Metric, MetricType
from mqproof.impl.remoting.budget_metrics import BUDGET_METRICS, budget_families
from mqproof.impl.replication.config import Role
from mqproof.impl.store.damage import DamageKind, Outcome


def _counter(name: str, meaning: str, *labels: str) -> Metric:
    return Metric(f"mqproof_{name}", MetricType.COUNTER, meaning, labels)


def _gauge(name: str, meaning: str, *labels: str) -> Metric:
    return Metric(f"mqproof_{name}", MetricType.GAUGE, meaning, labels)


ROLE: Final = _gauge("role", "1 for the role of the broker, 0 for the others.", "role")
READ_ONLY: Final = _gauge(
    "store_read_only", "1 if the store accepts no message until a restart, because the disk failed."
)
DISK_FULL: Final = _gauge("disk_full", "1 while messages are refused because the disk is nearly full.")
DISK_USED: Final = _gauge("disk_used_ratio", "Used part of the disk of the store, 0 to 1.")
DAMAGE: Final = _counter(
    "damage_total",
    "Damaged places found in the store, by kind and by what the store did: repaired, skipped or cut.",
    *("kind", "outcome"),
)
SCRUBBED: Final = _counter("scrubbed_records_total", "Records that the scrub compared with their entries.")
SCRUB_PASSES: Final = _counter("scrub_passes_total", "Completed passes of the scrub over the store.")
FAILED_SENDS: Final = _counter("failed_sends_total", "Messages that the store did not accept.")
REFUSED_SENDS: Final = _counter(
    "refused_sends_total",
    "Sends refused by flow control: too many were in progress, or the disk was slow.",
    "reason",
)
REFUSED_PEERS: Final = _counter(
    "refused_peers_total", "Connections refused on the port of slaves or of members.", "port"
)
OPEN_TRANSACTIONS: Final = _gauge("open_transactions", "Half messages without an end.")
SLAVES: Final = _gauge("ha_slaves_connected", "Slaves that are connected to this master.")
IN_SYNC: Final = _gauge(
    "ha_slaves_in_sync", "Connected slaves that are at most haSlaveFallbehindMax bytes behind."
)
BEHIND: Final = _gauge("ha_behind_bytes", "Bytes of the log that the slowest connected slave lacks.")
FOLLOWING: Final = _gauge("ha_following", "1 if this slave follows its master, and their logs agree.")
TERM: Final = _gauge("dledger_term", "Term of the group, as far as this member knows.")
GROUP_ROLE: Final = _gauge("dledger_role", "1 for the role of this member, 0 for the others.", "role")

BROKER_METRICS: Final[Sequence[Metric]] = (
    *MESSAGE_METRICS,
    *BUDGET_METRICS,
    *(
        ROLE,
        READ_ONLY,
        DISK_FULL,
        DISK_USED,
        DAMAGE,
        SCRUBBED,
        SCRUB_PASSES,
        FAILED_SENDS,
        REFUSED_SENDS,
        REFUSED_PEERS,
    ),
    *(OPEN_TRANSACTIONS, SLAVES, IN_SYNC, BEHIND, FOLLOWING, TERM, GROUP_ROLE),
)

_Values = dict[Metric, Mapping[tuple[str, ...], float]]


class BrokerMetrics:
    """The source of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def metrics(self) -> Sequence[Metric]:
        return BROKER_METRICS

    def unready(self) -> str:
        """Return why the broker is not ready.

        A broker whose disk is nearly full still serves consumers, as does a slave without its master. A slave
        that has stopped following for good is not ready.
        """
        if not self._broker.is_ready:
            return "starting or stopping"
        client = self._broker.replicas.client
        return self._broker.store.failure or (client.refused if client is not None else "")

    async def collect(self) -> list[Family]:
        services = self._broker.services
        if services is None:
            return []
        config = services.config
        labels = {"cluster": config.cluster, "node_type": "broker", "node_id": config.name}
        families = await message_families(services, labels)
        families += budget_families(self._broker.budgets, labels)
        values = {**self._store(services), **await self._disk(services), **self._replicas(services)}
        return families + [Family(metric, labels, found) for metric, found in values.items()]

    def _store(self, services: Services) -> _Values:
        store, sends, counts = services.store, services.sends, services.store.damage.counts
        role = services.config.replication.role or Role.ASYNC_MASTER
        return {
            ROLE: _one_of(Role, role),
            READ_ONLY: _flag(bool(store.failure)),
            DISK_FULL: _flag(store.is_disk_full),
            DAMAGE: {
                (kind, outcome): counts.get((kind, outcome), 0) for kind in DamageKind for outcome in Outcome
            },
            SCRUBBED: {(): store.scrub.records},
            SCRUB_PASSES: {(): store.scrub.passes},
            FAILED_SENDS: {(): services.statistics.failed_puts.total},
            REFUSED_SENDS: {("overload",): sends.refused_full, ("slow_disk",): sends.refused_slow},
            OPEN_TRANSACTIONS: {(): services.transactions.open_count},
        }

    async def _disk(self, services: Services) -> _Values:
        """Return the space of the disk, without waiting for it in the event loop."""
        disk, directory = services.runtime.disk, services.store.directory
        with suppress(OSError):  # the log reports errors of the disk
            space = await services.runtime.offload(lambda: disk.space(directory))
            return {DISK_USED: {(): space.used_percent / 100}}
        return {}

    def _replicas(self, services: Services) -> _Values:
        replicas, group = self._broker.replicas, self._broker.group_store
        found: _Values = {}
        if group is not None:
            found[TERM] = {(): group.term}
            found[GROUP_ROLE] = _one_of(dledger.Role, group.node.member.core.state.role)
            found[REFUSED_PEERS] = {("dledger",): group.node.network.refused}
        if replicas.network is not None:
            found[REFUSED_PEERS] = {("ha",): replicas.network.refused}
        if replicas.client is not None:
            found[FOLLOWING] = _flag(replicas.client.is_following)
        if replicas.server is not None:
            found |= self._slaves(services, replicas.server.acks.positions())
        return found

    def _slaves(self, services: Services, positions: tuple[int, ...]) -> _Values:
        end = services.store.log_end
        in_sync = services.config.replication.fall_behind_bytes_max
        return {
            SLAVES: {(): len(positions)},
            IN_SYNC: {(): sum(end - position <= in_sync for position in positions)},
            BEHIND: {(): max((max(0, end - position) for position in positions), default=0)},
        }


def _flag(value: bool) -> Mapping[tuple[str, ...], float]:
    return {(): int(value)}


def _one_of(
    roles: type[Role] | type[dledger.Role], role: Role | dledger.Role
) -> Mapping[tuple[str, ...], float]:
    return {(each.value,): int(each is role) for each in roles}
