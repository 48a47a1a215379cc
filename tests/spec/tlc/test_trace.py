"""Goal: a counterexample shows each action and only its changes."""

from mqproof.spec.tlc.trace import Step, Trace, changed, render
from mqproof.spec.tlc.values import Function, Value, parse_state


def difference(before: str, after: str) -> list[tuple[str, str]]:
    return list(changed(parse_state(before), parse_state(after)))


def test_only_changed_values_are_shown_each_with_its_path() -> None:
    assert difference("/\\ x = 1\n/\\ y = 2", "/\\ x = 1\n/\\ y = 3") == [("y", "2 -> 3")]
    assert difference("f = (n1 :> 0 @@ n2 :> 0)", "f = (n1 :> 0 @@ n2 :> 1)") == [("f[n2]", "0 -> 1")]
    assert difference('r = [a |-> [b |-> "x"]]', 'r = [a |-> [b |-> "y"]]') == [("r.a.b", '"x" -> "y"')]
    assert difference("r = [a |-> 1]", "r = [b |-> 1]") == [("r", "[a |-> 1] -> [b |-> 1]")]


def test_a_change_of_a_sequence_is_shown_as_append_truncation_removal_or_update() -> None:
    assert difference("q = <<1>>", "q = <<1, 2, 3>>") == [("q", "appended 2, 3")]
    assert difference("q = <<1, 2>>", "q = <<1>>") == [("q", "cut to length 1, lost 2")]
    assert difference("q = <<1, 2>>", "q = <<2>>") == [("q", "took from the front 1")]
    assert difference("q = <<1, 2>>", "q = <<1, 5>>") == [("q[2]", "2 -> 5")]
    assert difference("q = <<1, 2>>", "q = <<3>>") == [("q", "<<1, 2>> -> <<3>>")]


def test_a_change_of_a_set_is_shown_as_added_and_removed_elements() -> None:
    assert difference("s = {1, 2}", "s = {2, 3}") == [("s", "+ 3, - 1")]


def test_a_trace_is_rendered_as_numbered_steps() -> None:
    def state(value: Value) -> Function:
        return Function({"x": value})

    steps = (Step(1, "", state(0)), Step(2, "Up", state(1)), Step(3, "Idle", state(1)))
    assert render(Trace(steps)).splitlines() == [
        "  1  initial state",
        "       x  0",
        "  2  Up",
        "       x  0 -> 1",
        "  3  Idle",
        "       nothing changes",
    ]
    assert render(Trace(steps, stutters=True)).endswith("forever (stuttering)")
    assert render(Trace(steps, back_to=2, back_by="Down")).endswith("back to step 2 by Down, forever")
