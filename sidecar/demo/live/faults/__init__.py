"""Faults that the demo shows and the catalogue has not, in its form."""
