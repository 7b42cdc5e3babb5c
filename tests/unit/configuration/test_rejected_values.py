"""Whatever value of whatever option cannot be read: one sentence with option, file and cure, and nothing of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from oslo_config import cfg
from oslo_messaging import TransportURL

from nova import conf, errors, service
from nova.configuration import check_again, check_libraries
from nova.configuration.validation import ours
from tests.unit.configuration import rejected
from tests.unit.configuration.rejected import CANARY, REFERENCE

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

SECTIONS = sorted({group for group, _option in ours()})


def sources(path: Path, text: str) -> SimpleNamespace:
    path.write_text(text)
    return SimpleNamespace(config_file=[str(path)], config_dir=[], prog="nova-conductor")


def written(group: str, name: str, value: str) -> str:
    return f"[{group}]\n{name} = {value}\n"


def sentence(given: SimpleNamespace, libraries: bool = False) -> str:
    with pytest.raises(errors.Invalid) as caught:
        check_libraries(given, thorough=True) if libraries else check_again(given)
    assert errors.config.exit_status(caught.value) == 2
    return caught.value.message


def faults(said: str, option: str, path: Path, value: str) -> list[str]:
    """What is wrong with a sentence about an option; empty when nothing is."""
    start = f"{option} in {path} cannot be used: "
    return [what for what, wrong in (
        ("start", not said.startswith(start)), ("cure", not ("it must be " in said or "Write " in said)),
        ("one sentence", "\n" in said), ("canary", CANARY in said), ("value", value in said.removeprefix(start)),
        ("report", "report" in said.removeprefix(start))) if wrong]


@pytest.mark.parametrize("section", SECTIONS)
def test_option_when_its_value_is_rejected_then_one_sentence_names_it_and_not_the_value(
        tmp_path: Path, section: str) -> None:
    found = {}
    for group, option, value in rejected.rows():
        if group == section:
            path = tmp_path / "nova.conf"
            said = sentence(sources(path, written(group, option.dest, value)))
            found[group, option.dest, value] = said, faults(said, f"[{group}]{option.dest}", path, value)
    wrong = {key: said for key, said in found.items() if said[1]}
    assert found and not wrong


def test_rows_then_each_option_has_a_value_that_is_rejected() -> None:
    assert {(group, option.dest) for group, option in ours()} == \
        {(group, option.dest) for group, option, value in rejected.rows() if value == REFERENCE}
    assert len(rejected.rows()) > 1000


LIBRARIES = [
    ("DEFAULT", "transport_url", REFERENCE), ("DEFAULT", "transport_url", f"{CANARY}://h"),
    ("DEFAULT", "transport_url", CANARY), ("DEFAULT", "transport_url", f"rabbit://nova:{CANARY}/x@h:5672/"),
    ("DEFAULT", "transport_url", f"rabbit://nova:[{CANARY}@h/"), ("DEFAULT", "rpc_response_timeout", CANARY),
    ("oslo_messaging_notifications", "transport_url", f"{CANARY}://h"),
    ("oslo_messaging_rabbit", "heartbeat_rate", CANARY), ("oslo_messaging_rabbit", "ssl", CANARY),
    ("oslo_policy", "enforce_new_defaults", CANARY), ("oslo_policy", "policy_file", REFERENCE),
    ("oslo_concurrency", "lock_path", REFERENCE), ("oslo_middleware", "max_request_body_size", CANARY),
    ("keystone_authtoken", "http_connect_timeout", CANARY), ("keystone_authtoken", "auth_url", f"{CANARY}://h"),
    ("keystone_authtoken", "www_authenticate_uri", CANARY), ("keystone_authtoken", "memcached_servers", REFERENCE),
    *((section, "password", REFERENCE) for section in ("keystone_authtoken", "service_user", "glance", "cinder",
                                                       "neutron", "barbican", "oslo_limit")),
    ("glance", "timeout", CANARY), ("glance", "cafile", REFERENCE)]


@pytest.mark.parametrize(("section", "name", "value"), LIBRARIES)
def test_librarys_option_when_its_value_is_rejected_then_the_same_holds(
        tmp_path: Path, section: str, name: str, value: str) -> None:
    path, auth = tmp_path / "nova.conf", "auth_type = password\n" if section not in ("DEFAULT",) else ""
    said = sentence(sources(path, written(section, name, value) + auth), libraries=True)
    assert not faults(said, f"[{section}]{name}", path, value), said


@pytest.mark.parametrize("value", [
    "$nosuch", "${nosuch}", "$host", "${DEFAULT.host}", "$nosuch.host", "$database.nosuch"])
def test_option_when_it_refers_to_what_cannot_be_read_then_the_cure_is_a_second_dollar(
        tmp_path: Path, value: str) -> None:
    said = sentence(sources(tmp_path / "nova.conf", written("DEFAULT", "host", value)))
    assert "Write $$ for a literal dollar sign" in said and value not in said


@pytest.mark.parametrize("text", [
    "[DEFAULT]\nlog_dir = $state_path/log\ntransport_url = rabbit://a:b$$c@h/\n", "[DEFAULT]\nlog_dir = a\\$b\n",
    "[keystone_authtoken]\npassword = $$$$\n", "[cyborg]\npassword = ab$nosuch\n",
    "[DEFAULT]\nunknown_option = $nosuch\n", "[oslo_concurrency]\nlock_path = $state_path/tmp\n",
    "[DEFAULT]\nlog_dir = ${state_path}\n[glance]\nunknown=$nosuch\n",
    "[DEFAULT]\ntransport_url =\n[database]\nconnection =\n"])
def test_option_when_a_dollar_can_be_read_or_nobody_reads_it_then_all_is_well(tmp_path: Path, text: str) -> None:
    given = sources(tmp_path / "nova.conf", text)
    check_again(given)
    check_libraries(given, thorough=True)


def test_option_when_two_files_set_it_then_the_one_that_counts_is_named(tmp_path: Path) -> None:
    for name in ("one.conf", "two.conf"):
        (tmp_path / name).write_text("[DEFAULT]\nreport_interval = soon\n")
    said = sentence(SimpleNamespace(config_file=[f"{tmp_path}/one.conf", f"{tmp_path}/two.conf"], config_dir=[],
                                    prog="nova-conductor"))
    assert f"in {tmp_path}/two.conf can" in said


def test_option_when_its_old_name_is_in_a_folder_then_the_file_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "10.conf").write_text("[DEFAULT]\nquota_instances = many\n")
    said = sentence(SimpleNamespace(config_file=[], config_dir=[str(tmp_path)], prog="nova-conductor"))
    assert said.startswith(f"[quota]instances in {tmp_path}/10.conf cannot be used: it must be a whole number")


def test_option_when_the_environment_sets_it_then_its_variable_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("OS_DEFAULT__REPORT_INTERVAL", CANARY)
    said = sentence(sources(tmp_path / "nova.conf", "[DEFAULT]\nreport_interval = 5\n"))
    assert "[DEFAULT]report_interval in the environment variable OS_DEFAULT__REPORT_INTERVAL can" in said
    assert CANARY not in said


@pytest.mark.parametrize("content", [f"[DEFAULT]\n{CANARY}\n", f"[{CANARY}\n", f" {CANARY} = 1\n", f"{CANARY}\udcff"])
def test_file_when_it_cannot_be_parsed_then_its_line_is_named_and_not_shown(tmp_path: Path, content: str) -> None:
    path = tmp_path / "nova.conf"
    path.write_bytes(content.encode(errors="surrogateescape"))
    said = sentence(SimpleNamespace(config_file=[str(path)], config_dir=[], prog="nova-conductor"))
    assert str(path) in said and CANARY not in said and ("line " in said or "UTF-8" in said)


def test_options_of_ours_then_every_type_is_described(tmp_path: Path) -> None:
    from nova.configuration.value_descriptions import wanted

    assert [option.name for _group, option in ours() if not isinstance(option, cfg.Opt) or "type" in wanted(option.type)
            ] == []


@pytest.mark.parametrize("text", [f"[DEFAULT]\ndebug = {CANARY}\n", f"[DEFAULT]\n{CANARY}\n",
                                  f"[DEFAULT]\ndebug = true\nhost = {REFERENCE}\n"])
def test_files_when_they_are_read_again_and_are_wrong_then_an_error_says_so_and_nothing_changes(
        tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str) -> None:
    path = tmp_path / "nova.conf"
    path.write_text("[DEFAULT]\n")
    options = conf.register(cfg.ConfigOpts())
    options(["--config-file", str(path)], project="nova", default_config_dirs=[])
    path.write_text(text)
    service.reload_levels(options)
    said = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(said) == 1 and str(path) in said[0] and "all options are unchanged" in said[0] and CANARY not in said[0]
    assert options.debug is False


def test_files_when_they_are_gone_as_they_are_read_again_then_nothing_changes(
        tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "nova.conf"
    path.write_text("[DEFAULT]\ndebug = true\n")
    options = conf.register(cfg.ConfigOpts())
    options(["--config-file", str(path)], project="nova", default_config_dirs=[])
    path.unlink()
    service.reload_levels(options)
    assert any("all options are unchanged" in record.getMessage() for record in caplog.records)
    assert options.debug is True


@pytest.mark.parametrize("name", ["transport_url", "hosts_transport_url"])
@pytest.mark.parametrize("special", "/#?[]@:")
def test_broker_url_when_a_password_has_a_special_character_then_the_library_reads_it_or_it_is_refused_in_words(
        tmp_path: Path, name: str, special: str) -> None:
    """What oslo.messaging would stumble over is found first, and no part of the password is said."""
    value = f"rabbit://nova:{CANARY}{special}{CANARY}@broker:5672/nova"
    given = sources(tmp_path / "nova.conf", written("DEFAULT", name, value))
    try:
        check_again(given)
        check_libraries(given, thorough=True)
    except errors.config.Wrong as error:
        assert CANARY not in error.message and "%" in error.message
    else:
        options = conf.register(cfg.ConfigOpts())
        options([], default_config_files=given.config_file)
        [host] = TransportURL.parse(options, value).hosts
        assert host.password == f"{CANARY}{special}{CANARY}" and (host.hostname, host.port) == ("broker", 5672)
