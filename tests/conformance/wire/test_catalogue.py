"""The catalogue of cases: there are enough, each one has an existing source, and each one can fail."""

import re
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from mqproof.conformance.pages import wire_answers
from mqproof.conformance.wire.catalogue import CASES, choose
from mqproof.conformance.wire.model import ANY, Awaited, Call, Case, Server, Since, Verdict, Written
from mqproof.conformance.wire.operations import ALL
from mqproof.conformance.wire.operations.undescribed import EXISTING, OF_CLIENTS, UNKNOWN, WITHOUT_HANDLER
from mqproof.conformance.wire.runner import run
from mqproof.conformance.wire.systematic import HANDWRITTEN
from tests.conformance.wire.wrong_server import Reply, answer, serving
from tests.protocol_chapters import sections

NAMES = {
    "topic", "other", "sink", "group", "reader", "producer", "key", "now", "scratch", "half_key", "broker",
    "filtered", "filter_address",
    "cluster", "ns_cluster", "ns_broker", "ns_address", "ns_topic", "kv_namespace", "reply_properties",
    "live", "client", "own", "gone", "case", "msg_id", "offset", "half_offset", "half_queue_offset",
}  # fmt: skip
SECONDS = 0.05
"""The servers here answer at once or never, so a timeout that is too short gives FAILED, as expected."""


def test_the_catalogue_has_enough_cases_with_unique_ids() -> None:
    ids = Counter(case.id for case in CASES)
    assert len(ids) == len(CASES) > 2000
    assert all(re.fullmatch(r"remoting/[a-z0-9-]+/[a-z0-9-]+", one) for one in ids)


def test_every_described_code_has_cases() -> None:
    assert len({(operation.server, operation.code) for operation in ALL}) == len(ALL)
    described = {operation.code for operation in ALL if operation.server is not Server.FILTER_SERVER}
    others = {*EXISTING, *WITHOUT_HANDLER, *OF_CLIENTS}
    assert not described & others
    assert not described & set(UNKNOWN)
    assert len(described | others) > 140


def test_no_released_case_is_missing() -> None:
    assert set(wire_answers.read().verdicts) <= {case.id for case in CASES}


def test_every_source_is_a_section_of_the_protocol() -> None:
    assert {case.source for case in CASES} <= sections()


def test_the_rules_since_4_9_are_a_proper_subset() -> None:
    old = choose(since=Since.V4_9)
    assert 1000 < len(old) < len(CASES)
    assert {case.since for case in old} == {Since.V4_9}


def test_globs_select_cases_by_id() -> None:
    chosen = choose(["remoting/send-v2/4??", "remoting/pull/1"])
    assert {case.id.rpartition("/")[0] for case in chosen} == {"remoting/send-v2", "remoting/pull"}
    assert choose(["remoting/none/*"]) == ()


def verdicts(reply: Reply, cases: list[Case]) -> dict[str, Verdict]:
    names = dict.fromkeys(NAMES, "1")
    with serving(reply) as address:
        return {case.id: run(case, address, names, SECONDS).verdict for case in cases}


def quick(case: Case) -> Case:
    """Return the case with its frames split at one position only, which is enough on a wrong server."""
    steps = tuple(replace(step, cut_step=97) if isinstance(step, Call) else step for step in case.steps)
    return replace(case, steps=steps)


@pytest.mark.parametrize("part", range(2))
def test_every_case_fails_on_a_server_that_closes_the_connection(part: int) -> None:
    cases = [quick(case) for case in CASES[part::2]]
    assert set(verdicts(lambda _: None, cases).values()) == {Verdict.FAILED}


def expects_something(case: Case) -> bool:
    expected = [step.expect for step in case.steps if isinstance(step, Call | Awaited)]
    expected += [step.expect for step in case.steps if isinstance(step, Written) and step.answers is not None]
    return any(expect != ANY for expect in expected)


def test_a_case_with_an_expected_answer_fails_on_a_server_with_one_constant_answer() -> None:
    suspects = [quick(case) for case in CASES if expects_something(case)]
    assert len(suspects) > 1000
    for code in (0, 1, 9876):
        found = verdicts(partial(answer, code=code), suspects)
        suspects = [case for case in suspects if found[case.id] is Verdict.OK]
    assert [case.id for case in suspects] == []


def test_the_catalogue_has_many_handwritten_cases() -> None:
    numbers = [case.id.rpartition("/")[2] for case in CASES]
    assert sum(number.isdigit() and int(number) >= HANDWRITTEN for number in numbers) > 100
