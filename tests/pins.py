"""`python3 -m tests.pins`: writes both requirements files from the direct pins of `pyproject.toml`.

It installs the direct pins into a clean environment and reads what each package requires there. A package that only
some platforms or Python versions need gets a marker. A local version such as `+cpu` is left out, so the files are the
same with every build of torch. pip's own configuration says which index is used: PIP_EXTRA_INDEX_URL adds one.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from engine.environment import ROOT, Venv, enter

if TYPE_CHECKING:
    from packaging.requirements import Requirement

COMMAND = "python3 -m tests.pins"
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = {  # sys_platform: what else a marker may read
    "linux": {"platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"},
    "darwin": {"platform_system": "Darwin", "os_name": "posix", "platform_machine": "arm64"},
    "win32": {"platform_system": "Windows", "os_name": "nt", "platform_machine": "AMD64"},
}
GPU = ("nvidia-", "cuda-", "triton")  # the torch build for NVIDIA cards pins these itself; a CPU build has none
HEADER = f"# Written by `{COMMAND}` from the direct pins in pyproject.toml. Change those, then run it again.\n"

Target = tuple[str, str]  # sys_platform, python_version
TARGETS = frozenset((platform, python) for platform in PLATFORMS for python in PYTHONS)


@dataclass(frozen=True)
class Package:
    """An installed package and what it requires, with markers."""

    version: str
    requires: tuple[str, ...] = ()


Packages = Mapping[str, Package]  # by canonical name


def main(argv: Sequence[str]) -> int:
    enter("tests.pins", ROOT / "tests" / "requirements.txt", argv)
    direct, tools = direct_pins(ROOT / "pyproject.toml")
    with tempfile.TemporaryDirectory() as folder:
        packages, needed = resolved(Venv(Path(folder)), [*direct, *tools])
    runtime = reachable(direct, packages)[0]
    write(ROOT / "requirements.txt", HEADER, packages, runtime)
    others = {name: targets for name, targets in needed.items() if name not in runtime}
    write(ROOT / "tests" / "requirements.txt", HEADER + "-r ../requirements.txt\n", packages, others)
    return 0


def direct_pins(path: Path) -> tuple[list[str], list[str]]:
    """What LeakLens needs, and what its tests need on top of that."""
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    return project["dependencies"], project["optional-dependencies"]["test"]


def resolved(venv: Venv, direct: Sequence[str]) -> tuple[Packages, dict[str, Set[Target]]]:
    """The packages that pip chooses, and where each is needed; those of other platforms are fetched as well."""
    subprocess.run([sys.executable, "-m", "venv", str(venv.folder)], check=True)
    pip = [str(venv.python), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "uninstall", "--yes", "--quiet", "setuptools"], check=True)  # the one that venv itself brings
    wanted = list(direct)
    while wanted:
        alone = [] if wanted == direct else ["--no-deps"]
        subprocess.run([*pip, "install", "--quiet", *alone, *wanted], check=True)
        packages = installed(venv.site)
        needed, wanted = reachable(direct, packages)
    return packages, needed


def installed(site: Path) -> dict[str, Package]:
    from packaging.utils import canonicalize_name

    return {
        canonicalize_name(each.name): Package(each.version.split("+")[0], tuple(each.requires or ()))
        for each in metadata.distributions(path=[str(site)])
    }


def reachable(direct: Iterable[str], packages: Packages) -> tuple[dict[str, Set[Target]], list[str]]:
    """Where each package is needed, and the requirements that no package here satisfies."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    needed: dict[str, set[Target]] = {}
    absent: dict[str, str] = {}
    for target in sorted(TARGETS):
        waiting = [Requirement(line) for line in direct]
        visited: set[tuple[str, str]] = set()
        while waiting:
            requirement = waiting.pop()
            name = canonicalize_name(requirement.name)
            if name.startswith(GPU):
                continue
            if name not in packages:
                absent[name] = f"{requirement.name}{requirement.specifier}"
                continue
            needed.setdefault(name, set()).add(target)
            for extra in {"", *requirement.extras}:
                if (name, extra) not in visited:
                    visited.add((name, extra))
                    waiting += required(packages[name], extra, target)
    return {name: frozenset(targets) for name, targets in needed.items()}, sorted(absent.values())


def required(package: Package, extra: str, target: Target) -> Iterator[Requirement]:
    """The requirements of a package that hold for a platform and a Python version."""
    from packaging.requirements import Requirement

    platform, python = target
    environment = {
        "sys_platform": platform,
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": extra,
        **PLATFORMS[platform],
    }
    for line in package.requires:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate(environment):
            yield requirement


def marker(targets: Set[Target]) -> str:
    """The shortest marker that holds exactly there; nothing where it holds everywhere."""
    platforms = {platform for platform, _ in targets}
    pythons = sorted({python for _, python in targets}, key=PYTHONS.index)
    if len(targets) != len(platforms) * len(pythons):
        parts = (marker({each for each in targets if each[0] == platform}) for platform in sorted(platforms))
        return " or ".join(parts)
    clauses = []
    if len(platforms) == 1:
        clauses.append(f'sys_platform == "{platforms.pop()}"')
    elif len(platforms) < len(PLATFORMS):
        clauses += [f'sys_platform != "{other}"' for other in PLATFORMS if other not in platforms]
    if pythons[0] != PYTHONS[0]:
        clauses.append(f'python_version >= "{pythons[0]}"')
    if pythons[-1] != PYTHONS[-1]:
        clauses.append(f'python_version <= "{pythons[-1]}"')
    return " and ".join(clauses)


def write(path: Path, head: str, packages: Packages, needed: Mapping[str, Set[Target]]) -> None:
    """One line for each package, sorted by name."""
    lines = []
    for name in sorted(needed):
        condition = marker(needed[name])
        lines.append(f"{name}=={packages[name].version}" + (f" ; {condition}" if condition else ""))
    path.write_text(head + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {len(lines)} pins")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
