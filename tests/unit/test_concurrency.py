"""Calls that block, in the mode of green threads: in a process of their own, as the mode is a process's for good."""

from __future__ import annotations

import subprocess
import sys

import pytest

MANY_THAT_LAST = """
import time
from nova import concurrency

concurrency.patch("eventlet")
from eventlet import patcher
really_sleep = patcher.original("time").sleep
for _ in range(40):
    concurrency.spawn(concurrency.run_apart, really_sleep, 5)
time.sleep(0.1)
began = time.monotonic()
assert concurrency.run_in_thread(lambda: "quick") == "quick"
assert concurrency.run_apart(lambda a, b: a + b, 1, 2) == 3
assert time.monotonic() - began < 2, "it waited behind calls that last"


def fails():
    raise KeyError("as it was")


try:
    concurrency.run_apart(fails)
except KeyError as error:
    print("done", error)
"""


JOINS = """
import time
from nova import concurrency

concurrency.patch()
slow = concurrency.spawn(time.sleep, 5)
began = time.monotonic()
assert concurrency.join(slow, 0.05) is False and time.monotonic() - began < 2
assert concurrency.join(concurrency.spawn(time.sleep, 0), 5) is True
assert concurrency.join(slow, 0.0) is False
print(concurrency.mode())
"""


@pytest.mark.parametrize("mode", ["eventlet", "threads"])
def test_join_when_the_thread_lasts_longer_then_it_returns_and_says_so(mode: str) -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", JOINS], capture_output=True, text=True, timeout=60,
                          check=False, env={"NOVA_CONCURRENCY": mode, "PYTHONPATH": ":".join(sys.path)})
    assert done.stdout == f"{mode}\n", done.stderr


SWITCHES = """
import sys
from nova import concurrency

concurrency.patch("threads")
print(sys.getswitchinterval() == concurrency.SWITCH_S < 0.005)
"""


def test_thread_when_another_computes_then_it_has_the_interpreter_sooner_than_python_gives_it() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SWITCHES], capture_output=True, text=True, timeout=60,
                          check=False, env={"PYTHONPATH": ":".join(sys.path)})
    assert done.stdout == "True\n", done.stderr


def test_call_when_many_that_last_are_under_way_then_it_does_not_wait_for_them():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", MANY_THAT_LAST], capture_output=True, text=True,
                          timeout=60, check=False,
                          env={"NOVA_CONCURRENCY": "eventlet", "PYTHONPATH": ":".join(sys.path)})
    assert done.stdout == "done 'as it was'\n", done.stderr


@pytest.mark.parametrize("program", ["nova.manage.main", "nova.manage.status", "nova.cmd.compute",
                                     "nova.cmd.scheduler"])
def test_program_when_it_is_run_by_hand_then_no_librarys_notice_stands_above_its_words(program: str) -> None:
    code = f"import {program}, eventlet, oslo_service.backend._eventlet.loopingcall"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and "deprecated" not in ended.stderr, ended.stderr
