"""The APIs as WSGI applications for other servers: uWSGI, gunicorn, mod_wsgi.

They are ``nova.wsgi.osapi_compute:application``, ``nova.wsgi.metadata:application`` and
``nova.wsgi.placement:application``; other releases have the same names for the first two. An import reads the
configuration; connections are opened at a worker's first request.
"""
