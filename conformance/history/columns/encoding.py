"""How the rows of a column become bytes: numbers as narrow as their range, texts without what they share.

Each function describes or decodes one column of one block.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_Signed = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_Width = Literal[0, 1, 2, 4, 8]
_WIDTHS: Final[tuple[_Width, ...]] = (0, 1, 2, 4, 8)
_FACTORS: Final = (10**9, 10**6, 10**3)
"""Clocks often have a resolution of seconds, milliseconds or microseconds."""
_SAMPLE: Final = 64


class Numbers(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A column of numbers: `base`, plus `factor` times an unsigned number of so many bytes."""

    width: _Width
    """0: there are no bytes, and all numbers are `base`."""
    base: _Signed
    factor: Annotated[int, msgspec.Meta(ge=1, le=10**9)]
    first: _Signed
    """If the numbers are differences from row to row: the value of the first row."""
    checksum: int
    """CRC-32 of the bytes."""


class Texts(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A column of texts of one width, which ends with NUL in shorter ones."""

    text: Annotated[bytes, msgspec.Meta(min_length=1)]
    """The first text."""
    at: list[int]
    """The places in the text at which others have other bytes; only these are stored."""
    checksum: int


def encode_numbers(values: Array, *, is_steps: bool) -> tuple[Numbers, bytes]:
    """Describe numbers; `is_steps` stores the difference of each row from the one before."""
    numbers = np.diff(values) if is_steps else values
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    rest, span = (numbers - low).view(np.uint64), high - low
    factor = next((each for each in _FACTORS if each <= span and _is_multiple(rest, each)), 1)
    width = next(each for each in _WIDTHS if span // factor < 1 << 8 * each)
    data = b""
    if width:
        stored = np.zeros(len(values), f"<u{width}")  # a first step is not used
        stored[int(is_steps) :] = rest if factor == 1 else rest // factor
        data = stored.tobytes()
    first = int(values[0]) if is_steps else 0
    return Numbers(width, low, factor, first, 0), data


def _is_multiple(numbers: Array, factor: int) -> bool:
    return not (numbers[:_SAMPLE] % factor).any() and not (numbers % factor).any()


def decode_numbers(form: Numbers, data: bytes, out: Array, *, is_steps: bool) -> None:
    """Write the numbers to `out`. Sums of steps wrap at 64 bits.

    Raises:
        OverflowError: a number is too large for the type.
    """
    stored = np.frombuffer(data, f"<u{form.width or 1}")
    high = form.base + form.factor * int(stored.max(initial=0))
    bounds = np.iinfo(out.dtype)
    if form.base < bounds.min or high > bounds.max:
        raise OverflowError(f"{form.base} to {high}")
    if form.width:
        out[:] = stored
        if form.factor != 1:
            out *= form.factor
        if form.base:
            out += form.base
    else:
        out[:] = form.base
    if is_steps:
        out[0] = form.first
        np.cumsum(out, out=out)


def encode_texts(values: Array) -> tuple[Texts, bytes]:
    letters = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)
    at = np.flatnonzero((letters != letters[0]).any(axis=0))
    return Texts(letters[0].tobytes(), at.tolist(), 0), letters[:, at].tobytes()


def decode_texts(form: Texts, data: bytes, rows: int) -> Array:
    letters = np.empty((rows, len(form.text)), np.uint8)
    letters[:] = np.frombuffer(form.text, np.uint8)
    stored = np.frombuffer(data, np.uint8).reshape(rows, len(form.at))
    for number, place in enumerate(form.at):
        letters[:, place] = stored[:, number]
    found: Array = letters.view(f"S{len(form.text)}").ravel()
    return found
