"""State machines over a stream of Structured Streaming: one map per shard, saved by Spark after every batch.

    rows --hash of the key--> shards --apply_batch--> totals by event and state
                                 | ^
                                 v |  image of the map and totals, in Spark's state store

A key always goes to the same shard, and the state of a shard changes together with the offsets of the stream. So a
killed executor or driver neither loses a row nor counts one twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ._sidon import Machine, Map, Seed

__all__ = ["latest", "save_batches", "states"]

_STATE = "image binary, totals string, last long, rows long, late long, closed long, refused long"
_TOTALS = (
    "shard int, rows long, late long, closed long, refused long, window long, event string, before string, times long"
)


def states(
    stream: DataFrame,
    machine: Machine,
    *,
    shape: dict[str, Any],
    seed: Seed | int,
    key: str,
    event: str,
    order: str,
    shards: int = 64,
    window: int | None = None,
    windows: int = 24,
) -> DataFrame:
    """Totals of a machine over a stream: how often each event met each state, per shard, since the start.

    With ``window``, totals are those of windows of that many units of ``order``, which is then the time of an event.
    The column ``window`` is the start of one, a multiple of its length. A shard keeps the totals of its ``windows``
    latest ones. A row of an earlier window still changes the state of its key; it is in no total and counts as
    ``closed``. Without ``window``, the one window is 0.

    ``shape`` is that of the map of one shard. ``event`` is a column with the names of events. Rows of a batch are
    applied in the order of the integer column ``order``. A row below the largest ``order`` of an earlier batch is
    applied when it comes, and counts as ``late``. ``refused`` counts events that a full map refused. ``before`` is the
    name of a state, ``absent``, or ``unknown`` if the cells did not determine it. After a batch, a shard returns the
    totals of windows that changed. ``rows``, ``late``, ``closed`` and ``refused`` are those of the shard so far.

    The query needs RocksDB as its state store, and the package protobuf.
    """
    if shards < 1:
        raise ValueError("there is at least one shard")
    if window is not None and window < 1 or windows < 1:
        raise ValueError("a window has at least one unit, and there is at least one window")
    stream.sparkSession.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    rows = stream.select(
        F.pmod(F.xxhash64(F.col(key)), F.lit(shards)).cast("int").alias("shard"),
        F.col(key).alias("key"),
        F.col(event).alias("event"),
        F.col(order).cast("long").alias("order"),
    )
    processor = _Shard(machine, shape, Seed(int(seed)), window, windows)
    return rows.groupBy("shard").transformWithStateInPandas(processor, _TOTALS, "Update", "None")


class _Shard(StatefulProcessor):  # type: ignore[misc]
    """Applies the rows of a shard to its map."""

    def __init__(
        self, machine: Machine, shape: dict[str, Any], seed: Seed, window: int | None, windows: int
    ) -> None:
        self.machine, self.shape, self.seed = machine, shape, seed
        self.window, self.windows = window, windows

    def init(self, handle: Any) -> None:
        self.state = handle.getValueState("shard", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        batch = pd.concat(list(rows)).sort_values("order", kind="stable")
        if self.state.exists():
            image, totals, last, seen, late, closed, refused = self.state.get()
            flows, counts = Map.from_bytes(bytes(image), self.seed), json.loads(totals)
        else:
            flows, counts = Map(self.shape, self.seed), {}
            last, seen, late, closed, refused = -(2**63), 0, 0, 0, 0
        before, refusals = flows.apply_batch(self.machine, batch["key"], batch["event"])
        order = batch["order"].to_numpy()
        late += int((order < last).sum())
        seen, refused = seen + len(batch), refused + len(refusals)
        last = max(last, int(order.max()))
        starts = order - order % self.window if self.window else np.zeros_like(order)
        newest = last - last % self.window if self.window else 0
        oldest = newest - (self.window or 0) * (self.windows - 1)
        numbers = {name: number for number, name in enumerate(self.machine.events)}
        events = batch["event"].map(numbers).to_numpy()
        open_ = starts >= oldest
        closed += int((~open_).sum())
        found, times = np.unique(np.stack([starts, events, before])[:, open_], axis=1, return_counts=True)
        for (start, event, state), count in zip(found.T.tolist(), times.tolist()):
            name = f"{start}\t{self.machine.events[event]}\t{self._name(state)}"
            counts[name] = counts.get(name, 0) + count
        counts = {name: count for name, count in counts.items() if int(name.split("\t")[0]) >= oldest}
        self.state.update((flows.to_bytes(), json.dumps(counts), last, seen, late, closed, refused))
        # The newest window is always among them, so the counts of the shard are current.
        changed = {newest, *found[0].tolist()}
        same = {"shard": key[0], "rows": seen, "late": late, "closed": closed, "refused": refused}
        split = [(name.split("\t"), count) for name, count in sorted(counts.items())]
        yield pd.DataFrame(
            [
                {**same, "window": int(start), "event": event, "before": state, "times": count}
                for (start, event, state), count in split
                if int(start) in changed
            ]
        )

    def _name(self, state: int) -> str:
        return {-1: "absent", -2: "unknown"}.get(state) or self.machine.states[state]

    def close(self) -> None:
        pass


def save_batches(directory: str | os.PathLike[str]) -> Callable[[DataFrame, int], None]:
    """A sink for ``foreachBatch``: one Parquet file per batch, named by its number.

    Spark can repeat a batch after a crash. Its file is then replaced by an equal one.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)

    def save(batch: DataFrame, number: int) -> None:
        table = pa.Table.from_pandas(batch.toPandas(), preserve_index=False)
        new = directory / f".batch-{number:09}.new-{os.getpid()}"
        try:
            pq.write_table(table, new)
            new.replace(directory / f"batch-{number:09}.parquet")
        finally:
            new.unlink(missing_ok=True)

    return save


def latest(directory: str | os.PathLike[str]) -> pd.DataFrame:
    """The last totals of every shard and window, from the files of ``save_batches``.

    ``rows``, ``late``, ``closed`` and ``refused`` are the last ones of the shard.
    """
    parts: dict[tuple[int, int], pd.DataFrame] = {}
    shared = ["rows", "late", "closed", "refused"]
    of_shard: dict[int, list[int]] = {}
    for path in sorted(Path(directory).glob("batch-*.parquet")):
        table = pq.read_table(path).to_pandas()
        for (shard, window), rows in table.groupby(["shard", "window"]):
            parts[shard, window] = rows
            of_shard[shard] = rows[shared].iloc[0].tolist()
    for (shard, window), rows in parts.items():
        parts[shard, window] = rows.assign(**dict(zip(shared, of_shard[shard])))
    return pd.concat(parts.values(), ignore_index=True) if parts else pd.DataFrame()
