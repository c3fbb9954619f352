"""Labelled sentences: the files they come in, the words in them, and a sentence as a row of numbers."""

from __future__ import annotations

import csv
import gzip
import html
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.datasets.files import RESTORE, Four, Labels, damaged
from engine.words import ENDED, FIRST, UNKNOWN

APART = 5  # of so many sentences of a class the last one is a test sentence
# an address or a name is one word, so are can't and so-called; what is left are single signs
WORD = re.compile(r"https?://\S+|@\w+|[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]|_")
COLUMNS, POLARITIES = 6, {"0": 0, "4": 1}  # of Sentiment140: polarity, id, date, query, user, text

Labelled = tuple[Sequence[str], NDArray[np.uint8]]  # sentences, and (n,) their labels


@dataclass(frozen=True)
class LabelledLines:
    """One gzipped file in UTF-8: on every line a label, a tab and a sentence."""

    place: Path
    length: int  # of a row

    def found(self) -> bool:
        return self.place.is_file()

    def labels(self) -> Labels:
        return parted(_lines(self.place)[1])

    def read(self) -> Four:
        return numbered(*_lines(self.place), self.length)


@dataclass(frozen=True)
class TweetFile:
    """The training file of Sentiment140: a CSV in Latin-1 without a head."""

    place: Path
    length: int
    one_in: int  # of so many sentences of a class one is taken

    def found(self) -> bool:
        return self.place.is_file()

    def labels(self) -> Labels:
        return parted(self._enough()[1])

    def read(self) -> Four:
        return numbered(*self._enough(), self.length)

    def _enough(self) -> Labelled:
        texts, labels = _tweets(self.place, self.one_in)
        if not apart(labels).any():
            left = f"one in {self.one_in:,} of each class leaves {len(texts)}, and {APART} of one class are needed"
            remedy = "Fetch it again" if self.one_in == 1 else "Lower one-in; or fetch it again, if it should hold more"
            raise damaged(self.place, f"it holds too few messages: {left}", remedy)
        return texts, labels


@lru_cache(maxsize=2)
def _lines(place: Path) -> Labelled:
    try:
        text = gzip.decompress(place.read_bytes()).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise damaged(place, "it cannot be read", RESTORE) from error
    pairs = [line.partition("\t") for line in text.removesuffix("\n").split("\n")]  # not at signs that mean other ends
    if not all(label.isdecimal() and len(label) < 3 and tab for label, tab, _ in pairs):
        raise damaged(place, "every line must be a label, a tab and a sentence", RESTORE)
    return [text for _, _, text in pairs], np.array([int(label) for label, _, _ in pairs], np.uint8)


@lru_cache(maxsize=2)
def _tweets(place: Path, one_in: int) -> Labelled:
    texts, labels = [], []
    try:
        with place.open(encoding="latin-1", newline="") as file:
            for label, text in _thinned(csv.reader(file), one_in, place):
                texts.append(html.unescape(text))
                labels.append(label)
    except (OSError, csv.Error) as error:
        raise damaged(place, "it cannot be read") from error
    return texts, np.array(labels, np.uint8)


def _thinned(rows: Iterable[Sequence[str]], one_in: int, place: Path) -> Iterator[tuple[int, str]]:
    """The first of every `one_in` rows of a class: the file is far too long to be held."""
    seen: Counter[int] = Counter()
    for row in rows:
        if len(row) != COLUMNS or row[0] not in POLARITIES:
            raise damaged(place, f"every line must have {COLUMNS} columns, the first of them 0 or 4")
        label = POLARITIES[row[0]]
        if seen[label] % one_in == 0:
            yield label, row[-1]
        seen[label] += 1


def apart(labels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """(n,) which sentences are test sentences: the same ones on every machine, evenly over each class."""
    held = np.zeros(len(labels), np.bool_)
    for label in np.unique(labels):
        held[np.flatnonzero(labels == label)[APART - 1 :: APART]] = True
    return held


def parted(labels: NDArray[np.uint8]) -> Labels:
    held = apart(labels)
    return labels[~held], labels[held]


def numbered(sentences: Sequence[str], labels: NDArray[np.uint8], length: int) -> Four:
    """Rows (n, length) of training and test sentences with their labels; the words are counted in training alone."""
    held, split = apart(labels), [words(sentence) for sentence in sentences]
    known = vocabulary(own for own, test in zip(split, held, strict=True) if not test)
    rows = np.full((len(split), length), ENDED, np.int64)
    for row, own in zip(rows, split, strict=True):
        places = [known.get(word, UNKNOWN) for word in own[:length]]
        row[: len(places)] = places
    return rows[~held], labels[~held], rows[held], labels[held]


def words(sentence: str) -> list[str]:
    """A sentence in lower case as words and signs."""
    return WORD.findall(sentence.lower())


def vocabulary(sentences: Iterable[Sequence[str]]) -> Mapping[str, int]:
    """The number of every word, the most frequent first: who knows few words knows those with small numbers."""
    counts = Counter(word for sentence in sentences for word in sentence)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: place for place, word in enumerate(ranked, start=FIRST)}
