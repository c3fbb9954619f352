"""Picture files as visitors upload them, made for tests: every accepted kind, and the parts of a PNG."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.images import PNG, SIDE

Values = NDArray[Any]
ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def photo(width: int = 24, height: int = 24) -> Image.Image:
    """Four flat quarters: red, green, blue, black."""
    values = np.zeros((height, width, 3), np.uint8)
    values[: height // 2, : width // 2, 0] = 255
    values[: height // 2, width // 2 :, 1] = 255
    values[height // 2 :, : width // 2, 2] = 255
    return Image.fromarray(values)


def saved(picture: Image.Image, kind: str, **how: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **how)
    return file.getvalue()


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def chunks(file: bytes) -> list[tuple[bytes, bytes]]:
    parts = []
    position = len(PNG)
    while position < len(file):
        length, kind = struct.unpack_from(">I4s", file, position)
        parts.append((kind, file[position + 8 : position + 8 + length]))
        position += 12 + length
    return parts


def join_chunks(parts: list[tuple[bytes, bytes]]) -> bytes:
    return PNG + b"".join(chunk(kind, body) for kind, body in parts)


def png_bytes(values: Values, depth: int, colour: int, interlaced: bool = False, **more: bytes) -> bytes:
    """A PNG written byte by byte, from values of (height, width or width * channels) in any depth."""
    height, width = values.shape[:2]

    def encoded_rows(part: Values) -> bytes:
        rows = part.reshape(len(part), -1)
        if depth < 8:
            bits = np.unpackbits(rows.astype(np.uint8)[..., None], axis=2)[..., 8 - depth :]
            rows = np.packbits(bits.reshape(len(part), -1), axis=1)
        kind = ">u2" if depth == 16 else "u1"
        return b"".join(b"\0" + row.astype(kind).tobytes() for row in rows)

    passes = [values[y::dy, x::dx] for y, x, dy, dx in ADAM7] if interlaced else [values]
    body = zlib.compress(b"".join(encoded_rows(part) for part in passes if part.size))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    extra = [(kind.encode(), part) for kind, part in more.items()]
    return join_chunks([(b"IHDR", header), *extra, (b"IDAT", body), (b"IEND", b"")])


def file_claiming_size(width: int, height: int, kind: str) -> bytes:
    """A tiny file that claims any size."""
    if kind == "PNG":
        header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        return join_chunks([(b"IHDR", header), *chunks(rgb())[1:]])
    file = bytearray(saved(photo(), "JPEG"))
    struct.pack_into(">HH", file, file.index(b"\xff\xc0") + 5, height, width)
    return bytes(file)


def rgb() -> bytes:
    return saved(photo(), "PNG")


def png_pixels(file: bytes) -> Values:
    """The pixels of a PNG, which must hold no other chunks than its picture."""
    assert [kind for kind, _ in chunks(file)] == [b"IHDR", b"IDAT", b"IEND"]
    with Image.open(io.BytesIO(file)) as picture:
        assert (picture.mode, picture.info) == ("RGB", {})
        assert picture.width == picture.height <= SIDE
        return np.asarray(picture)


ACCEPTED_FILES: dict[str, Callable[[], bytes]] = {
    "rgb": rgb,
    "rgba": lambda: saved(photo().convert("RGBA"), "PNG"),
    "palette": lambda: saved(photo().quantize(8), "PNG"),
    "rgb in 16 bits": lambda: png_bytes(np.asarray(photo()).astype(int) * 257, 16, 2),
    "rgba in 16 bits": lambda: png_bytes(np.asarray(photo().convert("RGBA")).astype(int) * 257, 16, 6),
    "interlaced": lambda: png_bytes(np.asarray(photo()), 8, 2, interlaced=True),
    "optimised": lambda: saved(photo(), "PNG", optimize=True),
    "with words": lambda: png_bytes(np.asarray(photo()), 8, 2, tEXt=b"Author\0Ann", zTXt=b"broken", iCCP=b"broken"),
    "one frame of an animation": lambda: png_bytes(np.asarray(photo()), 8, 2, acTL=struct.pack(">II", 1, 0)),
    "jpeg": lambda: saved(photo(), "JPEG", quality=95, subsampling=0),
    "progressive jpeg": lambda: saved(photo(), "JPEG", quality=95, subsampling=0, progressive=True),
    "cmyk jpeg": lambda: saved(photo().convert("CMYK"), "JPEG", quality=95),
    "two pictures of a telephone": lambda: saved(
        photo(), "MPO", save_all=True, append_images=[Image.new("RGB", (9, 9))], quality=95, subsampling=0
    ),
    "jpeg with a film behind it": lambda: saved(photo(), "JPEG", quality=95, subsampling=0) + b"ftypmp42\xff\xda" * 999,
}
