"""The exported page as the dashboard serves it: to the owners of what it shows, as a file, and else as a sentence."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from app import server
from app.export.served import served_export
from app.session import cookie, limits
from engine.examples.start import start_example
from engine.jobs.store import Store
from engine.specs.run import RunSpec
from tests.app.export.makers import RUN, attack_on, stored_attack, stored_run
from tests.engine.jobs.makers import photo


@pytest.fixture
def run(store: Store) -> RunSpec:
    spec = RunSpec(**RUN)
    stored_run(store, spec)
    return spec


def upload() -> bytes:
    """An uploaded picture as a file."""
    file = io.BytesIO()
    photo().save(file, "PNG")
    return file.getvalue()


def test_a_run_and_its_attack_are_served_as_files(store: Store, run: RunSpec) -> None:
    attack = attack_on(run)
    stored_attack(store, attack, [20.0])
    for kind, id in (("run", run.id), ("attack", attack.id)):
        exported = served_export(store, kind, id, "ann")
        assert (exported.status, exported.name) == (200, f"leaklens-{kind}-{id}.html")
        assert exported.text.startswith("<!doctype html>") and id in exported.text


@pytest.mark.parametrize(
    ("kind", "id"), [("run", "deadbeef0000"), ("attack", ""), ("batch", ""), ("run", "../../etc/passwd")]
)
def test_what_is_not_there_is_one_sentence(store: Store, run: RunSpec, kind: str, id: str) -> None:
    exported = served_export(store, kind, id or run.id, "ann")
    assert exported.status == 404 and exported.text.count("\n") == 0 and "<" not in exported.text


def test_a_run_without_a_result_says_what_to_do(store: Store) -> None:
    spec = RunSpec(**{**RUN, "seed": 9})
    store.submit(spec.id, spec.canonical())
    exported = served_export(store, "run", spec.id, "")
    assert exported.status == 409 and "Wait until it has finished" in exported.text


def test_b1_a_page_leaves_out_the_picture_of_another_visitor(store: Store, run: RunSpec) -> None:
    name = store.owners.add(upload(), "ann")
    private = attack_on(run, pictures=(f"own-{name}-0",))
    stored_attack(store, private, [20.0])
    public = attack_on(run)
    stored_attack(store, public, [20.0])
    assert served_export(store, "attack", private.id, "bob").status == 404
    assert served_export(store, "attack", private.id, "ann").status == 200
    page = {visitor: served_export(store, "run", run.id, visitor).text for visitor in ("ann", "bob", "")}
    assert name in page["ann"] and name in page[""] and name not in page["bob"]
    assert public.id in page["bob"]


def answered(path: str, token: str = "", query: str = "") -> tuple[int, dict[str, str]]:
    """The status and the headers of the answer to a browser with this cookie."""
    messages: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        messages.append(message)

    headers = [(b"cookie", f"{cookie.COOKIE}={token}".encode())] if token else []
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": headers,
        "root_path": "",
    }
    routes = Starlette(routes=[Route(route, server.export) for route in (server.EXPORT, server.EXPORT_LIST)])
    asyncio.run(routes(scope, receive, send))
    return messages[0]["status"], {name.decode(): value.decode() for name, value in messages[0]["headers"]}


@pytest.mark.slow
@pytest.mark.usefixtures("resting")
def test_the_route_asks_the_cookie_in_class_mode(store: Store, run: RunSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    token = cookie.new_token()
    visitor = cookie.visitor_id(token)
    assert visitor
    name = store.owners.add(upload(), visitor)
    attack = attack_on(run, pictures=(f"own-{name}-0",))
    stored_attack(store, attack, [20.0])
    path = f"/export/attack/{attack.id}.html"
    status, headers = answered(path)
    assert (
        status == 200 and headers["content-disposition"] == f'attachment; filename="leaklens-attack-{attack.id}.html"'
    )
    assert headers["cache-control"] == "no-store"
    monkeypatch.setattr(limits, "class_mode", lambda: True)
    assert answered(path)[1]["cache-control"] == "no-store"
    assert [answered(path, other)[0] for other in ("", token, cookie.new_token())] == [404, 200, 404]
    query = f"ids={attack.id}"
    answers = [answered("/export/grid.html", other, query)[0] for other in ("", token, cookie.new_token())]
    assert answers == [404, 200, 404]


def test_a_list_of_attacks_and_their_run_shows_the_accuracy_too(store: Store) -> None:
    example = start_example()
    assert example
    stop = example.stops[-1]
    ids = [stop.run.id, *(cell.id for cell in example.cells(stop, "server", "1"))]
    exported = served_export(store, "grid", ",".join(ids), "")
    accuracy = f"{100 * stop.accuracy:.1f} %"
    assert exported.status == 200 and accuracy in exported.text and "not recognised" in exported.text
    alone = served_export(store, "grid", stop.run.id, "")
    assert alone.status == 200 and accuracy in alone.text
