"""Every verdict, on servers that are wrong in one way each."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import RESPONSE, Frame, Header, encode, framed
from mqproof.conformance.wire.model import (
    Call,
    Case,
    Expect,
    Hangup,
    Manner,
    Operation,
    Pushed,
    Request,
    Server,
    Step,
    Strength,
    Verdict,
    Written,
)
from mqproof.conformance.wire.operations.offsets import MAX_OFFSET
from mqproof.conformance.wire.requests import valid
from mqproof.conformance.wire.runner import Judged, run
from mqproof.conformance.wire.server_connection import Address
from mqproof.conformance.wire.systematic import systematic
from tests.conformance.wire.wrong_server import Reading, Reply, answer, is_oneway, serving

PATIENT_S = 60.0
HASTY_S = 0.3
"""The timeout of cases in which no answer ever comes."""
NAMES = {"topic": "T", "case": "1"}


def good(request: Frame) -> bytes:
    """Answer GET_MAX_OFFSET correctly."""
    if is_oneway(request):
        return b""
    if not request.fields.get("queueId", "").lstrip("-").isdigit() or "topic" not in request.fields:
        return answer(request, 1)
    return answer(request, offset="7")


def judged(number: int, reply: Reply, reading: Reading | None = None, seconds: float = PATIENT_S) -> Judged:
    case = next(one for one in systematic(MAX_OFFSET) if one.id == f"remoting/max-offset/{number}")
    return at(case, reply, reading, seconds)


def at(case: Case, reply: Reply, reading: Reading | None = None, seconds: float = PATIENT_S) -> Judged:
    with serving(reply, reading) as address:
        return run(case, address, NAMES, seconds)


def case_of(*steps: Step, strength: Strength = Strength.MUST) -> Case:
    return Case(
        "remoting/test/400", "test", Server.BROKER, chapters.OFFSET_REQUESTS, steps, strength=strength
    )


def test_a_correct_server_passes_every_case_of_an_operation() -> None:
    with serving(good) as address:
        verdicts = {case.id: run(case, address, NAMES, PATIENT_S) for case in systematic(MAX_OFFSET)}
    assert {one.verdict for one in verdicts.values()} == {Verdict.OK}, verdicts
    assert len(verdicts) > 15


def drops(is_dropped: Callable[[Frame], bool]) -> Reply:
    return lambda request: b"" if is_dropped(request) else good(request)


def wrong(is_wrong: Callable[[Frame], bool], code: int = 1) -> Reply:
    return lambda request: answer(request, code) if is_wrong(request) else good(request)


def answers_oneway(request: Frame) -> bytes:
    return answer(request, offset="7")


def other_opaque(request: Frame) -> bytes:
    return good(replace(request, opaque=request.opaque & 0xFF))


def bare_number(request: Frame) -> bytes:
    return framed(b'{"code":0,"opaque":%d,"flag":1,"extFields":{"offset":7}}' % request.opaque)


def extreme(request: Frame) -> bool:
    return abs(int(request.fields.get("queueId", "0") or "0")) > 1 << 30


@pytest.mark.parametrize(
    ("number", "reply", "reading", "said"),
    [
        pytest.param(1, lambda _: b"", None, "no answer within 0.3 s", id="silent"),
        pytest.param(1, lambda _: None, None, "the server closed the connection", id="closes"),
        pytest.param(1, lambda r: answer(r, 1), None, "code 1; 0 expected", id="refuses"),
        pytest.param(1, lambda r: answer(r), None, "field offset is None", id="lacks-a-field"),
        pytest.param(1, lambda r: answer(r, offset="x"), None, "field offset is 'x'", id="no-number"),
        pytest.param(1, lambda _: b"\0\0\0\1x" + bytes(9), None, "a length of 5 bytes", id="no-frame"),
        pytest.param(1, lambda _: framed(b"{"), None, "an inconsistent header", id="no-header"),
        pytest.param(1, bare_number, None, "'offset' is not a string", id="bare-number"),
        pytest.param(2, wrong(lambda r: r.header is Header.BINARY), None, "0 expected", id="no-binary"),
        pytest.param(3, wrong(lambda r: "wireUnknownField" in r.fields), None, "0 expected", id="picky"),
        pytest.param(4, good, Reading(first_only=True), "no answer", id="one-answer-an-opaque"),
        pytest.param(5, answers_oneway, None, "the one-way request was answered", id="answers-one-way"),
        pytest.param(6, good, Reading(first_only=True), "no answer", id="one-frame-a-write"),
        pytest.param(7, good, Reading(whole_only=True), "no answer", id="frames-in-one-piece"),
        pytest.param(8, other_opaque, None, "no answer", id="opaque-of-a-byte"),
        pytest.param(22, drops(extreme), None, "no answer", id="chokes-on-the-greatest"),
    ],
)  # fmt: skip
def test_a_wrong_server_fails_the_matching_case(
    number: int, reply: Reply, reading: Reading | None, said: str
) -> None:
    found = judged(number, reply, reading, HASTY_S if said.startswith("no answer") else PATIENT_S)
    assert found.verdict is Verdict.FAILED
    assert said in found.detail


def test_an_accepted_request_that_should_be_refused_is_not_strict() -> None:
    lax = judged(10, answers_oneway)
    assert lax.verdict is Verdict.NON_STRICT
    assert "another code expected" in lax.detail


def test_a_server_that_does_not_know_the_code_is_unimplemented() -> None:
    for number in (1, 5, 10, 22):
        assert judged(number, lambda r: answer(r, 3)).verdict is Verdict.UNIMPLEMENTED, number


def test_the_answer_to_a_may_case_is_reported() -> None:
    may = case_of(Call(Request(30), Expect(codes=())), strength=Strength.MAY)
    found = at(may, lambda r: answer(r, 77))
    assert (found.verdict, found.detail) == (Verdict.INFORMATIONAL, "answered with code 77")


def test_an_error_of_the_server_itself_fails_a_may_case_too() -> None:
    may = case_of(Call(Request(30), Expect(codes=())), strength=Strength.MAY)

    def fails(request: Frame) -> bytes:
        return encode(Frame(1, request.opaque, RESPONSE, remark="KeyError: 'topic'"))

    found = at(may, fails)
    assert found.verdict is Verdict.FAILED
    assert "an error of the server itself" in found.detail


def test_a_missing_answer_fails_a_may_case_too() -> None:
    may = case_of(Call(Request(30), Expect(codes=())), strength=Strength.MAY)
    assert at(may, lambda _: b"", seconds=HASTY_S).verdict is Verdict.FAILED


def test_a_connection_that_stays_open_fails_the_case() -> None:
    case = case_of(Written(framed(b"x"), closes=True))
    assert at(case, good).verdict is Verdict.OK  # our reader cannot parse that either
    open_case = case_of(Written(b"\0", closes=True))
    found = at(open_case, good, seconds=HASTY_S)
    assert (found.verdict, found.detail) == (Verdict.FAILED, "the connection is still open after 0.3 s")


def test_bodies_records_and_values_are_checked() -> None:
    record = (12).to_bytes(4, "big") + b"wire-one"
    for expect, is_met in (
        (Expect(records=2), True),
        (Expect(records=1), False),
        (Expect(has=("wire-one",)), True),
        (Expect(has=("wire-two",)), False),
        (Expect(lacks=("wire-one",)), False),
        (Expect(values={"offset": "7"}), True),
        (Expect(values={"offset": "8"}), False),
    ):
        found = at(case_of(Call(valid(MAX_OFFSET), expect)), lambda r: answer(r, 0, record * 2, offset="7"))
        assert (found.verdict is Verdict.OK) == is_met, (expect, found)


def test_an_early_answer_fails() -> None:
    early = case_of(Call(valid(MAX_OFFSET), Expect(not_before_s=5.0)))
    found = at(early, good)
    assert found.verdict is Verdict.FAILED
    assert "not before 5 s expected" in found.detail


def test_a_request_with_an_eventual_answer_is_repeated() -> None:
    requests = 0

    def slow(request: Frame) -> bytes:
        nonlocal requests
        requests += 1
        return answer(request, 0 if requests == 3 else 19, offset="9")

    kept = Call(valid(MAX_OFFSET), Expect(), Manner.EVENTUALLY, keep={"end": "offset"})
    then = Call(Request(31, {"offset": "$end"}), Expect(codes=(19,)))
    assert at(case_of(kept, then), slow).verdict is Verdict.OK
    assert requests == 4


def test_a_request_from_the_server_is_awaited_and_answered() -> None:
    seen: list[Frame] = []

    def pushes(request: Frame) -> bytes:
        if request.is_response:
            seen.append(request)
            return b""
        return answer(request) + encode(Frame(40, 5, fields={"consumerGroup": "T"}))

    case = case_of(
        Call(Request(34)),
        Pushed(40, {"consumerGroup": "$topic"}, reply="thanks"),
        Call(Request(35)),
        Hangup(),
    )
    assert at(case, pushes).verdict is Verdict.OK
    assert [(frame.opaque, frame.body) for frame in seen] == [(5, b"thanks")]
    other = case_of(Call(Request(34)), Pushed(40, {"consumerGroup": "U"}))
    assert at(other, pushes).verdict is Verdict.FAILED


def test_a_feature_that_a_server_reports_as_missing_is_not_implemented() -> None:
    case = case_of(Call(Request(310), Expect(lacking=(16,))))
    assert at(case, lambda r: answer(r, 16)).verdict is Verdict.UNIMPLEMENTED


def test_a_case_is_no_stronger_than_its_operation() -> None:
    loose = Operation(9, "X", "x", Server.BROKER, chapters.SEND_REQUESTS, strength=Strength.MAY)
    assert {case.strength for case in systematic(loose)} == {Strength.MAY}


def test_a_stopped_server_fails_the_remaining_steps() -> None:
    closed = Address("127.0.0.1", 1)
    found = run(case_of(Call(valid(MAX_OFFSET))), closed, NAMES, PATIENT_S)
    assert found.verdict is Verdict.FAILED
    assert "no connection" in found.detail
