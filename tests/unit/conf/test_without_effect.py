"""The table of options without effect, held against Nova 34's names and those that deployment tools set."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pytest
from oslo_config import cfg

from nova import conf
from nova.conf._without_effect import EVERY, KEYSTONEAUTH, MORE, WithoutEffectTable, table
from nova.configuration import libraries
from nova.manage.doctor import config_options
from tests.contract.rows import SHARED, load, needs_contract

ROWS = list(table())


@functools.cache
def read_options() -> dict[str, dict[str, cfg.Opt]]:
    """What is read by us or by a library, with a password as credentials."""
    found = [config_options.WrittenOption(section, "auth_type", "x", "password")
             for section in libraries.WITH_CREDENTIALS]
    return dict(config_options.known(found))


def is_read(section: str, name: str) -> bool:
    return name in read_options().get(section, {})


def is_recognised(section: str, name: str) -> bool:
    return is_read(section, name) or table().find(section, name) is not None


@pytest.mark.parametrize(("section", "name", "said"), ROWS, ids=[f"{section}-{name}" for section, name, _said in ROWS])
def test_row_then_its_option_is_read_by_nobody_and_its_reason_is_a_sentence(section: str, name: str, said) -> None:
    assert not is_read(section, name)
    assert name in (EVERY, *KEYSTONEAUTH) or re.fullmatch(r"[a-z][a-z0-9_.]*", name)
    assert re.fullmatch(r"(\S+ ){2,}.*\S\.", said.reason) and "\n" not in said.reason and "  " not in said.reason
    assert said.reason[0].isupper() or said.reason[0] in "[`" or re.match(r"[a-z_]+[ ,']", said.reason)
    assert (said.unprotected is None) == (said.cure == "") and not said.cure.endswith(".")


def test_sections_without_effect_then_no_option_of_ours_is_in_one() -> None:
    whole = {section for section, name, _said in ROWS if name == EVERY}
    assert not whole & {group for group, _options in conf.list_opts()}


def named_in_section_4() -> Iterator[tuple[str, str]]:
    """(section, option) of the 440 of Nova 34 that are classified in rest_of_nova.md, but for keystoneauth's."""
    text = (SHARED / "rest_of_nova.md").read_text()
    section = ""
    for line in text[text.index("## 4 Options"):].splitlines():
        if head := re.match(r"- \*\*\[(\w+)\]\*\*", line):
            section = head[1]
        elif re.match(r"  - [FXR] ", line):
            for name in re.findall(r"`([a-z0-9_]+)` \(", line):
                yield section, name
                if section == "database":  # "the same eighteen"
                    yield "api_database", name


@needs_contract
def test_options_of_nova_34_that_are_not_read_then_each_is_in_the_table() -> None:
    names = list(named_in_section_4())
    assert len(names) == len(set(names)) == 440 - 167
    assert [f"[{section}]{name}" for section, name in names if not is_recognised(section, name)] == []


#: Sections of Nova 34 with keystoneauth's options -> which groups of them it registers there.
KEYSTONEAUTHS = {"barbican": "as", "barbican_service_user": "as", "cinder": "as", "cyborg": "asd", "glance": "sd",
                 "ironic": "asd", "key_manager": "as", "keystone": "asd", "manila": "asd", "neutron": "asd",
                 "placement": "asd", "service_user": "asd", "vendordata_dynamic_auth": "as", "vmware": "s",
                 "keystone_authtoken": "asd", "oslo_limit": "asd"}


@pytest.mark.parametrize(("section", "groups"), KEYSTONEAUTHS.items())
def test_options_of_keystoneauth_then_each_is_read_or_in_the_table(section: str, groups: str) -> None:
    from keystoneauth1 import loading

    options = {"a": [*loading.get_auth_common_conf_options(), *loading.get_auth_plugin_conf_options("password")],
               "s": loading.get_session_conf_options(), "d": loading.get_adapter_conf_options()}
    names = [name.replace("-", "_") for group in groups for option in options[group]
             for name in (option.dest, *(old.name for old in option.deprecated_opts)) if name]
    assert [name for name in names if not is_recognised(section, name)] == []


@needs_contract
def test_options_that_operators_set_most_then_each_is_read_or_in_the_table() -> None:
    text = (SHARED / "config_options.md").read_text()
    found = [(group, name) for group, name in re.findall(r"^\| ([\w]+) \| ([a-z][a-z0-9_]*) \|", text, re.MULTILINE)
             if group != "group"]
    assert len(found) > 200
    assert [f"[{group}]{name}" for group, name in found if not is_recognised(group, name)] == []


@needs_contract
def test_options_of_deployment_tools_then_each_is_read_or_in_the_table() -> None:
    found = {match for row in load("installers.yaml")["options"]["rows"]
             for match in re.findall(r"^\[([\w-]+)\]([\w.]+)$", row["o"])}
    for line in load("installers.yaml")["options"]["known_and_set_by_one_tool"].values():
        for section, names in re.findall(r"\[(\w+)\] ([^;]+)", line):
            found |= {(section, name) for name in names.split()}
    assert len(found) > 300
    assert sorted(f"[{section}]{name}" for section, name in found if not is_recognised(section, name)) == []


@pytest.mark.parametrize(("section", "name", "values", "relied_on"), [
    ("glance", "verify_glance_signatures", ["True"], True), ("glance", "verify_glance_signatures", ["false"], False),
    ("ephemeral_storage_encryption", "enabled", ["yes"], True),
    ("database", "connection_parameters", ["charset=utf8&ssl_ca=/x"], True),
    ("database", "connection_parameters", ["charset=utf8"], False),
    ("libvirt", "supported_tpm_secret_security", ["user,deployment"], True),
    ("libvirt", "supported_tpm_secret_security", ["user,host"], False),
    ("compute", "vmdk_allowed_types", [""], True), ("compute", "vmdk_allowed_types", ["streamOptimized"], True),
    ("compute", "vmdk_allowed_types", ["monolithicSparse,streamOptimized"], False),
    ("database", "max_retries", ["-1"], False)])
def test_value_when_it_relies_on_a_protection_that_is_not_here_then_it_is_told(
        section: str, name: str, values: list[str], relied_on: bool) -> None:
    said = table().find(section, name)
    assert said is not None and said.removes_protection(values) is relied_on


def test_table_when_a_name_stands_for_several_then_each_is_found() -> None:
    made = WithoutEffectTable(
        '["a, b"]\n"one, two" = "Because of this."\n["c_*"]\n"*" = "Nobody has it."\n[d]\n"(g)" = "No."\n',
        {"(g)": lambda: ["three"]})
    assert all(made.find(section, name) for section in "ab" for name in ("one", "two"))
    assert made.find("c_1", "x") and made.find("d", "three") and not made.find("d", "four") and not made.find("e", "x")
    assert MORE in "c_*"
