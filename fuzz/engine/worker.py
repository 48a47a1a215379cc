"""One process of a campaign: searches until its time is over and reports its findings, line by line.

It is run as `python -m mqproof.fuzz.engine.worker OPTIONS` with the options as JSON. It writes messages to
standard output as JSON lines.

A separate process is needed because a target may crash the interpreter or use all memory. That is a finding,
and it must not end the campaign. Before each execution the worker writes the input into a file shared with
the campaign.
"""

import os
import resource
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

from mqproof.fuzz import targets
from mqproof.fuzz.engine import atheris_search
from mqproof.fuzz.engine.corpus import Corpus
from mqproof.fuzz.engine.search import Engine
from mqproof.fuzz.engine.session import Options, Session

MEMORY_BYTES_MAX: Final = 4 << 30
"""The limit of a worker's address space.

A target that allocates the size a peer announces fails at this limit, before it exhausts the machine.
"""

_CORPUS_SECONDS: Final = 5.0


def main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=Options)
    # Standard output carries messages; the output of a target is redirected to standard error.
    messages = os.dup(1)
    os.dup2(2, 1)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY_BYTES_MAX if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES_MAX, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    if options.engine == "atheris":
        atheris_search.search(options, messages)
    else:
        _search(Session(options, targets.load(options.target), messages))


def _search(session: Session) -> None:
    options = session.options
    corpus = Corpus(Path(options.corpus) if options.corpus else None)
    engine = Engine(session.target, options.seed, corpus)
    read_at = time.monotonic() + _CORPUS_SECONDS
    while not session.over():
        data = engine.next_input()
        session.before(data)
        failure = engine.execute(data)
        session.after(data, failure, engine.features, engine.inputs)
        if time.monotonic() >= read_at:
            read_at = time.monotonic() + _CORPUS_SECONDS
            engine.read_corpus()
    session.report_progress(engine.features, engine.inputs)


if __name__ == "__main__":
    main()
