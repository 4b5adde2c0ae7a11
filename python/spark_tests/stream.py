"""Runs a machine over a folder of Parquet files, one file per batch: ``stream.py FILES OUT CHECKPOINT``."""

import sys

from pyspark.sql import SparkSession

import sidon
from sidon import spark as on_spark

MACHINE = sidon.Machine(
    ["opening", "open", "closing", "closed"],
    {
        "syn": [("open", "opening")],
        "ack": [("if", "opening", "open")],
        "fin": [("if", "open", "closing")],
        "rst": [("go", "closed")],
    },
    terminal=["closed"],
)


def main(files, out, checkpoint):
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("sidon stream")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    rows = session.readStream.schema("key string, event string, at long").option("maxFilesPerTrigger", 1).parquet(files)
    shape = sidon.plan.states(flows=20_000, states=4, error=1e-7)
    totals = on_spark.states(rows, MACHINE, shape=shape, seed=1, key="key", event="event", order="at", shards=4)
    writer = totals.writeStream.outputMode("update").option("checkpointLocation", checkpoint)
    writer.foreachBatch(on_spark.save_batches(out)).trigger(availableNow=True).start().awaitTermination()
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
