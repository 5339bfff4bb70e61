"""Measured benchmark rows against simulated ones."""
