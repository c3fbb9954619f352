"""FedCEO: when it smooths, what it gives back, where it is UDP-FedAvg, what the slices cost, and what it says."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from engine.compute.tensor_svd import soft, t_tsvd
from engine.compute.threads import ThreadTeam
from engine.events import BEFORE_SMOOTHING as BEFORE
from engine.events import Kept, Measured, Warned
from engine.leakage import probe
from engine.methods.smoothing.fedceo import FedCEO
from engine.privacy.accountant import epsilon_exact
from engine.privacy.ledger import Ledger
from engine.privacy.prv import epsilon_prv
from engine.records import VIEWS, Exposure, Gaussian, Seat, Weights
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import LoadedPlan, load_plan, make_plan
from engine.training.rounds import Exchange, opening, play
from engine.training.state import State
from tests.engine.makers import accuracies, tiny, told

pytestmark = pytest.mark.slow

MODES = ["slot", "mean", "own"]
SIGMAS = (1.0, 1.5, 2.0)


def asked(mode: str = "slot", **fields: Any) -> dict[str, Any]:
    return {"name": "fedceo", "every": 2, "unsampled-clients": mode, **fields}


def rounds(there: LoadedPlan, many: int, threads: int = 2) -> tuple[list[State], list[Exchange]]:
    states, seen = [opening(there)], list[Exchange]()
    with ThreadTeam(threads) as team:
        for round in range(1, many + 1):
            states.append(play(there, states[-1], round, team, watch=seen.append))
    return states, seen


def close(one: Weights, other: Weights, atol: float = 1e-5) -> bool:
    return all(torch.allclose(one[name], other[name], atol=atol, rtol=1e-4) for name in one)


# --- what it computes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["poisson", "all"])
def test_with_the_mean_and_hardly_any_threshold_it_is_udp_fedavg(sampling: str) -> None:
    sampled = 4 if sampling == "poisson" else 8
    where: dict[str, Any] = {"sampling": sampling, "rounds": 4, "clients": 8, "sampled": sampled}
    ceo, udp = (
        rounds(load_plan(tiny(method=method, **where)), 4)[0][-1]
        for method in (asked("mean", smoothing=1e6), {"name": "udp-fedavg"})
    )
    assert close(ceo.server, udp.server)


def test_between_two_smoothings_it_is_udp_fedavg() -> None:
    ceo, udp = (rounds(load_plan(tiny(method=method)), 1)[0][-1] for method in (asked(), "udp-fedavg"))
    assert all(torch.equal(ceo.server[name], udp.server[name]) for name in udp.server) and ceo.memory == {}


@pytest.mark.parametrize("name", ["hidden.weight", "head.weight"])
def test_every_other_round_the_noisy_models_are_smoothed_as_one_tensor(name: str) -> None:
    there = load_plan(tiny(method=asked(smoothing=2.0, growth=1.5, noise=3.0), rounds=4))
    states, seen = rounds(there, 4)
    for round, threshold in ((2, 1.5 / 4), (4, 1.5**2 / 4)):
        exchange, memory = seen[round - 1], states[round].memory
        models = torch.stack(
            [
                packet[name] + 0.1 * upload.tensors[name]
                for packet, upload in zip(exchange.packets, exchange.uploads, strict=True)
            ]
        )
        expected = t_tsvd(models, threshold)
        for slot in range(len(models)):
            assert torch.allclose(memory[f"{slot}/{name}"], expected[slot], atol=1e-5)
        assert torch.allclose(states[round].server[name], expected.mean(0), atol=1e-5)


def test_the_mean_of_the_slices_is_the_smoothed_mean() -> None:
    everybody: dict[str, Any] = {"clients": 6, "sampled": 6, "sampling": "all"}
    slot, mean = (
        rounds(load_plan(tiny(method=asked(mode, smoothing=1.0, noise=3.0), **everybody)), 2)[0][-1]
        for mode in ("slot", "mean")
    )
    assert close(slot.server, mean.server)
    start = {name.partition("/")[2]: tensor for name, tensor in mean.memory.items() if name.startswith(BEFORE)}
    assert all(torch.allclose(mean.server[name], soft(start[name], 0.5 / 6), atol=1e-6) for name in start)


def test_who_starts_from_which_slice() -> None:
    there = load_plan(tiny(method=asked("slot", noise=3.0), rounds=4))
    states, seen = rounds(there, 3)
    held, seats, many = states[2].memory, seen[2].seats, len(seen[1].uploads)
    slices = {int(name.partition("/")[0]) for name in held if name[0].isdigit()}
    assert slices == set(range(many))
    for seat, packet in zip(seats, seen[2].packets, strict=True):
        assert packet["head.weight"] is held[f"{seat.client % many}/head.weight"]
    assert states[3].memory == {}
    own = FedCEO(unsampled_clients="own")
    mark = torch.ones(1)
    memory = {"7/head.weight": mark}
    server = {"head.weight": torch.zeros(1)}
    assert own.send(Seat(7, 0, 3, 1, 1, 2), server, memory)["head.weight"] is mark
    assert own.send(Seat(8, 7, 3, 1, 1, 2), server, memory)["head.weight"] is server["head.weight"]


@pytest.mark.parametrize("mode", MODES)
def test_who_else_is_there_changes_nobodys_start(mode: str) -> None:
    """Else Poisson sampling hides less than its number says, and the ε of an outsider is none."""
    there = load_plan(tiny(method=asked(mode, noise=3.0), rounds=4))
    state = rounds(there, 2)[0][-1]

    def starts(cohort: tuple[int, ...]) -> dict[int, Weights]:
        seats = [Seat(client, slot, 3, 1, 1, len(cohort)) for slot, client in enumerate(cohort)]
        return {seat.client: there.method.send(seat, state.server, state.memory) for seat in seats}

    without, within = starts((1, 4, 5)), starts((0, 1, 4, 5))
    assert all(without[client][name] is within[client][name] for client in without for name in state.server)


def test_a_start_that_moves_with_who_is_there_would_cost_more_than_poisson_says() -> None:
    """Why slices are not dealt by the place in the round: one round, σ = 1, a tenth of the clients, δ = 1e-5.

    Whoever comes moves the others' sum far away, so that an outsider sees whether the client came. Then the pair is
    0.9 N(0) + 0.1 N(b) and 0.9 N(0) + 0.1 N(b + 1), with no share of N(0) to hide in.
    """
    poisson = epsilon_prv([(1.0, 0.1, 1)], 1e-5)
    seen = epsilon_exact(1.0, 1e-5 / 0.1)  # the whole difference lies in the tenth of the mass where it came
    assert poisson is not None and seen > 2 * poisson


def test_own_slices_are_kept_by_client() -> None:
    there = load_plan(tiny(method=asked("own"), rounds=3))
    states, seen = rounds(there, 2)
    assert {name.partition("/")[0] for name in states[2].memory} == {str(seat.client) for seat in seen[1].seats} | {
        BEFORE
    }


def test_only_the_last_layers_where_that_is_asked() -> None:
    there = load_plan(tiny(method=asked(layers=1, smoothing=0.01, noise=0.5)))
    last = rounds(there, 2)[0][-1]
    assert not last.server["head.weight"].any() and last.server["hidden.weight"].any()


def test_the_mean_over_orders_does_not_depend_on_who_is_first_and_keeps_the_mean() -> None:
    by_id, averaged = (
        rounds(load_plan(tiny(method=asked(smoothing=2.0, noise=3.0, **{"client-order": order}))), 2)[0][-1]
        for order in ("id", "averaged")
    )
    assert close(by_id.server, averaged.server)
    assert not torch.allclose(by_id.memory["0/hidden.weight"], averaged.memory["0/hidden.weight"], atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_the_same_bits_for_any_crew_and_from_any_state(mode: str) -> None:
    spec = tiny(method=asked(mode, noise=2.0, **{"client-order": "averaged"}), rounds=3)
    one, two = (list(run(spec, threads=threads)) for threads in (1, 3))
    assert told(one) == told(two)
    states = [event for event in one if isinstance(event, Kept) and event.kind == "state" and 0 < event.round < 3]
    for state in states:
        rest = [event for event in run(spec, state) if isinstance(event, Measured) and event.name == "accuracy"]
        assert [event.value for event in rest if event.who == "global"] == accuracies(one)[state.round :]
    assert states


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("view", VIEWS)
def test_it_can_be_probed_while_it_smooths(mode: str, view: Any) -> None:
    there = load_plan(tiny(method=asked(mode), rounds=3))
    states, _ = rounds(there, 1)
    pictures, labels = there.test_x[:1] * 0.2 + 0.4, there.test_labels[:1]
    if view in there.guarantee.absent:
        assert view == "aggregate" and mode != "mean"
        return
    with ThreadTeam(1) as team:
        who = probe.victim(there, 2, pictures.clamp(0, 1), labels)
        exposure = probe.expose(there, states[1], who, view, team)
    assert exposure.received and all(bool(torch.isfinite(one).all()) for one in exposure.received.values())


@pytest.mark.parametrize("split", ["paper", "full-local"])
@pytest.mark.parametrize(("mode", "view"), [("slot", "outsider"), ("own", "outsider"), ("slot", "client")])
def test_the_attacker_is_told_the_noise_that_the_view_meets(mode: str, view: Any, split: str) -> None:
    def exposed(noise: float) -> Exposure:
        method = asked(mode, noise=noise, smoothing=1e6, every=1, **{"noise-split": split})
        there = load_plan(tiny(method=method, rounds=3, clients=20, sampled=4, sampling="poisson"))
        assert len(there.cohort(1)) not in (0, 1, there.world.sampled)
        with ThreadTeam(1) as team:
            who = probe.victim(there, 1, there.test_x[:1] * 0.2 + 0.4, there.test_labels[:1])
            return probe.expose(there, opening(there), who, view, team)

    loud, calm = exposed(5.0), exposed(0.0)
    drawn = torch.cat([(loud.received[name] - calm.received[name]).flatten() for name in calm.received])
    assert loud.protocol.std == pytest.approx(float(drawn.std()), rel=0.05)


# --- what it says ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_where_nothing_is_removed_nothing_changed(mode: str) -> None:
    spec = tiny(method=asked(mode, noise=0.5, smoothing=1e6), rounds=4, clients=12, sampled=4, sampling="poisson")
    states, seen = rounds(load_plan(spec), 4)
    assert len({len(exchange.uploads) for exchange in seen} | {4}) > 1  # not always as many as expected
    for state in (states[2], states[4]):
        before = {name.removeprefix(f"{BEFORE}/"): one for name, one in state.memory.items() if name.startswith(BEFORE)}
        assert before.keys() == state.server.keys() and close(before, state.server)


def test_accuracy_before_and_after_each_smoothing() -> None:
    events = list(run(tiny(method=asked("slot", noise=0.5, smoothing=0.3), rounds=5)))
    before = [event for event in events if isinstance(event, Measured) and event.who == BEFORE]
    assert [event.round for event in before] == [2, 4]
    after = accuracies(events)
    assert any(event.value != after[event.round - 1] for event in before)
    assert not any(isinstance(event, Measured) and event.who == "personal" for event in events)


@pytest.mark.parametrize("mode", MODES)
def test_a_threshold_that_erases_everything_is_said_and_breaks_nothing(mode: str) -> None:
    events = list(run(tiny(method=asked(mode, smoothing=1e-4), rounds=3)))
    said = [event for event in events if isinstance(event, Warned) and "erased the whole model" in event.reason]
    assert [event.round for event in said] == [2] and "smoothing above" in said[0].remedy
    assert len(accuracies(events)) == 3 and all(value is not None for value in accuracies(events))


def test_what_is_not_smoothed_is_not_erased() -> None:
    events = list(run(tiny(method=asked(smoothing=1e-3, layers=1), rounds=2)))
    [said] = [event for event in events if isinstance(event, Warned) and "erased" in event.reason]
    assert "erased head.weight" in said.reason and "fewer layers" not in said.remedy


@pytest.mark.parametrize("mode", MODES)
def test_its_advice_keeps_what_it_says(mode: str) -> None:
    def erased(smoothing: float) -> list[str]:
        spec = tiny(method=asked(mode, smoothing=smoothing, layers=1), rounds=2)
        return [event.remedy for event in run(spec) if isinstance(event, Warned) and "erased" in event.reason]

    (remedy,) = erased(1e-3)
    advised = float(remedy.split("above ")[1].split(" ")[0])
    assert erased(advised * 1.0001) == [] and len(erased(advised * 0.98)) == 1


def test_growth_without_end_is_a_threshold_too_high_and_no_overflow() -> None:
    assert FedCEO(growth=2.0, every=1).threshold(10_000) > 1e300
    assert math.isfinite(FedCEO(growth=2.0, every=1, smoothing=1e-9).threshold(10_000))
    assert FedCEO(growth=1.0, smoothing=0.5).threshold(10) == 1.0
    assert FedCEO(growth=1.1, every=10, smoothing=0.5).threshold(20) == pytest.approx(1.21)


# --- what it costs -----------------------------------------------------------------------------------------


def cost(sigma: float, mode: str, view: Any = "outsider") -> tuple[float | None, float | None]:
    """300 rounds, a smoothing every ten of them, in which every client takes part three times."""
    plan = make_plan(
        RunSpec(method=asked(mode, every=10, noise=sigma), rounds=300, clients=100, sampled=10, delta=1e-5)
    )
    ledger = Ledger(100, 1e-5)
    for round in range(1, 301):
        turn = round // 10 % 10
        ledger.add(plan.method.releases(plan.world, round, range(10 * turn, 10 * turn + 10)))
    return tuple(ledger.answer(view, precise=precise).epsilon for precise in (True, False))  # type: ignore[return-value]


@pytest.mark.parametrize("mode", ["slot", "own"])
def test_slices_cost_what_was_agreed(mode: str) -> None:
    precise, renyi = zip(*(cost(sigma, mode) for sigma in SIGMAS), strict=True)
    assert precise == pytest.approx([41.4, 23.2, 15.8], abs=0.06)
    assert renyi == pytest.approx([43.8, 24.7, 16.9], abs=0.06)


def test_without_slices_it_costs_what_udp_fedavg_costs() -> None:
    assert [cost(sigma, "mean")[0] for sigma in SIGMAS] == pytest.approx([12.41, 6.30, 4.19], abs=0.006)
    world = make_plan(tiny(method=asked("mean"))).world
    mean, udp = (part.releases(world, 2, (1, 5)) for part in (FedCEO(unsampled_clients="mean", every=2), udp_of()))
    assert mean == udp and "aggregate" in {one.view for one in mean}


def udp_of() -> Any:
    from engine.methods import METHODS

    return METHODS["udp-fedavg"]()


def test_every_participant_is_given_slices() -> None:
    world = make_plan(tiny(method=asked())).world
    found = FedCEO(every=2, noise_split="full-local", noise=2.0).releases(world, 2, (1, 5))
    assert {(one.view, one.law, one.clients, one.observers) for one in found} == {
        (view, Gaussian(2.0), (1, 5), None) for view in ("server", "outsider", "client")
    }
    assert {one.view for one in FedCEO(every=2).releases(world, 1, (1, 5))} == {"server", "outsider", "client"}
    assert "aggregate" in FedCEO(noise=0.0).guarantee(world).absent
    assert FedCEO().guarantee(world).status == "formal-other-view"
