"""Kernels of the simulation: plain functions over arrays, run as Python or compiled by numba (see `kernels`)."""
