"""Tests requests that go to all name servers.

Source: docs/reference/protocol/administration.md, "Administration commands".
"""

import pytest

from mqproof.impl.admin import name_servers
from mqproof.impl.client.model import RefusalError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import KvRequest
from tests.impl.admin.site import Site, play


def test_write_permission_is_removed_and_restored_at_every_name_server() -> None:
    async def scenario(site: Site) -> None:
        await site.add_broker("b-a", {}, "T", "U")
        assert await name_servers.wipe_write(site.admin, "b-a") == dict.fromkeys(sorted(site.addresses), 2)
        assert (await site.admin.route("T")).queue_datas[0].perm == 4
        assert await name_servers.add_write(site.admin, "b-a") == dict.fromkeys(sorted(site.addresses), 2)
        assert (await site.admin.route("T")).queue_datas[0].perm == 6

    play(scenario)


def test_key_value_pairs_are_stored_and_deleted_at_every_name_server() -> None:
    async def scenario(site: Site) -> None:
        async def codes() -> list[int]:
            header = KvRequest("N", "k")
            return [(await site.ask(each, RequestCode.GET_KV_CONFIG, header)).code for each in site.addresses]

        await name_servers.put_kv(site.admin, "N", "k", "v")
        assert await codes() == [ResponseCode.SUCCESS] * 2
        await name_servers.delete_kv(site.admin, "N", "k")
        assert await codes() == [ResponseCode.QUERY_NOT_FOUND] * 2

    play(scenario)


def test_configurations_are_listed_and_changed_at_every_name_server() -> None:
    async def scenario(site: Site) -> None:
        changed = await name_servers.update_config(site.admin, "orderMessageEnable", "true")
        found = await name_servers.config(site.admin)
        assert changed == list(found) == sorted(site.addresses)
        assert {each["orderMessageEnable"] for each in found.values()} == {"true"}
        with pytest.raises(
            RefusalError, match="NO_PERMISSION: kvConfigPath cannot be changed over the network"
        ):
            await name_servers.update_config(site.admin, "kvConfigPath", "/x")

    play(scenario)
