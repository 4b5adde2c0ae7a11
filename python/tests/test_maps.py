"""State maps and machines."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sidon
from sidon import plan

GOLDEN = Path(__file__).parents[2] / "crates/sidon/tests/golden"
SEED = 0x5EED
KEYS = ["10.0.0.1", "10.0.0.2", "2001:db8::1", "", "sidon"]
SHAPES = [
    plan.states(flows=5_000, states=4, error=1e-6),
    plan.states(flows=5_000, states=4, error=1e-6, prefer="speed"),
    {"direct": {"cells": 400_000, "hashes": 8, "states": 4, "counter": 4, "timed": False}},
    {"stateful": {"cells": 400_000, "hashes": 8, "states": 4, "keeping": {"counted": 4}}},
]
TCP = sidon.Machine(
    ["opening", "open", "closing", "closed"],
    {
        "syn": [("open", "opening")],
        "ack": [("if", "opening", "open")],
        "fin": [("if", "open", "closing")],
        "rst": [("go", "closed")],
    },
    terminal=["closed"],
)


def model(states, key, event):
    """The machine above on an exact dict."""
    now = states.get(key)
    match event, now:
        case "syn", None:
            states[key] = 0
        case "ack", 0:
            states[key] = 1
        case "fin", 1:
            states[key] = 2
        case "rst", int():
            del states[key]
    return -1 if now is None else now


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: list(shape)[0])
def test_a_machine_over_batches_agrees_with_a_dict(shape):
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 3_000, 30_000)
    events = rng.choice(TCP.events, 30_000, p=[0.4, 0.3, 0.2, 0.1])
    flows, exact = sidon.Map(shape, 1), {}
    expected = [model(exact, key, event) for key, event in zip(keys.tolist(), events.tolist())]
    before, refused = flows.apply_batch(TCP, keys[:10_000], pa.array(events[:10_000]))
    numbers = [TCP.events.index(event) for event in events]
    rest, more = flows.apply_batch(TCP, pa.array(keys[10_000:]), np.array(numbers[10_000:], dtype=np.uint8))
    assert not refused and not more
    assert before.tolist() + rest.tolist() == expected
    found = flows.lookup_batch(np.arange(3_000))
    assert found.dtype == np.int32 and found.tolist() == [exact.get(key, -1) for key in range(3_000)]
    for key in range(100):
        match flows.lookup(key):
            case sidon.State(number):
                assert exact[key] == number and key in flows
            case sidon.Absent():
                assert key not in exact and key not in flows
            case sidon.DontKnow():
                pytest.fail("cells of an error rate of one in a million are shared")
    one = sidon.Map(shape, 1)
    for key, event, answer in zip(keys[:2_000].tolist(), events[:2_000].tolist(), expected):
        state = one.apply(TCP, key, event)
        assert state == (sidon.Absent() if answer < 0 else sidon.State(answer))
    for twin in [pickle.loads(pickle.dumps(flows)), copy.copy(flows), copy.deepcopy(flows)]:
        assert twin == flows and twin.shape == flows.shape == shape
        twin.clear()
        assert twin.lookup(int(keys[0])) == sidon.Absent() and twin != flows
    text = repr(flows)
    assert text.startswith(f"<Map: {list(shape)[0]} {{") and "load 0." in text and "probability" in text


def test_keys_that_share_cells_are_not_known():
    shape = plan.states(flows=1_000, states=2, error=1e-6)
    shape["fingerprint"] |= {"remainder": 6}
    flows = sidon.Map(shape, 1)
    for key in range(900):
        flows.insert(key, key % 2)
    answers = flows.lookup_batch(np.arange(900))
    unknown = np.flatnonzero(answers == -2)
    assert len(unknown) > 50 and (np.delete(answers, unknown) == np.delete(np.arange(900) % 2, unknown)).all()
    assert flows.lookup(int(unknown[0])) == sidon.DontKnow() and flows.stats()["unknown"] > 0


def test_refusals_have_their_reason():
    flows = sidon.Map(plan.states(flows=100, states=3, error=1e-6), 1)
    flows.insert("a", 2)
    for act, reason in [
        (lambda: flows.forget("b"), "not_stored"),
        (lambda: flows.modify("b", 1), "not_stored"),
        (lambda: flows.insert("b", 3), "outside"),
        (lambda: flows.merge(sidon.Map(flows.shape, 2)), "mismatch"),
    ]:
        with pytest.raises(sidon.Refused) as caught:
            act()
        assert caught.value.reason == reason
    many = sidon.Map({"fingerprint": flows.shape["fingerprint"] | {"buckets": 1, "moves": "never", "stash": 0}}, 1)
    before, refused = many.apply_batch(TCP, np.arange(100), ["syn"] * 100)
    assert (before == -1).all() and 60 < len(refused) < 100 and refused[0][1].reason == "full"


def test_wrong_events_name_their_row_and_change_nothing():
    flows = sidon.Map(SHAPES[0], 1)
    for events, row in [(["syn", "psh"], 1), ([0, 4], 1), ([-1, 0], 0), (["syn"], None), ([0.5, 1], 0)]:
        with pytest.raises(sidon.BadKey) as caught:
            flows.apply_batch(TCP, ["a", "b"], events)
        assert caught.value.row == row
    with pytest.raises(sidon.BadKey, match="psh"):
        flows.apply(TCP, "a", "psh")
    assert flows == sidon.Map(SHAPES[0], 1)


def test_machines_are_data():
    again = pickle.loads(pickle.dumps(TCP))
    assert again == TCP and again.states == TCP.states and "syn" in repr(TCP)
    rules = {"a": [("open_new", "x")], "b": [("add", 1)], "c": [("mix", "y")]}
    assert pickle.loads(pickle.dumps(sidon.Machine(["x", "y"], rules))) == sidon.Machine(["x", "y"], rules)
    for states, events, text in [
        (["a"], {"x": [("open", "b")]}, 'no state "b"'),
        (["a", "a"], {"x": [("open", "a")]}, "named twice"),
        (["a"], {}, "0 events"),
        (["a"], {"x": [("go", "a")]}, "no event opens"),
        (["a"], {"x": [("jump", "a")]}, "not a rule"),
        (["a"], {"x": ["open"]}, "not a rule"),
        (["a", "b"], {"x": [("open", "a"), ("open", "b")]}, "goes to both"),
    ]:
        with pytest.raises(ValueError, match=text):
            sidon.Machine(states, events)


@pytest.mark.parametrize("name", ["state-direct", "state-stateful", "state-fingerprint", "state-direct-except"])
def test_golden_files(name):
    image = (GOLDEN / f"{name}.sidon").read_bytes()
    read = sidon.Map.from_bytes(image, SEED)
    assert read.to_bytes() == image
    built = sidon.Map(read.shape, SEED, exceptions=1 if name.endswith("except") else 0)
    for state, key in enumerate(KEYS):
        built.insert(key, state)
    built.modify(KEYS[1], 4)
    if name.endswith("except"):
        built.except_key("10.0.0.3")
    assert built.to_bytes() == image and built == read
