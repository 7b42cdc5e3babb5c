"""Check of KVM on this machine, by nova's own code, so that the stack and nova-compute always agree."""

from __future__ import annotations

import logging
import sys

from .layout import CHECKOUT, Layout

sys.path.insert(1, str(CHECKOUT))  # before a nova that the machine may have installed

from nova.privileged import kvm  # noqa: E402
from nova.privileged.runner import SystemRunner  # noqa: E402

SECONDS = 5.0
ARCHITECTURE = "x86_64"
logging.getLogger("nova").addHandler(logging.NullHandler())  # the stage prints the result


def answer(layout: Layout) -> kvm.KvmState:
    """Return the state of KVM. The result is stored where nova-compute reads it: the test runs once for each boot."""
    return kvm.answer(ARCHITECTURE, layout.nova_state(layout.controller_host), SystemRunner(SECONDS))


def must_be_hidden(layout: Layout) -> bool:
    """Return whether /dev/kvm exists, but must not be given to guests."""
    return answer(layout) not in (kvm.KvmState.WORKS, kvm.KvmState.ABSENT)


def sentence(layout: Layout) -> str:
    """Return the state of KVM as a sentence for the operator."""
    return kvm.SENTENCES[answer(layout)]
