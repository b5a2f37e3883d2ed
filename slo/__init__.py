"""Objectives as data, and the maths of SLOs."""
