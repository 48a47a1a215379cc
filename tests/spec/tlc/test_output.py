"""Goal: TLC's messages are parsed, even if nested or truncated. Method: text as `-tool` prints it."""

from mqproof.spec.tlc import output

NESTED = """loose
@!@!@STARTMSG 1000:1 @!@!@
The exception was
: @!@!@STARTMSG 2184:0 @!@!@
Attempted to apply Head to the empty sequence.
@!@!@ENDMSG 2184 @!@!@
@!@!@ENDMSG 1000 @!@!@
more
"""


def test_a_nested_message_is_parsed_as_a_separate_message() -> None:
    read = output.read(NESTED)
    assert [(message.code, message.severity) for message in read.messages] == [(1000, 1), (2184, 0)]
    assert read.of(2184)[0].text == "Attempted to apply Head to the empty sequence."
    assert read.loose == "loose\nmore\n"


def test_output_truncated_inside_a_message_is_parsed_up_to_that_message() -> None:
    read = output.read(NESTED[: NESTED.index("@!@!@ENDMSG 1000")])
    assert [message.code for message in read.messages] == [2184]
    assert read.states == (0, 0)
    assert read.trace is None


def test_only_the_first_counterexample_is_returned() -> None:
    one = "@!@!@STARTMSG 2217:4 @!@!@\n1: <Initial predicate>\nx = %d\n\n@!@!@ENDMSG 2217 @!@!@\n"
    trace = output.read(one % 0 + one % 5).trace
    assert trace is not None
    assert [step.state["x"] for step in trace.steps] == [0]
