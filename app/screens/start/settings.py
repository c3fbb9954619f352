"""The settings of Start: the place of the slider, what is in the upload, and whose picture it is."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from app.session.photos import upload_name
from app.session.screen_settings import ScreenSettings

PICTURE = r"^(portrait|own-[0-9a-f]{16})$"


class StartSettings(ScreenSettings):
    """All settings of the screen."""

    screen: ClassVar[str] = "start"
    rules: ClassVar[dict[str, str]] = {"picture": "must be portrait or a picture of your own"}

    stop: int = Field(0, ge=0, le=7)  # a place on the slider, from no protection to the strongest
    content: Literal["1", "8", "ordinary", "cheat"] = "1"
    picture: str = Field("portrait", pattern=PICTURE)

    @property
    def own(self) -> str:
        """The name of an uploaded picture; empty for the portrait."""
        return upload_name(self.picture)
