"""The coverage-guided search in pure Python: keep inputs that reach new code, mutate them, try again.

The seed is the only source of randomness, and no clock is used. The same seed, target and corpus give the
same inputs in the same order. The caller decides how many steps to make.
"""

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Final

from mqproof.fuzz.engine.corpus import Corpus
from mqproof.fuzz.engine.coverage import Coverage, dictionary
from mqproof.fuzz.engine.execution import Failure, judge
from mqproof.fuzz.engine.mutate import Mutator, systematic
from mqproof.fuzz.target import Target

_RECENT: Final = 8
"""The number of newest features that count as recent. The search makes progress near them."""


class Engine:
    """One search. Each `step` makes one execution."""

    def __init__(self, target: Target, seed: str, corpus: Corpus | None = None) -> None:
        self._target = target
        self._random = Random(seed)
        self._corpus = corpus if corpus is not None else Corpus()
        self._coverage = Coverage(target.watched)
        self._words = dictionary(target.watched)
        self._systematic: list[Iterator[bytes]] = []
        self._mutator = Mutator(self._random, self._words, target.input_bytes_max)
        self._waiting: deque[bytes] = deque()
        self._smallest: dict[int, bytes] = {}
        self._features: list[int] = []
        self.executions = 0
        self._waiting.extend(target.seeds())
        self._waiting.append(b"")
        self.read_corpus()

    @property
    def features(self) -> int:
        """The number of different features (edges with magnitudes) reached so far."""
        return len(self._features)

    @property
    def inputs(self) -> int:
        """The number of inputs in the corpus."""
        return len(self._corpus)

    def read_corpus(self) -> None:
        """Read the new inputs in the corpus folder. They are executed before any other input."""
        self._waiting.extend(data[: self._target.input_bytes_max] for data in self._corpus.unread())

    def step(self) -> tuple[bytes, Failure | None]:
        """Make one execution; return the input and its failure, if any."""
        data = self.next_input()
        return data, self.execute(data)

    def next_input(self) -> bytes:
        """Return the next input to try: a waiting one, a systematic one, or a mutant of a kept one."""
        if self._waiting:
            return self._waiting.popleft()
        if self._random.random() < 0.5 and (systematic := self._next_systematic()) is not None:
            return systematic
        return self._mutator.mutate(self._pick(), self._pick())

    def execute(self, data: bytes) -> Failure | None:
        """Judge one input. Keep it if it reaches a new feature, or a known one with fewer bytes."""
        self.executions += 1
        failure = judge(self._target, data, self._coverage.measure)
        if failure is None:
            self._learn(data, self._coverage.features())
        return failure

    def _learn(self, data: bytes, features: set[int]) -> None:
        keep = False
        for feature in sorted(features):
            best = self._smallest.get(feature)
            if best is None:
                self._features.append(feature)
                keep = True
            if best is None or len(data) < len(best):
                self._smallest[feature] = data
        if keep:
            self._corpus.add(data)
            self._systematic.append(systematic(data, self._words))

    def _next_systematic(self) -> bytes | None:
        """Return the next input of the systematic stage; the inputs kept most recently come first."""
        while self._systematic:
            for data in self._systematic[-1]:
                return data[: self._target.input_bytes_max]
            self._systematic.pop()
        return None

    def _pick(self) -> bytes:
        """Return an input to mutate: the smallest for some feature, half of the time for a recent one."""
        if not self._features:
            return b""
        recent = self._random.random() < 0.5
        feature = self._random.choice(self._features[-_RECENT:] if recent else self._features)
        return self._smallest[feature]
