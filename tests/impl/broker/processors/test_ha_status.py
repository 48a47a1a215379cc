"""Tests the state of replication that a broker reports. Source: docs/reference/protocol/replication.md."""

from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from tests.impl.broker.group import Group, play


def test_a_member_of_a_group_has_no_state_of_a_master_and_its_slaves() -> None:
    async def scenario(group: Group) -> None:
        services = group.brokers[await group.master()].services
        assert services is not None
        request = new_request(RequestCode.GET_BROKER_HA_STATUS)
        answer = await group.session.remoting.invoke(services.address, request, 3.0)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert answer.remark == "a member of a DLedger group has neither a master nor slaves"

    play(scenario)
