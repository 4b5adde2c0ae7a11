"""Sets and counts of few numbers of a universe, without a false positive. They have no seed."""

from ._sidon import Adaptive, Filter, Hosts, Sketch

__all__ = ["Adaptive", "Filter", "Hosts", "Sketch"]
