"""The routing suite: our name server holds, every mutant is detected, and a running server is judged."""

import asyncio
import threading
from collections.abc import Iterator, Sequence

import pytest
from typer.testing import CliRunner

from mqproof.conformance.adapters.routing.name_servers import TIMES, ImplNameServer, targets
from mqproof.conformance.commands.conform import app
from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.suite_run import examine, run_suite
from mqproof.conformance.mutants.routing import MUTANTS
from mqproof.conformance.registry import mutant_judge
from mqproof.conformance.suites.routing.checkers import CHECKERS
from mqproof.conformance.suites.routing.oracle import Oracle
from mqproof.conformance.suites.routing.steps import (
    Operation,
    QueryCluster,
    QueryRoute,
    Register,
    RegisterIsolated,
)
from mqproof.conformance.suites.routing.suite import ROUTING
from mqproof.conformance.suites.routing.target import TOPICS, Broker, Capability, Route
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.report.model import Exit, Verdict

SLOW = {
    "one-of-two-brokers-removed",
    "unchanged-not-refreshed",
    "hang-up-unheard",
    "only-live-record-removed",
}
SEED = 2
"""Detects each other mutant soon."""
DEEP = pytest.mark.deep("1 to 4 CPU seconds; the same invariant detects another mutant in every run")


def test_our_name_server_holds_every_invariant_also_when_it_is_isolated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut_off: list[Broker] = []

    def register_isolated(target: ImplNameServer, broker: Broker, topics: Sequence[str]) -> None:
        cut_off.append(broker)
        real(target, broker, topics)

    real = ImplNameServer.register_isolated
    monkeypatch.setattr(ImplNameServer, "register_isolated", register_isolated)
    found = {result.id: result for result in run_suite(ImplNameServer, 25, seed=1, suite=ROUTING)}
    assert {i: result.verdict for i, result in found.items()} == dict.fromkeys(ROUTING.ids, Verdict.HELD)
    assert cut_off


def test_the_same_seed_gives_the_same_run() -> None:
    def seen(seed: int) -> dict[str, dict[str, int]]:
        examination = examine(ImplNameServer, 2, seed, suite=ROUTING)
        return {i: dict(counts) for i, counts in examination.counts.items()}

    assert seen(3) == seen(3)
    assert seen(3) != seen(4)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[DEEP] if name in SLOW else []) for name in MUTANTS]
)
def test_the_named_invariant_detects_the_mutant(name: str) -> None:
    (result,) = mutant_judge.run([name], seed=0 if name in SLOW else SEED)
    assert result.verdict is Verdict.HELD, f"{result.detail}: not noticed in {result.counts}"
    assert result.id == MUTANTS[name].breaks


def test_every_invariant_of_the_suite_has_a_mutant() -> None:
    assert {mutant.breaks for mutant in MUTANTS.values()} == {*CHECKERS, SPEC_1}


def test_an_unanswered_registration_may_have_arrived() -> None:
    broker, both, one = Broker("a", 0), TOPICS, TOPICS[1:]

    def explained(*seen: Operation) -> bool:
        oracle = Oracle(TIMES, slave_speaks=True)
        return all(
            oracle.observe(each) for each in (Register(broker, one), RegisterIsolated(broker, both), *seen)
        )

    answered = QueryRoute(TOPICS[0], Route({"a": "write"}, {"a": frozenset({0})}))
    nothing = QueryRoute(TOPICS[0], None)
    assert explained(answered)
    assert explained(nothing)
    assert not explained(answered, nothing)
    assert not explained(QueryCluster({}))


@pytest.fixture
def running() -> Iterator[str]:
    """Yield the address of our name server on a real socket, in a separate thread."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(_started())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server[1]
    finally:
        asyncio.run_coroutine_threadsafe(server[0].stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


async def _started() -> tuple[NameServer, str]:
    server = NameServer(NameServerConfig(port=0), production(AsyncioNetwork()))
    return server, str(await server.start())


def test_a_running_name_server_is_judged_and_left_unchanged(running: str) -> None:
    with targets(f"remoting://{running}") as factory:
        verdicts = {result.id: result.verdict for result in run_suite(factory, 3, seed=0, suite=ROUTING)}
        held = {"ROUTE-1", "ROUTE-2", SPEC_1}
        assert verdicts == dict.fromkeys(held, Verdict.HELD) | dict.fromkeys(
            ("ROUTE-3", "ROUTE-4"), Verdict.NOT_TESTED
        )
        target = factory()
        assert Capability.WAIT not in target.capabilities
        target.open()
        assert target.cluster() == {}
        target.close()


def conform(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["conform", "--suite", "routing", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_a_violation_is_shown_with_its_minimal_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqproof.conformance.engine.suite_run.SHRINK_EXAMPLES_MAX", 4)
    code, out, _ = conform("--target", "mutant:slave-written", "--examples", "5")
    assert code == Exit.VIOLATED
    assert "Minimal script that violates ROUTE-4" in out
    assert "conform --target mutant:slave-written --suite routing --seed 0 --examples 5" in out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--target", "reference"], "mqproof: --target 'reference' is not a target of the suite routing"),
        (["--target", "mutant:none"], "mqproof: --target 'mutant:none' is not a mutant"),
        (["--target", "impl", "--since", "3"], "mqproof: --since 3: expected 4.9 or 5"),
        (["--target", "apache:1"], "mqproof: --target apache:1: expected a release of"),
    ],
)
def test_wrong_use_exits_with_2_and_one_line(arguments: list[str], line: str) -> None:
    code, _, err = conform(*arguments)
    assert code == Exit.USAGE
    assert err.startswith(line)
    assert err.count("\n") == 1


def test_an_unreachable_name_server_gives_a_one_line_error() -> None:
    code, _, err = conform("--target", "remoting://127.0.0.1:1", "--examples", "1")
    assert code == Exit.TOOL
    assert err.startswith("mqproof: remoting://127.0.0.1:1: name server 127.0.0.1:1: no connection")
