"""The search by atheris (libFuzzer for Python).

It is faster than our own engine but needs an optional package.

Atheris takes over its process and never returns. It therefore runs only inside a worker, which leaves through
`os._exit`. A finding does not stop the search: it is reported and the search continues.
"""

import importlib.util
import os
from pathlib import Path
from random import Random

from mqproof.fuzz import targets
from mqproof.fuzz.engine.corpus import Corpus
from mqproof.fuzz.engine.coverage import dictionary
from mqproof.fuzz.engine.execution import judge
from mqproof.fuzz.engine.mutate import Mutator
from mqproof.fuzz.engine.session import Options, Session


def available() -> bool:
    """Whether atheris can be imported."""
    return importlib.util.find_spec("atheris") is not None


def search(options: Options, messages: int) -> None:
    """Search until the time is over, then end the process. `messages` is a file descriptor."""
    import atheris

    # Only modules imported inside this block are instrumented, and only those that the target watches.
    with atheris.instrument_imports(include=["mqproof.impl", f"mqproof.fuzz.targets.{options.target}"]):
        target = targets.load(options.target)
    session = Session(options, target, messages)
    folder = Path(options.corpus or f"{options.current}-corpus")  # the latter is removed with the campaign
    corpus = Corpus(folder)
    for seed in target.seeds():
        corpus.add(seed)

    words = dictionary(target.watched)

    def mutate(data: bytes, size_max: int, seed: int) -> bytes:
        """Mutate with our mutator, which knows length fields and words, or with libFuzzer's (half each)."""
        random = Random(seed)
        if random.random() < 0.5:
            return bytes(atheris.Mutate(data, size_max))
        return Mutator(random, words, size_max).mutate(data, data)

    def test_one_input(data: bytes) -> None:
        session.before(data)
        failure = judge(target, data)
        session.after(data, failure, features=0, inputs=0)
        if session.over():
            session.report_progress(features=0, inputs=sum(1 for _ in folder.iterdir()))
            os._exit(0)

    arguments = [
        "mqproof",
        f"-seed={int.from_bytes(options.seed.encode()[-4:], 'big') or 1}",
        f"-max_len={target.input_bytes_max}",
        f"-artifact_prefix={options.current}.",
        "-verbosity=0",
        "-rss_limit_mb=0",  # the worker's own limit decides
        str(folder),
    ]
    atheris.Setup(arguments, test_one_input, custom_mutator=mutate)
    atheris.Fuzz()
