"""`mqproof console`: serves the console until SIGTERM."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mqproof.impl.command.options import Host
from mqproof.impl.terminal import inputs
from mqproof.impl.terminal.errors import fail
from mqproof.impl.terminal.options import AccountFile, NameServers, TlsFile
from mqproof.impl.terminal.running import run_command

_PORT = 8080  # config.PORT, which is not imported: help needs no library of the extra

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 selects any free port.")]
_AllowChanges = Annotated[
    bool, typer.Option("--allow-changes", help="Let pages change the cluster; otherwise they only read.")
]
_AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host",
        metavar="NAME",
        help="A host name by which browsers reach the console, beside localhost; may be repeated.",
    ),
]
_NoLogin = Annotated[
    bool,
    typer.Option(
        "--no-login",
        help="Ask for no login: every client that can connect has the rights of --account, or of no account.",
    ),
]
_Certificate = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A certificate (PEM), to serve HTTPS; needs --private-key."),
]
_PrivateKey = Annotated[Path | None, typer.Option(metavar="FILE", help="The key of the certificate (PEM).")]


@app.callback()
def main() -> None:
    """Web pages about a cluster."""


@app.command()
def console(
    namesrv: NameServers,
    host: Host = "127.0.0.1",
    port: _Port = _PORT,
    allow_changes: _AllowChanges = False,
    allowed_host: _AllowedHosts = None,
    no_login: _NoLogin = False,
    certificate: _Certificate = None,
    private_key: _PrivateKey = None,
    tls: TlsFile = None,
    account: AccountFile = None,
) -> None:
    """Serve web pages about a cluster, ours or Apache's, until SIGTERM.

    Dashboard, cluster, topics, consumers, producers, messages and operations. If the brokers check accounts,
    a login asks for one, and the pages have its rights. The dashboard is then sampled with --account.

    Exit codes: 0 stopped by a signal; 2 wrong use, a busy port, or an address where no login is possible.

    \b
    Example: mqproof console --namesrv 127.0.0.1:9876

    \b
    For other machines, which log in with an account of the brokers:
      mqproof console --namesrv 10.0.0.1:9876 --host 0.0.0.0 \\
        --certificate mq.pem --private-key mq.key --account tools.yml \\
        --allowed-host mq.example.org --allow-changes
    """
    from mqproof.impl.console.config import ConsoleConfig
    from mqproof.impl.console.web_server import ConsoleServer
    from mqproof.impl.runtime.serving import until_signal

    if (certificate is None) != (private_key is None):
        fail("console", "--certificate and --private-key must be given together")
    config = ConsoleConfig(
        name_servers=inputs.name_servers("console", namesrv),
        host=host,
        port=port,
        allow_changes=allow_changes,
        allowed_hosts=tuple(allowed_host or ()),
        needs_login=not no_login,
        account=inputs.read_account("console", account),
        certificate=str(certificate) if certificate else None,
        private_key=str(private_key) if private_key else None,
    )
    runtime = inputs.new_runtime("console", tls)
    servers: dict[str, Any] = {"console": lambda _: ConsoleServer(config, runtime)}
    run_command("console", until_signal(servers, runtime.supervisor))
