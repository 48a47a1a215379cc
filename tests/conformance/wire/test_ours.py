"""Our name server and broker, asked over the wire: no worse than docs/reference/conformance/wire.md says."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqproof.conformance.adapters.wire_servers import servers
from mqproof.conformance.commands.conform import app
from mqproof.conformance.engine.targets import IMPL
from mqproof.conformance.pages import request_page, wire_answers
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.case_results import examine
from mqproof.conformance.wire.catalogue import CASES, choose
from mqproof.conformance.wire.model import Case, Server, Since, Verdict
from mqproof.conformance.wire.runner import Judged
from mqproof.conformance.wire.server_connection import Address
from mqproof.report import json_file
from mqproof.report.model import Exit

PATIENT_S = 60.0
OURS = "mqproof"
CUTS = "/7"
SOME_CUTS = ("remoting/send-v2/7", "remoting/pull/7", "remoting/heartbeat/7", "remoting/route/7")


@pytest.fixture(scope="module")
def ours() -> Iterator[list[Address]]:
    with servers(IMPL) as addresses:
        yield addresses


def conform(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["conform", "--suite", "wire", *arguments])
    return result.exit_code, result.stdout, result.stderr


def worse(judged: Iterable[Judged | Case], server: str) -> list[str]:
    """Return the cases that were OK and are not any more, and the new failures."""
    kept = wire_answers.read()
    place = kept.servers.index(server)
    found = []
    for one in judged:
        assert isinstance(one, Judged)
        recorded = kept.verdicts[one.case.id][place]
        if one.verdict != recorded and (Verdict.FAILED is one.verdict or recorded == Verdict.OK):
            found.append(f"{one.case.id}: {recorded} is now {one.verdict}: {one.detail}")
    return found


def test_our_servers_are_no_worse_than_recorded(ours: list[Address]) -> None:
    cases = [case for case in CASES if not case.id.endswith(CUTS) or case.id in SOME_CUTS]
    assert worse(examine(ours, cases, lambda *_: None, PATIENT_S), OURS) == []


@pytest.mark.deep("a frame for each position; some positions are tested in every run")
def test_our_servers_accept_frames_split_at_any_position(ours: list[Address]) -> None:
    judged = examine(ours, choose([f"*{CUTS}"]), lambda *_: None, PATIENT_S)
    assert worse(judged, OURS) == []


@pytest.mark.apache
@pytest.mark.parametrize(("line", "since"), [("4.9", Since.V4_9), ("5", Since.V5)])
def test_apache_answers_as_recorded(line: str, since: Since) -> None:
    """Tests the first case of each operation and the handwritten ones; 5.5.0 does not answer every pop."""
    server = next(name for name in wire_answers.read().servers if f" {line}." in name)
    globs = ("remoting/*/1", "remoting/*/4??", "remoting/frame*")
    cases = [case for case in choose(globs, since) if case.source != chapters.POP and "/acl-" not in case.id]
    cases = [case for case in cases if case.server is not Server.FILTER_SERVER]  # theirs are another program
    with servers(f"apache:{line}") as addresses:
        assert worse(examine(addresses, cases, lambda *_: None, PATIENT_S), server) == []


def test_the_pages_are_generated_from_the_data() -> None:
    assert (wire_answers.FOLDER / "wire.md").read_text() == wire_answers.page(wire_answers.read())
    assert (wire_answers.FOLDER / "wire.json").read_text() == wire_answers.data(wire_answers.read())
    assert request_page.PAGE.read_text() == request_page.page()


def test_our_servers_fail_no_case() -> None:
    kept = wire_answers.read()
    place = kept.servers.index(OURS)
    assert [one for one, verdicts in kept.verdicts.items() if verdicts[place] == Verdict.FAILED] == []


def test_a_held_run_exits_with_0_and_writes_its_files(ours: list[Address], tmp_path: Path) -> None:
    as_json, as_junit = tmp_path / "r.json", tmp_path / "r.xml"
    code, out, _ = conform(
        "--target", f"remoting://{ours[0]}", "--id", "remoting/max-offset/*", "--json", str(as_json),
        "--junit", str(as_junit),
    )  # fmt: skip
    assert code == Exit.HELD, out
    report = json_file.from_json(as_json.read_text(), "r.json")
    assert {result.id.rpartition("/")[0] for result in report.results} == {"remoting/max-offset"}
    assert "remoting/max-offset/1" in as_junit.read_text()


def test_a_strict_run_fails_on_a_should_and_shows_the_replay_command(ours: list[Address]) -> None:
    target = f"remoting://{ours[0]}"
    chosen = ("--target", target, "--id", "remoting/create-topic/60")
    assert conform(*chosen)[0] == Exit.HELD
    code, out, _ = conform(*chosen, "--strict")
    assert code == Exit.VIOLATED
    assert (
        f"replay: mqproof conform --target {target} --suite wire --strict --id remoting/create-topic/60"
        in out
    )


def test_a_run_with_only_unimplemented_cases_is_inconclusive(ours: list[Address]) -> None:
    code, out, _ = conform("--target", f"remoting://{ours[0]}", "--id", "remoting/ack/1")
    assert code == Exit.INCONCLUSIVE
    assert "UNIMPLEMENTED: code 3" in out


def test_a_single_broker_is_distinguished_from_a_name_server(ours: list[Address]) -> None:
    judged = examine(ours, choose(["remoting/cluster-info/1"]), lambda *_: None, PATIENT_S)
    assert [one.verdict for one in judged if isinstance(one, Judged)] == [Verdict.OK]
    from mqproof.conformance.wire.fixtures import fixtures
    from mqproof.conformance.wire.model import Server

    with fixtures(ours, PATIENT_S) as made:
        broker = made.servers[Server.BROKER]
    both = choose(["remoting/cluster-info/1", "remoting/max-offset/1"])
    broker_only = examine([broker], both, lambda *_: None, PATIENT_S)
    assert [type(one) for one in broker_only] == [Judged, Case]  # there is no name server for these cases


def test_a_dry_run_lists_the_cases_and_sends_no_request() -> None:
    code, out, _ = conform("--target", "remoting://127.0.0.1:1", "--dry-run", "--id", "remoting/pull/4*")
    assert code == Exit.HELD
    assert "remoting/pull/400  broker  since 4.9  MUST  PULL_MESSAGE at the end finds nothing, at once" in out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--target", "nothing"], "mqproof: --target 'nothing': the suite wire needs remoting://"),
        (["--target", "remoting://here"], "mqproof: --target 'remoting://here': 'here': HOST:PORT expected"),
        (["--target", "apache:3"], "mqproof: --target apache:3: expected a release of"),
        (["--target", "impl", "--since", "6"], "mqproof: --since 6: expected 4.9 or 5"),
        (["--target", "impl", "--id", "none"], "mqproof: --id none: no invariant and no case"),
    ],
)
def test_wrong_use_exits_with_2_and_one_line(arguments: list[str], line: str) -> None:
    code, _, err = conform(*arguments)
    assert code == Exit.USAGE
    assert [printed.startswith(line) for printed in err.splitlines() if printed.startswith("mqproof: ")] == [
        True
    ]


def test_unreachable_servers_exit_with_4_and_one_line() -> None:
    code, _, err = conform("--target", "remoting://127.0.0.1:1", "--id", "remoting/pull/1")
    assert code == Exit.TOOL
    assert err.splitlines()[-1].startswith("mqproof: remoting://127.0.0.1:1: 127.0.0.1:1: no connection")
