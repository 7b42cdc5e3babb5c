"""What is done on a machine, and how it must end: in a cloud that answers, or in a line that says what to do.

Each story is given the machine and returns its end in a few words, for the table; it asserts what must hold.
"""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Callable

from stacklib.layout import PLAIN_STATE, PORTS, Choices, Layout
from stacklib.ports import wanted
from tests import sampling
from tests.fresh.machine import Machine, Said, kill

#: Without a hypervisor, and with one: then it ends with a guest that answers.
SMALL = "bin/stack up --driver fake --computes 1 --no-demo"
WHOLE = "bin/stack up"
UP_S, WHOLE_S = 1200, 1800  # with all packages to install, on a machine whose processors and disk others use, too
Story = Callable[[Machine], str]
LISTENER = """exec python3 -c "
import socket, time
s = socket.create_server(('{at}', {port}), family=socket.{family}, dualstack_ipv6=socket.{family} == socket.AF_INET6)
time.sleep(600)
" """
AT = (("127.0.0.1", "AF_INET"), ("0.0.0.0", "AF_INET"), ("::", "AF_INET6"))
MOMENTS = 10


# --- ends ------------------------------------------------------------------------------------------------------------


def up(machine: Machine, command: str = SMALL, seconds: float = UP_S) -> str:
    """It comes up, and it answers."""
    said = machine.run(command, seconds)
    assert said.status == 0, f"{command}: {said.status} after {said.seconds:.0f} s\n{said.last_words}"
    return answers(machine)


def answers(machine: Machine) -> str:
    """Every daemon is ready, and a client is told so by the API, by way of Keystone."""
    machine.ok("bin/stack status")
    told = machine.ok("bin/stack exec openstack compute service list -f value -c Binary -c State", 90)
    states = dict(line.split()[:2] for line in told.splitlines() if line.startswith("nova-"))
    assert states.get("nova-compute") == states.get("nova-conductor") == "up", told
    return "answers"


def refused(said: Said, *words: str) -> str:
    """One line says what is wrong, one below it what to do."""
    assert said.status == 1, f"{said.status} after {said.seconds:.0f} s\n{said.last_words}"
    assert "Traceback" not in said.text, said.last_words
    complaint = ("\n" + said.text).rpartition("\nstack: ")[2].strip()
    message, _, hint = complaint.partition("\n  -> ")
    assert message and hint, said.last_words
    missing = [word for word in words if not re.search(word, complaint)]
    assert not missing, f"it does not speak of {missing}: {complaint}"
    return message.splitlines()[0][:100]


# --- stories ---------------------------------------------------------------------------------------------------------


def small(machine: Machine) -> str:
    return up(machine)


def whole(machine: Machine) -> str:
    return up(machine, WHOLE, WHOLE_S)


def without_network(machine: Machine) -> str:
    """`install` has fetched all that `up` needs."""
    machine.ok("bin/stack install", WHOLE_S)
    machine.cut()
    return up(machine, WHOLE, WHOLE_S)


def by_units(machine: Machine) -> str:
    """Nova's daemons are systemd's; after a power cut the machine's own boot and `up` bring the cloud back."""
    up(machine)
    machine.ok("systemctl is-active nova-api nova-conductor nova-scheduler nova-compute")
    machine.power_cut()
    return f"{up(machine)}, and after a power cut"


def without_units(machine: Machine) -> str:
    up(machine)
    machine.power_cut()
    return f"{up(machine)}, and after a power cut"


def up_or_refused(command: str, seconds: float, *words: str) -> Story:
    def story(machine: Machine) -> str:
        said = machine.run(command, seconds)
        return refused(said, *words) if said.status else answers(machine)

    return story


def ports(machine: Machine) -> str:
    """One port after another is another program's: on one address, or on all."""
    names = sorted(wanted(Layout(PLAIN_STATE, Choices(driver="fake", demo=False))))
    for number, name in enumerate(names):
        port = PORTS[name]
        at, family = AT[number % 3]
        listener = machine.begin(LISTENER.format(at=at, port=port, family=family))
        machine.until_listens(port)
        refused(machine.run(SMALL, UP_S), rf"\b{port} \({name}\)")
        kill(listener)
    return f"{len(names)} ports refused; then {up(machine)}"


def port_after_power_cut(machine: Machine) -> str:
    """Files that tell of a running stack outlive it: they must not hide that another program has a port now."""
    up(machine)
    machine.power_cut()
    listener = machine.begin(LISTENER.format(at="127.0.0.1", port=PORTS["amqp"], family="AF_INET"))
    machine.until_listens(PORTS["amqp"])
    told = refused(machine.run(SMALL, UP_S), str(PORTS["amqp"]))
    kill(listener)
    return f"{told}; then {up(machine)}"


def disk_fills(machine: Machine) -> str:
    """Another program takes all that is left while `up` runs."""
    machine.begin("sleep 4; dd if=/dev/zero of=/var/fill bs=1M 2> /dev/null; sleep 600")
    told = refused(machine.run(SMALL, UP_S), "no space")
    machine.ok("rm /var/fill")
    return f"{told}; then {up(machine)}"


def epmd_on_ipv6(machine: Machine) -> str:
    """Erlang's port mapper listens on ::1 too, wherever it is told to, and ends when it finds another one there."""
    listener = machine.begin(LISTENER.format(at="::1", port=PORTS["epmd"], family="AF_INET6"))
    machine.until_listens(PORTS["epmd"])
    told = refused(machine.run(SMALL, UP_S), rf"\b{PORTS['epmd']} \(epmd\)")
    kill(listener)
    return f"{told}; then {up(machine)}"


def killed(number: int, begin: float, end: float) -> Story:
    """`up` is killed at a random moment: it alone, it and all that it started, or the whole machine."""

    def story(machine: Machine) -> str:
        moment = random.Random(f"{sampling.SEED} {number}").uniform(begin, end)
        first = machine.begin(SMALL)
        time.sleep(moment)
        how = ("alone", "with its children", "with the machine")[number % 3]
        if number % 3 == 0:
            machine.kill_inside("bin/stack up")
        elif number % 3 == 1:
            kill(first)
        else:
            machine.power_cut()
        words = up(machine, SMALL, WHOLE_S)
        kill(first)
        return f"killed {how} after {moment:.1f} s; then {words}"

    return story


def mirror_away(machine: Machine) -> str:
    """No network at all when `up` begins; it is said again when that is back."""
    machine.cut()
    said = machine.run(SMALL, 300)
    told = refused(said, "network|mirror")
    machine.mend()
    return f"{told} ({said.seconds:.0f} s); then {up(machine, SMALL, WHOLE_S)}"


def mirror_back_soon(machine: Machine) -> str:
    machine.cut()
    process = machine.begin(f"{SMALL} > /var/log/up.log 2>&1")
    time.sleep(15)
    machine.mend()
    status = process.wait(WHOLE_S)
    said = Said(status, machine.ok("cat /var/log/up.log"), 0)
    return answers(machine) if status == 0 else f"{refused(said)}; then {up(machine, SMALL, WHOLE_S)}"


def mirror_hangs(machine: Machine) -> str:
    """Packets vanish: that must end, too."""
    machine.way_out.send_signal(signal.SIGSTOP)
    said = machine.run(SMALL, 600)
    machine.way_out.send_signal(signal.SIGCONT)
    told = refused(said, "network|mirror")
    return f"{told} ({said.seconds:.0f} s); then {up(machine, SMALL, WHOLE_S)}"


def tests(parts: str) -> Story:
    """These parts of ``bin/test``, as CI runs them."""

    def story(machine: Machine) -> str:
        said = machine.run(f"bin/test {parts}", 3000)
        assert said.status == 0, said.last_words
        return said.text.strip().splitlines()[-1]

    return story
