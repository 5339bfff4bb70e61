"""Command line and terminal views."""
