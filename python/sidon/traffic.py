"""Captures: from packets to snapshots, reports and merges.

A snapshot is the file of ``sidon watch --save``. Programs that use the same seed, memory and filter on different
captures can merge their snapshots.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._errors import Malformed, Refused
from ._sidon import Seed, Snapshot, run_capture, run_generator

Capture = str | os.PathLike[str] | bytes | bytearray | memoryview
"""A file, or the bytes of one: pcap or pcapng, plain or in gzip, zstd or lz4."""

__all__ = ["Capture", "generate", "merge", "read", "report", "seed_of_file", "watch", "watch_by"]

_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def _bytes(amount: int | str) -> int:
    if isinstance(amount, int):
        return amount
    found = re.fullmatch(r"(\d+)([KMG]iB|B|)", amount)
    if found is None:
        raise ValueError(f"{amount!r} is no amount of memory; write a number of bytes, or 16MiB")
    return int(found[1]) * _UNITS[found[2]]


def _source(source: Capture) -> str | bytes | bytearray | memoryview:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return source
    path = os.fspath(source)
    if path == "-":
        raise ValueError("standard input is no capture file; pass its bytes")
    return path


def watch(
    source: Capture,
    *,
    seed: Seed | int,
    memory: int | str = "16MiB",
    filter: str = "",
    top: int = 10,
    subnets: Iterable[str] = (),
    threads: int = 1,
    inner: bool = False,
    partial: bool = False,
) -> Snapshot:
    """The snapshot of a capture: what ``sidon watch -r FILE --save`` writes, byte for byte.

    A capture that breaks off raises ``Malformed``. With ``partial``, the snapshot covers the packets before the break
    and is marked.

    >>> import sidon
    >>> sidon.watch("missing.pcap", seed=1)
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory (os error 2): 'missing.pcap'
    """
    options = (_bytes(memory), filter, top, list(subnets), threads, inner, partial)
    return run_capture(_source(source), seed, *options, None, None)[0]


def watch_by(
    source: Capture,
    seconds: int,
    act: Callable[[int, Snapshot], object],
    *,
    seed: Seed | int,
    memory: int | str = "16MiB",
    filter: str = "",
    top: int = 10,
    subnets: Iterable[str] = (),
    threads: int = 1,
    inner: bool = False,
    partial: bool = False,
) -> None:
    """Calls ``act`` with the start and the snapshot of every period of ``seconds`` that has packets.

    Starts are nanoseconds since 1970, and multiples of the period. Memory holds one snapshot at a time.
    """
    if seconds <= 0:
        raise ValueError("a period has at least one second")
    options = (_bytes(memory), filter, top, list(subnets), threads, inner, partial)
    last, start = run_capture(_source(source), seed, *options, seconds * 10**9, act)
    if start is not None:
        act(start, last)


def read(path: str | os.PathLike[str], seed: Seed | int | None = None) -> Snapshot:
    """The snapshot in a file. ``seed`` is needed if the file leaves it out."""
    image = Path(path).read_bytes()
    with _named(path):
        return Snapshot.from_bytes(image, seed)


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors inside name this file."""
    try:
        yield
    except (Malformed, Refused) as why:
        fields = {**why._fields, "path": os.fspath(path)}
        raise type(why)(f"{os.fspath(path)}: {why}", **fields) from None


def report(
    source: Snapshot | str | os.PathLike[str], *, seed: Seed | int | None = None, top: int | None = None
) -> dict[str, Any]:
    """The report of a snapshot or of its file, as ``sidon show --json`` prints it."""
    snapshot = source if isinstance(source, Snapshot) else read(source, seed)
    return snapshot.report(top)


def merge(
    sources: Iterable[Snapshot | str | os.PathLike[str]],
    *,
    seed: Seed | int | None = None,
    by_flow: bool = False,
) -> Snapshot:
    """One snapshot of several, merged in this order. Two of them are in memory at a time, if they are files.

    With ``by_flow``, all packets of a flow are in one of them. ``Refused`` names the setting that differs.
    """
    whole: Snapshot | None = None
    for source in sources:
        if whole is None:
            whole = source.copy() if isinstance(source, Snapshot) else read(source, seed)
        elif isinstance(source, Snapshot):
            whole.merge(source, by_flow=by_flow)
        else:
            image = Path(source).read_bytes()
            with _named(source):
                whole.merge_bytes(image, seed, by_flow=by_flow)
    if whole is None:
        raise ValueError("there is no snapshot to merge")
    return whole


def seed_of_file(path: str | os.PathLike[str]) -> Seed:
    """The seed in a file: a number below 2**128, decimal or hexadecimal, as for ``--seed-file``."""
    text = Path(path).read_text(encoding="ascii").strip()
    if re.fullmatch(r"\d{1,39}|0x[0-9a-fA-F]{1,32}", text) is None or int(text, 0 if "x" in text else 10) >= 1 << 128:
        # The text may be a seed with a typing error, so the message does not show it.
        raise ValueError(f"{os.fspath(path)}: expected a number below 2**128, decimal or after 0x in hexadecimal")
    return Seed(int(text, 16 if "x" in text else 10))


def generate(
    packets: int,
    *,
    seed: int,
    rate: int = 100_000,
    clients: int = 1_000,
    start_ns: int = 1_700_000_000_000_000_000,
) -> bytes:
    """A generated capture of an office: the bytes of a pcap file, for tests and examples.

    >>> import sidon
    >>> capture = sidon.generate(1000, seed=7)
    >>> sidon.watch(capture, seed=1).packets
    1000
    """
    return run_generator(packets, seed, rate, clients, start_ns)
