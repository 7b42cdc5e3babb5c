"""The page of RPC contracts, from ``nova.rpc.contracts``."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

from nova.conf import base
from nova.rpc import bus, contracts
from nova.rpc.bus import FIRST_PART
from nova.rpc.interface import Contract, Method
from tests.docs_parts import rst

INTRO = """\
RPC calls between daemons. A contract is a class of annotated methods in ``nova/rpc/contracts/``; clients are made from
it, and a server whose signatures differ from it does not start. The types are in ``nova/model/``.

*call* waits for the answer; *cast* does not; *fanout* reaches every server of the topic.
"""

PATIENCE = """\
Timeouts are classes. SHORT is {short} s. NORMAL is ``rpc_response_timeout`` (60 s unless set). LONG is
``long_rpc_timeout`` ({long} s unless set), with heartbeats: a peer that is silent for ``long_rpc_silence``
({silence} s unless set) is given up. A NORMAL call that only reads is sent a second time after {part:.0%} of its
timeout, so that a killed server delays its callers little. The total timeout is the same. Other calls are sent once.
"""


def interfaces() -> list[type[Contract]]:
    """Return all contracts, by topic."""
    for module in pkgutil.iter_modules(contracts.__path__):
        importlib.import_module(f"{contracts.__name__}.{module.name}")
    ours = [cls for cls in Contract.__subclasses__() if cls.__module__.startswith(contracts.__name__ + ".")]
    return sorted(ours, key=lambda cls: cls.topic)


def page() -> str:
    defaults = {option.name: option.default for option in base.OPTS}
    patience = PATIENCE.format(short=bus.SHORT_S, long=defaults["long_rpc_timeout"],
                               silence=defaults["long_rpc_silence"], part=FIRST_PART)
    return "\n".join([rst.MARK, rst.heading("RPC contracts"), INTRO, patience, *map(_contract, interfaces())])


def _contract(contract: type[Contract]) -> str:
    parts = [rst.heading(f"{contract.__name__} {contract.version}", "-")]
    module = (inspect.getmodule(contract).__doc__ or "").strip()  # type: ignore[union-attr]
    parts.append(rst.paragraph(rst.plain(f"{module} {inspect.cleandoc(contract.__doc__ or '')}")) + "\n")
    one = f"one server of it, the parameter {rst.literal(contract.addressed_by)} says which" \
        if contract.addressed_by else "any server of it"
    parts.append(f"Topic {rst.literal(contract.topic)}; a call goes to {one}.\n")
    parts += [_method(contract, method) for method in contract.methods.values()]
    return "\n".join(parts)


def _method(contract: type[Contract], method: Method) -> str:
    kind = "call" if method.wants_answer else "fanout cast" if method.fanout else "cast"
    marks = [kind, *([method.timeout.name] if method.wants_answer else []), f"since {method.since}"]
    marks += ["only reads"] if method.reads else []
    marks += ["arguments are never logged"] if method.sensitive else []
    text = " ".join(inspect.cleandoc(getattr(contract, method.name).__doc__ or "").split())
    described = rst.paragraph(f"*{', '.join(marks)}.* {rst.plain(text)}", "    ")
    return f"{rst.literal(method.name + _signature(method))}\n{described}\n"


def _signature(method: Method) -> str:
    """Return the signature of a method in the contract, without ``self``."""
    return re.sub(r"^\(self(, )?", "(", str(method.signature).replace("'", ""))
