"""What dnsmasq is started with and reads, and when it is told to read again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from nova import errors
from nova.network import dnsmasq
from nova.network.dnsmasq import Dnsmasq, Lease
from nova.privileged import processes
from tests.fakes.host_machinery import FakeRunner
from tests.fakes.network import guest, network, options


def test_hosts_file_has_a_line_a_mac_in_the_order_of_addresses():
    hosts = [guest(20), guest(3), guest(4, mac="FA:16:3E:00:01:03")]
    assert dnsmasq.hosts_file(hosts, "novalocal") == ("fa:16:3e:00:01:03,vm3.novalocal,10.0.1.3\n"
                                                      "fa:16:3e:00:01:14,vm20.novalocal,10.0.1.20\n")


@pytest.mark.parametrize(("name", "label"), [
    ("web-1", "web-1"),
    ("Web 1!", "web-1"),
    ("a,10.0.0.9\nfa:16:3e:00:00:00", "a-10"),
    ("evil,net", "evil-net"),
    ("--", "host-10-0-1-3"),
    ("", "host-10-0-1-3"),
    ("x" * 80, "x" * 63),
    ("vm.example.org", "vm"),
])
def test_host_name_is_one_dns_label_whatever_the_server_is_called(name, label):
    assert dnsmasq.host_name(guest(3, hostname=name)) == label


def test_hosts_file_with_tags_names_each_interface_for_the_options_file():
    hosts = [guest(3, vif_id="7c8c"), guest(4, default_route=False)]
    assert dnsmasq.hosts_file(hosts, "", tagged=True) == ("fa:16:3e:00:01:03,vm3,10.0.1.3,net:NW-7c8c\n"
                                                          "fa:16:3e:00:01:04,vm4,10.0.1.4,net:NW-fa163e000104\n")
    assert dnsmasq.opts_file(network(mtu=1400), hosts) == ("NW-7c8c,3,10.0.1.1\nNW-fa163e000104,3\n26,1400\n")


def test_serve_of_a_multi_host_network_hands_out_its_own_guests_and_knows_the_others_names(tmp_path):
    runner = FakeRunner()
    Dnsmasq(options(tmp_path), runner).serve(network(multi_host=True), [guest(3), guest(4, elsewhere=True)])
    assert (tmp_path / "networks/nova-br1.conf").read_text() == "fa:16:3e:00:01:03,vm3.novalocal,10.0.1.3\n"
    assert (tmp_path / "networks/nova-br1.hosts").read_text() == ("10.0.1.3\tvm3.novalocal\n"
                                                                  "10.0.1.4\tvm4.novalocal\n")


def test_serve_passes_over_addresses_of_ipv6(tmp_path):
    Dnsmasq(options(tmp_path), FakeRunner()).serve(network(), [guest(3), guest(3, address="fd00::3")])
    assert (tmp_path / "networks/nova-br1.conf").read_text() == "fa:16:3e:00:01:03,vm3.novalocal,10.0.1.3\n"


def test_read_hosts_file_gives_back_what_hosts_file_wrote():
    text = dnsmasq.hosts_file([guest(3), guest(4)], "")
    assert dnsmasq.read_hosts_file(text + "rubbish\n") == {Lease("fa:16:3e:00:01:03", "10.0.1.3"),
                                                           Lease("fa:16:3e:00:01:04", "10.0.1.4")}


@pytest.mark.parametrize(("fields", "text"), [
    ({}, "3,10.0.1.1\n"),
    ({"gateway": None}, "3\n"),
    ({"mtu": 1400}, "3,10.0.1.1\n26,1400\n"),
    ({"multi_host": True, "dhcp_server": "10.0.1.7"}, "3,10.0.1.7\n"),
    ({"multi_host": True, "share_address": True, "dhcp_server": "10.0.1.7"}, "3,10.0.1.1\n"),
])
def test_opts_file_names_the_router(fields, text):
    assert dnsmasq.opts_file(network(**fields)) == text


def test_arguments_are_the_ones_operators_know(tmp_path):
    given = options(tmp_path, dhcp_lease_time=600)
    path = given.networks_path
    argv = dnsmasq.arguments(network(), given, "/usr/bin/nova-dhcpbridge")
    assert set(argv[1:]) - {"--user=root"} == {
        "--strict-order", "--bind-interfaces", "--no-hosts", "--leasefile-ro", "--conf-file=",
        f"--pid-file={path}/nova-br1.pid", f"--dhcp-optsfile={path}/nova-br1.opts",
        f"--dhcp-hostsfile={path}/nova-br1.conf", "--listen-address=10.0.1.1", "--except-interface=lo",
        "--dhcp-range=set:net1,10.0.1.2,static,255.255.255.0,600s", "--dhcp-lease-max=256",
        "--dhcp-script=/usr/bin/nova-dhcpbridge", "--domain=novalocal"}


def test_arguments_with_name_servers_ask_only_them(tmp_path):
    argv = dnsmasq.arguments(network(dns2="9.9.9.9", multi_host=True), options(
        tmp_path, dns_server=("1.1.1.1",), use_network_dns_servers=True, dhcp_domain=""), "/s")
    assert argv[-5 if argv[-1] == "--user=root" else -4:][:4] == [
        "--no-resolv", "--server=1.1.1.1", "--server=8.8.4.4", "--server=9.9.9.9"]
    assert f"--addn-hosts={tmp_path}/networks/nova-br1.hosts" in argv
    assert not any(word.startswith("--domain") for word in argv)


def test_arguments_when_other_users_cannot_read_our_files_keep_root(tmp_path):
    given = options(tmp_path)
    given.networks_path.mkdir(mode=0o700)
    assert "--user=root" in dnsmasq.arguments(network(), given, "/usr/bin/nova-dhcpbridge")


def test_environment_tells_the_script_where_and_for_whom(tmp_path):
    environment = dnsmasq.environment(network(), options(tmp_path, dhcpbridge_flagfile=("/etc/a", "/etc/b")))
    assert environment["NETWORK_ID"] == "net-1"
    assert json.loads(environment["CONFIG_FILE"]) == ["/etc/a", "/etc/b"]


@pytest.mark.parametrize("words", [["old", "mac", "ip"], ["add", "mac", "ip", "a b"]])
def test_ensure_script_passes_on_what_is_new(tmp_path, words):
    program = tmp_path / "with blank" / "nova-dhcpbridge"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$#:$*"\n')
    program.chmod(0o755)
    script = dnsmasq.ensure_script(options(tmp_path, dhcpbridge=str(program)))
    assert script == str(tmp_path / "networks" / "nova-dhcpbridge")
    said = subprocess.run([script, *words], capture_output=True, text=True, check=True).stdout
    assert said == ("" if words[0] == "old" else "4:add mac ip a b\n")


def test_ensure_script_leaves_an_operators_own_program_alone(tmp_path):
    assert dnsmasq.ensure_script(options(tmp_path, dhcpbridge="/opt/mine")) == "/opt/mine"


class Pretender(FakeRunner):
    """Starts, for dnsmasq, a process of that command line that counts the SIGHUPs it gets in a file."""

    CODE = ("import os,signal,sys,time\nbox=sys.argv[1]\n"
            "signal.signal(signal.SIGHUP, lambda *a: open(box,'a').write('x'))\n"
            "open(box,'a').write('s')\ntime.sleep(60)\n")

    def __init__(self, box) -> None:
        super().__init__()
        self.box, self.processes, self.refuse_once = box, [], False

    def run(self, argv, *, stdin=None, ok=(0,), environment=None):
        done = super().run(argv, stdin=stdin, ok=ok, environment=environment)
        if argv[0] != "dnsmasq":
            return done
        if self.refuse_once:
            self.refuse_once = False
            raise errors.host.CommandFailed(command="dnsmasq", where="here", reason="address already in use")
        process = subprocess.Popen([sys.executable, "-c", self.CODE, str(self.box), *argv[1:]],
                                   env={**os.environ, **(environment or {})})
        self.processes.append(process)
        pid_file = next(word.partition("=")[2] for word in argv if word.startswith("--pid-file"))
        with open(pid_file, "w") as stream:
            stream.write(f"{process.pid}\n")
        self.wait_for("s", len(self.processes))
        return done

    def wait_for(self, end: str, started: int = 1) -> None:
        for _ in range(200):
            text = self.box.read_text() if self.box.exists() else ""
            if text.endswith(end) and text.count("s") >= started:
                return
            time.sleep(0.02)
        raise AssertionError(f"{self.box.read_text()} does not end in {end}")


@pytest.fixture
def pretender(tmp_path, monkeypatch):
    runner = Pretender(tmp_path / "signals")
    real = processes.command_line
    # a process of ours has Python's words before dnsmasq's
    monkeypatch.setattr(processes, "command_line", lambda pid: ["dnsmasq", *real(pid)[4:]] if real(pid) else [])
    yield runner
    for process in runner.processes:
        process.kill()
        process.wait()


def test_serve_when_nothing_runs_starts_one_and_repeated_leaves_it(tmp_path, pretender):
    server = Dnsmasq(options(tmp_path), pretender)
    server.serve(network(), [guest(3)])
    pid = server.pid("br1")
    assert pid == pretender.processes[0].pid
    server.serve(network(), [guest(3)])
    assert (server.pid("br1"), len(pretender.named("dnsmasq")), pretender.box.read_text()) == (pid, 1, "s")


def test_serve_when_hosts_change_tells_the_one_that_runs(tmp_path, pretender):
    server = Dnsmasq(options(tmp_path), pretender)
    server.serve(network(), [guest(3), guest(4)])
    assert server.serve(network(), [guest(4), guest(5)]) == {Lease("fa:16:3e:00:01:03", "10.0.1.3")}
    pretender.wait_for("x")
    assert len(pretender.named("dnsmasq")) == 1


def test_serve_after_a_restart_of_ours_tells_the_one_that_runs_once(tmp_path, pretender):
    """The forerunner may have been killed after it wrote the files and before it told."""
    Dnsmasq(options(tmp_path), pretender).serve(network(), [guest(3)])
    second = Dnsmasq(options(tmp_path), pretender)
    second.serve(network(), [guest(3)])
    pretender.wait_for("sx")
    second.serve(network(), [guest(3)])
    assert len(pretender.processes) == 1 and pretender.box.read_text() == "sx"


def test_serve_when_it_would_be_started_differently_replaces_it(tmp_path, pretender):
    Dnsmasq(options(tmp_path), pretender).serve(network(), [])
    first = pretender.processes[0]
    Dnsmasq(options(tmp_path, dhcp_lease_time=999), pretender).serve(network(), [])
    assert first.wait(timeout=5) == -signal.SIGTERM
    assert len(pretender.processes) == 2


def test_serve_when_the_pid_is_another_programs_starts_one(tmp_path, pretender):
    given = options(tmp_path)
    given.networks_path.mkdir()
    (given.networks_path / "nova-br1.pid").write_text(f"{os.getpid()}\n")
    Dnsmasq(given, pretender).serve(network(), [])
    assert len(pretender.processes) == 1


def test_serve_when_the_pid_file_is_lost_replaces_the_one_that_runs(tmp_path, pretender):
    server = Dnsmasq(options(tmp_path), pretender)
    server.serve(network(), [])
    (tmp_path / "networks" / "nova-br1.pid").unlink()
    pretender.refuse_once = True  # "address already in use"
    server.serve(network(), [])
    first, second = pretender.processes
    assert first.wait(timeout=5) == -signal.SIGTERM and server.pid("br1") == second.pid


def test_serve_when_dnsmasq_refuses_for_another_reason_says_it(tmp_path, pretender):
    pretender.refuse_once = True
    with pytest.raises(errors.host.CommandFailed, match="in use"):
        Dnsmasq(options(tmp_path), pretender).serve(network(), [])


def test_stop_ends_it_and_takes_its_files_away(tmp_path, pretender):
    server = Dnsmasq(options(tmp_path), pretender)
    server.serve(network(), [])
    assert server.bridges() == {"br1"}
    server.stop("br1")
    assert pretender.processes[0].wait(timeout=5) == -signal.SIGTERM
    assert server.bridges() == frozenset()
    assert [path.name for path in (tmp_path / "networks").iterdir()] == ["nova-dhcpbridge"]
    server.stop("br1")
