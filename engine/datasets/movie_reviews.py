"""Sentences from film reviews. LeakLens bundles this small set, so that models of text run without a download."""

from __future__ import annotations

from typing import ClassVar

from engine.datasets.base import DATASETS, TextDataset


@DATASETS.add("movie-reviews", title="Movie reviews", source="Pang, Lee 2005, sentence polarity")
class MovieReviews(TextDataset):
    """Sentences from film reviews, negative or positive. One fifth is the test set."""

    classes: ClassVar[tuple[str, ...]] = ("negative", "positive")
    bundle: ClassVar[str] = "movie_review_sentences.tsv.gz"
