"""What operators do and get wrong: configuration, nova-manage, signals, identities of hosts."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from nova.rpc import host_secret
from tests.functional.backends import free_port, wait_until
from tests.functional.client import Client
from tests.functional.cloud import HOST_SECRET_KEY, TICKET_KEY, Cloud, Plan, render
from tests.functional.daemons import Daemon

pytestmark = pytest.mark.in_turn(6, 10)

START_S = 20.0


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    return make_cloud(Plan(computes=1, upstream=False, options={"DEFAULT": {"deleted_retention": 0}})).start()


@pytest.fixture
def api(cloud: Cloud) -> Iterator[Client]:
    yield cloud.api()
    for daemon in cloud.daemons.values():
        if not daemon.running:
            daemon.restart()
    cloud.empty()


def ended(cloud: Cloud, module: str, config: Path) -> tuple[int, str]:
    """Start one more daemon that must not get far; its exit code and what it said."""
    daemon = Daemon(module, config, cloud.root / "log" / "doomed.log").start()
    try:
        return daemon.wait_end(START_S), daemon.text()
    finally:
        daemon.kill()


# --- wrong configuration


@pytest.mark.parametrize("module, section, option, value, fix", [
    ("api", "api", "auth_strategy", "nobody", "one of keystone, noauth2"),
    ("api", "DEFAULT", "osapi_compute_listen_port", "many", "a port number"),
    ("conductor", "conductor", "workers", "-7", "1 or above"),
    ("conductor", "DEFAULT", "report_interval", "soon", "a whole number"),
    ("scheduler", "scheduler", "max_attempts", "-7", "1 or above"),
    ("compute", "fake", "nodes", "-7", "a whole number"),
    ("network", "DEFAULT", "fake_network", "maybe", "true or false")])
def test_start_when_an_option_is_wrong_then_it_ends_with_2_and_says_where_and_what_to_write(
        cloud, module, section, option, value, fix) -> None:
    config = cloud.configure("wrong")
    config.write_text(config.read_text() + render({section: {option: value}}))
    code, said = ended(cloud, module, config)
    assert code == 2
    assert f"[{section}]{option} in {config}" in said and len(said.strip().splitlines()) == 1, said
    assert fix in said and value not in said.replace(str(config), ""), said


@pytest.mark.parametrize("module", ["api", "scheduler", "compute", "network"])
def test_start_when_a_daemon_is_given_a_database_then_it_ignores_it_and_says_where_it_belongs(cloud, module) -> None:
    config = cloud.configure("knowing", osapi_compute_listen_port=free_port())
    config.write_text(config.read_text() + render({"database": {"connection": "sqlite:///secret"}}))
    daemon = Daemon(module, config, cloud.root / "log" / f"knowing-{module}.log").start()
    try:
        wait_until("the daemon's sentence", lambda: "nova-conductor.conf" in daemon.text(), START_S)
        assert daemon.running and "[database]connection" in daemon.text() and "sqlite" not in daemon.text()
    finally:
        daemon.kill()


def test_conductor_when_no_database_is_named_then_it_says_which_option(cloud) -> None:
    code, said = ended(cloud, "conductor", cloud.configure("without"))
    assert code == 2 and "[database]connection is not set" in said


def test_conductor_when_it_has_no_key_for_hosts_secrets_then_it_says_how_to_make_one(cloud) -> None:
    config = cloud.configure("keyless")
    urls = {name: {"connection": url} for name, url in cloud.database_urls.items()}
    config.write_text(config.read_text() + render({**urls, "image_proxy": {"key": TICKET_KEY}}))
    code, said = ended(cloud, "conductor", config)
    assert code == 2 and "[conductor]host_secret_key is not set" in said and "nova-manage host new-key" in said


def test_key_of_hosts_secrets_when_changed_then_all_are_wrapped_anew(cloud) -> None:
    fresh = cloud.manage("host", "new-key").strip()
    path = cloud.root / "etc" / "ctl" / "nova-conductor.conf"
    before = path.read_text()
    try:
        for keys in (f"{fresh},{HOST_SECRET_KEY}", HOST_SECRET_KEY):  # the last one cannot open what the first wrapped
            path.write_text(before.replace(HOST_SECRET_KEY, keys))
            said = cloud.manage("host", "wrap-secrets", code=0 if fresh in keys else 1)
            assert ("The other keys can be removed" in said) == (fresh in keys)
        assert "nova-manage host enroll" in said and fresh not in said
        path.write_text(before.replace(HOST_SECRET_KEY, f"{HOST_SECRET_KEY},{fresh}"))
        assert "encrypted with the first key" in cloud.manage("host", "wrap-secrets")
    finally:
        path.write_text(before)
    assert "The other keys can be removed" in cloud.manage("host", "wrap-secrets")  # and all is as it was


def test_conductor_when_the_schema_is_missing_then_it_says_which_command(cloud) -> None:
    server = cloud.backends.database(cloud.plan.database)
    config = cloud.configure("unsynced")
    urls = {name: {"connection": server.create(f"empty_{name}_{cloud.port}")} for name in ("database", "api_database")}
    config.write_text(config.read_text() + render({**urls, "image_proxy": {"key": TICKET_KEY},
                                                 "conductor": {"host_secret_key": HOST_SECRET_KEY}}))
    code, said = ended(cloud, "conductor", config)
    assert code == 1 and "nova-manage api_db sync" in said


def test_api_when_its_port_is_taken_then_it_says_which(cloud) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = ended(cloud, "api", cloud.configure("taken", osapi_compute_listen_port=port))
    assert code == 1 and str(port) in said and "osapi_compute_listen_port" in said


# --- who a host is


def test_compute_when_its_name_is_anothers_then_it_refuses_with_the_cure(cloud) -> None:
    config, state = cloud.configure("host1", state_path=cloud.state("impostor")), cloud.state("impostor")
    state.mkdir(exist_ok=True)
    shutil.copy(cloud.state("host1") / host_secret.FILE, state / host_secret.FILE)  # its secret was stolen, or cloned
    try:
        code, said = ended(cloud, "compute", config)
    finally:
        cloud.configure("host1")
    assert code == 1 and "is registered with id" in said and "restore state_path/host_id" in said


def test_compute_when_its_id_is_known_under_another_name_then_it_refuses_with_the_cure(cloud) -> None:
    config = cloud.configure("renamed")
    cloud.enroll(cloud.stores, "renamed")
    shutil.copy(cloud.state("host1") / "host_id", cloud.state("renamed") / "host_id")
    code, said = ended(cloud, "compute", config)
    assert code == 1 and "[DEFAULT]host = host1" in said


def test_compute_when_another_runs_on_the_same_state_then_it_refuses(cloud) -> None:
    code, said = ended(cloud, "compute", cloud.root / "etc" / "host1" / "nova.conf")
    assert code == 1 and "Another nova-compute uses" in said


def test_compute_when_killed_and_started_again_then_its_guests_are_there_and_managed(cloud, api) -> None:
    uuid = api.boot("survivor")["id"]
    cloud.compute("host1").restart()
    assert api.settled(uuid, "ACTIVE")["OS-EXT-STS:power_state"] == 1
    api.act(uuid, "os-stop")
    api.settled(uuid, "SHUTOFF")


# --- nova-manage


def test_manage_when_services_and_hosts_are_listed_then_all_are_there_and_up(cloud) -> None:
    lines = cloud.manage("service", "list").splitlines()
    found = {tuple(line.split()[:2]): line for line in lines[1:]}
    for binary, host in (("nova-conductor", "ctl"), ("nova-scheduler", "ctl"), ("nova-network", "ctl"),
                         ("nova-compute", "host1")):
        assert "enabled" in found[binary, host] and ":-)" in found[binary, host]
    assert "host1" in cloud.manage("host", "list")


def test_manage_when_a_request_is_shown_then_its_steps_are_told(cloud, api) -> None:
    made = api.create("told")
    api.settled(made["id"], "ACTIVE")
    story = cloud.manage("request", "show", made["request_id"])
    assert made["id"] in story
    steps = ["SelectHosts", "SelectNextHost", "PlaceInCell", "ClaimResources", "BindNetworks", "BuildGuests"]
    assert [step for step in re.findall(r"\w+", story) if step in steps] == steps
    assert story.count("Success") == len(steps)
    assert "no recorded operation" in cloud.manage("request", "show", "req-none", code=1)


def test_manage_when_deleted_servers_are_purged_then_their_rows_are_gone(cloud, api) -> None:
    uuid = api.boot("purged", metadata={"k": "v"})["id"]
    api.remove(uuid)
    admin = cloud.api("admin")
    assert uuid in {server["id"] for server in admin.servers("?all_tenants=1&deleted=1")}
    assert "were purged" in cloud.manage("db", "purge", "--all")
    assert uuid not in {server["id"] for server in admin.servers("?all_tenants=1&deleted=1")}
    assert cloud.stores.journal(uuid) == []
    cloud.manage("db", "purge", "--all", code=3)
    cloud.manage("db", "purge", code=1)
    cloud.manage("db", "purge", "--before", "someday", code=2)


def test_manage_when_there_is_nothing_to_archive_or_sync_then_it_says_so(cloud) -> None:
    assert "Nothing to archive" in cloud.manage("db", "archive_deleted_rows")
    assert "as before" in cloud.manage("db", "sync") and "as before" in cloud.manage("api_db", "sync")
    assert cloud.manage("db", "version").strip() and cloud.manage("api_db", "version").strip()
    cloud.manage(code=2)


def doctor(cloud: Cloud) -> dict[str, tuple[str, str]]:
    """check -> (state, line); asserts that the exit status is that of the worst."""
    process = cloud._manage("doctor")
    output, _ = process.communicate(timeout=60)
    found = {line[:14].strip(): (line[15:24].strip(), line) for line in output.splitlines()}
    worst = max(("ok", "warning", "FAILED").index(state) for state, _line in found.values())
    assert process.returncode == worst, output
    return found


def test_doctor_when_things_are_well_and_when_not_then_it_tells_them_apart(cloud) -> None:
    well = doctor(cloud)
    for check in ("configuration", "options", "broker", "database", "connections", "daemons", "glance", "clock", "kvm",
                  "libvirt"):
        assert well[check][0] == "ok", well[check]
    assert well["keystone"][0] == "warning"
    cloud.glance.go_away()
    secret = cloud.root / "etc" / "ctl" / "nova-conductor.conf"
    secret.chmod(0o644)
    try:
        ill = doctor(cloud)
    finally:
        cloud.glance.come_back()
        secret.chmod(0o600)
    assert ill["glance"][0] == ill["configuration"][0] == "FAILED"
    assert f"chmod 600 {secret}" in ill["configuration"][1] and "->" in ill["glance"][1]


# --- Keystone


def test_api_when_keystone_is_down_then_it_is_a_503_that_names_it(cloud) -> None:
    port, nobody = free_port(), free_port()
    config = cloud.configure("keystoned", osapi_compute_listen_port=port)
    config.write_text(config.read_text() + render({
        "api": {"auth_strategy": "keystone"},
        "keystone_authtoken": {"auth_type": "password", "auth_url": f"http://127.0.0.1:{nobody}", "username": "nova",
                               "password": "secret", "project_name": "service", "user_domain_id": "default",
                               "project_domain_id": "default", "http_connect_timeout": 2, "http_request_max_retries": 0}
    }))
    daemon = Daemon("api", config, cloud.root / "log" / "keystoned.log").start().ready()
    try:
        answer = requests.get(f"http://127.0.0.1:{port}/v2.1/servers", headers={"X-Auth-Token": "t" * 32}, timeout=60)
        versions = requests.get(f"http://127.0.0.1:{port}/", timeout=10)
    finally:
        daemon.kill()
    assert answer.status_code == 503 and re.search("keystone|identity", answer.text, re.IGNORECASE), answer.text
    assert versions.ok  # which needs nobody
    assert "secret" not in daemon.text()


# --- signals


def test_hup_when_debug_was_switched_then_the_daemon_logs_so_without_a_restart(cloud) -> None:
    config = cloud.root / "etc" / "ctl" / "nova.conf"
    text = config.read_text()
    for name in ("conductor", "scheduler", "api"):
        daemon = cloud.daemons[name]
        pids = daemon.workers()
        config.write_text(text.replace("[DEFAULT]", "[DEFAULT]\ndebug = True"))
        daemon.reload()
        daemon.wait_log("debug is True")
        if name == "conductor":
            daemon.wait_log(" DEBUG nova")
        config.write_text(text)
        daemon.reload()
        daemon.wait_log("debug is False")
        assert daemon.workers() == pids


def ask_beside(act: Any) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(act()))
    thread.start()
    return thread, answers


def test_term_when_the_api_answers_a_request_then_it_is_answered_before_the_end(cloud, api) -> None:
    cloud.glance.knobs.stall_s = 2.0
    try:
        thread, answers = ask_beside(lambda: cloud.api().create("drained"))
        wait_until("the request is under way", lambda: cloud.glance.requests and not answers, 5)
        time.sleep(0.5)
        code, seconds = cloud.daemons["api"].terminate()
        thread.join(10)
    finally:
        cloud.glance.knobs.stall_s = 0.0
    assert code == 0 and seconds < 15
    assert answers and answers[0]["id"]
    cloud.daemons["api"].restart()
    api.settled(answers[0]["id"], "ACTIVE")


@pytest.mark.parametrize("name", ["conductor", "compute1"])
def test_term_when_a_guest_is_being_built_then_the_daemon_ends_well_and_so_does_the_build(cloud, api, name) -> None:
    with cloud.knobs("host1", {"call": "start_new", "do": "delay", "seconds": 3.0}):
        uuid = api.create("building")["id"]
        wait_until("the build has begun", lambda: uuid in cloud.guests("host1"), 10)
        code, seconds = cloud.daemons[name].terminate()
        assert code == 0 and seconds < 20
        cloud.daemons[name].start().ready()
    api.settled(uuid, "ACTIVE")


def test_worker_when_killed_then_another_takes_its_place(cloud, api) -> None:
    daemon = cloud.daemons["conductor"]
    before = daemon.workers()
    os.kill(before[0], signal.SIGKILL)
    wait_until("a worker is replaced", lambda: len(set(daemon.workers()) - set(before)) == 1, 10)
    api.boot("after")


def test_parent_when_killed_then_its_workers_end_too(cloud, api) -> None:
    daemon = cloud.daemons["conductor"]
    workers = daemon.workers()
    assert daemon.process and workers != [daemon.process.pid]
    os.kill(daemon.process.pid, signal.SIGKILL)
    wait_until("the workers are gone", lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), 25)
    daemon.start().ready()
    api.boot("again")
