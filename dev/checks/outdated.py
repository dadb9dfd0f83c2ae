"""The command `uv run dev/checks/outdated.py`: the pins that nothing proposes to update.

Dependabot and the job `pins` of the workflow `weekly` know pyproject.toml, the workflows and the
receiver's image. All other pins are in the definitions of plugins, programs, tests and pages.
The status is 1 if one of them leaves out the newest release.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

REPOSITORY = Path(__file__).parents[2]
PIN = re.compile(r"\b([A-Za-z][\w-]*)(?:\[[\w,-]+\])?((?:==|~=)\d[\w.]*)")
HAVE_AN_OWNER = {"pyproject.toml", "CHANGELOG.md", ".github/RELEASING.md"}
LOWEST = ".github/workflows/weekly.yml"
"""It tests the lowest version that is supported."""

HELD = {
    "dbt": "later ones are no wheels and download themselves, see pipeline/transform/README.md",
    "duckdb": "the target and dbt need one each, see docs/set-up/targets.md; so do emulators",
    "z3-target-bigquery": "a commit is used instead, see docs/set-up/targets.md",
}
"""Packages whose newest release is left out, and why."""


def pinned() -> dict[str, dict[str, set[str]]]:
    """Return the files that pin each package, by the way they pin it."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(listed, cwd=REPOSITORY, text=True).splitlines()  # noqa: S603
    for name in {*names} - HAVE_AN_OWNER - {LOWEST}:
        path = REPOSITORY / name
        if path.is_file() and path.suffix not in {".svg", ".lock"}:
            for package, pin in PIN.findall(path.read_text("utf-8", errors="replace")):
                found[package.lower()][pin].add(name)
    return found


def newest(packages: set[str]) -> dict[str, str]:
    """Return the newest release of each package for Python 3.12, which all of them have."""
    command = ["uv", "pip", "compile", "--quiet", "--no-deps", "--no-header", "--no-annotate"]
    answer = subprocess.run(  # noqa: S603
        [*command, "--python-version=3.12", "-"],
        input="\n".join(sorted(packages)),
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        sys.exit(answer.stderr)
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", answer.stdout, re.MULTILINE))


def main() -> None:
    """Print a line for each pin that leaves out the newest release."""
    pins = pinned()
    lines = [
        f"{package} {version} is out; {', '.join(sorted(files))}: {pin}"
        for package, version in newest(pins.keys() - HELD.keys()).items()
        for pin, files in pins[package].items()
        if Version(version) > Version(pin[2:]) and version not in SpecifierSet(pin)
    ]
    print("\n".join(lines) or "No pin leaves out a newer release.")  # noqa: T201
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
