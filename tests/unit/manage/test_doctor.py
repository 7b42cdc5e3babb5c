from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import socket
import ssl
import threading
import types
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf, errors
from nova.cmd import host_credentials
from nova.manage import doctor
from nova.manage.doctor import finding
from nova.rpc import transport
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from tests.fakes.cinder import FakeCinder
from tests.fakes.console_papers import Authority, Files


class Bus:
    """Notes which contract was spoken, by whom."""

    def __init__(self) -> None:
        self.asked: list[tuple] = []

    def client(self, contract):
        self.asked.append((contract,))
        return self

    def ping(self, host):
        self.asked.append(("ping", host))
        return "MariaDB 10"

    def may_proceed(self, host, asked):
        self.asked.append(("may_proceed", host, asked))
        return ()


def options(**values):
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[])
    made.set_override("host", "here")
    for name, value in values.items():
        group, _, option = name.rpartition("__")
        made.set_override(option, value, group=group or None)
    return made


def test_round_trip_on_a_controller_then_the_database_answers():
    bus = Bus()
    assert doctor.services.round_trip(options(), bus) == " (database: MariaDB 10)"
    assert bus.asked == [(ConductorRPC,), ("ping", "here")]


def test_round_trip_on_a_compute_host_then_only_the_hosts_contract_is_spoken():
    bus = Bus()
    assert doctor.services.round_trip(options(compute_driver="libvirt.LibvirtDriver"), bus) == ""
    assert bus.asked == [(ConductorHostRPC,), ("may_proceed", "here", ())]


@pytest.mark.parametrize("compute_driver", [None, "libvirt.LibvirtDriver"])
def test_broker_when_a_conductor_says_that_its_database_is_away_then_the_database_is_blamed(monkeypatch,
                                                                                            compute_driver):
    """``monkeypatch``: the bus is made of options, and there is no broker."""
    said = errors.from_wire("unavailable", "db.away", "The database does not answer.", {})
    bus = types.SimpleNamespace(client=lambda contract: types.SimpleNamespace(
        ping=raising(said), may_proceed=raising(said)))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = options(compute_driver=compute_driver)
        transport.open_transport(made)
        made.set_override("transport_url", f"rabbit://u:x@127.0.0.1:{listener.getsockname()[1]}/nova")
        monkeypatch.setattr(doctor.services, "the_bus", lambda options: (bus, "transport_url"))
        found = doctor.broker(made)
    assert found.state == doctor.OK and "'database'" in found.what


def test_checks_that_ask_a_conductor_when_its_database_is_away_then_they_point_to_the_database():
    found = finding.unanswered(errors.from_wire("unavailable", "db.away", "The database does not answer.", {}))
    assert found.state == doctor.WARN and "'database'" in found.cure and "database" in found.what


def raising(error):
    def call(*_args):
        raise error
    return call


@pytest.mark.parametrize(("tls", "authority", "warns"), [
    (True, "", True), (True, "/ca.pem", False), (False, "", False)])
def test_broker_when_its_certificate_is_not_checked_then_a_warning(tls, authority, warns):
    made = options()
    transport.open_transport(made)  # declares the options
    made.set_override("ssl", tls, group="oslo_messaging_rabbit")
    made.set_override("ssl_ca_file", authority, group="oslo_messaging_rabbit")
    found = doctor.services.unproven(made, "broker", "it answered")
    assert (found is not None) == warns
    assert not warns or (found.state == doctor.WARN and "ssl_ca_file" in found.cure)


def test_broker_when_nothing_listens_then_it_names_the_address_and_the_option():
    made = options()
    transport.open_transport(made)  # declares transport_url
    made.set_override("transport_url", "rabbit://u:secret@127.0.0.1:1/nova")
    finding = doctor.broker(made)
    assert finding.state == doctor.BAD and "127.0.0.1:1" in finding.what and "secret" not in finding.what
    assert "transport_url" in finding.cure


def configured(path, **values):
    """Options that were read from a file there."""
    path.mkdir(mode=0o755)
    file = path / "nova.conf"
    file.write_text("[DEFAULT]\n")
    file.chmod(0o640)
    made = options(**values)
    return file, types.SimpleNamespace(config_file=[str(file)], host="here", compute_driver=made.compute_driver,
                                       database=made.database)


@pytest.mark.parametrize(("what", "mode"), [("nova.conf", 0o660), ("nova.conf", 0o602), (".", 0o777), (".", 0o775)])
def test_config_when_others_can_write_it_or_its_folder_then_it_is_bad(tmp_path, what, mode):
    file, made = configured(tmp_path / "etc")
    assert doctor.config(made).state == doctor.OK
    (file.parent / what).chmod(mode)
    found = doctor.config(made)
    assert found.state == doctor.BAD and "can be written by others" in found.what and "chmod go-w" in found.cure


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files away")
@pytest.mark.parametrize(("driver", "state"), [("libvirt.LibvirtDriver", doctor.WARN), (None, doctor.OK)])
def test_config_when_it_is_a_users_then_where_daemons_are_root_it_is_said(tmp_path, driver, state):
    file, made = configured(tmp_path / "etc", compute_driver=driver)
    os.chown(file, 65534, -1)
    assert doctor.config(made).state == state


def test_is_host_when_a_conductor_shares_the_file_then_not():
    assert not doctor.finding.is_host(options(compute_driver="libvirt.LibvirtDriver",
                                                 database__connection="sqlite://"))


HOST = "[DEFAULT]\ncompute_driver = libvirt.LibvirtDriver\nhost = h1\n"
PASSWORDS = ("[keystone_authtoken]\nauth_type = password\npassword = secret1\n[service_user]\npassword = secret2\n"
             "[image_proxy]\nkey = secret3\n[vendordata_dynamic_auth]\npassword = fine\n")


def from_file(tmp_path, text):
    path = tmp_path / "nova.conf"
    path.write_text(text)
    made = conf.register(cfg.ConfigOpts())
    made(["--config-file", str(path)], project="nova")
    return made


def test_credentials_on_a_compute_host_then_each_is_named_by_section_and_none_is_shown(tmp_path):
    found = doctor.credentials(from_file(tmp_path, HOST + PASSWORDS))
    assert found.state == doctor.BAD
    for name in ("[keystone_authtoken]password", "[service_user]password", "[image_proxy]key"):
        assert name in found.what
    assert "vendordata" not in found.what and "secret" not in found.what + found.cure


def test_credentials_when_a_host_has_none_or_it_is_a_controller_then_all_is_well(tmp_path):
    assert doctor.credentials(from_file(tmp_path, HOST + "[glance]\nregion_name = one\n")).state == doctor.OK
    assert doctor.credentials(from_file(tmp_path, PASSWORDS)).state == doctor.OK
    assert doctor.credentials(options(compute_driver="libvirt.LibvirtDriver")).state == doctor.OK  # no file at all


def test_warning_at_a_hosts_start_then_it_is_one_sentence_that_names_the_section(tmp_path):
    said = host_credentials.warning(from_file(tmp_path, HOST + PASSWORDS))
    assert said.startswith("A compute host must not have [image_proxy]key: ") and "secret" not in said
    assert "\n" not in said and host_credentials.warning(from_file(tmp_path, HOST)) == ""


def test_notice_at_a_hosts_start_when_a_tool_wrote_passwords_of_services_then_it_is_no_warning(tmp_path):
    only = HOST + PASSWORDS.replace("[image_proxy]\nkey = secret3\n", "")
    said = host_credentials.notice(from_file(tmp_path, only))
    assert said.startswith("This host does not need [keystone_authtoken]password, [service_user]password: see")
    assert "\n" not in said and "secret" not in said and host_credentials.warning(from_file(tmp_path, only)) == ""
    assert host_credentials.notice(from_file(tmp_path, HOST)) == ""


@pytest.mark.parametrize("check", [doctor.keystone, doctor.glance, doctor.cinder, doctor.image_proxy])
def test_services_next_door_on_a_compute_host_then_nobody_is_asked(check):
    assert check(options(compute_driver="libvirt.LibvirtDriver")).state == doctor.OK


def test_cinder_when_it_is_there_is_none_or_does_not_answer_then_the_doctor_says_which():
    with FakeCinder() as service:
        there = doctor.cinder(options(cinder__endpoint_template=service.url))
    assert (there.state, there.what) == (doctor.OK, "Cinder answers")
    gone = doctor.cinder(options(cinder__endpoint_template="http://127.0.0.1:9/v3", cinder__http_retries=0))
    assert gone.state == doctor.BAD and "does not answer" in gone.what and gone.cure
    none = doctor.cinder(options())
    assert none.state == doctor.OK and "no Cinder" in none.what


def test_image_proxy_then_each_server_is_asked_and_the_key_is_looked_at():
    server = serving(b"OK")
    here, key = f"http://127.0.0.1:{server.server_port}", ["bm92YSdzIHRlc3RzIHNlYWwgdGlja2V0cyB3aXRoLi4="]
    assert doctor.image_proxy(options(image_proxy__key=key, image_proxy__servers=[here])).state == doctor.OK
    silent = doctor.image_proxy(options(image_proxy__key=key, image_proxy__servers=[here, "http://127.0.0.1:9"]))
    assert silent.state == doctor.BAD and "http://127.0.0.1:9:" in silent.what and here not in silent.what
    server.shutdown()
    server.server_close()
    without = doctor.image_proxy(options(image_proxy__servers=[here]))
    assert without.state == doctor.BAD and "[image_proxy]key is not set" in without.what


def test_run_when_a_check_has_an_accident_then_the_others_are_told_and_it_fails(monkeypatch):
    def broken(_options):
        raise KeyError("x")
    monkeypatch.setattr(doctor, "CHECKS", (("first", broken), ("second", lambda _: doctor.Finding(doctor.OK, "fine"))))
    said: list[str] = []
    assert doctor.run(options(), said.append) == 2
    assert said[0].startswith("first          FAILED   the check itself failed: KeyError")
    assert said[1] == "second         ok       fine"


def test_is_host_when_only_the_hosts_vhost_is_configured_then_a_network_host_is_one_too():
    assert doctor.finding.is_host(options(hosts_transport_url="rabbit://h1:x@b:5672/nova-hosts"))
    made = options(hosts_transport_url="rabbit://h1:x@b:5672/nova-hosts")
    transport.open_transport(made)  # declares transport_url
    made.set_override("transport_url", "rabbit://nova:x@b:5672/nova")
    assert not doctor.finding.is_host(made)  # a controller, whose metadata service is a host's daemon


@pytest.mark.parametrize(("state", "status"), [(doctor.OK, 0), (doctor.WARN, 1), (doctor.BAD, 2)])
def test_run_when_the_worst_is_told_then_the_exit_status_is_its_own(monkeypatch, state, status):
    monkeypatch.setattr(doctor, "CHECKS", (("first", lambda _: doctor.Finding(doctor.OK, "fine")),
                                           ("second", lambda _: doctor.Finding(state, "so"))))
    assert doctor.run(options(), lambda _line: None) == status
    assert doctor.run(options(), lambda _line: None, doctor.Manner(names=("first",))) == 0


def test_run_when_json_is_asked_for_then_it_is_one_object_with_stable_words(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "CHECKS", (("first", lambda _: doctor.Finding(doctor.BAD, "off", "put it on")),
                                           ("second", lambda _: doctor.Finding(doctor.OK, "fine"))))
    assert doctor.run(options(), lambda _line: pytest.fail("a line"), doctor.Manner(json=True)) == 2
    assert json.loads(capsys.readouterr().out) == {"state": "failed", "checks": [
        {"name": "first", "state": "failed", "what": "off", "cure": "put it on"},
        {"name": "second", "state": "ok", "what": "fine", "cure": ""}]}


@pytest.mark.parametrize(("driver", "said"), [("libvirt.LibvirtDriver", "guest disks"), (None, "services' state")])
def test_disk_when_it_is_full_then_what_fills_it_is_what_this_host_has(tmp_path, monkeypatch, driver, said):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: types.SimpleNamespace(free=2**30))
    found = doctor.disk(options(state_path=str(tmp_path), instances_path=str(tmp_path / "none"), compute_driver=driver))
    assert found.state == doctor.BAD and said in found.cure and "1 GiB" in found.what


def test_names_then_they_are_the_words_of_a_command_line_and_each_is_in_the_table_of_the_page():
    page = (Path(__file__).parents[3] / "doc" / "operating.rst").read_text()
    for name in doctor.NAMES:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name) and f"``{name}``" in page, name


@pytest.mark.parametrize("driver", [None, "libvirt.LibvirtDriver"])
def test_run_when_nothing_is_there_yet_then_no_check_writes_anything(tmp_path, driver):
    state = tmp_path / "state"
    state.mkdir()
    made = options(state_path=str(state), instances_path=str(state / "instances"), compute_driver=driver,
                   image_proxy__servers=["http://127.0.0.1:9"])
    transport.open_transport(made)
    made.set_override("hosts_transport_url", "rabbit://h:x@127.0.0.1:1/nova-hosts")
    assert doctor.run(made, lambda _line: None) == 2
    assert not list(state.iterdir())


def test_broker_on_a_host_without_a_secret_then_none_is_made(tmp_path):
    made = options(state_path=str(tmp_path), compute_driver="libvirt.LibvirtDriver",
                   hosts_transport_url="rabbit://h:x@127.0.0.1:1/nova-hosts")
    found = doctor.broker(made)
    assert found.state == doctor.BAD and "no secret yet" in found.what and "start nova-compute" in found.cure.lower()
    assert not list(tmp_path.iterdir())


def test_databases_on_a_compute_host_then_none_is_asked_for():
    assert doctor.databases(options(compute_driver="libvirt.LibvirtDriver")).state == doctor.OK


def serving(content: bytes, shown: Files | None = None) -> http.server.HTTPServer:
    """A server on a port of its own that answers everything so; ``shown``: by TLS, with this certificate."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass
    made = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    if shown:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*shown)
        made.socket = context.wrap_socket(made.socket, server_side=True)
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    return made


@pytest.mark.parametrize(("content", "state", "said"), [
    (b'{"versions": [{"id": "v1.0", "max_version": "1.39"}]}', doctor.OK, "1.39"),
    (b"<html>", doctor.BAD, "not a Placement API"), (b'{"versions": []}', doctor.BAD, "not a Placement API"),
    (b'[1]', doctor.BAD, "not a Placement API")])
def test_placement_when_something_listens_at_its_port_then_it_is_asked_what_it_is(content, state, said):
    server = serving(content)
    found = doctor.placement(options(placement_api__listen_port=server.server_port))
    server.shutdown()
    server.server_close()
    assert found.state == state and said in found.what


@pytest.mark.parametrize(("shown", "state", "said"), [
    ("ours", doctor.OK, "1.39"), ("theirs", doctor.BAD, "does not present the certificate")])
def test_placement_when_it_speaks_tls_then_it_must_show_its_own_certificate(tmp_path, shown, state, said):
    ours = Authority(tmp_path / "a").issue("ours", server=True)
    theirs = Authority(tmp_path / "b").issue("theirs", server=True)
    server = serving(b'{"versions": [{"id": "v1.0", "max_version": "1.39"}]}', ours if shown == "ours" else theirs)
    made = options(placement_api__listen_port=server.server_port, wsgi__ssl_cert_file=ours.cert)
    found = doctor.placement(made)
    server.shutdown()
    server.server_close()
    assert found.state == state and said in found.what


def test_placement_when_nothing_listens_then_that_is_no_fault():
    with socket.socket() as held:  # bound and not listening: nobody else gets the port
        held.bind(("127.0.0.1", 0))
        found = doctor.placement(options(placement_api__listen_port=held.getsockname()[1]))
    assert found.state == doctor.OK and "does not run here" in found.what
