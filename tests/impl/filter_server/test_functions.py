"""Tests the sandbox of functions in WebAssembly, above all with functions that are hostile.

Source: docs/reference/protocol/filters.md, "Functions".
"""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from wasmtime import wat2wasm

from mqproof.impl.filter_server.decisions import RunError, Text
from mqproof.impl.filter_server.functions import FunctionError, Functions, Limits

ALLOCATE = '(memory (export "memory") 1) (func (export "allocate") (param i32) (result i32) (i32.const 0))'
STARTS_WITH_A = """
(func (export "matches") (param $at i32) (param $size i32) (param $body i32) (param $length i32) (result i32)
  (if (result i32) (i32.eqz (local.get $length)) (then (i32.const 0))
    (else (i32.eq (i32.load8_u (local.get $body)) (i32.const 97)))))
"""
PARAMETERS = "(param i32 i32 i32 i32) (result i32)"


def module(text: str, allocate: str = ALLOCATE) -> bytes:
    return bytes(wat2wasm(f"(module {allocate} {text})"))


def matches(body: str, allocate: str = ALLOCATE, before: str = "") -> bytes:
    return module(f'{before} (func (export "matches") {PARAMETERS} {body})', allocate)


def select(code: bytes, *bodies: bytes, limits: Limits | None = None) -> list[bool]:
    functions = Functions(limits or Limits())
    function = functions.get(functions.add(code, 0.0), 0.0)
    assert function is not None
    return function.select(Text(b"", body) for body in bodies)


def test_a_function_decides_for_each_message() -> None:
    assert select(module(STARTS_WITH_A), b"apple", b"", b"berry", b"a") == [True, False, False, True]


def test_a_function_sees_the_properties_and_the_body() -> None:
    # Whether the byte before the body, the last one of the properties, equals the first one of the body.
    code = matches("(i32.eq (i32.load8_u (i32.sub (local.get 2) (i32.const 1))) (i32.load8_u (local.get 2)))")
    functions = Functions(Limits())
    function = functions.get(functions.add(code, 0.0), 0.0)
    assert function is not None
    assert function.select([Text(b"px", b"xy"), Text(b"px", b"y")]) == [True, False]


def test_a_large_message_needs_memory_that_the_function_allocates() -> None:
    grows = """
    (memory (export "memory") 1)
    (func (export "allocate") (param $size i32) (result i32)
      (drop (memory.grow (i32.div_u (local.get $size) (i32.const 65536)))) (i32.const 0))
    """
    assert select(module(STARTS_WITH_A, grows), b"a" * 1_000_000) == [True]
    with pytest.raises(RunError, match=r"allocate\(1000000\) returned 0, which is outside the memory"):
        select(module(STARTS_WITH_A), b"a" * 1_000_000)
    with pytest.raises(RunError, match="outside the memory"):
        select(module(STARTS_WITH_A, grows), b"a" * 3_000_000, limits=Limits(memory_bytes_max=2 << 20))


def test_an_address_outside_the_memory_is_not_written() -> None:
    wrong = ALLOCATE.replace("(i32.const 0)", "(i32.const -8)")
    with pytest.raises(RunError, match="returned 4294967288"):
        select(module(STARTS_WITH_A, wrong), b"abcdefghijkl")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("(loop (br 0)) (i32.const 1)", "all fuel consumed"),
        # Without a charge for each byte, an instruction would cost a millisecond and one unit of fuel.
        (
            "(loop (memory.fill (i32.const 0) (i32.const 7) (i32.const 65536)) (br 0)) (i32.const 1)",
            "all fuel",
        ),
        ("unreachable", "unreachable"),
        ("(i32.load (i32.const 65536))", "out of bounds memory access"),
        ("(i32.div_u (i32.const 1) (i32.const 0))", "integer divide by zero"),
    ],
)
def test_a_function_that_fails_is_stopped(body: str, said: str) -> None:
    with pytest.raises(RunError, match=said):
        select(matches(body), b"x")


def test_an_instruction_costs_the_bytes_that_it_fills() -> None:
    fills = matches("(memory.fill (i32.const 0) (i32.const 7) (i32.const 65536)) (i32.const 1)")
    assert select(fills, b"x") == [True]
    with pytest.raises(RunError, match="fuel"):
        select(fills, b"x", limits=Limits(fuel_per_message=60_000))


def test_recursion_ends() -> None:
    code = module(
        f"(func $again {PARAMETERS} (call $again (local.get 0) (local.get 1) (local.get 2) (local.get 3)))"
        f'(export "matches" (func $again))'
    )
    with pytest.raises(RunError, match=r"stack|fuel"):
        select(code, b"x", limits=Limits(fuel_per_message=10**9))


def test_a_start_function_is_bounded_too() -> None:
    code = module(f"{STARTS_WITH_A} (func $begin (loop (br 0))) (start $begin)")
    with pytest.raises(RunError, match="fuel"):
        select(code, b"x")


def test_fuel_is_per_message_and_a_later_failure_keeps_what_was_found() -> None:
    # It loops for ever at a body that begins with `b`.
    code = module(STARTS_WITH_A.replace("(i32.const 97)", "(i32.const 97)").replace(
        "(i32.eq (", "(block (br_if 0 (i32.ne (i32.load8_u (local.get $body)) (i32.const 98))) (loop (br 0)))"
        " (i32.eq ("
    ))  # fmt: skip
    assert select(code, b"a", b"c", b"b", b"a") == [True, False]


def test_an_instance_reserves_little_more_than_the_memory_of_a_function() -> None:
    """By default wasmtime reserves 4 GiB of addresses, which a process with a limit does not have."""
    sizes: list[int] = []

    def messages() -> Iterator[Text]:
        for _ in range(3):
            sizes.append(int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize())
            yield Text(b"", b"a")

    functions = Functions(Limits())
    function = functions.get(functions.add(module(STARTS_WITH_A), 0.0), 0.0)
    assert function is not None
    function.select(messages())
    assert sizes[-1] - sizes[0] < 2 * Limits().memory_bytes_max


def test_no_state_survives_from_one_batch_to_the_next() -> None:
    counts = matches(
        "(global.set $n (i32.add (global.get $n) (i32.const 1))) (i32.eq (global.get $n) (i32.const 1))",
        before="(global $n (mut i32) (i32.const 0))",
    )
    functions = Functions(Limits())
    function = functions.get(functions.add(counts, 0.0), 0.0)
    assert function is not None
    assert [function.select([Text(b"", b"x"), Text(b"", b"y")]) for _ in range(2)] == [[True, False]] * 2


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (b"(module)", "binary form"),
        (b"\0asm broken", "not a valid module"),
        (bytes(wat2wasm("(module)")), 'no memory "memory"'),
        (bytes(wat2wasm('(module (memory (export "memory") 1))')), '"allocate" \\(i32\\) -> i32'),
        (module('(func (export "matches") (param i32) (result i32) (i32.const 1))'), '"matches" \\(i32 i32'),
        (module('(import "env" "f" (func))', ""), "imports env.f"),
        (bytes(wat2wasm("(module (memory 1) (memory 1))")), "not a valid module"),
    ],
)
def test_a_module_with_another_interface_is_refused(code: bytes, said: str) -> None:
    functions = Functions(Limits())
    with pytest.raises(FunctionError, match=said):
        functions.add(code, 0.0)
    assert len(functions) == 0


def test_a_large_module_is_refused() -> None:
    with pytest.raises(FunctionError, match="at most 50 expected"):
        Functions(Limits(module_bytes_max=50)).add(module(STARTS_WITH_A), 0.0)


def test_a_memory_above_the_limit_is_not_given() -> None:
    large = ALLOCATE.replace('"memory") 1)', '"memory") 100)')
    with pytest.raises(RunError, match="memory"):
        select(module(STARTS_WITH_A, large), b"x", limits=Limits(memory_bytes_max=1 << 20))


def test_functions_make_room_only_when_they_are_unused() -> None:
    functions = Functions(Limits(functions_max=2))
    codes = [matches(f"(i32.const {number})") for number in range(3)]
    names = [functions.add(code, 0.0) for code in codes[:2]]
    assert functions.add(codes[0], 1.0) == names[0], "a known one takes no room"
    with pytest.raises(FunctionError, match="2 functions are in use"):
        functions.add(codes[2], 500.0)
    assert functions.get(names[0], 550.0) is not None
    third = functions.add(codes[2], 700.0)
    assert functions.get(names[1], 700.0) is None
    assert functions.get(names[0], 700.0) is not None
    assert functions.get(third, 700.0) is not None
