"""The addresses in the answers of a name server, replaced by those of the proxy."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import BrokerData, ClusterInfo, TopicRoute
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.runtime.network import Address

MASTER_ID: Final = 0

_ADDRESS: Final = re.compile(rb'"([^"\\]+:\d{1,5})"')


class BrokerPlace(NamedTuple):
    """Where a broker listens. A filter server has the name of its broker, and the id -1."""

    name: str
    broker_id: int
    address: Address


def places_in(code: int, body: bytes) -> list[BrokerPlace]:
    """Return the brokers in a route or in the cluster's information.

    Raises:
        ValueError: the body is not what the request code is answered with.
    """
    if code == RequestCode.GET_BROKER_CLUSTER_INFO:
        cluster = java_json.read(ClusterInfo, body)
        return [place for data in cluster.broker_addr_table.values() for place in _places(data)]
    route = java_json.read(TopicRoute, body)
    places = [place for data in route.broker_datas for place in _places(data)]
    names = {str(place.address): place.name for place in places}
    for broker, servers in route.filter_server_table.items():
        name = names.get(broker, broker)
        places += [BrokerPlace(name, -1, Address.parse(server)) for server in servers or ()]
    return places


def _places(data: BrokerData) -> Iterator[BrokerPlace]:
    for broker_id, text in data.broker_addrs.items():
        yield BrokerPlace(data.broker_name, broker_id, Address.parse(text))


def with_addresses(body: bytes, new: Mapping[str, str]) -> bytes:
    """Return the body with each quoted address replaced, and all other bytes unchanged."""

    def replaced(match: re.Match[bytes]) -> bytes:
        known = new.get(match[1].decode("utf-8", "replace"))
        return match[0] if known is None else f'"{known}"'.encode()

    return _ADDRESS.sub(replaced, body)


def without_a_broker(body: bytes, chance: float) -> bytes | None:
    """Return the route without one of its brokers, chosen by a number in [0, 1); None if it has only one.

    Raises:
        ValueError: the body is not a route.
    """
    route = java_json.read(TopicRoute, body)
    names = sorted({data.broker_name for data in route.broker_datas})
    if len(names) < 2:
        return None
    hidden = names[int(chance * len(names))]
    return java_json.write(
        msgspec.structs.replace(
            route,
            broker_datas=[data for data in route.broker_datas if data.broker_name != hidden],
            queue_datas=[data for data in route.queue_datas if data.broker_name != hidden],
        ),
        standard=True,
    )
