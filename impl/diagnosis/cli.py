"""`mqproof diagnose`: what happened to a message, or why a group receives nothing."""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mqproof.impl.terminal.errors import fail, one_line
from mqproof.impl.terminal.inputs import check_text, name_servers, new_runtime, read_account
from mqproof.impl.terminal.options import NAME_SERVERS_HELP, AccountFile, TlsFile
from mqproof.impl.terminal.output import write_json

if TYPE_CHECKING:
    from mqproof.impl.diagnosis.evidence import Answer
    from mqproof.impl.diagnosis.question import Question

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_NAME: Final = "diagnose"
_NO_ANSWER: Final = 4

MessageId = Annotated[
    str | None, typer.Argument(metavar="[MSG_ID]", help="Unique key or offset message id of the message.")
]
Key = Annotated[str | None, typer.Option(help="Diagnose the newest messages with this key (KEYS).")]
Topic = Annotated[str | None, typer.Option(help="Topic of the message, or of the group's backlog.")]
Group = Annotated[str | None, typer.Option(help="Consumer group; by default every group of the topic.")]
Namesrv = Annotated[str | None, typer.Option(envvar="NAMESRV_ADDR", help=NAME_SERVERS_HELP)]
Log = Annotated[
    list[Path] | None,
    typer.Option(metavar="PATH", help="Event log, or a folder of logs; may be repeated."),
]
Json = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the result to this file; - is standard output.")
]


@app.callback()
def main() -> None:
    """Diagnosis of single messages and groups."""


@app.command(_NAME)
def diagnose(
    msg_id: MessageId = None,
    key: Key = None,
    topic: Topic = None,
    group: Group = None,
    namesrv: Namesrv = None,
    log: Log = None,
    json: Json = None,
    tls: TlsFile = None,
    account: AccountFile = None,
) -> None:
    """Find out what happened to a message, or why a group does not receive the messages of a topic.

    The answer is one documented cause, the evidence for it, and the next step. The cluster is only read.

    \b
    Name one of:
      MSG_ID                   one message, for each group or for --group
      --key KEY                the newest messages with the key; needs --topic or --log
      --topic T --group G      the backlog of a group

    Exit codes: 0 the message takes its course; 1 it does not: lost, skipped, never stored, a dead letter, or
    waiting for a repair; 2 wrong use or bad input; 3 unknown; 4 no name server answered.

    \b
    Examples:
      mqproof diagnose 7F0000019DC71A6E04307C2B66C20001 --topic Orders --namesrv 127.0.0.1:9876
      mqproof diagnose --key order-7 --topic Orders --group billing --log logs/
      mqproof diagnose --topic Orders --group billing
    """
    from mqproof.impl.diagnosis import report
    from mqproof.impl.diagnosis.question import Question

    question = Question(msg_id, key, topic, group)
    check_text(_NAME, msg_id=msg_id, key=key, topic=topic, group=group)
    _check(question, namesrv, log)
    found = _answers(question, namesrv, log or (), tls, account)
    if json is None or str(json) != "-":
        for line in report.lines(found, _width()) or [f"no message with key {key} is known"]:
            typer.echo(line)
    _write(json, report.as_json(found))
    raise typer.Exit(report.exit_code(found))


def _width() -> int | None:
    """Return the width of the terminal; None if the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _answers(
    question: "Question", namesrv: str | None, paths: Iterable[Path], tls: Path | None, account: Path | None
) -> "tuple[Answer, ...]":
    """Read the logs and the cluster, and return the answers. Errors end the command with one line."""
    from mqproof.impl.admin.admin import Admin
    from mqproof.impl.client.model import ClientError
    from mqproof.impl.diagnosis.cluster import SearchError
    from mqproof.impl.diagnosis.log_files import LogError, find_logs
    from mqproof.impl.diagnosis.question import answers
    from mqproof.impl.runtime.serving import run

    servers = name_servers(_NAME, namesrv) if namesrv else None
    runtime, credentials = new_runtime(_NAME, tls), read_account(_NAME, account)

    async def work() -> "tuple[Answer, ...]":
        logs = find_logs(paths)
        if servers is None:
            return await answers(question, None, logs, runtime)
        async with Admin(servers, runtime, credentials) as admin:
            return await answers(question, admin, logs, runtime)

    try:
        return run(work())
    except (LogError, SearchError) as error:
        fail(_NAME, one_line(error))
    except ClientError as error:
        fail(_NAME, str(error), _NO_ANSWER)


def _check(question: "Question", namesrv: str | None, log: list[Path] | None) -> None:
    named = [each for each in (question.message_id, question.key) if each]
    if len(named) > 1:
        fail(_NAME, "MSG_ID and --key: give one of them")
    if not named and not (question.topic and question.group):
        fail(_NAME, "name a message by MSG_ID or --key, or a backlog by --topic and --group")
    if not named and not namesrv:
        fail(_NAME, "--topic and --group: a running cluster is needed, with --namesrv HOST:PORT")
    if not namesrv and not log:
        fail(_NAME, "no evidence: give --namesrv HOST:PORT, --log PATH, or both")
    if question.key and not question.topic and not log:
        fail(_NAME, "--key: brokers find a key only with --topic")


def _write(path: Path | None, value: object) -> None:
    import msgspec

    if path is not None:
        write_json(_NAME, path, msgspec.json.format(msgspec.json.encode(value)).decode())
