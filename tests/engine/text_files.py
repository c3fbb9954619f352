"""Tiny sets of sentences in the formats of the public ones, written for a test."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path

TWEETS = "training.1600000.processed.noemoticon.csv"


def write_lines(file: Path, pairs: Sequence[tuple[int, str]]) -> Path:
    """A label, a tab and a sentence on every line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress("".join(f"{label}\t{text}\n" for label, text in pairs).encode("utf-8")))
    return file


def write_tweets(folder: Path, pairs: Sequence[tuple[int, str]]) -> Path:
    """Sentiment140's training file: six quoted columns in Latin-1 and no head."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / TWEETS).open("w", encoding="latin-1", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        for number, (polarity, text) in enumerate(pairs):
            writer.writerow([polarity, number, "Mon Apr 06 22:19:45 PDT 2009", "NO_QUERY", f"user{number}", text])
    return folder / TWEETS
