"""From a target to a shape, by closed forms and fluid limits, without sampling.

>>> from sidon import plan
>>> row = plan.set(keys=100_000, false_positives=0.001)
>>> row.name, row.bytes * 80 // 100_000
('bloom', 143)
>>> plan.set(keys=100_000, false_positives=0.001, deletes=True).name
'dleft'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from . import _sidon

Shape = dict[str, Any]

__all__ = ["Row", "Shape", "count", "count_in", "distinct", "fan_out", "prefixes", "set", "sets", "states", "top", "zones"]


@dataclass(frozen=True)
class Row:
    """A set that meets a target, and its cost."""

    name: str
    """The structure: ``"bloom"``, ``"dleft"`` and so on."""
    bytes: int
    """The bytes of its table."""
    false_positives: float
    """The false-positive rate with all keys stored."""
    lines: int
    """The cache lines that a lookup of a stored key reads."""
    shape: Shape
    """The integers to build it from: ``Set(row.shape, seed)``."""


def set(
    keys: int,
    false_positives: float,
    *,
    deletes: bool = False,
    growth: int = 0,
    prefer: Literal["memory", "speed"] = "memory",
) -> Row:
    """The best set for the target: the smallest, or the one that reads the fewest cache lines."""
    return Row(**_sidon.plan_set(keys, false_positives, deletes, growth, prefer))


def sets(keys: int, false_positives: float, *, growth: int = 0) -> list[Row]:
    """Every set that meets the target, the smallest first.

    >>> from sidon import plan
    >>> {row.name for row in plan.sets(1000, 0.01)} >= {"bloom", "dleft", "counting"}
    True
    """
    return [Row(**row) for row in _sidon.plan_sets(keys, false_positives, growth)]


def count(epsilon: float, delta: float) -> Shape:
    """The shape of a ``Min`` whose counts exceed the truth by at most a share ``epsilon`` of the total.

    A share ``delta`` of the keys may exceed it by more.

    >>> from sidon import plan
    >>> shape = plan.count(0.01, 0.01)
    >>> shape["rows"], shape["columns"]
    (5, 272)
    """
    return _sidon.plan_count(epsilon, delta)


def count_in(bytes: int, delta: float, *, width: int = 32, layout: Literal["rows", "line"] = "rows") -> Shape:
    """The shape of a ``Min`` with the most columns that ``bytes`` bytes hold."""
    return _sidon.plan_count_in(bytes, delta, width, layout)


def top(bytes: int, key_bytes: int, *, amounts: int = 1) -> Shape:
    """The shape of the largest ``Top`` in ``bytes`` bytes.

    ``key_bytes`` is 8 for integers, 64 for text, 4 for IPv4, 16 for IPv6 and 17 for either address.

    >>> from sidon import plan
    >>> plan.top(1 << 20, 8)["rows"]
    2
    """
    return _sidon.plan_top(bytes, key_bytes, amounts)


def distinct(error: float) -> Shape:
    """The shape of the smallest ``Distinct`` with this relative standard error.

    >>> from sidon import plan
    >>> plan.distinct(0.01)
    {'registers': 1312}
    """
    return _sidon.plan_distinct(error)


def fan_out(keys: int, error: float, *, panes: int = 1, pane: int = 2**64 - 1) -> Shape:
    """The shape of the smallest ``FanOut`` that keeps ``keys`` large keys, with this relative standard error.

    Estimates cover the newest ``panes`` panes of ``pane`` units of time each. By default nothing ages.

    >>> from sidon import plan
    >>> plan.fan_out(1000, 0.13, panes=2, pane=60)["registers"]
    10
    """
    return _sidon.plan_fan_out(keys, error, panes, pane)
def prefixes(bytes: int, *, amounts: int = 1) -> Shape:
    """The shape of the largest ``Prefixes`` in ``bytes`` bytes, for one to four amounts per address.

    >>> from sidon import plan
    >>> plan.prefixes(1 << 20, amounts=3)["buckets"]
    [614, 409, 307, 204, 104]
    """
    return _sidon.plan_prefixes(bytes, amounts)


def states(flows: int, states: int, error: float, *, prefer: Literal["memory", "speed"] = "memory") -> Shape:
    """The shape of a ``Map`` for so many flows and states.

    ``error`` is the share of keys never stored that may be answered a state, and of stored flows that may be answered
    ``DontKnow()``.

    >>> from sidon import plan
    >>> list(plan.states(flows=1000, states=4, error=1e-3))
    ['fingerprint']
    """
    return _sidon.plan_states(flows, states, error, prefer)


def zones(universe: int, members: int) -> list[Shape]:
    """The codes that store ``members`` numbers below ``universe`` without a false positive, the fewest cells first.

    >>> from sidon import plan
    >>> [list(shape)[0] for shape in plan.zones(universe=256, members=3)]
    ['pol', 'pol', 'ols', 'egh', 'egh']
    """
    return _sidon.plan_zones(universe, members)
