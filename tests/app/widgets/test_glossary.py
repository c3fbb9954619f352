"""The words of the header."""

from __future__ import annotations

import base64
from xml.etree import ElementTree

from app.texts import glossary


def test_there_are_twelve_words_each_with_one_sentence_and_a_still() -> None:
    assert len({word.word for word in glossary.WORDS}) == 12
    for word in glossary.WORDS:
        assert word.sentence.endswith(".") and ". " not in word.sentence
        still = ElementTree.fromstring(base64.b64decode(word.src.partition(",")[2]))
        assert len(still), word.word
