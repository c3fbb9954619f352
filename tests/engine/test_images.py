"""An upload becomes a plain PNG or an error message, and a displayed picture shows the computed values."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from PIL import Image

from engine.errors import BadInput
from engine.images import PNG, SIDE, clean_upload, model_input, to_png
from tests.engine.jobs.makers import (
    ACCEPTED_FILES,
    Values,
    chunks,
    file_claiming_size,
    join_chunks,
    photo,
    png_bytes,
    png_pixels,
    rgb,
    saved,
)

pytestmark = pytest.mark.slow

NO_WARNINGS = pytest.mark.filterwarnings("error")  # a decoder that warns received data it does not need


def refused(file: bytes, message: str) -> BadInput:
    with pytest.raises(BadInput, match=message) as caught:
        clean_upload(file)
    assert caught.value.message.startswith("picture: ") and caught.value.remedy
    return caught.value


# --- accepted files ----------------------------------------------------------------------------------------


@NO_WARNINGS
@pytest.mark.parametrize("kind", ACCEPTED_FILES)
def test_every_accepted_kind_keeps_its_pixels(kind: str) -> None:
    picture = png_pixels(clean_upload(ACCEPTED_FILES[kind]()))
    assert picture.shape == (24, 24, 3)
    assert np.abs(picture.astype(int) - np.asarray(photo())).max() <= ("jpeg" in kind or "telephone" in kind) * 12


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_grey_keeps_its_levels_at_every_depth(depth: int) -> None:
    values = np.arange(256).reshape(16, 16) * 257 >> (16 - depth)
    picture = png_pixels(clean_upload(png_bytes(values, depth, 0)))
    assert (picture[..., 0] == picture[..., 2]).all()
    expected = np.round(values * 255 / (2**depth - 1))
    assert np.abs(picture[..., 1] - expected).max() <= (depth == 16)


@pytest.mark.parametrize(("depth", "colour"), [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0), (8, 2), (16, 2)])
def test_the_transparent_value_becomes_white(depth: int, colour: int) -> None:
    low, high = 0, 2**depth - 1
    values = np.full((12, 12, 3 if colour else 1), low)
    values[:6] = high
    for key, top, bottom in ((high, 255, 0), (low, 255, 255)):
        picture = png_pixels(
            clean_upload(png_bytes(values, depth, colour, tRNS=struct.pack(">H", key) * (3 if colour else 1)))
        )
        assert (picture[0].max(), picture[0].min()) == (255, top)
        assert (picture[-1].max(), picture[-1].min()) == (bottom, bottom)


def test_values_next_to_the_transparent_one_stay_opaque() -> None:
    values = np.full((8, 8), 100 * 256)
    values[0] = 101 * 256
    assert png_pixels(clean_upload(png_bytes(values, 16, 0, tRNS=struct.pack(">H", 101 * 256))))[:2, 0, 0].tolist() == [
        255,
        100,
    ]


def test_half_transparent_parts_are_blended_with_white() -> None:
    picture = Image.new("RGBA", (600, 600), (0, 0, 0, 127))
    assert np.unique(png_pixels(clean_upload(saved(picture, "PNG")))).tolist() == [128]
    palette = photo().quantize(8)
    alphas = bytes([0] * 8)
    assert (png_pixels(clean_upload(saved(palette, "PNG", transparency=alphas))) == 255).all()


def test_colours_of_transparent_pixels_do_not_show() -> None:
    picture = Image.new("RGBA", (512, 512), (255, 0, 0, 0))  # transparent red next to blue
    picture.paste((0, 0, 255, 255), (0, 0, 255, 512))
    values = png_pixels(clean_upload(saved(picture, "PNG"))).astype(int)
    assert (values[..., 0] <= values[..., 2]).all()


# --- cropping, scaling and turning -------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [(40, 20), (20, 40), (41, 20)])
def test_the_centre_square_is_kept(width: int, height: int) -> None:
    values = np.zeros((height, width, 3), np.uint8)
    top, left = (height - 20) // 2, (width - 20) // 2
    values[top : top + 20, left : left + 20] = 255
    picture = png_pixels(clean_upload(saved(Image.fromarray(values), "PNG")))
    assert picture.shape == (20, 20, 3) and (picture == 255).all()


@pytest.mark.parametrize(("side", "kept"), [(8, 8), (256, 256), (257, 256), (1500, 256)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_large_pictures_are_scaled_down_and_small_ones_stay(side: int, kept: int, kind: str) -> None:
    picture = png_pixels(clean_upload(saved(photo(side, side + 3), kind)))
    assert picture.shape == (kept, kept, 3)
    quarter = kept // 4
    assert np.abs(picture[quarter, quarter].astype(int) - [255, 0, 0]).max() < 60
    assert np.abs(picture[-quarter, quarter].astype(int) - [0, 0, 255]).max() < 60


def test_fine_stripes_become_even_grey() -> None:
    values = np.zeros((1024, 1024, 3), np.uint8)
    values[:, ::2] = 255
    picture = png_pixels(clean_upload(saved(Image.fromarray(values), "PNG"))).astype(int)[4:-4, 4:-4]
    assert np.abs(picture - 127).max() <= 2


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_pictures_are_turned_upright(orientation: int, kind: str) -> None:
    back = {
        1: lambda v: v, 2: lambda v: v[:, ::-1], 3: lambda v: v[::-1, ::-1], 4: lambda v: v[::-1],
        5: lambda v: v.swapaxes(0, 1), 6: lambda v: np.rot90(v, 1), 7: lambda v: v[::-1, ::-1].swapaxes(0, 1),
        8: lambda v: np.rot90(v, -1),
    }  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = "a secret place"
    turned = Image.fromarray(np.ascontiguousarray(back[orientation](np.asarray(photo()))))
    quality: dict[str, int] = {"quality": 95, "subsampling": 0} if kind == "JPEG" else {}
    file = clean_upload(saved(turned, kind, exif=exif, **quality))
    assert np.abs(png_pixels(file).astype(int) - np.asarray(photo())).max() <= 12
    assert b"secret" not in file


@NO_WARNINGS
@pytest.mark.parametrize("exif", [b"", b"II", b"MM\0*\xff\xff\xff\xff", b"Exif\0\0" + b"\xff" * 99])
def test_a_broken_exif_changes_nothing(exif: bytes) -> None:
    assert clean_upload(png_bytes(np.asarray(photo()), 8, 2, eXIf=exif)) == clean_upload(rgb())
    segment = b"\xff\xe1" + struct.pack(">H", len(exif) + 8) + b"Exif\0\0" + exif
    file = saved(photo(), "JPEG")
    assert clean_upload(file[:2] + segment + file[2:]) == clean_upload(file)


@given(side=st.integers(8, 300), seed=st.integers(0, 99))
@settings(max_examples=20)
def test_a_cleaned_picture_is_not_changed_again(side: int, seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, (side, side + seed, 3), dtype=np.uint8)
    once = clean_upload(saved(Image.fromarray(noise), "PNG"))
    assert clean_upload(once) == once
    assert side > SIDE or (png_pixels(once) == noise[:, seed // 2 : seed // 2 + side]).all()


# --- refusals ----------------------------------------------------------------------------------------------

OTHER_FILES = {
    "a GIF": saved(photo(), "GIF"),
    "a WebP": saved(photo(), "WEBP"),
    "a TIFF": saved(photo(), "TIFF"),
    "a HEIC or AVIF": b"\0\0\0\x18ftypheic" + bytes(50),
    "an SVG or another page": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "a PDF": b"%PDF-1.7",
    "a program": b"MZ\x90\0" + bytes(200),
    "an archive": b"PK\x03\x04",
    "something else": b"Dear all, here is the picture.",
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_other_files_are_refused_by_their_content(name: str) -> None:
    error = refused(OTHER_FILES[name], f"must be a PNG or JPEG .* got {name}$|got {name}\\.")
    assert "as PNG or JPEG" in error.remedy


def test_empty_and_too_large_files_are_refused() -> None:
    refused(b"", "the file is empty")
    refused(rgb() + bytes(10_000_000), "at most 10 MB, got 10.0 MB")


@NO_WARNINGS
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize(
    ("width", "height", "message"),
    [
        (1, 1, "at least 8 px a side, .* got 1 x 1 px"),
        (7, 500, "at least 8 px a side"),
        (0, 9, "at least 8 px a side"),
        (20_000, 20_000, "at most 10,000 px a side and 25 million in all, got 20,000 x 20,000 px"),
        (20_000, 100, "at most 10,000 px a side"),
        (5001, 5000, "and 25 million in all, got 5,001 x 5,000 px"),
        (65_535, 65_535, "at most 10,000 px a side"),
    ],
)
def test_sizes_out_of_bounds_are_refused_before_decoding(kind: str, width: int, height: int, message: str) -> None:
    assert refused(file_claiming_size(width, height, kind), message).__cause__ is None


def test_a_wrong_size_in_the_header_is_refused() -> None:
    refused(file_claiming_size(4000, 4000, "PNG"), "damaged or cut short")


def test_animations_are_refused() -> None:
    frames = [photo(), photo().rotate(90)]
    refused(saved(frames[0], "PNG", save_all=True, append_images=frames[1:]), "one still picture, got an animation")


def test_a_jpeg_with_too_many_passes_is_refused() -> None:
    file = saved(photo(), "JPEG", progressive=True)
    last = file[file.rindex(b"\xff\xda") : -2]
    refused(file[:-2] + last * 5000 + file[-2:], "at most 100 passes, got 5,0")


@pytest.mark.parametrize("kind", ["rgb", "jpeg", "progressive jpeg", "palette"])
def test_a_truncated_file_is_refused(kind: str) -> None:
    file = ACCEPTED_FILES[kind]()
    for end in range(1, len(file)):
        refused(file[:end], "damaged or cut short" if end > 7 else "must be a PNG or JPEG|damaged or cut short")


def test_compressed_texts_are_never_unpacked() -> None:
    compressed = b"Comment\0\0" + zlib.compress(bytes(5_000_000))
    file = join_chunks([chunks(rgb())[0], *[(b"zTXt", compressed)] * 900, *chunks(rgb())[1:]])
    assert clean_upload(file) == clean_upload(rgb())


# --- random files ------------------------------------------------------------------------------------------

SOURCES = tuple(make() for make in ACCEPTED_FILES.values())


def is_cleaned_or_refused(file: bytes) -> None:
    try:
        picture = png_pixels(clean_upload(file))
    except BadInput as refusal:
        assert refusal.message.startswith("picture: ") and refusal.remedy
    else:
        assert picture.shape[0] >= 8


@given(st.binary(max_size=300), st.sampled_from([b"", PNG, b"\xff\xd8\xff", rgb()[:33], rgb()[:60]]))
@example(b"", b"\xff\xd8\xff")
def test_random_bytes_are_cleaned_or_refused(noise: bytes, opening: bytes) -> None:
    is_cleaned_or_refused(opening + noise)


@given(st.sampled_from(SOURCES), st.data())
@settings(max_examples=300)
def test_a_broken_file_is_cleaned_or_refused(file: bytes, data: st.DataObject) -> None:
    if data.draw(st.booleans()):
        file = file[: data.draw(st.integers(0, len(file)))]
    broken = bytearray(file)
    for at in data.draw(st.lists(st.integers(0, max(0, len(broken) - 1)), max_size=8)):
        broken[at : at + 1] = data.draw(st.binary(max_size=2))
    is_cleaned_or_refused(bytes(broken))


@given(st.sampled_from([file for file in SOURCES if file.startswith(PNG)]), st.data())
@settings(max_examples=300)
def test_a_broken_chunk_with_a_correct_checksum_is_cleaned_or_refused(file: bytes, data: st.DataObject) -> None:
    parts = chunks(file)
    index = data.draw(st.integers(0, len(parts) - 1))
    kind, body = parts[index]
    unpacked = bytearray(zlib.decompress(body) if kind == b"IDAT" else body)
    for at in data.draw(st.lists(st.integers(0, max(0, len(unpacked) - 1)), min_size=1, max_size=4)):
        unpacked[at : at + 1] = data.draw(st.binary(max_size=2))
    parts[index] = (kind, zlib.compress(unpacked) if kind == b"IDAT" else bytes(unpacked))
    is_cleaned_or_refused(join_chunks(data.draw(st.permutations(parts)) if data.draw(st.booleans()) else parts))


# --- pictures of models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 20, 30), (1, 1, 1), (3, 64, 64)])
def test_pixels_have_the_shape_of_the_model(shape: tuple[int, int, int]) -> None:
    values = model_input(rgb(), shape)
    assert values.shape == shape and values.dtype == torch.float32 and values.is_contiguous()
    assert values.min() >= 0 and values.max() <= 1


def test_pixels_are_those_of_the_picture() -> None:
    expected = torch.from_numpy(np.asarray(photo()).copy()).permute(2, 0, 1) / 255
    assert torch.equal(model_input(rgb(), (3, 24, 24)), expected)
    grey = model_input(rgb(), (1, 24, 24))
    assert torch.allclose(grey[0, 0, [0, -1]], torch.tensor([0.299, 0.587]), atol=0.003)
    large = saved(photo(900, 700), "PNG")
    assert torch.equal(model_input(large, (3, 32, 32)), model_input(clean_upload(large), (3, 32, 32)))


@pytest.mark.parametrize("shape", [(784,), (2, 8, 8), (3, 0, 8), (3, 8, 8, 8)])
def test_a_model_without_pictures_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="model input: must be 1 or 3 channels"):
        model_input(rgb(), shape)


@given(arrays(np.uint8, array_shapes(min_dims=3, max_dims=3, max_side=40).map(lambda s: (1 + 2 * (s[0] % 2), *s[1:]))))
def test_a_png_holds_the_computed_values(values: Values) -> None:
    with Image.open(io.BytesIO(to_png(torch.from_numpy(values).float() / 255))) as picture:
        picture.load()
        shown = np.asarray(picture).reshape(*values.shape[1:], -1)
        assert picture.info == {} and picture.mode == ("L" if len(values) == 1 else "RGB")
    assert (shown == values.transpose(1, 2, 0)).all()


def test_values_outside_the_range_are_clamped() -> None:
    picture = torch.tensor([float("nan"), float("inf"), -float("inf"), -3.0, 7.0, 0.5]).view(1, 2, 3).requires_grad_()
    with Image.open(io.BytesIO(to_png(picture))) as shown:
        assert np.asarray(shown).ravel().tolist() == [0, 255, 0, 0, 255, 128]
    assert to_png(picture) == to_png(picture.detach().double())


@pytest.mark.parametrize("shape", [(32, 32), (4, 8, 8), (3, 0, 8), (1, 3, 8, 8)])
def test_a_tensor_that_is_no_picture_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="picture: must be 1 or 3 channels"):
        to_png(torch.zeros(shape))
