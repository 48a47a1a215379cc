"""Every command of mqadmin 5.5.0, and its result with our servers.

`python -m tests.interop.mqadmin_commands` writes the table of docs/reference/mqadmin.md. `test_mqadmin.py`
runs the commands.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "mqadmin.md"
_BEGIN: Final = "<!-- begin of the generated table -->"
_END: Final = "<!-- end of the generated table -->"

_CONTAINER: Final = "5.5.0's containers of several brokers in one process do not exist here"
_CONTROLLER: Final = "there is no controller: a DLedger group elects its leader itself"
_COLD: Final = "reads of old messages are not limited by group"
_LITE: Final = "there are no lite topics"
_LOCAL: Final = "reads files of RocketMQ on the same machine; no server takes part"
_STATIC: Final = "there are no static topics"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of mqadmin. Names in braces are facts of the test, such as `{broker}`, an address."""

    command: str
    arguments: str
    expected: str
    """A regular expression that the output must match. That of a refused command is the refusal."""
    refused: str = ""
    """The reason, if the command does not work with our servers; empty if it works."""
    ends: bool = False
    """Whether the command must end by itself, because it completes its work after its output."""


def _refused(command: str, arguments: str, reason: str, expected: str = "not supported") -> Run:
    return Run(command, arguments, expected, reason)


WORKING: Final = (
    Run("updateTopic", "-c DefaultCluster -t {topic} -r 4 -w 4", r"create topic to {broker} success"),
    Run("updateTopic", "-b {broker} -t {topic}_more -r 1 -w 1", r"create topic to {broker} success"),
    Run(
        "updateTopicList", "-b {broker} -f {folder}/topics.json", "submit batch of topic config to .* success"
    ),
    Run("updateTopicPerm", "-c DefaultCluster -t {topic} -p 6", "update topic perm from 6 to 6 .* success"),
    Run("topicRoute", "-t {topic}", r'"brokerName":"{name}"'),
    Run("topicStatus", "-t {topic}", r"{name} +3 +0 +\d"),
    Run("topicClusterList", "-t {topic}", "^DefaultCluster$"),
    Run("topicList", "-c", r"DefaultCluster +{topic} "),
    Run(
        "updateSubGroup", "-c DefaultCluster -g {other} -r 3", "create subscription group to {broker} success"
    ),
    Run(
        "updateSubGroup",
        "-b {broker} -c NoCluster -g {other} -r 3",
        "create subscription group to {broker} s",
    ),
    Run(
        "updateSubGroupList",
        "-b {broker} -f {folder}/groups.json",
        "submit batch of group config to .* success",
    ),
    Run("setConsumeMode", "-b {broker} -g {group} -t {topic} -m PULL", "set consume mode to .* success"),
    Run("sendMessage", "-t {topic} -p hello -k key1 -b {name} -i 1 -m true", "SEND_OK", ends=True),
    Run("sendMsgStatus", "-b {name} -c 2", "SEND_OK"),
    Run("checkMsgSendRT", "-t {topic} -a 2 -s 10", "Avg RT"),
    Run("consumeMessage", "-t {topic} -g {other} -b {name} -i 1 -o 0 -c 1", "MSGID: "),
    Run("queryMsgById", "-t {topic} -i {offset_id}", r"MessageTrack \[consumerGroup={group}"),
    Run("queryMsgByKey", "-t {topic} -k key1", r"[0-9A-F]{{32}} +1 "),
    Run("queryMsgByUniqueKey", "-t {topic} -i {unique_key}", r"MessageTrack \[consumerGroup={group}"),
    Run("queryMsgByOffset", "-t {topic} -b {name} -i 1 -o 0", "Store Timestamp: "),
    Run("queryMsgTraceById", "-i {traced}", r"Pub +\S+ .*success"),
    Run("printMsg", "-t {topic}", "MSGID: "),
    Run("printMsgByQueue", "-t {topic} -a {name} -i 1 -p true -d true", "MSGID: .*BODY: hello"),
    Run("brokerConsumeStats", "-b {broker} -l 0", "Diff Total: "),
    Run("producerConnection", "-g {producers} -t {topic}", "PYTHON"),
    Run("consumerConnection", "-g {group}", "ConsumeType: CONSUME_PASSIVELY"),
    Run("consumerProgress", "-g {group}", r"{topic} +{name} +1 "),
    Run("consumerStatus", "-g {group}", "Same subscription in the same group"),
    Run("cloneGroupOffset", "-s {group} -d {other} -t {topic} -o true", "clone group offset success"),
    Run("producer", "-b {broker}", r"producer group \({producers}\) instance"),
    Run("clusterList", "", r"DefaultCluster +{name} +0 +{broker} .* true"),
    Run("updateKvConfig", "-s N -k K -v V", "create or update kv config to namespace success"),
    Run("deleteKvConfig", "-s N -k K", "delete kv config from namespace success"),
    Run("wipeWritePerm", "-b {name}", "wipe write perm of broker.* OK"),
    Run("addWritePerm", "-b {name}", "add write perm of broker.* OK"),
    Run("resetOffsetByTime", "-g {group} -t {topic} -s now", r"{name} +3 +\d"),
    Run("skipAccumulatedMessage", "-g {group} -t {topic}", r"{name} +3 +\d"),
    Run("updateOrderConf", "-m put -t {topic} -v {name}:4", "update orderConf success"),
    Run("updateOrderConf", "-m get -t {topic}", r"orderConf=\[{name}:4\]"),
    Run("cleanExpiredCQ", "-b {broker}", "^success$"),
    Run("deleteExpiredCommitLog", "-b {broker}", "^success$"),
    Run("cleanUnusedTopic", "-b {broker}", "^success$"),
    Run("startMonitoring", "", "MONITOR_CONSUMER"),
    Run("statsAll", "-t {topic}", r"{topic} +{group} +\d+ +\d"),
    Run("allocateMQ", "-t {topic} -i 10.0.0.1,10.0.0.2", '"queueId":3'),
    Run("clusterRT", "-a 2 -i 1 -p true", r"DefaultCluster\|{name}\|\d"),
    Run("getNamesrvConfig", "", "listenPort +="),
    Run("updateNamesrvConfig", "-k orderMessageEnable -v true", "update name server config success"),
    Run("getBrokerConfig", "-b {broker}", "maxMessageSize +="),
    Run("updateBrokerConfig", "-b {broker} -k maxMessageSize -v 4194305", "update broker config success"),
    Run("getConsumerConfig", "-g {other}", r"retryMaxTimes += +3"),
    Run("queryCq", "-t {topic} -q 1 -i 0 -c 1 -g {group}", r"physicOffset=\d+"),
    Run("exportMetadata", "-c DefaultCluster -f {folder}", "export .*metadata.json success"),
    Run("exportConfigs", "-c DefaultCluster -f {folder}", "export .*configs.json success"),
    Run("exportMetrics", "-c DefaultCluster -f {folder}", "export .*metrics.json success"),
    Run("brokerStatus", "-b {broker}", r"msgPutTotalTodayNow +: +\d"),
    Run("haStatus", "-b {broker}", r"#InSyncSlaveNum\s+1"),
    Run("createUser", "-b {broker} -u newcomer -p abcdefg -t Normal", "create user to {broker} success"),
    Run("updateUser", "-b {broker} -u newcomer -p gfedcba", "update user to {broker} success"),
    Run("getUser", "-b {broker} -u newcomer", r"newcomer .*Normal +enable"),
    Run("listUser", "-b {broker}", r"newcomer .*Normal +enable"),
    Run(
        "createAcl",
        "-b {broker} -s User:newcomer -r Topic:{topic} -a Pub,Sub -d ALLOW",
        "create acl to .* success",
    ),
    Run(
        "updateAcl",
        "-b {broker} -s User:newcomer -r Topic:{topic} -a Pub -d ALLOW",
        "update acl to .* success",
    ),
    Run("getAcl", "-b {broker} -s User:newcomer", r"User:newcomer .*Topic:{topic} +\[?Pub"),
    Run("listAcl", "-b {broker}", r"User:newcomer .*Topic:{topic}"),
    Run("copyAcl", "-f {broker} -t {broker} -s User:newcomer", "copy acl .* success"),
    Run("deleteAcl", "-b {broker} -s User:newcomer", "delete acl to .* success"),
    Run("deleteUser", "-b {broker} -u newcomer", "delete user to .* success"),
    Run("deleteSubGroup", "-b {broker} -g {other}", "delete subscription group .* success"),
    Run(
        "deleteTopic",
        "-c DefaultCluster -t {topic}_more",
        r"delete topic \[{topic}_more\] from NameServer success",
    ),
)
"""They run in this order; later ones use what earlier ones have made."""

REFUSED: Final = (
    _refused(
        "copyUser", "-f {broker} -t {slave} -u readable", "our broker does not return passwords", "password"
    ),
    _refused("setConsumeMode", "-b {broker} -g {group} -t {topic} -m POP", "groups cannot pop messages"),
    _refused("addBroker", "-c {broker} -b /nowhere.conf", _CONTAINER),
    _refused("removeBroker", "-c {broker} -b DefaultCluster:{name}:0", _CONTAINER),
    _refused(
        "resetMasterFlushOffset", "-b {broker} -o 0", "a slave keeps no position of its master's flushes"
    ),
    _refused("updateStaticTopic", "-b {name} -qn 2 -t {topic}_static", _STATIC, "failed|not supported"),
    _refused(
        "remappingStaticTopic", "-b {name} -t {topic}_static", _STATIC, "No static topic|not exist|failed"
    ),
    _refused("exportPopRecord", "-b {broker} -d true", "groups cannot pop messages"),
    _refused("getSyncStateSet", "-a {broker} -b {name}", _CONTROLLER),
    _refused("getBrokerEpoch", "-b {name}", _CONTROLLER),
    _refused("getControllerMetaData", "-a {broker}", _CONTROLLER),
    _refused("getControllerConfig", "-a {broker}", _CONTROLLER),
    _refused("updateControllerConfig", "-a {broker} -k a -v b", _CONTROLLER),
    _refused("electMaster", "-a {broker} -b 1 -bn {name} -c DefaultCluster", _CONTROLLER),
    _refused("cleanBrokerMetadata", "-a {broker} -bn {name} -c DefaultCluster", _CONTROLLER),
    _refused("getColdDataFlowCtrInfo", "-b {broker}", _COLD),
    _refused("updateColdDataFlowCtrGroupConfig", "-b {broker} -g {group} -v 100", _COLD),
    _refused("removeColdDataFlowCtrGroupConfig", "-b {broker} -g {group}", _COLD),
    _refused(
        "setCommitLogReadAheadMode", "-b {broker} -m 1", "the log is read with the read-ahead of the system"
    ),
    _refused(
        "checkRocksdbCqWriteProgress", "-c DefaultCluster", "consume queues are files, never in RocksDB"
    ),
    _refused("rocksDBConfigToJson", "-c DefaultCluster -t topics", "tables are JSON files, never in RocksDB"),
    _refused(
        "switchTimerEngine", "-b {broker} -e F", "there is one way to keep timers, and it is not a file wheel"
    ),
    _refused("getBrokerLiteInfo", "-b {broker}", _LITE),
    _refused("getParentTopicInfo", "-p {topic}", _LITE, "broker-a.* error"),
    _refused("getLiteTopicInfo", "-p {topic} -l x", _LITE, "broker-a.* error"),
    _refused("getLiteClientInfo", "-p {topic} -g {group} -c x", _LITE, "broker-a.* error"),
    _refused("getLiteGroupInfo", "-p {topic} -g {group}", _LITE, "broker-a.* error"),
    _refused("triggerLiteDispatch", "-p {topic} -g {group}", _LITE, "broker-a.* error"),
)

NOT_RUN: Final = (
    Run("exportMetadataInRocksDB", "-p FOLDER -t topics", "", _LOCAL),
    Run("dumpCompactionLog", "-f FILE", "", _LOCAL),
)
"""Commands that contact no server."""


def working() -> list[str]:
    """Return the names of the commands that work."""
    return list(dict.fromkeys(run.command for run in WORKING))


def names() -> list[str]:
    """Return the names of all commands."""
    return list(dict.fromkeys(run.command for run in (*WORKING, *REFUSED, *NOT_RUN)))


def table() -> str:
    """Return the table of the page."""
    first: dict[str, Run] = {}
    for run in (*WORKING, *REFUSED, *NOT_RUN):
        first.setdefault(run.command, run)
    lines = ["| command | example | with our servers |", "|---|---|---|"]
    for run in first.values():
        example = re.sub(r"\{(\w+)\}", lambda found: found[1].upper(), run.arguments).replace("|", "\\|")
        shown = f"`{example}`" if example else "no options"
        lines.append(f"| {run.command} | {shown} | {run.refused or 'works'} |")
    return "\n".join(lines)


def page(old: str) -> str:
    """Return the page with the current table and counts."""
    head, rest = old.split(_BEGIN)
    _, tail = rest.split(_END)
    count = f"{len(working())} of the {len(names())} commands work with our servers"
    head = re.sub(r"\d+ of the \d+ commands work with our servers", count, head)
    return f"{head}{_BEGIN}\n\n{table()}\n\n{_END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
