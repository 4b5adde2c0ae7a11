"""Captures, snapshots, reports and merges."""

import copy
import os
import pickle
import signal
import subprocess

import pytest

import sidon

CAPTURE = sidon.generate(60_000, seed=3, rate=10_000, clients=100)
SEED = 99


@pytest.fixture(scope="module")
def snapshot():
    return sidon.watch(CAPTURE, seed=SEED)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("captures") / "office.pcap"
    path.write_bytes(CAPTURE)
    return path


def test_a_file_its_bytes_and_threads_give_one_image(snapshot, file):
    assert snapshot.packets == 60_000 and sidon.generate(60_000, seed=3, rate=10_000, clients=100) == CAPTURE
    for other in [
        sidon.watch(file, seed=sidon.Seed(SEED), memory=16 << 20),
        sidon.watch(str(file), seed=SEED, threads=3),
        sidon.watch(memoryview(CAPTURE), seed=SEED, memory="16MiB"),
        sidon.watch(bytearray(CAPTURE), seed=SEED),
    ]:
        assert other == snapshot and other.to_bytes() == snapshot.to_bytes()


@pytest.mark.skipif("SIDON" not in os.environ, reason="SIDON names no binary of the tool")
def test_images_and_reports_are_those_of_the_tool(snapshot, file, tmp_path):
    def tool(*words):
        return subprocess.run([os.environ["SIDON"], *words], check=True, capture_output=True).stdout

    saved = tmp_path / "office.sidon"
    tool("watch", "-r", file, "--seed", str(SEED), "--save", saved, "--quiet")
    assert saved.read_bytes() == snapshot.to_bytes() and sidon.read(saved) == snapshot
    own = tmp_path / "own.sidon"
    snapshot.save(own)
    assert own.read_bytes() == saved.read_bytes() and own.stat().st_mode & 0o777 == 0o600
    assert b'"packets": 60000' in tool("show", own, "--json")
    periods = tmp_path / "periods"
    tool("watch", "-r", file, "--seed", str(SEED), "--rotate", "2s", "--save-dir", periods, "--quiet")
    tool("merge", *sorted(periods.glob("*.sidon")), "-o", tmp_path / "all.sidon", "--quiet")
    parts = []
    sidon.watch_by(file, 2, lambda start, part: parts.append(part), seed=SEED)
    images = [part.to_bytes() for part in parts]
    assert [path.read_bytes() for path in sorted(periods.glob("*.sidon"))] == images
    assert sidon.merge(parts).to_bytes() == (tmp_path / "all.sidon").read_bytes()


def test_a_report_is_a_dict(snapshot):
    report = snapshot.report()
    assert report["ledger"]["seen"] == 60_000 and len(report["top_flows"]) == 10
    assert len(snapshot.report(top=50)["top_flows"]) == 50 and snapshot.report() == report
    first, last = snapshot.times
    assert first < last and snapshot.engines == 1 and not snapshot.partial
    assert report == sidon.report(snapshot)


def test_periods_merge_to_all_packets(snapshot):
    starts, parts = [], []
    sidon.watch_by(CAPTURE, 1, lambda start, part: (starts.append(start), parts.append(part)), seed=SEED)
    assert len(parts) > 5 and starts == sorted(set(starts)) and all(start % 10**9 == 0 for start in starts)
    whole = sidon.merge(parts)
    assert whole.packets == sum(part.packets for part in parts) == 60_000 and whole.engines == len(parts)
    assert whole.report()["bytes"] == snapshot.report()["bytes"]
    assert parts[0] == sidon.merge(parts[:1]) and parts[0].engines == 1


def test_parts_by_flow_stay_exact(snapshot):
    even, odd = (sidon.watch(CAPTURE, seed=SEED, filter=text) for text in ["tcp", "not tcp"])
    with pytest.raises(sidon.Refused) as caught:
        even.merge(odd)
    assert caught.value.field == "filter expression"
    counts = snapshot.copy().merge(sidon.watch(CAPTURE, seed=SEED), by_flow=True)
    assert set(counts) == {"in_both", "refused_connections", "refused_sources"} and counts["in_both"] > 0


def test_snapshots_are_copied_and_pickled(snapshot):
    for twin in [pickle.loads(pickle.dumps(snapshot)), copy.copy(snapshot), copy.deepcopy(snapshot)]:
        assert twin == snapshot
        twin.merge(snapshot)
        twin.merge(twin)
        assert twin != snapshot and twin.packets == 240_000
    assert repr(snapshot) == "<Snapshot: memory 16777216, 60000 packets, engines 1>"


def test_a_seed_can_be_left_out(tmp_path):
    seed = 0x1234_5678_9ABC_DEF0_1122_3344_5566_7788
    snapshot = sidon.watch(sidon.generate(100, seed=1), seed=seed)
    image = snapshot.to_bytes(seed=False)
    for half in [seed & (2**64 - 1), seed >> 64]:
        assert half.to_bytes(8, "little") in snapshot.to_bytes() and half.to_bytes(8, "little") not in image
    with pytest.raises(sidon.Malformed) as caught:
        sidon.Snapshot.from_bytes(image)
    assert caught.value.reason == "seed"
    assert sidon.Snapshot.from_bytes(image, seed) == snapshot
    snapshot.save(tmp_path / "a.sidon", seed=False)
    assert sidon.report(tmp_path / "a.sidon", seed=seed) == snapshot.report()
    (tmp_path / "seed").write_text(hex(seed) + "\n")
    assert sidon.seed_of_file(tmp_path / "seed") == sidon.Seed(seed)
    for wrong in ["", "0xg", "-1", str(2**128), "1 2", "secret"]:
        (tmp_path / "seed").write_text(wrong)
        with pytest.raises(ValueError, match="seed: expected a number") as caught:
            sidon.seed_of_file(tmp_path / "seed")
        assert "secret" not in str(caught.value)


def test_errors_name_the_file(snapshot, file, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        sidon.watch(tmp_path / "none.pcap", seed=1)
    assert caught.value.filename == str(tmp_path / "none.pcap")
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(CAPTURE[:-10])
    with pytest.raises(sidon.Malformed, match="cut.pcap") as caught:
        sidon.watch(cut, seed=SEED)
    assert (caught.value.reason, caught.value.path) == ("capture", str(cut))
    part = sidon.watch(cut, seed=SEED, partial=True)
    assert part.partial and part.report()["partial"] and part.packets == 59_999 and "broken off" in repr(part)
    (tmp_path / "text.pcap").write_text("no capture")
    with pytest.raises(sidon.Malformed, match="text.pcap"):
        sidon.watch(tmp_path / "text.pcap", seed=1)
    damaged = bytearray(snapshot.to_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "damaged.sidon").write_bytes(damaged)
    with pytest.raises(sidon.Malformed, match="damaged.sidon") as caught:
        sidon.read(tmp_path / "damaged.sidon")
    assert (caught.value.reason, caught.value.path) == ("checksum", str(tmp_path / "damaged.sidon"))
    sidon.watch(CAPTURE, seed=SEED + 1).save(tmp_path / "other.sidon")
    with pytest.raises(sidon.Refused, match="other.sidon") as caught:
        sidon.merge([snapshot, tmp_path / "other.sidon"])
    assert (caught.value.field, caught.value.path) == ("seed", str(tmp_path / "other.sidon"))
    with pytest.raises(ValueError, match="no snapshot"):
        sidon.merge([])
    for options in [{"filter": "port http or"}, {"memory": "16 MB"}, {"memory": 1}, {"subnets": ["10.0.0.0/8"]}]:
        with pytest.raises(ValueError):
            sidon.watch(file, seed=1, **options)
    with pytest.raises(ValueError):
        sidon.watch_by(file, 0, print, seed=1)


def test_an_error_of_the_caller_ends_the_run():
    def fail(start, part):
        raise LookupError("stop")

    with pytest.raises(LookupError, match="stop"):
        sidon.watch_by(CAPTURE, 1, fail, seed=1)


def test_a_signal_ends_the_run(file):
    def interrupt(number, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        large = file.with_name("large.pcap")
        large.write_bytes(CAPTURE + CAPTURE[24:] * 50)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(TimeoutError):
            sidon.watch(large, seed=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
