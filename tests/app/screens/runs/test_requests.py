"""The buttons of the Runs screen act on their own run, and only as far as the visitor may."""

from __future__ import annotations

import pytest

from app.screens.runs import listing as run_listing
from app.screens.runs import requests as run_requests
from app.session import limits as class_limits
from app.session import pins, run_settings, session
from app.texts import runs as run_texts
from app.texts import states
from engine.events import Finished
from engine.jobs.batches import Batch, BatchMember
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from engine.specs.run import RunSpec
from tests.app.conftest import Screen
from tests.app.makers import ROUNDS, RunMaker
from tests.app.reading import actions_of, lines, press, text

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]


# --- the buttons -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["queued", "running"])
def test_an_unfinished_run_is_cancelled(store: Store, ask: RunMaker, screen: Screen, status: str) -> None:
    run = ask(status)
    page = screen("runs")
    assert actions_of(page, run) == {"open", "cancel", "pin"}
    press(page, "cancel", run)
    assert store.status(run) == "cancelled" and "state cancelled" in lines(page)[run]


@pytest.mark.parametrize("status", run_listing.STOPPED)
def test_a_stopped_run_is_resumed(store: Store, ask: RunMaker, screen: Screen, status: str) -> None:
    run = ask(status)
    page = screen("runs")
    assert actions_of(page, run) == {"open", "resume", "pin", "delete"}
    press(page, "resume", run)
    assert store.status(run) == "queued" and store.run(run).attempt == 2
    assert "state waiting" in lines(page)[run] and "submitted 2 times" in lines(page)[run]


def test_a_finished_run_is_opened_pinned_or_deleted(ask: RunMaker, screen: Screen) -> None:
    run = ask("finished")
    assert actions_of(screen("runs"), run) == {"open", "pin", "delete"}


def test_open_shows_the_run_in_try_with_its_settings(ask: RunMaker, screen: Screen) -> None:
    run = ask("finished", lr=0.25, method={"name": "udp-fedavg", "noise": 0.7, "server-step": 1.0})
    page = screen("runs")
    press(page, "open", run)
    assert not page.exception
    settings = page.session_state["try"]
    assert (settings.run["lr"], settings.run["method.noise"], settings.run["rounds"]) == (0.25, 0.7, ROUNDS)
    assert run_settings.spec_of(settings.run).id == run and settings.opened == ""


def test_pin_and_unpin(ask: RunMaker, screen: Screen) -> None:
    runs = [ask("finished", seed) for seed in range(pins.MOST + 1)]
    page = screen("runs")
    for run in runs[:-1]:
        press(page, "pin", run)
    assert page.session_state["try"].pins == tuple(runs[:-1])
    assert page.button(key=f"pin:{runs[-1]}").disabled
    press(page, "unpin", runs[0])
    assert page.session_state["try"].pins == tuple(runs[1:-1])
    assert not page.button(key=f"pin:{runs[-1]}").disabled


def test_every_button_names_its_run(ask: RunMaker, screen: Screen) -> None:
    for seed, status in enumerate(run_listing.STATUSES):
        ask(status, seed)
    labels = [button.label for button in screen("runs").button]
    assert len(labels) == len(set(labels)) > 12


def test_a_run_without_a_spec_can_only_be_deleted(store: Store, screen: Screen) -> None:
    store.submit("lost", {})
    store.cancel("lost")
    page = screen("runs")
    assert actions_of(page, "lost") == {"delete"} and run_texts.UNREADABLE in text(page)


# --- deleting ----------------------------------------------------------------------------------------------


def test_delete_asks_once_and_reports_the_freed_space(store: Store, ask: RunMaker, screen: Screen) -> None:
    run = ask("finished")
    other = ask("finished", 1)
    folder = store.home.folder(run)
    folder.mkdir()
    (folder / "partition.npz").write_bytes(b"0" * 5_000_000)
    freed = run_texts.size(store.run(run).bytes)
    assert freed.startswith("5") and freed.endswith(" MB")
    page = press(screen("runs"), "delete", run)
    assert run_texts.FREES.format(size=freed) in [block.value for block in page.markdown]
    assert store.status(run) == "finished"
    press(page, "delete-for-good")
    assert [row.id for row in store.runs()] == [other] == list(lines(page)) and not folder.exists()
    assert run_texts.DELETED.format(many="1 run", size=freed) in text(page)


def test_keep_deletes_nothing(store: Store, ask: RunMaker, screen: Screen) -> None:
    run = ask("finished")
    page = press(press(screen("runs"), "delete", run), "keep")
    assert store.status(run) == "finished"
    assert not [button for button in page.button if button.key == "delete-for-good"]


def test_all_deletable_matches_of_the_filter_are_deleted_together(store: Store, ask: RunMaker, screen: Screen) -> None:
    deletable = [ask("failed", 1), ask("cancelled", 2)]
    kept = [ask("finished", 3), ask("running", 4), ask("queued", 5)]
    page = screen("runs")
    assert "delete-all" not in [button.key for button in page.button]
    page.pills(key="runs-states").set_value(["failed", "cancelled", "running"]).run()
    press(page, "delete-all")
    assert {run for run in deletable + kept if run in text(page).partition("<ul>")[2]} == set(deletable)
    press(page, "delete-for-good")
    assert {row.id for row in store.runs()} == set(kept)


def test_a_run_that_was_submitted_again_is_not_deleted(store: Store, ask: RunMaker, screen: Screen) -> None:
    run = ask("failed")
    page = press(screen("runs"), "delete", run)
    store.submit(run, store.run(run).spec)
    press(page, "delete-for-good")
    assert store.status(run) == "queued"


# --- class mode --------------------------------------------------------------------------------------------


def class_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")


def test_in_a_class_a_visitor_changes_only_own_runs(
    store: Store, ask: RunMaker, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    class_mode(monkeypatch)
    own = ask("failed", 1, "me")
    other = ask("failed", 2, "you")
    running = ask("running", 3, "you")
    page = screen("runs")
    assert list(lines(page)) == [running, other, own]
    assert actions_of(page, own) == {"open", "resume", "pin", "delete"}
    assert actions_of(page, other) == actions_of(page, running) == {"open", "pin"}
    page.pills(key="runs-states").set_value(["failed"]).run()
    press(press(page, "delete-all"), "delete-for-good")
    assert {row.id for row in store.runs()} == {other, running}


def test_b21_in_a_class_a_run_that_is_too_large_is_not_offered_again(
    ask: RunMaker, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    class_mode(monkeypatch)
    monkeypatch.setattr(class_limits, "caps", lambda: class_limits.VisitorLimits(rounds=ROUNDS - 1))
    run = ask("failed", 2, "me")
    button = screen("runs").button(key=f"resume:{run}")
    assert button.disabled and f"rounds must be at most {ROUNDS - 1}" in button.help


def test_in_a_class_resuming_keeps_to_the_limits(
    store: Store, ask: RunMaker, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    class_mode(monkeypatch)
    monkeypatch.setattr(class_limits, "caps", lambda: class_limits.VisitorLimits(runs=1))
    ask("running", 1, "me")
    run = ask("failed", 2, "me")
    page = press(screen("runs"), "resume", run)
    assert store.status(run) == "failed" and "at most 1 runs waiting or running" in text(page)


def test_in_a_class_a_run_that_another_visitor_requested_is_not_cancelled(
    store: Store, ask: RunMaker, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    class_mode(monkeypatch)
    run = ask("running", visitor="me")
    page = screen("runs")
    store.submit(run, store.run(run).spec, visitor="you")
    press(page, "cancel", run)
    assert store.status(run) == "running" and states.shared(1, "runs").rstrip(".") in text(page)


# --- what was requested as one -----------------------------------------------------------------------------


def request_together(store: Store, visitor: str, count: int = 3) -> Batch:
    """A sweep of a few runs, as a page requests it."""
    specs = [RunSpec(method="udp-fedavg", rounds=ROUNDS, seed=seed) for seed in range(count)]
    members = tuple(BatchMember(spec.id, spec.canonical()) for spec in specs)
    batch = Batch("sweep", "three seeds", members, {"screen": "tradeoff", "link": {"noises": "1"}})
    store.batches.request(batch, visitor)
    return batch


def test_what_was_requested_as_one_is_one_group(store: Store, ask: RunMaker, screen: Screen) -> None:
    batch = request_together(store, "me")
    ask("queued", 9)
    page = screen("runs")
    assert "three seeds" in text(page) and "3 runs: 3 waiting" in text(page)
    press(page, f"cancel-all-all:{batch.id}")
    assert set(store.statuses(batch.runs).values()) == {"cancelled"}
    press(page, f"resume-all-all:{batch.id}")
    assert set(store.statuses(batch.runs).values()) == {"queued"}


def test_the_numbers_of_the_titles_add_up(store: Store, ask: RunMaker, screen: Screen) -> None:
    request_together(store, "me")
    ask("finished", 0)  # of the batch
    ask("finished", 9)
    page = text(screen("runs"))
    assert "4 runs: 2 waiting, 2 finished." in page and "Ended (1 run)" in page
    assert "Running and waiting (2 runs, and 1 ended run of the same batches)" in page


def test_a_visitor_who_withdrew_deletes_nothing_that_another_wants(
    store: Store, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    class_mode(monkeypatch)
    batch = request_together(store, "me")
    store.batches.request(batch, "you")
    store.batches.withdraw(batch.id, "me")
    page = screen("runs")
    assert f"cancel-all-all:{batch.id}" not in {str(button.key) for button in page.button}  # I want none of them
    for run in batch.runs:
        lease = store.take(ProcessId.me(), 99, {run})
        assert lease
        store.append(lease, [Finished(1, 1.0)])
    page = screen("runs")
    assert f"/export/batch/{batch.id}.html" in {link.proto.url for link in page.get("link_button")}
    assert f"delete-all:{batch.id}" not in {str(button.key) for button in page.button}
    run_requests.delete(batch.runs)
    assert set(store.statuses(batch.runs).values()) == {"finished"}


def test_groups_are_sorted(store: Store, ask: RunMaker, screen: Screen) -> None:
    first, second = ask("finished", 1), ask("finished", 5)
    page = screen("runs")
    assert list(lines(page)) == [second, first]
    page.selectbox(key="runs-sort").select("accuracy").run()
    assert list(lines(page)) == [second, first]
    ask("finished", 0)
    page.selectbox(key="runs-sort").select("accuracy").run()
    assert list(lines(page))[:2] == [second, first]
