"""The documents are true: their commands, answers, code and links are checked against the program."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from engine.cli.main import parser
from engine.environment import ROOT
from tests.engine.makers import run_command
from tests.pins import direct_pins

DOCS = ROOT / "assets" / "docs"
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS.glob("*.md")])
DOCUMENTS += [*sorted((ROOT / ".github").rglob("*.md")), *sorted(ROOT.glob("*/README.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")
README_BYTES = 10_000
LINK = re.compile(r"\]\(([^)\s]+)\)")
OPTION = re.compile(r"`(?:[^`]*\s)?(--[a-z-]+)")


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


# --- the README --------------------------------------------------------------------------------------------


def test_the_readme_is_short() -> None:
    assert len(README.encode()) <= README_BYTES


@pytest.mark.slow
def test_the_python_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(from engine import .*?)```", README + text("architecture.md"), re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        exec(compile(example, "document", "exec"), {"__name__": "document"})
    printed = capsys.readouterr().out
    assert "Finished(rounds=3" in printed
    assert "Judged" in printed


@pytest.mark.slow
def test_the_answers_in_the_terminal_are_the_real_ones() -> None:
    blocks = re.findall(r"^    \$ python3 -m engine (.+)\n((?:    .+\n)+)", README, re.MULTILINE)
    assert [command.split()[0] for command, _ in blocks] == ["run", "attack"]
    for command, shown in blocks:
        answer = run_command(command)
        assert answer.code == 0
        for line, printed in zip(shown.splitlines(), answer.out.splitlines(), strict=True):
            assert printed.startswith(line.removeprefix("    ").removesuffix("..."))


# --- commands, parts and dependencies ----------------------------------------------------------------------


def commands() -> dict[str, set[str]]:
    """The options of every command."""
    subcommands = next(action.choices for action in parser()._actions if action.choices and action.dest == "command")
    assert isinstance(subcommands, dict)
    return {
        name: {option for action in command._actions for option in action.option_strings if option.startswith("--")}
        for name, command in subcommands.items()
    }


def test_every_command_and_option_is_described() -> None:
    document = text("command-line.md")
    for name, options in commands().items():
        assert re.search(rf"^\| `{name}[ `]", document, re.MULTILINE), f"{name} is not in the table"
        missing = {option for option in options if not re.search(rf"{option}(?![a-z-])", document)}
        assert not missing, f"{name}: {missing}"


def test_every_option_described_exists() -> None:
    known = {option for options in commands().values() for option in options}
    section = text("command-line.md").split("## Keys of")[0]
    assert set(OPTION.findall(section)) - {"--round"} <= known  # --round is also the example of a short form


def test_the_list_of_parts_is_up_to_date() -> None:
    answer = run_command("list --markdown")
    assert answer.code == 0
    assert answer.out == text("parts.md"), "run: python3 -m engine list --markdown > assets/docs/parts.md"


def test_every_pin_has_its_reason() -> None:
    columns = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", text("dependencies.md"), re.MULTILINE)
    explained = {name for column in columns for name in column.split(", ")}
    for pins in direct_pins(ROOT / "pyproject.toml"):
        names = {pin.partition("==")[0] for pin in pins}
        assert names and names <= explained


def test_the_method_shown_is_the_real_file() -> None:
    shown = text("add-a-part.md").split("<!-- fedavg -->\n```python\n")[1].split("```\n<!-- /fedavg -->")[0]
    assert shown == (ROOT / "engine/methods/averaging/fedavg.py").read_text(encoding="utf-8")


# --- links and versions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_resolves(path: Path) -> None:
    for link in LINK.findall(path.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            heads = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}, link


def test_every_document_is_linked_from_the_readme() -> None:
    linked = {(ROOT / link.partition("#")[0]).resolve() for link in LINK.findall(README)}
    assert set(DOCS.glob("*.md")) <= linked


def test_one_version_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = re.findall(r"^## \[(.+)\]$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert f"\nversion: {version}\n" in citation
    assert changes[:2] == ["Unreleased", version]
