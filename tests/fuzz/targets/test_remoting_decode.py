"""Tests the target that decodes data from peers: its seeds and its invariants."""

import pytest

from mqproof.fuzz import targets
from mqproof.fuzz.engine.execution import judge
from mqproof.fuzz.engine.search import Engine
from mqproof.fuzz.target import Finding
from mqproof.fuzz.targets.remoting_decode import FRAME_BYTES_MAX, read, read_divided
from mqproof.impl.remoting.command import Command, encode


def test_the_seeds_are_complete_frames_of_commands() -> None:
    target = targets.load("remoting-decode")
    for seed in target.seeds():
        reading = read(seed)
        assert reading.commands
        assert reading.refusal == ""
        assert reading.left == b""
        target.run(seed)
    assert set(+target.checked) == set(target.invariants)


def test_a_stream_decodes_to_the_same_result_whole_and_byte_by_byte() -> None:
    good = encode(Command(10, 1)) + encode(Command(11, 2))
    for stream in (good, good[:-1], good + b"\xff\xff\xff\xff", good + b"\0\0\0\1x" + good, b""):
        assert read(stream) == read_divided(stream, range(len(stream) + 1))
    refused = read(good + b"\xff\xff\xff\xff")
    assert len(refused.commands) == 2
    assert "frame of 4294967299 bytes announced" in refused.refusal
    assert refused.left == b"\xff\xff\xff\xff"


@pytest.mark.parametrize("size", [0, 4, FRAME_BYTES_MAX - 4, FRAME_BYTES_MAX - 3, 0xFFFFFFFF])
def test_any_announced_length_is_judged(size: int) -> None:
    targets.load("remoting-decode").run(size.to_bytes(4, "big"))


def test_hundreds_of_inputs_break_no_invariant() -> None:
    engine = Engine(targets.load("remoting-decode"), "1")
    for _ in range(600):
        data, failure = engine.step()
        assert failure is None, f"{failure} for {data.hex()}"
    assert engine.features > 150


def test_a_finding_is_recognised_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_nothing_back(_: Command) -> bytes:
        return encode(Command(0, 0))

    monkeypatch.setattr("mqproof.fuzz.targets.remoting_decode.command.encode", give_nothing_back)
    failure = judge(targets.load("remoting-decode"), encode(Command(10, 1)))
    assert failure is not None
    assert failure.invariant == "RoundTrip"
    assert issubclass(Finding, Exception)
