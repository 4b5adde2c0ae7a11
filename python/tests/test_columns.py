"""A column of keys gives the keys of its values one by one, by whatever way it comes."""

import ipaddress
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sidon

SHAPE = sidon.plan.set(keys=2_000, false_positives=1e-6, deletes=True).shape


def image(keys):
    seen = sidon.Set(SHAPE, 7)
    assert not seen.insert_batch(keys)
    return seen.to_bytes()


def one_by_one(keys):
    seen = sidon.Set(SHAPE, 7)
    for key in keys:
        seen.insert(key)
    assert len(seen) == len(keys)
    return seen.to_bytes()


def assert_same(keys, columns):
    expected = one_by_one(keys)
    for name, column in columns.items():
        assert image(column) == expected, name


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"])
def test_integers_of_every_width_are_one_key(dtype):
    low = -50 if dtype[0] == "i" else 0
    keys = list(range(low, low + 100))
    array = np.array(keys, dtype=dtype)
    padded = np.zeros(200, dtype=dtype)
    padded[::2] = array
    assert_same(
        keys,
        {
            "list": keys,
            "tuple": tuple(keys),
            "generator": (key for key in keys),
            "numpy": array,
            "numpy objects": array.astype(object),
            "numpy with gaps": padded[::2],
            "numpy scalars": list(array),
            "arrow": pa.array(array),
            "arrow slice": pa.array([1, 2, *keys, 3], type=pa.from_numpy_dtype(array.dtype)).slice(2, 100),
            "arrow chunks": pa.chunked_array([array[:1], array[1:1], array[1:]]),
            "pandas": pd.Series(array),
        },
    )


def test_text_and_bytes_are_one_key_whatever_holds_them():
    texts = ["", "10.0.0.1", "grüße", "x" * 100, *map(str, range(5_000))][:1_500]
    expected = {
        "list": texts,
        "utf8": pa.array(texts),
        "large_utf8": pa.array(texts, pa.large_utf8()),
        "views": pa.array(texts, pa.string_view()),
        "slice": pa.array(["a", *texts]).slice(1),
        "bytes": [text.encode() for text in texts],
        "bytearrays": [bytearray(text.encode()) for text in texts],
        "binary": pa.array([text.encode() for text in texts]),
        "large_binary": pa.array([text.encode() for text in texts], pa.large_binary()),
        "binary views": pa.array([text.encode() for text in texts], pa.binary_view()),
        "chunks": pa.chunked_array([texts[:700], texts[700:]]),
        "pandas": pd.Series(texts),
        "numpy objects": np.array(texts, dtype=object),
    }
    assert_same(texts, expected)


@pytest.mark.parametrize("width", [1, 4, 5, 13, 16, 37])
def test_rows_of_bytes_are_one_key(width):
    rows = np.random.default_rng(1).integers(0, 256, (100, width), dtype=np.uint8)
    if width == 1:
        rows = np.arange(100, dtype=np.uint8).reshape(100, 1)
    keys = [row.tobytes() for row in rows]
    fixed = pa.array([b"\0" * width, *keys], pa.binary(width))
    assert_same(keys, {"rows": rows, "fixed": fixed.slice(1), "binary": pa.array(keys)})


def test_addresses_are_their_bytes():
    for name in ["10.0.0.1", "2001:db8::1"]:
        address = ipaddress.ip_address(name)
        assert image([address]) == image([address.packed]) != image([name])


def test_ints_are_eight_bytes():
    for number in [0, 1, -1, 2**63 - 1, -(2**63), 2**64 - 1]:
        assert image([number]) == image([(number % 2**64).to_bytes(8, "little")])


def test_wrong_columns_name_their_row_and_change_nothing():
    seen = sidon.Set(SHAPE, 7)
    for wrong, row, text in [
        (pa.array([1, 2, None]), 2, "null"),
        (pa.chunked_array([pa.array(["a"]), pa.array(["b", None])]), 2, "null"),
        ([b"a", 2.5], 1, "not float"),
        ([1, None], 1, "not NoneType"),
        ([1, 2**64], 1, "-2**63 to 2**64 - 1"),
        ([True], 0, "not bool"),
        (np.array([1.0]), None, "Float64"),
        (np.array([True]), 0, "not bool"),
        (pa.array([{"a": 1}]), None, "Struct"),
        (pa.array(["a"]).dictionary_encode(), None, "Dictionary"),
    ]:
        for batch in [seen.insert_batch, seen.remove_batch, seen.contains_batch]:
            with pytest.raises(sidon.BadKey, match=text.replace("*", r"\*")) as caught:
                batch(wrong)
            assert caught.value.row == row
    for wrong in [b"key", "key", bytearray(b"key"), 5, None]:
        with pytest.raises(TypeError):
            seen.insert_batch(wrong)
    assert len(seen) == 0


def memory(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name))


@pytest.mark.parametrize("producer", ["numpy", "arrow"])
def test_a_batch_copies_no_keys(producer):
    keys = np.arange(10_000_000)
    column = pa.array(keys) if producer == "arrow" else keys
    seen = sidon.Set({"bloom": {"bits": 1 << 16, "hashes": 2}}, 1)
    seen.insert_batch(column[:10])
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")
    before = memory("VmRSS")
    seen.insert_batch(column)
    assert memory("VmHWM") - before < keys.nbytes / 10
    assert len(seen) == 10_000_010


def test_other_threads_run_during_a_batch():
    seen = sidon.Set(sidon.plan.set(keys=4_000_000, false_positives=0.01).shape, 1)
    batch = threading.Thread(target=seen.insert_batch, args=(np.arange(4_000_000),))
    batch.start()
    turns = 0
    while batch.is_alive():
        turns += 1
    assert turns > 100


def test_threads_that_share_structures_wait_for_each_other():
    one, other = (sidon.Set({"bloom": {"bits": 100_000, "hashes": 3}}, 1) for _ in range(2))

    def work(own, its, first):
        for step in range(20):
            own.insert_batch(np.arange(first, first + 1_000))
            its.contains_batch(np.arange(1_000))
            own.merge(its)
            its.merge(own)

    threads = [threading.Thread(target=work, args=args) for args in [(one, other, 0), (other, one, 1_000)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert one.contains_batch(np.arange(2_000)).all() and other.contains_batch(np.arange(2_000)).all()
