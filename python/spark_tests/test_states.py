"""A machine over a stream counts what one process counts, also when executor and driver are killed."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stream import MACHINE

from sidon import spark as on_spark

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
