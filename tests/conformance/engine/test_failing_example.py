"""The first failing example is kept, and only as one that Hypothesis shrinks."""

from mqproof.conformance.engine.failing_example import FailingExample


def test_the_first_failing_example_is_in_the_secondary_corpus_only() -> None:
    kept = FailingExample()
    assert list(kept.fetch(b"key.secondary")) == []
    kept.save(b"key.pareto", b"held")
    kept.save(b"key", b"first")
    kept.save(b"key", b"second")
    assert list(kept.fetch(b"key.secondary")) == [b"first"]
    assert list(kept.fetch(b"key")) == list(kept.fetch(b"key.pareto")) == []


def test_an_example_that_did_not_fail_again_is_kept() -> None:
    kept = FailingExample()
    kept.save(b"key", b"choices")
    kept.delete(b"key.secondary", b"choices")
    assert list(kept.fetch(b"key.secondary")) == [b"choices"]
