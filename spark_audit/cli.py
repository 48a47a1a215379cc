"""Mounts the commands of `mqproof audit`: run, cluster, explain, watch and generate (command/)."""

import typer

from mqproof.report.option_groups import with_groups
from mqproof.spark_audit.command import (
    cluster_command,
    explain_command,
    generate_command,
    run_command,
    watch_command,
)

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
audit_app = typer.Typer(no_args_is_help=True)
app.add_typer(audit_app, name="audit", help="Find lost, duplicated, reordered and phantom messages.")


@app.callback()
def _root() -> None:
    """Keeps `audit` a command of its own."""


for name, command, examples in (
    ("run", run_command.run, run_command.EXAMPLES),
    ("cluster", cluster_command.audit_cluster, cluster_command.EXAMPLES),
    ("explain", explain_command.explain_message, explain_command.EXAMPLES),
    ("watch", watch_command.watch_logs, watch_command.EXAMPLES),
    ("generate", generate_command.generate, generate_command.EXAMPLES),
):
    audit_app.command(name=name, epilog=examples)(with_groups(command))


__all__ = ["app"]
