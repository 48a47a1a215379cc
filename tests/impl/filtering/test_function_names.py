"""Tests the names of functions."""

from mqproof.impl.filtering.function_names import MAGIC, function_name


def test_a_name_is_the_hash_of_the_whole_module() -> None:
    # From RFC 6234's test vectors for SHA-256: "abc".
    assert function_name(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert function_name(MAGIC) != function_name(MAGIC + b"\1")
