"""`mqproof namesrv | broker | serve | send | consume`: the servers and the client tools."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="0 is any free port.")]
Events = Annotated[Path | None, typer.Option(help="Write the event log here (NDJSON, appended).")]
Config = Annotated[Path | None, typer.Option("--config", "-c", help="A RocketMQ properties file.")]
Store = Annotated[Path | None, typer.Option(help="Directory of the store; made if missing.")]
Flush = Annotated[str | None, typer.Option(help="SYNC_FLUSH or ASYNC_FLUSH.")]
_NAME_SERVERS = "HOST:PORT, several separated by ';', or the URL of an address server."
NameServers = Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help=_NAME_SERVERS)]
TlsFile = Annotated[
    Path | None, typer.Option("--tls", help="A tls.properties: keys, certificates, what is trusted.")
]
AccountFile = Annotated[
    Path | None,
    typer.Option("--account", help="A tools.yml: accessKey and secretKey, to sign requests with."),
]
Topic = Annotated[str, typer.Option(help="Topic.")]


@app.callback()
def main() -> None:
    """RocketMQ-compatible servers and client tools."""


@app.command()
def namesrv(
    host: Host = "127.0.0.1",
    port: Port = None,
    store: Annotated[
        Path | None, typer.Option(help="Directory of kvConfig.json, made when needed; else store/namesrv.")
    ] = None,
    events: Events = None,
    config: Config = None,
    tls: TlsFile = None,
) -> None:
    """Run a name server until SIGTERM. Options win over the properties file.

    \b
    Example: mqproof namesrv --port 9876
    """
    from mqproof.impl.namesrv.config import OPTIONS, NameServerConfig
    from mqproof.impl.namesrv.server import NameServer

    given = {
        "port": port,
        "kv_path": f"{store}/kvConfig.json" if store else None,
        "config_path": str(config) if config else None,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    runtime = new_runtime("namesrv", tls)
    setup = NameServerConfig(host=host, **{**_read_properties(config, OPTIONS), **chosen})
    _serve("namesrv", {"namesrv": lambda _: NameServer(setup, runtime, _event_log(events, "namesrv"))})


@app.command()
def broker(
    namesrv: Annotated[str | None, typer.Option(help=f"{_NAME_SERVERS} It registers there.")] = None,
    host: Host = "127.0.0.1",
    port: Port = None,
    store: Store = None,
    flush: Flush = None,
    name: Annotated[str | None, typer.Option(help="The broker's name.")] = None,
    role: Annotated[
        str | None, typer.Option(help="ASYNC_MASTER, SYNC_MASTER or SLAVE; without it nobody can follow.")
    ] = None,
    broker_id: Annotated[
        int | None, typer.Option(min=0, help="0 is the master; its slaves have its name and a number each.")
    ] = None,
    ha_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Where slaves connect; by default the port + 1.")
    ] = None,
    ha_master: Annotated[
        str | None, typer.Option(help="HOST:PORT where its master takes a slave; else name servers tell.")
    ] = None,
    peers: Annotated[
        str | None,
        typer.Option(help="Be a member of a group that elects its master: n0-HOST:PORT;n1-HOST:PORT;..."),
    ] = None,
    self_id: Annotated[str | None, typer.Option(help="With --peers: which of them this one is.")] = None,
    events: Events = None,
    config: Config = None,
    tls: TlsFile = None,
) -> None:
    """Run a broker until SIGTERM. Options win over the properties file.

    \b
    Example: mqproof broker --namesrv 127.0.0.1:9876 --store /var/lib/mq --flush SYNC_FLUSH

    \b
    A slave of a broker of that name:
      mqproof broker --namesrv 127.0.0.1:9876 --store /var/lib/mq-1 --port 10921 --role SLAVE --broker-id 1

    The first of three that elect their master; n1 and n2 have ports and stores of their own:
    mqproof broker --namesrv 127.0.0.1:9876 --store /var/lib/mq-n0 --self-id n0 --peers
    "n0-127.0.0.1:40911;n1-127.0.0.1:40921;n2-127.0.0.1:40931"
    """
    from mqproof.impl.broker.broker import Broker

    name_servers = _addresses("broker", namesrv) if namesrv else None
    setup = _broker_config(
        "broker",
        config,
        host=host,
        port=port,
        store=store,
        flush=flush,
        name=name,
        name_servers=name_servers,
        role=role,
        broker_id=broker_id,
        ha_port=ha_port,
        ha_master=_address("broker", "--ha-master", ha_master),
        is_member=True if peers else None,
        peers=_peers("broker", peers),
        self_id=self_id,
    )
    runtime = new_runtime("broker", tls)
    _serve("broker", {"broker": lambda _: Broker(setup, runtime, _event_log(events, setup.node))})


@app.command()
def serve(
    host: Host = "127.0.0.1",
    namesrv_port: Port = 9876,
    broker_port: Port = None,
    store: Store = None,
    flush: Flush = None,
    name: Annotated[str | None, typer.Option(help="The broker's name.")] = None,
    events: Events = None,
    config: Config = None,
    tls: TlsFile = None,
) -> None:
    """Run a name server and a broker in one process until SIGTERM.

    \b
    Example: mqproof serve --namesrv-port 0 --broker-port 0 --store build/store --flush SYNC_FLUSH
    """
    from dataclasses import replace

    from mqproof.impl.broker.broker import Broker
    from mqproof.impl.namesrv.config import NameServerConfig
    from mqproof.impl.namesrv.server import NameServer

    setup = _broker_config("serve", config, host=host, port=broker_port, store=store, flush=flush, name=name)
    names = NameServerConfig(
        host=host,
        port=9876 if namesrv_port is None else namesrv_port,
        kv_path=f"{setup.store_directory}/namesrv/kvConfig.json",
    )
    runtime = new_runtime("serve", tls)
    _serve(
        "serve",
        {
            "namesrv": lambda _: NameServer(names, runtime, _event_log(events, "namesrv")),
            "broker": lambda known: Broker(
                replace(setup, name_servers=(known["namesrv"],)), runtime, _event_log(events, setup.name)
            ),
        },
    )


@app.command()
def send(
    namesrv: NameServers,
    topic: Topic,
    body: Annotated[str | None, typer.Option(help="The body, as UTF-8.")] = None,
    count: Annotated[int, typer.Option(min=1, help="How many messages.")] = 1,
    size: Annotated[int | None, typer.Option(min=1, help="Instead of --body: so many bytes.")] = None,
    outstanding: Annotated[int, typer.Option(min=1, help="How many sends at once.")] = 1,
    tags: Annotated[str | None, typer.Option(help="The message's tag.")] = None,
    keys: Annotated[str | None, typer.Option(help="Keys, separated by spaces.")] = None,
    property: Annotated[  # noqa: A002  # the option's name
        list[str] | None, typer.Option(help="NAME=VALUE, for the application; may be given again.")
    ] = None,
    delay_level: Annotated[
        int, typer.Option(min=0, max=18, help="Deliver later: 1 is 1 s, 3 is 10 s, 18 is 2 h.")
    ] = 0,
    batch: Annotated[int, typer.Option(min=1, help="Messages in one request.")] = 1,
    sharding_key: Annotated[
        str | None, typer.Option(help="To the queue of this key, so that its messages stay in order.")
    ] = None,
    group: Annotated[str, typer.Option(help="The producer group.")] = "mqproof_producer",
    timeout_ms: Annotated[int, typer.Option(min=1, help="For each send, retries included.")] = 3000,
    until_stored: Annotated[
        bool,
        typer.Option(
            "--until-stored", help="Send each message again, with the same id, until it is answered SEND_OK."
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the summary only.")] = False,
    events: Events = None,
    tls: TlsFile = None,
    account: AccountFile = None,
    json: Annotated[Path | None, typer.Option(help="Write the summary here, - is standard output.")] = None,
) -> None:
    """Send messages and print the result of each.

    Exit code 0: all SEND_OK. 1: one was refused. 3: of one it is not known whether it is stored and durable.

    \b
    Example: mqproof send --namesrv 127.0.0.1:9876 --topic T --body hello --count 10

    \b
    Ten requests of a hundred messages each:
      mqproof send --namesrv 127.0.0.1:9876 --topic T --size 100 --count 1000 --batch 100 --quiet

    \b
    In an hour, to be found by its key:
      mqproof send --namesrv 127.0.0.1:9876 --topic T --body later --delay-level 17 --keys order-7
    """
    from mqproof.impl.client.compose import new_message
    from mqproof.impl.client.model import MessageError
    from mqproof.impl.command import send_consume

    texts = {"topic": topic, "body": body, "tags": tags, "keys": keys, "group": group}
    _check_text("send", **texts, sharding_key=sharding_key, property=" ".join(property or ()))
    if (body is None) == (size is None):
        fail("send", "give either --body TEXT or --size BYTES")
    own = _properties(property or [])
    try:
        first = new_message(
            topic, b"", tag=tags, keys=(keys or "").split(), delay_level=delay_level, properties=own
        )
    except MessageError as error:
        fail("send", str(error))
    job = send_consume.SendJob(
        name_servers=_addresses("send", namesrv),
        topic=topic,
        body=body.encode() if body is not None else b"m" * (size or 0),
        properties=first.properties,
        count=count,
        outstanding=outstanding,
        timeout_ms=timeout_ms,
        until_stored=until_stored,
        show=None if quiet or str(json) == "-" else print,
        group=group,
        batch=batch,
        sharding_key=sharding_key,
        credentials=read_account("send", account),
    )
    summary = _run("send", send_consume.send(job, new_runtime("send", tls), _client_log("send", events)))
    if count > 1 and str(json) != "-":
        print(summary)
    if json is not None:
        write_json("send", json, summary.as_json())
    raise typer.Exit(summary.exit_code)


@app.command()
def consume(
    namesrv: NameServers,
    topic: Topic,
    group: Annotated[str, typer.Option(help="The consumer group whose offsets are used.")],
    count: Annotated[int | None, typer.Option(min=1, help="Stop after so many messages.")] = None,
    from_min: Annotated[
        bool, typer.Option("--from-min", help="Begin at each queue's first message.")
    ] = False,
    from_max: Annotated[
        bool, typer.Option("--from-max", help="Begin behind each queue's last message.")
    ] = False,
    from_time: Annotated[
        datetime | None, typer.Option(help="Begin at what was stored then; local time, to the second.")
    ] = None,
    share: Annotated[
        bool,
        typer.Option(
            "--share",
            help="Consume only this member's share of the queues; where to begin counts for a group without"
            " an offset.",
        ),
    ] = False,
    orderly: Annotated[
        bool,
        typer.Option(
            "--orderly", help="With --share: lock each queue, so that no two members consume it at once."
        ),
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="At the end wait for more; wait for a broker that is away."),
    ] = False,
    idle_ms: Annotated[
        int | None, typer.Option(min=1, help="With --follow: stop after so long without a message.")
    ] = None,
    tags: Annotated[str, typer.Option(help="`TagA || TagB`, * is all.")] = "*",
    as_json: Annotated[bool, typer.Option("--json", help="Each line is a JSON object.")] = False,
    events: Events = None,
    tls: TlsFile = None,
    account: AccountFile = None,
) -> None:
    """Consume a topic's messages and commit the offsets; stop when nothing is left.

    Each line: queue, queue offset, message id, body. Each queue comes in its order.

    \b
    Example: mqproof consume --namesrv 127.0.0.1:9876 --topic T --group G --from-min

    \b
    What comes from now on, with everything known of it:
      mqproof consume --namesrv 127.0.0.1:9876 --topic T --group G --from-max --follow --json

    \b
    As one of several that share the work; start it more than once:
      mqproof consume --namesrv 127.0.0.1:9876 --topic T --group G --share --follow
    """
    from mqproof.impl.command import send_consume
    from mqproof.impl.command.send_consume import Begin

    asked = {Begin.MIN: from_min, Begin.MAX: from_max, Begin.TIME: from_time is not None}
    begins = [begin for begin, given in asked.items() if given]
    if len(begins) > 1:
        fail("consume", "give one of --from-min, --from-max and --from-time")

    _check_text("consume", topic=topic, group=group, tags=tags)
    job = send_consume.ConsumeJob(
        name_servers=_addresses("consume", namesrv),
        topic=topic,
        group=group,
        count_max=count,
        begin=begins[0] if begins else Begin.COMMITTED,
        begin_ms=int(from_time.timestamp() * 1000) if from_time else 0,
        follow=follow,
        idle_ms_max=idle_ms,
        tags=tags,
        as_json=as_json,
        show=print,
        credentials=read_account("consume", account),
    )
    if orderly and not share:
        fail("consume", "--orderly is for members that --share")
    work = (send_consume.share_in_order if orderly else send_consume.share) if share else send_consume.consume
    _run("consume", work(job, new_runtime("consume", tls), _client_log("consume", events)))


# What the commands share.


def _serve(command: str, servers: dict[str, Any]) -> None:
    from mqproof.impl.runtime.serving import until_signal

    _run(command, until_signal(servers))


def _run(command: str, main: Any) -> Any:
    """Run to the end; what the user can mend becomes one line, and nothing else does."""
    from mqproof.impl.client.model import ClientError, MessageError
    from mqproof.impl.runtime.properties import ConfigError
    from mqproof.impl.runtime.serving import run
    from mqproof.impl.store.errors import StoreError
    from mqproof.spec.events import EventError

    try:
        return run(main)
    except (ConfigError, StoreError, ClientError, MessageError, EventError, OSError) as error:
        fail(command, one_line(error))


def fail(command: str, message: str) -> NoReturn:
    """Ends the command for wrong use or bad input."""
    typer.echo(f"mqproof {command}: {message}", err=True)
    raise typer.Exit(2)


def one_line(error: Exception) -> str:
    """What went wrong, with the file's name if there is one."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def new_runtime(command: str, tls: Path | None) -> Any:
    """The real world, over TLS as the file says."""
    from mqproof.impl.runtime.network import AsyncioNetwork
    from mqproof.impl.runtime.properties import ConfigError
    from mqproof.impl.runtime.runtime import production
    from mqproof.impl.runtime.tls_file import load

    try:
        return production(AsyncioNetwork(), load(str(tls)) if tls else None)
    except (ConfigError, OSError, UnicodeDecodeError) as error:
        fail(command, one_line(error))


def read_account(command: str, path: Path | None) -> Any:
    """In whose name requests are signed, None for nobody's."""
    from mqproof.impl.remoting.account_file import parse
    from mqproof.impl.runtime.properties import ConfigError

    try:
        return parse(_read_text(path), str(path)) if path else None
    except (ConfigError, OSError) as error:
        fail(command, one_line(error))


def _event_log(path: Path | None, node: str) -> Any:
    from mqproof.impl.runtime.clock import SystemClock
    from mqproof.impl.runtime.event_log import EventLog

    return EventLog.to_file(str(path), node, SystemClock()) if path else None


def _client_log(command: str, path: Path | None) -> Any:
    """A client is named for its log: several of them must not share a node's numbering of events."""
    from mqproof.spec.events import EventError

    try:
        return _event_log(path, path.stem) if path else None
    except (OSError, EventError) as error:
        fail(command, one_line(error))


def _check_text(command: str, **options: str | None) -> None:
    """A command line may hold any bytes; what goes over the wire is Unicode text."""
    for option, value in options.items():
        try:
            (value or "").encode()
        except UnicodeEncodeError:
            fail(command, f"--{option} is {value!r}, UTF-8 text expected")


def _properties(pairs: list[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            fail("send", f"--property is {pair!r}, NAME=VALUE expected")
        found[name] = value
    return found


def _addresses(command: str, text: str) -> Any:
    from mqproof.impl.remoting.address_server import parse

    try:
        return parse(text) or fail(command, "--namesrv: HOST:PORT expected")
    except ValueError as error:
        fail(command, f"--namesrv: {error}")


def _address(command: str, option: str, text: str | None) -> Any:
    from mqproof.impl.runtime.network import Address

    try:
        return Address.parse(text) if text else None
    except ValueError as error:
        fail(command, f"{option}: {error}")


def _broker_config(
    command: str,
    path: Path | None,
    *,
    host: str,
    port: int | None,
    store: Path | None,
    flush: str | None,
    name: str | None,
    name_servers: Any = None,
    role: str | None = None,
    **others: Any,
) -> Any:
    from mqproof.impl.broker.config import BrokerConfig, read, with_changes
    from mqproof.impl.replication.config import Role
    from mqproof.impl.runtime.properties import ConfigError
    from mqproof.impl.store.config import FlushMode

    try:
        config = BrokerConfig()
        if path is not None:
            config, unknown = read(_read_text(path), str(path))
            _mention_unknown(path, unknown)
        if flush is not None and flush not in list(FlushMode):
            raise ConfigError(f"--flush is {flush!r}, {' or '.join(FlushMode)} expected")
        if role is not None and role not in list(Role):
            raise ConfigError(f"--role is {role!r}, {' or '.join(Role)} expected")
        changes = {
            "host": host,
            "port": port,
            "store_directory": str(store) if store else None,
            "config_path": str(path) if path else None,
            "flush_mode": FlushMode(flush) if flush else None,
            "name": name,
            "name_servers": name_servers,
            "role": Role(role) if role else None,
            **others,
        }
        return with_changes(config, changes)
    except (ConfigError, OSError) as error:
        fail(command, one_line(error))


def _peers(command: str, text: str | None) -> Any:
    from mqproof.impl.dledger.config import parse_peers

    try:
        return parse_peers(text) if text else None
    except ValueError as error:
        fail(command, f"--peers is {text!r}, {error} expected")


def _read_properties(path: Path | None, options: Any) -> dict[str, Any]:
    from mqproof.impl.runtime.properties import ConfigError, apply, parse

    if path is None:
        return {}
    try:
        properties = parse(_read_text(path), str(path))
        _mention_unknown(path, tuple(key for key in properties if key not in options))
        return apply(properties, options)
    except (ConfigError, OSError) as error:
        fail("namesrv", one_line(error))


def _read_text(path: Path) -> str:
    from mqproof.impl.runtime.properties import ConfigError

    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text: {error}") from None


def _mention_unknown(path: Path, keys: tuple[str, ...]) -> None:
    if keys:
        typer.echo(f"{path}: not used: {', '.join(keys)}", err=True)


def write_json(command: str, path: Path, text: str) -> None:
    """To the file, or to the terminal when it is called `-`."""
    if str(path) == "-":
        print(text)
        return
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        fail(command, f"--json {one_line(error)}")
