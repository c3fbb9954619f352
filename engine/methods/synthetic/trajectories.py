"""What FedLAP and FedLAP-DP share: pictures that follow trajectories of the model near the server's one."""

from __future__ import annotations

from pydantic import Field

from engine.compute.condensing import GradientDistance, MovingPictures, PlainModel
from engine.compute.context import ClientContext
from engine.methods.base import Method
from engine.methods.synthetic.base import Access, Synthetic
from engine.records import Weights


class Trajectories(Synthetic):
    """Clients match gradients along trajectories that begin at the server's model and stay near it."""

    radius: float = Field(
        10.0, gt=0, le=1e6, title="radius r", description="How far a trajectory goes from the server's model at most."
    )
    trajectories: int = Field(
        1, ge=1, le=100, title="trajectories", description="How often a client begins again at the server's model."
    )
    stops: int = Field(
        5, ge=1, le=100, title="stops", description="Points of a trajectory at which gradients are matched, at most."
    )
    batches: int = Field(
        4, ge=1, le=1000, title="batches", description="Batches of the client's data whose gradients a stop matches."
    )
    boost: int = Field(
        5, ge=1, le=1000, title="picture steps", description="Steps of the pictures towards each of these gradients."
    )
    inner: int = Field(
        0, ge=0, le=1000, title="model steps", description="Steps of the model on the pictures between two stops."
    )

    @property
    def accesses(self) -> int:
        """Reads of the data in a round. A trajectory that ends early is charged in full."""
        return self.trajectories * self.stops * self.batches

    @property
    def picture_steps(self) -> int:
        return self.boost

    def follow(
        self,
        access: Access,
        pictures: MovingPictures,
        start: Weights,
        matching: GradientDistance,
        context: ClientContext,
    ) -> None:
        """Move the pictures along all trajectories."""
        model = PlainModel.of(context.world, start, context.rng("dropout"))
        lr = self.rate(context.world, context.seat.round)
        for _ in range(self.trajectories):
            model.load(start)
            for _ in range(self.stops):
                self._match(access, pictures, model, matching)
                for _ in range(self.inner):
                    model.move(model.gradient(pictures.x, pictures.y), lr)
                if model.distance_to(start) >= self.radius:
                    break

    def _match(self, access: Access, pictures: MovingPictures, model: PlainModel, matching: GradientDistance) -> None:
        for _ in range(self.batches):
            target = access(model)
            for _ in range(self.boost):
                pictures.match(model, target, matching, self.image_lr)

    def trial(self) -> Method:
        least = {"trajectories": 1, "stops": 1, "batches": 1, "server_steps": min(2, self.server_steps)}
        return self.with_(**least)


def comparison(name: str, square: float) -> GradientDistance:
    """How two gradients are compared, by the name of the option. `calibrated` compares directions alone."""
    weight = {"cosine+mse": square, "mse": 1.0}.get(name, 0.0)
    return GradientDistance(cosine=name != "mse", square=weight)
