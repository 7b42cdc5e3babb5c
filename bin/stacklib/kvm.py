"""Does KVM work on this machine? Asked of nova itself: the stack and nova-compute never say different things."""

from __future__ import annotations

import logging
import sys

from .layout import CHECKOUT, Layout

sys.path.insert(1, str(CHECKOUT))  # before a nova that the machine may have installed

from nova.privileged import kvm  # noqa: E402
from nova.privileged.runner import SystemRunner  # noqa: E402

SECONDS = 5.0
ARCHITECTURE = "x86_64"
logging.getLogger("nova").addHandler(logging.NullHandler())  # the stage says it


def answer(layout: Layout) -> kvm.KvmState:
    """Kept where this machine's nova-compute looks for it: the trial runs once a boot."""
    return kvm.answer(ARCHITECTURE, layout.nova_state(layout.controller_host), SystemRunner(SECONDS))


def must_be_hidden(layout: Layout) -> bool:
    """Whether a /dev/kvm is there that guests must not be given."""
    return answer(layout) not in (kvm.KvmState.WORKS, kvm.KvmState.ABSENT)


def sentence(layout: Layout) -> str:
    """For the operator."""
    return kvm.SENTENCES[answer(layout)]
