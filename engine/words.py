"""The special word numbers of text data sets."""

from __future__ import annotations

PADDING = 0  # pads a row after the last word
UNKNOWN = 1  # a word that is not in the vocabulary
FIRST_WORD = 2  # the most frequent word
