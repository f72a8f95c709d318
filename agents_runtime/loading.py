"""Importing an agent: an entry of a langgraph.json file -> the graph that its author wrote.

Lives here: import forms, factories, builders, and clear words for everything that can go wrong.
Does not live here: looking into the graph (``anatomy``). Nothing here changes the author's object.

A file inside a package is imported as a module of that package, so that its own imports work and no class
exists twice. Any other file becomes a module of its own, so that two projects may both have an ``agent.py``.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from agents_runtime.errors import AgentUnavailable
from agents_runtime.listings import Entry

Graph = Pregel[Any, Any, Any, Any]
MAX_MESSAGE = 600
NOT_A_GRAPH = (
    "it must be a compiled graph, a StateGraph, or a function that takes nothing or a config and returns one"
)

_project_folders: set[Path] = set()


def load(entry: Entry) -> Graph:
    """Import the agent of an entry; raise ``AgentUnavailable`` in words for its author."""
    module_name, _, attribute = entry.target.rpartition(":")
    module = _guarded(entry, "could not be imported", lambda: _import(entry, module_name))
    found = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise AgentUnavailable(f"{module_name} has no attribute {attribute}.")
        found = getattr(found, part)
    return _graph(entry, found)


def _graph(entry: Entry, found: object) -> Graph:
    attribute = entry.target.rpartition(":")[2]
    if callable(found) and not isinstance(found, (Pregel, StateGraph, type)):
        factory = found
        found = _guarded(entry, f"could not be built by {attribute}", lambda: _call(factory))
        attribute = f"what {attribute} returned"
    if isinstance(found, StateGraph):
        found = _guarded(entry, "could not be compiled", found.compile)
    if isinstance(found, Pregel):
        return found
    raise AgentUnavailable(f"{attribute} is of type {type(found).__name__}, but {NOT_A_GRAPH}.")


def _call(factory: Callable[..., object]) -> object:
    needed = [
        parameter
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    ]
    if len(needed) > 1:
        raise AgentUnavailable(f"{_name(factory)} takes {len(needed)} arguments, but {NOT_A_GRAPH}.")
    made = factory(*({"configurable": {}} for _ in needed))
    return _finish(made) if inspect.iscoroutine(made) else made


def _name(factory: Callable[..., object]) -> str:
    return getattr(factory, "__name__", type(factory).__name__)


def _finish(work: Coroutine[Any, Any, object]) -> object:
    """Run a coroutine to its end on a loop of its own: the caller's thread may already run one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _import(entry: Entry, name: str) -> ModuleType:
    if "/" not in name and not name.endswith(".py"):
        _add_to_path(entry.folders)
        return importlib.import_module(name)
    file = (entry.source.parent / name).resolve()
    if not file.is_file():
        raise AgentUnavailable(f"There is no file {name}.")
    if file.suffix != ".py":
        raise AgentUnavailable(f"{name} is not a Python file.")
    root, dotted = _place(file)
    if not _is_at_hand(root, dotted):
        _add_to_path((*entry.folders, root))
    return _import_from_package(file, dotted) if "." in dotted else _import_alone(file)


def _is_at_hand(root: Path, dotted: str) -> bool:
    """Say whether the file's package was already imported from there, as the shipped agents' is."""
    package = sys.modules.get(dotted.partition(".")[0])
    return "." in dotted and package is not None and _home(package) == root


def _place(file: Path) -> tuple[Path, str]:
    """Return the folder above the file's outermost package, and the file's dotted name from there."""
    root, parts = file.parent, [file.stem]
    while (root / "__init__.py").exists():
        parts.insert(0, root.name)
        root = root.parent
    return root, ".".join(parts)


def _import_from_package(file: Path, dotted: str) -> ModuleType:
    module = importlib.import_module(dotted)
    if Path(module.__file__ or "").resolve() != file:
        raise AgentUnavailable(f"The module name {dotted} is already taken by {module.__file__}.")
    return module


def _import_alone(file: Path) -> ModuleType:
    name = f"countersign_agent_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}_{file.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # type hints of the file's classes are looked up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _add_to_path(folders: tuple[Path, ...]) -> None:
    """Let the agent import the modules beside it; ours and installed ones come first."""
    for folder in folders:
        _refuse_shared_names(folder, own=folders)
    for folder in folders:
        _project_folders.add(folder)
        if str(folder) not in sys.path:
            sys.path.append(str(folder))


def _refuse_shared_names(folder: Path, *, own: tuple[Path, ...]) -> None:
    """Refuse a project whose imports would silently get modules of another project in this process."""
    for name in sorted({child.stem for child in folder.iterdir() if _is_module(child)}):
        taken_by = sys.modules.get(name)
        home = _home(taken_by) if taken_by else None
        if home in _project_folders and home not in own:
            raise AgentUnavailable(
                f"{folder} has a module {name}, but the one in {home} has that name. Rename one of them."
            )


def _home(module: ModuleType) -> Path | None:
    """Return the folder from which a top-level module was imported."""
    if not module.__file__:
        return None
    file = Path(module.__file__).resolve()
    return file.parent.parent if file.name == "__init__.py" else file.parent


def _is_module(path: Path) -> bool:
    return (path.suffix == ".py" and path.is_file()) or (path / "__init__.py").is_file()


def _guarded(entry: Entry, failure: str, work: Callable[[], Any]) -> Any:
    """Do ``work`` of the author's code; whatever it raises becomes one clear line."""
    try:
        return work()
    except AgentUnavailable:
        raise
    except (Exception, SystemExit) as problem:  # an agent's module may raise anything
        raise AgentUnavailable(f"It {failure}: {_words(entry, problem)}") from problem


def _words(entry: Entry, problem: BaseException) -> str:
    text = " ".join(f"{type(problem).__name__}: {problem}".split())[:MAX_MESSAGE].rstrip(":. ")
    hint = ""
    if entry.has_env:
        hint = ' The file\'s "env" is not read; set such variables for the worker.'
    return f"{text}{_where(problem)}.{hint}"


def _where(problem: BaseException) -> str:
    """Name the last line of the author's own code that the error passed through."""
    frames = traceback.extract_tb(problem.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename and _is_source(frame.filename)]
    if not own or own[-1].filename == __file__:
        return ""
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})"


def _is_source(filename: str) -> bool:
    return not filename.startswith(("<", sysconfig.get_path("stdlib")))
