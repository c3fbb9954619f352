"""Runs and attacks as the tests of an exported page find them in a store, and such a page taken apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Any

from engine.events import Event, Finished, Judged, Seen, Started
from engine.jobs.store import Store
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from tests.app.makers import Asker, told
from tests.app.screens.leak.makers import whole

CLASSES = ("trouser", "bag", "boot", "shirt")
FORMAL = {"status": "formal-other-view", "reason": "the noise is shared", "absent": {"client": "nobody else is there"}}
VOID = {"meta", "img", "input", "br"}
RUN: Mapping[str, Any] = {"method": {"name": "udp-fedavg", "noise": 0.5}, "rounds": 4}


def asked_run(store: Store, spec: RunSpec, guarantee: Mapping[str, Any] = FORMAL) -> str:
    """A finished run with an accuracy and an ε by round."""
    store.submit(spec.id, spec.canonical(), {})
    begun = Started(spec.id, spec.canonical(), {"guarantee": dict(guarantee), "unit": "user", "delta": 1e-5})
    Asker(store).tell(spec.id, begun, *told(4, spec.seed), Finished(4, 1.0))
    return spec.id


def asked_attack(
    store: Store, spec: AttackSpec, psnr: Sequence[float], state: str = "converged", **changes: Any
) -> str:
    """A finished attack; `changes` are made to its verdict."""
    events: list[Event] = [Started(spec.id, spec.canonical(), {"classes": list(CLASSES)})]
    for event in whole(spec.id, psnr, state)[1:]:
        if isinstance(event, Seen):
            event = replace(event, facts={**event.facts, "labels": [3] * len(psnr)})
        events.append(replace(event, **changes) if isinstance(event, Judged) else event)
    store.submit(spec.id, spec.canonical(), {})
    Asker(store).tell(spec.id, *events)
    return spec.id


def attack_on(run: RunSpec, **changes: Any) -> AttackSpec:
    return AttackSpec(**{"run": run.canonical(), "attack": "map", "pictures": ["test-0"], **changes})


@dataclass
class Node:
    """One element with everything in it."""

    name: str
    attributes: dict[str, str | None]
    inside: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """As a browser shows it, scripts and styles left out."""
        if self.name in ("script", "style"):
            return ""
        return "".join(one if isinstance(one, str) else one.text for one in self.inside)

    def all(self, name: str) -> list[Node]:
        here = [self] if self.name == name else []
        return here + [found for one in self.inside if isinstance(one, Node) for found in one.all(name)]

    def raw(self) -> str:
        return "".join(one for one in self.inside if isinstance(one, str))


class Reader(HTMLParser):
    """Refuses what is closed wrongly: a browser would mend it in silence."""

    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs))
        assert len(node.attributes) == len(attrs), f"<{tag}> says an attribute twice"
        self.open[-1].inside.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def parsed(page: str) -> Node:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert len(reader.open) == 1, "something was never closed"
    return reader.open[0]
