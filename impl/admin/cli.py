"""`mqproof admin ...`: the commands of RocketMQ's mqadmin, with its names and letters."""

from collections.abc import Callable
from typing import Any, Final

import typer

from impl.admin.commands import brokers, groups, messages, name_servers, topics

COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "updateTopic": topics.update_topic,
    "deleteTopic": topics.delete_topic,
    "updateTopicPerm": topics.update_topic_perm,
    "topicRoute": topics.topic_route,
    "topicList": topics.topic_list,
    "topicStatus": topics.topic_status,
    "updateSubGroup": groups.update_sub_group,
    "deleteSubGroup": groups.delete_sub_group,
    "consumerProgress": groups.consumer_progress,
    "resetOffsetByTime": groups.reset_offset_by_time,
    "clusterList": brokers.cluster_list,
    "brokerStatus": brokers.broker_status,
    "getBrokerConfig": brokers.get_broker_config,
    "updateBrokerConfig": brokers.update_broker_config,
    "queryMsgById": messages.query_msg_by_id,
    "queryMsgByKey": messages.query_msg_by_key,
    "printMsg": messages.print_msg,
    "wipeWritePerm": name_servers.wipe_write_perm,
    "addWritePerm": name_servers.add_write_perm,
    "updateKvConfig": name_servers.update_kv_config,
    "deleteKvConfig": name_servers.delete_kv_config,
    "getNamesrvConfig": name_servers.get_namesrv_config,
    "updateNamesrvConfig": name_servers.update_namesrv_config,
}
"""mqadmin's name of each command to what does it."""

_SETTINGS: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
admin = typer.Typer(no_args_is_help=True, rich_markup_mode=None, context_settings=_SETTINGS)
for _name, _command in COMMANDS.items():
    admin.command(_name)(_command)
app.add_typer(admin, name="admin")


@app.callback()
def main() -> None:
    """Administration of name servers and brokers."""


@admin.callback()
def group() -> None:
    """Administer a RocketMQ cluster, ours or Apache's, with mqadmin's names and letters.

    Exit codes: 0 done; 1 a server refused, or nothing was found; 2 wrong use; 4 nobody answered.

    \b
    Examples:
      export NAMESRV_ADDR=127.0.0.1:9876     # or -n with each command
      mqproof admin clusterList
      mqproof admin updateTopic -c DefaultCluster -t T -r 4 -w 4
      mqproof admin topicStatus -t T
      mqproof admin consumerProgress -g G
      mqproof admin resetOffsetByTime -g G -t T -s now
    """
