"""The registration of a filter server. See docs/reference/protocol/filters.md, "Filter servers"."""

from typing import Final

from mqproof.impl.broker.services import Processor, Services
from mqproof.impl.broker.state.filter_servers import FilterServersFullError
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import RegisterFilterServerRequest, RegisterFilterServerResponse
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.network import Address


def register(services: Services, request: Command, channel: Channel) -> Reply:
    """Record a filter server until its connection ends, and report a new one to the name servers."""
    given = headers.read(RegisterFilterServerRequest, request.fields).filter_server_addr
    config = services.config
    if not config.filter_servers:
        remark = "the broker has no filter servers: its filterServerEnable is false"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    try:
        address = str(Address.parse(given))
        changed = services.filter_servers.register(channel, address, upkeep.now_s())
    except (ValueError, FilterServersFullError) as error:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    if changed:
        services.topics.on_change()
    response = RegisterFilterServerResponse(config.name, config.broker_id)
    return request.answer(ResponseCode.SUCCESS, headers.write(response))


PROCESSORS: Final[dict[int, Processor]] = {RequestCode.REGISTER_FILTER_SERVER: register}
