"""The folder in which a daemon's processes count, and what they count there together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nova.monitoring import counting


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.delenv(counting.VARIABLE, raising=False)
    yield
    counting.remove_folder()


def test_folder_when_it_is_made_then_it_is_the_daemons_alone_and_goes_with_it(tmp_path: Path) -> None:
    made = counting.make_folder("nova-api", tmp_path)
    assert made.stat().st_mode & 0o777 == 0o700 and os.environ[counting.VARIABLE] == str(made)
    counting.remove_folder()
    assert not made.exists() and counting.VARIABLE not in os.environ
    counting.remove_folder()


def test_folder_when_a_killed_daemon_left_its_own_then_it_goes_and_a_living_ones_stays(tmp_path: Path) -> None:
    left = tmp_path / "nova-api-metrics-killed"
    other = tmp_path / "nova-scheduler-metrics-killed"
    left.mkdir()
    other.mkdir()
    living = counting.make_folder("nova-api", tmp_path)
    script = (f"from pathlib import Path; from nova.monitoring import counting; "
              f"counting.make_folder('nova-api', Path({str(tmp_path)!r}))")
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
    assert not left.exists() and living.exists() and other.exists()


def test_folder_when_a_link_stands_in_its_place_then_what_it_leads_to_stays(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (tmp_path / "nova-api-metrics-link").symlink_to(elsewhere)
    counting.make_folder("nova-api", tmp_path)
    assert (elsewhere / "file").exists()


WORKERS = """
import os, sys
from pathlib import Path
from nova.monitoring import counting
counting.make_folder("nova-api", Path(sys.argv[1]))
from nova import metrics
from nova.monitoring import exposition

def work(index, requests, under_way):
    if os.fork() == 0:
        metrics.in_worker(index)
        metrics.API_REQUESTS.labels("compute", "GET /servers", "200").observe(0.1)
        for _ in range(requests - 1):
            metrics.API_REQUESTS.labels("compute", "GET /servers", "200").observe(0.1)
        metrics.RPC_UNDER_WAY.labels("ConductorRPC").inc(under_way)
        os._exit(0)
    os.wait()

work(0, 2, 1)
work(1, 3, 1)
exposition.forget_worker(0)
work(0, 4, 1)   # a worker that was replaced
print(len(os.listdir(os.environ[counting.VARIABLE])))
print(exposition.exposed(()).decode())
counting.remove_folder()
"""


def test_counts_when_several_workers_count_and_one_is_replaced_then_they_add_up(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WORKERS, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    files, page = done.stdout.split("\n", 1)
    assert 'nova_api_request_duration_seconds_count{api="compute",route="GET /servers",status="200"} 9.0' in page
    assert 'nova_rpc_under_way{contract="ConductorRPC"} 2.0' in page
    assert int(files) <= 3 * 6, "files go by the worker's number, not by pid"


@pytest.mark.parametrize("binary", ["api", "api_metadata", "api_os_compute", "cert", "compute", "conductor",
                                    "consoleauth", "imageproxy", "network", "novncproxy", "placement_api", "scheduler",
                                    "serialproxy", "spicehtml5proxy", "xvpvncproxy"])
def test_daemon_when_its_module_is_imported_then_the_library_is_not_yet(binary: str) -> None:
    script = f"import sys, nova.cmd.{binary}; sys.exit('prometheus_client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], timeout=60)
    assert done.returncode == 0, "it would have chosen where to count before the daemon says where"
