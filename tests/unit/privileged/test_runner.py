"""The runner of programs, the real one, in green threads and in native ones."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

import nova
from nova import concurrency, errors
from nova.concurrency import MODES
from nova.privileged.runner import PrivateRunner, SystemRunner
from tests.fakes.commands_in_mode import TIMEOUT_S

TOP = Path(nova.__file__).parent


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
    "no program": ("CommandFailed", "it is no program of this machine"),
    "null byte": ("CommandFailed", "embedded null byte"),
    "binary output": ("", "\N{REPLACEMENT CHARACTER}"),
    "conversation": ("", "hello\n"),
    "conversation begun late": ("", "hello\n"),
    "conversation hangs": ("", ""),
    "conversation with a dead program": ("", "BrokenPipeError"),
    "conversation missing": ("CommandFailed", "no-such-program is not installed"),
    "full process table": ("CommandFailed", "the system can start no more processes"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", ENDS)
def test_program_when_it_ends_in_any_way_then_both_modes_say_the_same(mode, case, folder):
    error, said, seconds = outcomes(mode, folder)[case]
    expected, words = ENDS[case]
    assert error == expected, said
    assert words in said
    assert seconds < TIMEOUT_S + 5


COPIES = """
import sys
from nova import concurrency
concurrency.patch("eventlet")
from eventlet import patcher
import queue
sound = set()  # copies there are, but what is raised is the real one
try:
    full = queue.Queue(1)
    full.put_nowait(1)
    full.put_nowait(2)
except queue.Full:
    sound.add("queue.Full")
for name in list(sys.modules):
    if patcher.is_monkey_patched(name) or name in ("subprocess", "selectors", "queue", "threading", "socket", "ssl"):
        copy, real = patcher.original(name), sys.modules[name]
        for word, found in vars(copy).items():
            is_error = isinstance(found, type) and issubclass(found, BaseException)
            if is_error and found is not getattr(real, word, 0) and f"{name}.{word}" not in sound:
                print(f"{name}.{word}")
"""


@cache
def replaced() -> frozenset[str]:
    """Exception classes that the green modules raise in a copy of their own, as ``module.Class``."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", COPIES], capture_output=True, text=True, timeout=60,
                          check=False, env={"NOVA_CONCURRENCY": "eventlet", "PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 0, done.stderr
    return frozenset(done.stdout.split())


def caught(source: str) -> list[str]:
    """What a module's ``except`` clauses and ``contextlib.suppress`` name, as ``module.Class``."""
    tree = ast.parse(source)
    names = {alias.asname or alias.name: alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
             for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}
    wanted = [node.type for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.type]
    wanted += [argument for node in ast.walk(tree) if isinstance(node, ast.Call)
               and ast.unparse(node.func).endswith("suppress") for argument in node.args]
    found = [ast.unparse(inner) for node in wanted for inner in (node.elts if isinstance(node, ast.Tuple) else [node])]
    return [".".join([names.get(first, first), *rest]) for first, *rest in (name.split(".") for name in found)]


def test_classes_that_patching_replaces_then_the_time_out_of_programs_is_one_of_them():
    assert "subprocess.TimeoutExpired" in replaced()


@pytest.mark.parametrize("clause", [
    "except subprocess.TimeoutExpired:", "except (OSError, subprocess.SubprocessError):", "except TimeoutExpired:"])
def test_clause_when_it_names_a_replaced_class_then_the_check_finds_it(clause):
    source = f"import subprocess\nfrom subprocess import TimeoutExpired\ntry:\n    pass\n{clause}\n    pass\n"
    assert replaced() & set(caught(source))


def test_nova_then_no_clause_names_a_class_that_green_threads_replace():
    wrong = {str(path.relative_to(TOP)): names for path in TOP.rglob("*.py")
             if (names := replaced() & set(caught(path.read_text())))}
    assert wrong == {}


def test_nova_then_only_the_runner_runs_programs():
    users = {str(path.relative_to(TOP)) for path in TOP.rglob("*.py")
             if any(alias.name.split(".")[0] == "subprocess" for node in ast.walk(ast.parse(path.read_text()))
                    if isinstance(node, ast.Import) for alias in node.names)
             or any(isinstance(node, ast.ImportFrom) and node.module == "subprocess"
                    for node in ast.walk(ast.parse(path.read_text())))}
    assert users == {"privileged/runner.py"}


@pytest.mark.parametrize("runner, ends", [(PrivateRunner, True), (SystemRunner, False)])
def test_program_when_its_work_is_not_wanted_any_more_then_a_copy_breaks_off_and_others_run_on(runner, ends, tmp_path):
    asked = []

    def check():
        asked.append(True)
        if len(asked) > 2:
            raise errors.host.OrderStopped(kind="fetch", uuid="u")
    argv = ["sh", "-c", f"sleep 0.4; touch {tmp_path}/done"]
    with concurrency.while_wanted(check):
        if ends:
            with pytest.raises(errors.Overtaken):
                runner(5).run(argv)
        else:
            runner(5).run(argv)
    time.sleep(0.6)
    assert (tmp_path / "done").exists() is not ends
    runner(5).run(argv)
    assert (tmp_path / "done").exists(), "outside of the block nobody asks"
