"""Uploaded and displayed pictures. Each is stored as a plain PNG that holds pixels and nothing else."""

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

SIDE = 256  # pixels per side of a stored picture
SMALLEST_SIDE, LARGEST_SIDE = 8, 10_000  # pixels per side of an accepted upload
MEGAPIXELS = 25
MEGABYTES = 10
PLAIN = 8  # levels of 256 between the darkest and the brightest pixel of a picture of one colour
SCANS = 100  # passes over a JPEG; cameras write about ten, and each costs the time of the whole picture

PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
FORMATS = ("PNG", "JPEG")
CHUNKS = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")  # the chunks that a decoder needs, in its order
ANIMATION_CHUNK, EXIF_CHUNK = b"acTL", b"eXIf"
GREY, COLOUR = 0, 2  # the PNG colour types in which one value can mean "transparent"
MARKER = re.compile(rb"\xff[\x02-\xcf\xd9-\xfe]")  # of a segment; other markers have no length or are pixel data
END, SCAN, EXIF = 0xD9, 0xDA, 0xE1
FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # segments that hold the size
NEEDED = {*range(0xC0, 0xD0), 0xDB, 0xDD, 0xE0, 0xEE}  # frames, tables, restarts and the colour model
ORIENTATION = 0x0112  # the Exif tag; a value that is not in TURNS means "upright"
TURNS = {
    2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE",
    6: "ROTATE_270", 7: "TRANSVERSE", 8: "ROTATE_90",
}  # fmt: skip
OTHER_FORMATS = {
    "a GIF": rb"GIF8", "a WebP": rb"RIFF.{4}WEBP", "a TIFF": rb"II\*\0|MM\0\*", "a HEIC or AVIF": rb".{4}ftyp",
    "an SVG or another page": rb"\s*<", "a PDF": rb"%PDF",
    "a program": rb"MZ|\x7fELF|#!", "an archive": rb"PK|\x1f\x8b",
}  # fmt: skip
CONVERT = "Save it as PNG or JPEG with any picture program, and choose that file"
MAKE_SMALLER = "Scale it down or crop it, and choose the result"
SAVE_AGAIN = "Save it again with any picture program, or choose another"

_decode_lock = threading.Lock()  # decoding the largest pictures takes 400 MB: one picture at a time


def clean_upload(data: bytes) -> bytes:
    """An upload as a PNG of its centre square: upright, opaque, scaled down.

    Only pixels are kept. Metadata such as the place where a photo was taken would otherwise be stored and shown.
    """
    import numpy

    return _packed(numpy.asarray(_decoded_square(data)))


def is_plain(data: bytes) -> bool:
    """Whether a picture has a single colour, up to what an eye tells apart."""
    import numpy

    values = numpy.asarray(_decoded_square(data).convert("RGB")).astype(int)
    return bool((values.max((0, 1)) - values.min((0, 1))).max() <= PLAIN)


def model_input(png: bytes, shape: tuple[int, ...]) -> torch.Tensor:
    """A picture as the input of a model: (channels, height, width) in [0, 1]."""
    import numpy
    import torch
    from PIL import Image

    if len(shape) != 3 or shape[0] not in (1, 3) or min(shape) < 1:
        rule = "must be 1 or 3 channels, height and width, to accept a picture"
        raise refusal("model input", rule, list(shape), "Choose a data set of pictures")
    channels, height, width = shape
    scaled = _decoded_square(png).resize((width, height), Image.Resampling.BICUBIC)
    values = numpy.array(scaled.convert("L" if channels == 1 else "RGB"))
    return torch.from_numpy(values).view(height, width, channels).permute(2, 0, 1).contiguous().float() / 255


def to_png(picture: torch.Tensor) -> bytes:
    """(1 or 3, height, width) as a PNG. Values are clamped to [0, 1], and NaN becomes black."""
    if picture.ndim != 3 or picture.shape[0] not in (1, 3) or not picture.numel():
        raise refusal("picture", "must be 1 or 3 channels, height and width", list(picture.shape))
    values = picture.detach().float().nan_to_num(0.0).clamp(0, 1).mul(255).round().byte()
    return _packed(values.permute(1, 2, 0).cpu().numpy())


def _packed(values: NDArray[numpy.uint8]) -> bytes:
    """(height, width, 1 or 3) as a PNG with three chunks."""
    import numpy

    height, width, channels = values.shape
    flat = values.reshape(height, width * channels)
    rows = numpy.full((height, 1 + width * channels), 2, numpy.uint8)  # filter 2: each row minus the row above
    rows[0, 1:] = flat[0]
    numpy.subtract(flat[1:], flat[:-1], out=rows[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, 8, GREY if channels == 1 else COLOUR, 0, 0, 0)
    body = zlib.compress(rows.tobytes(), 1)
    return PNG + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


# --- uploads -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StrippedFile:
    """A picture file with only what a decoder needs: no texts, profiles or further pictures."""

    size: tuple[int, int]  # width and height from the header
    file: bytes
    exif: bytes


def _decoded_square(data: bytes) -> Image.Image:
    """The centre square of an upload: RGB, upright."""
    from PIL import Image

    _check_file(data)
    try:
        stripped = _strip_png(data) if data.startswith(PNG) else _strip_jpeg(data)
        _check_size(*stripped.size)
        with _decode_lock, Image.open(BytesIO(stripped.file), formats=FORMATS) as picture:
            if picture.size != stripped.size:
                raise ValueError("two sizes")
            picture.draft(None, (2 * SIDE, 2 * SIDE))  # the decoder scales a large JPEG down while it reads
            return _upright_square(picture, _turn(stripped.exif))
    except LeakLensError:
        raise
    except Exception as error:  # decoders raise many kinds of errors for a damaged file
        raise BadInput("picture: the file is damaged or cut short, and cannot be read", SAVE_AGAIN) from error


def _check_file(data: bytes) -> None:
    if not data:
        raise BadInput("picture: the file is empty", "Choose a PNG or JPEG picture")
    if len(data) > MEGABYTES * 1_000_000:
        size = f"{len(data) / 1e6:.1f} MB"
        raise refusal("picture", f"a file must hold at most {MEGABYTES} MB", size, MAKE_SMALLER)
    if not data.startswith((PNG, JPEG)):
        rule = "must be a PNG or JPEG by its content, whatever its name"
        raise refusal("picture", rule, _format_name(data), CONVERT)


def _format_name(data: bytes) -> str:
    for name, opening in OTHER_FORMATS.items():
        if re.match(opening, data, re.DOTALL):
            return name
    return "something else"


def _check_size(width: int, height: int) -> None:
    size = f"{width:,} x {height:,} px"
    if min(width, height) < SMALLEST_SIDE:
        rule = f"must have at least {SMALLEST_SIDE} px a side, or there is nothing to recognise"
        raise refusal("picture", rule, size, "Choose a larger picture")
    if max(width, height) > LARGEST_SIDE or width * height > MEGAPIXELS * 1_000_000:
        rule = f"must have at most {LARGEST_SIDE:,} px a side and {MEGAPIXELS} million in all"
        raise refusal("picture", rule, size, MAKE_SMALLER)


def _strip_png(data: bytes) -> StrippedFile:
    """Read chunk by chunk to the last. Each chunk that is kept must have a correct checksum."""
    parts: dict[bytes, list[bytes]] = {}
    at = len(PNG)
    while b"IEND" not in parts:
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind in (*CHUNKS, ANIMATION_CHUNK, EXIF_CHUNK):
            body = data[at + 8 : at + 8 + length]
            if struct.unpack_from(">I", data, at + 8 + length)[0] != zlib.crc32(kind + body):
                raise ValueError("a checksum is wrong")
            parts.setdefault(kind, []).append(body)
        at += 12 + length
    if any(int.from_bytes(body[:4], "big") > 1 for body in parts.get(ANIMATION_CHUNK, ())):
        raise BadInput(
            "picture: must be one still picture, got an animation", "Save one picture of it, and choose that"
        )
    width, height, depth, colour = struct.unpack_from(">IIBB", parts[b"IHDR"][0])
    if b"tRNS" in parts and colour in (GREY, COLOUR):
        parts[b"tRNS"][0] = _eight_bit(parts[b"tRNS"][0], depth)
    parts[b"IDAT"] = [b"".join(parts[b"IDAT"])]
    file = PNG + b"".join(_chunk(kind, parts[kind][0]) for kind in CHUNKS if kind in parts)
    return StrippedFile((width, height), file, parts.get(EXIF_CHUNK, [b""])[0])


def _eight_bit(key: bytes, depth: int) -> bytes:
    """The transparent value in 8 bits. Pillow converts the pixels to 8 bits, but not this value."""
    values = struct.unpack(f">{len(key) // 2}H", key)
    largest = 2**depth - 1
    scaled = (value >> 8 if depth == 16 else value * 255 // largest for value in values)
    return struct.pack(f">{len(values)}H", *scaled)


def _strip_jpeg(data: bytes) -> StrippedFile:
    """Read segment by segment to the end mark. After the first scan, everything is pixel data."""
    kept = list[bytes]()
    scan_starts = list[int]()
    exif = b""
    size = (0, 0)
    at = 2
    marker = MARKER.search(data, at)
    while marker and data[marker.start() + 1] != END:
        start = marker.start()
        code = data[start + 1]
        at = start + 2 + max(2, int.from_bytes(data[start + 2 : start + 4], "big"))
        if code == SCAN:
            scan_starts.append(start)
        elif not scan_starts and code in NEEDED:
            kept.append(data[start:at])
        elif not scan_starts and code == EXIF and data.startswith(b"Exif\0", start + 4):
            exif = exif or data[start + 10 : at]
        if code in FRAMES:
            height, width = struct.unpack_from(">HH", data, start + 5)
            size = (width, height)
        marker = MARKER.search(data, at)
    if not marker or not scan_starts:
        raise ValueError("the end is missing")
    if len(scan_starts) > SCANS:
        raise refusal("picture", f"a JPEG must have at most {SCANS} passes", f"{len(scan_starts):,}", SAVE_AGAIN)
    pixel_data = data[scan_starts[0] : marker.end()]
    return StrippedFile(size, data[:2] + b"".join(kept) + pixel_data, exif)


def _upright_square(picture: Image.Image, turn: str | None) -> Image.Image:
    """The centre square of a picture: scaled, turned upright, and on white where it is transparent."""
    from PIL import Image

    side = min(picture.size)
    left, top = ((extent - side) // 2 for extent in picture.size)
    square = picture.crop((left, top, left + side, top + side))
    if square.mode == "I;16":  # 16-bit grey, which a conversion would clip to its darkest values
        square = square.convert("I").point([value >> 8 for value in range(1 << 16)], "L")
    kept = min(side, SIDE)
    layer = square.convert("RGBA").resize((kept, kept), Image.Resampling.BICUBIC)
    if turn:
        layer = layer.transpose(Image.Transpose[turn])
    background = Image.new("RGBA", (kept, kept), "white")
    background.alpha_composite(layer)
    return background.convert("RGB")


def _turn(exif: bytes) -> str | None:
    """The operation that turns the picture upright; None if Exif is missing or damaged, or needs none."""
    order = "<" if exif.startswith(b"II") else ">"
    try:
        (at,) = struct.unpack_from(f"{order}I", exif, 4)
        (count,) = struct.unpack_from(f"{order}H", exif, at)
        for entry in range(at + 2, at + 2 + 12 * count, 12):
            tag, value = struct.unpack_from(f"{order}H6xH", exif, entry)
            if tag == ORIENTATION:
                return TURNS.get(value)
    except struct.error:
        pass
    return None
