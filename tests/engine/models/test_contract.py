"""The contract of every model on the shelf; a new model is tested without a change here."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

from engine.compute.dp_sgd import ghost_module
from engine.compute.sgd import image_layout, seed_dropout
from engine.errors import BadInput
from engine.models import MODELS
from engine.models.base import NOISE_REGION, SIGMOID_NOISE_REGION
from engine.seeds import Seeds
from tests.engine.makers import parts_with_one_change

NAMES = MODELS.names()
PICTURES = [(1, 28, 28), (3, 32, 32)]
SENTENCES = [(12,), (40,)]


def shapes(name):
    """The input shapes that this model reads: those of pictures, or of sentences."""
    part = MODELS.make(name)
    return [shape for shape in (*PICTURES, *SENTENCES) if not part.misfit(shape)]


PICTURE_MODELS = [name for name in NAMES if shapes(name) == PICTURES]


def built(name, shape=None, classes=10, seed=0, **values):
    part = MODELS.make({"name": name, **values})
    return part.build(shape or shapes(name)[-1], classes, Seeds(seed).rng("weights"))


def inputs(name, count, shape=None):
    return MODELS.make(name).example(shape or shapes(name)[-1], count, Seeds(0).rng("pictures"))


@pytest.mark.parametrize("name", NAMES)
def test_a_model_has_a_title_a_source_and_a_summary(name):
    part = MODELS.make(name)
    assert part.title and part.source and part.summary().endswith(".")
    for field in type(part).model_fields.values():
        assert field.title and field.description and field.description.endswith(".")
    assert MODELS.make(json.loads(json.dumps(MODELS.dump(part)))) == part


@pytest.mark.parametrize("name", NAMES)
def test_a_model_says_whether_it_normalises(name):
    layers = (nn.GroupNorm, nn.LayerNorm, nn.BatchNorm2d, nn.InstanceNorm2d)
    normalises = any(isinstance(layer, layers) for layer in built(name).modules())
    assert MODELS[name].normalises is normalises


@pytest.mark.parametrize("name", NAMES)
def test_less_noise_hides_pictures_from_sigmoids(name):
    sigmoids = any(isinstance(layer, nn.Sigmoid) for layer in built(name).modules())
    assert MODELS.make(name).noise_region() == (SIGMOID_NOISE_REGION if sigmoids else NOISE_REGION)


@pytest.mark.parametrize("name", NAMES)
def test_every_changed_field_changes_the_dump(name):
    part = MODELS.make(name)
    others = list(parts_with_one_change(part))
    dumps = [MODELS.dump(model) for model in (part, *others)]
    assert all(dumps.count(dump) == 1 for dump in dumps) and len(others) == len(type(part).model_fields)
    assert [MODELS.make(json.loads(json.dumps(dump))) for dump in dumps] == [part, *others]


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("mlp", {"hidden": 0}, "mlp: hidden: must be a whole number between 1 and 4096, got 0"),
        ("mlp", {"dropout": 1.0}, "mlp: dropout: must be a number at least 0 and below 1, got 1"),
        ("mlp", {"bias": 1}, "mlp: bias: must be true or false, got 1"),
        ("lenet-sigmoid", {"init": "large"}, "lenet-sigmoid: init: must be one of default, uniform, got large"),
        ("lenet5", {"width": 3}, "lenet5: width: no such parameter"),
    ],
)
def test_a_bad_value_gives_an_error_with_the_rule(name, values, sentence):
    with pytest.raises(BadInput) as caught:
        MODELS.make({"name": name, **values})
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_reads_pictures_or_sentences(name):
    assert shapes(name) in (PICTURES, SENTENCES)
    for shape in shapes(name):
        x = inputs(name, 6, shape)
        assert x.shape == (6, *shape) and torch.equal(x, inputs(name, 6, shape))
        assert x.is_floating_point() is (shape in PICTURES)


@pytest.mark.parametrize(("name", "shape"), [(name, shape) for name in NAMES for shape in shapes(name)])
def test_a_model_reads_both_memory_layouts(name, shape):
    module = built(name, shape, classes=7).eval()
    x = inputs(name, 4, shape)
    logits = module(x)
    assert logits.shape == (4, 7)
    last = module.to(memory_format=torch.channels_last)(image_layout(x))
    torch.testing.assert_close(logits, last, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("name", "shape"), [(name, shape) for name in NAMES for shape in shapes(name)])
def test_a_model_on_meta_has_one_output_per_class(name, shape):
    """A tensor on meta has a shape and no numbers. Arithmetic with one that stayed on the processor fails."""
    with torch.device("meta"):
        module = MODELS.make(name).layers(shape, 7)
    seed_dropout(module, Seeds(0).rng("dropout"))
    x = inputs(name, 4, shape).to("meta")
    for logits in (module.train()(x), module.eval()(x)):
        assert logits.shape == (4, 7) and logits.is_meta


@pytest.mark.parametrize("name", NAMES)
def test_weights_come_from_the_generator_alone(name):
    before = torch.get_rng_state()
    first, again, other = (dict(built(name, seed=seed).named_parameters()) for seed in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert all(torch.isfinite(tensor).all() and tensor.requires_grad for tensor in first.values())
    drawn = [key for key in first if not key.startswith("norm")]
    assert drawn and all(not torch.equal(first[key], other[key]) for key in drawn)


def reset_copy(layer):
    """A copy of the layer with weights drawn by torch itself."""
    fresh = copy.deepcopy(layer)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        fresh.reset_parameters()
    return fresh


@pytest.mark.parametrize("name", NAMES)
def test_the_initial_weights_have_the_distribution_of_torch(name):
    module = built(name)
    for layer in module.modules():
        if isinstance(layer, nn.GroupNorm):
            assert bool((layer.weight == 1).all()) and bool((layer.bias == 0).all())
        elif isinstance(layer, nn.Linear | nn.Conv2d):
            for ours, theirs in zip(layer.parameters(), reset_copy(layer).parameters(), strict=True):
                bound = layer.weight[0].numel() ** -0.5
                assert float(ours.detach().abs().max()) <= bound
                if ours.numel() > 500:
                    assert float(ours.detach().abs().max()) > 0.95 * bound
                    assert float(ours.detach().std()) == pytest.approx(float(theirs.detach().std()), rel=0.1)
        elif isinstance(layer, nn.Embedding | nn.LSTM):
            for ours, theirs in zip(layer.parameters(), reset_copy(layer).parameters(), strict=True):
                assert float(ours.detach().std()) == pytest.approx(float(theirs.detach().std()), rel=0.1)
                assert float(ours.detach().abs().max()) == pytest.approx(float(theirs.detach().abs().max()), rel=0.2)


@pytest.mark.parametrize("name", NAMES)
def test_the_head_has_one_row_per_class(name):
    module = built(name, classes=7)
    names = MODELS.make(name).head(module)
    parameters = dict(module.named_parameters())
    assert list(parameters)[-len(names) :] == list(names)
    assert all(parameters[parameter].shape[0] == 7 for parameter in names)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_learns_one_batch(name):
    module = built(name).train()
    x = inputs(name, 8)
    y = torch.arange(8)
    losses = []
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(8):
        loss = functional.cross_entropy(module(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize("name", NAMES)
def test_per_example_norms_under_opacus_are_correct(name):
    shape = shapes(name)[0]
    module = built(name, shape).train()
    x = inputs(name, 3, shape)
    y = torch.tensor([1, 2, 3])
    norms = []
    for place in range(3):
        loss = functional.cross_entropy(module(x[place : place + 1]), y[place : place + 1])
        gradients = torch.autograd.grad(loss, list(module.parameters()))
        norms.append(torch.cat([gradient.flatten() for gradient in gradients]).norm())
    wrapped = ghost_module(module, 1.0)  # the wrapper of DP-SGD training
    functional.cross_entropy(wrapped(x), y, reduction="sum").backward()
    torch.testing.assert_close(wrapped.get_norm_sample(), torch.stack(norms), atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_has_no_buffers_and_no_layers_that_work_in_place(name):
    module = built(name)
    assert not list(module.buffers())
    assert not any(getattr(layer, "inplace", False) for layer in module.modules())


TINY = (1, 3, 3)


def test_only_the_mlp_reads_pictures_of_any_size():
    assert [name for name in PICTURE_MODELS if not MODELS.make(name).misfit(TINY)] == ["mlp"]


@pytest.mark.parametrize("name", NAMES)
def test_a_shape_that_a_model_cannot_read_is_a_problem_and_an_error(name):
    part = MODELS.make(name)
    assert part.problems(SimpleNamespace(dataset=SimpleNamespace(shape=shapes(name)[0]))) == ()
    unreadable = {
        (50,): "needs pictures, got sentences of 50 words",
        (7, 7): "needs pictures",
        TINY: "needs pictures of",
    }
    if name == "mlp":
        del unreadable[TINY]
    if name not in PICTURE_MODELS:
        unreadable = {(1, 28, 28): "needs text, got pictures of shape", (7, 7): "needs text"}
    for shape, words in unreadable.items():
        [problem] = part.problems(SimpleNamespace(dataset=SimpleNamespace(shape=shape)))
        assert problem.fatal and problem.remedy and problem.reason.startswith(f"{name}: {words}")
        with pytest.raises(BadInput, match=words):
            part.build(shape, 10, Seeds(0).rng("weights"))


@pytest.mark.parametrize("name", NAMES)
def test_a_model_can_be_stacked_or_raises_an_error(name):
    part = MODELS.make(name)
    if not part.stackable:
        with pytest.raises(Exception, match=f"{name}: clients cannot be stacked"):
            part.stacked({}, torch.zeros(1, 1, 3, 32, 32), torch.zeros(1, 1).long(), [], [1])
        return
    modules = [built(name, seed=seed) for seed in range(3)]
    weights = {}
    for key, _ in modules[0].named_parameters():
        weights[key] = torch.stack([module.get_parameter(key).detach() for module in modules])
    x = torch.rand(3, 5, 3, 32, 32, generator=Seeds(0).rng("pictures"))
    y = torch.randint(0, 10, (3, 5), generator=Seeds(0).rng("labels"))
    rngs = [Seeds(0).rng("dropout", client) for client in range(3)]
    stacked = part.stacked(weights, x, y, rngs, [5, 5, 2])
    for client, rows in enumerate((5, 5, 2)):
        module = modules[client]
        loss = functional.cross_entropy(module(x[client, :rows]), y[client, :rows])
        gradients = torch.autograd.grad(loss, list(module.parameters()))
        for key, gradient in zip(weights, gradients, strict=True):
            torch.testing.assert_close(stacked[key][client], gradient, atol=1e-6, rtol=1e-5)
