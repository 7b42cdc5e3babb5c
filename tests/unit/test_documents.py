"""Documents: generated ones are up to date, links lead somewhere, and nothing of a workplace stands in a file."""

from __future__ import annotations

import ast
import configparser
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf
from nova.manage import main
from nova.model.server.states import ACTIONS
from nova.rpc import host_rights
from tests import docs
from tests.docs_parts import conf as conf_pages
from tests.docs_parts import devices as device_pages
from tests.docs_parts import states as state_pages

TOP = docs.TOP
PAGES = [TOP / "README.rst", *sorted((TOP / "doc").rglob("*.rst"))]
TREE = ("README.rst", "LICENSE", "setup.cfg", "pyproject.toml", "tox.ini", ".ci", "alembic", "bin", "doc", "etc",
        "nova", "tests")
#: Split, so that this file does not name them either.
FORBIDDEN = tuple("".join(parts) for parts in (
    ("/wo", "rk/"), ("/opt/no", "va-dev"), ("pypi", ".org"), ("python", "hosted"), ("pypi.", "python"),
    ("registry.", "npmjs"), ("proxy.", "golang"), ("docker", ".io"), ("quay", ".io")))
ENDS = (".", "?", ".)")

options = [pytest.param(group, option, id=f"{group}-{option.name}")
           for group, listed in conf.list_opts() for option in listed]


# -- generated pages

def test_generated_documents_are_what_the_code_says() -> None:
    stale = docs.stale()
    assert not stale, "run `bin/test docs --write`:\n" + "\n".join(f"{name}:\n{text}" for name, text in stale.items())


def test_stale_when_a_page_is_missing_or_changed_then_it_is_named(tmp_path: Path) -> None:
    assert set(docs.write(tmp_path)) == set(docs.PAGES)
    assert docs.stale(tmp_path) == {}
    (tmp_path / "doc/generated/api.rst").unlink()
    states = tmp_path / "doc/generated/states.rst"
    states.write_text(states.read_text().replace("building", "growing"))
    assert set(docs.stale(tmp_path)) == {"doc/generated/api.rst", "doc/generated/states.rst"}
    assert "-   * - BUILD" not in docs.stale(tmp_path)["doc/generated/states.rst"]
    assert "growing" in docs.stale(tmp_path)["doc/generated/states.rst"]


def test_sample_is_the_same_on_every_machine() -> None:
    import socket

    for option in (option for _, listed in conf.list_opts() for option in listed):
        shown = " ".join(conf_pages.defaults_of(option))
        assert socket.gethostname() not in shown.split()
        assert not re.search(r"/(home|opt|root|tmp|work)/", shown), option.name


def test_sample_when_uncommented_then_it_is_a_file_of_the_defaults(tmp_path: Path) -> None:
    """Every line of ours parses back to the option's own default; machine-dependent ones have a word in ``<>``."""
    lines = [line.removeprefix("#") if re.match(r"#\w+ =", line) else line
             for line in conf_pages.sample().splitlines()]
    path = tmp_path / "nova.conf"
    path.write_text("\n".join(line for line in lines if not re.search(r"= <\w+>$", line)))
    read, plain = (conf.register(cfg.ConfigOpts()) for _ in range(2))
    read(["--config-file", str(path)])
    plain([], default_config_files=[])
    for group, listed in conf.list_opts():
        for option in listed:
            if option.sample_default is None and option.default is not None:
                one, other = ((made if group == "DEFAULT" else made[group])[option.dest] for made in (read, plain))
                assert one == other, f"[{group}]{option.name}"


@pytest.mark.parametrize(("group", "option"), options)
def test_option_has_a_help_of_whole_sentences(group: str, option: cfg.Opt) -> None:
    text = (option.help or "").strip()
    assert len(text.split()) >= 2 and text.endswith(ENDS), f"[{group}]{option.name}: {text!r}"


def test_page_of_states_draws_every_action() -> None:
    text = state_pages.page()
    diagram = text[text.index("Diagram"):]
    assert {name for name in ACTIONS if not re.search(rf"── {name} +──▶", diagram)} == set()
    assert set(state_pages.ENDINGS) <= set(ACTIONS)


def test_page_of_devices_tells_every_property_that_the_driver_reads() -> None:
    text = device_pages.page()
    assert device_pages.undescribed() == set()
    described = {field: words for fields in device_pages.SECTIONS.values() for field, words in fields.items()}
    assert {field for field, words in device_pages.newer().items() if words not in described[field]} == set()
    assert {name for table in (device_pages.IMAGE, device_pages.FLAVOR, device_pages.REFUSED, device_pages.TUNING)
            for name in table if f"``{name}``" not in text} == set()


# -- pages written by hand

@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_page_is_good_restructuredtext(page: Path) -> None:
    core = pytest.importorskip("docutils.core", reason="docutils is not installed here")
    said = io.StringIO()
    core.publish_doctree(page.read_text(), source_path=str(page), settings_overrides={
        "report_level": 2, "warning_stream": said, "file_insertion_enabled": False})
    assert said.getvalue() == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_page_then_its_links_lead_to_files(page: Path) -> None:
    text = page.read_text()
    targets = re.findall(r"`[^`<]+<([^>`]+)>`__?", text) + re.findall(r"^\.\. image:: (\S+)", text, re.M)
    for target in targets:
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target.partition("#")[0]).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_page_then_the_files_it_names_are_there(page: Path) -> None:
    """``nova/...`` and its like in literals; what has a wildcard, an ellipsis or a placeholder is not looked for."""
    named = re.findall(r"``((?:nova|bin|tests|etc|doc|alembic)/[\w./-]+)``", page.read_text())
    missing = [name for name in named if "..." not in name and "things" not in name and not (TOP / name).exists()]
    assert not missing


def test_pages_name_only_commands_of_nova_manage_that_exist() -> None:
    known = {(name, None) for name in main.SINGLE}
    known |= {(category, action) for category, make in main.COMMANDS.items() for action in make()}
    categories = set(main.COMMANDS) | set(main.SINGLE)
    for page in PAGES:
        for category, action in re.findall(r"nova-manage\s+([a-z_]+)(?:\s+([a-z_-]+))?", page.read_text()):
            if category in categories:
                assert (category, None) in known or (category, action) in known, \
                    f"{page.name}: nova-manage {category} {action}"


def test_install_page_then_hosts_get_the_rights_that_the_stack_gives_them() -> None:
    page = (TOP / "doc" / "install.rst").read_text()
    for verb, pattern in host_rights.permissions("compute1").items():
        assert f"'{pattern}'" in page, verb


@pytest.mark.parametrize("name", ["nova.conf", "nova-conductor.conf"])
def test_example_file_is_short_and_has_only_options_that_exist(name: str) -> None:
    parser = configparser.ConfigParser(default_section="none", interpolation=None)
    parser.read(TOP / "etc" / "bounded" / name)
    known = {(group, option.name) for group, listed in conf.list_opts() for option in listed}
    known |= {(option.group, option.name) for option in conf_pages.LIBRARY}
    said = [(group, option) for group in parser.sections() for option in parser[group]]
    assert said and set(said) <= known
    assert len(said) + len(parser.sections()) < 15
    databases = {group for group, option in said if option == "connection"}
    assert databases == ({"api_database", "database"} if name == "nova-conductor.conf" else set())


def test_library_options_in_the_sample_are_those_of_the_libraries() -> None:
    from keystoneauth1 import loading
    from keystonemiddleware.auth_token import _opts as token_options
    from oslo_messaging import opts as messaging
    from oslo_middleware import opts as middleware
    from oslo_policy import opts as policy

    listed = [*messaging.list_opts(), *middleware.list_opts(), *policy.list_opts(), *token_options.list_opts()]
    known = {(group or "DEFAULT", option.name.replace("-", "_")) for group, options_ in listed for option in options_}
    known |= {("keystone_authtoken", option.dest) for option in loading.get_auth_plugin_conf_options("password")}
    known |= {("keystone_authtoken", "auth_type")}
    assert {(option.group, option.name) for option in conf_pages.LIBRARY} - known == set()


# -- the whole tree

def files() -> Iterator[Path]:
    for name in TREE:
        start = TOP / name
        for path in ([start] if start.is_file() else sorted(start.rglob("*"))):
            if path.is_file() and not any(part == "__pycache__" or part.endswith("_cache") for part in path.parts):
                yield path


def test_no_file_names_a_workplace_or_a_registry() -> None:
    found = []
    for path in files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(TOP)}: {word}" for word in FORBIDDEN if word in text]
    assert not found


def packages() -> list[Path]:
    return sorted(path for path in (TOP / "nova").rglob("*/") if any(path.glob("*.py")))


@pytest.mark.parametrize("package", packages(), ids=lambda path: str(path.relative_to(TOP)))
def test_package_says_in_a_sentence_what_it_is(package: Path) -> None:
    init = package / "__init__.py"
    assert init.exists(), "no __init__.py"
    sentence = (ast.get_docstring(ast.parse(init.read_text())) or "").split("\n\n")[0].strip()
    assert len(sentence.split()) >= 4 and sentence.endswith("."), f"{init}: {sentence!r}"
