"""Typed decoding on native threads: msgspec resolves a type once, whoever decodes it first."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from nova import decoding

TOP = Path(__file__).resolve().parents[2]
#: Without the lock of nova/decoding.py this ends in a segmentation fault in its first rounds.
RACE = """
import sys
from nova import concurrency
concurrency.patch(sys.argv[1])
import msgspec
from nova import decoding
sys.setswitchinterval(1e-6)
native = concurrency.native_threading()

def new_types():
    class C(msgspec.Struct):
        a: int = 0
        b: str = "x"

    class B(msgspec.Struct):
        c: list[C] = []
        d: dict[str, C] = {}

    class A(msgspec.Struct):
        b: B
        c: C
        e: tuple[B, ...] = ()

    return A, B, C

decoders = {
    "msgpack": lambda value, kind: decoding.from_msgpack(msgspec.msgpack.encode(value), kind),
    "json": lambda value, kind: decoding.from_json(msgspec.json.encode(value), kind),
    "convert": lambda value, kind: decoding.convert(msgspec.to_builtins(value), kind),
}
right = []
for _ in range(100):
    A, B, C = new_types()
    value = A(b=B(c=[C()]), c=C(), e=(B(),))
    start = native.Barrier(6)

    def decode(name, kind, part):
        start.wait()
        right.append(decoders[name](part, kind) == part)

    threads = [native.Thread(target=decode, args=(name, *pair)) for name in decoders
               for pair in ((A, value), (B, value.b))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(len(right), all(right))
"""


@pytest.mark.parametrize("mode", ("threads", "eventlet"))
def test_types_when_native_threads_decode_them_first_at_once_then_all_get_values(mode):
    env = {name: value for name, value in os.environ.items() if name != "NOVA_CONCURRENCY"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", RACE, mode], env={**env, "PYTHONPATH": str(TOP)},
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-500:]}"
    assert done.stdout == "600 True\n"


def test_decoder_when_its_type_cannot_be_resolved_then_the_next_type_still_decodes():
    class Broken(msgspec.Struct):
        value: NoSuchName  # noqa: F821

    for _ in range(2):
        with pytest.raises(NameError):
            decoding.from_json(b"{}", Broken)
    assert decoding.from_json(b"[1, 2]", tuple[int, ...]) == (1, 2)


def test_decoder_of_one_kind_when_it_is_given_texts_then_it_decodes_and_checks_each():
    decode = decoding.json_decoder(tuple[int, ...])
    assert (decode("[1, 2]"), decode(b"[]")) == ((1, 2), ())
    with pytest.raises(msgspec.ValidationError):
        decode('["one"]')


def test_modules_when_they_decode_types_then_nova_decoding_does_it():
    found = [f"{path.relative_to(TOP)}:{node.lineno}" for path in sorted((TOP / "nova").rglob("*.py"))
             if path.name != "decoding.py" for node in ast.walk(ast.parse(path.read_text())) if _resolves_a_type(node)]
    assert found == []


def _resolves_a_type(node: ast.AST) -> bool:
    """Whether it is a call of msgspec that may resolve a Struct: a decoder with a type, or a conversion."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    words = ast.unparse(node.func)
    typed = any(keyword.arg == "type" for keyword in node.keywords) or len(node.args) > 1
    return (words.endswith(("json.Decoder", "msgpack.Decoder")) or words == "msgspec.convert"
            or words in ("msgspec.json.decode", "msgspec.msgpack.decode") and typed)


@pytest.mark.parametrize(("line", "resolves"), [
    ("msgspec.json.Decoder(kind)", True), ("msgspec.msgpack.decode(raw, type=kind)", True),
    ("msgspec.convert(value, kind)", True), ("msgspec.json.decode(raw)", False), ("msgspec.json.encode(raw)", False)])
def test_search_for_decoders_when_given_a_line_then_it_knows_which_resolve_a_type(line, resolves):
    assert _resolves_a_type(ast.parse(line, mode="eval").body) is resolves
