"""Commands about name servers. Each request is sent to all of them."""

from typing import Annotated

from mqproof.impl.admin import name_servers, tables
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.options import text
from mqproof.impl.admin.run import Site, perform, say, show

BrokerName = Annotated[str, text("b", "brokerName", "NAME", "The broker's name.")]
Namespace = Annotated[str, text("s", "namespace", "NAME", "The namespace.")]
Key = Annotated[str, text("k", "key", "KEY", "The key.")]
Value = Annotated[str, text("v", "value", "VALUE", "The new value.")]


def wipe_write_perm(site: Site, broker_name: BrokerName) -> None:
    """Take the write permission from a broker.

    The broker has it again after its next changed registration. Clients see the change with their next route.

    \b
    Example: mqproof admin wipeWritePerm -n 127.0.0.1:9876 -b broker-a
    """

    async def work(admin: Admin) -> None:
        for address, count in (await name_servers.wipe_write(admin, broker_name)).items():
            say(f"{address}: {count} topics of {broker_name} are no longer writable")

    perform(site, work)


def add_write_perm(site: Site, broker_name: BrokerName) -> None:
    """Give a broker its write permission back.

    \b
    Example: mqproof admin addWritePerm -n 127.0.0.1:9876 -b broker-a
    """

    async def work(admin: Admin) -> None:
        for address, count in (await name_servers.add_write(admin, broker_name)).items():
            say(f"{address}: {count} topics of {broker_name} are readable and writable")

    perform(site, work)


def update_kv_config(site: Site, namespace: Namespace, key: Key, value: Value) -> None:
    """Store a text under a key.

    \b
    Example: mqproof admin updateKvConfig -n 127.0.0.1:9876 -s ORDER_TOPIC_CONFIG -k T -v broker-a:4
    """

    async def work(admin: Admin) -> None:
        await name_servers.put_kv(admin, namespace, key, value)
        say(f"{namespace}: {key}={value}")

    perform(site, work)


def delete_kv_config(site: Site, namespace: Namespace, key: Key) -> None:
    """Delete a key and its text.

    \b
    Example: mqproof admin deleteKvConfig -n 127.0.0.1:9876 -s ORDER_TOPIC_CONFIG -k T
    """

    async def work(admin: Admin) -> None:
        await name_servers.delete_kv(admin, namespace, key)
        say(f"{namespace}: {key} is deleted")

    perform(site, work)


def get_namesrv_config(site: Site) -> None:
    """Show the configuration of name servers.

    \b
    Example: mqproof admin getNamesrvConfig -n 127.0.0.1:9876
    """

    async def work(admin: Admin) -> None:
        show(tables.settings("name server", await name_servers.config(admin)))

    perform(site, work)


def update_namesrv_config(site: Site, key: Key, value: Value) -> None:
    """Change a setting of running name servers.

    \b
    Example: mqproof admin updateNamesrvConfig -n 127.0.0.1:9876 -k orderMessageEnable -v true
    """

    async def work(admin: Admin) -> None:
        for address in await name_servers.update_config(admin, key, value):
            say(f"{address}: {key}={value}")

    perform(site, work)
