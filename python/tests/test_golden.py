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
