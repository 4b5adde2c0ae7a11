"""The exceptions of the package."""

from __future__ import annotations

from typing import Any


class _Error(Exception):
    """An error of the library with its fields. A field that the reason does not have is None."""

    reason: str = ""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self._fields = fields
        for name, value in fields.items():
            setattr(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args[0], self._fields)


def _rebuilt(error: type[_Error], message: str, fields: dict[str, Any]) -> _Error:
    return error(message, **fields)


class Refused(_Error):
    """A write was refused, and has changed nothing.

    ``reason`` is ``"full"``, ``"overflow"``, ``"outside"``, ``"not_stored"``, ``"permanent"``, ``"not_sums"``,
    ``"ambiguous"`` or ``"mismatch"``. ``path`` is the file that could not be merged.
    """

    stored: int | None = None
    cells: int | None = None
    ceiling: int | None = None
    universe: int | None = None
    field: str | None = None
    path: str | None = None


class Infeasible(_Error, ValueError):
    """A plan, a shape or a structure is not possible.

    ``reason`` is ``"out_of_range"``, ``"rate"``, ``"not_a_multiple"``, ``"not_one_of"``, ``"conflict"``,
    ``"memory"`` or ``"key"``.
    """

    name: str | None = None
    got: int | float | str | None = None
    least: int | float | None = None
    most: int | float | None = None
    of: int | None = None
    allowed: str | None = None
    near: int | None = None
    must: str | None = None
    bytes: int | None = None
    index: int | None = None
    why: Refused | None = None


class Malformed(_Error, ValueError):
    """Bytes are not a structure, or not one of this seed.

    ``reason`` is ``"length"``, ``"magic"``, ``"version"``, ``"kind"``, ``"hash"``, ``"seed"``, ``"checksum"``,
    ``"field"``, ``"part"`` or ``"shape"``. ``path`` is the file, if the bytes are from one.
    """

    expected: int | None = None
    got: int | None = None
    field: str | None = None
    part: str | None = None
    why: Infeasible | None = None
    path: str | None = None


class BadKey(_Error, ValueError):
    """A key of a batch is null, too large, or not of the type of the table. ``row`` is its index."""

    row: int | None = None


def rebuild_fan_out(image: bytes, seed: Any, key: Any) -> Any:
    """Reads a pickled ``FanOut``."""
    from ._sidon import FanOut

    return FanOut.from_bytes(image, seed, key=key)


def rebuild_top(image: bytes, seed: Any, key: Any) -> Any:
    """Reads a pickled ``Top``."""
    from ._sidon import Top

    return Top.from_bytes(image, seed, key=key)
