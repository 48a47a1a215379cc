"""Commands that write a file about a cluster, in JSON."""

import json
from typing import Annotated, Any

import typer

from mqproof.impl.admin import brokers, exports
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.options import Broker, Cluster, text
from mqproof.impl.admin.run import WRONG_USE, Site, fail, perform, require_one, say, targets
from mqproof.impl.admin.times import now_ms
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.terminal import errors


def _folder(name: str) -> Any:
    return text("f", "filePath", "DIR", f"Write DIR/{name}.")


def export_metadata(
    site: Site,
    broker: Broker = None,
    cluster: Cluster = None,
    folder: Annotated[str, _folder("metadata.json")] = ".",
    topics: Annotated[bool, typer.Option("-t", "--topic", help="Only topics, in DIR/topic.json.")] = False,
    groups: Annotated[
        bool,
        typer.Option("-g", "--subscriptionGroup", help="Only groups, in DIR/subscriptionGroup.json."),
    ] = False,
    special: Annotated[
        bool, typer.Option("-s", "--specialTopic", help="Retry and dead letter topics too.")
    ] = False,
) -> None:
    """Write topics and groups to a file, in JSON. System topics and system groups are left out.

    At one broker (-b) or at all masters of a cluster (-c).

    \b
    Example: mqproof admin exportMetadata -n 127.0.0.1:9876 -c DefaultCluster -f /tmp
    """
    require_one(broker, cluster)
    if topics and groups:
        fail("give either -t or -g", WRONG_USE)

    async def work(admin: Admin) -> None:
        found = await targets(admin, broker, cluster)
        written: dict[str, Any] = {"exportTime": now_ms()}
        if not groups:
            written["topicConfigTable"] = await exports.topics_at(admin, found, special=special)
        if not topics:
            written["subscriptionGroupTable"] = await exports.groups_at(admin, found)
        name = "topic" if topics else "subscriptionGroup" if groups else "metadata"
        _write(site, f"{folder}/{name}.json", written)

    perform(site, work)


def export_configs(
    site: Site,
    cluster: Annotated[str, text("c", "clusterName", "NAME", "The cluster.")],
    folder: Annotated[str, _folder("configs.json")] = ".",
) -> None:
    """Write the size of a cluster and settings of its masters to a file, in JSON.

    It has the settings that mqadmin exports, and no passwords.

    \b
    Example: mqproof admin exportConfigs -n 127.0.0.1:9876 -c DefaultCluster -f /tmp
    """

    async def work(admin: Admin) -> None:
        _write(site, f"{folder}/configs.json", await exports.configurations(admin, cluster))

    perform(site, work)


def export_metrics(
    site: Site,
    cluster: Annotated[str, text("c", "clusterName", "NAME", "The cluster to measure.")],
    folder: Annotated[str, _folder("metrics.json")] = ".",
) -> None:
    """Write measurements of the masters of a cluster to a file, in JSON.

    \b
    Example: mqproof admin exportMetrics -n 127.0.0.1:9876 -c DefaultCluster -f /tmp
    """

    async def work(admin: Admin) -> None:
        await admin.masters(cluster)  # it has one
        _write(site, f"{folder}/metrics.json", {cluster: await brokers.metrics(admin, cluster)})

    perform(site, work)


def _write(site: Site, path: str, content: dict[str, Any]) -> None:
    try:
        write_durably(site.runtime.disk, path, f"{json.dumps(content, indent=2)}\n".encode())
    except OSError as error:
        fail(f"-f: {errors.one_line(error)}", WRONG_USE)
    say(f"{path} is written")
