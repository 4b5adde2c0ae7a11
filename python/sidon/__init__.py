"""Compact memory for network flows: sets, states and counts in a few bits each, with their certainty.

Memory is fixed at the start, and every answer carries its certainty. The structures are those of the Rust
library ``sidon``: the same seed, shape and keys give the same bytes.

>>> import sidon
>>> from sidon import plan
>>> flows = sidon.Set(plan.set(keys=100_000, false_positives=0.001, deletes=True).shape, seed=42)
>>> flows.insert("10.0.0.1:443")
>>> "10.0.0.1:443" in flows, "10.0.0.2:443" in flows
(True, False)
>>> flows.remove("10.0.0.1:443")
>>> len(flows)
0
"""

from . import plan, zone
from ._errors import BadKey, Infeasible, Malformed, Refused
from ._sidon import (
    Absent,
    Bounds,
    Certainty,
    Distinct,
    DontKnow,
    Estimate,
    FanOut,
    Heavy,
    Interval,
    Machine,
    Map,
    Min,
    Prefixes,
    Ranking,
    Refusals,
    Seed,
    Set,
    Snapshot,
    State,
    Top,
)
from .traffic import generate, merge, read, report, seed_of_file, watch, watch_by

__all__ = [
    "Absent",
    "BadKey",
    "Bounds",
    "Certainty",
    "Distinct",
    "DontKnow",
    "Estimate",
    "FanOut",
    "Heavy",
    "Infeasible",
    "Interval",
    "Machine",
    "Malformed",
    "Map",
    "Min",
    "Prefixes",
    "Ranking",
    "Refusals",
    "Refused",
    "Seed",
    "Set",
    "Snapshot",
    "State",
    "Top",
    "generate",
    "merge",
    "plan",
    "read",
    "report",
    "seed_of_file",
    "watch",
    "watch_by",
    "zone",
]
