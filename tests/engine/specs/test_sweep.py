"""A frontier: which runs it is made of, and what several results of one place come to."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import BadInput
from engine.results.summary import PointResult, common, point_result, summaries
from engine.specs.run import RunSpec
from engine.specs.sweep import SweepGrid, SweepPoint, points
from tests.engine import makers


def tiny(**changes: Any) -> RunSpec:
    return makers.tiny(**{"sampling": "poisson", **changes})


UDP, AVG, PPSGD = {"name": "udp-fedavg"}, {"name": "fedavg"}, {"name": "ppsgd"}


def grid(*methods: dict[str, Any], noises: tuple[float, ...] = (0.5, 1.0), **more: Any) -> SweepGrid:
    return SweepGrid(methods, noises, **more)


def test_every_point_is_a_run_of_its_own_and_the_first_seed_comes_first() -> None:
    found = points(tiny(), grid(UDP, PPSGD, seeds=(3, 4)))
    assert [one.seed for one in found] == [3] * 4 + [4] * 4
    assert len({one.spec.id for one in found}) == 8
    assert {(one.method, one.noise) for one in found} == {
        (name, noise) for name in ("udp-fedavg", "ppsgd") for noise in (0.5, 1.0)
    }
    assert found[0].spec == tiny(method={"name": "udp-fedavg", "noise": 0.5})


def test_a_method_without_noise_is_one_point() -> None:
    found = points(tiny(), grid(AVG, UDP))
    assert [(one.method, one.noise) for one in found] == [("fedavg", None), ("udp-fedavg", 0.5), ("udp-fedavg", 1.0)]


def test_the_question_gives_what_it_says_and_each_method_keeps_the_rest() -> None:
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


def test_a_split_that_another_method_does_not_know_stays_behind() -> None:
    base = tiny(method={"name": "udp-fedavg", "noise-split": "full-local"})
    centaur, udp = points(base, grid({"name": "centaur", "noise-split": "server"}, UDP, noises=(1.0,)))
    assert centaur.spec.method.noise_split == "server"  # type: ignore[attr-defined]
    assert udp.spec.method.noise_split == "full-local"  # type: ignore[attr-defined]


def test_steps_are_tried_for_all_and_the_same_run_is_asked_once() -> None:
    found = points(tiny(), grid(UDP, noises=(1.0,), seeds=(3,), steps=(0.1, 0.3)))
    assert [one.step for one in found] == [0.1, 0.3] and found[0].spec == tiny(method=dict(UDP))
    assert len(points(tiny(), grid(UDP, UDP, noises=(1.0, 1.0)))) == 1


def test_too_many_points_or_none_are_refused() -> None:
    with pytest.raises(BadInput, match="must be at most 500"):
        points(tiny(), grid(UDP, seeds=tuple(range(300))))
    with pytest.raises(BadInput, match="must be at least 1"):
        points(tiny(), grid(UDP, noises=()))


def told(noise: float, step: float, seed: int, accuracy: float, epsilon: float | None = 2.0) -> PointResult:
    point = SweepPoint("udp-fedavg", noise, step, seed, RunSpec())
    return PointResult(point, accuracy, None, {"outsider": epsilon, "server": 9.0 + seed}, "user")


def test_each_noise_keeps_the_step_that_did_best_over_all_seeds() -> None:
    (low, high) = summaries(
        [
            told(0.5, 0.1, 0, 0.6), told(0.5, 0.1, 1, 0.7), told(0.5, 1.0, 0, 0.9), told(0.5, 1.0, 1, 0.2),
            told(1.0, 0.1, 0, 0.3), told(1.0, 1.0, 0, 0.4, None), told(1.0, 1.0, 1, 0.2),
        ]
    )  # fmt: skip
    assert (low.noise, low.step) == (0.5, 0.1) and low.mean == pytest.approx(0.65)
    assert low.spread == pytest.approx(0.05) and low.epsilon == {"outsider": 2.0, "server": 10.0}
    assert (high.step, len(high.accuracies)) == (1.0, 2)  # compared on seed 0, which both have
    assert high.epsilon == {"outsider": None, "server": 10.0}


def test_steps_are_compared_on_the_seeds_that_all_of_them_have() -> None:
    slow = [told(1.0, 0.1, seed, accuracy) for seed, accuracy in enumerate((0.4, 0.4, 0.9))]
    quick = [told(1.0, 1.0, seed, 0.6) for seed in (0, 1)]  # its third run did not end
    (best,) = summaries([*slow, *quick])
    assert (best.step, best.seeds) == (1.0, 2) and best.score() == pytest.approx(0.6)
    (most,) = summaries([*slow[1:], told(1.0, 1.0, 0, 0.6)])  # no seed in common: more seeds count
    assert (most.step, most.seeds) == (0.1, 2)


def test_some_seeds_of_a_spot() -> None:
    (one,) = summaries([told(1.0, 0.1, 0, 0.4), told(1.0, 0.1, 1, 0.6)])
    (other,) = summaries([told(2.0, 0.1, 1, 0.4), told(2.0, 0.1, 2, 0.6)])
    assert common([one, other]) == {1} and common([]) == set()
    part = one.on({1})
    assert part and (part.seeds, part.score(), part.epsilon["server"]) == (1, 0.6, 10.0) and one.on({5}) is None


def test_a_run_that_measured_nothing_is_no_result() -> None:
    point = SweepPoint("fedavg", None, 1.0, 0, RunSpec())
    assert point_result(point, {"accuracy": None}) is None
    found = point_result(
        point, {"accuracy": 0.5, "accuracy-personal": 0.6, "epsilon": {}, "reason": {"server": "because"}}
    )
    assert found is not None and (found.accuracy, found.personal, found.why) == (0.5, 0.6, {"server": "because"})


def test_a_target_would_solve_the_noises_away() -> None:
    with pytest.raises(BadInput, match="sweep: target-epsilon: must be left out"):
        points(tiny(method=dict(UDP), target_epsilon=8.0, view="outsider"), grid(UDP))


def test_too_many_points_are_counted_and_not_made() -> None:
    noises = tuple(float(one) for one in range(1, 400))
    with pytest.raises(BadInput, match="must be at most 500, got 400000"):
        points(tiny(), grid(UDP, AVG, noises=noises, seeds=tuple(range(500)), steps=(0.1, 0.3)))


def test_a_result_keeps_the_words_of_its_epsilon() -> None:
    point = SweepPoint("fedceo", 1.0, 0.1, 0, RunSpec())
    body = {
        "accuracy": 0.5, "accuracy-personal": None, "epsilon": {"server": 9.0}, "unit": "user", "delta": 1e-5,
        "adjacency": "zero-out", "accountant": {"server": "exact"}, "sampling": {"server": "all"},
        "bound": {"server": "upper bound"}, "reason": {}, "guarantee": {"absent": {"aggregate": "it sees each"}},
    }  # fmt: skip
    found = point_result(point, body)
    assert found is not None and found.point.id == RunSpec().id and found.score(own=True) == 0.5
    assert (found.adjacency, found.delta, found.accountant["server"]) == ("zero-out", 1e-5, "exact")
    assert (found.sampling["server"], found.bound["server"]) == ("all", "upper bound")
    assert found.why == {"aggregate": "it sees each"}


def test_the_best_step_for_the_shared_model_need_not_be_that_for_the_clients_own() -> None:
    def told(step: float, shared: float, own: float) -> PointResult:
        return PointResult(SweepPoint("ppsgd", 1.0, step, 0, RunSpec()), shared, own, {"outsider": 2.0}, "user")

    found = [told(0.1, 0.7, 0.5), told(1.0, 0.4, 0.8)]
    (shared,), (own,) = summaries(found), summaries(found, own=True)
    assert (shared.step, shared.scores()) == (0.1, (0.7,))
    assert (own.step, own.scores(own=True), own.scores()) == (1.0, (0.8,), (0.4,))


def test_the_epsilon_of_a_spot_is_that_of_its_dearest_seed() -> None:
    found = [told(1.0, 0.1, 0, 0.6, 3.0), told(1.0, 0.1, 1, 0.7, 2.0), told(2.0, 0.1, 0, 0.6, None)]
    known, unknown = summaries(found)
    assert known.dearest("outsider") is found[0] and known.dearest("server") is found[1]
    assert known.seeds == 2 and unknown.dearest("outsider") is None and known.dearest("client") is None
