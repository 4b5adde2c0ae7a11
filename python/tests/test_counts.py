"""Counts and the heaviest keys."""

import copy
import ipaddress
import pickle
from collections import Counter

import numpy as np
import pytest

import sidon
from sidon import plan

RNG = np.random.default_rng(5)
KEYS = RNG.zipf(1.3, 50_000).clip(0, 2**40).astype(np.uint64)
AMOUNTS = RNG.integers(1, 1_500, 50_000).astype(np.int64)


def exact(keys=KEYS, amounts=AMOUNTS):
    counts = Counter()
    for key, amount in zip(keys.tolist(), amounts.tolist()):
        counts[key] += amount
    return counts


def test_a_sketch_bounds_every_count():
    sketch = sidon.Min(plan.count(0.001, 0.01), 3)
    assert not sketch.add_batch(KEYS, AMOUNTS)
    truth = exact()
    assert sketch.total == sum(truth.values())
    keys = list(truth)
    lower, upper, error = sketch.estimate_batch(keys)
    values = np.array([truth[key] for key in keys])
    assert (values <= upper).all()
    outside = (values < lower).sum()
    assert outside <= len(keys) * 0.01 and (error <= 0.01).all()
    for key in keys[:200]:
        estimate = sketch.estimate(key)
        index = keys.index(key)
        assert (estimate.lower, estimate.upper) == (lower[index], upper[index])
        assert estimate.certainty.error == error[index] and str(estimate) in repr(estimate)
    one_by_one = sidon.Min(sketch.shape, 3)
    for key, amount in zip(KEYS.tolist(), AMOUNTS.tolist()):
        one_by_one.add(key, amount)
    assert one_by_one == sketch


def test_sketches_copy_merge_subtract_and_decay():
    sketch = sidon.Min(plan.count_in(4096, 0.02), 3)
    sketch.add("a", 5)
    sketch.add("b")
    for twin in [pickle.loads(pickle.dumps(sketch)), copy.copy(sketch), sketch.copy(), copy.deepcopy(sketch)]:
        assert twin == sketch
        twin.merge(sketch)
        assert twin.estimate("a").value == 10 and twin.total == 12
        twin.subtract("a", 9)
        assert twin.estimate("a").value == 1
        twin.merge(twin)
        assert twin.total == 6
    sketch.decay(1, 2)
    assert sketch.estimate("a").upper == 3
    sketch.clear()
    assert sketch.total == 0 and "total 0" in repr(sketch) and "min" not in repr(sketch)
    with pytest.raises(sidon.Refused) as caught:
        sketch.subtract("a", 1)
    assert caught.value.reason == "not_stored"


def test_a_refused_amount_is_returned_with_its_row():
    sketch = sidon.Min(plan.count(0.01, 0.1), 3)
    refused = sketch.add_batch([1, 2, 3], np.array([5, 2**64 - 6, 1], dtype=np.uint64))
    assert refused.indices().tolist() == [2] and refused[0][1].reason == "overflow"
    assert sketch.total == 2**64 - 1


@pytest.mark.parametrize("amounts", [[1, -1, 1], [1, 2], [1.5, 2, 3], np.array([1, -1, 1]), "abc", [2**64, 1, 1]])
def test_wrong_amounts_change_nothing(amounts):
    sketch, table = sidon.Min(plan.count(0.01, 0.1), 3), sidon.Top(plan.top(4096, 8), 3, key="int")
    for add in [sketch.add_batch, table.add_batch]:
        with pytest.raises((ValueError, TypeError)):
            add([1, 2, 3], amounts)
    assert sketch.total == 0 and table.total == (0,)


def test_bounds_of_the_heaviest_keys_hold():
    table = sidon.Top(plan.top(16_384, 8, amounts=2), 3, key="int", amounts=2)
    table.add_batch(KEYS, (AMOUNTS, np.ones(len(KEYS), dtype=np.uint8)))
    octets, packets = exact(), Counter(KEYS.tolist())
    assert table.total == (sum(octets.values()), len(KEYS))
    ranking = table.heaviest(20)
    assert len(ranking) == 20 and ranking.complete > 0
    for key, (bytes_, count) in ranking:
        assert bytes_.lower <= octets[key] <= bytes_.upper and count.lower <= packets[key] <= count.upper
        assert table.bounds(key) == [bytes_, count]
    listed = {key for key, _ in ranking}
    assert all(octets[key] <= ranking.others for key in octets if key not in listed)
    for key, _ in octets.most_common(ranking.complete):
        assert key in listed
    keys = list(octets)
    lower, upper = table.bounds_batch(keys)
    assert lower.shape == upper.shape == (len(keys), 2)
    truth = np.array([[octets[key], packets[key]] for key in keys], dtype=np.uint64)
    assert (lower <= truth).all() and (truth <= upper).all()
    one_by_one = sidon.Top(table.shape, 3, key="int", amounts=2)
    for key, amount in zip(KEYS.tolist(), AMOUNTS.tolist()):
        one_by_one.add(key, amount, 1)
    assert one_by_one == table


def test_parts_without_a_common_key_merge_exactly():
    shape = plan.top(1 << 20, 8)
    whole, even, odd = (sidon.Top(shape, 3, key="int") for _ in range(3))
    whole.add_batch(KEYS, AMOUNTS)
    even.add_batch(KEYS[KEYS % 2 == 0], AMOUNTS[KEYS % 2 == 0])
    odd.add_batch(KEYS[KEYS % 2 == 1], AMOUNTS[KEYS % 2 == 1])
    even.merge(odd, disjoint=True)
    assert even.total == whole.total
    assert [entry for entry in even.heaviest(50)] == [entry for entry in whole.heaviest(50)]
    with pytest.raises(sidon.Refused) as caught:
        even.merge(sidon.Top(shape, 3, key="int", amounts=2))
    assert caught.value.reason == "mismatch"


@pytest.mark.parametrize(
    "kind, keys, wrong",
    [
        ("int", [0, 1, -1, 2**63], "text"),
        ("str", ["", "grüße", "x" * 64], "x" * 65),
        ("ipv4", [ipaddress.ip_address("10.0.0.1")], ipaddress.ip_address("::1")),
        ("ipv6", [ipaddress.ip_address("2001:db8::1")], ipaddress.ip_address("10.0.0.1")),
        ("ip", [ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("::1")], b"1234"),
        (13, [bytes(range(13))], bytes(12)),
        (64, [bytes(64)], "text"),
    ],
)
def test_tables_keep_keys_of_each_type(kind, keys, wrong):
    width = {"int": 8, "str": 64, "ipv4": 4, "ipv6": 16, "ip": 17}.get(kind, kind)
    table = sidon.Top(plan.top(1 << 16, width), 9, key=kind)
    table.add_batch(keys, range(1, len(keys) + 1))
    found = {key: bounds.lower for key, (bounds,) in table.heaviest(10)}
    expected = [key % 2**64 if kind == "int" else key for key in keys]
    assert found == {key: number for number, key in enumerate(expected, 1)}
    assert table.key == kind and len(table) == len(keys)
    for twin in [pickle.loads(pickle.dumps(table)), copy.copy(table), copy.deepcopy(table)]:
        assert twin == table and twin.key == kind and repr(twin) == repr(table)
    for batch in [lambda: table.add_batch([*keys, wrong]), lambda: table.bounds_batch([wrong])]:
        with pytest.raises(sidon.BadKey):
            batch()
    with pytest.raises(sidon.BadKey):
        table.add(wrong)
    assert twin == table


def test_tables_of_unknown_types_are_errors():
    for kind in ["float", 5, None, 0, -4, b"int"]:
        with pytest.raises((ValueError, TypeError)):
            sidon.Top(plan.top(4096, 8), 1, key=kind)
    for amounts in [0, 3]:
        with pytest.raises(sidon.Infeasible):
            sidon.Top(plan.top(4096, 8), 1, key="int", amounts=amounts)


def test_distinct_keys_copy_merge_and_hold_their_interval():
    one, two = (sidon.Distinct(sidon.plan.distinct(0.05), 1) for _ in range(2))
    one.add_batch(range(20_000))
    two.add_batch(range(10_000, 30_000))
    two.add("a text")
    copy = pickle.loads(pickle.dumps(one))
    assert copy == one and copy.copy() == one and copy != two
    one.merge(two)
    one.merge(one)
    count = one.count()
    assert 30_001 in count and count.lower < count.value < count.upper and int(count) == count.value
    assert not count.exact and one.certainty.error == 0.01
    with pytest.raises(sidon.Refused):
        one.merge(sidon.Distinct(sidon.plan.distinct(0.06), 1))
    one.clear()
    assert one.count().exact and int(one.count()) == 0


def test_distinct_elements_per_key_age_and_merge():
    shape = sidon.plan.fan_out(10, 0.13, panes=2, pane=60)
    one, two = (sidon.FanOut(shape, 1, key="ip") for _ in range(2))
    host, other = map(ipaddress.ip_address, ["10.0.0.1", "2001:db8::1"])
    for table, ports in [(one, range(500)), (two, range(300, 900))]:
        table.add_batch([host] * len(ports), ports, now=100)
    assert one.add(other, 443, now=100) == 1
    assert pickle.loads(pickle.dumps(one)) == one
    one.merge(two)
    assert 900 in one.estimate(host, now=100) and len(one) == 2 and one.others(now=100) == 0
    assert [key for key, _ in one.largest(5, now=100)] == [host, other]
    assert one.estimate(host, now=300).upper == 0
    with pytest.raises(sidon.BadKey):
        one.add_batch(["no address"], [1])
    with pytest.raises(ValueError):
        one.add_batch([host], [1, 2])
    with pytest.raises(sidon.Infeasible):
        sidon.plan.fan_out(10, 0.001)
def test_bounds_of_networks_hold_and_heavy_ones_are_listed():
    table = sidon.Prefixes(plan.prefixes(1 << 16, amounts=2), 3, amounts=2)
    hosts = list(ipaddress.ip_network("198.51.100.0/24")) * 4 + list(ipaddress.ip_network("2001:db8::/122"))
    sizes = np.arange(len(hosts), dtype=np.uint64)
    table.add_batch(hosts, (sizes, np.ones(len(hosts), dtype=np.uint8)))
    one_by_one = sidon.Prefixes(table.shape, 3, amounts=2)
    for host, size in zip(hosts, sizes.tolist()):
        one_by_one.add(host, size, 1)
    assert one_by_one == table and table.total == (int(sizes.sum()), len(hosts))
    for network in ["198.51.100.0/24", "198.51.0.0/17", "2001:db8::/64", "198.51.100.7", "10.0.0.0/8"]:
        inside = ipaddress.ip_network(network)
        truth = sum(size for host, size in zip(hosts, sizes.tolist()) if host in inside)
        size, _ = table.bounds(network)
        assert size.lower <= truth <= size.upper and table.bounds(inside) == table.bounds(network)
    heavy = table.heavy(500, amount=1)
    assert [row[0] for row in heavy.rows] == [ipaddress.ip_network("198.51.100.0/24")] and heavy.others < 500
    assert heavy[0][1][1].lower == 1024 and heavy[0][2][1].upper == 1024
    copy = pickle.loads(pickle.dumps(table))
    assert copy == table
    copy.halve(2)
    assert copy.bounds("198.51.100.0/24")[1].upper == 256
    copy.merge(table)
    assert copy.bounds("198.51.100.0/24")[1].upper == 1280


@pytest.mark.parametrize("network", ["10.0.0.0/33", "10.0.0/8", "text", "10.0.0.0/-1", 5])
def test_wrong_networks_are_named(network):
    table = sidon.Prefixes(plan.prefixes(1 << 16), 3)
    with pytest.raises((ValueError, TypeError)):
        table.bounds(network)
    with pytest.raises((ValueError, TypeError)):
        table.add_batch([ipaddress.ip_address("10.0.0.1"), "text"], [1, 2])
    with pytest.raises(sidon.Refused) as caught:
        table.add(ipaddress.ip_address("10.0.0.1"), 2**60)
    assert caught.value.reason == "overflow" and table.total == (0,)
    with pytest.raises(sidon.Infeasible):
        sidon.Prefixes(table.shape, 3, amounts=5)
