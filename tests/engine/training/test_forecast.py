"""The forecast is exact: its ε is what the run spends, and its noise is what the run uses."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.epsilon import Epsilon, shown_noise
from engine.errors import BadInput
from engine.events import Finished, Spent, Started, Warned
from engine.methods import METHODS
from engine.records import VIEWS
from engine.specs.run import RunSpec
from engine.training.forecast import budget_noises, cliff_region, forecast, free_memory, memory
from engine.training.loop import run
from engine.training.plan import Plan, make_plan
from tests.engine.makers import tiny_spec

pytestmark = pytest.mark.slow

FULL = {"name": "udp-fedavg", "noise-split": "full-local"}
PRIVATE = ["udp-fedavg", FULL, "dp-fedavg"]


def few(**fields: Any) -> RunSpec:
    """A run of twelve clients and a narrow model. ε depends on neither."""
    sampled = 12 if fields.get("sampling") == "all" else 4
    return tiny_spec(clients=12, batch=400, model={"name": "mlp", "hidden": 4}, sampled=sampled, **fields)


def assert_same(answers: tuple[Epsilon, ...], spent: list[Spent]) -> None:
    for answer, event in zip(answers, spent, strict=True):
        assert replace(answer, value=0.0, quantiles=()) == replace(event.total, value=0.0, quantiles=())
        assert (answer.value is None) == (event.epsilon is None)
        assert answer.value is None or answer.value == pytest.approx(event.epsilon, abs=1e-9)


@pytest.mark.parametrize(
    ("sampling", "partition"), [("poisson", "iid"), ("poisson", "dirichlet"), ("fixed", "iid"), ("all", "dirichlet")]
)
@pytest.mark.parametrize("method", PRIVATE, ids=["udp", "udp full-local", "dp"])
def test_the_forecast_is_what_the_run_spends(method: Any, sampling: str, partition: str) -> None:
    spec = few(method=method, sampling=sampling, partition=partition)
    spent = [event for event in run(spec) if isinstance(event, Spent)]
    views = len({event.view for event in spent})
    assert views == len(VIEWS) and {event.round for event in spent[-2 * views :]} == {2}
    assert_same(forecast(spec).answers, spent[-2 * views : -views])
    assert_same(forecast(spec, precise=True).answers, spent[-views:])
    amplified = method == "udp-fedavg" and sampling == "fixed"
    assert any(event.epsilon is None for event in spent) is amplified  # there is no bound for this case


def test_without_a_guarantee_every_view_has_a_reason() -> None:
    prediction = forecast(few(method="fedavg"))
    assert {answer.view for answer in prediction.answers} == set(VIEWS)
    assert all(answer.value is None and answer.reason for answer in prediction.answers)
    assert prediction.guarantee is not None and prediction.guarantee.status == "none" and prediction.noise is None


# --- a target ε is reached ---------------------------------------------------------------------------------


TARGETS = [("udp-fedavg", target, view) for target in (8.0, 4.0) for view in VIEWS]


@pytest.mark.parametrize(
    ("method", "target", "view"), [*TARGETS, ("dp-fedavg", 8.0, "server"), ("dp-fedavg", 4.0, "client")]
)
def test_a_target_is_reached_with_the_least_noise(method: str, target: float, view: str) -> None:
    spec = few(method=method, target_epsilon=target, view=view, rounds=3)
    prediction = forecast(spec, precise=True)
    epsilon = next(answer.value for answer in prediction.answers if answer.view == view)
    assert epsilon is not None and 0.97 * target < epsilon <= target
    assert not prediction.problems


@pytest.mark.parametrize("view", ["server", "outsider"])
def test_the_run_uses_the_noise_of_the_forecast(view: str) -> None:
    spec = few(method="udp-fedavg", target_epsilon=8.0, view=view)
    prediction = forecast(spec, precise=True)
    events = list(run(spec))
    started = next(event for event in events if isinstance(event, Started))
    assert started.facts["noise"] == prediction.noise == make_plan(spec).method.noise != 1.0  # type: ignore[attr-defined]
    assert started.facts["delta"] == prediction.delta and started.run == prediction.id
    last = [event for event in events if isinstance(event, Spent) and event.view == view][-1]
    assert last.epsilon is not None and 0.97 * 8 < last.epsilon <= 8


@pytest.mark.parametrize("view", ["server", "outsider"])
def test_a_quick_forecast_gives_an_upper_bound_of_the_noise_for_a_target(view: str) -> None:
    spec = few(method="udp-fedavg", target_epsilon=8.0, view=view)
    quick = forecast(spec)
    precise = forecast(spec, precise=True)
    assert quick.noise is not None and precise.noise is not None
    assert precise.noise <= quick.noise <= 1.3 * precise.noise
    assert next(answer.value for answer in quick.answers if answer.view == view) == pytest.approx(8.0, rel=1e-3)


BETWEEN: dict[str, Any] = {"method": "udp-fedavg", "view": "outsider", "rounds": 20}


@pytest.mark.parametrize("precise", [True, False])
def test_a18_a_target_that_no_noise_reports_says_what_is_reported(precise: bool) -> None:
    """PRV is computed only where RDP is at most 50, so the reported ε jumps from PRV's to 50 at that noise."""
    prediction = forecast(few(**BETWEEN, target_epsilon=50.0), precise=precise)
    (remark,) = prediction.problems
    reported = forecast(few(**BETWEEN, target_epsilon=50.0), precise=True).answers[2]
    assert (reported.view, reported.accountant) == ("outsider", "prv")
    assert reported.value is not None and reported.value < 49
    assert not remark.fatal and f"PRV reports ε = {reported.value:.4g} in the outsider view" in remark.reason
    assert "solved with RDP, which is an upper bound" in remark.reason
    assert remark.remedy == f"A target of at most {reported.value:.4g} is met"


def test_a18_the_run_reports_it_too() -> None:
    spec = few(**BETWEEN, target_epsilon=50.0)
    events = list(run(spec))
    warnings = [event for event in events if isinstance(event, Warned)]
    last = [event for event in events if isinstance(event, Spent) and event.view == "outsider"][-1]
    assert last.accountant == "prv" and f"PRV reports ε = {last.epsilon:.4g}" in warnings[0].reason


@pytest.mark.parametrize("target", [8.0, 40.0, 60.0])
def test_a18_a_target_that_is_met_has_no_remark(target: float) -> None:
    assert forecast(few(**BETWEEN, target_epsilon=target), precise=True).problems == ()


@pytest.mark.parametrize(("target", "noise"), [(8.0, 1.187), (40.0, 0.4661), (50.0, 0.4358), (60.0, 0.3955)])
def test_a18_the_solved_noise_stays(target: float, noise: float) -> None:
    """A stored run with a target has its id from the target, so another noise would be another result."""
    assert forecast(few(**BETWEEN, target_epsilon=target), precise=True).noise == noise


# --- a budget ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "enough"), [(0.9, False), (0.999, False), (1.001, True), (1.5, True)])
def test_the_forecast_warns_if_and_only_if_the_budget_does_not_last(share: float, enough: bool) -> None:
    """The precise ε decides: a budget between PRV and Rényi is enough."""
    fields: dict[str, Any] = {"method": "udp-fedavg", "rounds": 4}
    answer = next(answer for answer in forecast(few(**fields), precise=True).answers if answer.view == "outsider")
    renyi = next(answer for answer in forecast(few(**fields)).answers if answer.view == "outsider")
    assert answer.value is not None and renyi.value is not None and renyi.value > 1.001 * answer.value
    spec = few(**fields, budget=share * answer.value, view="outsider")
    problems = forecast(spec).problems
    events = list(run(spec))
    assert isinstance(events[-1], Finished) and (events[-1].rounds == 4) is enough
    assert (not problems) is enough and all(not problem.fatal and problem.remedy for problem in problems)
    assert enough or f"does not last for all {spec.rounds} rounds" in problems[0].reason
    warnings = [event for event in events if isinstance(event, Warned) and "would exceed the budget" in event.reason]
    assert bool(warnings) is not enough


# --- how ε changes -----------------------------------------------------------------------------------------


@cache
def plan(sampled: int) -> Plan:
    return make_plan(tiny_spec(method="udp-fedavg", sampled=sampled, rounds=1))


def epsilon_of(view: str, noise: float, rounds: int, sampled: int = 6) -> float:
    method = METHODS.make({"name": "udp-fedavg", "noise": noise})
    epsilon = plan(sampled).ledger(rounds, method).answer(view).value  # type: ignore[arg-type]
    assert epsilon is not None and math.isfinite(epsilon)
    return epsilon


few_tries = settings(max_examples=12)
noises, lengths, rates = st.floats(0.5, 5), st.integers(1, 12), st.integers(1, 20)
not_client = st.sampled_from(["server", "aggregate", "outsider"])  # in `client`, more clients also hide each other


@few_tries
@given(st.sampled_from(VIEWS), noises, lengths)
def test_epsilon_never_falls_with_rounds(view: str, noise: float, rounds: int) -> None:
    assert epsilon_of(view, noise, rounds) <= epsilon_of(view, noise, rounds + 1)
    assert epsilon_of(view, noise, 1) < epsilon_of(view, noise, rounds + 12)


@few_tries
@given(not_client, noises, lengths, rates)
def test_epsilon_never_falls_with_the_rate(view: str, noise: float, rounds: int, sampled: int) -> None:
    assert epsilon_of(view, noise, rounds, sampled) <= epsilon_of(view, noise, rounds, sampled + 1) + 1e-9
    assert epsilon_of(view, noise, rounds + 6, sampled) < epsilon_of(view, noise, rounds + 6, 40)


@few_tries
@given(st.sampled_from(VIEWS), noises, st.floats(1.05, 3), lengths)
def test_epsilon_falls_with_noise(view: str, noise: float, factor: float, rounds: int) -> None:
    assert epsilon_of(view, noise * factor, rounds + 3) < epsilon_of(view, noise, rounds + 3)


# --- what else a form shows --------------------------------------------------------------------------------


def test_a_spec_that_cannot_run_gives_a_fatal_problem() -> None:
    refused = forecast(tiny_spec(method="udp-fedavg", delta=0.5))
    assert refused.fatal and not refused.answers and refused.id == tiny_spec(method="udp-fedavg", delta=0.5).id
    assert refused.problems[0].reason == "run: delta: must be below 1/n = 0.025 for 40 clients, got 0.5"
    empty = forecast(tiny_spec(partition={"name": "dirichlet", "alpha": 0.001}, clients=200))
    assert empty.fatal and len(empty.problems) == 1 and "would get no pictures" in empty.problems[0].reason


def test_a_forecast_reads_no_picture_and_leaves_the_generator_of_torch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = few(method="udp-fedavg")
    monkeypatch.setattr(type(spec.dataset), "load", None)  # reading a picture would fail
    before = torch.random.get_rng_state()
    prediction = forecast(spec)
    assert prediction.answers and torch.equal(before, torch.random.get_rng_state())
    assert prediction.facts == {"sizes": [1000, 1000], "parameters": 784 * 4 + 4 * 10}


def test_the_time_it_takes_grows_with_the_work() -> None:
    short = forecast(few(method="fedavg", rounds=1)).seconds
    long = forecast(few(method="fedavg", rounds=50)).seconds
    assert short is not None and long is not None and 0 < short < math.inf
    assert long == pytest.approx(50 * short)  # a step is timed once on this machine


@pytest.mark.parametrize(
    ("little", "much"),
    [
        ({"name": "centaur", "head-epochs": 1}, {"name": "centaur", "head-epochs": 30}),
        ({"name": "fedceo", "every": 50}, {"name": "fedceo", "every": 1}),
        ({"name": "fedceo", "every": 1, "unsampled-clients": "mean"}, {"name": "fedceo", "every": 1}),
    ],
    ids=["last layers of their own", "smoothings", "slices"],
)
def test_work_beyond_training_takes_time(little: dict[str, Any], much: dict[str, Any]) -> None:
    less = forecast(tiny_spec(method=little, rounds=40)).seconds
    more = forecast(tiny_spec(method=much, rounds=40)).seconds
    assert less is not None and more is not None and more > 1.3 * less


def test_a_run_that_needs_too_much_memory_gives_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tiny_spec(method="udp-fedavg", clients=1000, sampling="all", sampled=1000)
    assert forecast(spec).problems == ()
    monkeypatch.setattr("engine.training.forecast.free_memory", lambda: 0.5e9)
    (problem,) = forecast(spec).problems
    assert not problem.fatal and "fewer clients a round" in problem.remedy
    need = memory(make_plan(spec), threads=1) / 1e9
    assert problem.reason == f"the run needs about {need:.1f} GB of memory, and 0.5 GB are free on this machine"
    assert forecast(tiny_spec(method="udp-fedavg")).problems == ()
    monkeypatch.setattr("engine.training.forecast.free_memory", lambda: None)  # a system that does not report it
    assert forecast(spec).problems == ()


PEAKS: list[tuple[dict[str, Any], float]] = [  # in GB, measured in a process of its own with two threads
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


@pytest.mark.parametrize(("fields", "peak"), PEAKS)
def test_the_memory_in_the_forecast_is_near_the_measured_peak(fields: dict[str, Any], peak: float) -> None:
    assert memory(make_plan(RunSpec(**fields)), threads=2) / 1e9 == pytest.approx(peak, rel=0.3)


def test_the_free_memory_is_read_where_the_system_reports_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    monkeypatch.setattr("engine.training.forecast.MEMINFO", meminfo)
    assert free_memory() is None
    meminfo.write_text("MemTotal: 32 kB\nMemAvailable:      3000 kB\nBuffers: 1 kB\n")
    assert free_memory() == 3000 * 1024
    meminfo.write_text("MemTotal: 32 kB\n")
    assert free_memory() is None


def test_the_cliff_is_given_as_noise_over_signal() -> None:
    cliff = forecast(few(method={**FULL, "noise": 2.0, "clip": 3.0})).cliff
    assert cliff is not None and cliff.parameters == 784 * 4 + 4 * 10
    assert cliff.ratio == pytest.approx(2.0 * math.sqrt(cliff.parameters))  # C is on both sides
    assert (cliff.noise_from, cliff.noise_to) == pytest.approx(
        [end / math.sqrt(cliff.parameters) for end in cliff.region]
    )
    assert cliff.pixels == 784 and cliff.region == cliff_region(few().model, 784, cliff.parameters)
    baseline = forecast(few(method="fedavg")).cliff
    assert baseline is not None and baseline.ratio is None


def test_c03_a_forecast_trains_no_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three full rounds of a wide network took 16 s in the process of the page."""

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("a forecast trained a round")

    for module in ("engine.training.rounds", "engine.training.loop"):
        monkeypatch.setattr(f"{module}.train_round", refused)
    assert forecast(RunSpec(method="udp-fedavg")).seconds is not None


@pytest.mark.parametrize("view", ["server", "outsider"])
def test_the_noises_of_several_budgets_are_those_of_a_forecast_for_each(view: str) -> None:
    spec = few(method={**FULL, "noise": 0.7})
    for entry in budget_noises(spec, view, (100.0, 3.0)):  # type: ignore[arg-type]
        single = forecast(spec.with_(target_epsilon=entry.budget, view=view))
        assert single.noise is not None and entry.noise == shown_noise(single.noise)
        run = forecast(spec.with_(method=spec.method.with_noise(entry.noise)))  # type: ignore[attr-defined]
        answers = {answer.view: answer for answer in run.answers}
        of_run = answers[view]
        assert entry.epsilon and entry.epsilon.value and entry.epsilon.value <= entry.budget
        assert entry.epsilon.value == pytest.approx(of_run.value, rel=1e-12)  # the last bit depends on the search
        assert replace(entry.epsilon, value=of_run.value) == of_run


@pytest.mark.parametrize("view", ["server", "outsider"])
@pytest.mark.parametrize(
    "method", [FULL, {"name": "fedceo", "noise-split": "full-local"}, {"name": "fedceo"}, {"name": "dp-fedavg"}]
)
def test_the_printed_noise_of_a_budget_keeps_it(method: dict[str, str], view: str) -> None:
    """Position 10 printed noise 1.32 and ran 1.323: ε of the printed noise was 10.024."""
    spec = few(method=method)
    for entry in budget_noises(spec, view, (1000.0, 30.0, 10.0, 3.0)):  # type: ignore[arg-type]
        assert entry.noise is not None and entry.noise == float(f"{entry.noise:.3g}")
        run = forecast(spec.with_(method=spec.method.with_noise(entry.noise)), timed=False)  # type: ignore[attr-defined]
        epsilon = next(answer.value for answer in run.answers if answer.view == view)
        assert epsilon is not None and epsilon <= entry.budget


@pytest.mark.parametrize(("noise", "printed"), [(1.323, 1.33), (1.32, 1.32), (0.56811, 0.569), (3650.2, 3660), (0, 0)])
def test_a_solved_noise_is_rounded_up_to_three_digits(noise: float, printed: float) -> None:
    assert shown_noise(noise) == printed


def test_a_budget_that_no_noise_reaches_has_a_reason_and_the_others_stay() -> None:
    spec = few(method={"name": "udp-fedavg", "noise-split": "paper"}, sampling="all", rounds=10_000)
    easy, hard = budget_noises(spec, "server", (1000.0, 0.001))
    assert easy.noise and hard.noise is None and "must be within reach" in hard.reason


def test_a_view_without_an_epsilon_has_no_budgets() -> None:
    with pytest.raises(BadInput, match="no ε in the server view"):
        budget_noises(few(method="ppsgd"), "server", (10.0,))
