"""A Horizon for any cloud: its files, its command, and the static files that all sites share.

A dashboard needs the files that ``write`` creates for a ``Site``, its ``command``, and the Python environment.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from . import gunicorn
from .layout import write_private

DJANGO = {"DJANGO_SETTINGS_MODULE": "openstack_dashboard.settings", "PYTHONWARNINGS": "ignore"}
# No web server is in front of it to serve the scripts and styles that its pages need.
APPLICATION = """\
from django.conf import settings
from openstack_dashboard.wsgi import application as pages
from whitenoise import WhiteNoise

application = WhiteNoise(pages, root=settings.STATIC_ROOT, prefix=settings.STATIC_URL, max_age=3600)
"""
CACHE = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
SESSIONS = "django.contrib.sessions.backends.signed_cookies"


@dataclass(frozen=True, kw_only=True)
class Site:
    """A dashboard of one cloud. ``venv``: the environment with Horizon; ``folder``: the directory of the site's files;
    ``keystone``: the cloud's URL with its version, as ``http://127.0.0.1:5000/v3``; ``secret``: the key that signs
    users' sessions."""

    venv: Path
    folder: Path
    keystone: str
    region: str
    address: str
    port: int
    secret: str

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}/"

    @property
    def static(self) -> Path:
        """Directory of the static files, in the environment and not in the site: building them takes half a minute."""
        return self.venv / "static"


def settings(site: Site) -> str:
    """Return the module that Horizon imports as ``local.local_settings``."""
    return f"""\
DEBUG = False
ALLOWED_HOSTS = {[site.address, "localhost"]!r}
SECRET_KEY = {site.secret!r}
OPENSTACK_KEYSTONE_URL = {site.keystone!r}
AVAILABLE_REGIONS = [({site.keystone!r}, {site.region!r})]
SESSION_ENGINE = {SESSIONS!r}
CACHES = {CACHE!r}
STATIC_ROOT = {str(site.static)!r}
COMPRESS_OFFLINE = True
CONSOLE_TYPE = "AUTO"
TIME_ZONE = "UTC"
LOGGING = {{
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {{"line": {{"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}}}},
    "handlers": {{"log": {{"class": "logging.StreamHandler", "formatter": "line"}}}},
    "root": {{"handlers": ["log"], "level": "WARNING"}},
    "loggers": {{"urllib3.connectionpool": {{"level": "ERROR"}}}},
}}
"""


def write(site: Site, owner: str | None = None) -> tuple[Path, ...]:
    """Write the site's files, which only ``owner`` can read. (The empty one makes a package that shadows Horizon's.)"""
    server = gunicorn.text("dashboard:application", site.address, site.port) + f'pythonpath = "{site.folder}"\n'
    texts = {
        site.folder / "local" / "__init__.py": "",
        site.folder / "local" / "local_settings.py": settings(site),
        site.folder / "dashboard.py": APPLICATION,
        site.folder / "gunicorn.conf.py": server,
    }
    for path, text in texts.items():
        write_private(path, text, owner=owner)
    return tuple(texts)


def command(site: Site) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command that serves a written site, and the variables that its environment must have."""
    words = (str(site.venv / "bin" / "gunicorn"), "--config", str(site.folder / "gunicorn.conf.py"))
    return words, {**DJANGO, "PYTHONDONTWRITEBYTECODE": "1"}


# --- static files ----------------------------------------------------------------------------------------------------


def static_digest() -> str:
    """Return a digest of the settings that the static files are built with; the environment is not part of it."""
    return hashlib.sha256(settings(_nobodys(Path("/"), Path("/"))).encode()).hexdigest()[:16]


def static_commands(venv: Path, folder: Path) -> tuple[list[list[str]], dict[str, str]]:
    """Return the commands that build the static files, and their environment. ``folder``: for temporary files."""
    write(_nobodys(venv, folder))
    django = [str(venv / "bin" / "python"), "-m", "django"]
    steps = (["collectstatic", "--noinput"], ["compress", "--force"])
    return [[*django, *step, "--verbosity=0"] for step in steps], {**DJANGO, "PYTHONPATH": str(folder)}


def _nobodys(venv: Path, folder: Path) -> Site:
    return Site(venv=venv, folder=folder, keystone="http://127.0.0.1:5000/v3", region="RegionOne",
                address="127.0.0.1", port=8000, secret="of nobody, who serves nothing")  # fmt: skip
