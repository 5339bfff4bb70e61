"""Incidents of a real stack without GPU: what is done to it, what is true of it, and how it is recorded."""
