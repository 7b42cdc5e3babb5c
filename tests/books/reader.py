"""Somebody who does what a page says, block by block, on machines that are made for it."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.books import page
from tests.fresh.machine import Machine, Said

STEP_S, READY_S = 900.0, 90.0
#: What a reader sees on a machine and a test has to bring: an answer to apt's question, and a kernel that says what is
#: built into it.
LIKE_A_MACHINE = """
echo 'APT::Get::Assume-Yes "true";' > /etc/apt/apt.conf.d/90reader
modules=/lib/modules/$(uname -r)
mkdir -p $modules
echo kernel/net/bridge/br_netfilter.ko > $modules/modules.builtin
: > $modules/modules.order
"""


def well(*warned: str) -> str:
    """A command that succeeds where the doctor has nothing to say, but for checks that have to warn on such a machine.
    """
    return ("{ nova-manage doctor >/tmp/doctor || [ $? = 1 ]; } && "
            f"! grep ' warning ' /tmp/doctor | grep -Ev '^({'|'.join(warned)}) '")


class Reader:
    """Somebody who does what the page says, and remembers what it printed."""

    def __init__(self, machines: Mapping[str, Machine], addresses: Mapping[str, str],
                 places: Mapping[str, Sequence[str]], env: Mapping[str, str] | None = None,
                 warned: Sequence[str] = ()) -> None:
        """``places``: for whom a block is -> the names of the machines where it is done. ``env``: of a controller's
        shell. ``warned``: checks of the doctor's that have to warn on these machines. The machine's own address is
        THIS_ADDRESS, and a compute host's own words are in place of compute1's."""
        self.machines, self.addresses, self.places, self.env = machines, addresses, places, env or {}
        self.words = {f"{name.upper()}_ADDRESS": address for name, address in addresses.items()}
        self.warned = warned
        self.seconds: dict[str, float] = {}

    def does(self, block: page.Block) -> None:
        """On each machine that the block is for."""
        for name in self.places[block.machines]:
            self.words["THIS_ADDRESS"] = self.addresses[name]
            text = block.text if not name.startswith("compute") else self._for(name, block.text)
            if block.file:
                self._write(name, block.file, self._own(text))
            else:
                self._run(block.section, name, self._own(text))

    def _for(self, name: str, text: str) -> str:
        return text.replace("compute1", name).replace("COMPUTE1", name.upper())

    def _own(self, text: str) -> str:
        for word in page.WORD.findall(text):
            if word.endswith("PASSWORD"):
                self.words.setdefault(word, secrets.token_hex(8))
        mine = page.WORD.sub(lambda found: self.words.get(found[0], found[0]), text)
        return mine.replace("nova-manage doctor", well(*self.warned)) if self.warned else mine

    def _write(self, name: str, path: str, text: str) -> None:
        file = Path(f"/proc/{self.machines[name].leader}/root{path}")
        file.write_text(text + "\n")

    def _run(self, section: str, name: str, text: str) -> None:
        """All of a block's commands in one shell, which stops at the first that fails. A comment with a word in
        capitals behind a command names what it prints."""
        for line in self._pieces(text):
            said = self.said(name, line)
            self.seconds[section] = self.seconds.get(section, 0) + said.seconds
            assert said.status == 0, f"{section}, on {name}: {line}\nended with {said.status}\n{said.last_words}"
            if word := re.search(rf"#.*?({page.WORD.pattern})", line):
                self.words[word[1]] = next(one for one in said.text.split("\n") if re.fullmatch(r"\S+", one))

    @staticmethod
    def _pieces(text: str) -> list[str]:
        """A block whose commands print what is needed later is done line by line."""
        lines = text.split("\n")
        return lines if any(re.search(rf"#.*?{page.WORD.pattern}", line) for line in lines) else [f"set -e\n{text}"]

    def said(self, name: str, command: str) -> Said:
        exports = "".join(f"export {key}={value}\n" for key, value in self.env.items()
                          if name.startswith("controller"))
        return self.machines[name].run(f"export DEBIAN_FRONTEND=noninteractive\n{exports}{command}", STEP_S)


def wait_for(machine: Machine, what: str, command: str, words: str, seconds: float = READY_S) -> str:
    """What the command prints, once it prints the words."""
    until = time.monotonic() + seconds
    while True:
        said = machine.run(command, 60)
        if re.search(words, said.text):
            return said.text
        assert time.monotonic() < until, f"{what}: {said.last_words}"
        time.sleep(1)
