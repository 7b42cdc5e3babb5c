"""The runner of programs, the real one, in green threads and in native ones."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from functools import cache

import pytest

from nova import concurrency, errors
from nova.concurrency import MODES
from nova.privileged.runner import PrivateRunner, SystemRunner
from tests.fakes.commands_in_mode import TIMEOUT_S


@cache
def outcomes(mode: str, folder: str) -> dict[str, list]:
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "tests.fakes.commands_in_mode", mode, folder],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("programs"))


ENDS = {
    "output": ("", "Completed(code=0, stdout='out\\n', stderr='err\\n')"),
    "input": ("", "400000"),
    "no input": ("", ""),
    "ends badly": ("CommandFailed", "why"),
    "bad end expected": ("", "3"),
    "too slow": ("CommandTooSlow", "it took longer than 0.3 s"),
    "slow child": ("CommandTooSlow", "it took longer than 0.3 s"),
    "ignores SIGTERM": ("CommandTooSlow", "it took longer than 0.3 s"),
    "signal": ("CommandFailed", "it was ended by SIGKILL"),
    "signal without a name": ("CommandFailed", "it was ended by signal 40"),
    "interrupted": ("", "ended"),
    "flood": ("CommandFailed", "it wrote more than 16 MB"),
    "quick flood": ("CommandFailed", "it wrote more than 16 MB"),
    "grandchild": ("", "left"),
    "missing": ("CommandFailed", "no-such-program is not installed"),
    "not executable": ("CommandFailed", "it may not be executed"),
    "no program": ("CommandFailed", "it is not an executable for this machine"),
    "null byte": ("CommandFailed", "embedded null byte"),
    "binary output": ("", "\N{REPLACEMENT CHARACTER}"),
    "conversation": ("", "hello\n"),
    "conversation begun late": ("", "hello\n"),
    "conversation hangs": ("", ""),
    "conversation with a dead program": ("", "BrokenPipeError"),
    "conversation missing": ("CommandFailed", "no-such-program is not installed"),
    "full process table": ("CommandFailed", "the system cannot start more processes"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", ENDS)
def test_program_when_it_ends_in_any_way_then_both_modes_say_the_same(mode, case, folder):
    error, said, seconds = outcomes(mode, folder)[case]
    expected, words = ENDS[case]
    assert error == expected, said
    assert words in said
    assert seconds < TIMEOUT_S + 5


@pytest.mark.parametrize(("runner", "mode"), [(PrivateRunner, 0o600), (SystemRunner, 0o644)])
def test_file_when_a_program_makes_it_then_the_private_runners_is_for_nobody_else(tmp_path, runner, mode):
    before = os.umask(0o022)
    try:
        runner(20).run(["touch", str(tmp_path / "made")])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == mode


@pytest.mark.parametrize("runner, ends", [(PrivateRunner, True), (SystemRunner, False)])
def test_program_when_its_work_is_not_wanted_any_more_then_a_copy_breaks_off_and_others_run_on(runner, ends, tmp_path):
    asked = []

    def check():
        asked.append(True)
        if len(asked) > 2:
            raise errors.host.OrderStopped(kind="fetch", uuid="u")
    argv = ["sh", "-c", f"sleep 0.4; touch {tmp_path}/done"]
    with concurrency.cancellable(check):
        if ends:
            with pytest.raises(errors.Overtaken):
                runner(5).run(argv)
        else:
            runner(5).run(argv)
    time.sleep(0.6)
    assert (tmp_path / "done").exists() is not ends
    runner(5).run(argv)
    assert (tmp_path / "done").exists(), "outside of the block nobody asks"
