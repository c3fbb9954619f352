"""FedCEO: the smoothing schedule, the slices, the equality with UDP-FedAvg, the privacy cost, and the warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest
import torch

from engine.compute.tensor_svd import soft_threshold, t_tsvd
from engine.compute.threads import ThreadTeam
from engine.events import BEFORE_SMOOTHING as BEFORE
from engine.events import Event, Kept, Measured, Warned
from engine.leakage import probe
from engine.methods import METHODS
from engine.methods.smoothing.fedceo import FedCEO
from engine.privacy.accountant import epsilon_exact
from engine.privacy.ledger import Ledger
from engine.privacy.prv import epsilon_prv
from engine.records import VIEWS, Exposure, Gaussian, Release, Seat, Weights
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import LoadedPlan, load_plan, make_plan
from engine.training.rounds import Exchange, first_state, train_round
from engine.training.state import State
from tests.engine.makers import accuracies, replayable, tiny_spec, with_noise_of

pytestmark = pytest.mark.slow

MODES = ["slot", "mean", "own"]
SIGMAS = (1.0, 1.5, 2.0)


def fedceo(mode: str = "slot", **fields: Any) -> dict[str, Any]:
    return {"name": "fedceo", "every": 2, "unsampled-clients": mode, **fields}


def played(plan: LoadedPlan, rounds: int, threads: int = 2) -> tuple[list[State], list[Exchange]]:
    """The states before and after each of the first rounds, and the exchanges of these rounds."""
    states = [first_state(plan)]
    exchanges: list[Exchange] = []
    with ThreadTeam(threads) as team:
        for round in range(1, rounds + 1):
            states.append(train_round(plan, states[-1], round, team, watch=exchanges.append))
    return states, exchanges


def last_state(method: Any, rounds: int, **fields: Any) -> State:
    """The state after all rounds, with the noise of the same run of UDP-FedAvg."""
    plan, udp = (load_plan(tiny_spec(method=name, rounds=rounds, **fields)) for name in (method, "udp-fedavg"))
    states, _ = played(with_noise_of(plan, udp), rounds)
    return states[-1]


def before_smoothing(state: State) -> Weights:
    """The model in the memory that a round without smoothing would have given."""
    return state.memory.get(BEFORE, {})


def close(weights: Weights, others: Weights, atol: float = 1e-5) -> bool:
    return all(torch.allclose(weights[name], others[name], atol=atol, rtol=1e-4) for name in weights)


def warnings_of_erased_layers(events: Iterable[Event]) -> list[Warned]:
    return [event for event in events if isinstance(event, Warned) and "erased" in event.reason]


# --- what it computes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["poisson", "all"])
def test_with_the_mean_and_a_tiny_threshold_it_equals_udp_fedavg(sampling: str) -> None:
    sampled = 4 if sampling == "poisson" else 8
    fields: dict[str, Any] = {"sampling": sampling, "clients": 8, "sampled": sampled}
    ceo = last_state(fedceo("mean", smoothing=1e6), 4, **fields)
    udp = last_state("udp-fedavg", 4, **fields)
    assert close(ceo.server, udp.server)


def test_between_two_smoothings_it_equals_udp_fedavg() -> None:
    ceo, udp = (last_state(method, 1) for method in (fedceo(), "udp-fedavg"))
    assert all(torch.equal(ceo.server[name], udp.server[name]) for name in udp.server) and ceo.memory == {}


@pytest.mark.parametrize("name", ["hidden.weight", "head.weight"])
def test_every_second_round_smooths_the_noisy_models_as_one_tensor(name: str) -> None:
    plan = load_plan(tiny_spec(method=fedceo(smoothing=2.0, growth=1.5, noise=3.0), rounds=4))
    states, exchanges = played(plan, 4)
    for round, threshold in ((2, 1.5 / 4), (4, 1.5**2 / 4)):
        exchange = exchanges[round - 1]
        memory = states[round].memory
        pairs = zip(exchange.packets, exchange.uploads, strict=True)
        models = torch.stack([packet.model[name] + 0.1 * upload.model[name] for packet, upload in pairs])
        expected = t_tsvd(models, threshold)
        for slot in range(len(models)):
            assert torch.allclose(memory[str(slot)][name], expected[slot], atol=1e-5)
        assert torch.allclose(states[round].server[name], expected.mean(0), atol=1e-5)


def test_the_mean_of_the_slices_is_the_smoothed_mean() -> None:
    everyone: dict[str, Any] = {"clients": 6, "sampled": 6, "sampling": "all"}
    slot, mean = (last_state(fedceo(mode, smoothing=1.0, noise=3.0), 2, **everyone) for mode in ("slot", "mean"))
    assert close(slot.server, mean.server)
    before = before_smoothing(mean)
    assert before
    assert all(torch.allclose(mean.server[name], soft_threshold(before[name], 0.5 / 6), atol=1e-6) for name in before)


def test_which_client_starts_from_which_slice() -> None:
    plan = load_plan(tiny_spec(method=fedceo("slot", noise=3.0), rounds=4))
    states, exchanges = played(plan, 3)
    memory = states[2].memory
    slices = len(exchanges[1].uploads)
    assert {int(slot) for slot in memory if slot != BEFORE} == set(range(slices))
    for seat, packet in zip(exchanges[2].seats, exchanges[2].packets, strict=True):
        assert packet.model["head.weight"] is memory[str(seat.client % slices)]["head.weight"]
    assert states[3].memory == {}
    own = FedCEO(unsampled_clients="own")
    own_slice = torch.ones(1)
    memory = {"7": {"head.weight": own_slice}}
    server = {"head.weight": torch.zeros(1)}
    assert own.send(Seat(7, 0, 3, 1, 1, 2), server, memory).model["head.weight"] is own_slice
    assert own.send(Seat(8, 7, 3, 1, 1, 2), server, memory).model["head.weight"] is server["head.weight"]


@pytest.mark.parametrize("mode", MODES)
def test_the_rest_of_the_cohort_does_not_change_a_clients_start(mode: str) -> None:
    """If it did, Poisson sampling would hide less than its ε promises, and an outsider would have no valid ε."""
    plan = load_plan(tiny_spec(method=fedceo(mode, noise=3.0), rounds=4))
    state = played(plan, 2)[0][-1]

    def starts(cohort: tuple[int, ...]) -> dict[int, Weights]:
        seats = [Seat(client, slot, 3, 1, 1, len(cohort)) for slot, client in enumerate(cohort)]
        return {seat.client: plan.method.send(seat, state.server, state.memory).model for seat in seats}

    without, within = starts((1, 4, 5)), starts((0, 1, 4, 5))
    assert all(without[client][name] is within[client][name] for client in without for name in state.server)


def test_a_start_that_depends_on_the_cohort_would_cost_more_than_poisson_sampling_promises() -> None:
    """Why the place in the cohort must not choose the slice: one round, σ = 1, a tenth of the clients, δ = 1e-5.

    A client that takes part would move the sum of the others far away, and an outsider would see that it took part.
    The pair is then 0.9 N(0) + 0.1 N(b) and 0.9 N(0) + 0.1 N(b + 1), with no share of N(0) to hide in.
    """
    poisson = epsilon_prv([(1.0, 0.1, 1)], 1e-5)
    visible = epsilon_exact(1.0, 1e-5 / 0.1)  # the whole difference is in the tenth of the mass with the client
    assert poisson is not None and visible > 2 * poisson


def test_own_slices_are_kept_by_client() -> None:
    plan = load_plan(tiny_spec(method=fedceo("own"), rounds=3))
    states, exchanges = played(plan, 2)
    owners = set(states[2].memory)
    assert owners == {str(seat.client) for seat in exchanges[1].seats} | {BEFORE}


def test_the_field_layers_limits_the_smoothing_to_the_last_layers() -> None:
    last = last_state(fedceo(layers=1, smoothing=0.01, noise=0.5), 2)
    assert not last.server["head.weight"].any() and last.server["hidden.weight"].any()


def test_the_mean_over_client_orders_changes_the_slices_and_keeps_their_mean() -> None:
    methods = [fedceo(smoothing=2.0, noise=3.0, **{"client-order": order}) for order in ("id", "averaged")]
    by_id, averaged = (last_state(method, 2) for method in methods)
    assert close(by_id.server, averaged.server)
    assert not torch.allclose(by_id.memory["0"]["hidden.weight"], averaged.memory["0"]["hidden.weight"], atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_the_same_bits_for_any_threads_and_from_any_state(mode: str) -> None:
    spec = tiny_spec(method=fedceo(mode, noise=2.0, **{"client-order": "averaged"}), rounds=3)
    events, events_3_threads = (list(run(spec, threads=threads)) for threads in (1, 3))
    assert replayable(events) == replayable(events_3_threads)
    states = [event for event in events if isinstance(event, Kept) and event.kind == "state" and 0 < event.round < 3]
    for state in states:
        assert accuracies(run(spec, state)) == accuracies(events)[state.round :]
    assert states


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_probe_of_a_smoothing_round(mode: str, view: Any) -> None:
    plan = load_plan(tiny_spec(method=fedceo(mode), rounds=3))
    states, _ = played(plan, 1)
    pictures, labels = plan.test_x[:1] * 0.2 + 0.4, plan.test_labels[:1]
    if view in plan.guarantee.absent:
        assert view == "aggregate" and mode != "mean"
        return
    with ThreadTeam(1) as team:
        victim = probe.make_victim(plan, 2, pictures.clamp(0, 1), labels)
        exposure = probe.expose(plan, states[1], victim, view, team)
    assert exposure.upload.model
    assert all(bool(torch.isfinite(tensor).all()) for tensor in exposure.upload.model.values())


@pytest.mark.parametrize("split", ["paper", "full-local"])
@pytest.mark.parametrize(("mode", "view"), [("slot", "outsider"), ("own", "outsider"), ("slot", "client")])
def test_the_protocol_declares_the_noise_that_the_view_receives(mode: str, view: Any, split: str) -> None:
    def exposed(noise: float) -> Exposure:
        method = fedceo(mode, noise=noise, smoothing=1e6, every=1, **{"noise-split": split})
        plan = load_plan(tiny_spec(method=method, rounds=3, clients=20, sampled=4, sampling="poisson"))
        assert len(plan.cohort(1)) not in (0, 1, plan.world.sampled)
        with ThreadTeam(1) as team:
            victim = probe.make_victim(plan, 1, plan.test_x[:1] * 0.2 + 0.4, plan.test_labels[:1])
            return probe.expose(plan, first_state(plan), victim, view, team)

    loud = exposed(5.0)
    quiet = exposed(0.0)
    drawn = torch.cat([(loud.upload.model[name] - quiet.upload.model[name]).flatten() for name in quiet.upload.model])
    assert loud.protocol.std == pytest.approx(float(drawn.std()), rel=0.05)


# --- accuracy and warnings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_smoothing_with_a_tiny_threshold_changes_nothing(mode: str) -> None:
    spec = tiny_spec(method=fedceo(mode, noise=0.5, smoothing=1e6), rounds=4, clients=12, sampled=4, sampling="poisson")
    states, exchanges = played(load_plan(spec), 4)
    assert len({len(exchange.uploads) for exchange in exchanges} | {4}) > 1  # the cohort size varies
    for state in (states[2], states[4]):
        before = before_smoothing(state)
        assert before.keys() == state.server.keys() and close(before, state.server)


def test_accuracy_before_and_after_each_smoothing() -> None:
    events = list(run(tiny_spec(method=fedceo("slot", noise=0.5, smoothing=0.3), rounds=5)))
    before = [event for event in events if isinstance(event, Measured) and event.who == BEFORE]
    assert [event.round for event in before] == [2, 4]
    after = accuracies(events)
    assert any(event.value != after[event.round - 1] for event in before)
    assert not any(isinstance(event, Measured) and event.who == "personal" for event in events)


@pytest.mark.parametrize("mode", MODES)
def test_a_threshold_that_erases_everything_gives_a_warning(mode: str) -> None:
    events = list(run(tiny_spec(method=fedceo(mode, smoothing=1e-4), rounds=3)))
    warnings = [event for event in warnings_of_erased_layers(events) if "erased the whole model" in event.reason]
    assert [event.round for event in warnings] == [2] and "smoothing above" in warnings[0].remedy
    assert len(accuracies(events)) == 3 and all(value is not None for value in accuracies(events))


def test_layers_that_are_not_smoothed_are_not_erased() -> None:
    events = run(tiny_spec(method=fedceo(smoothing=1e-3, layers=1), rounds=2))
    [warning] = warnings_of_erased_layers(events)
    assert "erased head.weight" in warning.reason and "fewer layers" not in warning.remedy


@pytest.mark.parametrize("mode", MODES)
def test_the_remedy_of_the_warning_works(mode: str) -> None:
    def remedies(smoothing: float) -> list[str]:
        plan = load_plan(tiny_spec(method=fedceo(mode, smoothing=smoothing, layers=1), rounds=2))
        reports: list[Any] = []
        state = first_state(plan)
        with ThreadTeam(2) as team:
            for round in (1, 2):
                state = train_round(with_noise_of(plan, warned), state, round, team, report=reports.append)
        return [warning.remedy for warning in warnings_of_erased_layers(reports)]

    warned = load_plan(tiny_spec(method=fedceo(mode, smoothing=1e-3, layers=1), rounds=2))

    (remedy,) = remedies(1e-3)
    advised = float(remedy.split("above ")[1].split(" ")[0])
    assert remedies(advised * 1.0001) == [] and len(remedies(advised * 0.98)) == 1


def test_unlimited_growth_gives_a_large_threshold_and_no_overflow() -> None:
    assert FedCEO(growth=2.0, every=1).threshold(10_000) > 1e300
    assert math.isfinite(FedCEO(growth=2.0, every=1, smoothing=1e-9).threshold(10_000))
    assert FedCEO(growth=1.0, smoothing=0.5).threshold(10) == 1.0
    assert FedCEO(growth=1.1, every=10, smoothing=0.5).threshold(20) == pytest.approx(1.21)


# --- the privacy cost --------------------------------------------------------------------------------------


def cost(sigma: float, mode: str, view: Any = "outsider") -> tuple[float | None, float | None]:
    """ε, precise and not, of 300 rounds with 30 smoothings: every client takes part in three of the smoothings."""
    method = fedceo(mode, every=10, noise=sigma)
    plan = make_plan(RunSpec(method=method, rounds=300, clients=100, sampled=10, delta=1e-5))
    ledger = Ledger(100, 1e-5)
    for round in range(1, 301):
        first = 10 * (round // 10 % 10)
        ledger.add(plan.method.releases(plan.world, round, tuple(range(first, first + 10))))
    return tuple(ledger.answer(view, precise=precise).value for precise in (True, False))  # type: ignore[return-value]


@pytest.mark.parametrize("mode", ["slot", "own"])
def test_epsilons_with_slices(mode: str) -> None:
    precise, renyi = zip(*(cost(sigma, mode) for sigma in SIGMAS), strict=True)
    assert precise == pytest.approx([41.4, 23.2, 15.8], abs=0.06)
    assert renyi == pytest.approx([43.8, 24.7, 16.9], abs=0.06)


def test_without_slices_it_costs_the_same_as_udp_fedavg() -> None:
    assert [cost(sigma, "mean")[0] for sigma in SIGMAS] == pytest.approx([12.41, 6.30, 4.19], abs=0.006)
    world = make_plan(tiny_spec(method=fedceo("mean"))).world
    mean = FedCEO(unsampled_clients="mean", every=2).releases(world, 2, (1, 5))
    udp = METHODS["udp-fedavg"]().releases(world, 2, (1, 5))
    assert mean == udp and "aggregate" in {release.view for release in mean}


def test_a_smoothing_releases_slices_to_every_view() -> None:
    world = make_plan(tiny_spec(method=fedceo())).world
    views = {"server", "outsider", "client"}
    smoothing = FedCEO(every=2, noise_split="full-local", noise=2.0).releases(world, 2, (1, 5))
    assert set(smoothing) == {Release(view, Gaussian(2.0), (1, 5)) for view in VIEWS if view in views}
    assert {release.view for release in FedCEO(every=2).releases(world, 1, (1, 5))} == views
    assert "aggregate" in FedCEO(noise=0.0).guarantee(world).absent
    assert FedCEO().guarantee(world).status == "formal-other-view"
