"""What documents, docstrings, and the programs in the tests' strings name of the tree is there."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
PAGES = sorted([*TOP.glob("doc/*.rst"), TOP / "README.rst"])
MODULES = sorted((TOP / "nova").rglob("*.py"))
FILE = re.compile(r"(?<![\w/.-])((?:nova|tests|bin|etc|alembic|doc|contract)/[\w./-]*[\w])")
#: A module of ours, with or without names in it: in backticks, or after "see".
DOTTED = re.compile(r"(?:`~?|\bsee )(nova(?:\.\w+)+)")
#: A file named without its directory, with or without the directories next to it.
ALONE = re.compile(r"``((?:\w+/)*\w+\.py)``")
#: A name that Sphinx would link; its last word must be in the code.
ROLE = re.compile(r":(?:mod|class|func|meth|attr|data|exc):`~?[\w.]*?(\w+)`")
#: Dotted words that are no modules: files, keys, and classes that options of older clouds name.
ELSEWHERE = ("nova.conf", "nova.network.ldapdns", "nova.network.minidns", "nova.network.linux_net",
             "nova.network.manager", "nova.global_request_id", "nova.request_id")
#: An import in a program that is a string: of one module, of names in it.
IMPORT = re.compile(r"\bfrom (nova(?:\.\w+)*|tests(?:\.\w+)*) import (\w+(?:, ?\w+)*)|\bimport (nova(?:\.\w+)+)")
MADE_UP = "things"  # the noun of examples
MADE_UP_TREES = ("test_untyped.py", "test_private_names.py")  # their strings are modules of a tree of their own
FORMER = "nova.testing"  # an alias of nova.devel
FILES = [path for folder in ("nova", "tests", "bin", "alembic", "etc") for path in (TOP / folder).rglob("*.py")]
DOCSTRINGS = re.compile(r'"""(?s:.*?)"""|#.*')
WORDS = {*(path.stem for path in FILES), *(word for path in MODULES
                                           for word in re.findall(r"\w+", DOCSTRINGS.sub("", path.read_text())))}


def _gone(text: str) -> Iterator[str]:
    for name in FILE.findall(text):
        if MADE_UP not in name and not (TOP / name).exists() and not list(TOP.glob(f"{name}.*")):
            yield name
    for name in DOTTED.findall(text):
        if not name.startswith(ELSEWHERE) and not _known(name.split(".")):
            yield name
    for name in ALONE.findall(text):
        if MADE_UP not in name and not any(str(path).endswith(f"/{name}") for path in FILES):
            yield name
    for name in ROLE.findall(text):
        if name not in WORDS:
            yield name


def _known(words: list[str]) -> bool:
    """A package, a module, or up to two names within one."""
    for length in range(len(words), 0, -1):
        place, rest = TOP.joinpath(*words[:length]), words[length:]
        source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if source.exists():
            text = source.read_text()
            return len(rest) < 3 and all(re.search(rf"\b{name}\b", text) for name in rest)
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_when_it_names_a_file_or_module_then_it_is_there(page: Path) -> None:
    assert sorted({*_gone(page.read_text())}) == []


def test_modules_when_they_name_a_file_or_module_then_it_is_there() -> None:
    gone = {f"{path.relative_to(TOP)}: {name}" for path in MODULES for text in _prose(path) for name in _gone(text)}
    assert sorted(gone) == []


def _prose(path: Path) -> Iterator[str]:
    """Its comments and docstrings."""
    source = path.read_text()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


@pytest.mark.parametrize("folder", ["tests", "nova", "bin"])
def test_program_in_a_string_when_it_imports_then_the_module_and_the_names_are_there(folder: str) -> None:
    gone = {f"{path.relative_to(TOP)}:{line}: {name}" for path in (TOP / folder).rglob("*.py")
            if path.name not in MADE_UP_TREES for line, name in _imported(path)
            if not name.startswith(FORMER) and not _known(name.split("."))}
    assert sorted(gone) == []


def _imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module.name) of each import that is in a string of the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module, names, whole in IMPORT.findall(node.value):
                for name in re.findall(r"\w+", names) or [""]:
                    yield node.lineno, ".".join(filter(None, (module or whole, name)))
