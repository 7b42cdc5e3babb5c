"""The APIs as WSGI applications for servers that are not ours: uWSGI, gunicorn, mod_wsgi.

``nova.wsgi.osapi_compute:application``, ``nova.wsgi.metadata:application`` and ``nova.wsgi.placement:application``,
the first two as other releases of the field name them. Importing one reads the configuration; nothing is connected
before a worker's first request.
"""
