"""Options that several commands have, as annotated types for Typer."""

from pathlib import Path
from typing import Annotated, Final

import typer

NAME_SERVERS_HELP: Final = "HOST:PORT, several separated by ';', or the URL of an address server."

NameServers = Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help=NAME_SERVERS_HELP)]
Topic = Annotated[str, typer.Option(help="Topic.")]
Events = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Append the event log to this file (NDJSON).")
]
TlsFile = Annotated[
    Path | None,
    typer.Option(
        "--tls", metavar="FILE", help="A tls.properties file: keys, certificates and trusted certificates."
    ),
]
AccountFile = Annotated[
    Path | None,
    typer.Option(
        "--account",
        metavar="FILE",
        help="A tools.yml file with the accessKey and secretKey that sign requests.",
    ),
]
PeerSecretFile = Annotated[
    Path | None,
    typer.Option("--peer-secret", metavar="FILE", help="The peerSecretFile of the group's members."),
]
