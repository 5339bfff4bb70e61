"""Envelopes: a person's leave to move named settings within bounds, at a rate, until a moment.

Inside one the loop acts every few seconds without asking. Its former values are stored before the first move, it is
judged as a whole, and unless it is measured to be an improvement they are written back.
"""
