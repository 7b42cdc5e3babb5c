"""How a daemon that does not start is shown."""

from __future__ import annotations

from stacklib.control import LINE_LENGTH, last_lines


def test_last_lines_when_a_traceback_is_long_then_its_end_is_shown_and_the_last_word_whole(tmp_path):
    log = tmp_path / "nova-compute.log"
    cause = "subprocess.TimeoutExpired: after 5 seconds"
    last = "2026 ERROR nova.service [-] nova-compute cannot start: " + "the host is so and so, " * 40 + "mend it"
    log.write_text("2026 INFO short\n" + "2026 ERROR Traceback | " + "File x | " * 200 + cause + "\n" + last + "\n")
    short, traceback, whole = last_lines(log).splitlines()
    assert short == "  2026 INFO short"
    assert traceback.startswith("  2026 ERROR Traceback") and traceback.endswith(cause)
    assert len(traceback) < LINE_LENGTH + 20
    assert whole == f"  {last}"


def test_last_lines_when_there_is_no_log_then_it_says_so(tmp_path):
    assert last_lines(tmp_path / "none") == "  (no log)"
