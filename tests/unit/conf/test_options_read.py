"""Every option that is declared does something, or says that it does not."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import nova
from nova import conf

ROOT = Path(nova.__file__).parent
NOT_READ = "Accepted"  # so begins the help of an option that is there for old files alone
OPTIONS = [(section.GROUP, option) for section in conf.sections() for option in section.OPTS]


def words(tree: ast.AST) -> Iterator[str]:
    """What code could read an option by: names, attributes, and strings that are one word."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (ast.keyword, ast.arg)) and node.arg:
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            yield node.value


class Undeclared(ast.NodeTransformer):
    """The tree without the declarations of options, and without the typed fields of their values."""

    def visit_Call(self, node: ast.Call) -> ast.AST | None:
        called = ast.unparse(node.func)
        return None if called.startswith("cfg.") and called.endswith("Opt") else self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        return None if node.value is None else self.generic_visit(node)


@functools.cache
def used() -> frozenset[str]:
    found: set[str] = set()
    for file in ROOT.rglob("*.py"):
        tree = ast.parse(file.read_text())
        found |= {*words(Undeclared().visit(tree) if "conf" in file.relative_to(ROOT).parts else tree)}
    return frozenset(found)


@pytest.mark.parametrize(("group", "option"), [
    pytest.param(group, option, id=f"{group}-{option.name}") for group, option in OPTIONS])
def test_option_when_nothing_reads_it_then_its_help_says_so(group: str, option) -> None:
    read = option.dest in used() or option.name in used() or group == "upgrade_levels"  # read by contracts' topics
    assert read != option.help.startswith(NOT_READ), \
        f"[{group}]{option.name} is {'read, and says that it is not' if read else 'read by nobody'}"


@pytest.mark.parametrize(("text", "word"), [
    ("conf.one", "one"), ("getattr(conf, 'two')", "two"), ("class A:\n    three: int = 1", "three")])
def test_words_when_an_option_is_read_in_any_way_then_it_is_found(text: str, word: str) -> None:
    assert word in {*words(ast.parse(text))}


def test_words_when_an_option_is_only_declared_then_it_is_not_found() -> None:
    tree = Undeclared().visit(ast.parse("OPTS = [cfg.StrOpt('four', help='x')]\nclass A:\n    four: str"))
    assert "four" not in {*words(tree)}
