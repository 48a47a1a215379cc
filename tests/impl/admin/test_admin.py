"""Tests which servers an administrator asks, and the handling of invalid answers.

Source: docs/reference/protocol/administration.md, "Administration commands".
"""

import pytest

from mqproof.impl.admin import brokers
from mqproof.impl.admin.admin import Admin, UnreachableError
from mqproof.impl.client.model import ClientError, NoRouteError, RefusalError
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.address_server import AddressServer
from mqproof.impl.remoting.bodies import ClusterInfo
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import KvRequest, KvResponse, PutKvRequest, UnregisterBrokerRequest
from mqproof.impl.runtime.network import Address
from tests.impl.admin.site import OK, Site, play


def test_a_change_is_sent_to_every_name_server() -> None:
    async def scenario(site: Site) -> None:
        answers = await site.admin.ask_all_name_servers(
            RequestCode.PUT_KV_CONFIG, PutKvRequest("N", "k", "v")
        )
        assert set(answers) == set(site.addresses)
        for address in site.addresses:
            found = await site.ask(address, RequestCode.GET_KV_CONFIG, KvRequest("N", "k"))
            assert headers.read(KvResponse, found.fields).value == "v"

    play(scenario)


def test_a_change_that_one_name_server_does_not_receive_is_an_error() -> None:
    async def scenario(site: Site) -> None:
        await site.name_servers[1].stop()
        with pytest.raises(UnreachableError, match="PUT_KV_CONFIG"):
            await site.admin.ask_all_name_servers(RequestCode.PUT_KV_CONFIG, PutKvRequest("N", "k", "v"))
        assert await site.admin.cluster_info() == ClusterInfo({}, {})  # one name server is enough to ask

    play(scenario)


def test_a_refusal_names_the_server_the_request_and_the_reason() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker("b-a", {})
        with pytest.raises(
            RefusalError, match=r"10.0.0.1:\d+ refuses GET_BROKER_CONFIG: .*: by rote"
        ) as failed:
            await site.admin.ask(broker.address, RequestCode.GET_BROKER_CONFIG)
        assert failed.value.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    play(scenario)


def test_an_unreachable_server_is_another_error_than_a_refusal() -> None:
    async def scenario(site: Site) -> None:
        nowhere = Address("10.9.9.9", 1)
        with pytest.raises(UnreachableError, match="no server listens"):
            await site.admin.ask(nowhere, RequestCode.GET_BROKER_CONFIG)
        with pytest.raises(UnreachableError, match="no server listens"):
            await Admin([nowhere], site.runtime).cluster_info()
        no_name_server = Admin(AddressServer(nowhere, "/"), site.runtime)
        with pytest.raises(UnreachableError, match="no name server is known"):
            await no_name_server.ask_all_name_servers(RequestCode.PUT_KV_CONFIG, PutKvRequest("N", "k", "v"))

    play(scenario)


def test_a_cluster_without_masters_is_an_error_that_names_the_known_clusters() -> None:
    async def scenario(site: Site) -> None:
        master = await site.add_broker("b-a", {})
        await site.add_broker("b-s", {}, id_=1, cluster="slaves")
        assert await site.admin.masters("C") == [master.address]
        for cluster in ("D", "slaves"):
            with pytest.raises(
                ClientError, match=f"no master in cluster {cluster}; the clusters are: C, slaves"
            ):
                await site.admin.masters(cluster)

    play(scenario)


def test_topic_requests_go_to_its_brokers_and_to_a_slave_where_the_master_is_down() -> None:
    async def scenario(site: Site) -> None:
        with pytest.raises(NoRouteError, match="no topic T"):
            await site.admin.masters_of("T")
        master = await site.add_broker("b-a", {})
        await site.add_broker("b-b", {}, "other")
        slave = await site.add_broker("b-a", {}, id_=1)
        assert await site.admin.masters_of("T") == {"b-a": master.address}
        for address in site.addresses:
            gone = UnregisterBrokerRequest("b-a", str(master.address), "C", 0)
            await site.ask(address, RequestCode.UNREGISTER_BROKER, gone)
        assert await site.admin.masters_of("T") == {"b-a": slave.address}

    play(scenario)


def test_an_invalid_answer_is_an_error() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker("b-a", {RequestCode.GET_BROKER_RUNTIME_INFO: OK})
        with pytest.raises(ClientError, match="is invalid"):
            await brokers.status(site.admin, broker.address)

    play(scenario)
