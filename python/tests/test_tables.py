"""Tables hold what the reports hold, and no bound excludes the truth."""

import ipaddress
import json
import struct
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import sidon
from sidon import tables

CAPTURE = sidon.generate(60_000, seed=5, rate=10_000, clients=300)
SEED = 0x1234_5678_9ABC_DEF0_1122_3344_5566_7788


def exact(capture):
    """Bytes and packets of every host and flow of an Ethernet capture, by a decoder of its own."""
    hosts, flows = [Counter(), Counter()], [Counter(), Counter()]
    order = "<" if capture[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at < len(capture):
        captured, length = struct.unpack_from(order + "II", capture, at + 8)
        frame = capture[at + 16 : at + 16 + captured]
        at += 16 + captured
        kind = int.from_bytes(frame[12:14], "big")
        if kind == 0x0800:
            protocol, ends, rest = frame[23], (frame[26:30], frame[30:34]), 14 + (frame[14] & 15) * 4
        else:
            assert kind == 0x86DD
            protocol, ends, rest = frame[20], (frame[22:38], frame[38:54]), 54
        ports = struct.unpack_from(">HH", frame, rest) if protocol in (6, 17) else (0, 0)
        flow = (protocol, frozenset(zip(ends, ports)))
        for counts, amount in [(0, length), (1, 1)]:
            for end in set(ends):
                hosts[counts][str(ipaddress.ip_address(end))] += amount
            flows[counts][flow] += amount
    return hosts, flows


def flow_of(key):
    """The flow that a report names: ``10.0.0.1:40000 <-> 198.18.0.1:443 tcp``."""
    ends, protocol = key.rsplit(" ", 1)

    def end(text):
        if protocol not in ("tcp", "udp"):
            return ipaddress.ip_address(text.strip("[]")).packed, 0
        host, port = text.rsplit(":", 1)
        return ipaddress.ip_address(host.strip("[]")).packed, int(port)

    number = {"tcp": 6, "udp": 17, "icmp": 1, "icmpv6": 58, "icmp6": 58}[protocol]
    return number, frozenset(end(text) for text in ends.split(" <-> "))


@pytest.mark.parametrize("memory, exactly", [("16MiB", True), ("1MiB", False)])
def test_no_bound_excludes_the_truth(memory, exactly):
    hosts, flows = exact(CAPTURE)
    snapshot = sidon.watch(CAPTURE, seed=1, memory=memory)
    kinds = Counter()
    for what, truth, name in [("hosts", hosts, str), ("flows", flows, flow_of)]:
        table = tables.listed(snapshot, what, sensor="tap", top=5_000)
        assert table.schema.equals(tables.LISTED) and table.num_rows > 500
        for row in table.to_pylist():
            for amount, counts in zip(("bytes", "packets"), truth):
                count = counts[name(row["key"])]
                assert count > 0, row
                assert row[f"{amount}_lower"] <= count, row
                assert row[f"{amount}_upper"] is None or count <= row[f"{amount}_upper"], row
                kinds[row[f"{amount}_kind"]] += 1
    assert kinds["exact"] > 1_000 and (len(kinds) == 1) == exactly


def test_incidents_have_their_times_and_sizes():
    report = {
        "incidents": [
            {
                "id": "0123456789abcdef",
                "kind": "syn_flood",
                "subject": "198.51.96.0/20",
                "severity": "critical",
                "text": "SYN flood at 198.51.96.0/20",
                "opened": "2023-11-14T22:13:28.012348560Z",
                "updated": "2023-11-14T22:13:30.000000001Z",
                "closed": None,
                "filter": "dst net 198.51.96.0/20",
                "size": [["2023-11-14T22:13:28.012348560Z", 50]],
                "evidence_text": ["= 50 attempts"],
            }
        ]
    }
    table = tables._incidents(report, "tap", None)
    assert table.schema.equals(tables.INCIDENTS)
    assert table["opened"].cast("int64").to_pylist() == [1_700_000_008_012_348_560]
    assert table["closed"].null_count == 1 and table["evidence"].to_pylist() == [["= 50 attempts"]]
    assert table["size"].combine_chunks().flatten().field("size").to_pylist() == [50]
    snapshot = sidon.watch(CAPTURE, seed=1)
    assert tables.incidents(snapshot, sensor="tap").num_rows == len(snapshot.report()["incidents"])


def test_parquet_files_hold_periods_of_sensors_and_give_snapshots_back(tmp_path):
    items = []
    for sensor in ["tap-1", "tap-2"]:
        sidon.watch_by(CAPTURE, 3, lambda start, part: items.append((sensor, start, part)), seed=SEED, memory="2MiB")
    rows = tables.write(items, tmp_path / "new", top=50)
    assert rows["images"] == len(items) >= 4 and rows["hosts"] == 50 * len(items)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        f"{name}.parquet" for name in ["flows", "hosts", "images", "incidents", "ports"]
    ]
    found = list(tables.read_images(tmp_path / "new/images.parquet", SEED))
    assert found == items
    images = pq.read_table(tmp_path / "new/images.parquet")
    assert images.schema.equals(tables.IMAGES) and images["packets"].to_pylist() == [part.packets for *_, part in items]
    assert json.loads(images["shape"][0].as_py()) == {"memory": 2 << 20, "expression": ""}
    assert not any(SEED.to_bytes(16, "little")[:8] in image for image in images["image"].to_pylist())
    hosts = pq.read_table(tmp_path / "new/hosts.parquet")
    one = hosts.filter(pc.equal(hosts["sensor"], "tap-2")).to_pylist()[0]
    entry = items[len(items) // 2][2].report()["top_hosts"][0]
    assert (one["key"], one["bytes"]) == (entry["key"], entry["bytes"])
    with pytest.raises(sidon.Malformed):
        list(tables.read_images(tmp_path / "new/images.parquet"))


def test_a_failed_write_leaves_no_file_and_keeps_old_ones(tmp_path):
    (tmp_path / "hosts.parquet").write_text("old")

    def items():
        yield "tap", None, sidon.watch(sidon.generate(100, seed=1), seed=1)
        raise LookupError

    with pytest.raises(LookupError):
        tables.write(items(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["hosts.parquet"]
    assert (tmp_path / "hosts.parquet").read_text() == "old"


def test_sketches_are_rows():
    some = sidon.Set.from_keys(sidon.plan.set(100, 0.01).shape, 1, range(50))
    heavy = sidon.Top(sidon.plan.top(4096, 17, amounts=2), 1, key="ip", amounts=2)
    address = ipaddress.ip_address("2001:db8::1")
    heavy.add(address, 100, 1)
    both = pa.concat_tables([tables.sketch(one, sensor="tap", period=10**9) for one in (some, heavy)])
    assert both["kind"].to_pylist() == ["Set", "Top"]
    assert sidon.Set.from_bytes(both["image"][0].as_py(), 1) == some
    assert both["certainty"].to_pylist() == [some.certainty.error, 0.0]
    assert tables.top(heavy).to_pylist() == [
        {"key": "2001:db8::1", "lower_1": 100, "upper_1": 100, "lower_2": 1, "upper_2": 1}
    ]
    with pytest.raises(ValueError, match="no list"):
        tables.listed(sidon.watch(sidon.generate(10, seed=1), seed=1), "peers", sensor="tap")
