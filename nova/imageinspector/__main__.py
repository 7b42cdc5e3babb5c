"""``python -m nova.imageinspector FILE``: what the file is, as JSON on standard output."""

import sys

import msgspec

from nova.imageinspector import inspect

sys.stdout.buffer.write(msgspec.json.encode(inspect(sys.argv[1])))
