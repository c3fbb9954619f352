"""The controls of the Leak screen: what is in the upload, the attacker, the columns, and the tabs."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.leak import columns as leak_columns
from app.screens.leak import settings as leak_settings
from app.screens.leak.settings import COMPARED, LeakSettings
from app.session import services
from app.texts import attack_form as form_texts
from app.texts import attackers, privacy
from app.texts import attacks as attack_texts
from engine.specs.attack_grid import NONE, OF_RUN
from tests.app.reading import text
from tests.app.screens.leak.test_page import clicked, grid, link, visit, words

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]


def test_every_control_is_in_the_link(small: LeakSettings) -> None:
    page = visit(small)
    clicked(page, "whose-test-3")
    page.selectbox(key="observer-choice").select("client").run()
    page.selectbox(key="leak-model").select("lenet5").run()
    page.segmented_control(key="leak-content").set_value("8").run()
    clicked(page, "leak-choose-attacks")
    page.multiselect(key="leak-attacks").set_value(["map"]).run()
    page.multiselect(key="leak-against").set_value(["udp-fedavg:1"]).run()
    leak, notes = LeakSettings.read_link(link(page), LeakSettings.default())
    assert not notes and (leak.whose, leak.eyes, leak.many) == ("test-3", "client", 8)
    assert (leak.attacks, leak.against, leak.run["model"]) == (("map",), (NONE, "udp-fedavg:1"), "lenet5")
    assert leak == page.session_state["leak"].with_(eyes="client")


def test_each_protection_shows_its_epsilon(small: LeakSettings) -> None:
    page = visit(small.with_(closer="promises"))
    spec = leak_columns.columns(small)[1].spec
    answers = services.forecast_of(spec.canonical()).answers
    answer = next(answer for answer in answers if answer.view == "server")
    assert answer.value and answer.value > privacy.VACUOUS
    (_, _, line) = grid(page)["columns"][1]["lines"]
    assert (line["text"], line["side"]) == ("✗ no meaningful promise", "leaking")  # a number would mean nothing
    assert privacy.odds(answer).replace("'", "&#x27;") in text(page)


def test_a13_columns_of_the_same_noise_name_who_adds_it(small: LeakSettings) -> None:
    run = {**small.run, "method": "udp-fedavg", "method.noise": 0.1, "method.noise-split": "paper"}
    columns = grid(visit(small.with_(run=run, against=(NONE, "udp-fedavg:0.1", OF_RUN))))["columns"]
    splits = [[line["text"] for line in column["lines"] if "the noise" in line["text"]] for column in columns]
    assert splits == [[], ["each client adds all the noise"], ["the clients share the noise"]]


def test_what_is_in_the_upload_is_one_control(small: LeakSettings) -> None:
    page = visit(small)
    page.segmented_control(key="leak-content").set_value("ordinary").run()
    assert not page.exception and page.query_params["upload"] == "ordinary"
    page.segmented_control(key="leak-content").set_value("cheat").run()
    assert not page.exception and page.query_params["attacks"] == "imprint"
    page.segmented_control(key="leak-content").set_value("8").run()
    assert "upload" not in page.query_params and page.query_params["many"] == "8"
    assert page.query_params["attacks"] == ",".join(leak_settings.ATTACKS)  # `imprint` cannot read this upload
    page.segmented_control(key="leak-content").set_value("1").run()
    assert page.query_params["many"] == "1"


def test_an_old_link_keeps_its_number_of_pictures(small: LeakSettings) -> None:
    content = visit(small, many="3").segmented_control(key="leak-content")
    assert content.value == "3" and "3 pictures" in content.options


def test_methods_are_compared_at_the_same_budget(small: LeakSettings) -> None:
    page = visit(small)
    page.segmented_control(key="leak-mode").set_value("budget").run()
    columns = grid(page)["columns"]
    assert [column["title"] for column in columns][1:] == ["UDP-FedAvg", "DP-FedAvg (record level)", "FedCEO"]
    promises = [column["lines"][-1]["text"] for column in columns]
    assert promises == [
        "no promise", "! ε 10 per client: weak promise", "! ε 10 per record: weak promise",
        "! ε 10 per client: weak promise",
    ]  # fmt: skip
    assert "promised against the server, for the whole run, of which this is one upload (per client with δ" in text(
        page
    )
    assert ", per record with δ" in text(page)  # another unit, another δ
    assert attack_texts.UNITS in text(page)
    leak = page.session_state["leak"]
    noises = {services.forecast_of(column.spec.canonical()).noise for column in leak_columns.columns(leak)}
    assert len(noises) == 3  # none, per client and per record
    page.selectbox(key="leak-budget").set_value(1.0).run()
    assert link(page)["against"] == ",".join((NONE, *(f"{method}@1" for method in COMPARED)))
    page.segmented_control(key="leak-mode").set_value("strength").run()
    assert link(page)["against"] == "none,udp-fedavg:0.01,udp-fedavg:0.1"


def test_a_method_that_cannot_keep_the_budget_says_so(small: LeakSettings) -> None:
    page = visit(small.with_(against=(NONE, "dp-fedavg@8", "udp-fedavg@0.0001")))
    assert not page.exception and words(page)[0][2] == "does not fit"
    assert "must be within reach (the noise 1000 gives" in text(page)


def test_another_observer_has_another_noise_for_the_same_budget(small: LeakSettings) -> None:
    leak = small.with_(against=(NONE, "udp-fedavg@8"))
    runs = [leak.with_(eyes=view).grid.runs()["udp-fedavg@8"] for view in ("server", "outsider")]
    noises = [services.forecast_of(run.canonical()).noise for run in runs]
    assert noises[0] and noises[1] and noises[0] > 2 * noises[1]  # the server sees single uploads
    for run, view in zip(runs, ("server", "outsider"), strict=True):
        answers = {answer.view: answer.value for answer in services.forecast_of(run.canonical()).answers}
        assert answers[view] == pytest.approx(8.0, abs=0.05)


def test_budgets_are_told_apart(small: LeakSettings) -> None:
    columns = grid(visit(small.with_(against=(NONE, "udp-fedavg@3", "udp-fedavg@10"))))["columns"]
    assert [column["lines"][0]["text"] for column in columns[1:]] == ["budget ε 3", "budget ε 10"]


def test_the_head_of_a_column_is_that_of_its_observer(small: LeakSettings) -> None:
    page = visit(small.with_(against=(NONE, "udp-fedavg:4"), eyes="outsider"))
    run = small.with_(against=("udp-fedavg:4",), eyes="outsider").grid.runs()["udp-fedavg:4"]
    answers = {answer.view: answer for answer in services.forecast_of(run.canonical()).answers}
    line = grid(page)["columns"][1]["lines"][-1]
    assert (line["text"], line["side"]) == privacy.promise(answers["outsider"])
    assert privacy.promise(answers["outsider"]) != privacy.promise(answers["server"])
    assert "what is promised against an outsider" in text(page)


@pytest.mark.parametrize(
    "key",
    ["fedavg@8", "udp-fedavg@0", "udp-fedavg@1e-300", "udp-fedavg:1e-300", "udp-fedavg@loud", "udp-fedavg@2000000"],
)
def test_a_link_with_an_impossible_budget_has_a_note(key: str) -> None:
    leak, notes = LeakSettings.read_link({"against": f"none,{key}"}, LeakSettings.default())
    assert leak.against == (NONE,) and key in notes[0]


def test_the_strengths_of_another_method(small: LeakSettings) -> None:
    page = visit(small)
    clicked(clicked(page, "leak-method"), "leak-method-suggested-fedceo-full-local")
    assert link(page)["against"] == "none,fedceo:0.01,fedceo:0.1"
    clicked(page, "leak-method")
    page.selectbox(key="leak-method-find").set_value("SCAFFOLD").run()
    assert link(page)["against"] == "none,scaffold"  # it has no noise


def test_the_drawer_says_what_does_not_fit(small: LeakSettings) -> None:
    page = clicked(visit(small), "leak-method")
    refused = {str(button.key): button.disabled for button in page.button if "-suggested-" in str(button.key)}
    assert refused == {
        "leak-method-suggested-fedavg": True,
        "leak-method-suggested-udp-fedavg-full-local": False,
        "leak-method-suggested-udp-fedavg-paper": True,
        "leak-method-suggested-dp-fedavg": False,
        "leak-method-suggested-fedceo-full-local": False,
    }
    assert form_texts.ALWAYS_A_COLUMN in text(page) and "on this screen each client adds all the noise." in text(page)
    sums = clicked(visit(small.with_(eyes="aggregate")), "leak-method")
    assert sums.button(key="leak-method-suggested-fedceo-full-local").disabled
    assert "so it has to see each of them" in text(sums)  # the reason of the engine
    page.selectbox(key="leak-method-find").set_value("None").run()
    assert link(page)["against"] == "none,udp-fedavg:0.1"  # what does not fit is not chosen


def test_tabs_without_pictures_have_a_next_step(small: LeakSettings) -> None:
    page = visit(small, tab="sentences")
    assert form_texts.NO_SENTENCES in text(page) and not page.get("bidi_component")
    clicked(page, "leak-to-pictures")
    assert page.get("bidi_component") and "tab" not in link(page)
    clicked(visit(small, tab="membership"), "leak-to-runs")


def test_an_attack_on_offer_says_that_it_does_not_fit(small: LeakSettings) -> None:
    model = {**small.run, "model": "lenet-sigmoid"}
    page = clicked(visit(small.with_(run=model).settled()), "leak-choose-attacks")
    offered = page.multiselect(key="leak-attacks").options
    assert "Most probable picture" in offered
    assert "Read off the first layer (does not fit)" in offered
    assert "does not fit: it needs a model whose first layer is linear" in text(page)


# --- the attacker ------------------------------------------------------------------------------------------


def answer(page: AppTest, question: str, word: str) -> AppTest:
    page.segmented_control(key=f"leak-{question}").set_value(word).run()
    assert not page.exception
    return page


def test_an_attacker_takes_all_attacks_that_fit(small: LeakSettings) -> None:
    page = visit(small.with_(attacks=("analytic",)))
    assert "1 attacker fits: Read off the first layer." in text(page)
    answer(page, "searches", "yes")
    thorough = set(link(page)["attacks"].split(","))
    assert {"analytic", "map", "inverting-gradients"} < thorough and not thorough & {"gias", "imprint"}
    answer(page, "learns", "yes")
    assert set(link(page)["attacks"].split(",")) == thorough | {"gias"}
    answer(page, "changes", "yes")
    assert link(page)["attacks"] == "imprint" and "upload" not in link(page)
    answer(page, "changes", "no")
    assert set(link(page)["attacks"].split(",")) == thorough | {"gias"}  # what it knows and tries is kept


def test_some_attacks_of_a_link_are_shown_as_such(small: LeakSettings) -> None:
    page = visit(small)
    assert "Chosen: 2 of the 6 attackers that fit" in text(page)
    clicked(page, "leak-all")
    assert len(link(page)["attacks"].split(",")) == 6 and "6 attackers fit" in text(page)
    mixed = visit(small.with_(attacks=("map", "imprint")))
    assert "Chosen by yourself: Most probable picture, Robbing the Fed." in text(mixed)


def test_a_server_that_changes_the_model_gets_the_upload_of_one(small: LeakSettings) -> None:
    page = answer(visit(small.with_(upload="ordinary")), "changes", "yes")
    assert (link(page)["upload"], link(page)["attacks"]) == ("cheat", "imprint")
    answer(page, "changes", "no")
    assert link(page)["upload"] == "ordinary"


def test_only_the_server_can_change_the_model(small: LeakSettings) -> None:
    page = visit(small.with_(eyes="outsider"))
    assert page.segmented_control(key="leak-changes").disabled
    assert attackers.ONLY_SERVER in [caption.value for caption in page.caption]
    assert not visit(small).segmented_control(key="leak-changes").disabled


def test_an_attacker_without_attacks_changes_nothing(small: LeakSettings) -> None:
    model = {**small.run, "model": "lenet-sigmoid"}
    page = answer(visit(small.with_(run=model).settled()), "searches", "no")
    assert link(page)["attacks"] == "map,inverting-gradients" and attackers.NO_ATTACKER in text(page)


def test_a10_the_epsilon_of_a_record_level_run_is_not_that_of_its_probe(small: LeakSettings) -> None:
    records = small.with_(against=(NONE, "dp-fedavg:1"))
    assert attack_texts.PROBE_EPSILON in text(visit(records))
    assert attack_texts.PROBE_EPSILON not in text(visit(records.with_(upload="ordinary")))
    assert attack_texts.PROBE_EPSILON not in text(visit(small))  # per client: one more picture changes nothing


def test_a_link_to_an_entry_brings_it_into_view_once(small: LeakSettings) -> None:
    page = visit(small.with_(closer="promises"))
    assert "scrollIntoView" in text(page)
    page.run()
    assert "scrollIntoView" not in text(page)
    assert "scrollIntoView" not in text(visit(small))
