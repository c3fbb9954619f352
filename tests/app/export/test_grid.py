"""An exported grid shows every attack once, its ε and its scores, and never a picture of another visitor."""

from __future__ import annotations

import io
import shlex

import pytest

from app.export import grid_content
from app.export import texts as export_texts
from app.export.served import served_export
from app.texts import attacks as attack_texts
from app.texts import privacy
from engine.cli.attack import read_attack
from engine.cli.main import parser
from engine.examples import attacks as attack_examples
from engine.examples import start
from engine.jobs.batches import Batch, BatchMember
from engine.jobs.store import Store
from engine.specs import attack_grid
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from tests.app.export.makers import RUN, Node, attack_on, parsed, stored_attack, stored_run
from tests.engine.jobs.makers import photo

MAP, SEARCH = "map", "inverting-gradients"


@pytest.fixture
def baseline() -> RunSpec:
    spec = attack_grid.baseline_of(RunSpec(**RUN))
    assert spec is not None
    return spec


def upload() -> bytes:
    """An uploaded picture as a file."""
    file = io.BytesIO()
    photo().save(file, "PNG")
    return file.getvalue()


def four(store: Store, baseline: RunSpec) -> list[AttackSpec]:
    """Two attacks against two protections; the last one has not run."""
    run = RunSpec(**RUN)
    specs = [attack_on(spec, attack=name) for name in (MAP, SEARCH) for spec in (baseline, run)]
    for spec, psnr in zip(specs, (31.4, 15.2, 24.8), strict=False):
        stored_attack(store, spec, [psnr])
    store.submit(specs[-1].id, specs[-1].canonical(), {})
    return specs


def batch_of(specs: list[AttackSpec]) -> Batch:
    return Batch("leak grid", "", tuple(BatchMember(spec.id, spec.canonical()) for spec in specs))


def shown(store: Store, kind: str, id: str) -> Node:
    exported = served_export(store, kind, id, "")
    assert exported.status == 200, exported.text
    return parsed(exported.text)


def test_a_batch_is_one_page_with_its_grid(store: Store, baseline: RunSpec) -> None:
    batch = batch_of(four(store, baseline))
    store.batches.request(batch)
    node = shown(store, "batch", batch.id)
    heads = [head.raw() for head in node.all("th") if head.attributes.get("scope") == "col"]
    assert heads[:4] == ["attack", "original", "no protection", "UDP-FedAvg, noise 0.5"]
    rows = [head.raw() for head in node.all("th") if head.attributes.get("scope") == "rowgroup"]
    assert rows[-1] == "best of 2"
    assert rows == ["Most probable picture", "Inverting Gradients", attack_texts.BEST.format(count=2)]
    for words in ("3 of 4 attacks finished. The others: 1 waiting.", "31.4", "a grey square", "δ = 1e-5", batch.id):
        assert words in node.text, words
    assert [cell for cell in node.all("td") if attack_texts.WAITING in cell.text]


def try_batch(store: Store, baseline: RunSpec, runs: list[RunSpec]) -> Batch:
    """A requested batch that trains these runs and attacks two."""
    members = [*batch_of(four(store, baseline)).members, *(BatchMember(run.id, run.canonical()) for run in runs)]
    batch = Batch("try", "A run and attacks on it", tuple(members))
    store.batches.request(batch)
    return batch


def test_a_batch_that_trains_and_attacks_shows_its_attacks(store: Store, baseline: RunSpec) -> None:
    run = RunSpec(**RUN)
    text = shown(store, "batch", try_batch(store, baseline, [run]).id).text
    assert "3 of 4 attacks finished" in text and f"without a result, which are not shown: {run.id}." in text


def test_a_batch_that_trains_and_attacks_shows_the_accuracy_of_its_runs(store: Store, baseline: RunSpec) -> None:
    runs = [RunSpec(**RUN), RunSpec(**{**RUN, "seed": 1})]
    for run in runs:
        stored_run(store, run)
    node = shown(store, "batch", try_batch(store, baseline, [*runs, baseline]).id)
    assert f"without a result, which are not shown: {baseline.id}." in node.text
    sections = [section for section in node.all("section") if section.all("h2")[0].text.startswith("Run: ")]
    assert [section.all("h2")[0].text for section in sections] == [
        f"Run: UDP-FedAvg, noise 0.5, seed {seed} {run.id}" for seed, run in enumerate(runs)
    ]
    for section, run in zip(sections, runs, strict=True):
        own = parsed(served_export(store, "run", run.id, "").text)
        assert section.all("dl")[0].text == own.all("dl")[0].text  # accuracy, ε and the kind of the promise
        assert "Accuracy by round" in section.text and "δ = 1e-5" in section.text
    keys = [key for title in node.all("title") if (key := title.attributes.get("id"))]
    assert len(keys) == len(set(keys)) == 2
    starts = [shlex.split(block.text) for block in node.all("pre")]
    assert sum(words[3] == "run" for words in starts) == 3  # two that are attacked, and the second seed


@pytest.mark.parametrize("attacked", [True, False])
def test_a_batch_without_a_finished_attack_shows_its_runs(store: Store, baseline: RunSpec, attacked: bool) -> None:
    run = RunSpec(**{**RUN, "target-epsilon": 3, "view": "outsider"})
    specs = [run, baseline, *([attack_on(run)] if attacked else [])]
    batch = Batch("try", "", tuple(BatchMember(spec.id, spec.canonical()) for spec in specs))
    store.batches.request(batch)
    assert served_export(store, "batch", batch.id, "").status == 409
    for trained in (run, baseline):
        stored_run(store, trained)
    node = shown(store, "batch", batch.id)
    heads = [head.text for head in node.all("h2") if head.text.startswith("Run: ")]
    assert heads == [f"Run: UDP-FedAvg at ε 3, seed 0 {run.id}", f"Run: FedAvg, seed 0 {baseline.id}"]
    assert "2 runs finished." in node.text and [words.text.split()[3] for words in node.all("pre")] == ["run", "run"]
    assert ("Not shown: 1 attack of this batch without a result." in node.text) == attacked


def test_every_column_has_its_epsilon_in_the_view_of_the_attacker(store: Store) -> None:
    run = RunSpec(**RUN)
    for view in ("server", "outsider"):
        spec = attack_on(run, view=view)
        stored_attack(store, spec, [20.0])
        tables = [table.text for table in shown(store, "grid", spec.id).all("table")]
        (promises,) = [text for text in tables if text.startswith(f"ε {privacy.SEEN_BY[view]}, with its meaning")]
        assert "δ = 1e-5" in promises and "no ε" not in promises


def test_the_head_of_a_column_has_the_size_of_its_promise(store: Store, baseline: RunSpec) -> None:
    weak = RunSpec(**{**RUN, "target-epsilon": 3.5, "view": "outsider"})
    specs = [attack_on(spec, view="outsider") for spec in (baseline, weak)]
    for spec in specs:
        stored_attack(store, spec, [20.0])
    node = shown(store, "grid", ",".join(spec.id for spec in specs))
    heads = [head for head in node.all("th") if head.attributes.get("scope") == "col"]
    sizes = []
    for head in heads[2:4]:
        sizes += [(small.text, small.attributes.get("class")) for small in head.all("small")]
    assert (privacy.promise(None)[0], "leaking") in sizes
    assert [side for text, side in sizes if text.endswith("per client: weak promise")] == ["weak"]
    assert "what is promised against an outsider" in node.text
    (value,) = [value for value in node.all("b") if value.text.startswith("ε 3.")]
    assert value.attributes.get("class") == "weak"
    assert "ε ∞" not in "".join(head.text for head in heads)


def test_the_verdict_is_first_and_every_score_has_two_decimals(store: Store, baseline: RunSpec) -> None:
    specs = four(store, baseline)
    stored_attack(store, attack_on(baseline, seed=7), [31.4], numbers={"psnr": (31.4,), "lpips": (7.08e-14,)})
    node = shown(store, "grid", ",".join([*(spec.id for spec in specs), attack_on(baseline, seed=7).id]))
    guesses = [cell for cell in node.all("td") if str(cell.attributes.get("id")).startswith("cell-")]
    words = [guess.all("b")[0] for guess in guesses]
    assert words[0].text == "comes back" and words[0].attributes.get("class") == "word leaking"
    assert not any("dB" in word.text for word in words)
    assert "e-14" not in node.text and "LPIPS 0.00" in node.text


def test_a_grid_may_have_every_attack_of_the_screen() -> None:
    assert grid_content.MOST >= 8 * 9


def test_a_column_with_a_target_epsilon_is_named_by_it(store: Store) -> None:
    runs = [RunSpec(**{**RUN, "target-epsilon": target, "view": "outsider"}) for target in (3, 8)]
    specs = [attack_on(run, view="outsider") for run in runs]
    for spec in specs:
        stored_attack(store, spec, [20.0])
    node = shown(store, "grid", ",".join(spec.id for spec in specs))
    heads = [head.raw() for head in node.all("th") if head.attributes.get("scope") == "col"]
    assert heads[2:4] == ["UDP-FedAvg at ε 3", "UDP-FedAvg at ε 8"]
    assert "noise 1" not in node.text and "noise 0.5" not in node.text and export_texts.SOLVED in node.text


def test_columns_that_differ_only_in_their_budget_have_two_titles(store: Store) -> None:
    runs = [RunSpec(**{**RUN, "budget": budget, "view": "outsider"}) for budget in (3, 8)]
    specs = [attack_on(run) for run in runs]
    for spec in specs:
        stored_attack(store, spec, [20.0])
    node = shown(store, "grid", ",".join(spec.id for spec in specs))
    heads = [head.raw() for head in node.all("th") if head.attributes.get("scope") == "col"]
    assert [head.partition(" (")[2] for head in heads[2:4]] == ["budget 3.0)", "budget 8.0)"]


@pytest.mark.slow
def test_stored_and_live_attacks_share_a_page(store: Store) -> None:
    examples = attack_examples.attack_examples()[:2]
    live = attack_on(RunSpec(**RUN))
    stored_attack(store, live, [20.0])
    node = shown(store, "grid", ",".join([*(example.id for example in examples), live.id]))
    assert "2 of these 3 attacks come from a stored example" in node.text
    assert len(node.all("section")) >= 2 + 2  # one for each upload, the settings and the limits


@pytest.mark.slow
def test_the_stored_grid_needs_no_row_in_the_store(store: Store) -> None:
    node = shown(store, "example", attack_examples.NAME)
    assert node.text.count("comes back") > 3 and "A stored example, run on" in node.text
    assert f"Shown are the first {grid_content.MOST} of" in node.text


@pytest.mark.slow
def test_the_page_of_start_has_all_its_stored_attacks(store: Store) -> None:
    node = shown(store, "example", start.NAME)
    assert f"All {len(start.attacks())} attacks finished." in node.text and "Shown are the first" not in node.text
    uploads = [section for section in node.all("section") if section.attributes.get("class") == "upload"]
    places = {(spec["view"], start.upload_of(spec)) for spec in (example.spec for example in start.attacks())}
    assert len(uploads) == len(places)


def test_the_column_without_noise_is_first(store: Store, baseline: RunSpec) -> None:
    specs = [attack_on(RunSpec(**RUN)), attack_on(baseline)]
    for spec in specs:
        stored_attack(store, spec, [20.0])
    node = shown(store, "grid", ",".join(spec.id for spec in specs))
    heads = [head.raw() for head in node.all("th") if head.attributes.get("scope") == "col"]
    assert heads[2:4] == ["no protection", "UDP-FedAvg, noise 0.5"]


def test_the_commands_request_the_same_attacks(store: Store) -> None:
    specs = [attack_on(RunSpec(**RUN), attack={"name": MAP, "lr": 0.25}, seed=5, restarts=2)]
    stored_attack(store, specs[0], [20.0])
    commands = [shlex.split(block.text) for block in shown(store, "grid", specs[0].id).all("pre")]
    stored_run(store, RunSpec(**RUN))
    assert [command[3] for command in commands] == ["run", "attack"]
    assert read_attack(parser().parse_args(commands[1][3:]), store).id == specs[0].id


def test_unknown_too_many_and_unfinished_ids_are_one_sentence(store: Store) -> None:
    waiting = attack_on(RunSpec(**RUN))
    store.submit(waiting.id, waiting.canonical(), {})
    run = stored_run(store, RunSpec(**RUN))
    many = ",".join(str(number) for number in range(grid_content.MOST + 1))
    answers = {"": 404, "a,b": 404, f"{run},a": 404, "../x,<b>": 404, "\ud800": 404, many: 409, waiting.id: 409}
    for ids, status in answers.items():
        exported = served_export(store, "grid", ids, "ann")
        assert exported.status == status and "\n" not in exported.text and "<" not in exported.text, ids


def test_b1_no_page_holds_the_picture_of_another_visitor(store: Store) -> None:
    name = store.owners.add(upload(), "ann")
    run = RunSpec(**RUN)
    specs = [attack_on(run), attack_on(run, pictures=(f"own-{name}-0",))]
    for spec in specs:
        stored_attack(store, spec, [20.0])
    batch = batch_of(specs)
    store.batches.request(batch)
    for kind, id in (("batch", batch.id), ("grid", ",".join(spec.id for spec in specs))):
        assert [served_export(store, kind, id, owner).status for owner in ("ann", "bob", "")] == [200, 404, 200]


def test_a_damaged_attack_is_a_sentence(store: Store) -> None:
    spec = attack_on(RunSpec(**RUN))
    stored_attack(store, spec, [20.0], numbers={"psnr": ("loud",), "ssim": ("loud",)})
    exported = served_export(store, "grid", spec.id, "")
    assert exported.status == 500 and "has another type" in exported.text and "\n" not in exported.text


def test_a_deleted_member_is_counted(store: Store, baseline: RunSpec) -> None:
    specs = four(store, baseline)
    batch = batch_of(specs)
    store.batches.request(batch)
    store.delete(specs[0].id)
    exported = served_export(store, "batch", batch.id, "")
    assert exported.status == 200 and "1 of 4 members of this batch were deleted" in exported.text
