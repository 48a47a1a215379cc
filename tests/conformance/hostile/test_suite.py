"""Tests the suite hostile: our broker withstands every attack, and a broker that does not is found.

The second broker is a few lines: it answers SUCCESS to everything and keeps nothing, or stops serving.
"""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from mqproof.conformance.adapters.victims import victims
from mqproof.conformance.commands.conform import app
from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.engine.targets import TargetError, UnknownTargetError
from mqproof.conformance.hostile.attack_run import MEMORY_MIB_MAX, run
from mqproof.conformance.hostile.attacks import ATTACKS, Attack, Expected, Names, send_fields
from mqproof.conformance.hostile.suite import Victim
from mqproof.conformance.hostile.suite import run as run_suite
from mqproof.conformance.wire.frames import RESPONSE, Frame, MalformedError, encode, take
from mqproof.conformance.wire.server_connection import Address, UnreachableError
from mqproof.report.model import Exit, Verdict

QUICK_S = 0.5


class Servant(socketserver.BaseRequestHandler):
    """Answers SUCCESS to everything; a pull returns the last message that was sent."""

    last = b""
    loses = False
    """Whether it keeps no message."""
    dies_of = -1
    """The request code after which it answers nothing any more."""
    is_dead = False

    def handle(self) -> None:
        buffer = bytearray()
        while data := self.request.recv(1 << 16):
            buffer += data
            try:
                while (frame := take(buffer)) is not None:
                    self._serve(frame)
            except MalformedError:
                buffer.clear()  # the connection stays open

    def _serve(self, frame: Frame) -> None:
        kind = type(self)
        kind.is_dead = kind.is_dead or frame.code == kind.dies_of
        if kind.is_dead:
            return
        if frame.code == 10 and not kind.loses:
            kind.last = frame.body
        body = kind.last if frame.code == 11 else b""
        fields = {"queueOffset": "0"}
        self.request.sendall(encode(Frame(0, frame.opaque, RESPONSE, fields, body)))


@contextmanager
def serving(**behaviour: object) -> Iterator[Address]:
    kind = type("Kind", (Servant,), dict(behaviour))
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Address("127.0.0.1", server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def attack(name: str) -> Attack:
    (found,) = [one for one in ATTACKS if one.name == name]
    return found


SLOW = ("half-frames", "pulls-held", "pull-bodies-held", "send-body-large", "heartbeat-of-many-groups")


@pytest.mark.parametrize(
    "attacks",
    [
        pytest.param(tuple(one for one in ATTACKS if one.name not in SLOW), id="quick"),
        pytest.param(ATTACKS, id="all", marks=pytest.mark.deep),
    ],
)
def test_our_broker_withstands_every_attack(attacks: tuple[Attack, ...]) -> None:
    with victims("impl") as victim:
        judged = list(run(victim.address, attacks, victim.memory))
    assert [(one.attack.name, one.failures) for one in judged if one.failures] == []
    assert len(judged) >= 20


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("send-queue-beyond-int32", "SUCCESS, expected an answer with another code than SUCCESS"),
        ("view-negative", "SUCCESS, expected an answer with another code"),
        ("frame-length-greatest", "the connection is still open"),
    ],
)
def test_a_broker_that_accepts_an_attack_has_failed(name: str, failure: str) -> None:
    with serving() as address:
        (judged,) = run(address, (attack(name),), seconds_max=QUICK_S)
    assert len(judged.failures) == 1
    assert failure in judged.failures[0]


def test_a_broker_that_serves_no_others_after_an_attack_has_failed() -> None:
    with serving(dies_of=33) as address:
        (judged,) = run(address, (attack("view-negative"),), seconds_max=QUICK_S)
    assert "others are not served" in judged.failures[-1]


def test_a_broker_that_answers_success_and_loses_the_message_does_not_serve() -> None:
    with serving(loses=True) as address, pytest.raises(UnreachableError, match="cannot be read"):
        list(run(address, (attack("code-unknown"),), seconds_max=QUICK_S))


def test_a_broker_that_takes_too_much_memory_has_failed() -> None:
    taken = iter((10, 10 + MEMORY_MIB_MAX + 1))
    with serving() as address:
        (judged,) = run(address, (attack("response-unasked"),), lambda: next(taken), seconds_max=QUICK_S)
    assert judged.failures == (
        f"the broker took {MEMORY_MIB_MAX + 1} MiB, at most {MEMORY_MIB_MAX} expected",
    )


def test_attacks_have_names_and_expectations_of_their_own() -> None:
    names = [one.name for one in ATTACKS]
    assert len(set(names)) == len(names)
    assert {one.expected for one in ATTACKS} == set(Expected)
    run_names = Names("T", "G")
    assert all(one.frames(run_names) for one in ATTACKS if one.name not in SLOW)
    assert send_fields(run_names, queueId=7)["queueId"] == "7"


def test_failures_are_results_with_a_command_that_repeats_them() -> None:
    with serving() as address:

        @contextmanager
        def found(target: str) -> Iterator[Victim]:
            yield Victim(address)

        options = RunOptions(f"remoting://{address}", ids=("hostile/view-*",))
        part = run_suite(options, lambda *_: None, found)
    assert [one.verdict for one in part.results] == [Verdict.VIOLATED] * 2
    assert part.results[0].replay.endswith("--suite hostile --id hostile/view-inside-a-record")


def test_the_suite_runs_only_if_it_is_named() -> None:
    arguments = ["conform", "--target", "impl", "--id", "hostile/*", "--dry-run"]
    assert CliRunner().invoke(app, arguments).exit_code == Exit.USAGE
    named = CliRunner().invoke(app, [*arguments, "--suite", "hostile"])
    assert named.exit_code == Exit.HELD
    assert len(named.stdout.splitlines()) == len(ATTACKS)


def test_an_error_of_an_attack_is_not_reported_as_an_unknown_target() -> None:
    with pytest.raises(ValueError, match=r"^of an attack$"), victims("remoting://127.0.0.1:10911"):
        raise ValueError("of an attack")


@pytest.mark.parametrize("target", ["remoting://nowhere", "apache:5", "python:x:y"])
def test_a_target_that_is_no_broker_is_refused(target: str) -> None:
    with pytest.raises(UnknownTargetError, match="the suite hostile needs"), victims(target):
        pass


def test_a_broker_that_is_not_there_is_an_error_of_the_target() -> None:
    options = RunOptions("remoting://127.0.0.1:1", ids=("hostile/code-*",))
    with pytest.raises(TargetError, match="does not serve"):
        run_suite(options, lambda *_: None, victims)
