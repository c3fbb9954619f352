"""Stored runs and attacks for the tests of an exported page, and a parser of such pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Any

from engine.events import Event, Finished, Judged, Seen, Started
from engine.jobs.store import Store
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from tests.app.makers import RunMaker, run_events
from tests.app.screens.leak.makers import finished_attack

CLASSES = ("trouser", "bag", "boot", "shirt")
FORMAL = {
    "status": "formal-other-view",
    "reason": "the noise is shared",
    "absent": {"client": "no one else takes part"},
}
TEMPLATE = re.compile(r"\{\w*\}")  # a field that `format` did not fill
VOID = {"meta", "img", "input", "br"}
RUN: Mapping[str, Any] = {"method": {"name": "udp-fedavg", "noise": 0.5}, "rounds": 4}


def stored_run(store: Store, spec: RunSpec, guarantee: Mapping[str, Any] = FORMAL, **facts: Any) -> str:
    """A finished run with an accuracy and an ε by round. `facts` are added to those of its start."""
    store.submit(spec.id, spec.canonical(), {})
    known = {"guarantee": dict(guarantee), "unit": "user", "delta": 1e-5, **facts}
    started = Started(spec.id, spec.canonical(), known)
    RunMaker(store).tell(spec.id, started, *run_events(4, spec.seed), Finished(4, 1.0))
    return spec.id


def stored_attack(
    store: Store, spec: AttackSpec, psnr: Sequence[float], state: str = "converged", **changes: Any
) -> str:
    """A finished attack, with `changes` to its Judged event."""
    events: list[Event] = [Started(spec.id, spec.canonical(), {"classes": list(CLASSES)})]
    for event in finished_attack(spec.id, psnr, state)[1:]:
        if isinstance(event, Seen):
            event = replace(event, facts={**event.facts, "labels": [3] * len(psnr)})
        events.append(replace(event, **changes) if isinstance(event, Judged) else event)
    store.submit(spec.id, spec.canonical(), {})
    RunMaker(store).tell(spec.id, *events)
    return spec.id


def attack_on(run: RunSpec, **changes: Any) -> AttackSpec:
    return AttackSpec(**{"run": run.canonical(), "attack": "map", "pictures": ["test-0"], **changes})


@dataclass
class Node:
    """One element with its children."""

    name: str
    attributes: dict[str, str | None]
    inside: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text as a browser shows it, without scripts and styles."""
        if self.name in ("script", "style"):
            return ""
        return "".join(child if isinstance(child, str) else child.text for child in self.inside)

    def all(self, name: str) -> list[Node]:
        """All elements with a name, in the order of the page."""
        nodes = [self] if self.name == name else []
        for child in self.inside:
            if isinstance(child, Node):
                nodes += child.all(name)
        return nodes

    def raw(self) -> str:
        """The text directly in this element."""
        return "".join(child for child in self.inside if isinstance(child, str))


class Reader(HTMLParser):
    """Builds the tree of a page. It fails on a wrong end tag, which a browser would repair without a message."""

    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs))
        assert len(node.attributes) == len(attrs), f"<{tag}> has an attribute twice"
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
    assert len(reader.open) == 1, "an element has no end tag"
    check_templates(reader.open[0])
    return reader.open[0]


def check_templates(node: Node) -> None:
    """Fail if a text or an attribute still has a field of its template, such as `{count}`."""
    texts = [node.text]
    nodes = [node]
    while nodes:
        element = nodes.pop()
        texts += [value for value in element.attributes.values() if value]
        nodes += [child for child in element.inside if isinstance(child, Node)]
    unfilled = [match for text in texts for match in TEMPLATE.findall(text)]
    assert not unfilled, f"unfilled templates: {unfilled}"
