"""`mqproof admin ...`: the commands of RocketMQ's mqadmin, with its names and letters."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperGroup

from mqproof.impl.admin.commands import (
    accounts,
    brokers,
    exports,
    groups,
    members,
    messages,
    monitoring,
    name_servers,
    round_trips,
    topics,
)
from mqproof.impl.admin.options import NameServers
from mqproof.impl.admin.run import COMMAND, Site
from mqproof.impl.terminal.inputs import new_runtime, read_account
from mqproof.impl.terminal.options import AccountFile, TlsFile

COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "updateTopic": topics.update_topic,
    "updateTopicList": topics.update_topic_list,
    "deleteTopic": topics.delete_topic,
    "updateTopicPerm": topics.update_topic_perm,
    "updateOrderConf": topics.update_order_conf,
    "topicRoute": topics.topic_route,
    "topicList": topics.topic_list,
    "topicStatus": topics.topic_status,
    "topicClusterList": topics.topic_cluster_list,
    "statsAll": topics.stats_all,
    "allocateMQ": topics.allocate_mq,
    "updateSubGroup": groups.update_sub_group,
    "updateSubGroupList": groups.update_sub_group_list,
    "setConsumeMode": groups.set_consume_mode,
    "getConsumerConfig": groups.get_consumer_config,
    "deleteSubGroup": groups.delete_sub_group,
    "consumerProgress": groups.consumer_progress,
    "brokerConsumeStats": groups.broker_consume_stats,
    "resetOffsetByTime": groups.reset_offset_by_time,
    "cloneGroupOffset": groups.clone_group_offset,
    "skipAccumulatedMessage": groups.skip_accumulated_message,
    "producerConnection": groups.producer_connection,
    "producer": groups.producer,
    "consumerConnection": groups.consumer_connection,
    "consumerStatus": groups.consumer_status,
    "startMonitoring": monitoring.start_monitoring,
    "clusterList": brokers.cluster_list,
    "brokerStatus": brokers.broker_status,
    "getBrokerConfig": brokers.get_broker_config,
    "updateBrokerConfig": brokers.update_broker_config,
    "haStatus": brokers.ha_status,
    "exportMetadata": exports.export_metadata,
    "exportConfigs": exports.export_configs,
    "exportMetrics": exports.export_metrics,
    "cleanExpiredCQ": brokers.clean_expired_cq,
    "deleteExpiredCommitLog": brokers.delete_expired_commit_log,
    "cleanUnusedTopic": brokers.clean_unused_topic,
    "createUser": accounts.create_user,
    "updateUser": accounts.update_user,
    "deleteUser": accounts.delete_user,
    "getUser": accounts.get_user,
    "listUser": accounts.list_user,
    "createAcl": accounts.create_acl,
    "updateAcl": accounts.update_acl,
    "deleteAcl": accounts.delete_acl,
    "getAcl": accounts.get_acl,
    "listAcl": accounts.list_acl,
    "copyAcl": accounts.copy_acl,
    "queryMsgById": messages.query_msg_by_id,
    "queryMsgByKey": messages.query_msg_by_key,
    "queryMsgByUniqueKey": messages.query_msg_by_unique_key,
    "queryMsgByOffset": messages.query_msg_by_offset,
    "queryMsgTraceById": messages.query_msg_trace_by_id,
    "printMsg": messages.print_msg,
    "printMsgByQueue": messages.print_msg_by_queue,
    "queryCq": messages.query_cq,
    "sendMessage": messages.send_message,
    "consumeMessage": messages.consume_message,
    "sendMsgStatus": round_trips.send_msg_status,
    "checkMsgSendRT": round_trips.check_msg_send_rt,
    "clusterRT": round_trips.cluster_rt,
    "wipeWritePerm": name_servers.wipe_write_perm,
    "addWritePerm": name_servers.add_write_perm,
    "updateKvConfig": name_servers.update_kv_config,
    "deleteKvConfig": name_servers.delete_kv_config,
    "getNamesrvConfig": name_servers.get_namesrv_config,
    "updateNamesrvConfig": name_servers.update_namesrv_config,
    "leadershipTransfer": members.leadership_transfer,
}
"""Maps a command name to its function. The names are mqadmin's, except `leadershipTransfer`."""

_SETTINGS: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(TyperGroup):
    """Names the command before it parses its options, so that errors in options name it too."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        COMMAND.set(f"admin {name}")
        return name, command, rest


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
admin = typer.Typer(cls=_Commands, no_args_is_help=True, rich_markup_mode=None, context_settings=_SETTINGS)


def at_site(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the common options: the name servers, TLS and the account."""

    @wraps(command)
    def main(*, namesrv: Any, tls: Path | None, account: Path | None, **options: Any) -> None:
        command(
            Site(namesrv, new_runtime(COMMAND.get(), tls), read_account(COMMAND.get(), account)), **options
        )

    _, *own = signature(command, eval_str=True).parameters.values()
    where = Parameter("namesrv", Parameter.KEYWORD_ONLY, annotation=NameServers)
    how = [
        Parameter("tls", Parameter.KEYWORD_ONLY, default=None, annotation=TlsFile),
        Parameter("account", Parameter.KEYWORD_ONLY, default=None, annotation=AccountFile),
    ]
    parameters = [where, *(each.replace(kind=Parameter.KEYWORD_ONLY) for each in own), *how]
    main.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]  # what typer reads
    return main


for _name, _command in COMMANDS.items():
    admin.command(_name)(at_site(_command))
app.add_typer(admin, name="admin")


@app.callback()
def main() -> None:
    """Administration of name servers and brokers."""


@admin.callback()
def group() -> None:
    """Administer a RocketMQ cluster, ours or Apache's, with mqadmin's names and letters.

    Exit codes: 0 done; 1 a server refused, or nothing was found; 2 wrong use; 4 no server answered.

    \b
    Examples:
      export NAMESRV_ADDR=127.0.0.1:9876     # or -n with each command
      mqproof admin clusterList
      mqproof admin updateTopic -c DefaultCluster -t T -r 4 -w 4
      mqproof admin topicStatus -t T
      mqproof admin consumerProgress -g G
      mqproof admin resetOffsetByTime -g G -t T -s now
      mqproof admin topicList --tls tls.properties --account tools.yml
    """
