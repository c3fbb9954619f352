"""Pictures: whatever is brought becomes a plain PNG or a sentence, and what is shown is what was computed."""

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
from engine.images import PNG, SIDE, cleaned, pixels, png
from tests.engine.jobs.makers import FINE, Values, announcing, chunks, drawn, joined, photo, rgb, saved, seen

pytestmark = pytest.mark.slow

QUIET = pytest.mark.filterwarnings("error")  # a decoder that mutters was given too much


def refused(file: bytes, saying: str) -> BadInput:
    with pytest.raises(BadInput, match=saying) as caught:
        cleaned(file)
    assert caught.value.message.startswith("picture: ") and caught.value.remedy
    return caught.value


# --- every kind of file that is taken ----------------------------------------------------------------------


@QUIET
@pytest.mark.parametrize("kind", FINE)
def test_every_still_picture_comes_out_as_it_looks(kind: str) -> None:
    found = seen(cleaned(FINE[kind]()))
    assert found.shape == (24, 24, 3)
    assert np.abs(found.astype(int) - np.asarray(photo())).max() <= ("jpeg" in kind or "telephone" in kind) * 12


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_grey_keeps_its_steps_in_every_depth(depth: int) -> None:
    values = np.arange(256).reshape(16, 16) * 257 >> (16 - depth)
    found = seen(cleaned(drawn(values, depth, 0)))
    assert (found[..., 0] == found[..., 2]).all()
    wanted = np.round(values * 255 / (2**depth - 1))
    assert np.abs(found[..., 1] - wanted).max() <= (depth == 16)


@pytest.mark.parametrize(("depth", "colour"), [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0), (8, 2), (16, 2)])
def test_a_value_that_means_transparent_is_white(depth: int, colour: int) -> None:
    low, high = 0, 2**depth - 1
    values = np.full((12, 12, 3 if colour else 1), low)
    values[:6] = high
    for key, top, bottom in ((high, 255, 0), (low, 255, 255)):
        found = seen(cleaned(drawn(values, depth, colour, tRNS=struct.pack(">H", key) * (3 if colour else 1))))
        assert (found[0].max(), found[0].min()) == (255, top)
        assert (found[-1].max(), found[-1].min()) == (bottom, bottom)


def test_the_transparent_value_does_not_take_its_neighbours_along() -> None:
    values = np.full((8, 8), 100 * 256)
    values[0] = 101 * 256
    assert seen(cleaned(drawn(values, 16, 0, tRNS=struct.pack(">H", 101 * 256))))[:2, 0, 0].tolist() == [255, 100]


def test_half_transparent_parts_lie_on_white() -> None:
    picture = Image.new("RGBA", (600, 600), (0, 0, 0, 127))
    assert np.unique(seen(cleaned(saved(picture, "PNG")))).tolist() == [128]
    palette = photo().quantize(8)
    alphas = bytes([0] * 8)
    assert (seen(cleaned(saved(palette, "PNG", transparency=alphas))) == 255).all()


def test_hidden_colours_do_not_shine_through() -> None:
    picture = Image.new("RGBA", (512, 512), (255, 0, 0, 0))  # red that nobody sees, beside blue
    picture.paste((0, 0, 255, 255), (0, 0, 255, 512))
    found = seen(cleaned(saved(picture, "PNG"))).astype(int)
    assert (found[..., 0] <= found[..., 2]).all()


# --- the middle, upright, small ----------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [(40, 20), (20, 40), (41, 20)])
def test_the_middle_is_cut_out(width: int, height: int) -> None:
    values = np.zeros((height, width, 3), np.uint8)
    top, left = (height - 20) // 2, (width - 20) // 2
    values[top : top + 20, left : left + 20] = 255
    found = seen(cleaned(saved(Image.fromarray(values), "PNG")))
    assert found.shape == (20, 20, 3) and (found == 255).all()


@pytest.mark.parametrize(("side", "kept"), [(8, 8), (256, 256), (257, 256), (1500, 256)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_large_pictures_are_scaled_down_and_small_ones_stay(side: int, kept: int, kind: str) -> None:
    found = seen(cleaned(saved(photo(side, side + 3), kind)))
    assert found.shape == (kept, kept, 3)
    quarter = kept // 4
    assert np.abs(found[quarter, quarter].astype(int) - [255, 0, 0]).max() < 60
    assert np.abs(found[-quarter, quarter].astype(int) - [0, 0, 255]).max() < 60


def test_fine_stripes_become_grey_and_no_pattern() -> None:
    values = np.zeros((1024, 1024, 3), np.uint8)
    values[:, ::2] = 255
    found = seen(cleaned(saved(Image.fromarray(values), "PNG"))).astype(int)[4:-4, 4:-4]
    assert np.abs(found - 127).max() <= 2


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_pictures_are_turned_upright(orientation: int, kind: str) -> None:
    back = {
        1: lambda v: v, 2: lambda v: v[:, ::-1], 3: lambda v: v[::-1, ::-1], 4: lambda v: v[::-1],
        5: lambda v: v.swapaxes(0, 1), 6: lambda v: np.rot90(v, 1), 7: lambda v: v[::-1, ::-1].swapaxes(0, 1),
        8: lambda v: np.rot90(v, -1),
    }  # fmt: skip
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = orientation, "a secret place"
    turned = Image.fromarray(np.ascontiguousarray(back[orientation](np.asarray(photo()))))
    file = cleaned(saved(turned, kind, exif=exif, **({"quality": 95, "subsampling": 0} if kind == "JPEG" else {})))
    assert np.abs(seen(file).astype(int) - np.asarray(photo())).max() <= 12
    assert b"secret" not in file


@QUIET
@pytest.mark.parametrize("exif", [b"", b"II", b"MM\0*\xff\xff\xff\xff", b"Exif\0\0" + b"\xff" * 99])
def test_a_broken_exif_changes_nothing(exif: bytes) -> None:
    assert cleaned(drawn(np.asarray(photo()), 8, 2, eXIf=exif)) == cleaned(rgb())
    segment = b"\xff\xe1" + struct.pack(">H", len(exif) + 8) + b"Exif\0\0" + exif
    file = saved(photo(), "JPEG")
    assert cleaned(file[:2] + segment + file[2:]) == cleaned(file)


@given(side=st.integers(8, 300), seed=st.integers(0, 99))
@settings(max_examples=20)
def test_a_clean_picture_stays_as_it_is(side: int, seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, (side, side + seed, 3), dtype=np.uint8)
    once = cleaned(saved(Image.fromarray(noise), "PNG"))
    assert cleaned(once) == once
    assert side > SIDE or (seen(once) == noise[:, seed // 2 : seed // 2 + side]).all()


# --- refusals ----------------------------------------------------------------------------------------------

STRANGERS = {
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


@pytest.mark.parametrize("what", STRANGERS)
def test_other_files_are_refused_by_what_is_in_them(what: str) -> None:
    assert "as PNG or JPEG" in refused(STRANGERS[what], f"must be a PNG or JPEG .* got {what}$|got {what}\\.").remedy


def test_nothing_and_too_much_are_refused() -> None:
    refused(b"", "the file is empty")
    refused(rgb() + bytes(10_000_000), "at most 10 MB, got 10.0 MB")


@QUIET
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize(
    ("width", "height", "saying"),
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
def test_sizes_out_of_bounds_are_refused_unread(kind: str, width: int, height: int, saying: str) -> None:
    assert refused(announcing(width, height, kind), saying).__cause__ is None


def test_a_size_that_is_a_lie_is_refused() -> None:
    refused(announcing(4000, 4000, "PNG"), "damaged or cut short")


def test_animations_are_refused() -> None:
    frames = [photo(), photo().rotate(90)]
    refused(saved(frames[0], "PNG", save_all=True, append_images=frames[1:]), "one still picture, got an animation")


def test_a_jpeg_that_never_ends_drawing_is_refused() -> None:
    file = saved(photo(), "JPEG", progressive=True)
    last = file[file.rindex(b"\xff\xda") : -2]
    refused(file[:-2] + last * 5000 + file[-2:], "at most 100 passes, got 5,0")


@pytest.mark.parametrize("kind", ["rgb", "jpeg", "progressive jpeg", "palette"])
def test_a_file_cut_anywhere_is_refused(kind: str) -> None:
    file = FINE[kind]()
    for end in range(1, len(file)):
        refused(file[:end], "damaged or cut short" if end > 7 else "must be a PNG or JPEG|damaged or cut short")


def test_words_that_swell_are_never_unpacked() -> None:
    swelling = b"Comment\0\0" + zlib.compress(bytes(5_000_000))
    file = joined([chunks(rgb())[0], *[(b"zTXt", swelling)] * 900, *chunks(rgb())[1:]])
    assert cleaned(file) == cleaned(rgb())


# --- whatever comes ----------------------------------------------------------------------------------------

SOURCES = tuple(make() for make in FINE.values())


def survives(file: bytes) -> None:
    try:
        found = seen(cleaned(file))
    except BadInput as refusal:
        assert refusal.message.startswith("picture: ") and refusal.remedy
    else:
        assert found.shape[0] >= 8


@given(st.binary(max_size=300), st.sampled_from([b"", PNG, b"\xff\xd8\xff", rgb()[:33], rgb()[:60]]))
@example(b"", b"\xff\xd8\xff")
def test_no_bytes_do_harm(noise: bytes, opening: bytes) -> None:
    survives(opening + noise)


@given(st.sampled_from(SOURCES), st.data())
@settings(max_examples=300)
def test_no_broken_file_does_harm(file: bytes, data: st.DataObject) -> None:
    spoilt = bytearray(file[: data.draw(st.integers(0, len(file)))] if data.draw(st.booleans()) else file)
    for at in data.draw(st.lists(st.integers(0, max(0, len(spoilt) - 1)), max_size=8)):
        spoilt[at : at + 1] = data.draw(st.binary(max_size=2))
    survives(bytes(spoilt))


@given(st.sampled_from([file for file in SOURCES if file.startswith(PNG)]), st.data())
@settings(max_examples=300)
def test_no_broken_chunk_with_a_right_checksum_does_harm(file: bytes, data: st.DataObject) -> None:
    parts = chunks(file)
    index = data.draw(st.integers(0, len(parts) - 1))
    kind, body = parts[index]
    unpacked = bytearray(zlib.decompress(body) if kind == b"IDAT" else body)
    for at in data.draw(st.lists(st.integers(0, max(0, len(unpacked) - 1)), min_size=1, max_size=4)):
        unpacked[at : at + 1] = data.draw(st.binary(max_size=2))
    parts[index] = (kind, zlib.compress(unpacked) if kind == b"IDAT" else bytes(unpacked))
    survives(joined(data.draw(st.permutations(parts)) if data.draw(st.booleans()) else parts))


# --- for models, and back ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 20, 30), (1, 1, 1), (3, 64, 64)])
def test_a_model_gets_its_own_shape(shape: tuple[int, int, int]) -> None:
    found = pixels(rgb(), shape)
    assert found.shape == shape and found.dtype == torch.float32 and found.is_contiguous()
    assert found.min() >= 0 and found.max() <= 1


def test_pixels_are_those_of_the_picture() -> None:
    wanted = torch.from_numpy(np.asarray(photo()).copy()).permute(2, 0, 1) / 255
    assert torch.equal(pixels(rgb(), (3, 24, 24)), wanted)
    grey = pixels(rgb(), (1, 24, 24))
    assert torch.allclose(grey[0, 0, [0, -1]], torch.tensor([0.299, 0.587]), atol=0.003)
    large = saved(photo(900, 700), "PNG")
    assert torch.equal(pixels(large, (3, 32, 32)), pixels(cleaned(large), (3, 32, 32)))


@pytest.mark.parametrize("shape", [(784,), (2, 8, 8), (3, 0, 8), (3, 8, 8, 8)])
def test_a_model_without_pictures_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="model input: must be 1 or 3 channels"):
        pixels(rgb(), shape)


@given(arrays(np.uint8, array_shapes(min_dims=3, max_dims=3, max_side=40).map(lambda s: (1 + 2 * (s[0] % 2), *s[1:]))))
def test_what_is_shown_is_what_was_computed(values: Values) -> None:
    with Image.open(io.BytesIO(png(torch.from_numpy(values).float() / 255))) as picture:
        picture.load()
        shown = np.asarray(picture).reshape(*values.shape[1:], -1)
        assert picture.info == {} and picture.mode == ("L" if len(values) == 1 else "RGB")
    assert (shown == values.transpose(1, 2, 0)).all()


def test_what_is_no_colour_is_shown_all_the_same() -> None:
    picture = torch.tensor([float("nan"), float("inf"), -float("inf"), -3.0, 7.0, 0.5]).view(1, 2, 3).requires_grad_()
    with Image.open(io.BytesIO(png(picture))) as shown:
        assert np.asarray(shown).ravel().tolist() == [0, 255, 0, 0, 255, 128]
    assert png(picture) == png(picture.detach().double())


@pytest.mark.parametrize("shape", [(32, 32), (4, 8, 8), (3, 0, 8), (1, 3, 8, 8)])
def test_what_is_no_picture_cannot_be_shown(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="picture: must be 1 or 3 channels"):
        png(torch.zeros(shape))
