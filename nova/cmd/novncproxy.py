"""nova-novncproxy: graphical consoles in browsers, over VNC."""

from nova.cmd import console_proxy


def main() -> int:
    """Run nova-novncproxy and return its exit code."""
    return console_proxy.main("nova-novncproxy")


if __name__ == "__main__":
    raise SystemExit(main())
