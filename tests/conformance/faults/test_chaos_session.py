"""An application behind the proxy: lawful faults are judged lawful, and each unlawful one is found."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from mqproof import Producer, PushConsumer, ReceivedMessage, Sent, new_message
from mqproof.client import ConsumeFrom, PushConsumerConfig
from mqproof.conformance.faults.chaos_session import Chaos, UnlawfulError, expect_lawful
from mqproof.impl.chaos.fault_table import FAULTS
from mqproof.impl.chaos.plan import PlanError
from mqproof.report.model import Report, Verdict
from mqproof.testing import EmbeddedBroker, broker

SLOW = {"send_answer_late"}
"""Faults that make a send wait in real time."""
RARE = {"broker_restart", "broker_switch"}
OFTEN = [f"{name}=0.08" for name, fault in FAULTS.items() if fault.is_lawful and name not in SLOW | RARE]

FOUND_BY = {
    "sent_not_stored": "C01",
    "message_skipped": "C04.1",
    "queue_reordered": "A10",
    "delivered_again": "A07",
    "offset_forgotten": "C06",
}
"""For each unlawful fault, a rule that finds it."""

Consumed = tuple[Report, set[bytes], Counter[bytes]]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Faults cause warnings on purpose."""
    caplog.set_level(logging.CRITICAL, "mqproof")


async def consume_all(faults: Sequence[str], seed: int, *, lawful: bool) -> Consumed:
    """Send 60 messages and consume them in two members. Returns the verdicts, what was stored, what came."""
    got: Counter[bytes] = Counter()

    async def listener(messages: Sequence[ReceivedMessage]) -> None:
        got.update(message.body for message in messages)

    acked: set[bytes] = set()
    async with broker() as b, b.client() as direct:
        # Messages that wait for the consumers, so that one answer has several.
        for number in range(20):
            await Producer(direct).send_or_raise(new_message("T", b"early %d" % number))
        chaos = Chaos(b, *faults, seed=seed, lawful=lawful)
        async with chaos, chaos.client() as one, chaos.client() as two:
            producer, config = Producer(one), PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
            async with PushConsumer(one, "G", listener, config) as first:
                await first.subscribe("T")
                await _send(b, producer, acked, range(30))
                async with PushConsumer(two, "G", listener, config) as second:
                    await second.subscribe("T")
                    await b.clock.advance(seconds=60)  # no later duplicate is due to the new member
                    await _send(b, producer, acked, range(30, 60))
                    chaos.calm()
                    for _ in range(20):
                        await b.clock.advance(seconds=20)
                        if not acked - set(got):
                            break
        assert chaos.report is not None
        return chaos.report, acked, got


async def _send(b: EmbeddedBroker, producer: Producer, acked: set[bytes], numbers: range) -> None:
    """Send messages, while time passes in which members commit their offsets."""
    for number in numbers:
        if isinstance(await producer.send(new_message("T", b"%d" % number)), Sent):
            acked.add(b"%d" % number)
        if number % 10 == 9:
            await b.clock.advance(seconds=6)


DEEP = pytest.mark.deep("18 seeds more than the one of every run")


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=DEEP) for seed in range(2, 20))])
def test_a_lawful_run_is_judged_lawful_and_loses_nothing(seed: int) -> None:
    faults = [*OFTEN, *(f"{name}=0.005" for name in sorted(RARE))]
    report, acked, got = asyncio.run(consume_all(faults, seed, lawful=True))
    assert acked <= set(got)
    assert sum(got.values()) > len(got)  # an application must bear duplicates
    verdicts = Counter(result.verdict for result in report.results)
    assert verdicts[Verdict.HELD] >= 15
    assert not verdicts[Verdict.VIOLATED]
    assert len(report.tables[-1].rows) >= 10


@pytest.mark.parametrize(("fault", "rule"), FOUND_BY.items())
def test_an_unlawful_run_is_found_by_a_rule(fault: str, rule: str) -> None:
    report, _, _ = asyncio.run(consume_all([f"{fault}=0.9"], 1, lawful=False))
    found = {result.id: result for result in report.results if result.verdict is Verdict.VIOLATED}
    assert rule in found
    assert any(found[rule].detail.split()[0] == broken for broken in FAULTS[fault].breaks)
    with pytest.raises(UnlawfulError, match=f"{rule} "):
        expect_lawful(report)


def test_every_unlawful_fault_has_a_rule_that_finds_it() -> None:
    assert FOUND_BY.keys() == {name for name, fault in FAULTS.items() if not fault.is_lawful}


def test_wrong_arguments_are_errors(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="'nothing' is not a fault"):
        Chaos("127.0.0.1:9876", "nothing")
    with pytest.raises(PlanError, match="message_skipped breaks DELIV-1, FLUSH-4; a lawful run"):
        Chaos("127.0.0.1:9876", "message_skipped")
    with pytest.raises(ValueError, match="give faults or a plan, not both"):
        Chaos("127.0.0.1:9876", "send_busy", plan="x")
    with pytest.raises(ValueError, match="HOST:PORT expected"):
        Chaos("nowhere")
    (tmp_path / "p.toml").write_text("x")
    with pytest.raises(PlanError, match=r"p\.toml: "):
        Chaos("127.0.0.1:9876", plan=tmp_path / "p.toml")
