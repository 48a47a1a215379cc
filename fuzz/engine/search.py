"""The coverage-guided search, in pure Python: keep what reaches new code, change it, try again.

No clock and no other source of chance than the seed: the same seed, target and corpus give the same inputs in
the same order. Whoever runs it decides how many steps to make.
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
"""Features that count as recent: what was reached last is where the search is getting ahead."""


class Engine:
    """One search. `step` makes one execution."""

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
        """How many different features (edges with magnitudes) were reached so far."""
        return len(self._features)

    @property
    def inputs(self) -> int:
        """How many inputs are in the corpus."""
        return len(self._corpus)

    def read_corpus(self) -> None:
        """Take in what is new in the corpus folder; it is executed before anything else is tried."""
        self._waiting.extend(data[: self._target.input_bytes_max] for data in self._corpus.unread())

    def step(self) -> tuple[bytes, Failure | None]:
        """One execution: the input, and what it broke."""
        data = self.next_input()
        return data, self.execute(data)

    def next_input(self) -> bytes:
        """The next input to try: one that waits, or a mutant of one that reached something rare."""
        if self._waiting:
            return self._waiting.popleft()
        if self._random.random() < 0.5 and (systematic := self._next_systematic()) is not None:
            return systematic
        return self._mutator.mutate(self._pick(), self._pick())

    def execute(self, data: bytes) -> Failure | None:
        """Judge one input, and keep it if it reached something new or something old with fewer bytes."""
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
        """The next input of the systematic stage, that of the input kept last first."""
        while self._systematic:
            for data in self._systematic[-1]:
                return data[: self._target.input_bytes_max]
            self._systematic.pop()
        return None

    def _pick(self) -> bytes:
        """An input to change: the smallest one for some feature, half of the time for a recent one."""
        if not self._features:
            return b""
        recent = self._random.random() < 0.5
        feature = self._random.choice(self._features[-_RECENT:] if recent else self._features)
        return self._smallest[feature]
