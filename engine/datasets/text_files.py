"""Readers for files of labelled sentences, and the numbers that stand for words."""

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

from engine.datasets.files import RESTORE, Labels, Splits, damaged
from engine.words import FIRST_WORD, PADDING, UNKNOWN

TEST_EVERY = 5  # every fifth sentence of a class is a test sentence
# An address or a name is one word, and so are can't and so-called. All other signs stand alone.
WORD = re.compile(r"https?://\S+|@\w+|[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]|_")
COLUMNS = 6  # of Sentiment140: polarity, id, date, query, user, text
POLARITIES = {"0": 0, "4": 1}

Labelled = tuple[Sequence[str], NDArray[np.uint8]]  # sentences, and (n,) their labels


@dataclass(frozen=True)
class LabelledLines:
    """One gzipped file in UTF-8. Each line holds a label, a tab and a sentence."""

    path: Path
    length: int  # words in a row

    def exists(self) -> bool:
        return self.path.is_file()

    def labels(self) -> Labels:
        _, labels = _lines(self.path)
        return split_labels(labels)

    def read(self) -> Splits:
        sentences, labels = _lines(self.path)
        return word_rows(sentences, labels, self.length)


@dataclass(frozen=True)
class TweetFile:
    """The training file of Sentiment140: a CSV in Latin-1 without a header."""

    path: Path
    length: int  # words in a row
    one_in: int  # takes one sentence out of this many of each class

    def exists(self) -> bool:
        return self.path.is_file()

    def labels(self) -> Labels:
        _, labels = self._messages()
        return split_labels(labels)

    def read(self) -> Splits:
        sentences, labels = self._messages()
        return word_rows(sentences, labels, self.length)

    def _messages(self) -> Labelled:
        """The messages, at least enough for one test sentence."""
        texts, labels = _tweets(self.path, self.one_in)
        if held_out(labels).any():
            return texts, labels
        taken = f"one in {self.one_in:,} of each class leaves {len(texts)}"
        remedy = "Lower one-in; or download it again, if it should hold more"
        if self.one_in == 1:
            remedy = "Download it again"
        reason = f"it holds too few messages: {taken}, and {TEST_EVERY} of one class are needed"
        raise damaged(self.path, reason, remedy)


@lru_cache(maxsize=2)
def _lines(path: Path) -> Labelled:
    try:
        text = gzip.decompress(path.read_bytes()).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise damaged(path, "it cannot be read", RESTORE) from error
    # Not splitlines: it would also split at other signs, which may be part of a sentence.
    rows = [line.partition("\t") for line in text.removesuffix("\n").split("\n")]
    if not all(label.isdecimal() and len(label) < 3 and tab for label, tab, _ in rows):
        raise damaged(path, "every line must be a label, a tab and a sentence", RESTORE)
    sentences = [sentence for _, _, sentence in rows]
    return sentences, np.array([int(label) for label, _, _ in rows], np.uint8)


@lru_cache(maxsize=2)
def _tweets(path: Path, one_in: int) -> Labelled:
    texts, labels = [], []
    try:
        with path.open(encoding="latin-1", newline="") as file:
            for label, text in _thinned(csv.reader(file), one_in, path):
                texts.append(html.unescape(text))
                labels.append(label)
    except (OSError, csv.Error) as error:
        raise damaged(path, "it cannot be read") from error
    return texts, np.array(labels, np.uint8)


def _thinned(rows: Iterable[Sequence[str]], one_in: int, path: Path) -> Iterator[tuple[int, str]]:
    """Label and text of the first of every `one_in` rows of a class. The whole file is too long for memory."""
    counts: Counter[int] = Counter()
    for row in rows:
        if len(row) != COLUMNS or row[0] not in POLARITIES:
            raise damaged(path, f"every line must have {COLUMNS} columns, the first of them 0 or 4")
        label = POLARITIES[row[0]]
        if counts[label] % one_in == 0:
            yield label, row[-1]
        counts[label] += 1


def held_out(labels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """(n,) which sentences are test sentences: the same ones on every machine, and every fifth of each class."""
    mask = np.zeros(len(labels), np.bool_)
    for label in np.unique(labels):
        mask[np.flatnonzero(labels == label)[TEST_EVERY - 1 :: TEST_EVERY]] = True
    return mask


def split_labels(labels: NDArray[np.uint8]) -> Labels:
    """The labels of the training and of the test sentences."""
    mask = held_out(labels)
    return labels[~mask], labels[mask]


def word_rows(sentences: Sequence[str], labels: NDArray[np.uint8], length: int) -> Splits:
    """Rows (n, length) of training and test sentences with their labels.

    The vocabulary counts training sentences only, so that test sentences do not influence training.
    """
    mask = held_out(labels)
    split = [words(sentence) for sentence in sentences]
    numbers = vocabulary(sentence for sentence, test in zip(split, mask, strict=True) if not test)
    rows = np.full((len(split), length), PADDING, np.int64)
    for row, sentence in zip(rows, split, strict=True):
        known = [numbers.get(word, UNKNOWN) for word in sentence[:length]]
        row[: len(known)] = known
    return rows[~mask], labels[~mask], rows[mask], labels[mask]


def words(sentence: str) -> list[str]:
    """The words and signs of a sentence, in lower case."""
    return WORD.findall(sentence.lower())


def vocabulary(sentences: Iterable[Sequence[str]]) -> Mapping[str, int]:
    """The number of every word, the most frequent word first. A model with n words knows those below n."""
    counts = Counter(word for sentence in sentences for word in sentence)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: number for number, word in enumerate(ranked, start=FIRST_WORD)}
