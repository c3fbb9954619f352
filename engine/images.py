"""The pictures people bring and the pictures they are shown: every one of them a plain PNG and nothing else."""

from __future__ import annotations

import re
import struct
import threading
import zlib
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from engine.errors import BadInput, LeakLensError, refusal

if TYPE_CHECKING:
    import numpy
    import torch
    from numpy.typing import NDArray
    from PIL import Image

SIDE = 256  # pixels a side that are kept
LEAST, MOST = 8, 10_000  # pixels a side that are taken
MEGAPIXELS = 25
MEGABYTES = 10
SCANS = 100  # passes over a JPEG; cameras write about ten, each costs the time of the whole picture

PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
FORMATS = ("PNG", "JPEG")
CHUNKS = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")  # what a decoder needs, in its order
ANIMATION, ASIDE = b"acTL", b"eXIf"
GREY, COLOUR = 0, 2  # the kinds of PNG in which one value may stand for "transparent"
MARKER = re.compile(rb"\xff[\x02-\xcf\xd9-\xfe]")  # of a segment; the others have no length, or are part of the pixels
END, SCAN, EXIF = 0xD9, 0xDA, 0xE1
FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # segments that say the size
NEEDED = {*range(0xC0, 0xD0), 0xDB, 0xDD, 0xE0, 0xEE}  # frames, tables, restarts, and how the colours are meant
ORIENTATION = 0x0112  # in Exif; the numbers that are not here mean "as it lies"
TURNS = {
    2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE",
    6: "ROTATE_270", 7: "TRANSVERSE", 8: "ROTATE_90",
}  # fmt: skip
OTHERS = {
    "a GIF": rb"GIF8", "a WebP": rb"RIFF.{4}WEBP", "a TIFF": rb"II\*\0|MM\0\*", "a HEIC or AVIF": rb".{4}ftyp",
    "an SVG or another page": rb"\s*<", "a PDF": rb"%PDF",
    "a program": rb"MZ|\x7fELF|#!", "an archive": rb"PK|\x1f\x8b",
}  # fmt: skip
SAVE = "Save it as PNG or JPEG with any picture program, and choose that file"
SMALLER = "Scale it down or cut a part out, and choose that"
AGAIN = "Save it again with any picture program, or choose another"

_alone = threading.Lock()  # the largest pictures take 400 MB while they are read: one at a time


def cleaned(data: bytes) -> bytes:
    """An upload as a square PNG, upright and opaque: its middle, scaled down, and nothing of the file but pixels."""
    import numpy

    return _packed(numpy.asarray(_clean(data)))


def pixels(png: bytes, shape: tuple[int, ...]) -> torch.Tensor:
    """A picture as a model takes it: (channels, height, width) in [0, 1]."""
    import numpy
    import torch
    from PIL import Image

    if len(shape) != 3 or shape[0] not in (1, 3) or min(shape) < 1:
        law = "must be 1 or 3 channels, height and width, to take a picture"
        raise refusal("model input", law, list(shape), "Choose a data set of pictures")
    channels, height, width = shape
    scaled = _clean(png).resize((width, height), Image.Resampling.BICUBIC)
    values = numpy.array(scaled.convert("L" if channels == 1 else "RGB"))
    return torch.from_numpy(values).view(height, width, channels).permute(2, 0, 1).contiguous().float() / 255


def png(picture: torch.Tensor) -> bytes:
    """(1 or 3, height, width) as a PNG; what lies outside [0, 1] is cut off, what is no number is black."""
    if picture.ndim != 3 or picture.shape[0] not in (1, 3) or not picture.numel():
        raise refusal("picture", "must be 1 or 3 channels, height and width", list(picture.shape))
    values = picture.detach().float().nan_to_num(0.0).clamp(0, 1).mul(255).round().byte()
    return _packed(values.permute(1, 2, 0).cpu().numpy())


def _packed(values: NDArray[numpy.uint8]) -> bytes:
    """(height, width, 1 or 3) as a PNG of three chunks."""
    import numpy

    height, width, channels = values.shape
    flat = values.reshape(height, width * channels)
    rows = numpy.full((height, 1 + width * channels), 2, numpy.uint8)  # filter 2: every row less the one above
    rows[0, 1:] = flat[0]
    numpy.subtract(flat[1:], flat[:-1], out=rows[1:, 1:])
    head = struct.pack(">IIBBBBB", width, height, 8, GREY if channels == 1 else COLOUR, 0, 0, 0)
    return PNG + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


# --- what was brought --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StrippedFile:
    """A picture file without what a decoder does not need: no words, no profiles, no second pictures."""

    size: tuple[int, int]  # width and height, as the header announces them
    file: bytes
    exif: bytes


def _clean(data: bytes) -> Image.Image:
    """The middle of an upload: RGB, square, upright."""
    from PIL import Image

    _file_allowed(data)
    try:
        lean = _lean_png(data) if data.startswith(PNG) else _lean_jpeg(data)
        _size_allowed(*lean.size)
        with _alone, Image.open(BytesIO(lean.file), formats=FORMATS) as picture:
            if picture.size != lean.size:
                raise ValueError("two sizes")
            picture.draft(None, (2 * SIDE, 2 * SIDE))  # a large JPEG is scaled down while it is read
            return _finished(picture, _turn(lean.exif))
    except LeakLensError:
        raise
    except Exception as error:  # decoders have many ways of saying that a file makes no sense
        raise BadInput("picture: the file is damaged or cut short, and cannot be read", AGAIN) from error


def _file_allowed(data: bytes) -> None:
    if not data:
        raise BadInput("picture: the file is empty", "Choose a PNG or JPEG picture")
    if len(data) > MEGABYTES * 1_000_000:
        raise refusal("picture", f"a file must hold at most {MEGABYTES} MB", f"{len(data) / 1e6:.1f} MB", SMALLER)
    if not data.startswith((PNG, JPEG)):
        other = (name for name, opening in OTHERS.items() if re.match(opening, data, re.DOTALL))
        law = "must be a PNG or JPEG by what is in the file, whatever its name"
        raise refusal("picture", law, next(other, "something else"), SAVE)


def _size_allowed(width: int, height: int) -> None:
    got = f"{width:,} x {height:,} px"
    if min(width, height) < LEAST:
        law = f"must have at least {LEAST} px a side, or there is nothing to recognise"
        raise refusal("picture", law, got, "Choose a larger picture")
    if max(width, height) > MOST or width * height > MEGAPIXELS * 1_000_000:
        law = f"must have at most {MOST:,} px a side and {MEGAPIXELS} million in all"
        raise refusal("picture", law, got, SMALLER)


def _lean_png(data: bytes) -> StrippedFile:
    """Walk from chunk to chunk, up to the last; every one that is kept must have its checksum."""
    parts: dict[bytes, list[bytes]] = {}
    at = len(PNG)
    while b"IEND" not in parts:
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind in (*CHUNKS, ANIMATION, ASIDE):
            body = data[at + 8 : at + 8 + length]
            if struct.unpack_from(">I", data, at + 8 + length)[0] != zlib.crc32(kind + body):
                raise ValueError("a checksum is wrong")
            parts.setdefault(kind, []).append(body)
        at += 12 + length
    if any(int.from_bytes(body[:4], "big") > 1 for body in parts.get(ANIMATION, ())):
        raise BadInput(
            "picture: must be one still picture, got an animation", "Save one picture of it, and choose that"
        )
    width, height, depth, colour = struct.unpack_from(">IIBB", parts[b"IHDR"][0])
    if b"tRNS" in parts and colour in (GREY, COLOUR):
        parts[b"tRNS"][0] = _eight_bit(parts[b"tRNS"][0], depth)
    parts[b"IDAT"] = [b"".join(parts[b"IDAT"])]
    file = PNG + b"".join(_chunk(kind, parts[kind][0]) for kind in CHUNKS if kind in parts)
    return StrippedFile((width, height), file, parts.get(ASIDE, [b""])[0])


def _eight_bit(key: bytes, depth: int) -> bytes:
    """The transparent value as it will be once Pillow has brought the pixels to 8 bits; it leaves that to us."""
    values = struct.unpack(f">{len(key) // 2}H", key)
    scaled = (value >> 8 if depth == 16 else value * 255 // (2**depth - 1) for value in values)
    return struct.pack(f">{len(values)}H", *scaled)


def _lean_jpeg(data: bytes) -> StrippedFile:
    """Walk from segment to segment up to the end mark; behind the first scan everything belongs to the pixels."""
    kept, scans = list[bytes](), list[int]()  # scans: where they begin
    exif, size, at = b"", (0, 0), 2
    while (found := MARKER.search(data, at)) and data[found.start() + 1] != END:
        start, code = found.start(), data[found.start() + 1]
        at = start + 2 + max(2, int.from_bytes(data[start + 2 : start + 4], "big"))
        if code == SCAN:
            scans.append(start)
        elif not scans and code in NEEDED:
            kept.append(data[start:at])
        elif not scans and code == EXIF and data.startswith(b"Exif\0", start + 4):
            exif = exif or data[start + 10 : at]
        if code in FRAMES:
            height, width = struct.unpack_from(">HH", data, start + 5)
            size = (width, height)
    if not found or not scans:
        raise ValueError("the end is missing")
    if len(scans) > SCANS:
        raise refusal("picture", f"a JPEG must be drawn in at most {SCANS} passes", f"{len(scans):,}", AGAIN)
    return StrippedFile(size, data[:2] + b"".join(kept) + data[scans[0] : found.end()], exif)


def _finished(picture: Image.Image, turn: str | None) -> Image.Image:
    """The middle of a picture: scaled, turned upright, and laid on white where it is transparent."""
    from PIL import Image

    side = min(picture.size)
    left, top = ((extent - side) // 2 for extent in picture.size)
    square = picture.crop((left, top, left + side, top + side))
    if square.mode == "I;16":  # grey in 16 bits, of which a conversion would cut off all but the darkest part
        square = square.convert("I").point([value >> 8 for value in range(1 << 16)], "L")
    kept = min(side, SIDE)
    layer = square.convert("RGBA").resize((kept, kept), Image.Resampling.BICUBIC)
    ground = Image.new("RGBA", layer.size, "white")
    ground.alpha_composite(layer.transpose(Image.Transpose[turn]) if turn else layer)
    return ground.convert("RGB")


def _turn(exif: bytes) -> str | None:
    """What has to be done with the picture, where Exif says anything that makes sense."""
    order = "<" if exif.startswith(b"II") else ">"
    try:
        (at,) = struct.unpack_from(f"{order}I", exif, 4)
        (count,) = struct.unpack_from(f"{order}H", exif, at)
        for entry in range(at + 2, at + 2 + 12 * count, 12):
            tag, value = struct.unpack_from(f"{order}H6xH", exif, entry)
            if tag == ORIENTATION:
                return TURNS.get(value)
    except struct.error:  # none, or a broken one: the picture stays as it lies
        pass
    return None
