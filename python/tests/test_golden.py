"""The bytes of structures built in Python equal the golden files of the Rust library."""

from pathlib import Path

import pytest

import sidon

GOLDEN = Path(__file__).parents[2] / "crates/sidon/tests/golden"
SEED = 0x5EED
KEYS = ["10.0.0.1", "10.0.0.2", "2001:db8::1", "", "sidon"]
SETS = [
    "backyard", "bh-centred", "bh", "blocked", "bloom", "counting-lines", "counting-pin", "counting", "dleft",
    "multilayer-four", "multilayer", "variable-lines", "variable",
]  # fmt: skip


def golden(name):
    return (GOLDEN / f"{name}.sidon").read_bytes()


@pytest.mark.parametrize("name", SETS)
def test_sets(name):
    image = golden(name)
    read = sidon.Set.from_bytes(image, SEED)
    assert read.to_bytes() == image
    built = sidon.Set(read.shape, SEED)
    assert not built.insert_batch(KEYS)
    if name == "backyard":
        built.insert_batch(range(29))
    assert built.to_bytes() == image and built == read


def test_a_set_with_remainders_of_two_lengths():
    image = golden("elastic")
    read = sidon.Set.from_bytes(image, SEED)
    assert read.to_bytes() == image and all(key in read for key in KEYS)
    assert "elastic" in read.shape and sidon.Set(read.shape, SEED).shape == read.shape
    # The plan lists the structure, and a set of that shape holds the planned keys.
    [row] = [row for row in sidon.plan.sets(1000, 0.001) if row.name == "elastic"]
    planned = sidon.Set(row.shape, SEED)
    assert not planned.insert_batch(range(1000)) and planned.certainty.error <= 0.001


def test_a_set_with_exceptions():
    read = sidon.Set.from_bytes(golden("bloom-except"), SEED)
    built = sidon.Set(read.shape, SEED, exceptions=3)
    built.insert_batch(KEYS)
    built.except_key("10.0.0.3")
    built.except_key("10.0.0.4")
    assert built.to_bytes() == golden("bloom-except")


@pytest.mark.parametrize("name", ["min", "min-line"])
def test_counts(name):
    built = sidon.Min(sidon.Min.from_bytes(golden(name), SEED).shape, SEED)
    built.add_batch(KEYS, [100, 200, 300, 400, 500])
    assert built.to_bytes() == golden(name)


def test_decayed_counts():
    built = sidon.Min(sidon.Min.from_bytes(golden("min-decayed"), SEED).shape, SEED)
    built.add_batch(KEYS, [100, 200, 300, 400, 500])
    built.decay(1, 3)
    assert built.to_bytes() == golden("min-decayed")


def test_the_heaviest_keys():
    built = sidon.Top({"buckets": 1, "rows": 2, "columns": 5}, SEED, key="ipv4", amounts=2)
    keys = [bytes([10, 0, 0, i]) for i in range(12)]
    built.add_batch(keys_of(keys), ([100 + i * 7 % 12 for i in range(12)], [1] * 12))
    assert built.to_bytes() == golden("top")
    assert sidon.Top.from_bytes(golden("top"), SEED, key="ipv4") == built
    assert sidon.Top.from_bytes(golden("top"), SEED, key=4).to_bytes() == golden("top")


def test_distinct_keys():
    for name, count in [("distinct-list", 5), ("distinct", 500)]:
        built = sidon.Distinct({"registers": 24}, SEED)
        built.add_batch(range(count))
        assert built.to_bytes() == golden(name)
        assert sidon.Distinct.from_bytes(golden(name), SEED) == built


def test_distinct_elements_per_key():
    built = sidon.FanOut({"buckets": 1, "registers": 4, "panes": 2, "pane": 10}, SEED, key=4)
    for element in range(200):
        keys = [bytes([10, 0, 0, key]) for key in range(10) if element % (key + 1) == 0]
        built.add_batch(keys, [element] * len(keys), now=element // 7)
    assert built.to_bytes() == golden("fan-out")
    assert sidon.FanOut.from_bytes(golden("fan-out"), SEED, key=4) == built
def test_networks():
    built = sidon.Prefixes({"buckets": [1, 1, 1, 1, 1]}, SEED, amounts=3)
    keys = [
        bytes([0x20, 1, 0xD, i, 0, i, 0, i // 2, 0, 0, 0, 0, 0, 0, 0, 1]) if i % 3 == 0 else bytes([10 + i, i, i, i])
        for i in range(48)
    ]
    built.add_batch(keys_of(keys), ([100 + i * 7 % 12 for i in range(48)], [1] * 48, [i % 2 for i in range(48)]))
    built.halve()
    built.add(keys_of([bytes([10, 0, 0, 1])])[0], 33, 3, 0)
    assert built.to_bytes() == golden("prefixes")
    assert sidon.Prefixes.from_bytes(golden("prefixes"), SEED) == built


def keys_of(keys):
    import ipaddress

    return [ipaddress.ip_address(key) for key in keys]
