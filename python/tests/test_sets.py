"""Sets as Python users expect them."""

import copy
import pickle

import numpy as np
import pytest

import sidon
from sidon import plan

ROWS = plan.sets(1_000, 0.01)


def filled(row, keys=range(500)):
    return sidon.Set.from_keys(row.shape, 42, keys)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.bytes}")
def test_every_set_of_a_plan_can_be_used(row):
    seen = filled(row)
    assert seen.memory_bytes >= row.bytes and seen.shape == row.shape
    assert len(seen) == 500 and all(key in seen for key in range(500)) and bool(seen)
    found = seen.contains_batch(np.arange(500, 100_500))
    assert found.dtype == bool and found.mean() < 0.01
    assert found.tolist()[:2_000] == [key in seen for key in range(500, 2_500)]
    assert 0.0 < seen.certainty.error < 0.01 and "probability" in str(seen.certainty)
    for twin in [pickle.loads(pickle.dumps(seen)), copy.copy(seen), copy.deepcopy(seen), seen.copy()]:
        assert twin == seen and twin.seed == seen.seed and twin.to_bytes() == seen.to_bytes()
        twin.insert(1_000_000)
        assert twin != seen and len(seen) == 500
    other = filled(row, range(500, 600))
    other.merge(seen)
    assert len(other) == 600 and other.contains_batch(np.arange(600)).all()
    refused = other.remove_batch(np.arange(600))
    if row.name in ("bloom", "blocked"):
        assert len(refused) == 600 and refused[-1][1].reason == "permanent"
    else:
        assert not refused and len(other) == 0
    other.clear()
    assert len(other) == 0 and other.certainty.error == 0.0


def test_a_set_merges_with_itself():
    seen = filled(plan.set(1_000, 0.01))
    seen.merge(seen)
    assert len(seen) == 1_000


def test_no_text_shows_the_seed():
    seed = sidon.Seed(123_456_789)
    seen = sidon.Set(ROWS[0].shape, seed)
    assert int(seen.seed) == 123_456_789 and seen.seed == seed
    for text in [repr(seed), str(seed), repr(seen), repr(seen.stats()), repr(seen.shape)]:
        assert "123" not in text
    assert repr(seed) == "Seed(..)" and sidon.Seed.random() != sidon.Seed.random()
    assert pickle.loads(pickle.dumps(seed)) == seed


def test_repr_has_shape_load_and_certainty():
    text = repr(filled(plan.set(1_000, 0.01)))
    assert text.startswith("<Set: bloom {bits: ") and "len 500, load 0." in text and "probability" in text


def test_batches_return_refusals_and_raise_nothing():
    shape = {"d_left": {"subtables": 2, "buckets": 1, "cells": 8, "width": 16, "remainder": 12, "counter": 2}}
    shape["d_left"] |= {"moves": "never", "growths": 0, "grows": False}
    seen = sidon.Set(shape, 1)
    refused = seen.insert_batch(np.arange(100))
    assert 0 < len(seen) < 20 and len(refused) == 100 - len(seen) > 0
    index, why = refused[0]
    assert isinstance(why, sidon.Refused) and (why.reason, why.cells) == ("full", 16)
    kept = np.setdiff1d(np.arange(100), refused.indices())
    assert seen.contains_batch(kept).all() and refused.indices()[0] == index
    assert [i for i, _ in refused] == refused.indices().tolist()
    with pytest.raises(sidon.Refused):
        seen.insert(int(index))
    with pytest.raises(IndexError):
        refused[len(refused)]
    with pytest.raises(sidon.Infeasible) as caught:
        sidon.Set.from_keys(shape, 1, np.arange(100))
    assert (caught.value.reason, caught.value.index, caught.value.why.reason) == ("key", index, "full")


def test_exceptions_have_the_fields_of_the_library():
    seen = sidon.Set({"bloom": {"bits": 500, "hashes": 2}}, 1, exceptions=1)
    cases = [
        (lambda: seen.remove(1), sidon.Refused, {"reason": "permanent", "stored": None}),
        (lambda: seen.merge(sidon.Set(seen.shape, 2)), sidon.Refused, {"reason": "mismatch", "field": "seed"}),
        (lambda: plan.set(0, 0.1), sidon.Infeasible, {"reason": "out_of_range", "name": "keys", "least": 1}),
        (lambda: plan.set(10, 2.0), sidon.Infeasible, {"reason": "rate", "got": 2.0, "most": 1.0}),
        (lambda: sidon.Set.from_bytes(b"SIDN", 1), sidon.Malformed, {"reason": "length", "got": 4}),
        (lambda: sidon.Set.from_bytes(b"other bytes" * 9, 1), sidon.Malformed, {"reason": "magic"}),
        (lambda: sidon.Set.from_bytes(seen.to_bytes(), 2), sidon.Malformed, {"reason": "seed"}),
        (lambda: sidon.Min.from_bytes(seen.to_bytes(), 1), sidon.Malformed, {"expected": 11, "got": 1}),
    ]
    for act, kind, fields in cases:
        with pytest.raises(kind) as caught:
            act()
        assert {name: getattr(caught.value, name) for name in fields} == fields
        again = pickle.loads(pickle.dumps(caught.value))
        assert type(again) is kind and str(again) == str(caught.value) and again.__dict__ == caught.value.__dict__
    damaged = bytearray(seen.to_bytes())
    damaged[60] ^= 1
    with pytest.raises(sidon.Malformed) as caught:
        sidon.Set.from_bytes(damaged, 1)
    assert caught.value.reason == "checksum"


def test_an_exception_ends_a_known_false_positive():
    seen = sidon.Set({"bloom": {"bits": 500, "hashes": 2}}, 1, exceptions=1)
    seen.insert_batch(np.arange(100))
    passing = 100 + int(seen.contains_batch(np.arange(100, 10_000)).argmax())
    assert passing in seen
    seen.except_key(passing)
    assert passing not in seen and not seen.contains_batch([passing])[0]
    with pytest.raises(sidon.Refused) as caught:
        seen.except_key(passing + 1 if passing + 1 in seen else "other")
    assert (caught.value.reason, caught.value.cells) == ("full", 1)


def test_shapes_of_other_forms_are_errors():
    for wrong in [{}, {"blom": {}}, {"bloom": {"bits": 1}}, "bloom", 5, None, {"bloom": {"bits": -1, "hashes": 1}}]:
        with pytest.raises(ValueError, match="shape of a set"):
            sidon.Set(wrong, 1)
    for seed in [-1, 2**128, "1", None]:
        with pytest.raises((TypeError, OverflowError)):
            sidon.Set(ROWS[0].shape, seed)
