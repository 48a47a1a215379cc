"""A foreign cluster judged over the wire: links are disturbed, and shell commands stop its broker."""

import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from typer.testing import CliRunner

from mqproof.conformance.adapters.brokers.factories import EXAMINEES
from mqproof.conformance.adapters.impl import ImplTarget
from mqproof.conformance.adapters.reference import ReferenceTarget
from mqproof.conformance.adapters.remoting import RemotingTarget
from mqproof.conformance.adapters.resolution import resolve
from mqproof.conformance.adapters.routing.name_servers import targets
from mqproof.conformance.commands.conform import app
from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.conformance.engine.fault_commands import FaultCommandError, FaultCommands, run
from mqproof.conformance.engine.fault_kinds import KINDS, FaultKind
from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.engine.suite_run import examine
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.faults.controls import by_shell
from mqproof.conformance.faults.link import FAULTS
from mqproof.conformance.hosts.processes import cluster, free_port
from mqproof.conformance.suites.admin.session import AdminSession
from mqproof.conformance.suites.admin.target import AdminTarget
from mqproof.conformance.suites.flush.session import Session
from mqproof.conformance.suites.flush.steps import End, Send
from mqproof.conformance.suites.flush.suite import FLUSH
from mqproof.conformance.suites.flush.target import Capability, Fault, Outcome, Setup
from mqproof.conformance.suites.routing.oracle import BROKERS
from mqproof.conformance.suites.routing.session import RoutingSession
from mqproof.conformance.suites.routing.target import TOPICS
from mqproof.conformance.suites.routing.target import Capability as Routing
from mqproof.impl.runtime.network import Address
from mqproof.reference.flush import SYNC_FLUSH
from mqproof.reference.rules.administration import READ, WRITE, Topic
from mqproof.report.model import Exit, Verdict
from tests.conformance.adapters import control

PLACE = {"broker": "broker-a", "address": "127.0.0.1:1", "name_server": "127.0.0.1:2"}


def up(name_server: str) -> None:
    """Wait until the broker serves."""
    deadline = time.monotonic() + 120
    while True:
        target = resolve(f"remoting://{name_server}")()
        try:
            target.open(Setup(SYNC_FLUSH))
        except TargetError:
            assert time.monotonic() < deadline, "the broker does not come up"
            time.sleep(0.05)
        else:
            return
        finally:
            target.close()


@pytest.fixture(scope="module")
def commanded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, FaultCommands]]:
    """Yield a name server and the commands that start, stop and kill its running broker."""
    tmp_path = tmp_path_factory.mktemp("commanded")
    with cluster(tmp_path / "cluster", "SYNC_FLUSH") as made:
        made.start_name_server()
        command = shlex.join([sys.executable, control.__file__, str(tmp_path)])
        broker = shlex.join(
            [
                sys.executable, "-m", "mqproof", "broker", "--namesrv", made.name_server, "--port",
                str(free_port()), "--store", str(tmp_path / "store"), "--name", "broker-a",
                "--flush", "SYNC_FLUSH",
            ]
        )  # fmt: skip
        controls = FaultCommands(f"{command} start {broker}", f"{command} stop", f"{command} kill")
        try:
            run("start", controls.start, PLACE)
            up(made.name_server)
            yield made.name_server, controls
        finally:
            with suppress(OSError):
                control.main(tmp_path, "kill")


def test_shell_commands_stop_and_restart_the_broker(commanded: tuple[str, FaultCommands]) -> None:
    name_server, controls = commanded
    target = resolve(f"remoting://{name_server}", controls)()
    assert target.capabilities >= {Capability.KILL, Capability.CLEAN_RESTART, Capability.SYNC_FLUSH}
    assert Capability.ISOLATE not in target.capabilities
    try:
        session = Session(target, Setup(SYNC_FLUSH))
        for end in (End.KILL, End.SHUTDOWN):
            session.send(0, 10)
            session.end(end)
            session.restart()
            assert not session.dead
        findings = session.findings()
    finally:
        target.close()
    assert findings["DELIV-1"].verdict is Verdict.HELD
    assert findings["DELIV-1"].counts["acknowledged"] == 2
    assert findings["FLUSH-1"].counts["seen"] == 1, "it came before the kill"
    assert not any(finding.verdict is Verdict.VIOLATED for finding in findings.values())


def test_a_single_broker_suite_stops_freezes_and_disconnects_the_broker(
    commanded: tuple[str, FaultCommands],
) -> None:
    name_server, controls = commanded
    freeze, thaw = (controls.kill.removesuffix("kill") + word for word in ("freeze", "thaw"))
    controls = replace(controls, freeze=freeze, thaw=thaw)
    with EXAMINEES["admin"].targets(f"remoting://{name_server}", controls) as factory:
        target = cast(AdminTarget, factory())
        assert target.capabilities == frozenset(BrokerFault) - {BrokerFault.POWER_LOSS}
        try:
            session = AdminSession(target)
            session.make_topic("t", Topic(1, 1, READ | WRITE))
            session.send("t", 0, "k")
            for fault in sorted(target.capabilities):
                session.inject(fault)
                session.look()
                session.by_key("t", "k")
            findings = session.findings()
        finally:
            target.close()
    assert findings[SPEC_1].verdict is findings["DELIV-1"].verdict is Verdict.HELD


def test_each_available_fault_is_injected(commanded: tuple[str, FaultCommands]) -> None:
    name_server, controls = commanded
    commands = {
        word: controls.kill.removesuffix("kill") + word for word in ("freeze", "thaw", "isolate", "rejoin")
    }
    done = Path(shlex.split(controls.kill)[2]) / "done"
    before = len(done.read_text().split())
    target = resolve(f"remoting://{name_server}", replace(controls, **commands))()
    faults = [fault for fault in Fault if Capability(fault.value) in target.capabilities]
    assert set(faults) == {Fault.FREEZE, Fault.ISOLATE, *FAULTS}
    outcomes = {}
    try:
        session = Session(target, Setup(SYNC_FLUSH))
        for fault in faults:
            session.disturb(fault)
            session.send(0, 10)
            session.calm()
            sent = next(one for one in reversed(session.history.operations) if isinstance(one, Send))
            outcomes[fault] = sent.answer.outcome
        session.drain()
        findings = session.findings()
    finally:
        target.close()
    assert done.read_text().split()[before:] == ["freeze", "thaw", "isolate", "rejoin"]
    assert {fault for fault, outcome in outcomes.items() if outcome is Outcome.OK} == {Fault.DELAY}
    assert session.faults() == Counter(KINDS[fault] for fault in faults)
    assert not any(finding.verdict is Verdict.VIOLATED for finding in findings.values())


class Wired(ReferenceTarget):
    """Accepts every fault of a foreign broker, and injects none."""

    def __init__(self, capabilities: frozenset[Capability]) -> None:
        self.capabilities = capabilities

    def disturb(self, fault: Fault) -> None:
        pass

    def calm(self) -> None:
        pass


def test_each_available_fault_is_drawn() -> None:
    controls = FaultCommands("start", "stop", "kill", "isolate", "rejoin", "freeze", "thaw")
    capabilities = RemotingTarget(Address("h", 1), fault_controls=by_shell(controls)).capabilities
    drawn = examine(lambda: Wired(capabilities), 60, 0, suite=FLUSH).faults
    allowed = {KINDS[each] for each in capabilities if each in KINDS}
    assert drawn.keys() == allowed
    assert FaultKind.KILL in allowed


def test_shell_commands_kill_and_isolate_a_name_server(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    command = shlex.join([sys.executable, control.__file__, str(tmp_path)])
    server = [sys.executable, "-m", "mqproof", "namesrv", "--port", address.rpartition(":")[2]]
    controls = FaultCommands(
        namesrv_start=f"{command} start {shlex.join([*server, '--store', str(tmp_path / 'names')])}",
        namesrv_kill=f"{command} kill",
        namesrv_isolate=f"{command} freeze",
        namesrv_rejoin=f"{command} thaw",
    )
    run("namesrv-start", controls.namesrv_start, PLACE)
    try:
        with targets(f"remoting://{address}", controls=controls) as factory:
            target = factory()
            deadline = time.monotonic() + 120
            while True:
                try:
                    session = RoutingSession(target)
                    break
                except TargetError:
                    target.close()
                    assert time.monotonic() < deadline, "the name server does not come up"
                    time.sleep(0.05)
            assert target.capabilities >= {Routing.RESTART, Routing.ISOLATE}
            session.register(BROKERS[0], TOPICS)
            session.register_isolated(BROKERS[0], TOPICS[1:])
            session.look()
            session.restart()
            session.look()
            session.register(BROKERS[0], TOPICS)
            session.look()
            findings = session.findings()
            assert session.faults() == {
                FaultKind.NAME_SERVER: 1,
                FaultKind.NAME_SERVER_AWAY: 1,
            }
            target.close()
    finally:
        with suppress(OSError):
            control.main(tmp_path, "kill")
    assert findings[SPEC_1].verdict is findings["ROUTE-2"].verdict is Verdict.HELD
    assert not any(finding.verdict is Verdict.VIOLATED for finding in findings.values())


def test_a_broker_left_stopped_by_an_example_is_restarted(commanded: tuple[str, FaultCommands]) -> None:
    name_server, controls = commanded
    target = resolve(f"remoting://{name_server}", controls)()
    target.open(Setup(SYNC_FLUSH))
    target.kill()
    target.close()
    up(name_server)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("exit 3", "--kill 'exit 3': ended with code 3"),
        ("echo no such broker {broker} >&2; false", "ended with code 1: no such broker broker-a"),
        ("no-such-command", "ended with code 127: "),
    ],
)
def test_a_failed_command_is_reported_with_its_output(template: str, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        run("kill", template, PLACE)


def test_the_name_of_a_peer_is_not_executed_as_a_command(tmp_path: Path) -> None:
    run("kill", f"touch {tmp_path}/{{broker}}", {**PLACE, "broker": "a; touch pwned"})
    assert [file.name for file in tmp_path.iterdir()] == ["a; touch pwned"]


@pytest.mark.parametrize(
    ("templates", "said"),
    [
        (
            {"kill": "kill {pid}", "start": "x"},
            "--kill 'kill {pid}': unknown field {pid}, expected {broker},",
        ),
        ({"kill": "kill {", "start": "x"}, "--kill 'kill {': "),
        ({"kill": "kill {}", "start": "x"}, "unknown field {}"),
        ({"kill": "kill"}, "--stop, --kill: --start is required as well"),
        ({"isolate": "x"}, "--isolate, --rejoin: both are required"),
        ({"thaw": "x"}, "--freeze, --thaw: both are required"),
        ({"namesrv_kill": "x"}, "--namesrv-start, --namesrv-kill: both are required"),
        (
            {"namesrv_kill": "x {broker}", "namesrv_start": "x"},
            "--namesrv-kill 'x {broker}': unknown field {broker}, expected {name_server}",
        ),
    ],
)
def test_an_unusable_command_template_gives_a_one_line_error(templates: dict[str, str], said: str) -> None:
    with pytest.raises(FaultCommandError, match=re.escape(said)):
        FaultCommands(**templates)
    options = [word for name, text in templates.items() for word in (f"--{name.replace('_', '-')}", text)]
    done = CliRunner().invoke(app, ["conform", "--target", "remoting://127.0.0.1:1", *options])
    assert (done.exit_code, done.stderr.count("\n")) == (Exit.USAGE, 1)


def test_shell_commands_are_accepted_for_running_clusters_only() -> None:
    done = CliRunner().invoke(app, ["conform", "--target", "impl", "--start", "x", "--kill", "y"])
    assert (done.exit_code, done.stderr) == (
        Exit.USAGE, "mqproof: --start: only remoting:// targets accept commands\n"
    )  # fmt: skip


def test_the_replay_command_repeats_the_commands() -> None:
    options = RunOptions("remoting://h:1", controls=FaultCommands(start="run {broker}", kill="end it"))
    assert options.replay("flush", "--seed", "3") == (
        "mqproof conform --target remoting://h:1 --suite flush"
        " --start 'run {broker}' --kill 'end it' --seed 3"
    )


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.FREEZE, {Outcome.INDETERMINATE}),
        (Fault.ISOLATE, {Outcome.INDETERMINATE}),
        (Fault.LOSE_REQUESTS, {Outcome.INDETERMINATE}),
        (Fault.LOSE_ANSWERS, {Outcome.INDETERMINATE}),
        (Fault.CUT, {Outcome.INDETERMINATE}),
        (Fault.FULL_DISK, {Outcome.INDETERMINATE}),
        (Fault.SLOW_DISK, {"FLUSH_DISK_TIMEOUT"}),
        (Fault.DELAY, {"SEND_OK"}),
        (Fault.CLOCK_BACK, {"SEND_OK"}),
    ],
)
def test_our_broker_holds_while_its_links_are_disturbed(fault: Fault, expected: set[str]) -> None:
    """Each fault appears in the answers to some of the sends."""
    answers: set[str] = set()
    for seed in range(12):
        target = ImplTarget()
        try:
            session = Session(target, Setup(SYNC_FLUSH, seed=seed))
            session.send(0, 500)
            session.disturb(fault)
            for _ in range(2):
                session.send(0, 500)
            session.calm()
            session.drain()
            session.send(0, 10)
            for one in session.history.operations:
                if isinstance(one, Send):
                    answers |= {one.answer.outcome, one.answer.status}
            findings = session.findings()
            assert not any(finding.verdict is Verdict.VIOLATED for finding in findings.values())
            assert session.faults() == {KINDS[fault]: 1}
        finally:
            target.close()
    assert answers >= expected


@pytest.mark.parametrize(
    ("fault", "stored"),
    [(Fault.FREEZE, True), (Fault.ISOLATE, False), (Fault.LOSE_REQUESTS, False), (Fault.LOSE_ANSWERS, True)],
)
def test_a_send_during_a_fault_arrives_afterwards_unless_the_fault_loses_it(
    fault: Fault, stored: bool
) -> None:
    target = ImplTarget()
    try:
        session = Session(target, Setup(SYNC_FLUSH))
        session.send(0, 10)
        session.disturb(fault)
        session.send(0, 10)
        session.calm()
        session.send(0, 10)
        last = next(one for one in reversed(session.history.operations) if isinstance(one, Send))
        assert last.answer.queue_offset == 1 + stored
    finally:
        target.close()
