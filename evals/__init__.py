"""Offline evaluation on recorded incidents."""
