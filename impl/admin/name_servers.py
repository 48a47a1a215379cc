"""Operations on name servers. Each is sent to all of them, because each has its own state."""

from mqproof.impl.admin.admin import Admin, read_header
from mqproof.impl.admin.brokers import properties_of
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.headers import (
    AddWriteResponse,
    BrokerNameRequest,
    KvRequest,
    PutKvRequest,
    WipeWriteResponse,
)
from mqproof.impl.runtime.network import Address


async def wipe_write(admin: Admin, broker_name: str) -> dict[Address, int]:
    """Remove the write permission of a broker name. Returns the number of topics affected, by name server."""
    header = BrokerNameRequest(broker_name)
    answers = await admin.ask_all_name_servers(RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)
    return {
        address: read_header(WipeWriteResponse, answer).wipe_topic_count
        for address, answer in answers.items()
    }


async def add_write(admin: Admin, broker_name: str) -> dict[Address, int]:
    """Permit writing to a broker name again. Returns the same as `wipe_write`."""
    header = BrokerNameRequest(broker_name)
    answers = await admin.ask_all_name_servers(RequestCode.ADD_WRITE_PERM_OF_BROKER, header)
    return {
        address: read_header(AddWriteResponse, answer).add_topic_count for address, answer in answers.items()
    }


async def put_kv(admin: Admin, namespace: str, key: str, value: str) -> None:
    await admin.ask_all_name_servers(RequestCode.PUT_KV_CONFIG, PutKvRequest(namespace, key, value))


async def delete_kv(admin: Admin, namespace: str, key: str) -> None:
    await admin.ask_all_name_servers(RequestCode.DELETE_KV_CONFIG, KvRequest(namespace, key))


async def config(admin: Admin) -> dict[Address, dict[str, str]]:
    """Return the configuration of each name server."""
    answers = await admin.ask_all_name_servers(RequestCode.GET_NAMESRV_CONFIG)
    return {address: properties_of(answer.body) for address, answer in answers.items()}


async def update_config(admin: Admin, key: str, value: str) -> list[Address]:
    """Change one setting while the name servers run. Returns their addresses."""
    body = f"{key}={value}\n".encode()
    return list(await admin.ask_all_name_servers(RequestCode.UPDATE_NAMESRV_CONFIG, body=body))
