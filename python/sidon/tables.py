"""Tables that other programs can join: snapshots and sketches as Parquet.

``images.parquet`` has one row per snapshot, with its bytes. ``flows.parquet``, ``hosts.parquet`` and ``ports.parquet``
have one row per listed key. For each amount a row has the value, the kind of the figure (``exact``, ``at_most``,
``at_least``, ``estimate`` or ``unknown``), and a lower and an upper bound. No upper bound is null.
``incidents.parquet`` has one row per incident.

This module needs pyarrow: ``pip install 'sidon[tables]'``.
"""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ._sidon import Map, Min, Seed, Set, Snapshot, Top

Item = tuple[str, int | None, Snapshot]
"""A sensor, the start of a period in nanoseconds since 1970, and the snapshot."""

__all__ = [
    "IMAGES",
    "INCIDENTS",
    "Item",
    "LISTED",
    "images",
    "incidents",
    "listed",
    "read_images",
    "sketch",
    "top",
    "write",
]

_TIME = pa.timestamp("ns", tz="UTC")
_ORIGIN = [("sensor", pa.string()), ("period", _TIME)]

IMAGES = pa.schema(
    [
        *_ORIGIN,
        ("kind", pa.string()),
        ("shape", pa.string()),
        ("certainty", pa.float64()),
        ("first", _TIME),
        ("last", _TIME),
        ("packets", pa.uint64()),
        ("engines", pa.uint64()),
        ("partial", pa.bool_()),
        ("image", pa.large_binary()),
    ]
)
"""The columns of a table of images. ``certainty`` is the probability of a wrong answer; null for a snapshot, whose
report has a figure for every number. ``shape`` is JSON."""

LISTED = pa.schema(
    [
        *_ORIGIN,
        ("key", pa.string()),
        ("community_id", pa.string()),
        *(
            column
            for amount in ("bytes", "packets")
            for column in [
                (amount, pa.uint64()),
                (f"{amount}_kind", pa.string()),
                (f"{amount}_lower", pa.uint64()),
                (f"{amount}_upper", pa.uint64()),
            ]
        ),
    ]
)
"""The columns of a table of flows, hosts or ports."""

INCIDENTS = pa.schema(
    [
        *_ORIGIN,
        ("id", pa.string()),
        ("kind", pa.string()),
        ("subject", pa.string()),
        ("network", pa.string()),
        ("severity", pa.string()),
        ("text", pa.string()),
        ("opened", _TIME),
        ("updated", _TIME),
        ("closed", _TIME),
        ("filter", pa.string()),
        ("size", pa.list_(pa.struct([("time", _TIME), ("size", pa.uint64())]))),
        ("evidence", pa.list_(pa.string())),
    ]
)
"""The columns of a table of incidents. ``closed`` is null for one that went on at the end; ``network`` for a subject
outside the networks with names. ``evidence`` are the figures as texts with their certainty."""


def images(items: Iterable[Item], *, seed: bool = False) -> pa.Table:
    """One row per snapshot. Images leave the seed out, unless ``seed`` is true."""
    rows = [_image_row(sensor, period, snapshot, seed) for sensor, period, snapshot in items]
    return pa.Table.from_pylist(rows, IMAGES)


def _image_row(sensor: str, period: int | None, snapshot: Snapshot, seed: bool) -> dict[str, Any]:
    first, last = snapshot.times or (None, None)
    shape = {"memory": snapshot.memory, "expression": snapshot.expression}
    return {
        "sensor": sensor,
        "period": period,
        "kind": "snapshot",
        "shape": json.dumps(shape),
        "certainty": None,
        "first": first,
        "last": last,
        "packets": snapshot.packets,
        "engines": snapshot.engines,
        "partial": snapshot.partial,
        "image": snapshot.to_bytes(seed=seed),
    }


def sketch(structure: Set | Min | Top | Map, *, sensor: str, period: int | None = None) -> pa.Table:
    """One row for a structure of the library, in the columns of ``images``.

    >>> import sidon
    >>> from sidon import tables
    >>> ports = sidon.Set.from_keys(sidon.plan.set(100, 0.01).shape, 1, [22, 80, 443])
    >>> table = tables.sketch(ports, sensor="tap-1")
    >>> table["kind"][0].as_py(), 0 < table["certainty"][0].as_py() < 0.01
    ('Set', True)
    """
    row = {
        "sensor": sensor,
        "period": period,
        "kind": type(structure).__name__,
        "shape": json.dumps(structure.shape),
        "certainty": 0.0 if isinstance(structure, Top) else structure.certainty.error,
        "image": structure.to_bytes(),
    }
    return pa.Table.from_pylist([row], IMAGES)


def listed(snapshot: Snapshot, what: str, *, sensor: str, period: int | None = None, top: int = 1000) -> pa.Table:
    """One row per listed flow, host or port: ``what`` is ``"flows"``, ``"hosts"`` or ``"ports"``.

    >>> import sidon
    >>> from sidon import tables
    >>> table = tables.listed(sidon.watch(sidon.generate(5000, seed=7), seed=1), "hosts", sensor="tap-1", top=3)
    >>> table.num_rows, set(table["bytes_kind"].to_pylist())
    (3, {'exact'})
    """
    return _listed(snapshot.report(top), what, sensor, period)


def _listed(report: dict[str, Any], what: str, sensor: str, period: int | None) -> pa.Table:
    if what not in ("flows", "hosts", "ports"):
        raise ValueError(f"{what!r} is no list; write flows, hosts or ports")
    rows = []
    for entry in report[f"top_{what}"]:
        row = {
            "sensor": sensor,
            "period": period,
            "key": str(entry["key"]),
            "community_id": entry.get("community_id"),
        }
        for amount in ("bytes", "packets"):
            figure = entry[f"{amount}_figure"]
            row[amount] = entry[amount]
            row[f"{amount}_kind"] = figure["kind"]
            row[f"{amount}_lower"], row[f"{amount}_upper"] = figure["interval"]
        rows.append(row)
    return pa.Table.from_pylist(rows, LISTED)


def incidents(snapshot: Snapshot, *, sensor: str, period: int | None = None) -> pa.Table:
    """One row per incident, the most severe first.

    >>> import sidon
    >>> from sidon import tables
    >>> tables.incidents(sidon.watch(sidon.generate(5000, seed=7), seed=1), sensor="tap-1").num_rows
    0
    """
    return _incidents(snapshot.report(0), sensor, period)


def _incidents(report: dict[str, Any], sensor: str, period: int | None) -> pa.Table:
    rows = []
    for incident in report["incidents"]:
        row = {name: incident.get(name) for name in INCIDENTS.names}
        row.update(sensor=sensor, period=period, evidence=incident["evidence_text"])
        row.update({name: _nanoseconds(incident[name]) for name in ("opened", "updated", "closed")})
        row["size"] = [{"time": _nanoseconds(time), "size": size} for time, size in incident["size"]]
        rows.append(row)
    return pa.Table.from_pylist(rows, INCIDENTS)


def _nanoseconds(text: str | None) -> int | None:
    """A time of a report, as nanoseconds since 1970."""
    if text is None:
        return None
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    return int(datetime.fromisoformat(f"{seconds}+00:00").timestamp()) * 10**9 + int(fraction)


def top(table: Top, *, count: int = 1000) -> pa.Table:
    """One row per listed key of a ``Top``: the key, and the bounds of each amount.

    >>> import sidon
    >>> from sidon import tables
    >>> heavy = sidon.Top(sidon.plan.top(1 << 16, 8), 1, key="int")
    >>> heavy.add_batch([80, 443, 80], [10, 20, 30])
    >>> tables.top(heavy).to_pylist()
    [{'key': 80, 'lower_1': 40, 'upper_1': 40}, {'key': 443, 'lower_1': 20, 'upper_1': 20}]
    """
    entries = table.heaviest(count).entries
    kinds = {"int": pa.uint64(), "str": pa.string(), "ipv4": pa.string(), "ipv6": pa.string(), "ip": pa.string()}
    kind = kinds.get(table.key, pa.binary()) if isinstance(table.key, str) else pa.binary()

    def plain(key: Any) -> Any:
        return str(key) if isinstance(key, (ipaddress.IPv4Address, ipaddress.IPv6Address)) else key

    columns = {"key": pa.array([plain(key) for key, _ in entries], kind)}
    for amount in range(len(table.total)):
        lower = [bounds[amount].lower for _, bounds in entries]
        upper = [bounds[amount].upper for _, bounds in entries]
        columns[f"lower_{amount + 1}"] = pa.array(lower, pa.uint64())
        columns[f"upper_{amount + 1}"] = pa.array(upper, pa.uint64())
    return pa.table(columns)


def write(
    items: Iterable[Item],
    directory: str | os.PathLike[str],
    *,
    top: int = 1000,
    seed: bool = False,
) -> dict[str, int]:
    """Writes the five tables of all snapshots, one row group per snapshot. Returns the rows of each table.

    One snapshot is in memory at a time. Files appear as a whole, at the end; files of these names are replaced.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    names = ["images", "incidents", "flows", "hosts", "ports"]
    rows = dict.fromkeys(names, 0)
    paths = {name: directory / f".{name}.parquet.new-{os.getpid()}" for name in names}
    try:
        schemas = {"images": IMAGES, "incidents": INCIDENTS} | dict.fromkeys(names[2:], LISTED)
        writers = {name: pq.ParquetWriter(paths[name], schemas[name], compression="zstd") for name in names}
        try:
            for sensor, period, snapshot in items:
                report = snapshot.report(top)
                found = {"images": images([(sensor, period, snapshot)], seed=seed)}
                found["incidents"] = _incidents(report, sensor, period)
                found |= {name: _listed(report, name, sensor, period) for name in names[2:]}
                for name, table in found.items():
                    writers[name].write_table(table)
                    rows[name] += table.num_rows
        finally:
            for writer in writers.values():
                writer.close()
        for name in names:
            paths[name].replace(directory / f"{name}.parquet")
    finally:
        for path in paths.values():
            path.unlink(missing_ok=True)
    return rows


def read_images(path: str | os.PathLike[str], seed: Seed | int | None = None) -> Iterator[Item]:
    """The snapshots of a table of images, one row group in memory at a time."""
    with pq.ParquetFile(path) as table:
        for group in range(table.num_row_groups):
            for row in table.read_row_group(group, ["sensor", "period", "kind", "image"]).to_batches():
                for at in range(row.num_rows):
                    sensor, period, kind, image = (row.column(column)[at] for column in range(4))
                    if kind.as_py() == "snapshot":
                        start = period.value if period.is_valid else None
                        yield sensor.as_py(), start, Snapshot.from_bytes(image.as_py(), seed)
