"""Which consumer of this process is the member of a group under a client id. There can be only one.

Brokers know a member by its client id. Two consumers under one id count as one member: each would take all
queues of that member, and every message would be delivered twice.
"""

from typing import Final

from mqproof.impl.client.model import ClientError

Identity = tuple[str, str]
"""The name servers and the client id."""


class GroupClaims:
    """The groups that are taken, by identity.

    Its methods may be called from any thread: each is one operation of a dict, which is atomic.
    """

    def __init__(self) -> None:
        self._owners: dict[tuple[Identity, str], object] = {}

    def claim(self, identity: Identity, group: str, owner: object) -> None:
        """Take the group for the owner, which may have it already.

        Raises:
            ClientError: another consumer has it.
        """
        found = self._owners.setdefault((identity, group), owner)
        if found is not owner:
            raise ClientError(
                f"group {group} already has a consumer with client id {identity[1]}: each would receive "
                "every message. Give the second consumer a session, and a client id, of its own"
            )

    def release(self, identity: Identity, group: str) -> None:
        """Let another consumer take the group."""
        self._owners.pop((identity, group), None)


OF_PROCESS: Final = GroupClaims()
"""The claims of all sessions that applications opened in this process."""
