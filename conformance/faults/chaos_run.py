"""Runs a chaos proxy until SIGTERM, for the command line."""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mqproof.conformance.faults.capture_file import new_capture
from mqproof.conformance.faults.chaos_history import history_of
from mqproof.conformance.faults.chaos_session import fault_table, judged
from mqproof.conformance.history.lines import encode
from mqproof.impl.chaos.capture import CaptureError
from mqproof.impl.chaos.fault_table import FAULTS
from mqproof.impl.chaos.plan import Plan, PlanError, of_faults, parse
from mqproof.impl.chaos.proxy import ChaosConfig, ChaosProxy, UpstreamError
from mqproof.impl.remoting.frame import FrameError
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.runtime import production
from mqproof.impl.runtime.security.tls_file import load
from mqproof.impl.runtime.serving import run, until_signal
from mqproof.report.model import Report
from mqproof.report.write import write_bytes


class ChaosRunError(Exception):
    """The proxy cannot run. The message says why, and names the address or the file."""


@dataclass(frozen=True, slots=True)
class ChaosRun:
    """The options of one run."""

    config: ChaosConfig
    plan: Plan
    capture: Path | None = None
    """The file for what the clients see; None: it is not recorded."""
    calm_after_s: float | None = None
    """When the faults end; None: never."""
    tls: Path | None = None


@dataclass(slots=True)
class _Served:
    """A proxy as a server of `until_signal`."""

    proxy: ChaosProxy
    calm_after_s: float | None

    async def start(self) -> Address:
        address = await self.proxy.start()
        if self.calm_after_s is not None:
            asyncio.get_running_loop().call_later(self.calm_after_s, self.proxy.calm)
        return address

    async def stop(self) -> None:
        await self.proxy.stop()


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One fault for people."""

    name: str
    point: str
    effect: str
    permitted_by: str
    """Catalogue ids, joined by commas; empty for an unlawful fault."""
    breaks: str


def fault_rows() -> list[FaultRow]:
    """Return all faults, lawful ones first."""
    return [
        FaultRow(
            fault.name,
            str(fault.point),
            fault.effect,
            ", ".join(fault.permitted_by),
            ", ".join(fault.breaks),
        )
        for fault in FAULTS.values()
    ]


def config_of(upstream: str, host: str, port: int, broker_port: int, advertised_host: str) -> ChaosConfig:
    """Return where the proxy listens. Raises ChaosRunError if an address cannot be used."""
    if host in ("0.0.0.0", "::") and not advertised_host:
        raise ChaosRunError(f"--host is {host}: give the address for clients with --advertised-host")
    try:
        return ChaosConfig(Address.parse(upstream), host, port, broker_port, advertised_host)
    except ValueError as error:
        raise ChaosRunError(f"--upstream: {error}") from None


def plan_of(file: Path | None, faults: list[str], seed: int | None, *, lawful: bool) -> Plan:
    """Return the plan of a file or of named faults. Raises ChaosRunError."""
    if file is not None and faults:
        raise ChaosRunError("give --plan or --fault, not both")
    try:
        if file is None:
            return of_faults(faults, seed=seed or 0, lawful=lawful)
        return parse(file.read_text(encoding="utf-8"), str(file), seed=seed, lawful=lawful)
    except UnicodeDecodeError as error:
        raise ChaosRunError(f"--plan {file}: not UTF-8 text: {error}") from None
    except (PlanError, OSError) as error:
        raise ChaosRunError(_text(error)) from None


def serve_and_judge(chaos: ChaosRun, history: Path | None) -> Report:
    """Run the proxy until SIGTERM or SIGINT. Returns what it did, with verdicts if the plan is lawful.

    The history is written if a file is given.

    Raises:
        ChaosRunError: the upstream does not answer, a port is in use, or a file cannot be used.
    """
    is_recorded = history is not None or chaos.capture is not None or chaos.plan.is_lawful
    try:
        with tempfile.TemporaryDirectory(prefix="mqproof-chaos-") as folder:
            capture = chaos.capture or Path(folder) / "chaos.capture"
            counts = run(_serve(chaos, capture if is_recorded else None))
            if history is not None:
                lines = history_of(capture, str(history), chaos.plan.seed)
                write_bytes(history, b"".join(map(encode, lines)))
            if chaos.plan.is_lawful:
                return judged(capture, chaos.plan.seed, counts, *([str(history)] if history else []))
    except UpstreamError as error:
        raise ChaosRunError(f"--upstream: {error}") from None
    except (ConfigError, OSError, CaptureError, FrameError) as error:
        raise ChaosRunError(_text(error)) from None
    return Report("The chaos proxy, not judged", (), {"seed": str(chaos.plan.seed)}, (fault_table(counts),))


async def _serve(chaos: ChaosRun, capture: Path | None) -> dict[str, int]:
    runtime = production(AsyncioNetwork(), load(str(chaos.tls)) if chaos.tls else None)
    writer = None
    if capture is not None:
        capture.parent.mkdir(parents=True, exist_ok=True)
        writer = new_capture(capture)
    proxy = ChaosProxy(chaos.config, chaos.plan, runtime, writer)
    try:
        await until_signal({"namesrv": lambda _: _Served(proxy, chaos.calm_after_s)}, runtime.supervisor)
    finally:
        if writer is not None:
            writer.close()  # again, unless the proxy did not start
    return dict(proxy.draws.counts)


def _text(error: Exception) -> str:
    name = getattr(error, "filename", None)
    if isinstance(error, OSError) and error.strerror:
        return f"{name}: {error.strerror}" if name else error.strerror
    return str(error)
