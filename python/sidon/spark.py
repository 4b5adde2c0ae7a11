"""Sidon inside Apache Spark: snapshots of many captures, merges with bounded fan-in, and sketches of columns.

Spark distributes the work and repeats what fails; the images do not depend on it. Every merge takes its inputs in the
order of their names, so an image has the same bytes whatever the executors did.

    python -m sidon.spark hours 'captures/**/*.pcap.zst' -o hours --seed-file seed

This module needs pyspark, pandas below 3 and pyarrow: ``pip install 'sidon[spark]'``.
"""

from __future__ import annotations

import argparse
import base64
import glob
import os
import pickle
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from . import traffic
from ._errors import BadKey, Malformed, Refused, _Error
from ._sidon import Seed, Snapshot, Top
from .spark_states import latest, save_batches, states

__all__ = [
    "FAN_IN",
    "hours",
    "latest",
    "merge_by",
    "merge_tree",
    "named_errors",
    "save_batches",
    "saved",
    "sketch",
    "snapshots",
    "states",
]

FAN_IN = 8
"""Images that one task merges. Two of them are tables in memory at a time, and the others are bytes."""

_MARK = "sidon-error:"
_ERRORS = (_Error, OSError, ValueError)


def _raising(work: Callable[..., Any], *given: Any) -> Any:
    """Runs ``work`` in a Python worker. Its error reaches the driver inside the text of Spark's exception."""
    try:
        yield from work(*given)
    except _ERRORS as why:
        packed = base64.b64encode(pickle.dumps(why)).decode()
        raise RuntimeError(f"{type(why).__name__}: {why} {_MARK}{packed}:") from why


@contextmanager
def named_errors() -> Iterator[None]:
    """Raises the exception of a Python worker by its own class, with its fields.

    Spark wraps it in an exception whose text has a traceback of the worker.
    """
    try:
        yield
    except PySparkException as why:
        found = re.search(re.escape(_MARK) + r"([A-Za-z0-9+/=\s]+):", str(why))
        if found is None:
            raise
        # The text is from a worker of this application, which runs the same program.
        raise pickle.loads(base64.b64decode(found[1])) from None


_SNAPSHOTS = "path string, sensor string, period long, packets long, image binary"


def snapshots(
    spark: SparkSession,
    paths: Iterable[str],
    *,
    seed: Seed | int,
    seconds: int = 3600,
    sensor: Callable[[str], str] | None = None,
    **options: Any,
) -> DataFrame:
    """One task per capture: a row for each period that has packets, with the image of its snapshot.

    ``sensor`` makes the name of a sensor of a path; by default it is the name of its folder. ``options`` are those of
    ``sidon.watch``. Images leave the seed out. Workers open the paths, so every executor must see the files.
    """
    paths = sorted(set(paths))
    if not paths:
        raise ValueError("there is no capture")
    name = sensor or _folder
    rows = [(path, name(path)) for path in paths]
    sources = spark.sparkContext.parallelize(rows, len(rows)).toDF("path string, sensor string")
    work = partial(_watch, seed=Seed(int(seed)), seconds=seconds, options=options)
    return sources.mapInArrow(partial(_raising, work), _SNAPSHOTS)


def saved(spark: SparkSession, directory: str, *, seconds: int = 3600) -> DataFrame:
    """One row per file of ``sidon watch --save-dir`` below a directory, with the columns that ``merge_by`` needs.

    The name of a file has the start of its period. ``period`` is that time, rounded down to ``seconds``. ``sensor`` is
    the folder of the file. Spark reads local directories, and object stores such as ``s3a://flows``.
    """
    if seconds <= 0:
        raise ValueError("a period has at least one second")
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    files = reader.option("pathGlobFilter", "sidon-*.sidon").load(directory)
    name = F.regexp_extract("path", r"sidon-(\d{8}T\d{6}Z)(-\d+)?\.sidon$", 1)
    start = F.to_timestamp(name, "yyyyMMdd'T'HHmmssX").cast("long")
    return files.select(
        "path",
        F.regexp_extract("path", r"([^/]+)/[^/]+$", 1).alias("sensor"),
        ((start - F.pmod(start, F.lit(seconds))) * 10**9).alias("period"),
        F.col("content").alias("image"),
    )


def _folder(path: str) -> str:
    return os.path.basename(os.path.dirname(path))


def _watch(
    batches: Iterator[pa.RecordBatch], *, seed: Seed, seconds: int, options: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for path, sensor in zip(batch["path"].to_pylist(), batch["sensor"].to_pylist()):
            found: list[tuple[int, int, bytes]] = []

            def keep(start: int, part: Snapshot) -> None:
                found.append((start, part.packets, part.to_bytes(seed=False)))

            traffic.watch_by(path, seconds, keep, seed=seed, **options)
            for start, packets, image in found:
                yield pa.RecordBatch.from_pydict(
                    {"path": [path], "sensor": [sensor], "period": [start], "packets": [packets], "image": [image]},
                    _schema(_SNAPSHOTS),
                )


def _schema(columns: str) -> pa.Schema:
    kinds = {"string": pa.string(), "long": pa.int64(), "int": pa.int32(), "binary": pa.binary()}
    return pa.schema([(name, kinds[kind]) for name, kind in (column.split() for column in columns.split(", "))])


def merge_tree(images: list[bytes], join: Callable[[list[bytes]], bytes], fan_in: int = FAN_IN) -> bytes:
    """One image of several, merged as ``merge_by`` merges them: groups of ``fan_in`` neighbours, and their results."""
    while len(images) > 1:
        images = [join(images[at : at + fan_in]) for at in range(0, len(images), fan_in)]
    return images[0]


def join_snapshots(images: Iterable[bytes], seed: Seed, by_flow: bool = False) -> bytes:
    """One snapshot of several, without the seed."""
    whole: Snapshot | None = None
    for image in images:
        if whole is None:
            whole = Snapshot.from_bytes(image, seed)
        else:
            whole.merge_bytes(image, seed, by_flow=by_flow)
    if whole is None:
        raise ValueError("there is no image to merge")
    return whole.to_bytes(seed=False)


def join_tops(images: Iterable[bytes], seed: Seed, key: Any) -> bytes:
    """One table of the heaviest keys of several."""
    whole: Top | None = None
    for image in images:
        one = Top.from_bytes(image, seed, key=key)
        if whole is None:
            whole = one
        else:
            whole.merge(one)
    if whole is None:
        raise ValueError("there is no image to merge")
    return whole.to_bytes()


_ORDERED = "at long, group string, name string, image binary"


def merge_by(
    images: DataFrame,
    by: str,
    *,
    seed: Seed | int | None = None,
    name: str = "path",
    image: str = "image",
    fan_in: int = FAN_IN,
    by_flow: bool = False,
    join: Callable[[Iterable[bytes]], bytes] | None = None,
) -> DataFrame:
    """One image for each value of the column ``by``, in the order of the column ``name``.

    Images are merged in rounds of at most ``fan_in``, so that no task holds more. The names and groups go to the
    driver, and the images do not. ``join`` merges some images; without it, they are snapshots of this seed.
    ``Refused`` and ``Malformed`` name the image.
    """
    if fan_in < 2:
        raise ValueError("fan_in is at least 2")
    if join is None:
        if seed is None:
            raise ValueError("snapshots need their seed")
        join = partial(join_snapshots, seed=Seed(int(seed)), by_flow=by_flow)
    parts = images.select(
        F.col(by).cast("string").alias("group"), F.col(name).cast("string").alias("name"), F.col(image).alias("image")
    )
    with named_errors():
        parts = parts.persist()
        keys = sorted((row["group"], row["name"]) for row in parts.select("group", "name").collect())
    if len(set(keys)) < len(keys):
        twice = next(key for key, after in zip(keys, keys[1:]) if key == after)
        raise ValueError(f"two images of {by} {twice[0]} have the name {twice[1]}")
    places: dict[str, int] = {}
    order = []
    for group, one in keys:
        order.append((group, one, places.setdefault(group, 0)))
        places[group] += 1
    spark = images.sparkSession
    numbers = spark.createDataFrame(order or [("", "", 0)], "group string, name string, at long")
    parts = parts.join(F.broadcast(numbers), ["group", "name"]).select("at", "group", "name", "image")
    left = max(places.values(), default=0)
    work = partial(_join, join=join, fan_in=fan_in)

    def merged(table: pa.Table) -> pa.Table:
        return next(_raising(lambda one: iter([work(one)]), table))

    while True:
        block = (F.col("at") / fan_in).cast("long")
        parts = parts.groupBy("group", block).applyInArrow(merged, _ORDERED)
        if left <= fan_in:
            break
        left = -(-left // fan_in)
    return parts.select(F.col("group").alias(by), F.col("image").alias(image))


def _join(table: pa.Table, *, join: Callable[[Iterable[bytes]], bytes], fan_in: int) -> pa.Table:
    table = table.sort_by("at")
    names = table["name"].to_pylist()
    at = 0

    def parts() -> Iterator[bytes]:
        nonlocal at
        for at in range(table.num_rows):
            yield table["image"][at].as_py()

    try:
        merged = join(parts())
    except (Refused, Malformed) as why:
        raise type(why)(f"{names[at]}: {why}", **{**why._fields, "path": names[at]}) from None
    row = {"at": [table["at"][0].as_py() // fan_in], "group": [table["group"][0].as_py()], "name": [names[0]]}
    return pa.Table.from_pydict({**row, "image": [merged]}, _schema(_ORDERED))


_SKETCHES = "group string, part string, image binary"


def sketch(
    rows: DataFrame,
    shape: dict[str, Any],
    *,
    seed: Seed | int,
    key: str,
    kind: Any,
    amounts: tuple[str, ...] = (),
    by: str | None = None,
    fan_in: int = FAN_IN,
) -> DataFrame:
    """The heaviest values of the column ``key``, as a ``Top`` for each value of the column ``by``.

    ``kind`` is the type of keys of ``Top``, and ``amounts`` names one or two columns. A task adds its rows to one table
    per value of ``by``, and ``merge_by`` merges these tables. Bounds hold for all rows together. A null key or amount
    is an error that names its row.
    """
    group = F.lit("all") if by is None else F.col(by).cast("string")
    columns = [group.alias("group"), F.col(key).alias("key")]
    columns += [F.col(amount).alias(f"amount_{at}") for at, amount in enumerate(amounts)]
    secret = Seed(int(seed))
    work = partial(_sketch, shape=shape, seed=secret, kind=kind, amounts=len(amounts))
    parts = rows.select(*columns).mapInArrow(partial(_raising, work), _SKETCHES)
    join = partial(join_tops, seed=secret, key=kind)
    merged = merge_by(parts, "group", name="part", fan_in=fan_in, join=join)
    return merged if by is None else merged.withColumnRenamed("group", by)


def _sketch(
    batches: Iterator[pa.RecordBatch], *, shape: dict[str, Any], seed: Seed, kind: Any, amounts: int
) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    tables: dict[str, Top] = {}
    row = 0
    for batch in batches:
        groups = batch["group"].to_pylist()
        for group in dict.fromkeys(groups):
            whole = len(set(groups)) == 1
            part = batch if whole else batch.filter(pa.array([one == group for one in groups]))
            if group not in tables:
                tables[group] = Top(shape, seed, key=kind, amounts=max(1, amounts))
            try:
                tables[group].add_batch(part["key"], tuple(part[f"amount_{at}"] for at in range(amounts)) or None)
            except BadKey as why:
                first = f"rows from {row} of a partition: "
                raise BadKey(first + str(why), row=None if why.row is None else row + why.row) from None
        row += batch.num_rows
    context = TaskContext.get()
    part = f"{context.partitionId() if context else 0:08}"
    for group, table in tables.items():
        rows = {"group": [group], "part": [part], "image": [table.to_bytes()]}
        yield pa.RecordBatch.from_pydict(rows, _schema(_SKETCHES))


def hours(
    spark: SparkSession,
    paths: Iterable[str],
    directory: str | os.PathLike[str],
    *,
    seed: Seed | int,
    seconds: int = 3600,
    **options: Any,
) -> dict[str, int]:
    """Writes a snapshot of every period of all captures: ``directory/PERIOD.sidon``, without the seed.

    Returns the packets of each file. A file appears as a whole, and a file of its name is replaced.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    found = snapshots(spark, paths, seed=seed, seconds=seconds, **options)
    written = {}
    with named_errors():
        for row in merge_by(found, "period", seed=seed).toLocalIterator(prefetchPartitions=False):
            start = int(row["period"]) // 10**9
            name = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime(start)) + ".sidon"
            snapshot = Snapshot.from_bytes(row["image"], int(seed))
            snapshot.save(directory / name, seed=False)
            written[name] = snapshot.packets
    return dict(sorted(written.items()))


def main(arguments: list[str] | None = None) -> int:
    """The command ``python -m sidon.spark``."""
    parser = argparse.ArgumentParser(prog="python -m sidon.spark", description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("hours", help="a snapshot of every hour of many captures")
    command.add_argument("captures", nargs="+", help="files, or patterns such as 'captures/**/*.pcap.zst'")
    command.add_argument("-o", "--output", required=True, help="folder for the snapshots")
    command.add_argument("--seed-file", required=True, help="file with the seed, as for sidon watch")
    command.add_argument("--seconds", type=int, default=3600, help="length of a period (default: an hour)")
    command.add_argument("--memory", default="16MiB", help="memory of the tables, such as 64MiB (default: 16MiB)")
    command.add_argument("--filter", default="", help="a filter expression, as in tcpdump")
    given = parser.parse_args(arguments)
    paths = [path for pattern in given.captures for path in glob.glob(pattern, recursive=True) or [pattern]]
    paths = sorted({os.path.abspath(path) for path in paths})
    seed = traffic.seed_of_file(given.seed_file)
    spark = SparkSession.builder.appName("sidon hours").getOrCreate()
    print(f"{len(paths)} captures", file=sys.stderr)
    started = time.monotonic()
    options = {"memory": given.memory, "filter": given.filter}
    try:
        written = hours(spark, paths, given.output, seed=seed, seconds=given.seconds, **options)
    except (_Error, OSError, ValueError) as why:
        print(f"error: {why}", file=sys.stderr)
        return 1
    finally:
        spark.stop()
    for name, packets in written.items():
        print(f"{name}  {packets:>15,} packets")
    took = time.monotonic() - started
    print(f"{len(written)} files, {sum(written.values()):,} packets, {took:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
