"""Zones: exact sets and counts of few numbers."""

import copy
import pickle
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import sidon
from sidon import plan, zone

GOLDEN = Path(__file__).parents[2] / "crates/sidon/tests/golden"


@pytest.mark.parametrize("shape", plan.zones(universe=30, members=2), ids=lambda shape: list(shape)[0])
def test_no_pair_of_the_zone_has_a_false_positive(shape):
    for pair in combinations(range(30), 2):
        ports = zone.Filter(shape)
        assert not ports.insert_batch(pair)
        assert ports.list() == list(pair) and ports.members == 2 and ports.certainty.error == 0.0
        assert ports.contains_batch(np.arange(30)).nonzero()[0].tolist() == list(pair)
        counts = zone.Sketch(shape, 32)
        counts.add_batch(pair, [5, 7])
        assert counts.list() == [(pair[0], 5), (pair[1], 7)]


def test_structures_copy_merge_and_refuse():
    shape = plan.zones(universe=256, members=3)[0]
    for make, put, listed in [
        (lambda: zone.Filter(shape), lambda own, key: own.insert(key), [3, 9]),
        (lambda: zone.Adaptive(256), lambda own, key: own.insert(key), [3, 9]),
        (lambda: zone.Sketch(shape, 16), lambda own, key: own.add(key, 5), [(3, 5), (9, 5)]),
        (lambda: zone.Hosts(256), lambda own, key: own.add(key, 5), [(3, 5), (9, 5)]),
    ]:
        own, other = make(), make()
        put(own, 3)
        put(other, 9)
        for twin in [pickle.loads(pickle.dumps(own)), copy.copy(own), copy.deepcopy(own)]:
            assert twin == own != other
            twin.merge(other)
            assert twin.list() == listed
        with pytest.raises(sidon.Refused) as caught:
            put(own, 256)
        assert (caught.value.reason, caught.value.universe) == ("outside", 256)
        assert type(own).__name__ in repr(own) and "certain" in repr(own)
        own.clear()
        assert own == make()
    with pytest.raises(sidon.Refused):
        zone.Adaptive(256).merge(zone.Adaptive(100))
    with pytest.raises(ValueError):
        zone.Adaptive(256).insert_batch([-1])


def test_beyond_the_zone_nothing_is_missed():
    ports = zone.Filter(plan.zones(universe=256, members=3)[0])
    ports.insert_batch(np.arange(0, 256, 5))
    assert ports.members is None and "beyond" in repr(ports) and ports.contains_batch(np.arange(0, 256, 5)).all()


FILTERS = {"egh": [8, 30, 59, 1], "ols": [0, 7, 13], "ols12": [0, 7, 143], "pol": [59, 3]}
SKETCHES = {
    "egh": [8, 30, 59, 1, 2],
    "ols": [0, 7, 13, 19],
    "pol": [59, 3],
    "conservative": [0, 7, 13],
    "beyond": [0, 7, 13, 19, 22],
}


@pytest.mark.parametrize("name", FILTERS)
def test_golden_filters(name):
    image = (GOLDEN / f"zone-filter-{name}.sidon").read_bytes()
    read = zone.Filter.from_bytes(image)
    built = zone.Filter(read.shape)
    built.insert_batch(FILTERS[name])
    assert built.to_bytes() == read.to_bytes() == image and built == read


@pytest.mark.parametrize("name", SKETCHES)
def test_golden_sketches(name):
    image = (GOLDEN / f"zone-sketch-{name}.sidon").read_bytes()
    read = zone.Sketch.from_bytes(image)
    built = zone.Sketch(read.shape, 7, "conservative" if name in ("conservative", "beyond") else "plain")
    built.add_batch(SKETCHES[name], [3 + key for key in SKETCHES[name]])
    assert built.to_bytes() == read.to_bytes() == image and built == read


def test_golden_adaptive_sets():
    images = {name: (GOLDEN / f"zone-{name}.sidon").read_bytes() for name in ["list", "ladder", "bitmap"]}
    for image in images.values():
        assert zone.Adaptive.from_bytes(image).to_bytes() == image
    for name, universe, members in [("list", 256, 6), ("bitmap", 100, 40)]:
        built = zone.Adaptive(universe)
        built.insert_batch([i * 37 % universe for i in range(members)])
        assert built.to_bytes() == images[name]
