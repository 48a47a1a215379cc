"""`mqproof namesrv | broker | serve | send | consume`: the servers and the client tools."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mqproof.impl.command.metrics_setup import with_metrics
from mqproof.impl.command.options import (
    AdvertisedHost,
    AsJson,
    Batch,
    Body,
    BrokerId,
    BrokerName,
    BrokerPort,
    BrokerRole,
    Config,
    ConsumerGroup,
    Control,
    Count,
    CountMax,
    DelayLevel,
    Ephemeral,
    FilteredBroker,
    FilterServerPort,
    Flush,
    Follow,
    FromMax,
    FromMin,
    FromTime,
    Fuel,
    FunctionsMax,
    HaMaster,
    HaPort,
    Host,
    IdleMs,
    Keys,
    KvStore,
    MemoryMib,
    MetricsPort,
    ModuleKib,
    NameServerPort,
    Orderly,
    Outstanding,
    Peers,
    Port,
    ProducerGroup,
    Properties,
    ReadyFilePath,
    RegisterAt,
    SelfId,
    ShardingKey,
    Share,
    Size,
    Sql,
    Store,
    SummaryFile,
    Tag,
    Tags,
    TimeoutMs,
    UntilStored,
)
from mqproof.impl.command.server_config import broker_config, name_server_config
from mqproof.impl.terminal import inputs
from mqproof.impl.terminal.errors import fail, one_line
from mqproof.impl.terminal.options import AccountFile, Events, NameServers, TlsFile, Topic
from mqproof.impl.terminal.output import write_json
from mqproof.impl.terminal.running import run_command

if TYPE_CHECKING:  # imported late: a server loads no client, and a client no server
    from mqproof.impl.broker.config import BrokerConfig
    from mqproof.impl.client.message_selector import MessageSelector
    from mqproof.impl.command.consuming import Begin
    from mqproof.impl.command.sending import SendSummary
    from mqproof.impl.metrics.config import MetricsConfig
    from mqproof.impl.runtime.network import Address
    from mqproof.impl.runtime.runtime import Runtime

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """RocketMQ-compatible servers and client tools."""


@app.command()
def namesrv(
    host: Host = "127.0.0.1",
    port: Port = None,
    store: KvStore = None,
    events: Events = None,
    config: Config = None,
    tls: TlsFile = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Run a name server until SIGTERM. Options win over the properties file.

    \b
    Example: mqproof namesrv --port 9876
    """
    from mqproof.impl.namesrv.server import NameServer

    kv_path = f"{store}/kvConfig.json" if store else None
    runtime = inputs.new_runtime("namesrv", tls)
    setup = name_server_config(config, host=host, port=port, kv_path=kv_path, metrics_port=metrics_port)
    _serve(
        "namesrv",
        {"namesrv": lambda _: NameServer(setup, runtime, inputs.server_event_log(events, "namesrv"))},
        runtime,
        setup.metrics,
    )


@app.command()
def broker(
    namesrv: RegisterAt = None,
    host: Host = "127.0.0.1",
    port: Port = None,
    store: Store = None,
    flush: Flush = None,
    name: BrokerName = None,
    role: BrokerRole = None,
    broker_id: BrokerId = None,
    ha_port: HaPort = None,
    ha_master: HaMaster = None,
    peers: Peers = None,
    self_id: SelfId = None,
    events: Events = None,
    config: Config = None,
    tls: TlsFile = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Run a broker until SIGTERM. Options win over the properties file.

    \b
    Example: mqproof broker --namesrv 127.0.0.1:9876 --store /var/lib/mq --flush SYNC_FLUSH

    \b
    A slave of a broker of that name:
      mqproof broker --namesrv 127.0.0.1:9876 --store /var/lib/mq-1 --port 10921 --role SLAVE --broker-id 1

    \b
    The first of three that elect their master; n1 and n2 have ports and stores of their own:
      mqproof broker --namesrv 127.0.0.1:9876 --store /var/lib/mq-n0 --self-id n0 \\
        --peers "n0-127.0.0.1:40911;n1-127.0.0.1:40921;n2-127.0.0.1:40931"
    """
    from mqproof.impl.broker.broker import Broker

    setup = broker_config(
        "broker",
        config,
        host=host,
        port=port,
        store=store,
        flush=flush,
        name=name,
        name_servers=inputs.name_servers("broker", namesrv) if namesrv else None,
        role=role,
        broker_id=broker_id,
        ha_port=ha_port,
        ha_master=inputs.address("broker", "--ha-master", ha_master),
        peers=peers,
        self_id=self_id,
        metrics_port=metrics_port,
    )
    runtime = inputs.new_runtime("broker", tls)
    _serve(
        "broker",
        {"broker": lambda _: Broker(setup, runtime, inputs.server_event_log(events, setup.node))},
        runtime,
        setup.metrics,
    )


@app.command("filter-server")
def filter_server(
    broker: FilteredBroker,
    host: Host = "127.0.0.1",
    port: FilterServerPort = 0,
    advertised_host: AdvertisedHost = None,
    module_kib: ModuleKib = 256,
    functions: FunctionsMax = 64,
    memory_mib: MemoryMib = 16,
    fuel: Fuel = 1_000_000,
    tls: TlsFile = None,
    account: AccountFile = None,
) -> None:
    """Run consumers' functions beside a broker, whose filterServerEnable must be true, until SIGTERM.

    Anyone who can connect may upload functions; they run in a sandbox. See the guide about filter servers.

    \b
    Example: mqproof filter-server --broker 127.0.0.1:10911
    """
    from mqproof.impl.filter_server.functions import Limits
    from mqproof.impl.filter_server.server import FilterServer, FilterServerConfig
    from mqproof.impl.runtime.serving import until_signal

    if host in ("0.0.0.0", "::") and advertised_host is None:
        fail("filter-server", f"--host is {host}: give the address for consumers with --advertised-host")
    limits = Limits(module_kib << 10, functions, memory_mib << 20, fuel)
    setup = FilterServerConfig(_broker_address(broker), host, port, advertised_host, limits)
    runtime = inputs.new_runtime("filter-server", tls)
    credentials = inputs.read_account("filter-server", account)
    servers: dict[str, Any] = {"filter-server": lambda _: FilterServer(setup, runtime, credentials)}
    run_command("filter-server", until_signal(servers, runtime.supervisor))


@app.command()
def serve(
    host: Host = "127.0.0.1",
    namesrv_port: NameServerPort = None,
    broker_port: BrokerPort = None,
    store: Store = None,
    flush: Flush = None,
    name: BrokerName = None,
    events: Events = None,
    config: Config = None,
    tls: TlsFile = None,
    metrics_port: MetricsPort = None,
    ephemeral: Ephemeral = False,
    ready_file: ReadyFilePath = None,
    control: Control = None,
) -> None:
    """Run a name server and a broker in one process until SIGTERM.

    \b
    Example: mqproof serve --namesrv-port 0 --broker-port 0 --store build/store --flush SYNC_FLUSH

    \b
    For the tests of any language: in memory, with virtual time and faults over HTTP:
      mqproof serve --ephemeral --ready-file build/mq.json --control 0
    """
    if ephemeral:
        unused = {"store": store, "flush": flush, "events": events, "tls": tls, "metrics-port": metrics_port}
        _refuse_with_ephemeral(host, unused)
        _serve_ephemeral(config, name, (namesrv_port or 0, broker_port or 0, control), ready_file)
        return
    if control is not None:
        fail("serve", "--control needs --ephemeral: it would let any local process change a lasting broker")
    setup = broker_config(
        "serve",
        config,
        host=host,
        port=broker_port,
        store=store,
        flush=flush,
        name=name,
        metrics_port=metrics_port,
    )
    runtime = inputs.new_runtime("serve", tls)
    servers = _both_servers(setup, 9876 if namesrv_port is None else namesrv_port, runtime, events)
    _serve("serve", servers, runtime, setup.metrics, ready_file)


@app.command()
def send(
    namesrv: NameServers,
    topic: Topic,
    body: Body = None,
    count: Count = 1,
    size: Size = None,
    outstanding: Outstanding = 1,
    tags: Tag = None,
    keys: Keys = None,
    property: Properties = None,  # noqa: A002  # the option's name
    delay_level: DelayLevel = 0,
    batch: Batch = 1,
    sharding_key: ShardingKey = None,
    group: ProducerGroup = "mqproof_producer",
    timeout_ms: TimeoutMs = 3000,
    until_stored: UntilStored = False,
    events: Events = None,
    tls: TlsFile = None,
    account: AccountFile = None,
    json: SummaryFile = None,
) -> None:
    """Send messages and print the result of each; with -q, only the summary of several messages.

    Exit codes: 0 all SEND_OK; 1 one was refused, or had no route; 2 wrong use; 3 unknown if one is stored.

    \b
    Example: mqproof send --namesrv 127.0.0.1:9876 --topic T --body hello --count 10

    \b
    Ten requests of a hundred messages each:
      mqproof send --namesrv 127.0.0.1:9876 --topic T --size 100 --count 1000 --batch 100 --quiet

    \b
    Deliver in an hour, with a key to find the message:
      mqproof send --namesrv 127.0.0.1:9876 --topic T --body later --delay-level 17 --keys order-7
    """
    from mqproof.impl.command import sending

    texts = {"topic": topic, "body": body, "tags": tags, "keys": keys, "group": group}
    inputs.check_text("send", **texts, sharding_key=sharding_key, property=" ".join(property or ()))
    job = sending.SendJob(
        name_servers=inputs.name_servers("send", namesrv),
        topic=topic,
        body=_body(body, size),
        properties=_message_properties(topic, tags, keys, delay_level, property or []),
        count=count,
        outstanding=outstanding,
        timeout_ms=timeout_ms,
        until_stored=until_stored,
        show=None if _is_quiet() or str(json) == "-" else print,
        group=group,
        batch=batch,
        sharding_key=sharding_key,
        credentials=inputs.read_account("send", account),
    )
    runtime, log = inputs.new_runtime("send", tls), inputs.client_event_log("send", events)
    summary = run_command("send", sending.send(job, runtime, log))
    _show_summary(summary, json)
    raise typer.Exit(summary.exit_code)


@app.command()
def consume(
    namesrv: NameServers,
    topic: Topic,
    group: ConsumerGroup,
    count: CountMax = None,
    from_min: FromMin = False,
    from_max: FromMax = False,
    from_time: FromTime = None,
    share: Share = False,
    orderly: Orderly = False,
    follow: Follow = False,
    idle_ms: IdleMs = None,
    tags: Tags = "*",
    sql: Sql = None,
    as_json: AsJson = False,
    events: Events = None,
    tls: TlsFile = None,
    account: AccountFile = None,
) -> None:
    """Consume a topic's messages and commit the offsets; stop when no message is left.

    Each line has the queue, the queue offset, the message id and the body. Each queue is shown in order.

    \b
    Example: mqproof consume --namesrv 127.0.0.1:9876 --topic T --group G --from-min

    \b
    New messages only, with all their fields:
      mqproof consume --namesrv 127.0.0.1:9876 --topic T --group G --from-max --follow --json

    \b
    As one of several members that divide the queues; start it more than once:
      mqproof consume --namesrv 127.0.0.1:9876 --topic T --group G --share --follow
    """
    from mqproof.impl.command import consuming

    begin = _begin(from_min=from_min, from_max=from_max, from_time=from_time is not None)
    inputs.check_text("consume", topic=topic, group=group, tags=tags)
    job = consuming.ConsumeJob(
        name_servers=inputs.name_servers("consume", namesrv),
        topic=topic,
        group=group,
        count_max=count,
        begin=begin,
        begin_ms=int(from_time.timestamp() * 1000) if from_time else 0,
        follow=follow,
        idle_ms_max=idle_ms,
        tags=_selector(tags, sql),
        as_json=as_json,
        show=print,
        credentials=inputs.read_account("consume", account),
    )
    if orderly and not share:
        fail("consume", "--orderly needs --share")
    shared = consuming.consume_assigned_in_order if orderly else consuming.consume_assigned
    work = shared if share else consuming.consume
    runtime, log = inputs.new_runtime("consume", tls), inputs.client_event_log("consume", events)
    run_command("consume", work(job, runtime, log))


def _serve(
    command: str,
    servers: dict[str, Any],
    runtime: "Runtime",
    metrics: "MetricsConfig",
    ready_file: Path | None = None,
) -> None:
    from mqproof.impl.runtime.ready_file import ReadyFile
    from mqproof.impl.runtime.serving import until_signal

    all_servers = with_metrics(servers, metrics, runtime)
    announced = None if ready_file is None else ReadyFile(ready_file)
    run_command(command, until_signal(all_servers, runtime.supervisor, announced))


def _both_servers(
    setup: "BrokerConfig", namesrv_port: int, runtime: "Runtime", events: Path | None
) -> dict[str, Any]:
    """Return how a name server is made, and a broker that registers there."""
    from dataclasses import replace

    from mqproof.impl.broker.broker import Broker
    from mqproof.impl.namesrv.config import NameServerConfig
    from mqproof.impl.namesrv.server import NameServer

    kv_path = f"{setup.store_directory}/namesrv/kvConfig.json"
    names = NameServerConfig(host=setup.host, port=namesrv_port, kv_path=kv_path)
    return {
        "namesrv": lambda _: NameServer(names, runtime, inputs.server_event_log(events, "namesrv")),
        "broker": lambda known: Broker(
            replace(setup, name_servers=(known["namesrv"],)),
            runtime,
            inputs.server_event_log(events, setup.name),
        ),
    }


def _refuse_with_ephemeral(host: str, options: Mapping[str, object]) -> None:
    """End the command if an option has no effect on a broker in memory."""
    from mqproof.impl.command.ephemeral import LOOPBACK

    if host != LOOPBACK:
        fail("serve", f"--host is {host}: with --ephemeral, only {LOOPBACK} is possible")
    given = [name for name, value in options.items() if value is not None]
    if given:
        fail("serve", f"--{given[0]} has no effect with --ephemeral: everything is in memory")


def _serve_ephemeral(
    config: Path | None, name: str | None, ports: tuple[int, int, int | None], ready_file: Path | None
) -> None:
    from mqproof.impl.command.ephemeral import servers
    from mqproof.impl.runtime.properties import ConfigError
    from mqproof.impl.runtime.ready_file import ReadyFile
    from mqproof.impl.runtime.serving import until_signal

    try:
        made = servers(config, name, *ports)
    except (ConfigError, OSError) as error:
        fail("serve", one_line(error))
    announced = None if ready_file is None else ReadyFile(ready_file)
    run_command("serve", until_signal(made, ready_file=announced))


def _broker_address(text: str) -> "Address":
    from mqproof.impl.runtime.network import Address

    try:
        return Address.parse(text)
    except ValueError as error:
        fail("filter-server", f"--broker: {error}")


def _is_quiet() -> bool:
    """Return whether the command was started with --quiet, or logs errors only."""
    return not logging.getLogger("mqproof").isEnabledFor(logging.WARNING)


def _show_summary(summary: "SendSummary", json: Path | None) -> None:
    """Print the summary of several messages, and write it to the given file."""
    if summary.count > 1 and str(json) != "-":
        print(summary)
    if json is not None:
        write_json("send", json, summary.as_json())


def _body(body: str | None, size: int | None) -> bytes:
    if (body is None) == (size is None):
        fail("send", "give either --body TEXT or --size BYTES")
    return body.encode() if body is not None else b"m" * (size or 0)


def _selector(tags: str, sql: str | None) -> "MessageSelector":
    from mqproof.impl.client.message_selector import MessageSelector

    if sql is not None and tags != "*":
        fail("consume", "--tags and --sql cannot be used together")
    try:
        return MessageSelector.tag(tags) if sql is None else MessageSelector.sql(sql)
    except ValueError as error:
        text = str(error).replace("MessageSelector.sql(...)", "--sql")
        fail("consume", text)


def _message_properties(
    topic: str, tags: str | None, keys: str | None, delay_level: int, pairs: list[str]
) -> dict[str, str]:
    """Return the properties that every message of `send` has."""
    from mqproof.impl.client.messages.compose import new_message
    from mqproof.impl.client.model import MessageError

    own = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            fail("send", f"--property is {pair!r}, NAME=VALUE expected")
        own[name] = value
    try:
        message = new_message(
            topic, b"", tag=tags, keys=(keys or "").split(), delay_level=delay_level, properties=own
        )
    except MessageError as error:
        fail("send", str(error))
    return dict(message.properties)


def _begin(*, from_min: bool, from_max: bool, from_time: bool) -> "Begin":
    """Return where `consume` begins: at most one option names it."""
    from mqproof.impl.command.consuming import Begin

    given = {Begin.MIN: from_min, Begin.MAX: from_max, Begin.TIME: from_time}
    begins = [begin for begin, is_given in given.items() if is_given]
    if len(begins) > 1:
        fail("consume", "give one of --from-min, --from-max and --from-time")
    return begins[0] if begins else Begin.COMMITTED
