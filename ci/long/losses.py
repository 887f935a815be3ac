#!/usr/bin/env python3
"""Prints the rows of ours that are worse than a peer's in the same group, by paired blocks.

usage: losses.py RECORDS…       files of records, folded (.jsonl.gz) or not

A line for each row of ours: the scenario, what it was asked for, and each peer that it is worse
than, worst first, with the ratio of its rate or time to the peer's, the 95% interval, and the number
of pairs.
"""
import collections
import gzip
import json
import sys

LOAD = ("payload_bytes", "carry", "rate_per_s", "arrivals", "burst", "gap_ns", "depth", "senders",
        "receivers", "lose", "important")


def records(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as lines:
        return [json.loads(line) for line in lines if '"threadtoll.record/' in line]


def worse(path):
    """By row of ours, the peers that it is worse than."""
    found = collections.defaultdict(list)
    for record in records(path):
        cell = record["cell"]
        if "queue" not in cell or cell.get("origin") != "ours":
            continue
        asked = " ".join(f"{key}={cell[key]}" for key in LOAD if cell.get(key) is not None)
        row = (record["experiment"], asked, cell["queue"], cell["wait"], cell.get("batch"))
        for against in record["against"]:
            peer = against["cell"]
            ours = peer.get("origin") in (None, "ours", "raw")
            if ours or "queue" not in peer or against["verdict"] != "worse":
                continue
            ratio = against["ratio"]
            low, high = against["interval95"]
            of_rate = against["of"] == "rate_per_s"
            text = (f"{peer['queue']} ({peer['wait']}): {ratio:.2f} ({low:.2f} to {high:.2f}) "
                    f"of its {'rate' if of_rate else 'time'}, {against['blocks']} pairs")
            found[row].append((ratio if of_rate else -ratio, text))
    return found


for path in sys.argv[1:] or sys.exit(__doc__):
    for row, peers in sorted(worse(path).items(), key=str):
        experiment, asked, queue, wait, batch = row
        names = "; ".join(text for _, text in sorted(peers))
        print(f"{experiment} {asked}, batch {batch}: {queue} ({wait}) is worse than {names}")
