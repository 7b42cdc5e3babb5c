"""The helper by sudo: the context that tools know by name, the command that starts it, and who lets that pass."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import pytest

from nova import privileged

TOP = Path(__file__).resolve().parents[3]
FILTERS, SUDOERS = TOP / "etc/nova/rootwrap.d/compute.filters", TOP / "etc/sudoers.d/nova"
CONTEXT = "nova.privileged.sys_admin_pctxt"

#: A process that asks the helper as a daemon does, started without sudo: it is root already.
ASKING = """
import sys
from nova import concurrency
concurrency.patch(sys.argv[1])
from nova import configuration
options = configuration.read("nova-compute", ["--config-file", sys.argv[2]])
from nova import errors
from nova.privileged import client, guest_files, privsep
from nova.privileged.about import about
options.source.set_override("helper_command", sys.argv[3], group="nova_sys_admin")
client.use(privsep.PrivsepHelper(options))
print(about().instances_path)
try:
    guest_files.read_head("/etc/shadow", 8)
except errors.host.HelperRefused as error:
    print("refused")
"""


def filters() -> dict[str, list[str]]:
    """Name -> the words of its expression."""
    found = RawConfigParser()
    found.read(FILTERS)
    rows = {name: [word.strip() for word in value.split(",")] for name, value in found.items("Filters")}
    assert all(row[:3] == ["RegExpFilter", "privsep-helper", "root"] for row in rows.values())
    return {name: row[3:] for name, row in rows.items()}


def passes(command: list[str]) -> bool:
    """As rootwrap's RegExpFilter: each word matches its expression, whole."""
    return any(len(words) == len(command) and all(re.fullmatch(*pair) for pair in zip(words, command, strict=True))
               for words in filters().values())


def command(files: list[str] = ["/etc/nova/nova.conf"], context: str = CONTEXT,  # noqa: B006 - read alone
            socket: str = "/tmp/tmp1x_9ab/privsep.sock") -> list[str]:
    named = [word for file in files for word in ("--config-file", file)]
    return ["privsep-helper", *named, "--privsep_context", context, "--privsep_sock_path", socket]


def test_context_then_it_has_the_name_that_tools_write_and_one_entrypoint() -> None:
    from nova.privileged import privsep

    assert privileged.sys_admin_pctxt is privsep.CONTEXT and privsep.CONTEXT.cfg_section == "nova_sys_admin"
    assert privsep.CONTEXT.helper_command("/tmp/x/privsep.sock")[-4:] == [
        "--privsep_context", CONTEXT, "--privsep_sock_path", "/tmp/x/privsep.sock"]
    assert [name for name, one in vars(privsep).items() if privsep.CONTEXT.is_entrypoint(one)] == ["dispatch"]


def test_package_when_nobody_asks_for_the_context_then_the_library_is_not_loaded() -> None:
    asks = "import sys, nova.privileged.links; print('oslo_privsep' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said == "False\n"
    with pytest.raises(AttributeError):
        privileged.nothing  # noqa: B018 - it is asked for


@pytest.mark.parametrize("context", [CONTEXT, "os_brick.privileged.default", "vif_plug_ovs.privsep.vif_plug",
                                     "vif_plug_linux_bridge.privsep.vif_plug"])
def test_filters_when_a_daemon_starts_its_helper_then_they_let_it_pass(context: str) -> None:
    assert passes(command(context=context))


def test_filters_when_there_are_two_files_then_they_let_it_pass() -> None:
    assert passes(command(["/etc/nova/nova.conf", "/etc/nova/nova-compute.conf"]))


@pytest.mark.parametrize("words", [
    ["sh", "-c", "id"], ["privsep-helper"], command(["/tmp/nova.conf"]), command(["/etc/nova/../../tmp/nova.conf"]),
    command(["/etc/nova/sub/../../../tmp/x"]), command(context="nova.privileged.sys_admin_pctxtx"),
    command(context="novaXprivileged.sys_admin_pctxt"), command(context="os.system"),
    command(socket="/etc/cron.d/privsep.sock"), command(socket="/tmp/../etc/x/privsep.sock"),
    [*command(), "--config-dir", "/tmp"], [*command()[:1], "--config-dir", "/tmp", *command()[3:]]], ids=str)
def test_filters_when_it_is_another_command_then_they_do_not(words: list[str]) -> None:
    assert not passes(words)


def test_filters_when_rootwrap_reads_them_then_it_finds_the_same_and_adds_one_of_its_own() -> None:
    """Its own lets any privsep-helper pass: doc/security.rst says what that means."""
    if importlib.util.find_spec("oslo_rootwrap") is None:
        pytest.skip("oslo.rootwrap is not installed here: install the requirements of setup.cfg anew")
    from oslo_rootwrap import wrapper

    loaded = wrapper.load_filters([str(FILTERS.parent)])
    *ours, own = loaded
    assert len(ours) == len(filters())
    assert any(one.match(command()) for one in ours)
    assert not any(one.match(command(["/tmp/nova.conf"])) for one in ours)
    assert own.match(command(["/tmp/nova.conf"]))


def test_sudoers_then_they_name_nova_rootwrap_with_its_configuration_and_nothing_else() -> None:
    text = SUDOERS.read_text().replace("\\\n", " ")
    (rule,) = [line for line in text.splitlines() if line.startswith("nova ")]
    commands = [one.strip() for one in rule.partition("NOPASSWD:")[2].split(",")]
    assert all(re.fullmatch(r"/usr/bin/nova-rootwrap(-daemon)? /etc/nova/rootwrap.conf( \*)?", one) for one in commands)
    assert len(commands) == 2


@pytest.mark.parametrize("mode", ["threads", "eventlet"])
def test_helper_when_it_is_started_by_a_command_then_it_answers_and_refuses_as_the_other(mode: str,
                                                                                          tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: there is no sudo in a test")
    conf = tmp_path / "nova.conf"
    conf.write_text(f"[DEFAULT]\ninstances_path = {tmp_path}/instances\nstate_path = {tmp_path}\n")
    helper = f"{Path(sys.executable).parent}/privsep-helper --config-file {conf}"
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", ASKING, mode, str(conf), helper], capture_output=True,
                          text=True, timeout=90, check=False, env={**os.environ, "NOVA_CONCURRENCY": mode})
    assert said.stdout.split() == [f"{tmp_path}/instances", "refused"], said.stderr[-2000:]


@pytest.mark.parametrize("helper", ["/nonexistent/sudo privsep-helper", "false"])
def test_helper_when_it_cannot_be_started_then_one_line_says_so(helper: str, tmp_path: Path) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text("[DEFAULT]\n")
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", ASKING, "threads", str(conf), helper],
                          capture_output=True, text=True, timeout=90, check=False)
    last = said.stderr.strip().splitlines()[-1]
    assert last.startswith("nova.errors.host.NoHelper") and "sudo did not start privsep-helper" in last, said.stderr
