"""Which part of the tap may know which, and what of the SDK it uses that is not public."""

from __future__ import annotations

import ast
import importlib
import inspect
import signal
import textwrap
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from singer_sdk import Stream, Tap

import tap_public_jobs
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from collections.abc import Iterator

TAP = "tap_public_jobs"
SOURCE = Path(tap_public_jobs.__file__).parent
CONFIG = {"api_key": "a-key", "base_url": "https://jobs.example.com"}

MOST_LINES = 300
MOST_METHODS = 12


class Module(NamedTuple):
    """A module of the tap and what it imports, without Python's own prefix of the package."""

    name: str
    path: Path
    imports: frozenset[str]
    """Modules that it loads, at once or in a function."""
    types: frozenset[str]
    """Modules that it imports for type checkers alone."""


@cache
def modules() -> dict[str, Module]:
    """All modules of the tap, by name."""
    found = [_module(path) for path in sorted(SOURCE.rglob("*.py"))]
    return {module.name: module for module in found}


def _module(path: Path) -> Module:
    parts = [TAP, *path.relative_to(SOURCE).with_suffix("").parts]
    name = ".".join(part for part in parts if part != "__init__")
    tree = ast.parse(path.read_text("utf-8"))
    for_types = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        for node in ast.walk(statement)
    }
    loaded = (node for node in ast.walk(tree) if node not in for_types)
    return Module(name, path, frozenset(_imported(loaded)), frozenset(_imported(for_types)))


def _imported(nodes: Any) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, "imports are absolute"
            assert not node.level, "imports are absolute"
            for alias in node.names:
                is_module = _is_module(f"{node.module}.{alias.name}")
                yield f"{node.module}.{alias.name}" if is_module else node.module


def _is_module(name: str) -> bool:
    path = SOURCE.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def crossings(of: str, forbidden: list[str], allowed: list[str], *, types: bool) -> list[str]:
    """The imports of a package that are forbidden and not allowed.

    Args:
        of: A package of the tap, without the prefix; empty for the tap as a whole.
        forbidden: Packages, those of the tap without the prefix.
        allowed: Exceptions.
        types: Whether imports for type checkers are forbidden too.
    """
    names = {name for name in forbidden if not _is_module(f"{TAP}.{name}")}
    walls = names | {f"{TAP}.{name}" for name in set(forbidden) - names}
    doors = {f"{TAP}.{name}" for name in allowed}
    return [
        f"{module.name} imports {imported}"
        for module in modules().values()
        if _is_in(module.name, f"{TAP}.{of}" if of else TAP)
        for imported in sorted(module.imports | (module.types if types else frozenset()))
        if any(_is_in(imported, wall) for wall in walls) and imported not in doors
    ]


class TestImports:
    @pytest.mark.parametrize(
        ("package", "forbidden"),
        [
            pytest.param(
                "api",
                ["singer_sdk", "sync", "records", "schemas", "streams", "tap", "process"],
                id="api speaks HTTP and knows no Singer",
            ),
            pytest.param(
                "sync",
                ["requests", "urllib3", "singer_sdk", "streams", "tap"],
                id="sync runs without Singer",
            ),
            *(
                pytest.param(f"sync.{name}", ["time", "threading", "logging"], id=f"{name}: no I/O")
                for name in ("plan", "outcomes", "state")
            ),
            pytest.param("records", ["requests", "urllib3"], id="records know no HTTP"),
            pytest.param("", ["public_jobs_sandbox"], id="the tap does not know the sandbox"),
        ],
    )
    def test_a_package_does_not_know(self, package: str, forbidden: list[str]) -> None:
        assert crossings(package, forbidden, [], types=True) == []

    @pytest.mark.parametrize(
        ("package", "forbidden", "allowed"),
        [
            pytest.param("sync", ["api", "records", "report", "changelog"], ["api.models"]),
            pytest.param("records", ["api", "sync", "streams", "tap", "changelog"], []),
        ],
    )
    def test_a_package_may_name_types_of_what_it_does_not_load(
        self, package: str, forbidden: list[str], allowed: list[str]
    ) -> None:
        assert crossings(package, forbidden, allowed, types=False) == []

    def test_only_the_receiver_loads_the_receiver(self) -> None:
        found = crossings("", ["webhook"], [], types=True)

        assert [it for it in found if not it.startswith(f"{TAP}.webhook")] == []

    def test_the_receiver_knows_the_change_log_and_the_state_of_a_run_alone(self) -> None:
        known = {
            imported
            for module in modules().values()
            if _is_in(module.name, f"{TAP}.webhook")
            for imported in module.imports
            if _is_in(imported, TAP) and not _is_in(imported, f"{TAP}.webhook")
        }

        assert {name.removeprefix(f"{TAP}.").partition(".")[0] for name in known} == {
            "changelog",
            "errors",
            "sync",
        }

    def test_only_streams_tap_and_process_know_streams_of_the_sdk(self) -> None:
        """Settings and records use its JSON schemas, its JSON and its reader of variables."""
        allowed = ("singer_sdk.typing", "singer_sdk.configuration", "singer_sdk.singerlib.json")
        doors = {
            module.name.removeprefix(f"{TAP}.")
            for module in modules().values()
            for imported in module.imports | module.types
            if _is_in(imported, "singer_sdk") and not imported.startswith(allowed)
        }
        assert doors <= {"streams", "tap", "process", "settings", "records.columns"}
        assert {"streams", "tap", "process"} <= doors

    def test_no_modules_import_each_other_in_a_circle(self) -> None:
        graph = {name: module.imports & modules().keys() for name, module in modules().items()}

        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            pytest.fail(" imports ".join(error.args[1]))

    def test_the_rules_would_find_a_forbidden_import(self) -> None:
        assert crossings("api", ["requests"], [], types=False)
        assert crossings("sync", ["api"], [], types=False)
        assert not _is_in("timeit", "time")


class TestSize:
    @pytest.mark.parametrize("name", modules())
    def test_a_module_fits_in_one_reading(self, name: str) -> None:
        lines = modules()[name].path.read_text("utf-8").splitlines()

        assert len(lines) <= MOST_LINES

    def test_a_stream_can_be_seen_whole(self) -> None:
        tree = ast.parse(modules()[f"{TAP}.streams"].path.read_text("utf-8"))
        methods = {
            node.name: [it.name for it in node.body if isinstance(it, ast.FunctionDef)]
            for node in tree.body
            if isinstance(node, ast.ClassDef)
        }

        assert {name: its for name, its in methods.items() if len(its) > MOST_METHODS} == {}
        assert {"Jobs", "JobPublications", "JobDetails"} <= methods.keys()


PRIVATE = {
    "Stream._generate_record_messages",  # to name the record that stream_maps cannot be applied to
    "Stream._stream_version",  # the version that records carry before ACTIVATE_VERSION is written
    "Stream._tap",  # to write ACTIVATE_VERSION and STATE where they belong
    "Tap._config",  # to fill in the defaults of settings that are null or empty
    "Tap._env_var_config",  # to read `.env` in the working folder, and refuse what cannot be read
    "Tap._handle_termination",  # to end with the status of the signal; the SDK's is 0
    "Tap._validate_config",  # to name settings and remedies; the SDK's messages quote the key
}
"""What of the SDK is used that is not public, and why. Nothing public serves."""

FINAL = {
    "Tap.run_connection_test",  # to log one line; the SDK's writes the first record of each stream
    "Tap.sync_all",  # to sum up at the end of a run, for which the SDK has no hook
}
"""What is overridden although the SDK calls it final."""


def classes() -> Iterator[type]:
    """The classes of the tap that derive from one of the SDK's."""
    for name in modules():
        if not _is_in(name, f"{TAP}.webhook") and not name.endswith("__main__"):
            for value in vars(importlib.import_module(name)).values():
                if inspect.isclass(value) and value.__module__ == name and _sdk_bases(value):
                    yield value


def _sdk_bases(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if _is_in(base.__module__, "singer_sdk")]


def _private_names(cls: type) -> set[str]:
    """The private names that a class defines or uses."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def _kind(cls: type) -> str:
    return next(base.__name__ for base in (Stream, Tap, cls) if issubclass(cls, base))


class TestPrivateNames:
    def test_those_in_use_are_those_listed(self) -> None:
        attributes = {
            f"{_kind(cls)}.{name}"
            for cls in classes()
            for name in _private_names(cls) & set().union(*map(_private_names, _sdk_bases(cls)))
        }
        paths = {
            imported
            for module in modules().values()
            for imported in module.imports | module.types
            if _is_in(imported, "singer_sdk") and "._" in imported
        }

        assert attributes | paths == PRIVATE

    def test_private_names_are_reached_through_self(self) -> None:
        """So that the names above are all there are."""
        reached = {
            node.attr
            for module in modules().values()
            for node in ast.walk(ast.parse(module.path.read_text("utf-8")))
            if isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
            and ast.unparse(node.value) not in {"self", "cls", "super()"}
        }

        assert reached == {"_replace", "_exit"}  # of named tuples, and of os

    def test_those_overridden_though_final_are_those_listed(self) -> None:
        overridden = {
            f"{_kind(cls)}.{name}"
            for cls in classes()
            for name in vars(cls)
            if any(
                getattr(vars(base).get(name), "__final__", False)
                for base in _sdk_bases(cls)
                if base is not cls
            )
        }

        assert overridden == FINAL

    @pytest.mark.parametrize(
        ("function", "parameters"),
        [
            (Stream._generate_record_messages, ["self", "record"]),
            (Tap._handle_termination, ["self", "signum", "frame"]),
            (Tap._validate_config, ["self", "raise_errors"]),
            (Tap.sync_all, ["self"]),
            (Tap.run_connection_test, ["self"]),
        ],
        ids=lambda it: getattr(it, "__qualname__", ""),
    )
    def test_functions_take_what_they_are_called_with(
        self, function: Any, parameters: list[str]
    ) -> None:
        assert list(inspect.signature(function).parameters) == parameters

    def test_a_stream_knows_its_tap(self) -> None:
        tap = TapPublicJobs(config=CONFIG)

        assert all(stream._tap is tap for stream in tap.streams.values())

    def test_records_carry_the_version_of_the_stream(self) -> None:
        stream = TapPublicJobs(config=CONFIG).streams["jobs"]
        assert stream._stream_version is None

        stream._stream_version = 7
        (message,) = stream._generate_record_messages({"id": "a"})

        assert (message.version, message.record) == (7, {"id": "a"})

    def test_the_settings_are_those_that_validation_leaves(self) -> None:
        tap = TapPublicJobs(config=CONFIG)

        tap._config = {"page_size": 7}

        assert tap.config == {"page_size": 7}

    def test_validation_is_part_of_making_a_tap(self) -> None:
        class Refusing(TapPublicJobs):
            def _validate_config(self, *, raise_errors: bool = True) -> list[str]:
                raise LookupError(raise_errors)

        with pytest.raises(LookupError, match="True"):
            Refusing(config=CONFIG)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_the_tap_handles_signals(self, number: signal.Signals) -> None:
        before = signal.getsignal(number)
        try:
            tap = TapPublicJobs(config=CONFIG)

            assert signal.getsignal(number) == tap._handle_termination
        finally:
            signal.signal(number, before)
