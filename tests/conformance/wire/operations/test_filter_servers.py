"""Tests the function that the wire cases upload."""

from wasmtime import wat2wasm

from mqproof.conformance.wire.operations.filter_servers import MODULE

TEXT = """
(module
  (memory (export "memory") 1)
  (func (export "allocate") (param i32) (result i32) (i32.const 0))
  (func (export "matches") (param i32 i32 i32 i32) (result i32) (local i32)
    (local.set 4 (i32.load8_u (local.get 2)))
    (if (i32.gt_u (local.get 4) (i32.const 98)) (then unreachable))
    (i32.eq (local.get 4) (i32.const 97))))
"""


def test_the_module_has_this_text_form() -> None:
    assert bytes(wat2wasm(TEXT)).hex() == MODULE.hex()
