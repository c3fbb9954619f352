"""What the rounds of a run spend, computed before it starts: for a target ε, for a budget and for the forecast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.capabilities import HasNoise
from engine.methods import Method
from engine.privacy.ledger import Ledger
from engine.records import Gaussian, NoNoise, Release, View, World
from engine.seeds import Cohort


@dataclass(frozen=True)
class Spending:
    """The ledgers of a run's rounds. They add pairs in blocks, which a run must not do (see `Sums`)."""

    world: World
    cohort: Callable[[int], Cohort]

    def after(self, rounds: int, method: Method) -> Ledger:
        """The ledger of the first rounds."""
        return self.extended(self.empty(), 0, rounds, method)

    def empty(self) -> Ledger:
        return Ledger(self.world.clients, self.world.delta, in_blocks=True)

    def extended(self, ledger: Ledger, after: int, until: int, method: Method) -> Ledger:
        """A copy of the ledger with the rounds that follow."""
        longer = ledger.copy()
        rounds = range(after + 1, until + 1)
        repeated = self._repeated(rounds, method)
        if repeated is not None:
            longer.add(repeated)
            return longer
        for round in rounds:
            longer.add(method.releases(self.world, round, self.cohort(round)))
        return longer

    def _repeated(self, rounds: Iterable[int], method: Method) -> tuple[Release, ...] | None:
        """The releases of these rounds together, if they follow from how often each client was in one."""
        counts = np.zeros(self.world.clients, dtype=np.intp)
        if not counts_suffice(method) or method.repeated_releases(self.world, counts) is None:
            return None
        for round in rounds:
            counts[self.cohort(round).array] += 1
        return method.repeated_releases(self.world, counts)

    def by_noise(self, method: HasNoise) -> Callable[[float, Sequence[View] | None], Ledger]:
        """The ledger of all rounds for any noise, in some views or in all.

        Where the noise scales every Gaussian, the rounds are added once. A search tries ten noises or more.
        """

        def added(noise: float, views: Sequence[View] | None) -> Ledger:
            changed = method.with_noise(noise)
            assert isinstance(changed, Method)
            ledger = self.after(self.world.rounds, changed)
            return ledger if views is None else ledger.with_views(views)

        if not self._scales_with_noise(method):
            return added
        unit = added(1.0, None)
        return unit.with_noise

    def _scales_with_noise(self, method: HasNoise) -> bool:
        """Whether twice the noise doubles every Gaussian of a release, tried in rounds of every kind."""
        world = self.world
        single, double = method.with_noise(1.0), method.with_noise(2.0)
        assert isinstance(single, Method) and isinstance(double, Method)
        tried = {*range(1, 4), *single.landmarks(world)[:2], world.rounds}
        for round in sorted(tried & {*range(1, world.rounds + 1)}):
            cohort = self.cohort(round)
            pairs = zip(
                single.releases(world, round, cohort),
                double.releases(world, round, cohort),
                strict=True,
            )
            for first, second in pairs:
                law = first.mechanism
                doubled = replace(law, z=2 * law.z) if isinstance(law, Gaussian) else law
                if doubled != second.mechanism or not isinstance(law, Gaussian | NoNoise):
                    return False
        return True

    def last_within(self, method: Method, view: View, budget: float) -> tuple[int, Ledger]:
        """The last round that keeps the budget, and its ledger: rounds are doubled, then halved."""
        low, kept = 0, self.empty()
        high = min(1, self.world.rounds)
        while high > low:
            ledger = self.extended(kept, low, high, method)
            if ledger.exceeds(view, budget):
                break
            low, kept = high, ledger
            high = min(2 * high, self.world.rounds)
        while high - low > 1:
            middle = (low + high) // 2
            ledger = self.extended(kept, low, middle, method)
            if ledger.exceeds(view, budget):
                high = middle
            else:
                low, kept = middle, ledger
        return low, kept


def counts_suffice(method: Method) -> bool:
    """Whether every class that says what a round releases also says what many rounds release.

    Privacy: otherwise the releases of a base would be charged instead of those of a method derived from it.
    """
    classes = [vars(kind) for kind in type(method).__mro__]
    return all("repeated_releases" in names for names in classes if "releases" in names)
