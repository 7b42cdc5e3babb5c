"""Regular expressions that meet a tenant's text take time in proportion to it, whatever stands in it."""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova.model.image import image_properties

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

NOVA = Path(__file__).resolve().parents[2] / "nova"
#: Rooms that read what tenants write. (Hosts' drivers read operators' files and their own host's.)
ROOMS = ("api", "web", "model", "scheduler", "conductor", "db", "placement", "metadata", "console", "policies")
CALLS = {"compile", "fullmatch", "match", "search", "sub", "split", "findall", "finditer"}
ANYWHERE = {"search", "sub", "split", "findall", "finditer"}
LENGTH = 16384
BEGINNINGS = ("", "0", "a", "CUSTOM_", "trait:", "resources1:", "same_subtree", "hw:numa_cpus.", ">=", "/", "[", "req-",
              "%", "<source ", " mode='")
REPEATED = (" ", "\t", "0", "a", "A", "-", "_", ".", ",", "/", ":", "=", "%", "\\", "[", "]", "a.", "0.", "a-", "0,",
            " ,", "a/", "/a", "a ", "0 ", "\n", "é", "<", "&", "?", "{", "(", "'")
MOST_S = 0.2  # what takes a time that grows with the square needs seconds


def tenants_text() -> Iterator[str]:
    """Each beginning with each repetition, and with an end that fits nothing."""
    for beginning in BEGINNINGS:
        for unit in REPEATED:
            yield beginning + unit * (LENGTH // len(unit)) + "\0"


def found_in(path: Path) -> Iterator[tuple[str, str, bool]]:
    """(where, the expression, whether it is looked for anywhere) of a module."""
    tree, name = ast.parse(path.read_text()), str(path.relative_to(NOVA))
    methods: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            methods.setdefault(node.value.id, set()).add(node.attr)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args \
                and ast.unparse(node.func.value) == "re" and node.func.attr in CALLS - {"compile"} \
                and isinstance(node.args[0], ast.Constant):
            yield f"{name}:{node.lineno}", str(node.args[0].value), node.func.attr in ANYWHERE
    module = importlib.import_module("nova." + name.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
    for attribute, value in vars(module).items():
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            yield f"{name}:{attribute}", value.pattern, bool(methods.get(attribute, set()) & ANYWHERE)


PATTERNS = sorted({found for room in ROOMS for path in (NOVA / room).rglob("*.py")
                   if re.search(r"^import re$", path.read_text(), re.M) for found in found_in(path)})


def test_patterns_then_they_are_found() -> None:
    where = {name.partition(":")[0] for name, _, _ in PATTERNS}
    assert {"model/image/image_properties.py", "model/placement/traits.py", "conductor/engine/faults.py"} <= where
    assert len(PATTERNS) > 25


@pytest.mark.parametrize(("where", "expression", "anywhere"), PATTERNS, ids=[where for where, _, _ in PATTERNS])
def test_pattern_when_the_text_is_hostile_then_it_is_soon_done(where: str, expression: str, anywhere: bool) -> None:
    assert slow_text(expression, anywhere) is None


def slow_text(expression: str, anywhere: bool) -> str | None:
    """The beginning of a text that the expression is slow with."""
    pattern = re.compile(expression)
    for text in tenants_text():
        started = time.thread_time()
        pattern.search(text) if anywhere else pattern.fullmatch(text)
        if time.thread_time() - started > MOST_S:
            return text[:20]
    return None


@pytest.mark.parametrize(("expression", "anywhere"), [
    (r"\s*(==|<=)?\s*[0-9]+(\.[0-9]+)*\s*", False), (r"[a-z]+[0-9]", True)])
def test_slow_text_when_an_expression_tries_twice_then_it_is_found(expression: str, anywhere: bool) -> None:
    assert slow_text(expression, anywhere) is not None


@pytest.mark.parametrize("name", [*image_properties.PROBLEMS, *(f"{name}.0" for name in image_properties.NUMBERED)])
def test_image_property_when_its_value_is_hostile_then_it_is_refused_at_once(name: str) -> None:
    for unit in (" ", "0", "a", ",", "[", "0,", " ,", "-"):
        value = unit * (65535 // len(unit)) + "x"
        started = time.thread_time()
        wrong = image_properties.problem({name: value})
        assert time.thread_time() - started < MOST_S
        assert wrong is not None and len(wrong) < 300


@pytest.mark.parametrize(("name", "value", "fits"), [
    ("img_hv_requested_version", ">=2.6, <4", True), ("img_hv_requested_version", " == 1.2.3 ", True),
    ("img_hv_requested_version", ">= 2 6", False), ("img_hv_requested_version", " " * 65535 + "x", False),
    ("img_hv_requested_version", " " * 300 + "1", False), ("hw_numa_cpus.0", "0-3, ^2 ,7", True),
    ("hw_numa_cpus.1", "^2,0-3", False), ("hw_numa_cpus.1", "", False),
    ("img_mappings", "[" + "{}," * 300 + "{}]", True)])
def test_image_property_then_values_are_taken_as_before(name: str, value: str, fits: bool) -> None:
    assert (image_properties.problem({name: value}) is None) is fits
