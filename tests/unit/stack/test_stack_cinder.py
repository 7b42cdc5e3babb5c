"""A stack with Cinder: what is asked for, what its daemons read, who may do what, where hosts see the volumes."""

from __future__ import annotations

import configparser
import subprocess
from pathlib import Path

import pytest

from stacklib import cinder, cli, databases, identity, novaconf, rabbitmq, sandbox, summary, up
from stacklib.errors import StackError
from stacklib.layout import Choices, Layout
from stacklib.stack import Stack


def parse(*words: str):
    return cli.parser().parse_args(list(words))


@pytest.fixture
def layout(make_layout):
    return make_layout(sandbox=True, hosts=2, volumes="nfs")


@pytest.fixture
def plain(make_layout):
    return make_layout(sandbox=True)


def test_up_when_volumes_are_said_then_their_back_end_and_without_it_none():
    assert cli.choices(parse("up", "--sandbox", "--volumes", "nfs")).volumes == "nfs"
    assert cli.choices(parse("up", "--volumes", "nfs")).volumes == "nfs"
    assert cli.choices(parse("up")).volumes == "" and Choices().volumes == ""
    assert Choices(volumes="nfs").differences(Choices()) == ["volumes"]


@pytest.mark.parametrize("words", [("--auth", "noauth2"), ("--sandbox", "--auth", "noauth2"),
                                   ("--sandbox", "--database", "postgresql")])
def test_up_when_volumes_are_said_beside_what_they_were_not_tried_with_then_refused(words):
    with pytest.raises(StackError, match="tested only with Keystone and MariaDB"):
        cli.choices(parse("up", "--volumes", "nfs", *words))


def test_parts_when_there_are_no_volumes_then_cinder_is_not_installed(layout, plain):
    assert "cinder" in up.parts_of(layout) and "cinder" not in up.parts_of(plain)
    assert "cinder (nfs)" in up.describe(layout.choices, layout.state)


def test_cinder_conf_then_it_knows_its_own_database_user_and_broker_alone(layout, secrets):
    text = cinder.settings(layout, secrets)
    conf = configparser.ConfigParser(interpolation=None)
    conf.read_string(text)
    assert conf["database"]["connection"] == databases.url(layout, secrets, "cinder")
    assert conf["DEFAULT"]["transport_url"].endswith("/cinder")
    assert conf["keystone_authtoken"]["service_token_roles"] == "service"
    assert conf["DEFAULT"]["quota_volumes"] == "-1" and conf["nova"]["username"] == "cinder"
    assert {conf[name]["helper_command"].split()[-1] for name in cinder.PRIVILEGED} == {
        f"{layout.etc}/cinder/cinder.conf"}
    assert not [name for name in ("nova", "db-nova", "rabbit-nova") if secrets.password(name) in text]


def test_nova_confs_when_there_are_volumes_then_the_control_daemons_have_credentials_and_hosts_none(layout, secrets):
    control = novaconf.control(layout, secrets)
    assert control["cinder"]["username"] == "nova" and control["cinder"]["os_region_name"]
    assert control["service_user"]["send_service_user_token"] == "true"
    for host in layout.computes:
        assert not {"cinder", "service_user"} & novaconf.compute(layout, secrets, host).keys()


def test_stack_when_there_are_no_volumes_then_no_word_of_cinder(plain, secrets):
    assert not {"cinder", "service_user"} & novaconf.control(plain, secrets).keys()
    assert "cinder" not in identity.users(plain) and "volumev3" not in summary.endpoints(plain)
    assert "cinder" not in [one["name"] for one in rabbitmq.definitions(plain, secrets)["vhosts"]]
    assert cinder.binds(Stack(plain, secrets, None), "controller") == ()


def test_identity_and_broker_when_there_are_volumes_then_cinder_has_a_user_and_an_endpoint(layout, plain, secrets):
    assert ("service", "service") in identity.users(layout)["cinder"]
    assert summary.endpoints(layout)["volumev3"] == "http://10.200.0.1:8776/v3/$(project_id)s"
    assert identity.fingerprint(layout) != identity.fingerprint(plain)
    made = rabbitmq.definitions(layout, secrets)
    assert {one["user"]: one["vhost"] for one in made["permissions"]}["cinder"] == "cinder"


def test_binds_when_a_room_is_made_then_the_volumes_lie_where_it_would_mount_the_share(short_path, secrets):
    layout = Layout(short_path, Choices(sandbox=True, hosts=2, volumes="nfs"))
    stack = Stack(layout, secrets, None)
    source, target = cinder.binds(stack, "controller")[0]
    assert source == str(layout.data / "cinder" / "volumes")
    assert target == f"{layout.data}/cinder/mnt/{cinder.share_directory()}"
    assert cinder.binds(stack, "host2") == ((source, f"{layout.nova_state('host2')}/mnt/{cinder.share_directory()}"),)
    assert cinder.binds(stack, "switch") == ()
    assert (source, target) in sandbox._plan(stack, "controller").binds


def test_daemons_then_three_of_one_user_who_share_locks(layout, secrets):
    made = {one.name: one for one in cinder.daemons(Stack(layout, secrets, None))}
    assert {name: one.user for name, one in made.items()} == dict.fromkeys(cinder.PROGRAMS)
    assert made["cinder-api"].probe.target == "http://10.200.0.1:8776/"
    assert made["cinder-volume"].env["PATH"].startswith(f"{layout.etc}/cinder/bin:")


def test_sudo_when_cinder_calls_it_then_the_program_runs_without_its_options(tmp_path):
    path = tmp_path / "sudo"
    path.write_text(cinder.SUDO)
    path.chmod(0o755)
    assert subprocess.run([path, "-n", "-E", "echo", "-n", "done"], capture_output=True, text=True,
                          check=True).stdout == "done"


class Alone:
    """On the machine itself. ``mounts``: what is mounted, by commands that only say so."""

    def __init__(self, path, secrets):
        self.stack = Stack(Layout(path, Choices(volumes="nfs")), secrets, None)
        self.table, self.mounts, self.ran = path / "mountinfo", [str(path.parent / "another")], []
        self.write()

    def write(self):
        self.table.write_text("".join(f"36 35 98:0 / {one} rw - ext4 /dev/x rw\n" for one in self.mounts))

    def mount(self, _stack, _name, argv, **_):
        self.ran.append(argv)
        self.mounts.append(argv[-1])
        self.write()

    def unmount(self, argv, **_):
        self.mounts.remove(argv[-1])
        self.write()
        return subprocess.CompletedProcess(argv, 0)


@pytest.fixture
def alone(short_path, secrets, monkeypatch):
    made = Alone(short_path, secrets)
    monkeypatch.setattr(cinder, "MOUNTS", made.table)
    monkeypatch.setattr(Stack, "command", lambda *words, **options: made.mount(*words, **options))
    monkeypatch.setattr(cinder.subprocess, "run", made.unmount)
    return made


def test_share_on_the_machine_itself_when_up_runs_twice_then_it_is_mounted_once_for_cinder_and_once_for_the_host(alone):
    for _ in range(2):
        cinder.mount(alone.stack)
    layout, name = alone.stack.layout, cinder.share_directory()
    source = str(layout.data / "cinder" / "volumes")
    assert [argv[:3] for argv in alone.ran] == [["mount", "--bind", source]] * 2
    state = layout.nova_state(layout.computes[0].name)
    assert [argv[3] for argv in alone.ran] == [f"{layout.data}/cinder/mnt/{name}", f"{state}/mnt/{name}"]


def test_clean_when_the_share_is_mounted_then_it_is_unmounted_and_nothing_else_is(alone):
    before = list(alone.mounts)
    cinder.mount(alone.stack)
    for _ in range(2):
        cinder.unmount(alone.stack.layout)
    assert alone.mounts == before


def test_clean_when_the_share_is_in_use_then_it_is_said_and_no_volume_is_removed(alone, monkeypatch):
    cinder.mount(alone.stack)
    monkeypatch.setattr(cinder.subprocess, "run", lambda argv, **_: subprocess.CompletedProcess(
        argv, 32, "", "target is busy"))
    with pytest.raises(StackError, match="target is busy"):
        cinder.unmount(alone.stack.layout)


def test_mounts_when_a_path_has_a_space_then_it_is_found(monkeypatch, tmp_path):
    (tmp_path / "table").write_text("36 35 98:0 / /s\\040t/a rw - x y rw\n36 35 98:0 / /s\\040t/a/b rw - x y rw\n")
    monkeypatch.setattr(cinder, "MOUNTS", tmp_path / "table")
    assert cinder.mounted_below(Path("/s t")) == ["/s t/a/b", "/s t/a"]


def test_stages_when_the_share_is_on_the_machine_itself_then_libvirtd_and_cinder_wait_for_it(alone, make_layout):
    stages = {stage.name: stage for stage in up._stages(alone.stack, neighbours_only=False)}
    assert "share" in stages["hypervisors"].after and "share" in stages["cinder"].after
    sandbox = Stack(make_layout(sandbox=True, volumes="nfs"), alone.stack.secrets, None)
    assert "share" not in {stage.name for stage in up._stages(sandbox, neighbours_only=True)}
