"""`mqproof chaos`: a run from the start to the verdict, the list of faults, and one line for each mistake."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mqproof import Producer, connect, new_message
from mqproof.conformance.commands.chaos_proxy import app
from mqproof.conformance.history.lines import decode_lines
from mqproof.impl.chaos.fault_table import FAULTS
from mqproof.testing import ThreadedBroker

AT = ("--upstream", "127.0.0.1:1")


def chaos(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["chaos", *map(str, arguments)])


def test_every_fault_is_listed_with_what_permits_it() -> None:
    result = chaos("--list")
    assert result.exit_code == 0
    for fault in FAULTS.values():
        tag = "permitted by " if fault.is_lawful else "UNLAWFUL, breaks "
        assert f"{fault.name} ({tag}{', '.join(fault.permitted_by or fault.breaks)})\n" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--upstream HOST:PORT expected"),
        (("--upstream", "nowhere"), "--upstream: 'nowhere' is not an address, HOST:PORT expected"),
        ((*AT, "--port", 0), "--upstream: name server 127.0.0.1:1: no connection"),
        (
            (*AT, "--host", "0.0.0.0"),
            "give the address for clients with --advertised-host",
        ),
        ((*AT, "--plan", "missing.toml"), "missing.toml: No such file or directory"),
        (
            (*AT, "--fault", "x"),
            "fault 'x': 'x' is not a fault; there are send_answer_lost",
        ),
        (
            (*AT, "--fault", "message_skipped", "--lawful"),
            "message_skipped breaks DELIV-1",
        ),
        ((*AT, "--plan", "p", "--fault", "x"), "give --plan or --fault, not both"),
        ((*AT, "--history", "/"), "--history /: Is a directory"),
        ((*AT, "--tls", "missing.tls"), "missing.tls: No such file or directory"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: tuple[object, ...], message: str) -> None:
    result = chaos(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_an_unknown_fault_in_a_plan_names_the_file_and_the_known_ones(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('[[fault]]\nname = "send_bsy"\n')
    result = chaos(*AT, "--plan", file)
    assert result.exit_code == 2
    assert f"{file}: fault 1: 'send_bsy' is not a fault, did you mean 'send_busy'; there are" in result.stderr


def test_a_busy_port_is_one_line() -> None:
    with ThreadedBroker() as broker:
        port = broker.name_server.rpartition(":")[2]
        result = chaos("--upstream", broker.name_server, "--port", port)
    assert result.exit_code == 2
    assert result.stderr == f"mqproof: 127.0.0.1:{port} is in use by another process\n"


def test_a_lawful_run_ends_with_a_verdict_and_writes_its_history(tmp_path: Path) -> None:
    history, out = tmp_path / "h.jsonl", tmp_path / "r.json"
    with ThreadedBroker() as broker:
        command = [sys.executable, "-m", "mqproof", "chaos", "--upstream", broker.name_server, "--port", "0"]
        command += [
            "--lawful",
            "--fault",
            "send_stored_twice=0.5",
            "--history",
            str(history),
            "--json",
            str(out),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            ready = process.stdout.readline()
            try:
                asyncio.run(_send(ready.partition("namesrv=")[2].strip()))
            finally:
                process.terminate()
            printed = process.stdout.read()
            code = process.wait(300)
    verdicts = {each["id"]: each["verdict"] for each in json.loads(out.read_text())["results"]}
    assert (verdicts["C16"], verdicts["A02"]) == ("held", "unknown"), printed  # nothing was consumed
    assert code == 3
    assert "send_stored_twice" in printed
    with history.open("rb") as lines:
        assert len(list(decode_lines(lines, "h"))) > 20


async def _send(name_server: str) -> None:
    async with connect(name_server) as session:
        for number in range(10):
            await Producer(session).send_or_raise(new_message("T", b"%d" % number))
