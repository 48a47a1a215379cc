"""Tests the functions of the programs of filter servers."""

from wasmtime import wat2wasm

from mqproof.fuzz.filters.functions import FIRST, SECOND, damaged

TEXT = """
(module
  (memory (export "memory") 1)
  (func (export "allocate") (param i32) (result i32) (i32.const 0))
  (func (export "matches") (param i32 i32 i32 i32) (result i32)
    (i32.and (i32.load8_u (local.get 2)) (i32.const 1))))
"""


def test_the_second_module_has_this_text_form() -> None:
    assert bytes(wat2wasm(TEXT)).hex() == SECOND.hex()


def test_damaged_modules_differ_from_the_first() -> None:
    made = {damaged(place, 200, size) for place in range(0, 256, 7) for size in range(16)}
    assert FIRST not in made
    assert {len(module) for module in made} == {len(FIRST) - cut for cut in (0, 4, 8, 12)}
