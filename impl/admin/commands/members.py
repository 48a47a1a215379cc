"""Commands about the members of a DLedger group. mqadmin has none."""

from typing import Annotated

from mqproof.impl.admin import members
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.options import Broker, text
from mqproof.impl.admin.run import WRONG_USE, Site, fail, perform, say

Member = Annotated[
    str, text("t", "transfereeId", "ID", "The member that takes over the leadership: its dLegerSelfId.")
]


def leadership_transfer(site: Site, transferee: Member, broker: Broker = None) -> None:
    """Transfer the leadership of a DLedger group to another member.

    -b is any broker of the group. During the transfer, for a fraction of a second, messages are refused.

    \b
    Example: mqproof admin leadershipTransfer -n 127.0.0.1:9876 -b 127.0.0.1:10911 -t n1
    """
    if broker is None:
        fail("give -b HOST:PORT, a broker of the group", WRONG_USE)

    async def work(admin: Admin) -> None:
        before = await members.transfer_leadership(admin, broker, transferee)
        say(
            f"{transferee} leads, as before" if before == transferee else f"{transferee} leads after {before}"
        )

    perform(site, work)
