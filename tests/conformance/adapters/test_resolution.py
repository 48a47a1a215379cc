"""Targets are resolved by name, and an unknown name lists the known ones."""

import pytest

from mqproof.conformance.adapters.impl import ImplTarget
from mqproof.conformance.adapters.resolution import resolve
from mqproof.conformance.engine.targets import UnknownTargetError
from mqproof.conformance.mutants.flush import MUTANTS
from mqproof.conformance.suites.flush.target import Fault, PullStatus, Setup


@pytest.mark.parametrize(
    "name", ["reference", "impl", "remoting://127.0.0.1:9876", "mutant:ack-before-flush"]
)
def test_a_target_knows_its_name(name: str) -> None:
    assert resolve(name)().name == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("apache", "expected reference, impl"),
        ("foo", "apache:LINE"),
        ("remoting://nowhere", "remoting://HOST:PORT"),
        ("remoting://:1", "remoting://HOST:PORT"),
        ("mutant:", next(iter(MUTANTS))),
        ("mutant:nonsense", next(iter(MUTANTS))),
    ],
)
def test_an_unknown_name_reports_the_expected_ones(name: str, expected: str) -> None:
    with pytest.raises(UnknownTargetError, match=expected):
        resolve(name)


def test_a_client_reconnects_after_an_isolation_that_closed_its_connection() -> None:
    target = ImplTarget()
    target.open(Setup("SYNC_FLUSH"))
    try:
        target.send("T", 0, "m1", b"m1")
        target.disturb(Fault.ISOLATE)
        for number in range(60):  # each send waits for seconds
            target.send("T", 0, f"lost {number}", b"lost")
        target.calm()
        assert target.pull("T", 0, 0, 1).status is PullStatus.FOUND
    finally:
        target.close()
