"""The members of a DLedger group: find and transfer its leadership.

See docs/reference/protocol/dledger.md, "Leadership".
"""

import asyncio

from mqproof.impl.admin import brokers
from mqproof.impl.admin.admin import Admin, UnreachableError
from mqproof.impl.client.model import ClientError
from mqproof.impl.dledger import wire
from mqproof.impl.dledger.codes import ResponseCode
from mqproof.impl.dledger.config import Peer, parse_peers, purpose_of
from mqproof.impl.dledger.rpc_bodies import Message, MetadataRequest, TransferRequest
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.java_json import BodyError
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.security.peer_network import PeerConfig

_TIMEOUT_S = 5.0
_OURSELVES = "admin"
"""The sender name used in requests to members. It is not the name of any member."""


async def transfer_leadership(
    admin: Admin, broker: Address, to: str, access: PeerConfig | None = None
) -> str:
    """Transfer the leadership of a broker's group to a member. Returns the id of the previous leader.

    `access` names the secret of the group's members, if they have one.

    Raises:
        ConfigError: the secret cannot be read.
        ClientError: the broker is not in a group, the group has no leader, or the transfer failed.
        UnreachableError: no member responded.
    """
    config = await brokers.config(admin, broker)
    try:
        peers = parse_peers(config.get("dLegerPeers", ""))
    except ValueError as error:
        raise ClientError(f"{broker} reports an invalid list of group members: {error}") from None
    if not peers:
        raise ClientError(f"{broker} is not a member of a group")
    group = config.get("dLegerGroup") or config.get("brokerName", "")
    network = admin.runtime.peers(access or PeerConfig(), _OURSELVES, purpose_of(group))
    client = RemotingClient(network)
    try:
        leader = await _leader(client, group, peers)
        if leader.id != to:
            request = TransferRequest(group, leader.id, _OURSELVES, transfer_id=leader.id, transferee_id=to)
            code = (await _ask(client, leader, request)).code
            if code != ResponseCode.SUCCESS:
                raise ClientError(f"{leader} does not transfer its leadership to {to}: {_name(code)}")
        return leader.id
    finally:
        await client.close()


async def _leader(client: RemotingClient, group: str, peers: tuple[Peer, ...]) -> Peer:
    """Return the leader that is named by the member with the latest term."""
    asked = (_ask(client, peer, MetadataRequest(group, peer.id, _OURSELVES)) for peer in peers)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    received = [answer for answer in answers if isinstance(answer, Message)]
    if not received:
        raise UnreachableError(f"no member of {group} answers: {', '.join(map(str, peers))}")
    latest = max(received, key=lambda answer: answer.term)
    leader = next((peer for peer in peers if peer.id == latest.leader_id), None)
    if leader is None:
        raise ClientError(f"group {group} has no leader")
    return leader


async def _ask(client: RemotingClient, peer: Peer, request: Message) -> Message:
    try:
        answer = await client.invoke(peer.address, wire.encode_request(request), _TIMEOUT_S)
        return wire.decode_response(request, answer)
    except RemotingError as error:
        raise UnreachableError(f"{peer.id}: {error}") from None
    except BodyError as error:
        raise ClientError(f"the answer of {peer.id} is invalid: {error}") from None


def _name(code: int) -> str:
    return next((known.name for known in ResponseCode if known == code), f"code {code}")
