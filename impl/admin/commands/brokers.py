"""Commands about brokers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from mqproof.impl.admin import brokers, tables
from mqproof.impl.admin.admin import Admin, UnreachableError
from mqproof.impl.admin.options import Broker, Cluster, count, flag, text
from mqproof.impl.admin.run import Site, perform, require_one, say, show, targets
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.runtime.network import Address


def cluster_list(
    site: Site,
    more: Annotated[
        bool,
        typer.Option(
            "-m", "--moreStats", help="Show the messages received and delivered, yesterday and today."
        ),
    ] = False,
    interval_s: Annotated[int | None, count("i", "interval", "Repeat every N seconds.")] = None,
    cluster: Annotated[str | None, text("c", "clusterName", "NAME", "List only this cluster.")] = None,
) -> None:
    """List the brokers and their state.

    Exit codes: 0 done; 1 a server refused; 2 wrong use; 4 no server answered, or a broker does not report its
    status.

    \b
    Example: mqproof admin clusterList -n 127.0.0.1:9876
    """

    async def work(admin: Admin) -> None:
        while True:
            states = await brokers.cluster_states(admin, cluster)
            if not states:
                raise ClientError("the name server knows no broker" + (f" of {cluster}" if cluster else ""))
            show((tables.cluster_totals if more else tables.cluster_list)(states))
            if interval_s is None:
                break
            await asyncio.sleep(interval_s)
        if silent := [str(state.address) for state in states if state.status is None]:
            raise UnreachableError(f"no status from {', '.join(silent)}")

    perform(site, work)


def broker_status(site: Site, broker: Broker = None, cluster: Cluster = None) -> None:
    """Show the runtime information of brokers.

    Select one broker (-b) or all masters of a cluster (-c).

    \b
    Example: mqproof admin brokerStatus -n 127.0.0.1:9876 -b 127.0.0.1:10911
    """
    _show_of_each(brokers.status, site, broker, cluster)


def get_broker_config(site: Site, broker: Broker = None, cluster: Cluster = None) -> None:
    """Show the configuration of brokers.

    Select one broker (-b) or all masters of a cluster (-c).

    \b
    Example: mqproof admin getBrokerConfig -n 127.0.0.1:9876 -b 127.0.0.1:10911
    """
    _show_of_each(brokers.config, site, broker, cluster)


def update_broker_config(
    site: Site,
    key: Annotated[str, text("k", "key", "KEY", "The key of the setting.")],
    value: Annotated[str, text("v", "value", "VALUE", "The new value.")],
    broker: Broker = None,
    cluster: Cluster = None,
    slaves: Annotated[Any, flag("a", "updateAllBroker", "With -c: change the slaves too.")] = "false",
) -> None:
    """Change a setting of running brokers.

    Select one broker (-b) or all masters of a cluster (-c). With -a true, their slaves are changed too.

    \b
    Example: mqproof admin updateBrokerConfig -n 127.0.0.1:9876 -c DefaultCluster -k brokerPermission -v 4
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        found = await targets(admin, broker, cluster, slaves=slaves)
        await brokers.update_config(admin, found, key, value)
        for each in found:
            # Brokers accept unknown keys and ignore them.
            is_shown = key in await brokers.config(admin, each)
            say(
                f"{each}: {key}={value}"
                + ("" if is_shown else "; the broker does not list this key and may not support it")
            )

    perform(site, work)


def ha_status(
    site: Site,
    broker: Broker = None,
    cluster: Cluster = None,
    interval_s: Annotated[int | None, count("i", "interval", "Repeat every N seconds.")] = None,
) -> None:
    """Show the state of replication: a master's slaves, or a slave's connection to its master.

    Select one broker (-b) or all brokers of a cluster (-c).

    \b
    Example: mqproof admin haStatus -n 127.0.0.1:9876 -c DefaultCluster
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        while True:
            for each in await targets(admin, broker, cluster, slaves=True):
                status = await brokers.ha_status(admin, each)
                say(tables.ha_line(each, status))
                if status.ha_connection_info:
                    show(tables.ha_slaves(status))
            if interval_s is None:
                return
            await asyncio.sleep(interval_s)

    perform(site, work)


def clean_expired_cq(site: Site, broker: Broker = None, cluster: Cluster = None) -> None:
    """Delete expired segments of consume queues now, at one broker (-b) or all masters of a cluster (-c).

    \b
    Example: mqproof admin cleanExpiredCQ -n 127.0.0.1:9876 -c DefaultCluster
    """
    _clean(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, site, broker, cluster)


def delete_expired_commit_log(site: Site, broker: Broker = None, cluster: Cluster = None) -> None:
    """Delete expired segments of the log now, at one broker (-b) or all masters of a cluster (-c).

    \b
    Example: mqproof admin deleteExpiredCommitLog -n 127.0.0.1:9876 -c DefaultCluster
    """
    _clean(RequestCode.DELETE_EXPIRED_COMMITLOG, site, broker, cluster)


def clean_unused_topic(site: Site, broker: Broker = None, cluster: Cluster = None) -> None:
    """Delete the queues of topics that are gone, at one broker (-b) or all masters of a cluster (-c).

    \b
    Example: mqproof admin cleanUnusedTopic -n 127.0.0.1:9876 -c DefaultCluster
    """
    _clean(RequestCode.CLEAN_UNUSED_TOPIC, site, broker, cluster)


def _clean(code: RequestCode, site: Site, broker: Address | None, cluster: str | None) -> None:
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        found = await targets(admin, broker, cluster)
        await brokers.clean(admin, found, code)
        for each in found:
            say(f"{each}: done")

    perform(site, work)


def _show_of_each(
    ask: Callable[[Admin, Address], Awaitable[dict[str, str]]],
    site: Site,
    broker: Address | None,
    cluster: str | None,
) -> None:
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        found = {each: await ask(admin, each) for each in await targets(admin, broker, cluster)}
        show(tables.settings("broker", found))

    perform(site, work)
