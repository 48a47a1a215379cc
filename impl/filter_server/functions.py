"""The sandbox: functions in WebAssembly that select messages. They are untrusted.

A function sees one message and returns whether it is wanted. It has no imports, so it can reach neither
files, nor the network, nor a clock. Its memory and the instructions that it executes for one message are
bounded. See docs/reference/protocol/filters.md, "Functions".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import wasmtime

from mqproof.impl.filter_server.decisions import RunError, Text, decided
from mqproof.impl.filtering.function_names import MAGIC, function_name

_PAGE_BYTES: Final = 64 << 10
_STACK_BYTES_MAX: Final = 256 << 10
_TABLE_ELEMENTS_MAX: Final = 10_000
_TRAP: Final = "wasm trap:"
_UNUSED_S: Final = 600.0
"""A function that no pull has named for this long makes room for another one."""
_EXPORTS: Final = {"allocate": (["i32"], ["i32"]), "matches": (["i32"] * 4, ["i32"])}
"""The functions that a module must export, each with the types of its parameters and its results."""


class FunctionError(ValueError):
    """A module is not acceptable. The message says why."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What uploaded functions may use."""

    module_bytes_max: int = 256 << 10
    functions_max: int = 64
    memory_bytes_max: int = 16 << 20
    """The memory of a function, which also holds the message."""
    fuel_per_message: int = 1_000_000
    """About the number of instructions, and of bytes that an instruction copies or fills."""


class Functions:
    """The functions by name. The methods may run in different threads, but not at the same time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        config = wasmtime.Config()
        config.consume_fuel = True
        config.max_wasm_stack = _STACK_BYTES_MAX
        config.memory_reservation = limits.memory_bytes_max
        config.memory_reservation_for_growth = 0
        config.memory_guard_size = _PAGE_BYTES
        config.parallel_compilation = False
        config.wasm_threads = False
        config.wasm_memory64 = False
        config.wasm_multi_memory = False
        self._engine = wasmtime.Engine(config)
        self._known: dict[str, _Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, module: bytes, now_s: float) -> str:
        """Compile a module and return the name of its function; a known one stays as it is.

        Raises FunctionError.
        """
        name = function_name(module)
        if name in self._known:
            return name
        self._require_room(now_s)
        self._known[name] = _Known(Function(self._engine, module, self._limits), now_s)
        return name

    def get(self, name: str, now_s: float) -> "Function | None":
        known = self._known.get(name)
        if known is None:
            return None
        known.used_s = now_s
        return known.function

    def _require_room(self, now_s: float) -> None:
        if len(self._known) < self._limits.functions_max:
            return
        oldest = min(self._known, key=lambda name: self._known[name].used_s)
        if now_s - self._known[oldest].used_s < _UNUSED_S:
            raise FunctionError(f"{len(self._known)} functions are in use, which is the maximum")
        del self._known[oldest]


@dataclass(slots=True)
class _Known:
    function: "Function"
    used_s: float


class Function:
    """One compiled module. Every batch of messages gets a fresh instance, so no state outlives it."""

    def __init__(self, engine: wasmtime.Engine, module: bytes, limits: Limits) -> None:
        """Compile the module. Raises FunctionError."""
        if len(module) > limits.module_bytes_max:
            raise FunctionError(
                f"a module of {len(module)} bytes, at most {limits.module_bytes_max} expected"
            )
        if not module.startswith(MAGIC):  # wasmtime would also take text
            raise FunctionError("not a module of WebAssembly in its binary form")
        self._engine = engine
        self._limits = limits
        try:
            self._module = wasmtime.Module(engine, module)
        except wasmtime.WasmtimeError as error:
            raise FunctionError(f"not a valid module: {_line(error)}") from None
        _require_interface(self._module)

    def select(self, messages: Iterable[Text]) -> list[bool]:
        """Return the decisions about a batch of messages, in a fresh instance. Raises as `decided`."""
        instance: _Instance | None = None

        def matches(message: Text) -> bool:
            nonlocal instance
            try:
                instance = instance or _Instance(self._engine, self._module, self._limits)
                return instance.matches(message)
            except (wasmtime.WasmtimeError, wasmtime.Trap) as error:
                raise RunError(_line(error)) from None

        return decided(messages, matches)


class _Instance:
    def __init__(self, engine: wasmtime.Engine, module: wasmtime.Module, limits: Limits) -> None:
        self._fuel = limits.fuel_per_message
        self._store: Any = wasmtime.Store(engine)
        self._store.set_limits(
            memory_size=limits.memory_bytes_max,
            table_elements=_TABLE_ELEMENTS_MAX,
            instances=1,
            tables=1,
            memories=1,
        )
        self._store.set_fuel(self._fuel)  # a module may have a start function
        exports: Any = wasmtime.Instance(self._store, module, []).exports(self._store)
        self._memory: Any = exports["memory"]
        self._allocate: Any = exports["allocate"]
        self._matches: Any = exports["matches"]

    def matches(self, message: Text) -> bool:
        self._store.set_fuel(self._fuel)
        properties, body = message
        size = len(properties) + len(body)
        address: int = self._allocate(self._store, size) & 0xFFFF_FFFF
        end = address + size
        if end > self._memory.data_len(self._store):
            raise RunError(f"allocate({size}) returned {address}, which is outside the memory")
        self._memory.write(self._store, properties + body, address)
        at_body = address + len(properties)
        arguments = [_signed(value) for value in (address, len(properties), at_body, len(body))]
        return bool(self._matches(self._store, *arguments))


def _require_interface(module: wasmtime.Module) -> None:
    """Check that a module imports nothing, and exports what is called. Raises FunctionError."""
    if module.imports:
        first = module.imports[0]
        raise FunctionError(f"the module imports {first.module}.{first.name}: a function has no imports")
    exports = {export.name: export.type for export in module.exports}
    if not isinstance(exports.get("memory"), wasmtime.MemoryType):
        raise FunctionError('the module exports no memory "memory"')
    for name, (parameters, results) in _EXPORTS.items():
        kind = exports.get(name)
        found: tuple[list[str], list[str]] = ([], [])
        if isinstance(kind, wasmtime.FuncType):
            found = ([str(each) for each in kind.params], [str(each) for each in kind.results])
        if found != (parameters, results):
            expected = f"({' '.join(parameters)}) -> {' '.join(results)}"
            raise FunctionError(f'the module exports no function "{name}" {expected}')


def _signed(value: int) -> int:
    """Return an unsigned number as the signed one of the same 32 bits."""
    return value - (1 << 32) if value >= 1 << 31 else value


def _line(error: Exception) -> str:
    """Return the cause of an error in one line of limited length."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    traps = [line[line.index(_TRAP) :] for line in lines if _TRAP in line]
    return next(iter([*traps, *lines]), "failed")[:200]
