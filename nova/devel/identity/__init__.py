"""Small in-memory Keystone: tokens, users, projects, roles and credentials."""
