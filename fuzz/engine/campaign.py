"""A campaign: worker processes search one target for a limited time; each defect found is saved once."""

import selectors
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from mqproof.fuzz import targets
from mqproof.fuzz.engine import findings
from mqproof.fuzz.engine.execution import CPU_SECONDS_MAX
from mqproof.fuzz.engine.findings import SavedFinding
from mqproof.fuzz.engine.session import Found, Message, Options, Progress, prepare_current, read_current
from mqproof.fuzz.target import ENDS_IN_TIME, ONLY_DOCUMENTED_ERRORS, Target

_GRACE_SECONDS: Final = 2 * CPU_SECONDS_MAX + 30
"""Extra time after the time limit, in which a worker may finish an input and minimise a finding."""
_READ_BYTES: Final = 1 << 16


class WorkerError(RuntimeError):
    """A worker could not begin its work; the message contains its last output."""


@dataclass(frozen=True, slots=True)
class Campaign:
    target: str
    seconds: float
    workers: int
    seed: int
    engine: str
    """One of: python, atheris."""
    findings: Path
    """The folder where findings are saved."""
    corpus: Path | None = None
    """The folder of the corpora, with one folder inside for each target; None keeps no corpus."""
    executions: int | None = None
    """The maximum number of executions of each worker; None for no maximum."""


@dataclass(slots=True)
class Outcome:
    """The results of a campaign; updated while it runs."""

    executions: int = 0
    features: int = 0
    inputs: int = 0
    seconds: float = 0.0
    checked: Counter[str] = field(default_factory=Counter)
    found: dict[str, tuple[SavedFinding, Path]] = field(default_factory=dict)
    """Findings and their files, by signature."""


@dataclass(slots=True, eq=False)
class _Worker:
    options: Options
    process: subprocess.Popen[bytes]
    errors: Path
    progress: Progress | None = None
    buffer: bytearray = field(default_factory=bytearray)


_messages: Final = msgspec.json.Decoder(Message)


def run(campaign: Campaign, on_change: Callable[[Outcome], None]) -> Outcome:
    """Run the campaign; `on_change` is called after each message of a worker.

    An interrupt (Ctrl-C) ends the campaign early. All workers have ended when this returns.

    Raises:
        UnknownTargetError: no target has this name. WorkerError: a worker could not begin.
        OSError: corpus or findings cannot be written.
    """
    target = targets.load(campaign.target)
    outcome = Outcome()
    begin = time.monotonic()
    deadline = begin + campaign.seconds + _GRACE_SECONDS
    with tempfile.TemporaryDirectory(prefix="mqproof-fuzz-") as scratch:
        workers = [_start(campaign, target, number, Path(scratch)) for number in range(campaign.workers)]
        try:
            for worker, message in _listen(workers, deadline):
                _take(campaign, outcome, worker, message)
                _sum_up(outcome, workers, begin)
                on_change(outcome)
        except KeyboardInterrupt:
            pass
        finally:
            overdue = time.monotonic() >= deadline
            killed = _end(workers)
        for worker in workers:
            if worker in killed and overdue:
                _keep(campaign, outcome, worker, _endless(worker))
            elif worker not in killed and worker.process.returncode != 0:
                _keep(campaign, outcome, worker, _death(worker))
    _sum_up(outcome, workers, begin)
    return outcome


def _start(campaign: Campaign, target: Target, number: int, scratch: Path) -> _Worker:
    current, errors = scratch / f"current-{number}", scratch / f"errors-{number}"
    prepare_current(current, target.input_bytes_max)
    corpus = campaign.corpus / campaign.target if campaign.corpus else None
    if corpus is None and campaign.workers > 1:
        corpus = scratch / "corpus"  # workers share inputs even when no corpus is kept
    options = Options(
        target=campaign.target,
        seed=f"{campaign.seed}/{number}",
        seconds=campaign.seconds,
        current=str(current),
        engine=campaign.engine,
        executions=campaign.executions,
        corpus=str(corpus) if corpus else None,
    )
    command = [sys.executable, "-m", "mqproof.fuzz.engine.worker", msgspec.json.encode(options).decode()]
    with errors.open("wb") as words:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=words,
            start_new_session=True,  # an interrupt goes to the campaign only, which then ends its workers
        )
    return _Worker(options, process, errors)


def _listen(workers: list[_Worker], deadline: float) -> Iterator[tuple[_Worker, Message]]:
    """Yield the workers' messages until all workers have closed their pipes or the deadline has passed."""
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            assert worker.process.stdout is not None
            selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(timeout=1.0):
                worker = key.data
                data = worker.process.stdout.read1(_READ_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                    worker.process.stdout.close()
                worker.buffer += data
                *lines, rest = worker.buffer.split(b"\n")
                worker.buffer = rest
                for line in lines:
                    yield worker, _messages.decode(line)


def _take(campaign: Campaign, outcome: Outcome, worker: _Worker, message: Message) -> None:
    match message:
        case Progress():
            worker.progress = message
        case Found():
            _keep(campaign, outcome, worker, message)


def _keep(campaign: Campaign, outcome: Outcome, worker: _Worker, found: Found) -> None:
    saved = SavedFinding(
        target=campaign.target,
        invariant=found.invariant,
        signature=found.signature,
        message=found.message,
        input=found.input,
        seed=worker.options.seed,
        engine=campaign.engine,
        executions=found.executions,
        version=findings.project_version(),
    )
    known = outcome.found.get(found.signature)
    if known is None or len(saved.input) <= len(known[0].input):
        outcome.found[found.signature] = (saved, findings.save(saved, campaign.findings))


def _end(workers: list[_Worker]) -> list[_Worker]:
    """Wait for the workers whose pipe is closed, kill the others, and return the killed ones."""
    killed = []
    for worker in workers:
        assert worker.process.stdout is not None
        if not worker.process.stdout.closed:
            worker.process.kill()
            worker.process.stdout.close()
            killed.append(worker)
        worker.process.wait()
    return killed


def _endless(worker: _Worker) -> Found:
    message = f"did not end {_GRACE_SECONDS:g} seconds after its time"
    data = read_current(Path(worker.options.current))
    return Found(ENDS_IN_TIME, f"{ENDS_IN_TIME} killed", message, data, 0)


def _death(worker: _Worker) -> Found:
    """Return a finding for the input with which a worker ended abnormally.

    Raises:
        WorkerError: the worker ended before its first input.
    """
    status = worker.process.returncode
    data = read_current(Path(worker.options.current))
    if worker.progress is None and not data:
        words = worker.errors.read_text(errors="replace").strip().splitlines()
        raise WorkerError(f"a worker ended with {status}: {words[-1] if words else 'without output'}")
    message = f"the process died with status {status}"
    return Found(ONLY_DOCUMENTED_ERRORS, f"{ONLY_DOCUMENTED_ERRORS} died {status}", message, data, 0)


def _sum_up(outcome: Outcome, workers: list[_Worker], begin: float) -> None:
    progresses = [worker.progress for worker in workers if worker.progress]
    outcome.executions = sum(progress.executions for progress in progresses)
    # Workers share their inputs, so their numbers must not be added.
    outcome.features = max((progress.features for progress in progresses), default=0)
    outcome.inputs = max((progress.inputs for progress in progresses), default=0)
    outcome.checked = sum((Counter(progress.checked) for progress in progresses), Counter())
    outcome.seconds = time.monotonic() - begin
