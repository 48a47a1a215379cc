"""A plan is validated, and each mistake is one line that names the file, the fault and what is expected."""

import pytest

from mqproof.impl.chaos.fault_table import FAULTS
from mqproof.impl.chaos.plan import Plan, PlanError, of_faults, parse

ONE = '[[fault]]\nname = "send_busy"\n'


def test_a_plan_has_the_defaults_of_its_faults() -> None:
    (fault,) = parse('seed = 7\n[[fault]]\nname = "send_answer_delayed"\n', "p.toml").faults
    kind = FAULTS["send_answer_delayed"]
    assert (fault.kind, fault.probability, fault.delay_ms) == (kind, kind.probability, kind.delay_ms)
    assert parse(f"seed = 7\n{ONE}", "p.toml").seed == 7
    assert parse(f"seed = 7\n{ONE}", "p.toml", seed=8).seed == 8


def test_every_key_of_a_plan_is_used() -> None:
    text = (
        'lawful = true\n[[fault]]\nname = "pull_delayed"\nprobability = 1\nspacing = 2\ndelay_ms = [1, 5]\n'
        'skip = 3\nat = [9, 4]\nlimit = 6\ntopic = "T"\ngroup = "G"\nbroker = "b"\n'
    )
    plan = parse(text, "p.toml")
    (fault,) = plan.faults
    assert plan.is_lawful
    assert (fault.probability, fault.spacing, fault.delay_ms, fault.skip) == (1, 2, (1, 5), 3)
    assert (fault.at, fault.limit, fault.topic, fault.group, fault.broker) == ((4, 9), 6, "T", "G", "b")
    assert fault.matches("b", "T", "G")
    assert not any(fault.matches(*other) for other in (("x", "T", "G"), ("b", "x", "G"), ("b", "T", "x")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing required field `fault`"),
        ("fault = []", "length >= 1"),
        ("x = ", "p.toml: Invalid value"),
        (ONE + "x = 1", "unknown field `x`"),
        ("sed = 1\n" + ONE, "unknown field `sed`"),
        (ONE + "probability = 1.5", "<= 1"),
        (ONE + "at = [0]", ">= 1"),
        (ONE + "limit = 0", ">= 1"),
        (ONE + "delay_ms = 5", "p.toml: fault 1: send_busy has no duration, so delay_ms has no use"),
        (ONE + 'group = "G"', "p.toml: fault 1: send_busy acts on sends, which have no group"),
        ('[[fault]]\nname = "pull_delayed"\ndelay_ms = [5, 1]', "delay_ms is [5, 1], the lower value first"),
        ('[[fault]]\nname = "pull_delayed"\ndelay_ms = [5]', "length >= 2"),
        ('[[fault]]\nname = "pull_delayed"\ndelay_ms = 60001', "<= 60000"),
        (ONE + '[[fault]]\nname = "send_bsy"', "p.toml: fault 2: 'send_bsy' is not a fault, did you mean"),
        ('lawful = true\n[[fault]]\nname = "message_skipped"', "message_skipped breaks DELIV-1, FLUSH-4"),
        ("#" * (1 << 21), "at most 1048576 expected"),
    ],
)
def test_a_mistake_in_a_plan_is_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(PlanError) as error:
        parse(text, "p.toml")
    assert message in str(error.value)
    assert str(error.value).startswith("p.toml: ")


def test_an_unknown_fault_is_reported_with_all_known_ones() -> None:
    with pytest.raises(PlanError) as error:
        of_faults(["nothing"])
    assert all(name in str(error.value) for name in FAULTS)


def test_faults_by_name_have_a_probability_or_the_default() -> None:
    plan = of_faults(["send_busy=0.5", "pull_busy"], seed=3)
    assert [fault.probability for fault in plan.faults] == [0.5, FAULTS["pull_busy"].probability]
    for text in ("send_busy=2", "send_busy=x", "send_busy="):
        with pytest.raises(PlanError, match="with a probability from 0 to 1"):
            of_faults([text])


def test_without_names_all_lawful_faults_are_planned_and_no_other() -> None:
    plan = of_faults([], lawful=True)
    assert {fault.kind.name for fault in plan.faults} == {k for k, v in FAULTS.items() if v.is_lawful}
    assert Plan().faults == ()


def test_a_lawful_run_refuses_every_unlawful_fault() -> None:
    for name, fault in FAULTS.items():
        if not fault.is_lawful:
            with pytest.raises(PlanError, match="only faults that the specification permits"):
                of_faults([name], lawful=True)
            assert of_faults([name]).faults
