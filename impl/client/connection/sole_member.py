"""Whether another process is the member of a group under the same client id. There can be only one.

The claims of `group_claims.py` are those of one process. Two processes with one instance name at one address
have one client id too, for example two copies of a service on one machine.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import ConsumerRequest
from mqproof.impl.runtime.network import Address

_TIMEOUT_S: Final = 3.0


async def require_sole(
    remoting: RemotingClient, brokers: Iterable[Address], group: str, client_id: str
) -> None:
    """Ask the member of this id at each broker whether it is there. Call it before this member joins.

    A member that does not answer is gone: its broker has not noticed yet. Two members that join in the same
    moment do not find each other.

    Raises:
        ClientError: another process answers.
    """
    fields = headers.write(ConsumerRequest(group, client_id, jstack_enable=False))

    async def is_answered(broker: Address) -> bool:
        request = new_request(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
        try:
            answer = await remoting.invoke(broker, request, _TIMEOUT_S)
        except RemotingError:
            return False
        return answer.code == ResponseCode.SUCCESS

    if any(await asyncio.gather(*map(is_answered, sorted(set(brokers))))):
        raise ClientError(
            f"another process is a consumer of group {group} with client id {client_id}: each would receive "
            "every message. Give each process an instance name, or a client id, of its own"
        )
