"""The supervisor with real processes: small scripts, no root and no network."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stacklib import children, kernel
from stacklib.control import Control
from stacklib.errors import StackError
from stacklib.layout import Choices, Layout
from stacklib.spec import Daemon, Probe

pytestmark = pytest.mark.in_turn(0, 5)  # waits for programs to end

SAYS_READY = """
import os, socket, time
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
    s.sendto(b"STATUS=begun\\nREADY=1", os.environ["NOTIFY_SOCKET"])
print("at work", flush=True)
time.sleep(600)
"""
WAITS = SAYS_READY.replace("STATUS=begun", "STATUS=still waits for another service: see its log")
IGNORES_TERM = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)" + SAYS_READY
LEAVES_WORKER = "import subprocess, sys\nw = subprocess.Popen(['sleep', '600'])\nprint('worker', w.pid)" + SAYS_READY


def daemon(name: str, script: str = SAYS_READY, **more) -> Daemon:
    fields = {"probe": Probe("notify"), "start_seconds": 20, "stop_seconds": 1, "env": {"PATH": os.environ["PATH"]}}
    return Daemon(name=name, argv=(sys.executable, "-IS", "-c", script), **{**fields, **more}).stamped()


@pytest.fixture
def layout(short_path):
    for name in ("run/notify", "logs"):
        (short_path / name).mkdir(parents=True)
    return Layout(short_path, Choices())


def start_supervisor(layout: Layout) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-S", "-m", "stacklib.supervisor", str(layout.run), str(layout.logs)],
        cwd=Path(sys.modules["stacklib"].__file__).parents[1], start_new_session=True,
    )
    wait_for(Control(layout).running)
    return process


@pytest.fixture
def control(layout):
    process = start_supervisor(layout)
    yield Control(layout)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def wait_for(condition, seconds: float = 15.0):
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)
    return result


def row(control: Control, name: str) -> dict:
    return next(d for d in control.status()["daemons"] if d["name"] == name)


def test_start_when_it_says_ready_then_ready_and_its_words_are_in_the_log(control, layout):
    assert control.start(daemon("one"), daemon("two")) == "started one, two"
    assert {row(control, n)["phase"] for n in ("one", "two")} == {"ready"}
    wait_for(lambda: "at work" in layout.log("one").read_text())


def test_start_when_it_says_ready_but_that_it_still_waits_then_it_is_not_ready(control):
    with pytest.raises(StackError, match="not ready"):
        control.start(daemon("one", WAITS, start_seconds=2))


def test_start_when_it_runs_already_then_nothing_unless_its_fingerprint_changed(control):
    control.start(daemon("one"))
    pid = row(control, "one")["pid"]
    assert control.start(daemon("one")) == "running"
    assert row(control, "one")["pid"] == pid
    assert control.start(daemon("one", env={"PATH": os.environ["PATH"], "NEW": "1"})) == "started one"
    assert row(control, "one")["pid"] != pid
    assert kernel.start_time(pid) is None


def test_daemon_when_killed_then_started_again_and_its_workers_ended(control, layout):
    control.start(daemon("one", LEAVES_WORKER))
    worker = int(wait_for(lambda: layout.log("one").read_text().split()[1:2])[0])
    control.ask(do="kill", name="one", signal=signal.SIGKILL)
    wait_for(lambda: row(control, "one")["restarts"] == 1)
    wait_for(lambda: kernel.start_time(worker) is None)
    wait_for(lambda: row(control, "one")["phase"] == "ready")


def test_start_when_it_ends_at_once_then_refused_with_the_end_of_its_log(control):
    with pytest.raises(StackError, match="ends as soon as it starts") as caught:
        control.start(daemon("bad", "raise SystemExit('no such table')"))
    assert "no such table" in str(caught.value)


def test_start_when_the_program_is_missing_then_refused_and_said(control):
    with pytest.raises(StackError, match="cannot start none"):
        control.start(Daemon(name="none", argv=("/nowhere/none",), probe=Probe("alive")))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_kill_when_the_daemon_has_no_process_then_nobody_else_gets_the_signal(control, number):
    control.ask(do="start", daemon=daemon("brief", "pass").to_json())
    wait_for(lambda: [one["pid"] for one in control.status()["daemons"]] == [None])
    assert control.ask(do="kill", name="brief", signal=number)["pid"] is None
    time.sleep(0.1)
    assert control.running()


def test_stop_when_sigterm_is_ignored_then_killed_within_the_bound(control):
    control.start(daemon("deaf", IGNORES_TERM))
    begin = time.monotonic()
    control.ask(do="stop", name="deaf")
    wait_for(lambda: row(control, "deaf")["pid"] is None)
    assert 0.9 < time.monotonic() - begin < 5
    assert row(control, "deaf")["phase"] == "stopped"


def test_shutdown_then_the_highest_tier_ends_first_and_nothing_is_left(control, layout):
    script = (
        "import signal, sys, time\n{0}\nsignal.signal(signal.SIGTERM, lambda *_: (print(time.monotonic()), sys.exit()))"
    )
    for tier, name in ((0, "store"), (2, "user")):
        pause = (
            ""
            if tier == 0
            else "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(.5), print(time.monotonic()), sys.exit()))"
        )
        text = script.format("") + "\n" + pause + SAYS_READY.replace('print("at work", flush=True)', "")
        control.start(daemon(name, text, tier=tier))
    pids = [row(control, name)["pid"] for name in ("store", "user")]
    control.shutdown()
    assert [kernel.start_time(pid) for pid in pids] == [None, None]
    ended = {name: float(layout.log(name).read_text()) for name in ("store", "user")}
    assert ended["user"] < ended["store"]
    assert not control.running()


def test_supervisor_when_killed_then_the_next_one_ends_what_it_left(layout):
    first = start_supervisor(layout)
    control = Control(layout)
    control.start(daemon("one"))
    pid = row(control, "one")["pid"]
    first.kill()
    first.wait()
    assert kernel.start_time(pid) is not None
    second = start_supervisor(layout)
    assert kernel.start_time(pid) is None
    assert control.status()["daemons"] == []
    second.send_signal(signal.SIGTERM)
    assert second.wait(20) == 0


def test_recorded_pid_when_it_is_another_process_now_then_left_alone(tmp_path):
    other = subprocess.Popen(["sleep", "60"])
    try:
        (tmp_path / children.RECORD).write_text(f'{{"{other.pid}": 1}}')
        children.end_recorded(tmp_path)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize(
    "request_", [{"do": "nothing"}, {"do": "start", "daemon": {}}, {"do": "stop", "name": "x"}, {}]
)
def test_request_when_it_is_no_request_then_an_error_and_the_supervisor_lives(control, request_):
    with pytest.raises(StackError):
        control.ask(**request_)
    assert control.running()


def test_control_when_no_supervisor_runs_then_the_error_says_how_to_start_it(layout):
    with pytest.raises(StackError, match="is not running") as caught:
        Control(layout).status()
    assert "bin/stack up" in caught.value.hint
