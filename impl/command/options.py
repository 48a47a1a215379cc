"""The options of the servers and of the client tools, grouped by command, as annotated types for Typer."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from mqproof.impl.terminal.options import NAME_SERVERS_HELP

# Servers.
Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 selects any free port.")
]
NameServerPort = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        help="Port of the name server; 0 selects any free port. By default 9876; with --ephemeral, 0.",
    ),
]
BrokerPort = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Port of the broker; 0 selects any free port.")
]
Config = Annotated[
    Path | None, typer.Option("--config", "-c", metavar="FILE", help="A RocketMQ properties file.")
]
Store = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Directory of the store; created if missing.")
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        help="Port for /metrics, /healthz and /readyz over HTTP, on the loopback address; 0 selects any free"
        " port. Off by default.",
    ),
]
Ephemeral = Annotated[
    bool,
    typer.Option("--ephemeral", help="Keep everything in memory, on free ports of the loopback address."),
]
ReadyFilePath = Annotated[
    Path | None,
    typer.Option(
        "--ready-file", metavar="FILE", help="Write the addresses as JSON when ready; removed at the stop."
    ),
]
Control = Annotated[
    int | None,
    typer.Option(
        "--control",
        metavar="PORT",
        min=0,
        max=65535,
        help="With --ephemeral: port of the HTTP interface for tests, on the loopback address; 0 selects any"
        " free port.",
    ),
]
KvStore = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Directory of kvConfig.json; created when needed.")
]
Flush = Annotated[str | None, typer.Option(help="SYNC_FLUSH or ASYNC_FLUSH.")]
BrokerName = Annotated[str | None, typer.Option(help="The broker's name.")]
RegisterAt = Annotated[str | None, typer.Option(help=f"{NAME_SERVERS_HELP} The broker registers there.")]

# A filter server.
FilteredBroker = Annotated[
    str, typer.Option("--broker", metavar="HOST:PORT", help="The broker whose messages it filters.")
]
FilterServerPort = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 selects any free port.")
]
AdvertisedHost = Annotated[
    str | None, typer.Option(metavar="HOST", help="The host that consumers connect to; by default --host.")
]
ModuleKib = Annotated[int, typer.Option(min=1, max=4096, help="The largest module, in KiB.")]
FunctionsMax = Annotated[
    int, typer.Option("--functions", min=1, max=10_000, help="How many functions it keeps.")
]
MemoryMib = Annotated[
    int, typer.Option(min=1, max=1024, help="The memory of a function, with the message, in MiB.")
]
Fuel = Annotated[
    int, typer.Option(min=1000, max=10**12, help="About how many instructions a function has per message.")
]

# Master and slave.
BrokerRole = Annotated[
    str | None,
    typer.Option(help="ASYNC_MASTER, SYNC_MASTER or SLAVE; without it the broker accepts no slave."),
]
BrokerId = Annotated[
    int | None, typer.Option(min=0, help="0 is the master; each slave has the master's name and its own id.")
]
HaPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Port on which slaves connect; by default the broker's port + 1."),
]
HaMaster = Annotated[
    str | None,
    typer.Option(help="HOST:PORT on which the master accepts slaves; by default from the name servers."),
]

# A group that elects its master.
Peers = Annotated[
    str | None,
    typer.Option(help="Be a member of a group that elects its master: n0-HOST:PORT;n1-HOST:PORT;..."),
]
SelfId = Annotated[str | None, typer.Option(help="With --peers: the id of this member.")]

# What `send` sends.
Body = Annotated[str | None, typer.Option(help="The body, as UTF-8.")]
Size = Annotated[int | None, typer.Option(min=1, help="Instead of --body: a body of this many bytes.")]
Tag = Annotated[str | None, typer.Option(help="The message's tag.")]
Keys = Annotated[str | None, typer.Option(help="Keys, separated by spaces.")]
Properties = Annotated[
    list[str] | None, typer.Option(help="NAME=VALUE, for the application; may be repeated.")
]
DelayLevel = Annotated[
    int, typer.Option(min=0, max=18, help="Deliver later: 1 is 1 s, 3 is 10 s, 18 is 2 h.")
]
ShardingKey = Annotated[
    str | None, typer.Option(help="Send to the queue of this key, so that its messages stay in order.")
]

# How `send` sends.
Count = Annotated[int, typer.Option(min=1, help="Number of messages.")]
Outstanding = Annotated[int, typer.Option(min=1, help="Maximum number of concurrent sends.")]
Batch = Annotated[int, typer.Option(min=1, help="Messages in one request.")]
ProducerGroup = Annotated[str, typer.Option(help="The producer group.")]
TimeoutMs = Annotated[
    int, typer.Option(min=1, help="Timeout of each send in milliseconds, retries included.")
]
UntilStored = Annotated[
    bool,
    typer.Option(
        "--until-stored", help="Send each message again, with the same id, until it is answered SEND_OK."
    ),
]
SummaryFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the summary to this file; - is standard output.")
]

# What `consume` consumes, and where it begins.
ConsumerGroup = Annotated[str, typer.Option(help="The consumer group whose offsets are used.")]
Tags = Annotated[str, typer.Option(help="`TagA || TagB`; * selects all messages.")]
Sql = Annotated[
    str | None,
    typer.Option(
        metavar="EXPRESSION",
        help="Select by the properties of messages, such as `price > 10`. The broker must allow it.",
    ),
]
FromMin = Annotated[bool, typer.Option("--from-min", help="Start at the first message of each queue.")]
FromMax = Annotated[bool, typer.Option("--from-max", help="Start after the last message of each queue.")]
FromTime = Annotated[
    datetime | None, typer.Option(help="Start at the messages stored at this local time, to the second.")
]

# How `consume` consumes, and when it ends.
CountMax = Annotated[int | None, typer.Option(min=1, help="Stop after this many messages.")]
Share = Annotated[
    bool,
    typer.Option(
        "--share",
        help="Consume only the queues of this member; --from-... applies to queues without an offset.",
    ),
]
Orderly = Annotated[
    bool,
    typer.Option(
        "--orderly", help="With --share: lock each queue, so that no two members consume it at once."
    ),
]
Follow = Annotated[
    bool, typer.Option("--follow", help="Wait for more messages at the end, and for brokers that are down.")
]
IdleMs = Annotated[
    int | None,
    typer.Option(min=1, help="With --follow: stop after this many milliseconds without a message."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print each message as a JSON object.")]
