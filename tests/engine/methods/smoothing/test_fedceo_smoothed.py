"""What a smoothing says: singular values, roughness and accuracy of the very models, and nothing comes back of it."""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.compute.context import Evaluate, Report
from engine.compute.sgd import scores
from engine.compute.tensor_svd import FLOOR, soft, spectra, t_tsvd, thinned
from engine.compute.threads import ThreadTeam
from engine.events import ByClass, Event, Kept, Smoothed, decode, encode
from engine.methods.smoothing import base
from engine.methods.smoothing.base import told_of_slices
from engine.training import evaluate
from engine.training.evaluate import judge
from engine.training.loop import heard, run
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import Exchange, opening, play, server_desk
from tests.engine.makers import tiny, told

pytestmark = pytest.mark.slow

Stacks = dict[str, Tensor]


def ceo(mode: str = "slot", **fields: Any) -> dict[str, Any]:
    return {"name": "fedceo", "every": 2, "unsampled-clients": mode, "smoothing": 2.0, **fields}


def smoothing(spec_of: dict[str, Any]) -> tuple[LoadedPlan, Smoothed, Stacks, Stacks]:
    """The plan, what the second round says, and the models of its clients before and after."""
    there, said, seen = load_plan(tiny(**spec_of)), list[Report](), list[Exchange]()
    with ThreadTeam(2) as team:
        state = play(there, opening(there), 1, team)
        play(there, state, 2, team, watch=seen.append, report=said.append)
        found = [heard(one, lambda models: judge(there, team, models)) for one in said]
    [event] = [one for one in found if isinstance(one, Smoothed)]
    step = there.method.server_step  # type: ignore[attr-defined]
    pairs = list(zip(seen[0].packets, seen[0].uploads, strict=True))
    before = {
        name: torch.stack([packet[name] + step * one.tensors[name] for packet, one in pairs]) for name in state.server
    }
    after = {name: t_tsvd(stack, event.threshold) for name, stack in before.items()}
    return there, event, before, after


def apart(layer: Tensor) -> list[list[float]]:
    """For each row and client the mean squared distance from the others, straight from the definition."""
    many = len(layer)
    return [
        [sum(float((layer[k, c] - layer[j, c]).square().sum()) for j in range(many)) / (many - 1) for k in range(many)]
        for c in range(layer.shape[1])
    ]


def close(found: ByClass, expected: list[list[float]], room: float = 1e-3) -> None:
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected, strict=True):
        assert list(row) == pytest.approx(wanted, rel=room, abs=1e-9)


# --- what it says ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampled", [5, 6])
def test_the_spectra_are_those_of_the_models_before(sampled: int) -> None:
    where = {"sampling": "fixed", "sampled": sampled, "model": {"name": "mlp", "bias": True}}
    there, event, before, _ = smoothing({"method": ceo(noise=3.0, growth=1.5), **where})
    assert event.round == 2 and event.threshold == pytest.approx(1.5 / 4) and event.clients == there.cohort(2)
    assert set(event.spectra) == set(event.ranks) == set(before)
    for name, stack in before.items():
        matrices = stack.double().reshape(sampled, 1 if stack.dim() == 2 else stack.shape[1], -1)
        every = torch.linalg.svdvals(torch.fft.fft(matrices, dim=0))[: sampled // 2 + 1]
        wanted = every[:, [rank - 1 for rank in event.ranks[name]]].clamp(min=FLOOR * float(every.max()))
        assert [len(row) for row in event.spectra[name]] == [len(event.ranks[name])] * (sampled // 2 + 1)
        floor = 1e-4 * float(every.max())  # below it the sixth digit of single precision would be asked for
        torch.testing.assert_close(
            torch.tensor(event.spectra[name]).double().clamp(min=floor), wanted.clamp(min=floor), rtol=1e-3, atol=0
        )
        assert all(before >= after for row in event.spectra[name] for before, after in pairwise(row))


@pytest.mark.parametrize("bias", [False, True])
def test_the_roughness_is_how_far_a_clients_row_is_from_the_others(bias: bool) -> None:
    there, event, before, after = smoothing({"method": ceo(noise=3.0), "model": {"name": "mlp", "bias": bias}})
    for found, stacks in zip(event.rough, (before, after), strict=True):
        layer = stacks["head.weight"]
        if bias:
            layer = torch.cat([layer, stacks["head.bias"][..., None]], 2)
        close(found, apart(layer))
    assert len(event.rough[0]) == there.world.classes
    assert sum(map(sum, event.rough[1])) < sum(map(sum, event.rough[0]))  # type: ignore[arg-type]


def test_the_accuracy_is_that_of_each_model_on_the_first_pictures_of_each_class() -> None:
    there, event, before, after = smoothing({"method": {**ceo(noise=0.1), "server-step": 1.0}})
    for found, stacks in zip(event.accuracy, (before, after), strict=True):
        for label, row in enumerate(found):
            x = there.test_x[there.test_labels == label][: evaluate.JUDGED // 10]
            for place, value in enumerate(row):
                model = {name: stack[place] for name, stack in stacks.items()}
                share = float((scores(there.world, model, x).argmax(1) == label).float().mean())
                assert value == pytest.approx(share, abs=0.021)  # one picture of fifty may lie on the edge
    assert len({value for row in event.accuracy[0] for value in row}) > 3


def test_a_class_without_test_pictures_has_no_accuracy() -> None:
    there = load_plan(tiny())
    bare = replace(
        there, test_x=there.test_x[there.test_labels != 3], test_labels=there.test_labels[there.test_labels != 3]
    )
    with ThreadTeam(1) as team:
        found = judge(bare, team, {name: torch.stack([one, one]) for name, one in there.world.weights.items()})
    assert found[3] == (None, None) and len(found) == 10 and all(None not in row for row in found[:3] + found[4:])


def test_hardly_any_threshold_leaves_everything_as_it_was() -> None:
    _, event, _, _ = smoothing({"method": ceo(noise=3.0, smoothing=1e6)})
    close(event.rough[1], [list(row) for row in event.rough[0]])  # type: ignore[arg-type]
    moved = [a != b for one, other in zip(*event.accuracy, strict=True) for a, b in zip(one, other, strict=True)]
    assert sum(moved) <= 2  # a picture on the edge
    assert all(event.threshold < value for rows in event.spectra.values() for value in rows[0])


def test_a_threshold_above_all_leaves_the_clients_alike() -> None:
    _, event, _, _ = smoothing({"method": ceo(noise=3.0, smoothing=1e-3)})
    assert all(value == 0 for row in event.rough[1] for value in row)
    assert all(
        row == (1.0,) * len(event.clients) if not label else not any(row) for label, row in enumerate(event.accuracy[1])
    )


def test_a_client_alone_is_rough_nowhere() -> None:
    _, event, _, _ = smoothing({"method": ceo(noise=3.0), "sampling": "fixed", "sampled": 1})
    assert len(event.clients) == 1 and event.rough == (((0.0,),) * 10,) * 2
    assert all(len(rows) == 1 for rows in event.spectra.values())


def test_of_many_clients_the_first_twenty_are_told_of() -> None:
    many: dict[str, Any] = {"sampling": "all", "clients": 24, "sampled": 24}
    _, event, before, _ = smoothing({"method": ceo(noise=3.0), **many})
    assert event.clients == tuple(range(20)) and {len(row) for table in event.accuracy for row in table} == {20}
    close(event.rough[0], [row[:20] for row in apart(before["head.weight"])])
    assert {len(rows) for rows in event.spectra.values()} == {13}


def test_of_the_sum_alone_frequency_0_is_told() -> None:
    _, event, before, _ = smoothing({"method": ceo("mean", noise=3.0), "sampling": "fixed"})
    assert (event.clients, event.rough, event.accuracy) == ((), ((), ()), ((), ()))
    assert event.threshold == 0.25
    for name, stack in before.items():
        values = 6 * torch.linalg.svdvals(stack.double().mean(0))
        wanted = [float(values[rank - 1]) for rank in event.ranks[name]]
        assert len(event.spectra[name]) == 1 and event.spectra[name][0] == pytest.approx(wanted, rel=1e-3)


def test_averaged_over_orders_the_spectra_are_those_of_one_of_them() -> None:
    spec = tiny(method=ceo("own", noise=3.0, **{"client-order": "averaged"}), sampling="fixed", sampled=6)
    there, said, seen = load_plan(spec), list[Report](), list[Exchange]()
    with ThreadTeam(2) as team:
        play(there, play(there, opening(there), 1, team), 2, team, watch=seen.append, report=said.append)
        found = [heard(one, lambda models: ()) for one in said]
    [event] = [one for one in found if isinstance(one, Smoothed)]
    step = there.method.server_step  # type: ignore[attr-defined]
    pairs = list(zip(seen[0].packets, seen[0].uploads, strict=True))
    stack = torch.stack([packet["head.weight"] + step * one.tensors["head.weight"] for packet, one in pairs])
    matched = []
    for order in permutations(range(6)):
        _, values = thinned(spectra(stack[list(order)]))
        wanted = torch.tensor(event.spectra["head.weight"])
        matched.append(torch.allclose(values.float(), wanted, rtol=1e-3, atol=1e-4 * float(wanted.max())))
    assert any(matched) and not matched[0]  # by id it would be another


def test_of_the_sum_a_round_to_which_nobody_came_is_smoothed_too() -> None:
    """Left out, it would tell an outsider that nobody came."""
    there = load_plan(tiny(method=ceo("mean", noise=3.0)))
    empty, server = {**opening(there).server}, opening(there).server
    with ThreadTeam(1) as team:
        said = list[Report]()
        context = replace(server_desk(there, (), 2, 1, 1, team), report=said.append)
        merged, memory = there.method.merge(server, (), {}, context)
    bare = {name.partition("/")[2]: tensor for name, tensor in memory.items()}
    assert said and bare.keys() == empty.keys()
    for name, tensor in bare.items():
        torch.testing.assert_close(merged[name], soft(tensor, 0.25 / there.world.sampled))
    assert any(not torch.equal(merged[name], bare[name]) for name in bare)


def test_where_rows_are_no_classes_no_roughness_is_told() -> None:
    there = load_plan(tiny())
    stacks = {name: torch.stack([one, one + 1]) for name, one in there.world.weights.items()}
    with ThreadTeam(1) as team:
        context = server_desk(there, (1, 2), 2, 1, 1, team)
        other = replace(context, world=replace(there.world, classes=11))
        rough = told_of_slices(other, 0.5, (1, 2), slice(None), list(stacks), stacks, stacks, lambda models: ()).rough
        usual = told_of_slices(context, 0.5, (1, 2), slice(None), list(stacks), stacks, stacks, lambda models: ()).rough
    assert rough == ((), ()) and len(usual[0]) == 10


@pytest.mark.parametrize("fields", [{}, {"client-order": "averaged"}, {"layers": 1}], ids=str)
def test_only_what_is_smoothed_has_a_spectrum_and_all_survives_json(fields: dict[str, Any]) -> None:
    _, event, before, _ = smoothing({"method": ceo("own", noise=3.0, **fields)})
    assert set(event.spectra) == ({"head.weight"} if "layers" in fields else set(before))
    assert decode(json.loads(json.dumps(encode(event), allow_nan=False))) == event
    assert len(json.dumps(encode(event))) < 20_000


# --- and nothing comes back of it --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["slot", "mean"])
def test_a_run_is_the_same_whether_anybody_listens_or_not(mode: str) -> None:
    spec = tiny(method=ceo(mode, noise=2.0), rounds=4)
    kept = [one for one in run(spec) if isinstance(one, Kept) and one.kind == "state"]
    there = load_plan(spec)
    state = opening(there)
    with ThreadTeam(2) as team:
        for round in range(1, 5):
            state = play(there, state, round, team)
            heard_of = [one.payload for one in kept if one.round == round]
            for payload in heard_of:
                assert payload is not None
                mine = state.payload()
                assert payload.keys() == mine.keys() and all((payload[name] == mine[name]).all() for name in mine)
    assert {one.round for one in kept} >= {2, 4}


def test_resumed_from_any_state_it_says_the_same_smoothings() -> None:
    spec = tiny(method=ceo("own", noise=2.0), rounds=5)
    events = list(run(spec, threads=2))
    assert [one.round for one in events if isinstance(one, Smoothed)] == [2, 4]
    for state in [one for one in events if isinstance(one, Kept) and one.kind == "state" and 0 < one.round < 5]:
        again = told(run(spec, resume=state))
        assert again == told(events)[-len(again) :]


def test_the_models_are_let_go_as_soon_as_they_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[weakref.ref[Tensor]] = []

    def listening(context: Any, threshold: float, clients: Any, order: Any, chosen: Any, models: Mapping[str, Tensor],
                  slices: Any, judge: Evaluate) -> Event:  # fmt: skip
        held.extend(weakref.ref(tensor) for tensor in models.values())
        return told_of_slices(context, threshold, clients, order, chosen, models, slices, judge)

    monkeypatch.setattr(base, "told_of_slices", listening)
    for event in run(tiny(method=ceo(noise=2.0), rounds=2)):
        if isinstance(event, Smoothed):
            assert held and not any(one() is not None for one in held)
    assert held
