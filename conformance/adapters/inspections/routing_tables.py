"""A name server's tables after each step, its times, its accounts, and its clients.

See docs/reference/protocol/name-server.md.
"""

import asyncio
import json
from typing import Any, Final

from mqproof.conformance.adapters.inspections.accounts import ADMIN, SECRET, signed
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.settings import lines
from mqproof.conformance.adapters.inspections.site import CODES, HOST, Inspection, Site
from mqproof.conformance.adapters.inspections.strange_brokers import body_of, topic
from mqproof.conformance.hosts.simulated import NAME_SERVERS
from mqproof.conformance.wire import chapters
from mqproof.impl.namesrv import config
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.route_table import Bounds
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.runtime.network import Address

_ACCOUNTS: Final = "/names/plain_acl.yml"


_POLL_S: Final = 5.0


_SECOND: Final = "second-admin"


_DEFAULTS: Final = {
    "listenPort": "9876", "kvConfigPath": "store/namesrv/kvConfig.json", "aclEnable": "false", "aclFile": "",
    "addressSharePercent": "50", "connectionSharePercent": "10", "scanNotActiveBrokerInterval": "10000",
    "orderMessageEnable": "false", "returnOrderTopicConfigToBroker": "true", "supportActingMaster": "false",
    "needWaitForService": "false", "waitSecondsForService": "45", "enableTopicList": "true",
    "enableAllTopicList": "true", "deleteTopicWithBrokerRegistration": "false",
    "metricsExporterType": "DISABLE", "metricsPromExporterHost": "127.0.0.1",
    "metricsPromExporterPort": "5557",
}  # fmt: skip


async def routing_tables(site: Site) -> None:
    site.rule = chapters.NAME_SERVER
    _defaults(site)
    await _times(site)
    await _accounts(site)


def _defaults(site: Site) -> None:
    found = NameServerConfig()
    site.compare("the settings of a name server", _DEFAULTS, lines(config.show(found)))
    others = found.host, found.broker_expiry_ms, found.config_path, found.bounds
    site.compare(
        "its other settings", ("127.0.0.1", 120_000, "", Bounds(10_000, 1_000_000, 512, 100)), others
    )


async def _times(site: Site) -> None:
    """Routes are refused for a time after the start, and scans are as frequent as set."""
    machine = site.cluster.add_machine("names of its own")
    own = NameServerConfig(
        machine.host, 9876, kv_path="/own/kv.json", scan_interval_ms=1000, broker_expiry_ms=2500,
        wait_for_service=True, wait_s=5,
    )  # fmt: skip
    runtime = machine.runtime()
    server = NameServer(own, runtime)
    site.compare("the address before the start", None, server.address)
    loop = asyncio.get_running_loop()
    address = await server.start()
    began_s = loop.time()
    site.compare("the address", (address, Address(machine.host, 9876)), (server.address, address))
    line = await RawClient(address).open(site.cluster.internet.machine(HOST))
    asked = {"topic": "t"}
    fields = {"brokerName": "b", "brokerAddr": "a", "clusterName": "c", "haServerAddr": "h", "brokerId": "0"}
    expires: dict[float, float] = {0.2: 3.0, 3.6: 7.0, 8.4: 11.0, 12.6: 16.0}
    """The times of registrations, and of the scans that remove the broker."""
    steps = [(begin, "register") for begin in expires]
    steps += [
        (end + more, "gone" if more > 0 else "there") for end in expires.values() for more in (-0.02, 0.02)
    ]
    steps += [(4.98, "early"), (5.02, "late")]
    for second, step in sorted(steps):
        await asyncio.sleep(began_s + second - loop.time())
        if step == "register":
            body = json.dumps(body_of([topic("t")])).encode()
            answer = await line.request(CODES["REGISTER_BROKER"], fields, body)
            site.compare("the code of a registration", 0, answer.code, answer.remark)
        elif step in ("early", "late"):
            answer = await line.request(CODES["GET_ROUTEINFO_BY_TOPIC"], asked)
            site.compare(f"the code of a route at {second} s", 1 if step == "early" else 0, answer.code)
        else:
            answer = await line.request(CODES["GET_BROKER_MEMBER_GROUP"], fields)
            site.compare(f"the code of the member group at {second} s", int(step == "gone"), answer.code)
    await server.stop()
    await asyncio.sleep(0.01)
    site.compare("the tasks after the stop", set(), set(runtime.supervisor.running))
    site.compare(
        "the address and a connection after the stop", (None, True), (server.address, line.is_closed)
    )


async def _accounts(site: Site) -> None:
    """A name server reads its accounts again within 5 s; a file that is wrong changes nothing."""

    async def is_allowed(key: str) -> bool:
        fields: dict[str, Any] = signed({"namespace": "n", "key": "k", "value": "v"}, b"", key, SECRET)
        answer = await site.ask("PUT_KV_CONFIG", to=site.name_server, expects=None, **fields)
        return answer.code == 0

    other = {"accounts": [{**ADMIN.entry(), "accessKey": _SECOND}]}
    allowed = ADMIN.key
    for text, key in ((None, ADMIN.key), (json.dumps(other), _SECOND), ("{", _SECOND),
                      ("accounts: \x01", _SECOND), (_FILE, ADMIN.key)):  # fmt: skip
        if text is not None:
            site.write_file(NAME_SERVERS[0], _ACCOUNTS, text)
            site.compare("whether the accounts from before count at first", True, await is_allowed(allowed))
            await asyncio.sleep(_POLL_S + 0.1)
        allowed = key
        found = [each for each in (ADMIN.key, _SECOND) if await is_allowed(each)]
        site.compare(f"the accounts that count after {text!r:.30}", [key], found)


_FILE: Final = json.dumps({"accounts": [ADMIN.entry()]})


_TOOLS: Final = json.dumps({"accessKey": ADMIN.key, "secretKey": SECRET})


ROUTING_TABLES: Final = Inspection(
    "routing tables", routing_tables, name_server={"acl_enabled": True},
    files={"/store/config/tools.yml": _TOOLS}, name_server_files={_ACCOUNTS: _FILE},
)  # fmt: skip
