"""Tests clusters under attack: the invariants hold for any attacks, and seeds can be replayed."""

import ast
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from mqproof.fuzz import targets
from mqproof.fuzz.hostile import attackers, crafted_requests, judge
from mqproof.fuzz.hostile.attacked_cluster import Shape
from mqproof.fuzz.hostile.program import (
    ATTACK_BYTES,
    ATTACKS_MAX,
    HEAD_BYTES,
    Run,
    random_program,
    shape_of,
)
from mqproof.fuzz.target import Finding
from mqproof.impl import admin
from mqproof.impl.broker.processors.all_processors import PROCESSORS
from mqproof.impl.namesrv.server import PROCESSORS as NAME_SERVER_PROCESSORS
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import Command, encode
from tests.fuzz.seeds import SEEDS_DEEP_OF_CLIENTS, UNBEGUN, deep_parts, hold

TESTING_ALL = (2, 5, 7, 8)
"""Seeds, one of each shape, that together test every invariant."""


def _play(seed: int) -> Counter[str]:
    checked: Counter[str] = Counter()
    Run(random_program(seed), checked).run()
    return checked


@UNBEGUN
def test_the_seeds_test_every_invariant_and_every_shape() -> None:
    checked = hold(_play, TESTING_ALL)
    tested = {name for name, times in checked.items() if times}
    assert tested == set(targets.load("hostile-peers").invariants)
    assert {shape_of(random_program(seed)) for seed in TESTING_ALL} == set(Shape)


@UNBEGUN
@pytest.mark.parametrize("seeds", deep_parts(0, 4 * SEEDS_DEEP_OF_CLIENTS), ids=str)
def test_the_invariants_hold_whatever_strangers_send(seeds: range) -> None:
    hold(_play, seeds)


@UNBEGUN
def test_a_seed_replays_with_the_same_events() -> None:
    runs = [Run(random_program(7), Counter()) for _ in range(2)]
    for run in runs:
        run.run()
    assert runs[0].cluster.events == runs[1].cluster.events
    assert runs[0].cluster.events


@UNBEGUN
@pytest.mark.parametrize("data", [b"", b"\xff" * 5, b"\x01" * 40], ids=["empty", "head", "short"])
def test_any_bytes_are_a_program(data: bytes) -> None:
    Run(data, Counter()).run()


@UNBEGUN
def test_attacks_beyond_the_most_are_ignored() -> None:
    head = random_program(0)[:5]
    run = Run(head + b"\x03" * 600, Counter())
    run.run()
    assert len(run._attacks) == ATTACKS_MAX


def test_every_request_of_a_broker_has_a_valid_form_and_one_beyond_a_limit() -> None:
    beyond = {code: crafted_requests.beyond_limit(code, 0, 0) for code in crafted_requests.CODES}
    assert all(isinstance(crafted_requests.valid(code, {}), Command) for code in crafted_requests.CODES)
    assert sum(one is not None for one in beyond.values()) > len(beyond) * 2 // 3
    assert all(encode(one.request) for one in beyond.values() if one)


_OF_ANY_CODE = (attackers.Attackers.valid, attackers.Attackers.beyond_limit, attackers.Attackers.damaged)


def _drawn_codes(program: bytes) -> set[int]:
    """Return the codes of the requests that strangers send in the program, valid ones and others."""
    attacks, codes = attackers._ATTACKS[shape_of(program)], crafted_requests.CODES
    starts = range(HEAD_BYTES, len(program), ATTACK_BYTES)
    return {
        codes[program[at + 1] % len(codes)]
        for at in starts
        if attacks[program[at] % len(attacks)] in _OF_ANY_CODE
    }


def test_every_operation_of_a_broker_and_of_the_admin_tool_is_drawn() -> None:
    """A new operation is drawn as soon as its request has a form.

    Operations of name servers are left to other tests: some, such as the removal of a broker's route, rightly
    end the service that this target demands.
    """
    drawn = {code for seed in range(SEEDS_DEEP_OF_CLIENTS) for code in _drawn_codes(random_program(seed))}
    assert drawn == set(PROCESSORS)
    of_admin = {
        RequestCode[node.attr]
        for file in Path(admin.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "RequestCode"
    }
    assert len(of_admin) > 30
    assert of_admin <= drawn | set(NAME_SERVER_PROCESSORS)


def test_a_failure_of_a_server_is_a_finding() -> None:
    run = Run(random_program(1), Counter())

    async def fails() -> None:
        raise RuntimeError("a task ended")

    run._play = fails  # type: ignore[method-assign]
    with pytest.raises(Finding, match="a server failed") as found:
        run.run()
    assert found.value.invariant == "FieldsWithinLimits"


def test_each_judge_reports_what_it_must() -> None:
    checked: Counter[str] = Counter()
    use = judge.Use("held pulls", 5, 5, 5, (10, 10, 4), 0)
    calls: tuple[tuple[str, Callable[[], None]], ...] = (
        ("FieldsWithinLimits", lambda: judge.fields_within_limits("x", 0, is_closed=False, checked=checked)),
        (
            "FieldsWithinLimits",
            lambda: judge.fields_within_limits("x", None, is_closed=False, checked=checked),
        ),
        ("SharesKept", lambda: judge.shares_kept([use], checked)),
        ("SharesKept", lambda: judge.others_served("a send", "no answer", checked)),
        ("PermissionRequired", lambda: judge.permission_required("x", 0, checked)),
        (
            "StrangerNotCounted",
            lambda: judge.stranger_not_counted("m", is_on_slave=False, streamed_bytes=0, checked=checked),
        ),
        (
            "StrangerNotCounted",
            lambda: judge.stranger_not_counted("m", is_on_slave=True, streamed_bytes=9, checked=checked),
        ),
        ("BodiesBounded", lambda: judge.bodies_bounded([[(1, 5)]], range(2), checked)),
        ("BodiesBounded", lambda: judge.bodies_bounded([[(0, 1 << 26)]], range(1), checked)),
        ("NoAckedLost", lambda: judge.no_acked_lost({"m": b"x"}, {}, "n0", checked)),
        ("NoAckedLost", lambda: judge.no_acked_lost({"m": b"x"}, {"m": b"y"}, "n0", checked)),
    )
    for invariant, call in calls:
        with pytest.raises(Finding) as found:
            call()
        assert found.value.invariant == invariant
    judge.fields_within_limits("x", None, is_closed=True, checked=checked)
    judge.bodies_bounded([[(0, 5), (1, 5)]], range(2), checked)
