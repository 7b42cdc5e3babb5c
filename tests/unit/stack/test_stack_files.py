"""What is written for each service, and what is read from the machine: pure functions."""

from __future__ import annotations

import base64
import configparser
import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from nova.rpc import control_rights, host_rights
from stacklib import (
    cgroups,
    credentials,
    databases,
    glance,
    keystone,
    memcached,
    nova,
    novaconf,
    plain,
    rabbitmq,
    sandbox,
    venvs,
)
from stacklib.control import Control
from stacklib.layout import PORTS, Choices, Layout
from stacklib.rooms import RoomPlan, mount_commands
from stacklib.rotation import rotate
from stacklib.secrets import Secrets
from stacklib.spec import Daemon, Probe, from_json
from stacklib.stack import Stack


def parsed(settings) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(novaconf.text(settings))
    return parser


def test_control_conf_then_no_database_url_and_fewer_than_fifteen_lines(make_layout, secrets):
    conf = parsed(novaconf.control(make_layout(sandbox=True, hosts=2), secrets))
    assert "connection" not in novaconf.text(novaconf.control(make_layout(sandbox=True), secrets))
    assert (
        sum(len(conf[section]) for section in conf.sections()) + len(conf["DEFAULT"]) * (1 - len(conf.sections())) < 15
    )
    assert conf["DEFAULT"]["my_ip"] == "10.200.0.1"


@pytest.mark.parametrize(("choices", "expected"), [
    ({}, True), ({"driver": "fake", "computes": 1}, True), ({"sandbox": True, "hosts": 1}, True),
    ({"driver": "fake", "computes": 3}, False), ({"sandbox": True, "hosts": 2}, False)])
def test_control_conf_when_the_cloud_has_one_host_then_a_resize_may_stay_there(make_layout, secrets, choices, expected):
    defaults = novaconf.control(make_layout(**choices), secrets)["DEFAULT"]
    assert ("allow_resize_to_same_host" in defaults) is expected


def test_control_conf_on_the_machine_then_nothing_listens_on_every_address(make_layout, secrets, monkeypatch):
    monkeypatch.setattr(plain, "outside", lambda: plain.Outside("ens3", "192.0.2.7"))
    whole = parsed(novaconf.control(make_layout(driver="fake"), secrets))
    conf = whole["DEFAULT"]
    assert whole["placement_api"]["listen"] == "127.0.0.1"
    assert conf["osapi_compute_listen"] == "127.0.0.1" and conf["metadata_listen"] == "10.11.12.1"
    assert (conf["public_interface"], conf["routing_source_ip"]) == ("ens3", "192.0.2.7")
    assert "flat_interface" not in conf and conf["fake_network"] == "true"


def test_compute_confs_then_each_host_has_a_broker_user_and_a_password_of_its_own(make_layout, secrets):
    layout = make_layout(sandbox=True, driver="fake", computes=3)
    confs = [parsed(novaconf.compute(layout, secrets, host))["DEFAULT"] for host in layout.computes]
    urls = {conf["hosts_transport_url"] for conf in confs}
    control, conductor = novaconf.control(layout, secrets)["DEFAULT"], novaconf.conductor(layout, secrets)["DEFAULT"]
    others = {control["transport_url"], control["hosts_transport_url"], conductor["hosts_transport_url"]}
    assert len(urls | others) == 6 and all("transport_url" not in conf for conf in confs)
    assert [conf["host"] for conf in confs] == ["fake1", "fake2", "fake3"]
    assert len({conf["state_path"] for conf in confs}) == 3


@pytest.mark.parametrize("auth", ["keystone", "noauth2"])
def test_compute_confs_then_they_have_no_password_but_the_brokers(make_layout, secrets, auth):
    layout = make_layout(sandbox=True, hosts=2, auth=auth)
    key = novaconf.conductor(layout, secrets)["image_proxy"]["key"]
    wrap_key = novaconf.conductor(layout, secrets)["conductor"]["host_secret_key"]
    assert len(base64.urlsafe_b64decode(key)) == len(base64.urlsafe_b64decode(wrap_key)) == 32 and wrap_key != key
    for others in (novaconf.control(layout, secrets), novaconf.image_proxy(layout, secrets)):
        assert wrap_key not in novaconf.text(others)
    assert novaconf.image_proxy(layout, secrets)["image_proxy"] == {"key": key, "listen": layout.address}
    assert key not in novaconf.text(novaconf.control(layout, secrets))
    for host in layout.computes:
        conf = novaconf.compute(layout, secrets, host)
        assert not {"keystone_authtoken", "glance", "image_proxy", "service_user"} & set(conf)
        text = novaconf.text(conf)
        assert key not in text and wrap_key not in text and secrets.password("nova") not in text
        assert "memcached" not in text


def test_image_proxy_then_it_runs_as_its_own_user_with_no_database(make_layout, secrets):
    stack = Stack(make_layout(sandbox=True), secrets, control=None)
    proxy = {daemon.name: daemon for daemon in nova.control_daemons(stack)}["nova-imageproxy"]
    assert proxy.user == "nova-imageproxy" and str(novaconf.conductor_file(stack.layout)) not in proxy.argv
    assert str(novaconf.own_file(stack.layout, "nova-imageproxy")) in proxy.argv
    assert PORTS["imageproxy"] == 9293  # by default: nobody is told


@pytest.mark.parametrize(("choices", "sections"), [
    ({"sandbox": True, "hosts": 2}, {"vnc", "spice", "serial_console"}), ({}, {"vnc"})])  # fmt: skip
def test_compute_conf_then_consoles_are_on_the_hosts_address_alone_and_proxies_where_browsers_find_them(
    make_layout, secrets, choices, sections
):
    layout = make_layout(**choices)
    host = layout.computes[-1]
    conf = parsed(novaconf.compute(layout, secrets, host))
    assert {name for name in ("vnc", "spice", "serial_console") if name in conf} == sections
    assert conf["vnc"]["server_listen"] == conf["vnc"]["server_proxyclient_address"] == host.address
    assert not any("base_url" in name for section in conf.values() for name in section)
    found = parsed(novaconf.console_proxies(layout))
    assert found["vnc"]["novncproxy_base_url"] == f"http://{layout.address}:6080/vnc_auto.html"
    assert ("xvpvncproxy_base_url" in found["vnc"]) is layout.sandbox
    if layout.sandbox:
        assert found["spice"]["html5proxy_base_url"] == "http://10.200.0.1:6082/spice_auto.html"
        assert found["serial_console"]["base_url"] == "ws://10.200.0.1:6083/"
        assert conf["spice"]["server_listen"] == conf["serial_console"]["proxyclient_address"] == "10.200.0.12"


def test_proxies_conf_then_they_listen_on_the_controllers_address_and_reach_the_hosts_alone(make_layout):
    sandbox = parsed(novaconf.console_proxies(make_layout(sandbox=True)))
    assert sandbox["console"]["reachable_networks"] == "10.200.0.0/24"
    assert sandbox["spice"]["html5proxy_host"] == sandbox["vnc"]["xvpvncproxy_host"] == "10.200.0.1"
    plainly = parsed(novaconf.console_proxies(make_layout()))
    assert plainly["console"]["reachable_networks"] == "127.0.0.1/32"
    fakes = make_layout(driver="fake", computes=2)
    assert parsed(novaconf.console_proxies(fakes))["console"]["local_hosts"] == "fake1,fake2"
    assert "local_hosts" not in sandbox["console"]
    assert plainly["vnc"]["novncproxy_host"] == "127.0.0.1" and "xvpvncproxy_host" not in plainly["vnc"]
    assert "spice" not in plainly and "serial_console" not in plainly


def test_proxies_then_each_runs_as_its_own_user_with_the_proxies_file(make_layout, secrets):
    stack = Stack(make_layout(sandbox=True), secrets, control=None)
    daemons = {daemon.name: daemon for daemon in nova.control_daemons(stack)}
    for name in ("nova-novncproxy", "nova-xvpvncproxy", "nova-spicehtml5proxy", "nova-serialproxy"):
        assert daemons[name].user == name and str(novaconf.proxies_file(stack.layout)) in daemons[name].argv
    assert daemons["nova-consoleauth"].user == "nova-consoleauth"
    there = {daemon.name for daemon in nova.control_daemons(Stack(make_layout(), secrets, control=None))}
    assert {"nova-novncproxy", "nova-consoleauth"} <= there and "nova-serialproxy" not in there


def test_conductor_conf_then_both_databases(make_layout, secrets):
    conf = parsed(novaconf.conductor(make_layout(database="postgresql"), secrets))
    assert re.fullmatch(r"postgresql\+psycopg://nova:\w+@127.0.0.1:5433/nova_api", conf["api_database"]["connection"])
    assert conf["database"]["connection"].endswith("/nova")


def test_text_when_a_value_has_a_dollar_then_it_is_no_reference():
    assert "a = x$$y" in novaconf.text({"s": {"a": "x$y"}})


@pytest.mark.parametrize("database", ["mariadb", "postgresql"])
def test_neighbours_confs_then_they_parse_and_know_only_their_own_database(make_layout, secrets, database):
    layout = make_layout(sandbox=True, database=database)
    for service in (keystone, glance):
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string(service.settings(layout, secrets))
        assert service.__name__.rpartition(".")[2] in parser["database"]["connection"]
        assert secrets.password("db-nova") not in service.settings(layout, secrets)


def test_mariadb_setup_then_each_user_has_its_own_databases_alone(make_layout, secrets):
    sql = databases.mariadb_setup(make_layout(), secrets)
    assert "GRANT ALL PRIVILEGES ON `nova_api`.* TO 'nova'@'%'" in sql
    assert "`nova`.* TO 'glance'" not in sql and "*.*" not in sql


def test_broker_password_hash_then_salt_and_sha256_as_rabbitmq_reads_it():
    decoded = base64.b64decode(rabbitmq.password_hash("test12", b"\x90\x8d\xc6\x0a"))
    assert decoded[:4] == b"\x90\x8d\xc6\x0a"
    assert decoded[4:] == hashlib.sha256(b"\x90\x8d\xc6\x0atest12").digest()


def test_broker_definitions_then_each_host_has_a_user_in_the_hosts_vhost_alone(make_layout, secrets):
    layout = make_layout(sandbox=True, hosts=2)
    made = rabbitmq.definitions(layout, secrets)
    hosts = ["host-controller", "host-host1", "host-host2"]
    assert [user["name"] for user in made["users"]] == ["nova", *control_rights.USERS, *hosts]
    assert [(row["user"], row["vhost"]) for row in made["permissions"]] == [
        ("nova", "nova"), ("nova", "nova-hosts"), *((user, "nova") for user in control_rights.USERS),
        ("nova-conductor", "nova-hosts"), *((host, "nova-hosts") for host in hosts)]  # fmt: skip
    assert [row["read"] for row in made["permissions"] if row["user"] in hosts] == [
        host_rights.permissions(host.removeprefix("host-"))["read"] for host in hosts]  # fmt: skip
    assert made == rabbitmq.definitions(layout, secrets)
    assert secrets.password("rabbit-nova") not in json.dumps(made)


def test_broker_definitions_then_each_daemon_has_a_user_with_its_rights_and_bounds(make_layout, secrets):
    made = rabbitmq.definitions(make_layout(sandbox=True), secrets)
    given = {row["user"]: {verb: row[verb] for verb in ("configure", "write", "read")}
             for row in made["permissions"] if row["vhost"] == "nova"}  # fmt: skip
    assert {user: given[user] for user in control_rights.USERS} == {
        user: control_rights.permissions(user) for user in control_rights.USERS}  # fmt: skip
    bounded = {user["name"] for user in made["users"] if user.get("limits") == control_rights.LIMITS}
    assert bounded == set(control_rights.LIMITED)
    [topics] = [row for row in made["topic_permissions"] if row["vhost"] == "nova"]
    assert topics["user"] == "nova-scheduler" and topics["read"] == "^reply_nova-scheduler_[0-9a-f]+$"


@pytest.mark.parametrize("own_user", [True, False])
def test_files_of_daemons_then_each_has_its_secrets_and_nova_conf_has_none(make_layout, secrets, own_user):
    layout = make_layout(sandbox=True, neutron=True, volumes=True, ec2=True)
    names = [one.name for one in nova.programs(layout)]
    texts = {name: novaconf.text(novaconf.own(layout, secrets, name, own_user)) for name in names}
    everybody = novaconf.text(novaconf.shared(layout, secrets))
    hidden = [secrets.password(name) for name in ("nova", "rabbit-nova", "rabbit-host-controller", "db-nova")]
    assert not [word for word in hidden if word in everybody] and "password =" not in everybody
    for daemon in (*control_rights.LIMITED, "nova-consoleauth", "nova-cert"):
        user = daemon if own_user else "nova"
        assert parsed_text(texts[daemon]) == {"DEFAULT": {
            "transport_url": rabbitmq.transport_url(layout, secrets, user)}}  # fmt: skip
    assert secrets.password("db-nova") in texts["nova-conductor"]
    assert not [name for name, text in texts.items() if "connection" in text and name != "nova-conductor"]


def parsed_text(text):
    read = configparser.ConfigParser(interpolation=None, default_section="none")
    read.optionxform = str
    read.read_string(text)
    return {section: dict(read[section]) for section in read.sections()}


def test_clouds_yaml_and_variables_then_both_users_and_no_leftovers_of_the_callers(make_layout, secrets, monkeypatch):
    layout = make_layout(sandbox=True)
    clouds = json.loads(credentials.clouds_yaml(layout, secrets))["clouds"]
    assert clouds["demo"]["auth"]["project_name"] == "demo"
    monkeypatch.setenv("OS_CLOUD", "elsewhere")
    env = credentials.environment(layout, secrets, "demo")
    assert "OS_CLOUD" not in env and env["OS_USERNAME"] == "demo" and env["PATH"].startswith("/opt/venvs/clients/bin:")


def test_credentials_without_keystone_then_a_fixed_token(make_layout, secrets):
    values = credentials.variables(make_layout(auth="noauth2"), secrets, "demo")
    assert (values["OS_AUTH_TYPE"], values["OS_TOKEN"]) == ("admin_token", "demo:demo")


MOUNTINFO = """\
24 1 254:0 / / rw - ext4 /dev/vda rw
30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
32 30 0:28 /outer /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
"""
OWN = "9:name=systemd:/\n4:memory:/outer/me\n1:cpu:/here\n0::/user.slice\n"


def test_cgroups_when_v1_and_v2_are_mounted_then_each_with_the_group_we_are_in():
    found = {h.mountpoint.rpartition("/")[2]: h for h in cgroups.hierarchies(MOUNTINFO, OWN)}
    assert str(found["cpu"].directory) == "/sys/fs/cgroup/cpu/here"
    assert str(found["memory"].directory) == "/sys/fs/cgroup/memory/me"
    assert str(found["unified"].directory) == "/sys/fs/cgroup/unified"
    assert str(cgroups.hierarchies(MOUNTINFO, OWN, v2_too=True)[-1].directory) == "/sys/fs/cgroup/unified/user.slice"


def test_cgroup_mounts_when_v2_alone_then_over_sys_itself():
    mountinfo = "31 30 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    assert cgroups.mount_commands(cgroups.hierarchies(mountinfo, "0::/\n")) == [
        ["mount", "-t", "cgroup2", "cgroup", "/sys/fs/cgroup"]
    ]
    named = [c for c in cgroups.mount_commands(cgroups.hierarchies(MOUNTINFO, OWN)) if "none,name=systemd" in c]
    assert len(named) == 1


def test_room_mounts_then_sys_is_replaced_before_cgroups_and_kvm_masked_only_when_asked():
    plan = RoomPlan(
        name="host1", group="g/host1", hosts_file="/s/hosts", binds=(("/s/etc", "/etc/libvirt"),), mask_kvm=True
    )
    commands = [" ".join(c) for c in mount_commands(plan, cgroups.hierarchies(MOUNTINFO, OWN))]
    order = [
        next(i for i, c in enumerate(commands) if c.startswith(start))
        for start in (
            "mount --make-rprivate /",
            "umount -R -l /sys",
            "mount -t sysfs",
            "mount -t cgroup",
            "mount --bind /s/etc",
        )
    ]
    assert order == sorted(order)
    assert commands[-1] == "mount -o remount,bind,ro /dev/kvm"
    bare = RoomPlan(name="host1", group="g/host1", hosts_file="/s/hosts")
    assert not any("kvm" in word for c in mount_commands(bare, []) for word in c)


def test_hosts_text_then_every_room_resolves(make_layout):
    text = sandbox.hosts_text(make_layout(sandbox=True, hosts=2))
    assert text.endswith("10.200.0.1 controller\n10.200.0.11 host1\n10.200.0.12 host2\n")


def test_wires_then_names_fit_the_kernels_fifteen_characters(make_layout):
    for room in make_layout(sandbox=True, hosts=99).addresses:
        names = re.findall(r"(?:name|master) (\S+)", "\n".join(sandbox.wire_script(room, 4711)))
        assert names and max(map(len, names)) <= 15


def test_iptables_rules_when_cleaned_then_novas_are_gone_and_others_stay():
    rules = """\
*nat
:POSTROUTING ACCEPT [0:0]
:nova-network-snat - [0:0]
:nova-postrouting-bottom - [0:0]
:supernova-x - [0:0]
-A POSTROUTING -j nova-network-POSTROUTING
-A POSTROUTING -s 10.0.0.0/8 -j MASQUERADE
-A nova-network-snat -j nova-network-float-snat
COMMIT
"""
    kept = plain.without_chains(rules).splitlines()
    assert kept == [
        "*nat",
        ":POSTROUTING ACCEPT [0:0]",
        ":supernova-x - [0:0]",
        "-A POSTROUTING -s 10.0.0.0/8 -j MASQUERADE",
        "COMMIT",
    ]


def test_daemon_when_sent_as_json_then_the_same_and_its_fingerprint_follows_its_files(tmp_path):
    file = tmp_path / "conf"
    file.write_text("1")
    first = Daemon(name="a", argv=("x", "y"), probe=Probe("tcp", "h:1"), env={"A": "b"}).stamped(file)
    assert from_json(json.loads(json.dumps(first.to_json()))) == first
    assert first.stamped(file) == first
    file.write_text("2")
    assert first.stamped(file).fingerprint != first.fingerprint


def test_digest_when_a_cache_is_written_then_the_same_and_when_a_file_moves_then_another(tmp_path):
    (tmp_path / "nova").mkdir()
    (tmp_path / "nova" / "a.py").write_text("x = 1")
    before = venvs.digest(tmp_path, ("nova", "setup.cfg"))
    (tmp_path / "nova" / "__pycache__").mkdir()
    (tmp_path / "nova" / "__pycache__" / "a.pyc").write_text("")
    assert venvs.digest(tmp_path, ("nova", "setup.cfg")) == before
    (tmp_path / "nova" / "a.py").rename(tmp_path / "nova" / "b.py")
    assert venvs.digest(tmp_path, ("nova", "setup.cfg")) != before


def test_rotation_when_a_log_is_large_then_its_text_moves_and_the_writer_goes_on(tmp_path):
    log, small = tmp_path / "a.log", tmp_path / "b.log"
    small.write_text("small")
    with log.open("ab", buffering=0) as writer:
        for text in (b"first" * 100, b"second" * 100):
            writer.write(text)
            rotate(tmp_path, limit=100)
        writer.write(b"third")
    assert log.read_bytes() == b"third"
    assert (tmp_path / "a.log.1").read_bytes().startswith(b"second")
    assert (tmp_path / "a.log.2").read_bytes().startswith(b"first")
    assert small.read_text() == "small" and not (tmp_path / "b.log.1").exists()


def test_broker_settings_then_the_node_has_a_name_and_need_not_ask_dns_for_one_at_each_connection(make_layout):
    assert "cluster_name = nova\n" in rabbitmq.settings(make_layout())


def test_memcached_then_it_has_a_socket_of_the_services_user_alone_and_hosts_know_nothing_of_it(
        make_layout, secrets, monkeypatch, tmp_path):
    layout = make_layout(sandbox=True, hosts=2)
    made = {}
    monkeypatch.setattr(Stack, "directory", lambda self, *parts, **how: made.update({parts: how}))  # needs root
    daemon = memcached.daemon(Stack(layout, secrets, None))
    socket_file = str(layout.path("run", "memcached", "memcached.sock"))
    assert daemon.user == "nova" and daemon.probe == Probe("unix", socket_file)
    assert made == {("run", "memcached"): {"owner": "nova", "mode": 0o700}}
    assert daemon.argv[1:5] == ("-s", socket_file, "-a", "0700") and "-l" not in daemon.argv
    control = parsed(novaconf.control(layout, secrets))["keystone_authtoken"]["memcached_servers"]
    assert control == memcached.address(layout) == f"unix:{socket_file}"
    for text in (keystone.settings(layout, secrets), glance.settings(layout, secrets)):
        assert control in text
    for host in layout.computes:
        assert "memcache" not in novaconf.text(novaconf.compute(layout, secrets, host))


def test_files_of_nova_then_the_databases_urls_are_the_conductors_alone(short_path, monkeypatch):
    """Who owns what: chown itself needs root."""
    owners: dict[str, tuple[str, str]] = {}
    monkeypatch.setattr(shutil, "chown", lambda path, user, group: owners.update({Path(path).name: (user, group)}))
    layout = Layout(short_path, Choices(sandbox=True, hosts=1))
    stack = Stack(layout, Secrets(short_path / "secrets.json"), Control(layout))
    nova.write_files(stack)
    assert owners[".nova-conductor.conf.new"] == ("nova-conductor", "nova-conductor")
    assert owners[".nova.conf.new"] == owners["nova"] == ("root", "nova")  # nova's daemons read, and change nothing
    modes = {path.name: path.stat().st_mode & 0o777 for path in (layout.etc / "nova").iterdir()}
    assert modes.pop("nova.conf") == modes.pop("console-proxies.conf") == 0o640 and set(modes.values()) == {0o600}
    users = {daemon.name: daemon.user for daemon in (*nova.conductors(stack), *nova.control_daemons(stack))}
    assert users.pop("nova-api") == "nova" and users.pop("nova-network") is None
    assert users == {name: name for name in users}
    assert {name: owners[f".{name}.conf.new"][0] for name in users} == users


def test_compute_conf_when_hosts_are_pretended_then_each_shows_its_health_at_a_port_of_its_own(make_layout, secrets):
    layout = make_layout(driver="fake", computes=3)
    ports = [parsed(novaconf.compute(layout, secrets, host))["monitoring"]["port"] for host in layout.computes]
    assert ports == ["9900", "9901", "9902"]
