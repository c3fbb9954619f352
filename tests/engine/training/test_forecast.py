"""The forecast is no estimate: its ε is the one the run will spend, and its noise the one the run will use."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.events import Finished, Spent, Started, Warned
from engine.methods import METHODS
from engine.privacy.ledger import LedgerEpsilon
from engine.records import VIEWS
from engine.specs.run import RunSpec
from engine.training.forecast import forecast, free_memory, memory
from engine.training.loop import run
from engine.training.plan import Plan, make_plan
from tests.engine.makers import tiny

pytestmark = pytest.mark.slow

FULL = {"name": "udp-fedavg", "noise-split": "full-local"}
PRIVATE = ["udp-fedavg", FULL, "dp-fedavg"]


def few(**asked: Any) -> RunSpec:
    """Twelve clients and a narrow model: what is spent does not depend on either."""
    many = {"sampled": 12 if asked.get("sampling") == "all" else 4}
    return tiny(clients=12, batch=400, model={"name": "mlp", "hidden": 4}, **many, **asked)


def words(said: LedgerEpsilon | Spent) -> tuple[Any, ...]:
    return (
        said.view,
        said.unit,
        said.adjacency,
        said.delta,
        said.accountant,
        said.sampling,
        said.bound,
        said.reason,
        said.worst,
    )


def same(forecasted: tuple[LedgerEpsilon, ...], spent: list[Spent]) -> None:
    assert [words(one) for one in forecasted] == [words(one) for one in spent]
    for one, other in zip(forecasted, spent, strict=True):
        assert (one.epsilon is None) == (other.epsilon is None)
        assert one.epsilon is None or one.epsilon == pytest.approx(other.epsilon, abs=1e-9)


@pytest.mark.parametrize(
    ("sampling", "partition"), [("poisson", "iid"), ("poisson", "dirichlet"), ("fixed", "iid"), ("all", "dirichlet")]
)
@pytest.mark.parametrize("method", PRIVATE, ids=["udp", "udp full-local", "dp"])
def test_the_forecast_is_what_the_run_spends(method: Any, sampling: str, partition: str) -> None:
    spec = few(method=method, sampling=sampling, partition=partition)
    spent = [one for one in run(spec) if isinstance(one, Spent)]
    views = len({one.view for one in spent})
    assert views == len(VIEWS) and {one.round for one in spent[-2 * views :]} == {2}
    same(forecast(spec).answers, spent[-2 * views : -views])
    same(forecast(spec, precise=True).answers, spent[-views:])
    amplified = method == "udp-fedavg" and sampling == "fixed"
    assert any(one.epsilon is None for one in spent) is amplified  # no bound is known there, so none is told


def test_where_nothing_is_promised_the_forecast_says_why() -> None:
    told = forecast(few(method="fedavg"))
    assert {one.view for one in told.answers} == set(VIEWS)
    assert all(one.epsilon is None and one.reason for one in told.answers)
    assert told.guarantee is not None and told.guarantee.status == "none" and told.noise is None


# --- a target ε is reached ---------------------------------------------------------------------------------


TARGETS = [("udp-fedavg", target, view) for target in (8.0, 4.0) for view in VIEWS]


@pytest.mark.parametrize(
    ("method", "target", "view"), [*TARGETS, ("dp-fedavg", 8.0, "server"), ("dp-fedavg", 4.0, "client")]
)
def test_a_target_is_reached_and_not_overpaid(method: str, target: float, view: str) -> None:
    spec = few(method=method, target_epsilon=target, view=view, rounds=3)
    told = forecast(spec, precise=True)
    epsilon = next(one.epsilon for one in told.answers if one.view == view)
    assert epsilon is not None and 0.97 * target < epsilon <= target
    assert not told.problems


@pytest.mark.parametrize("view", ["server", "outsider"])
def test_the_run_uses_the_noise_of_the_forecast(view: str) -> None:
    spec = few(method="udp-fedavg", target_epsilon=8.0, view=view)
    told, events = forecast(spec, precise=True), list(run(spec))
    started = next(one for one in events if isinstance(one, Started))
    assert started.facts["noise"] == told.noise == make_plan(spec).method.noise != 1.0  # type: ignore[attr-defined]
    assert started.facts["delta"] == told.delta and started.run == told.id
    last = [one for one in events if isinstance(one, Spent) and one.view == view][-1]
    assert last.epsilon is not None and 0.97 * 8 < last.epsilon <= 8


@pytest.mark.parametrize("view", ["server", "outsider"])
def test_under_a_slider_the_noise_of_a_target_is_an_upper_bound(view: str) -> None:
    spec = few(method="udp-fedavg", target_epsilon=8.0, view=view)
    quick, told = forecast(spec), forecast(spec, precise=True)
    assert quick.noise is not None and told.noise is not None
    assert told.noise <= quick.noise <= 1.3 * told.noise
    assert next(one.epsilon for one in quick.answers if one.view == view) == pytest.approx(8.0, rel=1e-3)


# --- a budget ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "enough"), [(0.9, False), (0.999, False), (1.001, True), (1.5, True)])
def test_a_budget_that_will_not_last_is_said_and_it_is_true(share: float, enough: bool) -> None:
    """Judged by the number of record: a budget between PRV and Rényi is enough."""
    asked: dict[str, Any] = {"method": "udp-fedavg", "rounds": 4}
    answer = next(one for one in forecast(few(**asked), precise=True).answers if one.view == "outsider")
    renyi = next(one for one in forecast(few(**asked)).answers if one.view == "outsider")
    assert answer.epsilon is not None and renyi.epsilon is not None and renyi.epsilon > 1.001 * answer.epsilon
    spec = few(**asked, budget=share * answer.epsilon, view="outsider")
    problems, events = forecast(spec).problems, list(run(spec))
    assert isinstance(events[-1], Finished) and (events[-1].rounds == 4) is enough
    assert (not problems) is enough and all(not one.fatal and one.remedy for one in problems)
    assert enough or f"does not last for all {spec.rounds} rounds" in problems[0].reason
    stopped = [one for one in events if isinstance(one, Warned) and "would exceed the budget" in one.reason]
    assert bool(stopped) is not enough


# --- how ε moves -------------------------------------------------------------------------------------------


@cache
def plan(sampled: int) -> Plan:
    return make_plan(tiny(method="udp-fedavg", sampled=sampled, rounds=1))


def spends(view: str, noise: float, rounds: int, sampled: int = 6) -> float:
    method = METHODS.make({"name": "udp-fedavg", "noise": noise})
    epsilon = plan(sampled).ledger(rounds, method).answer(view).epsilon  # type: ignore[arg-type]
    assert epsilon is not None and math.isfinite(epsilon)
    return epsilon


few_tries = settings(max_examples=12)
noises, lengths, rates = st.floats(0.5, 5), st.integers(1, 12), st.integers(1, 20)
known = st.sampled_from(["server", "aggregate", "outsider"])  # in `client`, more clients also hide one another


@few_tries
@given(st.sampled_from(VIEWS), noises, lengths)
def test_epsilon_never_falls_with_rounds(view: str, noise: float, rounds: int) -> None:
    assert spends(view, noise, rounds) <= spends(view, noise, rounds + 1)
    assert spends(view, noise, 1) < spends(view, noise, rounds + 12)


@few_tries
@given(known, noises, lengths, rates)
def test_epsilon_never_falls_with_the_rate(view: str, noise: float, rounds: int, sampled: int) -> None:
    assert spends(view, noise, rounds, sampled) <= spends(view, noise, rounds, sampled + 1) + 1e-9
    assert spends(view, noise, rounds + 6, sampled) < spends(view, noise, rounds + 6, 40)


@few_tries
@given(st.sampled_from(VIEWS), noises, st.floats(1.05, 3), lengths)
def test_epsilon_falls_with_noise(view: str, noise: float, factor: float, rounds: int) -> None:
    assert spends(view, noise * factor, rounds + 3) < spends(view, noise, rounds + 3)


# --- what else a form shows --------------------------------------------------------------------------------


def test_what_cannot_be_asked_comes_back_as_a_problem() -> None:
    told = forecast(tiny(method="udp-fedavg", delta=0.5))
    assert told.fatal and not told.answers and told.id == tiny(method="udp-fedavg", delta=0.5).id
    assert told.problems[0].reason == "run: delta: must be below 1/n = 0.025 for 40 clients, got 0.5"
    empty = forecast(tiny(partition={"name": "dirichlet", "alpha": 0.001}, clients=200))
    assert empty.fatal and len(empty.problems) == 1 and "would get no pictures" in empty.problems[0].reason


def test_no_picture_is_read_and_torchs_own_chance_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = few(method="udp-fedavg")
    monkeypatch.setattr(type(spec.dataset), "load", None)  # reading a picture would fail
    before = torch.random.get_rng_state()
    told = forecast(spec)
    assert told.answers and torch.equal(before, torch.random.get_rng_state())
    assert told.facts == {"sizes": [1000, 1000], "parameters": 784 * 4 + 4 * 10}


def test_the_time_it_takes_grows_with_the_work() -> None:
    one, many = forecast(few(method="fedavg", rounds=1)).seconds, forecast(few(method="fedavg", rounds=50)).seconds
    assert one is not None and many is not None and 0 < one < math.inf
    assert many == pytest.approx(50 * one)  # timed once on this machine


@pytest.mark.parametrize(
    ("little", "much"),
    [
        ({"name": "centaur", "head-epochs": 1}, {"name": "centaur", "head-epochs": 30}),
        ({"name": "fedceo", "every": 50}, {"name": "fedceo", "every": 1}),
        ({"name": "fedceo", "every": 1, "unsampled-clients": "mean"}, {"name": "fedceo", "every": 1}),
    ],
    ids=["last layers of their own", "smoothings", "slices"],
)
def test_what_is_done_beside_training_takes_its_time(little: dict[str, Any], much: dict[str, Any]) -> None:
    one, many = (forecast(tiny(method=method, rounds=40)).seconds for method in (little, much))
    assert one is not None and many is not None and many > 1.3 * one


def test_a_run_that_outgrows_the_memory_is_warned_of_and_not_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tiny(method="udp-fedavg", clients=1000, sampling="all", sampled=1000)
    assert forecast(spec).problems == ()
    monkeypatch.setattr("engine.training.forecast.free_memory", lambda: 0.5e9)
    (problem,) = forecast(spec).problems
    assert not problem.fatal and "fewer clients a round" in problem.remedy
    need = memory(make_plan(spec), threads=1) / 1e9
    assert problem.reason == f"the run needs about {need:.1f} GB of memory, and 0.5 GB are free on this machine"
    assert forecast(tiny(method="udp-fedavg")).problems == ()
    monkeypatch.setattr("engine.training.forecast.free_memory", lambda: None)  # a system that does not tell
    assert forecast(spec).problems == ()


PEAKS: list[tuple[dict[str, Any], float]] = [  # in GB, as a process of its own with two threads was seen to need
    ({"rounds": 2, "epochs": 1}, 0.43),
    ({"clients": 1000, "sampling": "all"}, 0.65),
    ({"method": "udp-fedavg", "clients": 1000, "sampling": "all"}, 0.77),
    ({"method": "dp-fedavg", "clients": 1000, "sampling": "all"}, 0.74),
    ({"method": "udp-fedavg", "clients": 200, "sampling": "all", "model": {"name": "mlp", "hidden": 1024}}, 1.98),
    ({"method": "udp-fedavg", "model": {"name": "mlp", "hidden": 4096}, "sampled": 10, "sampling": "fixed"}, 1.51),
    ({"method": "udp-fedavg", "model": {"name": "mlp", "hidden": 4096}, "sampled": 50, "sampling": "fixed"}, 2.61),
    ({"dataset": "cifar10", "model": "lenet5", "clients": 200, "sampling": "all"}, 1.83),
    ({"method": "dp-fedavg", "dataset": "cifar10", "model": "lenet5", "batch": 64, "sampled": 20}, 0.76),
    ({"dataset": "cifar10", "model": {"name": "convnet", "width": 256}}, 1.14),
]


@pytest.mark.parametrize(("asked", "peak"), PEAKS)
def test_the_memory_it_needs_is_about_what_was_measured(asked: dict[str, Any], peak: float) -> None:
    assert memory(make_plan(RunSpec(**asked)), threads=2) / 1e9 == pytest.approx(peak, rel=0.3)


def test_the_free_memory_is_read_where_the_system_tells_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = tmp_path / "meminfo"
    monkeypatch.setattr("engine.training.forecast.MEMINFO", told)
    assert free_memory() is None
    told.write_text("MemTotal: 32 kB\nMemAvailable:      3000 kB\nBuffers: 1 kB\n")
    assert free_memory() == 3000 * 1024
    told.write_text("MemTotal: 32 kB\n")
    assert free_memory() is None


def test_the_cliff_is_told_as_noise_over_signal() -> None:
    told = forecast(few(method={**FULL, "noise": 2.0, "clip": 3.0})).cliff
    assert told is not None and told.parameters == 784 * 4 + 4 * 10
    assert told.ratio == pytest.approx(2.0 * math.sqrt(told.parameters))  # C stands on both sides
    assert (told.noise_from, told.noise_to) == pytest.approx([end / math.sqrt(told.parameters) for end in told.region])
    open_ = forecast(few(method="fedavg")).cliff
    assert open_ is not None and open_.ratio is None
