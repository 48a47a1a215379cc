"""Tests the accounts of a name server, which are off by default, and the log of refused requests.

Source: docs/reference/protocol/access-control.md, "Permissions".
"""

import asyncio

import pytest

from mqproof.impl.access.acl_file import AclFile
from mqproof.impl.access.gate import Gate
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import PROCESSORS, NameServer
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import PutKvRequest
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.disk import SECRET_MODE, write_durably
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from tests.impl.namesrv.world import World as Names
from tests.impl.namesrv.world import play
from tests.impl.world import World

ADMIN = Credentials("the-admin", "87654321")
ACCOUNTS = """
accounts:
- {accessKey: the-admin, secretKey: '87654321', admin: true}
- {accessKey: orders-app, secretKey: '12345678', defaultTopicPerm: ANY, defaultGroupPerm: ANY}
"""
GUARDED = NameServerConfig(port=0, kv_path="/names/kvConfig.json", acl_enabled=True)
REFUSED = ResponseCode.SYSTEM_ERROR


def disk_with(text: str = ACCOUNTS) -> SimulatedDisk:
    disk = SimulatedDisk()
    write_durably(disk, "/names/plain_acl.yml", text.encode(), SECRET_MODE)
    return disk


@pytest.mark.parametrize("account", [None, ("orders-app", "12345678"), ("the-admin", "no-secret")])
def test_only_administrators_can_change_a_name_server_with_accounts(
    account: tuple[str, str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    put = PutKvRequest("n", "k", "v")

    async def scenario(names: Names) -> list[int]:
        names.client.credentials = ADMIN
        assert (await names.register()).code == ResponseCode.SUCCESS
        names.client.credentials = Credentials(*account) if account else None
        answers = [await names.register("U"), await names.ask(RequestCode.PUT_KV_CONFIG, put)]
        return [*(answer.code for answer in answers), await names.route_code()]

    assert play(scenario, GUARDED, disk_with()) == [REFUSED, REFUSED, ResponseCode.SUCCESS]
    assert "refused REGISTER_BROKER of 127.0.0.1:" in caplog.text
    assert "refused PUT_KV_CONFIG of" in caplog.text


def test_a_name_server_without_accounts_serves_every_sender() -> None:
    async def scenario(names: Names) -> int:
        return (await names.register()).code

    assert play(scenario) == ResponseCode.SUCCESS


def test_a_changed_file_takes_effect_at_a_name_server() -> None:
    disk = disk_with("")

    async def scenario(names: Names) -> list[int]:
        names.client.credentials = ADMIN
        codes = [(await names.register()).code]
        write_durably(disk, "/names/plain_acl.yml", ACCOUNTS.encode())
        await asyncio.sleep(6)
        return [*codes, (await names.register()).code]

    assert play(scenario, GUARDED, disk) == [REFUSED, ResponseCode.SUCCESS]


def test_a_name_server_does_not_start_with_a_broken_file() -> None:
    async def scenario(names: Names) -> None: ...

    with pytest.raises(ConfigError, match=r"/names/plain_acl\.yml"):
        play(scenario, GUARDED, disk_with("accounts: ["))


def test_refusals_of_one_sender_and_code_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(names: Names) -> None:
        for code in (*PROCESSORS, *PROCESSORS):
            await names.ask(code)

    play(scenario, GUARDED, disk_with())
    lines = [one for one in caplog.messages if one.startswith("refused ")]
    assert len(lines) == 11
    assert all("no access key" in line for line in lines)


def test_one_host_cannot_fill_the_log_from_all_addresses_of_its_network(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        gate = Gate(AclFile("/names/plain_acl.yml", simulated(loop, SimulatedNetwork(), disk=disk_with())))
        for number in range(9):
            gate.refusal(new_request(RequestCode.PUT_KV_CONFIG, {}), Address(f"2001:db8::{number}", 1))

    run_simulated(main(), loop)
    assert len(caplog.messages) == 1


def test_a_message_that_cannot_be_read_is_an_error_answer() -> None:
    loop = SimulatedLoop()

    def unreadable(commit_offset: int) -> str | None:
        raise OSError(f"cannot read {commit_offset}")

    async def main() -> Command | None:
        file = AclFile("/names/plain_acl.yml", simulated(loop, SimulatedNetwork(), disk=disk_with()))
        file.load()
        request = new_request(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": "7"})
        return Gate(file, unreadable).refusal(ADMIN.signed(request), Address("10.0.0.1", 1))

    answer = run_simulated(main(), loop)
    assert answer is not None
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "OSError: cannot read 7")


@pytest.mark.parametrize("signs", [True, False])
def test_a_broker_registers_at_a_name_server_with_accounts_if_it_has_one(signs: bool) -> None:
    loop = SimulatedLoop()

    async def main() -> bool:
        world = World(loop)
        write_durably(world.disk, "/names/plain_acl.yml", ACCOUNTS.encode(), SECRET_MODE)
        world.namesrv = NameServer(GUARDED, world.runtime)
        if signs:
            account = b"accessKey: the-admin\nsecretKey: 87654321"
            write_durably(world.disk, "/store/config/tools.yml", account, SECRET_MODE)
        async with world:
            return world.namesrv._services.table.member_group("broker-a") is not None

    assert run_simulated(main(), loop) is signs
