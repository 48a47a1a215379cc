"""The text and the JSON of answers."""

from mqproof.impl.diagnosis import causes, report
from mqproof.impl.diagnosis.evidence import Answer


def test_an_answer_is_a_few_lines_with_cause_evidence_and_next_step() -> None:
    answer = Answer(causes.LAGGING, ("one\x1b[31m", "two"), "billing", "Orders", "7F00")
    assert report.lines([answer]) == [
        "message 7F00, group billing: delayed",
        "  cause     lagging: The message is in the queue, and the group has not come to it yet.",
        "  evidence  one\\x1b[31m",
        "            two",
        "  next      Wait, or add members; watch mqproof admin consumerProgress.",
    ]


def test_long_lines_are_broken_at_the_width_of_a_terminal() -> None:
    answer = Answer(causes.PASSED, ("word " * 30, "  indented"), "g", "T", "m")
    found = report.lines([answer], 80)
    assert max(map(len, found)) <= 80
    assert all(line.startswith(" " * 12) for line in found[2:3])
    assert " ".join(" ".join(found).split()) == " ".join(" ".join(report.lines([answer])).split())
    assert report.lines([answer, answer], 80).count("") == 1


def test_the_worst_answer_decides_the_exit_code() -> None:
    fine, bad, unknown = (Answer(each, ()) for each in (causes.CONSUMED, causes.NO_MEMBERS, causes.PASSED))
    assert report.exit_code([fine]) == 0
    assert report.exit_code([fine, unknown]) == 3
    assert report.exit_code([fine, unknown, bad]) == 1
    assert report.exit_code([]) == 3


def test_the_json_has_documented_keys() -> None:
    found = report.as_json([Answer(causes.CONSUMED, ("e",), "g", "T", "m")])
    assert found["exit_code"] == 0
    assert found["answers"] == [
        {
            "message_id": "m",
            "topic": "T",
            "group": "g",
            "state": "delivered",
            "cause": "consumed",
            "needs_action": False,
            "evidence": ["e"],
            "next_step": causes.CONSUMED.next_step,
        }
    ]
