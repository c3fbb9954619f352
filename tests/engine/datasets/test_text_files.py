"""The readers of sentences: the same numbers on every machine, and a vocabulary without test sentences."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from engine.datasets.text_files import TEST_EVERY, LabelledLines, TweetFile, held_out, vocabulary, word_rows, words
from engine.errors import Damaged
from engine.words import FIRST_WORD, PADDING, UNKNOWN
from tests.engine.datasets.makers import write_lines, write_tweets


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("It's so-so, REALLY!", ["it's", "so-so", ",", "really", "!"]),
        ("El ladrón de orquídeas", ["el", "ladrón", "de", "orquídeas"]),
        ("@anna see https://x.org/a_b?c=1 :)", ["@anna", "see", "https://x.org/a_b?c=1", ":", ")"]),
        ("'tis a - b_c 7.5", ["'", "tis", "a", "-", "b", "_", "c", "7", ".", "5"]),
        (" \t\x97 ", ["\x97"]),
        ("", []),
    ],
)
def test_a_sentence_is_split_into_words_and_signs(sentence: str, expected: list[str]) -> None:
    assert words(sentence) == expected


def test_frequent_words_have_small_numbers_and_the_alphabet_breaks_ties() -> None:
    assert vocabulary([["b", "a", "c", "b"], ["a", "b", "d"]]) == {"b": FIRST_WORD, "a": FIRST_WORD + 1, "c": 4, "d": 5}


def test_every_fifth_sentence_of_a_class_is_a_test_sentence() -> None:
    labels = np.array([1, 0] * 10 + [1], np.uint8)
    mask = held_out(labels)
    assert [np.flatnonzero(mask & (labels == label)).tolist() for label in (0, 1)] == [[9, 19], [8, 18]]
    assert TEST_EVERY == 5


def test_rows_are_cut_and_padded_and_use_the_vocabulary_of_training() -> None:
    sentences = ["red red blue", "red green", "green red", "blue", "red secret blue green"]
    train_x, train_y, test_x, test_y = word_rows(sentences, np.zeros(5, np.uint8), 3)
    red, blue, green = FIRST_WORD, FIRST_WORD + 1, FIRST_WORD + 2
    assert train_x.tolist() == [
        [red, red, blue],
        [red, green, PADDING],
        [green, red, PADDING],
        [blue, PADDING, PADDING],
    ]
    assert test_x.tolist() == [[red, UNKNOWN, blue]]
    assert (len(train_y), len(test_y)) == (4, 1) and train_x.dtype == np.int64


def test_lines_with_unusual_signs_are_read(tmp_path: Path) -> None:
    unusual = "a\x85b\x1cc \u2028 d\te"  # signs at which splitlines would split
    file = write_lines(tmp_path / "set.tsv.gz", [(0, "one"), (0, unusual), (1, ""), (1, "vier")])
    train_x, train_y, _, test_y = LabelledLines(file, 8).read()
    assert train_y.tolist() == [0, 0, 1, 1] and len(test_y) == 0
    assert int((train_x[1] != PADDING).sum()) == len(words(unusual)) == 5
    assert train_x[2].tolist() == [PADDING] * 8  # a sentence without a word
    assert [labels.tolist() for labels in LabelledLines(file, 8).labels()] == [[0, 0, 1, 1], []]


@pytest.mark.parametrize("body", [b"0 no tab\n", b"good\tfilm\n", b"", b"1000\tfilm\n", b"0\t\xff\n"])
def test_lines_in_another_format_are_damage(tmp_path: Path, body: bytes) -> None:
    file = tmp_path / "set.tsv.gz"
    file.write_bytes(gzip.compress(body))
    for read in (LabelledLines(file, 8).read, LabelledLines(file, 8).labels):
        with pytest.raises(Damaged, match=r"^set\.tsv\.gz: .*Restore this file from the repository\.$"):
            read()


def test_one_in_thins_the_messages_of_each_class(tmp_path: Path) -> None:
    file = write_tweets(tmp_path, [(0, f"bad {number}") for number in range(15)] + [(4, "good")] * 7)
    assert [len(labels) for labels in TweetFile(file, 4, 1).labels()] == [15 - 3 + 7 - 1, 3 + 1]
    train_x, train_y, _, test_y = TweetFile(file, 4, 3).read()
    assert train_y.tolist() == [0, 0, 0, 0, 1, 1, 1] and test_y.tolist() == [0]
    assert len({tuple(row) for row in train_x[:4].tolist()}) == 4


def test_messages_are_decoded_from_latin_1_and_html(tmp_path: Path) -> None:
    file = write_tweets(tmp_path, [(0, 'caf\xe9 &quot;tea&quot; &lt;3, "yes"'), *[(4, "caf\xe9")] * TEST_EVERY])
    train_x, _, _, _ = TweetFile(file, 12, 1).read()
    assert int((train_x[0] != PADDING).sum()) == len(words('café "tea" <3, "yes"'))
    assert train_x[0, 0] == train_x[1, 0]


@pytest.mark.parametrize(
    "line", ['"2","1","d","q","u","so so"', '"0","1","d","q","text"', "polarity,id,date,query,user,text", '"0","1"\x00']
)
def test_messages_in_another_format_are_damage(tmp_path: Path, line: str) -> None:
    file = write_tweets(tmp_path, [(0, "bad")])
    file.write_bytes(file.read_bytes() + line.encode("latin-1") + b"\n")
    with pytest.raises(Damaged, match=r"^training\.1600000.*Delete this file and download it again\.$"):
        TweetFile(file, 4, 1).labels()


@pytest.mark.parametrize(
    ("text", "one_in", "left"),
    [
        ("", 80, "leaves 0, "),
        ('"0","1","d","q","u","so sad' + "\n0,1,d,q,u,so sad" * 9, 1, "leaves 1, "),  # the open quote includes the rest
        ('"0","1","d","q","u","so sad"\n' * 9, 8, "one in 8 of each class leaves 2, "),
    ],
)
def test_too_few_messages_give_an_error(tmp_path: Path, text: str, one_in: int, left: str) -> None:
    file = write_tweets(tmp_path, [])
    file.write_text(text, encoding="latin-1")
    for read in (TweetFile(file, 4, one_in).labels, TweetFile(file, 4, one_in).read):
        with pytest.raises(Damaged, match=r"^training\.1600000\S+: it holds too few messages: ") as caught:
            read()
        assert left in caught.value.message and caught.value.message.count("5 of one class are needed") == 1
        assert caught.value.remedy.startswith("Lower one-in" if one_in > 1 else "Download it again")
