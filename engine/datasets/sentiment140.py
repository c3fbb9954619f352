"""Sentiment140: short messages, labelled by the smileys that were removed from them."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from engine.datasets.base import DATASETS, DataFolders, TextDataset
from engine.datasets.files import FileLayout
from engine.datasets.text_files import TweetFile

FILE = "training.1600000.processed.noemoticon.csv"


@DATASETS.add("sentiment140", title="Sentiment140", source="Go, Bhayani, Huang 2009")
class Sentiment140(TextDataset):
    """Short messages from Twitter, negative or positive. One fifth is the test set."""

    classes: ClassVar[tuple[str, ...]] = ("negative", "positive")
    obtain: ClassVar[str] = f"Put its file {FILE} into a folder named in LEAKLENS_DATA"

    one_in: int = Field(
        80, ge=1, le=10_000, title="one message in", description="Takes one message out of this many of each class."
    )

    @property
    def part(self) -> str:
        return "full set" if self.one_in == 1 else f"one message in {self.one_in:,}"

    def layouts(self, locations: DataFolders) -> tuple[FileLayout, ...]:
        paths = [folder / name / FILE for folder in locations.folders for name in ("sentiment140", "")]
        return tuple(TweetFile(path, self.length, self.one_in) for path in paths)
