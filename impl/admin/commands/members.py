"""Commands about the members of a DLedger group. mqadmin has none."""

from typing import Annotated

from mqproof.impl.admin import members
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.options import Broker, text
from mqproof.impl.admin.run import WRONG_USE, Site, fail, perform, say
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.security.peer_network import PeerConfig
from mqproof.impl.terminal.options import PeerSecretFile

Member = Annotated[
    str, text("t", "transfereeId", "ID", "The member that takes over the leadership: its dLegerSelfId.")
]


def leadership_transfer(
    site: Site, transferee: Member, broker: Broker = None, peer_secret: PeerSecretFile = None
) -> None:
    """Transfer the leadership of a DLedger group to another member.

    -b is any broker of the group. During the transfer, for a fraction of a second, messages are refused.

    \b
    Example: mqproof admin leadershipTransfer -n 127.0.0.1:9876 -b 127.0.0.1:10911 -t n1
    """
    if broker is None:
        fail("give -b HOST:PORT, a broker of the group", WRONG_USE)

    async def work(admin: Admin) -> None:
        access = PeerConfig(str(peer_secret)) if peer_secret else PeerConfig()
        before = await members.transfer_leadership(admin, broker, transferee, access)
        say(
            f"{transferee} leads, as before" if before == transferee else f"{transferee} leads after {before}"
        )

    try:
        perform(site, work)
    except ConfigError as error:
        fail(str(error), WRONG_USE)
