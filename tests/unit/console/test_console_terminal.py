"""xterm.js for browsers: as it is installed, or put together of modules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nova.console import terminal

DEBIAN = Path("/usr/share/nodejs/xterm/lib/public/Terminal.js")


def test_script_when_it_is_whole_then_it_is_served_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "css").mkdir()
    (tmp_path / "lib" / "xterm.js").write_text("window.Terminal = 1;")
    (tmp_path / "css" / "xterm.css").write_text(".xterm {}")
    assert terminal.script(str(tmp_path), "/none") == b"window.Terminal = 1;"
    assert terminal.style(str(tmp_path), "/none") == b".xterm {}"


def test_script_when_it_only_points_at_modules_then_they_are_put_together(tmp_path: Path) -> None:
    page, modules = tmp_path / "page", tmp_path / "modules"
    (modules / "public").mkdir(parents=True)
    page.mkdir()
    (page / "xterm.js").write_text('require("./public/Terminal")')
    (modules / "public" / "Terminal.js").write_text(
        'var T = require("../Core"); exports.Terminal = T.Core;\n//# sourceMappingURL=Terminal.js.map')
    (modules / "Core.js").write_text("var again = require('./public/Terminal'); exports.Core = 7;")
    made = terminal.script(str(page), str(modules)).decode()
    assert made.count("parts[") == 3 and 'get("Core")' in made and 'get("public/Terminal").Terminal' in made
    assert "require(" not in made and "sourceMappingURL" not in made


def test_nothing_installed_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(terminal.NoTerminal, match="node-xterm"):
        terminal.script(str(tmp_path), str(tmp_path))
    with pytest.raises(terminal.NoTerminal, match="libjs-xterm"):
        terminal.style(str(tmp_path), str(tmp_path))


def test_missing_module_is_named(tmp_path: Path) -> None:
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "Terminal.js").write_text('require("../Gone")')
    with pytest.raises(terminal.NoTerminal, match="Gone.js"):
        terminal.script(str(tmp_path), "/none")


@pytest.mark.skipif(not DEBIAN.exists(), reason="Debian's node-xterm is not installed")
def test_debians_modules_are_all_found() -> None:
    made = terminal.script("/usr/share/javascript/xterm").decode()
    named = set(re.findall(r'get\("([^"]+)"\)', made))
    assert named <= set(re.findall(r'^parts\["([^"]+)"\] =', made, re.M)) and len(named) > 30
