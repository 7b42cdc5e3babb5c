"""Schemas: migration, backup and restore, and repair after a lost database."""
