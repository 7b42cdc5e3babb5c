"""Run programs with the real runner in a process with native or green threads. Prints a JSON object: case -> ``[class
of the error or "", message or output, seconds]``.

    python -m tests.fakes.commands_in_mode eventlet|threads FOLDER
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

TIMEOUT_S = 0.3
NOBODY = 65534


def main(mode: str, folder: str) -> None:
    warnings.simplefilter("ignore")
    os.environ["NOVA_CONCURRENCY"] = mode
    from nova import concurrency

    assert concurrency.patch() == mode
    print(json.dumps({name: outcome(case) for name, case in cases(Path(folder)).items()}), flush=True)


def outcome(case: Callable[[], Any]) -> tuple[str, str, float]:
    from nova.errors import NovaError

    started = time.monotonic()
    try:
        error, said = "", str(case())
    except NovaError as failure:
        error, said = type(failure).__name__, failure.message
    except Exception as failure:  # not handled by the runner: the test reports it
        error, said = f"raw {type(failure).__module__}.{type(failure).__name__}", str(failure)
    return error, said, time.monotonic() - started


def cases(folder: Path) -> dict[str, Callable[[], Any]]:
    from nova.privileged.runner import SystemRunner

    patient, hasty = SystemRunner(20.0), SystemRunner(TIMEOUT_S)
    text, empty = folder / "not-executable", folder / "no-program"
    text.write_text("text")
    empty.write_bytes(b"\x7fELF nothing")
    empty.chmod(0o755)
    return {
        "output": lambda: patient.run(["sh", "-c", "echo out; echo err >&2"]),
        "input": lambda: patient.run(["wc", "-c"], stdin="é" * 200_000).stdout.strip(),
        "no input": lambda: patient.run(["cat"]).stdout,
        "ends badly": lambda: patient.run(["sh", "-c", "echo why >&2; exit 3"]),
        "bad end expected": lambda: patient.run(["sh", "-c", "exit 3"], ok=(3,)).code,
        "too slow": lambda: hasty.run(["sleep", "20"]),
        "slow child": lambda: hasty.run(["sh", "-c", "sleep 20; true"]),
        "ignores SIGTERM": lambda: hasty.run(["sh", "-c", "trap '' TERM; sleep 20; sleep 20"]),
        "signal": lambda: patient.run(["sh", "-c", "kill -9 $$"]),
        "signal without a name": lambda: patient.run(["sh", "-c", "kill -40 $$"]),
        "interrupted": lambda: _interrupted(folder),
        "flood": lambda: patient.run(["yes"]),
        "quick flood": lambda: patient.run(["head", "-c", str(17 << 20), "/dev/zero"]).code,
        "grandchild": lambda: patient.run(["sh", "-c", "sleep 20 & echo left"]).stdout.strip(),
        "missing": lambda: patient.run(["no-such-program"]),
        "not executable": lambda: patient.run([str(text)]),
        "no program": lambda: patient.run([str(empty)]),
        "null byte": lambda: patient.run(["echo", "a\0b"]),
        "binary output": lambda: patient.run(["printf", r"\377"]).stdout,
        "conversation": lambda: _talk(["cat"]),
        "conversation begun late": lambda: _talk(["cat"], 0.1),
        "conversation hangs": lambda: _talk(["sleep", "20"]),
        "conversation with a dead program": _talk_to_the_dead,
        "conversation missing": lambda: _talk(["no-such-program"]),
        "full process table": lambda: _without_processes(lambda: patient.run(["true"])),  # last: it drops privileges
    }


def _interrupted(folder: Path) -> str:
    """Return whether the program keeps running when its waiting caller is interrupted."""
    from nova import concurrency
    from nova.privileged.runner import SystemRunner

    pid, really_sleep = folder / "interrupted.pid", concurrency.sleep

    def sleep(seconds: float) -> None:
        if pid.exists() and pid.read_text().strip():
            concurrency.sleep = really_sleep
            raise KeyboardInterrupt
        really_sleep(seconds)

    concurrency.sleep = sleep
    try:
        SystemRunner(20.0).run(["sh", "-c", f"echo $$ > {pid}; sleep 20; sleep 20"])
    except KeyboardInterrupt:
        return "lives on" if os.path.exists(f"/proc/{int(pid.read_text())}") else "ended"
    return "was not interrupted"


def _talk(argv: list[str], later_s: float = 0.0) -> str:
    from nova import concurrency
    from nova.privileged.runner import conversation

    with conversation(argv, TIMEOUT_S) as talk:
        concurrency.sleep(later_s)
        talk.say(b"hello\n")
        return talk.hear().decode()


def _talk_to_the_dead() -> str:
    from nova import concurrency
    from nova.privileged.runner import conversation

    with conversation(["true"], TIMEOUT_S) as talk:
        while talk.process.poll() is None:
            concurrency.sleep(0.001)
        try:
            for _ in range(3):
                talk.say(b"hello\n")
        except OSError as error:
            return type(error).__name__
        return talk.hear().decode()


def _without_processes(case: Callable[[], Any]) -> Any:
    if os.getuid() == 0:
        os.setuid(NOBODY)  # root may always start more
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    return case()


if __name__ == "__main__":
    main(*sys.argv[1:])
