"""The API under servers that are not ours: uWSGI and gunicorn, with workers forked from one import."""

from __future__ import annotations

import hashlib
import hmac
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from tests.functional.backends import Process, free_port, wait_until
from tests.functional.client import Client
from tests.functional.cloud import Cloud, Plan
from tests.functional.daemons import TOP, environment

pytestmark = pytest.mark.in_turn(3, 10)

WORKERS = 2
START_S = 60.0
SECRET = "between-proxies"
API = "nova.wsgi.osapi_compute:application"


def uwsgi(port: int, *target: str) -> list[str]:
    program = str(Path(sys.executable).with_name("uwsgi"))
    return [program, "--binary-path", sys.executable, "--http-socket", f"127.0.0.1:{port}", "--master",
            "--processes", str(WORKERS), "--threads", "4", "--enable-threads", "--die-on-term", "--need-app",
            "--buffer-size", "65535", "--worker-reload-mercy", "10", "--reload-mercy", "10",
            "--add-header", "Connection: close", *(target or ("--module", API))]


def gunicorn(port: int, *target: str) -> list[str]:
    return [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", str(WORKERS), "--threads",
            "4", "--preload", "--graceful-timeout", "10", "--no-control-socket", *(target or (API,))]


SERVERS: dict[str, Callable[..., list[str]]] = {"uwsgi": uwsgi, "gunicorn": gunicorn}


class Served:
    """One such server with the cloud's configuration."""

    def __init__(self, cloud: Cloud, argv: list[str], port: int, log: Path, named: bool = True) -> None:
        """``named``: whether the environment names the files of the configuration."""
        self.port, self.log = port, log
        files = {"OS_NOVA_CONFIG_DIR": str(cloud.root / "etc" / "ctl"),
                 "OS_NOVA_CONFIG_FILES": "api-paste.ini;nova.conf"} if named else {}
        self.process = Process(argv, log, environment(files), cwd=TOP)

    def ready(self) -> Served:
        def answers() -> bool:
            assert self.process.running, self.text()[-3000:]
            try:
                return requests.get(f"http://127.0.0.1:{self.port}/v2.1/", timeout=5).status_code == 200
            except requests.RequestException:
                return False
        wait_until("the server answers", answers, START_S)
        return self

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def api(self, user: str = "demo") -> Client:
        return Client(f"http://127.0.0.1:{self.port}/v2.1", user, "demo")

    def workers(self) -> set[int]:
        pid = self.process.pid
        return {int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    proxy = {"service_metadata_proxy": "true", "metadata_proxy_shared_secret": SECRET}
    return make_cloud(Plan(options={"neutron": proxy})).start()


@pytest.fixture(params=sorted(SERVERS))
def served(cloud: Cloud, request: pytest.FixtureRequest) -> Iterator[Served]:
    port = free_port()
    one = Served(cloud, SERVERS[request.param](port), port, cloud.root / "log" / f"{request.param}.log")
    try:
        yield one.ready()
    finally:
        one.process.kill()
        cloud.empty()


def test_server_when_booted_through_it_then_reads_show_it_and_links_lead_back(served: Served) -> None:
    api = served.api()
    server = api.boot("behind")
    assert [one["id"] for one in api.servers()] == [server["id"]]
    href = server["links"][0]["href"]
    assert href.startswith(f"http://127.0.0.1:{served.port}/v2.1/servers/")
    assert requests.get(href, headers={"X-Auth-Token": "demo:demo"}, timeout=10).status_code == 200
    assert "SCRIPT" not in href


def test_worker_when_killed_then_requests_go_on_and_another_takes_its_place(served: Served) -> None:
    api = served.api()
    api.get("/servers")
    before = served.workers()
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    wait_until("a new worker", lambda: victim not in served.workers() and len(served.workers()) >= len(before), START_S)
    for _ in range(4 * WORKERS):
        assert requests.get(f"{api.url}/servers", headers={"X-Auth-Token": "demo:demo"}, timeout=20).status_code == 200


def test_reload_when_told_then_new_workers_serve_and_stop_ends_all(served: Served) -> None:
    before = served.workers()
    os.kill(served.process.pid, signal.SIGHUP)
    wait_until("new workers", lambda: len(served.workers() - before) >= WORKERS and not served.workers() & before,
               START_S)
    wait_until("they answer", lambda: served.ready(), START_S)
    assert served.api().get("/servers") == {"servers": []}
    workers = served.workers()
    code = served.process.end(30)
    assert code in (0, None), served.text()[-2000:]
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert "Traceback" not in served.text(), served.text()[-3000:]


def test_script_when_given_to_uwsgi_then_it_is_the_application(cloud: Cloud) -> None:
    port = free_port()
    argv = uwsgi(port, "--wsgi-file", str(TOP / "nova" / "wsgi" / "nova-api-wsgi"), "--need-app")
    one = Served(cloud, argv, port, cloud.root / "log" / "script.log")
    try:
        assert one.ready().api().get("/flavors")["flavors"]
    finally:
        one.process.kill()


def test_script_when_uwsgi_passes_a_command_line_to_it_then_that_names_configuration_and_log(cloud: Cloud) -> None:
    """As Debian's packages do."""
    port, log = free_port(), cloud.root / "log" / "pyargv-nova.log"
    argv = uwsgi(port, "--wsgi-file", str(TOP / "nova" / "wsgi" / "nova-api-wsgi"), "--pyargv",
                 f"--config-file={cloud.root / 'etc' / 'ctl' / 'nova.conf'} --log-file={log}")
    one = Served(cloud, argv, port, cloud.root / "log" / "pyargv.log", named=False)
    try:
        assert one.ready().api().get("/flavors")["flavors"]
        assert "osapi_compute is ready in this process" in log.read_text()
    finally:
        one.process.kill()


def test_filter_when_the_operator_has_one_beside_nova_conf_then_requests_pass_it(cloud: Cloud) -> None:
    folder, port = cloud.root / "etc" / "filtered", free_port()
    shutil.copytree(cloud.root / "etc" / "ctl", folder)
    text = (TOP / "etc/nova/api-paste.ini").read_text().replace("noauth2 = noauth2", "noauth2 = limit noauth2")
    factory = "paste.filter_factory = tests.fakes.paste_filters:noting"
    (folder / "api-paste.ini").write_text(f"{text}\n[filter:limit]\n{factory}\nname = limit\nrefuses = 429 Slower\n")
    argv = gunicorn(port)
    argv[-1:] = ["--env", f"OS_NOVA_CONFIG_DIR={folder}", API]
    one = Served(cloud, argv, port, cloud.root / "log" / "filtered.log", named=False)
    try:
        base = f"http://127.0.0.1:{port}"
        wait_until("it answers", lambda: _status(f"{base}/") in (200, 300), START_S)
        answer = requests.get(f"{base}/v2.1/servers", headers={"X-Auth-Token": "demo:demo"}, timeout=10)
        assert answer.status_code == 429
    finally:
        one.process.kill()


def test_mount_point_when_behind_a_path_then_links_carry_it(cloud: Cloud) -> None:
    port = free_port()
    argv = uwsgi(port, "--mount", f"/compute={API}", "--manage-script-name")
    one = Served(cloud, argv, port, cloud.root / "log" / "mount.log")
    try:
        base = f"http://127.0.0.1:{port}/compute"
        wait_until("it answers", lambda: _status(f"{base}/v2.1/") == 200, START_S)
        flavors = Client(f"{base}/v2.1", "demo", "demo").get("/flavors")["flavors"]
        assert flavors[0]["links"][0]["href"].startswith(f"{base}/v2.1/flavors/")
    finally:
        one.process.kill()


def _status(url: str) -> int:
    try:
        return requests.get(url, timeout=5).status_code
    except requests.RequestException:
        return 0


def test_uwsgi_when_threads_are_off_then_requests_are_refused_and_the_log_has_the_cure(cloud: Cloud) -> None:
    port = free_port()
    argv = [word for word in uwsgi(port) if word not in ("--enable-threads", "--threads", "4")]
    one = Served(cloud, argv, port, cloud.root / "log" / "threadless.log")
    try:
        wait_until("it refuses", lambda: _status(f"http://127.0.0.1:{port}/") == 503, START_S)
        assert "enable-threads" in one.text()
    finally:
        one.process.kill()


def test_configuration_when_missing_then_import_goes_on_and_one_sentence_says_so(tmp_path: Path) -> None:
    env = environment({"OS_NOVA_CONFIG_DIR": str(tmp_path), "OS_NOVA_CONFIG_FILES": "nova.conf"})
    done = subprocess.run([sys.executable, "-c", "import nova.wsgi.osapi_compute"], env=env, cwd=TOP, timeout=60,
                          capture_output=True, text=True)
    assert done.returncode == 0
    assert str(tmp_path / "nova.conf") in done.stderr and "Traceback" not in done.stderr


def test_script_when_run_as_a_program_then_it_serves(cloud: Cloud) -> None:
    port = free_port()
    argv = [sys.executable, str(TOP / "nova" / "wsgi" / "nova-api-wsgi"), "--host", "127.0.0.1", "--port", str(port)]
    one = Served(cloud, argv, port, cloud.root / "log" / "program.log")
    try:
        assert one.ready().api().get("/flavors")["flavors"]
    finally:
        one.process.kill()


def test_metadata_when_under_gunicorn_then_a_guest_is_told_who_it_is(cloud: Cloud) -> None:
    server = cloud.api().boot("guest")
    signature = hmac.new(SECRET.encode(), server["id"].encode(), hashlib.sha256).hexdigest()
    headers = {"X-Instance-ID": server["id"], "X-Tenant-ID": "demo", "X-Instance-ID-Signature": signature,
               "X-Forwarded-For": "10.0.0.5"}
    port = free_port()
    one = Served(cloud, gunicorn(port, "nova.wsgi.metadata:application"), port, cloud.root / "log" / "metadata.log")
    try:
        url = f"http://127.0.0.1:{port}/openstack/latest/meta_data.json"
        wait_until("it answers", lambda: _status(url), START_S)
        answer = requests.get(url, headers=headers, timeout=10)
        assert answer.json().get("uuid") == server["id"], f"{answer.text} {one.text()}"
    finally:
        one.process.kill()
        cloud.empty()


def test_placement_when_under_gunicorn_then_hosts_are_its_providers(cloud: Cloud) -> None:
    port = free_port()
    one = Served(cloud, gunicorn(port, "nova.wsgi.placement:application"), port, cloud.root / "log" / "placement.log")
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until("it answers", lambda: _status(f"{url}/"), START_S)
        found = requests.get(f"{url}/resource_providers", headers={"X-Auth-Token": "admin:admin"}, timeout=10)
        assert {provider["name"] for provider in found.json()["resource_providers"]} == set(cloud.hosts)
    finally:
        one.process.kill()
