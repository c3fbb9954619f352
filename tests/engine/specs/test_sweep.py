"""A sweep: the runs it consists of, and the summary of several results at one point."""

from __future__ import annotations

from typing import Any

import pytest

from engine.epsilon import Epsilon, of_report
from engine.errors import BadInput
from engine.methods import METHODS
from engine.methods.user_level.udp_fedavg import UDPFedAvg
from engine.results.summary import PointResult, PointSummary, common_seeds, point_result, summaries
from engine.specs.run import RunSpec
from engine.specs.sweep import SweepGrid, SweepPoint, points
from tests.engine import makers


def tiny(**changes: Any) -> RunSpec:
    return makers.tiny_spec(**{"sampling": "poisson", **changes})


UDP, AVG, PPSGD = {"name": "udp-fedavg"}, {"name": "fedavg"}, {"name": "ppsgd"}


def grid(*methods: dict[str, Any], noises: tuple[float, ...] = (0.5, 1.0), **more: Any) -> SweepGrid:
    return SweepGrid(methods, noises, **more)


def test_every_point_is_a_separate_run_and_the_first_seed_comes_first() -> None:
    sweep = points(tiny(), grid(UDP, PPSGD, seeds=(3, 4)))
    assert [point.seed for point in sweep] == [3] * 4 + [4] * 4
    assert len({point.spec.id for point in sweep}) == 8
    assert {(point.method, point.noise) for point in sweep} == {
        (name, noise) for name in ("udp-fedavg", "ppsgd") for noise in (0.5, 1.0)
    }
    assert sweep[0].spec == tiny(method={"name": "udp-fedavg", "noise": 0.5})


def test_a_method_without_noise_is_one_point() -> None:
    sweep = points(tiny(), grid(AVG, UDP))
    assert [(point.method, point.noise) for point in sweep] == [
        ("fedavg", None),
        ("udp-fedavg", 0.5),
        ("udp-fedavg", 1.0),
    ]


def test_methods_share_the_fields_of_the_base_and_keep_their_own() -> None:
    base = tiny(method={"name": "udp-fedavg", "clip": 0.5, "noise-split": "full-local"})
    udp, ppsgd, avg = points(base, grid(UDP, PPSGD, AVG, noises=(1.0,), seeds=(3,)))
    assert (udp.spec.method.clip, udp.spec.method.noise_split) == (0.5, "full-local")  # type: ignore[attr-defined]
    assert (ppsgd.spec.method.clip, ppsgd.spec.method.noise_split) == (0.5, "full-local")  # type: ignore[attr-defined]
    assert avg.spec == tiny(method="fedavg") and avg.step == 1.0
    other = tiny(method={"name": "ppsgd", "noise-split": "paper", "head-epochs": 4})
    assert points(other, grid(PPSGD, noises=(2.0,)))[0].spec.method.head_epochs == 4  # type: ignore[attr-defined]
    at_server = tiny(method={"name": "centaur", "noise-split": "paper"})
    assert points(at_server, grid(UDP, noises=(2.0,), seeds=(3,)))[0].spec == tiny(
        method={"name": "udp-fedavg", "noise": 2.0}
    )


def test_a_noise_split_that_a_method_does_not_have_is_left_out() -> None:
    base = tiny(method={"name": "udp-fedavg", "noise-split": "full-local"})
    centaur, udp = points(base, grid({"name": "centaur", "noise-split": "server"}, UDP, noises=(1.0,)))
    assert centaur.spec.method.noise_split == "server"  # type: ignore[attr-defined]
    assert udp.spec.method.noise_split == "full-local"  # type: ignore[attr-defined]


def test_every_server_step_is_a_point_and_equal_runs_are_one_point() -> None:
    sweep = points(tiny(), grid(UDP, noises=(1.0,), seeds=(3,), steps=(0.1, 0.3)))
    assert [point.step for point in sweep] == [0.1, 0.3] and sweep[0].spec == tiny(method=dict(UDP))
    assert len(points(tiny(), grid(UDP, UDP, noises=(1.0, 1.0)))) == 1


def test_too_many_points_or_none_are_refused() -> None:
    with pytest.raises(BadInput, match="must be at most 500"):
        points(tiny(), grid(UDP, seeds=tuple(range(300))))
    with pytest.raises(BadInput, match="must be at least 1"):
        points(tiny(), grid(UDP, noises=()))


def result(noise: float, step: float, seed: int, accuracy: float, epsilon: float | None = 2.0) -> PointResult:
    point = SweepPoint("udp-fedavg", noise, step, seed, RunSpec())
    epsilons = {"outsider": epsilon, "server": 9.0 + seed}
    return PointResult(point, accuracy, None, of_report({"epsilon": epsilons, "unit": "user"}), "user")


def values(summary: PointSummary) -> dict[str, float | None]:
    """ε by view."""
    epsilons = {view: summary.epsilon(view) for view in summary.views}
    return {view: epsilon.value for view, epsilon in epsilons.items() if epsilon}


def test_each_noise_keeps_the_step_with_the_best_mean_over_seeds() -> None:
    (low, high) = summaries(
        [
            result(0.5, 0.1, 0, 0.6), result(0.5, 0.1, 1, 0.7), result(0.5, 1.0, 0, 0.9), result(0.5, 1.0, 1, 0.2),
            result(1.0, 0.1, 0, 0.3), result(1.0, 1.0, 0, 0.4, None), result(1.0, 1.0, 1, 0.2),
        ]
    )  # fmt: skip
    assert (low.noise, low.step) == (0.5, 0.1) and low.mean == pytest.approx(0.65)
    assert low.spread == pytest.approx(0.05) and values(low) == {"outsider": 2.0, "server": 10.0}
    assert (high.step, len(high.accuracies)) == (1.0, 2)  # compared on seed 0, which both have
    assert values(high) == {"outsider": None, "server": 10.0}


def test_steps_are_compared_on_the_seeds_that_all_of_them_finished() -> None:
    slow = [result(1.0, 0.1, seed, accuracy) for seed, accuracy in enumerate((0.4, 0.4, 0.9))]
    quick = [result(1.0, 1.0, seed, 0.6) for seed in (0, 1)]  # its third run did not finish
    (best,) = summaries([*slow, *quick])
    assert (best.step, best.seeds) == (1.0, 2) and best.score() == pytest.approx(0.6)
    (most,) = summaries([*slow[1:], result(1.0, 1.0, 0, 0.6)])  # no seed in common: more seeds count
    assert (most.step, most.seeds) == (0.1, 2)


def test_a_summary_of_some_seeds() -> None:
    (first,) = summaries([result(1.0, 0.1, 0, 0.4), result(1.0, 0.1, 1, 0.6)])
    (second,) = summaries([result(2.0, 0.1, 1, 0.4), result(2.0, 0.1, 2, 0.6)])
    assert common_seeds([first, second]) == {1} and common_seeds([]) == set()
    part = first.of_seeds({1})
    assert part and (part.seeds, part.score(), values(part)["server"]) == (1, 0.6, 10.0) and first.of_seeds({5}) is None


def test_a_run_without_accuracy_gives_no_result() -> None:
    point = SweepPoint("fedavg", None, 1.0, 0, RunSpec())
    assert point_result(point, {"accuracy": None}) is None
    result = point_result(
        point, {"accuracy": 0.5, "accuracy-personal": 0.6, "epsilon": {}, "reason": {"server": "because"}}
    )
    assert result is not None and (result.accuracy, result.personal) == (0.5, 0.6)
    assert (result.epsilons["server"].value, result.epsilons["server"].reason) == (None, "because")


def test_noises_of_different_units_never_share_an_axis() -> None:
    class Coins(UDPFedAvg):
        noise_unit = "coins"

    METHODS.add("coins", title="a test method", source="tests")(Coins)
    try:
        with pytest.raises(
            BadInput, match="sweep: methods: must count their noise in one unit, got over sensitivity: "
        ):
            points(tiny(), grid(UDP, {"name": "coins"}))
        assert points(tiny(), grid({"name": "coins"}, AVG))
    finally:
        del METHODS._parts["coins"]


def test_a_target_is_refused_where_noises_are_compared() -> None:
    with pytest.raises(BadInput, match="sweep: target-epsilon: must be left out"):
        points(tiny(method=dict(UDP), target_epsilon=8.0, view="outsider"), grid(UDP))


def test_too_many_points_are_counted_without_their_specs() -> None:
    noises = tuple(float(noise) for noise in range(1, 400))
    with pytest.raises(BadInput, match="must be at most 500, got 400000"):
        points(tiny(), grid(UDP, AVG, noises=noises, seeds=tuple(range(500)), steps=(0.1, 0.3)))


def test_a_result_keeps_the_terms_of_its_epsilon() -> None:
    point = SweepPoint("fedceo", 1.0, 0.1, 0, RunSpec())
    body = {
        "accuracy": 0.5, "accuracy-personal": None, "epsilon": {"server": 9.0}, "unit": "user", "delta": 1e-5,
        "adjacency": "zero-out", "accountant": {"server": "exact"}, "sampling": {"server": "all"},
        "bound": {"server": "upper bound"}, "reason": {}, "guarantee": {"absent": {"aggregate": "it sees each"}},
    }  # fmt: skip
    result = point_result(point, body)
    assert result is not None and result.point.id == RunSpec().id and result.score(own=True) == 0.5
    assert result.epsilons["server"] == Epsilon(9.0, "server", "user", "zero-out", 1e-5, "exact", "all", "upper bound")
    assert (result.epsilons["aggregate"].value, result.epsilons["aggregate"].reason) == (None, "it sees each")


def test_the_best_step_can_differ_between_the_shared_and_the_personal_models() -> None:
    def personal_result(step: float, shared: float, own: float) -> PointResult:
        return PointResult(SweepPoint("ppsgd", 1.0, step, 0, RunSpec()), shared, own)

    results = [personal_result(0.1, 0.7, 0.5), personal_result(1.0, 0.4, 0.8)]
    (shared,) = summaries(results)
    (own,) = summaries(results, own=True)
    assert (shared.step, shared.scores()) == (0.1, (0.7,))
    assert (own.step, own.scores(own=True), own.scores()) == (1.0, (0.8,), (0.4,))


def test_the_epsilon_of_a_summary_is_the_largest_over_its_seeds() -> None:
    results = [result(1.0, 0.1, 0, 0.6, 3.0), result(1.0, 0.1, 1, 0.7, 2.0), result(2.0, 0.1, 0, 0.6, None)]
    finite, infinite = summaries(results)
    assert finite.finite_epsilon("outsider") is results[0].epsilons["outsider"]
    assert finite.finite_epsilon("server") is results[1].epsilons["server"]
    assert finite.seeds == 2
    assert infinite.finite_epsilon("outsider") is None and finite.finite_epsilon("client") is None
