"""The parts of the compute API outside the core."""

from __future__ import annotations

from nova.api.extras import Extras
from nova.legacy.cloudpipe import routes as cloudpipe
from nova.legacy.xml.formats import XmlAndJson

EXTRAS = Extras(formats=XmlAndJson(), networks=cloudpipe.ROUTES)
