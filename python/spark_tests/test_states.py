"""A machine over a stream counts what one process counts, also when executor and driver are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stream import MACHINE

import sidon
from sidon import spark as on_spark
from sidon.spark_states import _Shard

FILES = int(os.environ.get("SIDON_SPARK_FILES", "5"))
ROWS = int(os.environ.get("SIDON_SPARK_ROWS", "20000"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of rows whose connections cross files, and the exact totals."""
    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(7)
    keys = rng.integers(0, ROWS // 4, ROWS * FILES)
    events = rng.choice(MACHINE.events, ROWS * FILES, p=[0.4, 0.3, 0.2, 0.1])
    states, exact = {}, Counter()
    for key, event in zip(keys.tolist(), events.tolist()):
        before = states.get(key, "absent")
        exact[event, before] += 1
        match event, before:
            case "syn", "absent":
                states[key] = "opening"
            case "ack", "opening":
                states[key] = "open"
            case "fin", "open":
                states[key] = "closing"
            case "rst", "opening" | "open" | "closing":
                del states[key]
    for number in range(FILES):
        part = slice(number * ROWS, (number + 1) * ROWS)
        names = [f"10.0.0.1:{key}" for key in keys[part]]
        at = np.arange(ROWS * FILES)[part]
        # Spark reads the rows of a file in any order.
        mixed = rng.permutation(ROWS)
        table = pa.table({"key": names, "event": events[part], "at": at}).take(mixed)
        pq.write_table(table, folder / f"{number:03}.parquet")
        os.utime(folder / f"{number:03}.parquet", (1_700_000_000 + number,) * 2)
    return folder, exact


def start(files, folder):
    script = Path(__file__).with_name("stream.py")
    words = [sys.executable, script, f"{files}", folder / "out", folder / "checkpoint"]
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, "PYSPARK_PYTHON": sys.executable})


def wait_for(condition, process, seconds=600):
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        found = condition()
        if found:
            return found
        time.sleep(0.2)
    return condition()


def below(process, word):
    """The processes started by this one, directly or not, whose command line has the word."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [process]
    while waiting:
        for child in children.get(waiting.pop(), []):
            waiting.append(child)
            try:
                if word in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(child)
            except OSError:
                continue
    return found


def batches(folder):
    return sorted((folder / "out").glob("batch-*.parquet"))


def assert_exact(folder, exact):
    totals = on_spark.latest(folder / "out")
    found = Counter()
    for row in totals.itertuples():
        found[row.event, row.before] += row.times
    assert found == exact
    shards = totals.drop_duplicates("shard")
    assert len(shards) == 4 and shards["rows"].sum() == ROWS * FILES == sum(exact.values())
    assert shards["late"].sum() == 0 and shards["refused"].sum() == 0
    assert len(batches(folder)) == FILES


def test_killing_executor_and_driver_loses_and_repeats_nothing(files, tmp_path):
    folder, exact = files
    process = start(folder, tmp_path)
    try:
        assert wait_for(lambda: len(batches(tmp_path)) >= 1, process), (tmp_path / "log").read_text()[-3000:]
        executors = below(process.pid, b"CoarseGrainedExecutorBackend")
        assert executors
        os.kill(executors[0], signal.SIGKILL)
        done = len(batches(tmp_path))
        assert wait_for(lambda: len(batches(tmp_path)) > done, process), (tmp_path / "log").read_text()[-3000:]
        # Driver and executors at once, as when a machine loses its power.
        victims = [process.pid, *below(process.pid, b"java")]
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert 1 <= len(batches(tmp_path)) < FILES
    again = start(folder, tmp_path)
    assert again.wait(900) == 0, (tmp_path / "log").read_text()[-3000:]
    assert_exact(tmp_path, exact)


class Kept:
    """A value state of Spark in memory."""

    def __init__(self):
        self.value = None

    def getValueState(self, name, schema):  # noqa: N802
        return self

    def exists(self):
        return self.value is not None

    def get(self):
        return self.value

    def update(self, value):
        self.value = value


def test_totals_of_windows_are_exact_whatever_the_batches(tmp_path):
    rng = np.random.default_rng(5)
    rows = 3_000
    # Times go back by up to 40 in 10,000; a window has 1,000.
    at = np.sort(rng.integers(-2_000, 8_000, rows)) - rng.integers(0, 40, rows)
    frame = pd.DataFrame({"key": rng.integers(0, 50, rows).astype(str), "order": at})
    frame["event"] = rng.choice(MACHINE.events, rows)
    shape = sidon.plan.states(flows=1_000, states=4, error=1e-7)

    def run(windows, batch, folder):
        state = Kept()
        for number, first in enumerate(range(0, rows, batch)):
            shard = _Shard(MACHINE, shape, sidon.Seed(3), 1_000, windows)
            shard.init(state)
            part = frame[first : first + batch]
            [found] = shard.handleInputRows((7,), iter([part[:10], part[10:]]), None)
            folder.mkdir(exist_ok=True)
            found.to_parquet(folder / f"batch-{number:09}.parquet")
        return on_spark.latest(folder), state.value

    for windows, batch in [(100, rows), (100, 700), (100, 60), (2, 60)]:
        totals, state = run(windows, batch, tmp_path / f"{windows}-{batch}")
        exact = Counter(zip(at - at % 1_000, frame["event"]))
        found = Counter()
        for row in totals.itertuples():
            found[row.window, row.event] += row.times
        # Windows that closed have been returned before, with all rows that came until then.
        assert found.total() + totals["closed"].iloc[0] == rows == totals["rows"].iloc[0]
        assert found == exact if windows == 100 else found <= exact
        assert (totals["closed"] == 0).all() == (windows == 100 or not state[5])
        assert len({name.split("\t")[0] for name in json.loads(state[1])}) <= windows
        assert set(totals["rows"]) == {rows} and set(totals["late"]) == {state[4]}
    assert state[4] > 0
    with pytest.raises(ValueError, match="window"):
        on_spark.states(None, MACHINE, shape=shape, seed=1, key="k", event="e", order="o", window=0)


def test_a_row_of_a_closed_window_changes_its_key_and_no_total():
    shape = sidon.plan.states(flows=1_000, states=4, error=1e-7)
    shard = _Shard(MACHINE, shape, sidon.Seed(3), 10, 2)
    shard.init(Kept())
    columns = ["key", "event", "order"]
    batches = [[("a", "syn", 5), ("b", "syn", 12)], [("c", "syn", 27)], [("a", "ack", 9), ("a", "fin", 28)]]
    for rows in batches:
        [found] = shard.handleInputRows((0,), iter([pd.DataFrame(rows, columns=columns)]), None)
    assert found[["rows", "late", "closed"]].iloc[0].tolist() == [5, 1, 1]
    # The acknowledgement opened the connection, although its window had been closed.
    assert [tuple(row) for row in found[["window", "event", "before", "times"]].to_numpy()] == [
        (20, "fin", "open", 1),
        (20, "syn", "absent", 1),
    ]
