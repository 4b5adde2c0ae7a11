"""Spark with two executors gives the bytes that one process gives, also when an executor is killed.

SIDON_SPARK_CAPTURES is the number of captures and SIDON_SPARK_PACKETS the number of packets of each.
"""

import doctest
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

import sidon
from sidon import plan
from sidon import spark as on_spark

CAPTURES = int(os.environ.get("SIDON_SPARK_CAPTURES", "6"))
PACKETS = int(os.environ.get("SIDON_SPARK_PACKETS", "40000"))
SEED = 0x5EED_5EED
MEMORY = "2MiB"


@pytest.fixture(scope="session")
def session():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("sidon tests")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "4")
    builder = builder.config("spark.task.maxFailures", "4").config("spark.driver.bindAddress", "127.0.0.1")
    session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def captures(tmp_path_factory):
    """Captures of three sensors, each of which crosses the border of a period."""
    folder = tmp_path_factory.mktemp("captures")
    paths = []
    for number in range(CAPTURES):
        path = folder / f"tap-{number % 3}" / f"{number:03}.pcap"
        path.parent.mkdir(exist_ok=True)
        start = 1_700_000_000_000_000_000 + number // 3 * 2 * 10**9
        path.write_bytes(sidon.generate(PACKETS, seed=number, rate=PACKETS // 3, start_ns=start))
        paths.append(str(path))
    return sorted(paths)


@pytest.fixture(scope="session")
def expected(captures):
    """The images of one process, by period."""
    parts = defaultdict(list)
    for path in captures:
        keep = lambda start, part: parts[start].append(part.to_bytes(seed=False))  # noqa: E731
        sidon.watch_by(path, 2, keep, seed=SEED, memory=MEMORY)
    join = lambda images: on_spark.join_snapshots(images, sidon.Seed(SEED))  # noqa: E731
    return {start: on_spark.merge_tree(images, join, 2) for start, images in parts.items()}


def run(session, captures):
    found = on_spark.snapshots(session, captures, seed=SEED, seconds=2, memory=MEMORY)
    with on_spark.named_errors():
        rows = on_spark.merge_by(found, "period", seed=SEED, fan_in=2).collect()
    return {int(row["period"]): bytes(row["image"]) for row in rows}


def test_images_equal_those_of_one_process(session, captures, expected):
    assert len(expected) >= 2
    found = run(session, captures)
    assert found.keys() == expected.keys()
    assert found == expected
    packets = [sidon.Snapshot.from_bytes(image, SEED).packets for image in found.values()]
    assert sum(packets) == CAPTURES * PACKETS


def processes(*words):
    """The processes below this one whose command line has all words."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if entry.name.isdigit() and all(word in line for word in words) and is_below(int(entry.name)):
            found.append(int(entry.name))
    return found


def is_below(process):
    while process > 1:
        if process == os.getpid():
            return True
        try:
            process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


@pytest.mark.parametrize("victim", [("CoarseGrainedExecutorBackend",), ("pyspark.daemon",)])
def test_killing_a_process_changes_no_byte(session, captures, expected, victim):
    killed = []

    def kill():
        until = time.monotonic() + 60
        while time.monotonic() < until and not killed:
            time.sleep(0.3)
            for process in processes(*victim)[:1]:
                os.kill(process, signal.SIGKILL)
                killed.append(process)

    run(session, captures[:1])
    killer = threading.Thread(target=kill)
    killer.start()
    found = run(session, captures)
    killer.join()
    assert killed and found == expected


def test_errors_keep_their_class_and_name_the_file(session, captures, tmp_path):
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(Path(captures[0]).read_bytes()[:-10])
    with pytest.raises(sidon.Malformed, match="cut.pcap") as caught:
        run(session, [captures[1], str(cut)])
    assert (caught.value.reason, caught.value.path) == ("capture", str(cut))
    with pytest.raises(FileNotFoundError, match="none.pcap"):
        run(session, [str(tmp_path / "none.pcap")])
    image = sidon.watch(captures[0], seed=SEED + 1, memory=MEMORY).to_bytes(seed=False)
    mixed = session.createDataFrame([("p", "a", bytearray(image))], "period string, path string, image binary")
    with pytest.raises(sidon.Malformed, match="a: ") as caught, on_spark.named_errors():
        on_spark.merge_by(mixed, "period", seed=SEED).collect()
    assert (caught.value.reason, caught.value.path) == ("seed", "a")
    damaged = bytearray(sidon.watch(captures[0], seed=SEED, memory=MEMORY).to_bytes(seed=False))
    damaged[1_000] ^= 1
    broken = session.createDataFrame([("p", "a", damaged)], "period string, path string, image binary")
    with pytest.raises(sidon.Malformed, match="a: ") as caught, on_spark.named_errors():
        on_spark.merge_by(broken, "period", seed=SEED).collect()
    assert caught.value.path == "a"
    other = sidon.watch(captures[0], seed=SEED, memory="4MiB").to_bytes(seed=False)
    own = sidon.watch(captures[0], seed=SEED, memory=MEMORY).to_bytes(seed=False)
    rows = [("p", "a", bytearray(own)), ("p", "b", bytearray(other))]
    mixed = session.createDataFrame(rows, "period string, path string, image binary")
    with pytest.raises(sidon.Refused) as caught, on_spark.named_errors():
        on_spark.merge_by(mixed, "period", seed=SEED).collect()
    assert caught.value.field == "memory" and caught.value.path in ("a", "b")


def test_a_tree_of_files_of_sensors_merges_by_hour(session, captures, tmp_path):
    session.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    hour = 3600 * 10**9
    parts = defaultdict(list)
    for path in captures:
        folder = tmp_path / Path(path).parent.name
        folder.mkdir(exist_ok=True)

        def save(start, part, folder=folder):
            name = time.strftime("sidon-%Y%m%dT%H%M%SZ", time.gmtime(start // 10**9))
            file = folder / f"{name}.sidon"
            if file.exists():
                file = folder / f"{name}-2.sidon"
            part.save(file)
            parts[start - start % hour].append((f"file:{file}", part.to_bytes(seed=False)))

        sidon.watch_by(path, 2, save, seed=SEED, memory=MEMORY)
        (folder / ".sidon-20231114T221320Z.sidon.new").write_bytes(b"half")
    found = on_spark.saved(session, str(tmp_path))
    assert {row["sensor"] for row in found.select("sensor").collect()} == {path.name for path in tmp_path.iterdir()}
    with on_spark.named_errors():
        rows = on_spark.merge_by(found, "period", seed=SEED).collect()
    session.conf.unset("spark.sql.session.timeZone")
    join = lambda images: on_spark.join_snapshots(images, sidon.Seed(SEED))  # noqa: E731
    expected = {start: on_spark.merge_tree([image for _, image in sorted(group)], join) for start, group in parts.items()}
    assert {int(row["period"]): bytes(row["image"]) for row in rows} == expected


def test_a_sketch_of_columns_bounds_every_value(session):
    rng = np.random.default_rng(1)
    keys = rng.zipf(1.3, 40_000).clip(0, 2**40).tolist()
    amounts = rng.integers(1, 1_000, 40_000).tolist()
    rows = [(key % 3, f"host-{key}", amount) for key, amount in zip(keys, amounts)]
    frame = session.createDataFrame(rows, "link long, host string, bytes long").repartition(5)
    shape = plan.top(1 << 17, 64)
    given = {"seed": 1, "key": "host", "kind": "str", "amounts": ("bytes",)}
    with on_spark.named_errors():
        found = on_spark.sketch(frame, shape, by="link", **given).collect()
    assert sorted(row["link"] for row in found) == ["0", "1", "2"]
    for row in found:
        exact = Counter()
        for link, host, amount in rows:
            if str(link) == row["link"]:
                exact[host] += amount
        table = sidon.Top.from_bytes(row["image"], 1, key="str")
        assert table.total == (sum(exact.values()),)
        lower, upper = table.bounds_batch(list(exact))
        truth = np.array(list(exact.values()), dtype=np.uint64)
        assert (lower[:, 0] <= truth).all() and (truth <= upper[:, 0]).all()
    holes = session.createDataFrame([(1, "a", 5), (1, None, 5)], "link long, host string, bytes long").coalesce(1)
    with pytest.raises(sidon.BadKey, match="null") as caught, on_spark.named_errors():
        on_spark.sketch(holes, shape, by="link", **given).collect()
    assert caught.value.row == 1


def test_the_tour(session, tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs/SCALE.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M)
    assert len(blocks) >= 3
    # An empty line ends the output of the last example of a block.
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {"session": session}, "SCALE.md", "docs/SCALE.md", 0)
    monkeypatch.chdir(tmp_path)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_command_writes_a_file_for_each_period(captures, tmp_path):
    (tmp_path / "seed").write_text(str(SEED))
    pattern = str(Path(captures[0]).parents[1] / "**/*.pcap")
    command = [sys.executable, "-m", "sidon.spark", "hours", pattern, "-o", str(tmp_path / "hours"), "--seconds", "2"]
    command += ["--seed-file", str(tmp_path / "seed"), "--memory", MEMORY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "hours").glob("*.sidon"))
    assert len(done.stdout.splitlines()) == len(files) >= 2
    assert sum(sidon.read(file, SEED).packets for file in files) == CAPTURES * PACKETS
    missing = [*command[:4], str(tmp_path / "none.pcap"), *command[5:]]
    done = subprocess.run(missing, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and "none.pcap" in done.stderr and "Traceback" not in done.stderr.splitlines()[-1]
