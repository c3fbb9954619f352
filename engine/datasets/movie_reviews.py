"""Sentences from reviews of films: small enough to ship, so that a model of text runs at once."""

from __future__ import annotations

from typing import ClassVar

from engine.datasets.base import DATASETS, TextDataset


@DATASETS.add("movie-reviews", title="Movie reviews", source="Pang, Lee 2005, sentence polarity")
class MovieReviews(TextDataset):
    """Sentences from reviews of films, negative or positive; a fifth of them is kept apart for testing."""

    classes: ClassVar[tuple[str, ...]] = ("negative", "positive")
    bundle: ClassVar[str] = "movie_review_sentences.tsv.gz"
