"""Tests the engine: it finds the canary, and repeats itself with the same seed."""

from pathlib import Path
from random import Random

import pytest

from mqproof.fuzz import targets
from mqproof.fuzz.engine.corpus import Corpus
from mqproof.fuzz.engine.execution import Failure
from mqproof.fuzz.engine.mutate import Mutator
from mqproof.fuzz.engine.search import Engine

EXECUTIONS_MAX = 100_000


def find_canary(seed: str) -> tuple[int, bytes]:
    engine = Engine(targets.load("canary"), seed)
    for _ in range(EXECUTIONS_MAX):
        data, failure = engine.step()
        if failure is not None:
            assert failure == Failure("CanaryAlive", "CanaryAlive", "the canary is dead")
            return engine.executions, data
    raise AssertionError(f"the canary lives after {EXECUTIONS_MAX} executions")


@pytest.mark.parametrize("seed", ["4", "5"])
def test_the_canary_is_found(seed: str) -> None:
    executions, data = find_canary(seed)
    assert executions < EXECUTIONS_MAX
    assert b"gas!" in data


def test_the_same_seed_finds_the_canary_with_the_same_input() -> None:
    assert find_canary("4") == find_canary("4")


def test_blind_mutation_does_not_find_the_canary() -> None:
    """If this failed, the canary would be too easy to show whether coverage guides the search."""
    target = targets.load("canary")
    seeds = list(target.seeds())
    mutator = Mutator(Random(4), [], target.input_bytes_max)
    for number in range(20_000):
        target.run(mutator.mutate(seeds[number % 2], seeds[0]))


def test_inputs_that_reach_new_code_are_kept_and_mutated_again(tmp_path: Path) -> None:
    engine = Engine(targets.load("canary"), "4", Corpus(tmp_path))
    for _ in range(2000):
        engine.step()
    kept = len(list(tmp_path.iterdir()))
    assert kept == engine.inputs > 5

    again = Engine(targets.load("canary"), "other", Corpus(tmp_path))
    for _ in range(kept + 3):
        again.step()
    assert again.features >= engine.features, "the corpus alone reaches all that was reached"


def test_a_corpus_input_is_cut_to_the_limit_of_the_target(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(1000))
    target = targets.load("canary")
    engine = Engine(target, "4", Corpus(tmp_path))
    assert max(len(engine.step()[0]) for _ in range(100)) <= target.input_bytes_max
