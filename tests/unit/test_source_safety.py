"""What no line of the source does: compare secrets in a time that tells of them, trust any certificate, read requests'
XML, or call the image tool past the module that states formats and limits."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

NOVA = Path(__file__).resolve().parents[2] / "nova"
SECRET = {"secret", "token", "password", "signature", "digest", "hexdigest", "proof", "hmac", "checksum"}
#: Hashes of tokens, which are looked up by an index or in a table: what the time tells of a hash leads to no token; and
#: what tells whether files have changed. The last but one names a mount point by its export, the last one
#: compares names of algorithms.
COMPARED = {"nova/console/sessions.py", "nova/policies/enforcer.py", "nova/privileged/helper/volume_calls.py",
            "nova/legacy/signatures/signers.py"}
#: Where a certificate may be of another name than the one that is dialled, and must be of our authority all the same.
OF_ANY_NAME = {"nova/console/vencrypt.py", "nova/manage/doctor/services.py"}
TRUSTING = {"CERT_NONE", "_create_unverified_context", "_create_stdlib_context", "disable_warnings"}
IMAGE_TOOL = "nova/privileged/qemu_img.py"
XML_PARSERS = {"xml", "lxml", "defusedxml", "xmltodict", "bs4"}
#: They read libvirt's own documents; the next one another host's, and none with a document type; the others clients'
#: by defusedxml.
READS_XML = ("nova/virt/libvirt/", "nova/migrationproxy/references.py", "nova/legacy/objectstore/documents.py",
             "nova/legacy/objectstore/bundles/manifest.py", "nova/legacy/xml/reader.py")

Rule = Callable[[ast.AST], bool]
Breaking = Callable[[Rule], set[str]]


@pytest.fixture(scope="module")
def breaking() -> Breaking:
    """Gives the files with a node that a rule is about. All are parsed once."""
    nodes = {str(path.relative_to(NOVA.parent)): tuple(ast.walk(ast.parse(path.read_text())))
             for path in NOVA.rglob("*.py")}
    return lambda rule: {name for name, found in nodes.items() if any(map(rule, found))}


def words_of(node: ast.expr) -> set[str]:
    """The words of the name that a value is read by."""
    if isinstance(node, ast.Call):
        return words_of(node.func)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return set(re.split(r"_|\d", name.lower()))


def compares_a_secret(node: ast.AST) -> bool:
    """By ``==`` or ``!=``, with anything but a constant."""
    if not isinstance(node, ast.Compare) or not any(isinstance(one, ast.Eq | ast.NotEq) for one in node.ops):
        return False
    sides = [node.left, *node.comparators]
    return any(words_of(side) & SECRET for side in sides) and not any(is_constant(side) for side in sides)


def is_constant(node: ast.expr) -> bool:
    """Written there, or a name in capitals."""
    return isinstance(node, ast.Constant) or ast.unparse(node).rpartition(".")[2].isupper()


def calls_the_image_tool(node: ast.AST) -> bool:
    return isinstance(node, ast.List | ast.Tuple) and any(
        isinstance(one, ast.Constant) and re.search(r"(^|/)qemu-img( |$)", str(one.value)) for one in node.elts) \
        or isinstance(node, ast.Call) and any(isinstance(one, ast.Constant) and str(one.value).startswith("qemu-img")
                                              for one in node.args)


def trusts_anybody(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg == "verify" and isinstance(node.value, ast.Constant) and node.value.value is False
    return isinstance(node, ast.Attribute) and node.attr in TRUSTING


def takes_any_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is False \
        and any(getattr(target, "attr", "") == "check_hostname" for target in node.targets)


def reads_xml(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in XML_PARSERS for alias in node.names)
    return isinstance(node, ast.ImportFrom) and not node.level \
        and (node.module or "").partition(".")[0] in XML_PARSERS


def test_secrets_when_they_are_compared_then_in_constant_time(breaking: Breaking) -> None:
    assert breaking(compares_a_secret) <= COMPARED
    constant = breaking(lambda node: isinstance(node, ast.Call) and ast.unparse(node.func) == "hmac.compare_digest")
    assert "nova/metadata/callers.py" in constant and any(name.startswith("nova/rpc/") for name in constant)


def test_image_tool_when_it_is_called_then_by_the_one_module_that_states_formats(breaking: Breaking) -> None:
    assert breaking(calls_the_image_tool) == {IMAGE_TOOL}


def test_certificates_when_nobody_says_otherwise_then_they_are_checked(breaking: Breaking) -> None:
    assert breaking(trusts_anybody) == set()
    assert breaking(takes_any_name) <= OF_ANY_NAME


def test_xml_when_it_is_read_then_it_is_libvirts_or_is_bounded(breaking: Breaking) -> None:
    assert {name for name in breaking(reads_xml) if not name.startswith(READS_XML)} == set()


@pytest.mark.parametrize(("source", "rule"), [
    ("self._secret == given", compares_a_secret), ("hmac.new(a).hexdigest() != b", compares_a_secret),
    ("row.admin_password == order.admin_password", compares_a_secret),
    ("run(['qemu-img', 'info', path])", calls_the_image_tool), ("run(('/usr/bin/qemu-img', path))",
                                                               calls_the_image_tool),
    ("os.system('qemu-img info')", calls_the_image_tool), ("requests.get(url, verify=False)", trusts_anybody),
    ("made.verify_mode = ssl.CERT_NONE", trusts_anybody), ("made.check_hostname = False", takes_any_name),
    ("from xml.etree import ElementTree", reads_xml), ("import lxml.etree", reads_xml)])
def test_source_when_it_breaks_a_rule_then_that_is_seen(source: str, rule: Rule) -> None:
    assert any(rule(node) for node in ast.walk(ast.parse(source)))


@pytest.mark.parametrize(("source", "rule"), [
    ("hmac.compare_digest(expected, given)", compares_a_secret), ("kind == 'token'", compares_a_secret),
    ("'''qemu-img runs here'''", calls_the_image_tool), ("requests.get(url, verify=True)", trusts_anybody),
    ("from nova.virt.libvirt import xml", reads_xml)])
def test_source_when_it_breaks_no_rule_then_nothing_is_seen(source: str, rule: Rule) -> None:
    assert not any(rule(node) for node in ast.walk(ast.parse(source)))
