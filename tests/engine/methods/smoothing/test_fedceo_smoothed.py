"""The event of a smoothing: singular values, roughness and accuracy of the models. It never changes a run."""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise, permutations
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.compute.context import ClientContext, Evaluate, Report
from engine.compute.sgd import scores
from engine.compute.tensor_svd import FLOOR, soft_threshold, spectra, t_tsvd, thinned
from engine.compute.threads import ThreadTeam
from engine.events import BEFORE_SMOOTHING, ByClass, Event, Kept, Smoothed, decode, encode
from engine.methods.smoothing import base
from engine.methods.smoothing.base import event_of_slices
from engine.training import evaluate
from engine.training.evaluate import accuracy_by_class
from engine.training.loop import event_of_report, run
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import Exchange, first_state, server_context, train_round
from tests.engine.makers import replayable, tiny_spec

pytestmark = pytest.mark.slow

Stacks = dict[str, Tensor]


def ceo(mode: str = "slot", **fields: Any) -> dict[str, Any]:
    return {"name": "fedceo", "every": 2, "unsampled-clients": mode, "smoothing": 2.0, **fields}


def second_round(plan: LoadedPlan, evaluate: Evaluate | None = None) -> tuple[Smoothed, Stacks]:
    """The event of the second round, and the noisy models (clients, ...) before its smoothing."""
    reports: list[Report] = []
    exchanges: list[Exchange] = []
    with ThreadTeam(2) as team:
        state = train_round(plan, first_state(plan), 1, team)
        train_round(plan, state, 2, team, watch=exchanges.append, report=reports.append)
        if evaluate is None:
            evaluate = partial(accuracy_by_class, plan, team)
        events = [event_of_report(report, evaluate) for report in reports]
    [event] = [event for event in events if isinstance(event, Smoothed)]
    step = plan.method.server_step  # type: ignore[attr-defined]
    pairs = list(zip(exchanges[0].packets, exchanges[0].uploads, strict=True))
    models = {}
    for name in state.server:
        models[name] = torch.stack([packet.model[name] + step * upload.model[name] for packet, upload in pairs])
    return event, models


def smoothing(fields: dict[str, Any]) -> tuple[LoadedPlan, Smoothed, Stacks, Stacks]:
    """The plan, the event of the second round, and the models of its clients before and after."""
    plan = load_plan(tiny_spec(**fields))
    event, before = second_round(plan)
    after = {name: t_tsvd(stack, event.threshold) for name, stack in before.items()}
    return plan, event, before, after


def distances(layer: Tensor) -> list[list[float]]:
    """For each row and client the mean squared distance from the other clients, computed from the definition."""
    clients = len(layer)
    table = []
    for row in layer.unbind(1):  # (clients, ...)
        squares = [[float((row[k] - row[j]).square().sum()) for j in range(clients)] for k in range(clients)]
        table.append([sum(distance) / (clients - 1) for distance in squares])
    return table


def assert_close(actual: ByClass, expected: list[list[float]], rel: float = 1e-3) -> None:
    assert len(actual) == len(expected)
    for row, expected_row in zip(actual, expected, strict=True):
        assert list(row) == pytest.approx(expected_row, rel=rel, abs=1e-9)


# --- the event ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampled", [5, 6])
def test_the_spectra_are_those_of_the_models_before(sampled: int) -> None:
    where = {"sampling": "fixed", "sampled": sampled, "model": {"name": "mlp", "bias": True}}
    plan, event, before, _ = smoothing({"method": ceo(noise=3.0, growth=1.5), **where})
    assert event.round == 2 and event.threshold == pytest.approx(1.5 / 4) and event.clients == plan.cohort(2)
    assert set(event.spectra) == set(event.ranks) == set(before)
    for name, stack in before.items():
        matrices = stack.double().reshape(sampled, 1 if stack.dim() == 2 else stack.shape[1], -1)
        values = torch.linalg.svdvals(torch.fft.fft(matrices, dim=0))[: sampled // 2 + 1]
        largest = float(values.max())
        expected = values[:, [rank - 1 for rank in event.ranks[name]]].clamp(min=FLOOR * largest)
        assert [len(row) for row in event.spectra[name]] == [len(event.ranks[name])] * (sampled // 2 + 1)
        floor = 1e-4 * largest  # a test below it would need the sixth digit of single precision
        reported = torch.tensor(event.spectra[name]).double().clamp(min=floor)
        torch.testing.assert_close(reported, expected.clamp(min=floor), rtol=1e-3, atol=0)
        assert all(larger >= smaller for row in event.spectra[name] for larger, smaller in pairwise(row))


@pytest.mark.parametrize("bias", [False, True])
def test_the_roughness_is_the_distance_of_a_clients_row_from_the_others(bias: bool) -> None:
    plan, event, before, after = smoothing({"method": ceo(noise=3.0), "model": {"name": "mlp", "bias": bias}})
    for rough, stacks in zip(event.rough, (before, after), strict=True):
        layer = stacks["head.weight"]
        if bias:
            layer = torch.cat([layer, stacks["head.bias"][..., None]], 2)
        assert_close(rough, distances(layer))
    assert len(event.rough[0]) == plan.world.classes
    assert sum(map(sum, event.rough[1])) < sum(map(sum, event.rough[0]))  # type: ignore[arg-type]


def test_the_accuracy_is_that_of_each_model_on_the_first_pictures_of_each_class() -> None:
    plan, event, before, after = smoothing({"method": {**ceo(noise=0.1), "server-step": 1.0}})
    for accuracy, stacks in zip(event.accuracy, (before, after), strict=True):
        for label, row in enumerate(accuracy):
            x = plan.test_x[plan.test_labels == label][: evaluate.REPORT_PICTURES // 10]
            for place, value in enumerate(row):
                model = {name: stack[place] for name, stack in stacks.items()}
                share = float((scores(plan.world, model, x).argmax(1) == label).float().mean())
                assert value == pytest.approx(share, abs=0.021)  # one picture of fifty may be on the decision boundary
    assert len({value for row in event.accuracy[0] for value in row}) > 3


def test_a_class_without_test_pictures_has_no_accuracy() -> None:
    plan = load_plan(tiny_spec())
    others = plan.test_labels != 3
    without_3 = replace(plan, test_x=plan.test_x[others], test_labels=plan.test_labels[others])
    stacks = {name: torch.stack([tensor, tensor]) for name, tensor in plan.world.weights.items()}
    with ThreadTeam(1) as team:
        accuracy = accuracy_by_class(without_3, team, stacks)
    assert accuracy[3] == (None, None) and len(accuracy) == 10
    assert all(None not in row for row in accuracy[:3] + accuracy[4:])


def test_a_tiny_threshold_changes_nothing() -> None:
    _, event, _, _ = smoothing({"method": ceo(noise=3.0, smoothing=1e6)})
    assert_close(event.rough[1], [list(row) for row in event.rough[0]])  # type: ignore[arg-type]
    before, after = (list(chain.from_iterable(table)) for table in event.accuracy)
    changed = [a != b for a, b in zip(before, after, strict=True)]
    assert sum(changed) <= 2  # a picture on the decision boundary
    assert all(event.threshold < value for rows in event.spectra.values() for value in rows[0])


def test_a_threshold_above_all_values_makes_the_clients_equal() -> None:
    _, event, _, _ = smoothing({"method": ceo(noise=3.0, smoothing=1e-3)})
    assert all(value == 0 for row in event.rough[1] for value in row)
    first, *others = event.accuracy[1]
    assert first == (1.0,) * len(event.clients)
    assert not any(chain.from_iterable(others))


def test_a_single_client_has_roughness_zero() -> None:
    _, event, _, _ = smoothing({"method": ceo(noise=3.0), "sampling": "fixed", "sampled": 1})
    assert len(event.clients) == 1 and event.rough == (((0.0,),) * 10,) * 2
    assert all(len(rows) == 1 for rows in event.spectra.values())


def test_the_event_describes_at_most_twenty_clients() -> None:
    fields: dict[str, Any] = {"sampling": "all", "clients": 24, "sampled": 24}
    _, event, before, _ = smoothing({"method": ceo(noise=3.0), **fields})
    assert event.clients == tuple(range(20)) and {len(row) for table in event.accuracy for row in table} == {20}
    assert_close(event.rough[0], [row[:20] for row in distances(before["head.weight"])])
    assert {len(rows) for rows in event.spectra.values()} == {13}


def test_with_the_sum_alone_the_event_has_frequency_0_only() -> None:
    _, event, before, _ = smoothing({"method": ceo("mean", noise=3.0), "sampling": "fixed"})
    assert (event.clients, event.rough, event.accuracy) == ((), ((), ()), ((), ()))
    assert event.threshold == 0.25
    for name, stack in before.items():
        values = 6 * torch.linalg.svdvals(stack.double().mean(0))
        expected = [float(values[rank - 1]) for rank in event.ranks[name]]
        assert len(event.spectra[name]) == 1 and event.spectra[name][0] == pytest.approx(expected, rel=1e-3)


def test_with_averaged_orders_the_spectra_are_those_of_one_order() -> None:
    spec = tiny_spec(method=ceo("own", noise=3.0, **{"client-order": "averaged"}), sampling="fixed", sampled=6)
    event, models = second_round(load_plan(spec), evaluate=lambda models: ())
    stack = models["head.weight"]
    reported = torch.tensor(event.spectra["head.weight"])
    matches = []
    for order in permutations(range(6)):
        _, values = thinned(spectra(stack[list(order)]))
        matches.append(torch.allclose(values.float(), reported, rtol=1e-3, atol=1e-4 * float(reported.max())))
    assert any(matches) and not matches[0]  # the order by id gives other values


def test_with_the_sum_alone_an_empty_round_is_smoothed_too() -> None:
    """A skipped smoothing would show an outsider that no client took part."""
    plan = load_plan(tiny_spec(method=ceo("mean", noise=3.0)))
    server = first_state(plan).server
    reports: list[Report] = []
    with ThreadTeam(1) as team:
        context = replace(server_context(plan, (), 2, 1, 1, team), report=reports.append)
        merged, memory = plan.method.merge(server, (), {}, context)
    before = memory[BEFORE_SMOOTHING]
    assert reports and before.keys() == server.keys()
    for name, tensor in before.items():
        torch.testing.assert_close(merged[name], soft_threshold(tensor, 0.25 / plan.world.sampled))
    assert any(not torch.equal(merged[name], before[name]) for name in before)


def test_without_one_row_per_class_the_event_has_no_roughness() -> None:
    plan = load_plan(tiny_spec())
    stacks = {name: torch.stack([tensor, tensor + 1]) for name, tensor in plan.world.weights.items()}

    def rough(context: ClientContext) -> tuple[ByClass, ByClass]:
        names = list(stacks)
        event = event_of_slices(context, 0.5, (1, 2), slice(None), names, stacks, stacks, lambda models: ())
        return event.rough

    with ThreadTeam(1) as team:
        context = server_context(plan, (1, 2), 2, 1, 1, team)
        assert rough(replace(context, world=replace(plan.world, classes=11))) == ((), ())
        assert len(rough(context)[0]) == 10


@pytest.mark.parametrize("fields", [{}, {"client-order": "averaged"}, {"layers": 1}], ids=str)
def test_smoothed_layers_have_a_spectrum_and_the_event_survives_json(fields: dict[str, Any]) -> None:
    _, event, before, _ = smoothing({"method": ceo("own", noise=3.0, **fields)})
    assert set(event.spectra) == ({"head.weight"} if "layers" in fields else set(before))
    assert decode(json.loads(json.dumps(encode(event), allow_nan=False))) == event
    assert len(json.dumps(encode(event))) < 20_000


# --- the event never changes a run -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["slot", "mean"])
def test_a_run_is_the_same_with_and_without_reports(mode: str) -> None:
    spec = tiny_spec(method=ceo(mode, noise=2.0), rounds=4)
    stored = [event for event in run(spec) if isinstance(event, Kept) and event.kind == "state"]
    plan = load_plan(spec)
    state = first_state(plan)
    with ThreadTeam(2) as team:
        for round in range(1, 5):
            state = train_round(plan, state, round, team)
            payloads = [event.payload for event in stored if event.round == round]
            for payload in payloads:
                assert payload is not None
                expected = state.payload()
                assert payload.keys() == expected.keys()
                assert all((payload[name] == expected[name]).all() for name in expected)
    assert {event.round for event in stored} >= {2, 4}


def test_a_resumed_run_reports_the_same_smoothings() -> None:
    spec = tiny_spec(method=ceo("own", noise=2.0), rounds=5)
    events = list(run(spec, threads=2))
    assert [event.round for event in events if isinstance(event, Smoothed)] == [2, 4]
    states = [event for event in events if isinstance(event, Kept) and event.kind == "state" and 0 < event.round < 5]
    for state in states:
        resumed = replayable(run(spec, resume=state))
        assert resumed == replayable(events)[-len(resumed) :]


def test_the_models_are_freed_as_soon_as_the_event_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    references: list[weakref.ref[Tensor]] = []

    def recorded(context: Any, threshold: float, clients: Any, order: Any, names: Any, models: Mapping[str, Tensor],
                 slices: Any, evaluate: Evaluate) -> Event:  # fmt: skip
        references.extend(weakref.ref(tensor) for tensor in models.values())
        return event_of_slices(context, threshold, clients, order, names, models, slices, evaluate)

    monkeypatch.setattr(base, "event_of_slices", recorded)
    for event in run(tiny_spec(method=ceo(noise=2.0), rounds=2)):
        if isinstance(event, Smoothed):
            assert references and not any(reference() is not None for reference in references)
    assert references
