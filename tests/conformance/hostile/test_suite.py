"""Tests the suite hostile: our broker withstands every attack, and a broker that does not is found.

The second broker is a few lines: it answers SUCCESS to everything and keeps nothing, or stops serving.
"""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from mqproof.conformance.adapters.apache.artifacts import releases
from mqproof.conformance.adapters.attacked_servers import attacked
from mqproof.conformance.adapters.victims import victims
from mqproof.conformance.commands.conform import app
from mqproof.conformance.engine.run_options import RunOptions
from mqproof.conformance.engine.targets import TargetError, UnknownTargetError
from mqproof.conformance.hostile import attack_run
from mqproof.conformance.hostile.attack import Attack, Expected, Names, Setup, Signer
from mqproof.conformance.hostile.attack_requests import send_fields
from mqproof.conformance.hostile.attack_run import run
from mqproof.conformance.hostile.attacks import ATTACKS
from mqproof.conformance.hostile.checkers import CHECKERS, MEMORY_MIB_MAX
from mqproof.conformance.hostile.seen import Victim
from mqproof.conformance.hostile.suite import in_short
from mqproof.conformance.hostile.suite import run as run_suite
from mqproof.conformance.wire.frames import RESPONSE, Frame, MalformedError, encode, take
from mqproof.conformance.wire.server_connection import Address, UnreachableError
from mqproof.report.model import Exit, Result, Verdict
from tests.protocol_chapters import sections

QUICK_S = 1.0


class Servant(socketserver.BaseRequestHandler):
    """Answers SUCCESS to everything; a pull returns the last message that was sent."""

    last = b""
    loses = False
    """Whether it keeps no message."""
    dies_of = -1
    """The request code after which it answers nothing any more."""
    is_dead = False
    forgets_at = -1
    """The request code at which it forgets all messages."""

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
        if frame.code == kind.forgets_at:
            kind.last = b""
            kind.loses = True
        if frame.code == 10 and not kind.loses:
            kind.last += frame.body
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


BROKER = Setup.BROKER
QUICK = (Setup.BROKER, Setup.ACCOUNTS, Setup.SLAVES)
"""An election takes seconds, and so does the decompression of bodies; the deep profile has all setups."""


@pytest.mark.parametrize("setup", QUICK, ids=lambda setup: setup.name.lower())
def test_our_servers_withstand_every_attack_that_costs_little(setup: Setup) -> None:
    attacks = tuple(one for one in ATTACKS if one.setup is setup and not one.is_heavy)
    with attacked(setup, is_small=True) as victim:
        judged = list(run(victim, attacks))
    assert [(one.attack.name, one.failures) for one in judged if one.failures] == []
    assert len(judged) == len(attacks)


@pytest.mark.deep("heavy attacks on processes with default limits; the others run in every run")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("setup", list(Setup), ids=lambda setup: setup.name.lower())
def test_our_servers_withstand_every_attack(setup: Setup) -> None:
    """The broker is a process of its own with the default limits, so the heavy attacks take their time."""
    attacks = tuple(one for one in ATTACKS if one.setup is setup)
    with victims("impl", setup) as victim:
        judged = list(run(victim, attacks))
    assert [(one.attack.name, one.failures) for one in judged if one.failures] == []


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("send-queue-beyond-int32", "SUCCESS, expected an answer with another code than SUCCESS"),
        ("view-negative", "SUCCESS, expected an answer with another code"),
        ("frame-length-greatest", "the connection is still open"),
        ("share-of-unanswered-bytes", "answers without SYSTEM_BUSY"),
    ],
)
def test_a_broker_that_accepts_an_attack_has_failed(name: str, failure: str) -> None:
    with serving() as address:
        (judged,) = run(Victim((address,)), (attack(name),), seconds_max=QUICK_S)
    assert len(judged.failures) == 1
    assert failure in judged.failures[0]
    assert judged.is_served


def test_a_broker_that_serves_no_others_after_an_attack_has_failed() -> None:
    with serving(dies_of=33) as address:
        (judged,) = run(Victim((address,)), (attack("view-negative"),), seconds_max=QUICK_S)
    assert "others are not served" in judged.failures[-1]
    assert not judged.is_served


def test_a_broker_that_answers_success_and_loses_the_message_does_not_serve() -> None:
    with serving(loses=True) as address, pytest.raises(UnreachableError, match="cannot be read"):
        list(run(Victim((address,)), (attack("code-unknown"),), seconds_max=QUICK_S))


def test_a_broker_that_loses_an_earlier_message_has_failed() -> None:
    with serving(forgets_at=33) as address:
        (judged,) = run(Victim((address,)), (attack("view-negative"),), seconds_max=QUICK_S)
    assert "a message that was acknowledged cannot be read" in judged.failures[-1]


def test_a_broker_that_takes_too_much_memory_has_failed() -> None:
    taken = iter((10, 10 + MEMORY_MIB_MAX + 1))
    with serving() as address:
        victim = Victim((address,), lambda: next(taken))
        (judged,) = run(victim, (attack("response-unasked"),), seconds_max=QUICK_S)
    assert judged.failures == (
        f"the broker took {MEMORY_MIB_MAX + 1} MiB, at most {MEMORY_MIB_MAX} expected",
    )


def test_there_are_at_least_sixty_attacks_with_names_and_rules_of_their_own() -> None:
    names = [one.name for one in ATTACKS]
    assert len(set(names)) == len(names) >= 60
    assert {one.expected for one in ATTACKS} == set(Expected)
    assert {one.invariant for one in ATTACKS} == set(CHECKERS)
    assert {f"docs/reference/protocol/{one.rule}" for one in ATTACKS} <= sections()
    signer = Signer("account", "secret")
    run_names = Names("T", "G", names=3, pulls=3, account=signer, administrator=signer)
    assert all(one.frames(run_names) for one in ATTACKS if not one.is_heavy)
    assert send_fields(run_names, queueId=7)["queueId"] == "7"


def test_failures_are_results_with_a_command_that_repeats_them() -> None:
    with serving() as address:
        options = RunOptions(f"remoting://{address}", ids=("hostile/view-[in]*",))
        part = run_suite(options, lambda *_: None, victims)
    assert [one.verdict for one in part.results] == [Verdict.VIOLATED] * 2
    assert part.results[0].replay.endswith("--suite hostile --id hostile/view-inside-a-record")
    assert part.tables[0].rows == (("TRUST-11 FieldsWithinLimits", "0", "2", "0"),)


def test_a_setup_that_the_target_lacks_is_not_applicable_and_has_a_reason() -> None:
    options = RunOptions("remoting://127.0.0.1:1", ids=("hostile/slave-*", "hostile/denied-*"))
    part = run_suite(options, lambda *_: None, victims)
    assert {one.verdict for one in part.results} == {Verdict.NOT_TESTED}
    assert {one.detail.partition(":")[0] for one in part.results} == {"not applicable"}
    assert part.looked_at == {"attacks": 0}


def test_a_broker_that_no_longer_serves_is_started_again_for_the_other_attacks() -> None:
    starts = []

    @contextmanager
    def mortal(_target: str, _setup: Setup) -> Iterator[Victim]:
        with serving(dies_of=33) as address:
            starts.append(address)
            yield Victim((address,))

    options = RunOptions("impl", ids=("hostile/view-negative", "hostile/view-beyond-int64"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attack_run, "SECONDS_MAX", QUICK_S)
        patch.setattr(attack_run.run, "__defaults__", (QUICK_S,))
        part = run_suite(options, lambda *_: None, mortal)
    assert [one.verdict for one in part.results] == [Verdict.VIOLATED] * 2
    assert len(starts) == 2


def test_people_see_one_row_for_the_attacks_of_an_invariant_that_held() -> None:
    held, violated = (
        Result(f"hostile/{name}", "about", "hostile", verdict, {"connections": 1})
        for name, verdict in (("code-unknown", Verdict.HELD), ("view-negative", Verdict.VIOLATED))
    )
    assert [(one.id, one.verdict) for one in in_short((held, violated))] == [
        ("TRUST-11", Verdict.HELD),
        ("hostile/view-negative", Verdict.VIOLATED),
    ]


def test_the_suite_runs_only_if_it_is_named() -> None:
    arguments = ["conform", "--target", "impl", "--id", "hostile/*", "--dry-run"]
    assert CliRunner().invoke(app, arguments).exit_code == Exit.USAGE
    named = CliRunner().invoke(app, [*arguments, "--suite", "hostile"])
    assert named.exit_code == Exit.HELD
    assert len(named.stdout.splitlines()) == len(ATTACKS)


def test_an_error_of_an_attack_is_not_reported_as_an_unknown_target() -> None:
    with pytest.raises(ValueError, match=r"^of an attack$"), victims("remoting://127.0.0.1:10911", BROKER):
        raise ValueError("of an attack")


@pytest.mark.parametrize("target", ["remoting://nowhere", "python:x:y"])
def test_a_target_that_is_not_a_broker_is_refused(target: str) -> None:
    with pytest.raises(UnknownTargetError, match="the suite hostile needs"), victims(target, BROKER):
        pass


@pytest.mark.apache
@pytest.mark.parametrize("release", releases())
def test_the_suite_judges_a_released_broker(release: str) -> None:
    """The whole run is in docs/reference/conformance/hostile.md; these attacks have different results."""
    options = RunOptions(f"apache:{release}", ids=("hostile/code-unknown", "hostile/slave-without-proof"))
    part = run_suite(options, lambda *_: None, victims)
    assert [one.verdict for one in part.results] == [Verdict.HELD, Verdict.VIOLATED]


def test_a_broker_that_is_not_there_is_an_error_of_the_target() -> None:
    options = RunOptions("remoting://127.0.0.1:1", ids=("hostile/code-*",))
    with pytest.raises(TargetError, match="does not serve"):
        run_suite(options, lambda *_: None, victims)
