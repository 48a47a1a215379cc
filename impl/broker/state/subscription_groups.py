"""The broker's consumer groups: their permissions, and subscriptionGroup.json.

A group that is created automatically has the default settings, so a crash that loses it loses nothing. It
takes effect at once and is written together with the consumer offsets. See docs/reference/protocol/groups.md,
"Subscription groups".
"""

from collections.abc import Iterable
from typing import Final

from mqproof.impl.broker.state.durable_table import DurableTable, read_config
from mqproof.impl.remoting.bodies import SubscriptionGroup, SubscriptionGroups
from mqproof.impl.remoting.budget import NameBudget, Peer, Percentages, shares_of
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store.damage import DamageReport

SYSTEM_PREFIX: Final = "CID_RMQ_SYS_"
SYSTEM_GROUPS: Final = frozenset(
    {
        "TOOLS_CONSUMER",
        "FILTERSRV_CONSUMER",
        "SELF_TEST_C_GROUP",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PULL",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
    }
)
"""The groups that always exist, even when automatic creation is off."""


class SubscriptionGroupTable:
    """All groups, in memory and in subscriptionGroup.json."""

    def __init__(
        self, path: str, runtime: Runtime, *, groups_max: int, percent: Percentages | None = None
    ) -> None:
        self._path = path
        self._disk = runtime.disk
        self._groups_max = groups_max
        self.budget = NameBudget("groups", shares_of(groups_max, percent or Percentages()))
        self._table: DurableTable[SubscriptionGroup] = DurableTable(path, runtime, SubscriptionGroups)

    def load(self, damage: DamageReport | None = None, *, required: bool = False) -> None:
        """Read subscriptionGroup.json, if it exists. If it does not, `persist` writes it.

        Raises:
            StoreError: the file is not a group table, or is required and missing. OSError: it cannot be read.
        """
        stored = read_config(self._disk, self._path, SubscriptionGroups, damage, required=required)
        if stored is not None:
            self._table.load(stored.data_version, stored.subscription_group_table)
        else:
            self._table.write_at_next_persist()

    def __len__(self) -> int:
        return len(self._table)

    def get(self, group: str) -> SubscriptionGroup | None:
        return self._table.get(group)

    def find_or_make(
        self, group: str, *, auto_create: bool, by: Peer | None = None
    ) -> SubscriptionGroup | None:
        """Return the group; create it with the default settings if that is allowed, otherwise return None.

        A new group counts for the peer `by`.

        Raises:
            RefusedError: there are too many groups already, in all or of the peer.
        """
        known = self._table.get(group)
        if known is not None:
            return known
        if not (auto_create or group in SYSTEM_GROUPS or group.startswith(SYSTEM_PREFIX)):
            return None
        self._require_room(1, by)
        made = SubscriptionGroup(group_name=group)
        self._table.add_now({group: made})
        if by is not None:
            self.budget.created(by, [group])
        return made

    async def put(self, group: SubscriptionGroup) -> None:
        """Create or replace a group. Raises as `put_all`."""
        await self.put_all([group])

    async def put_all(self, groups: Iterable[SubscriptionGroup], by: Peer | None = None) -> None:
        """Create or replace groups, in one write. New ones count for the peer `by`.

        Raises:
            RefusedError: there are too many groups already, in all or of the peer.
            OSError: the file cannot be written; nothing has changed then.
        """
        changed = {group.group_name: group for group in groups}
        if changed:
            new = [name for name in changed if self.get(name) is None]
            self._require_room(len(new), by)
            if by is not None:
                self.budget.created(by, new)
            try:
                await self._table.change(changed)
            except OSError:
                self.budget.deleted(new)
                raise

    async def delete(self, group: str) -> None:
        """Delete a group, if it exists. Raises OSError as `put`."""
        if self.get(group) is not None:
            await self._table.change({group: None})
            self.budget.deleted([group])

    def snapshot(self) -> SubscriptionGroups:
        return SubscriptionGroups(self._table.version, self._table.values())

    async def adopt(self, groups: SubscriptionGroups) -> None:
        """Replace the table by a master's, unless it has the same version.

        Raises OSError when the file cannot be written; nothing has changed then.
        """
        if groups.data_version != self._table.version:
            await self._table.replace(groups.data_version, groups.subscription_group_table)

    async def persist(self) -> None:
        """Write the file if a group was created since the last write. Raises OSError when that fails."""
        await self._table.persist()

    def _require_room(self, count: int, by: Peer | None) -> None:
        if count and by is not None and (reason := self.budget.refusal(by, count)) is not None:
            raise RefusedError(ResponseCode.SYSTEM_BUSY, reason)
        if count and len(self._table) + count > self._groups_max:
            raise RefusedError(
                ResponseCode.SYSTEM_BUSY, f"there are {len(self._table)} groups, which is the limit"
            )
