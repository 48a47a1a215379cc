"""Tests the suites of one broker on the reference, on our broker, on mutants, and on a running broker."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from mqproof.conformance.adapters.brokers.environments import CONFIG
from mqproof.conformance.adapters.brokers.factories import EXAMINEES
from mqproof.conformance.adapters.caller import Caller
from mqproof.conformance.engine.broker_faults import BrokerFault
from mqproof.conformance.engine.fault_kinds import KINDS, FaultKind
from mqproof.conformance.engine.suite_results import results
from mqproof.conformance.engine.suite_run import examine, run_suite
from mqproof.conformance.engine.targets import MUTANT, UnknownTargetError
from mqproof.conformance.pages.mutants import recorded
from mqproof.conformance.suites.retry.target import RetryTarget
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.runtime import production
from mqproof.report.model import Verdict

EXAMPLES_OF = {result.name: result.counts["examples"] for result in recorded()}
"""How many examples the search for a mutant needs."""
SAMPLE = {
    suite: {
        mutant.breaks: name
        for name, mutant in sorted(each.mutants.items(), key=lambda item: -EXAMPLES_OF[item[0]])
    }
    for suite, each in EXAMINEES.items()
}
"""The mutant of each invariant that is detected first, for each suite."""
SLOW = {"transactions-final-of-copy-lost"}
DEEP = pytest.mark.deep("only the 134th example detects it, after 6 CPU seconds")

EXAMPLES = dict.fromkeys(EXAMINEES, 15) | {"transactions": 30, "admin": 30, "delivery": 30}
"""Enough examples of each suite to meet every fault."""


@pytest.mark.parametrize("suite", EXAMINEES)
def test_every_invariant_of_the_suite_holds_on_the_reference(suite: str) -> None:
    examinee = EXAMINEES[suite]
    with examinee.targets("reference") as factory:
        found = {one.id: one for one in run_suite(factory, 25, seed=1, suite=examinee.suite)}
    held = dict.fromkeys(examinee.suite.ids, Verdict.HELD)
    assert {i: result.verdict for i, result in found.items()} == held, [r.witnesses for r in found.values()]


@pytest.mark.parametrize("suite", EXAMINEES)
def test_our_broker_holds_every_invariant_and_meets_every_fault_kind(suite: str) -> None:
    """The exception is `retry`, which injects no power loss (docs/explanation/conformance/suites.md)."""
    examinee = EXAMINEES[suite]
    examples = EXAMPLES[suite]
    with examinee.targets("impl") as factory:
        examination = examine(factory, examples, 0, suite=examinee.suite)
        found = {one.id: one for one in results(examination, factory(), examples, 0)}
    held = dict.fromkeys(examinee.suite.ids, Verdict.HELD)
    assert {i: result.verdict for i, result in found.items()} == held, [r.witnesses for r in found.values()]
    missing = {KINDS[each] for each in BrokerFault} - examination.faults.keys()
    assert missing == ({FaultKind.LOSE_WRITES} if suite == "retry" else set())


@pytest.mark.parametrize("suite", EXAMINEES)
def test_the_same_seed_gives_the_same_run(suite: str) -> None:
    def seen(seed: int) -> dict[str, dict[str, int]]:
        examinee = EXAMINEES[suite]
        with examinee.targets("impl") as factory:
            examination = examine(factory, 2, seed, suite=examinee.suite)
        return {i: dict(counts) for i, counts in examination.counts.items()}

    assert seen(3) == seen(3)


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        pytest.param(suite, name, marks=[DEEP] if f"{suite}-{name}" in SLOW else [])
        for suite, names in SAMPLE.items()
        for name in names.values()
    ],
)
def test_the_named_invariant_detects_the_mutant(suite: str, name: str) -> None:
    examinee = EXAMINEES[suite]
    mutant = examinee.mutants[name]
    wanted = frozenset({mutant.breaks})
    with examinee.targets(f"{MUTANT}{name}") as factory:
        examination = examine(factory, 200, 0, suite=examinee.suite, wanted=wanted, shrink=False)
    assert mutant.breaks in examination.failures, f"{mutant.defect}: not noticed"


@pytest.mark.parametrize("suite", EXAMINEES)
def test_every_invariant_of_the_suite_has_a_mutant(suite: str) -> None:
    examinee = EXAMINEES[suite]
    assert {mutant.breaks for mutant in examinee.mutants.values()} == set(examinee.suite.ids)
    assert len(examinee.mutants) >= 6


@pytest.fixture
def running(tmp_path: Path) -> Iterator[str]:
    """Yield the address of our name server with one broker, on real sockets, in a separate thread."""
    loop = asyncio.new_event_loop()

    async def started() -> tuple[NameServer, Broker, Address]:
        runtime = production(AsyncioNetwork())
        name_server = NameServer(NameServerConfig(port=0), runtime)
        address = await name_server.start()
        config = BrokerConfig(
            name_servers=(address,), port=0, store_directory=str(tmp_path), store=CONFIG.store
        )
        broker = Broker(config, runtime)
        await broker.start()
        return name_server, broker, address

    async def stopped() -> None:
        await broker.stop()
        await name_server.stop()

    name_server, broker, address = loop.run_until_complete(started())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield str(address)
    finally:
        asyncio.run_coroutine_threadsafe(stopped(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


@pytest.mark.parametrize("suite", EXAMINEES)
def test_a_running_broker_is_judged_and_left_unchanged(suite: str, running: str) -> None:
    examinee = EXAMINEES[suite]
    before = asyncio.run(_topics(running))
    with examinee.targets(f"remoting://{running}") as factory:
        found = run_suite(factory, 1, seed=0, suite=examinee.suite)
    assert [result.id for result in found if result.verdict is Verdict.VIOLATED] == []
    assert {result.id: result.verdict for result in found}["SPEC-1"] is Verdict.HELD
    assert asyncio.run(_topics(running)) == before


def test_the_delay_levels_of_a_running_broker_are_those_that_it_reports(running: str) -> None:
    with EXAMINEES["retry"].targets(f"remoting://{running}") as factory:
        target = cast("RetryTarget", factory())
        try:
            levels_s = target.open(1).levels_s
        finally:
            target.close()
    assert levels_s == tuple(delay_ms / 1000 for delay_ms in CONFIG.store.delay_levels_ms)
    assert levels_s != tuple(delay_ms / 1000 for delay_ms in BrokerConfig().store.delay_levels_ms)


async def _topics(name_server: str) -> bytes:
    caller = Caller(Address.parse(name_server), production(AsyncioNetwork()))
    try:
        answer = await caller.request(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, to=caller.name_server)
        return answer.body
    finally:
        await caller.stop()


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("mutant:none", "'mutant:none' is not a mutant of this suite"),
        ("remoting://nowhere", "remoting://HOST:PORT of a name server expected"),
        ("apache:1", "expected a release of"),
        ("other", "'other' is not a target of this suite"),
    ],
)
def test_an_unknown_target_name_is_refused(target: str, expected: str) -> None:
    with pytest.raises(UnknownTargetError, match=expected), EXAMINEES["offsets"].targets(target):
        pass
