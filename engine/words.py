"""The special word numbers of text data sets."""

from __future__ import annotations

ENDED = 0  # pads a row after the last word
UNKNOWN = 1  # a word that is not in the vocabulary
FIRST = 2  # the most frequent word
