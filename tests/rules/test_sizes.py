"""How large modules, functions, folders and screens may grow, and that a class name means one thing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from tests.rules.sources import SOURCES, TESTS, Source, unexpected

MODULE_LINES = 400
FUNCTION_LINES = 60
FOLDER_MODULES = 20
SCREEN_FILES = 10
SCREEN_LINES = 1600
# Folders that hold one file for each part: their number of files says nothing.
SHELF_FOLDERS = (
    "engine/attacks", "engine/datasets", "engine/methods", "engine/metrics", "engine/models", "engine/partitions",
    "engine/bench",
)  # fmt: skip


def size_breaches(source: Source) -> Iterator[str]:
    if source.lines > MODULE_LINES:
        yield f"{source.path}: more than {MODULE_LINES} lines"
    for node in source.functions:
        if (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES:
            yield f"{source.path}: {node.name}: more than {FUNCTION_LINES} lines"


def folder_breaches(sources: list[Source]) -> Iterator[str]:
    modules = Counter(source.folder for source in sources if not source.path.endswith("__init__.py"))
    for folder, many in modules.items():
        if many > FOLDER_MODULES and not folder.startswith(SHELF_FOLDERS):
            yield f"{folder}: more than {FOLDER_MODULES} modules"


def screen_breaches(sources: list[Source]) -> Iterator[str]:
    screens: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        parts = source.path.split("/")
        if parts[:2] == ["app", "screens"] and len(parts) == 4 and parts[3] != "__init__.py":
            screens["/".join(parts[:3])].append(source)
    for screen, files in screens.items():
        if len(files) > SCREEN_FILES:
            yield f"{screen}: more than {SCREEN_FILES} files"
        if sum(source.lines for source in files) > SCREEN_LINES:
            yield f"{screen}: more than {SCREEN_LINES} lines"


def class_breaches(sources: list[Source]) -> Iterator[str]:
    places: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        for node in source.classes:
            places[node.name].append(source.name)
    for name, modules in places.items():
        if len(modules) > 1:
            yield f"{name}: {', '.join(sorted(modules))}"


def test_sizes_and_folders_stay_small() -> None:
    sources = list(SOURCES.values())
    breaches = [breach for source in sources for breach in size_breaches(source)]
    breaches += [*folder_breaches(sources), *screen_breaches(sources)]
    assert not (problem := unexpected(breaches, "sizes")), f"\n{problem}"


def test_a_class_name_means_one_thing() -> None:
    breaches = class_breaches([*SOURCES.values(), *TESTS.values()])
    assert not (problem := unexpected(breaches, "class_names")), f"\n{problem}"


@pytest.mark.parametrize("path", TESTS)
def test_a_test_file_stays_readable(path: str) -> None:
    assert TESTS[path].lines <= MODULE_LINES
    assert f"{TESTS[path].folder}/__init__.py" in TESTS


# --- every rule can fail -----------------------------------------------------------------------------------


def test_breaches_are_found() -> None:
    long = Source("engine/a.py", "x = 1\n" * 401)
    deep = Source("engine/a.py", "class A:\n    def f(self):\n" + "        pass\n" * 60)
    assert len(list(size_breaches(long))) == len(list(size_breaches(deep))) == 1
    many = [Source(f"app/screens/a/m{number}.py", "") for number in range(21)]
    assert len(list(folder_breaches(many))) == len(list(screen_breaches(many))) == 1
    assert not list(folder_breaches([Source(f"engine/models/m{number}.py", "") for number in range(21)]))
    assert list(screen_breaches([Source("app/screens/a/page.py", "\n" * 1601)]))
    twice = [Source("engine/a.py", "class A: ..."), Source("app/b.py", "class A: ...")]
    assert list(class_breaches(twice)) == ["A: app.b, engine.a"]
