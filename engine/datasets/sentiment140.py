"""Sentiment140: short messages, called negative or positive by the smileys that were taken out of them."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from engine.datasets.base import DATASETS, DataFolders, TextDataset
from engine.datasets.files import FileLayout
from engine.datasets.text_files import TweetFile

FILE = "training.1600000.processed.noemoticon.csv"


@DATASETS.add("sentiment140", title="Sentiment140", source="Go, Bhayani, Huang 2009")
class Sentiment140(TextDataset):
    """Short messages from Twitter, negative or positive; a fifth of them is kept apart for testing."""

    classes: ClassVar[tuple[str, ...]] = ("negative", "positive")
    obtain: ClassVar[str] = f"Put its file {FILE} into a folder named in LEAKLENS_DATA"

    one_in: int = Field(
        80, ge=1, le=10_000, title="one message in", description="Of so many messages of a class one is taken."
    )

    @property
    def part(self) -> str:
        return "full set" if self.one_in == 1 else f"one message in {self.one_in:,}"

    def layouts(self, places: DataFolders) -> tuple[FileLayout, ...]:
        named = (folder / name / FILE for folder in places.folders for name in ("sentiment140", ""))
        return tuple(TweetFile(place, self.length, self.one_in) for place in named)
