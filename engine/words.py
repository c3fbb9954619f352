"""The numbers that stand for words in a sentence of a text data set."""

from __future__ import annotations

ENDED = 0  # fills a row after the last word
UNKNOWN = 1  # a word that training never saw
FIRST = 2  # the most frequent word
