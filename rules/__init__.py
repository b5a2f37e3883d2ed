"""Compiles an SLO file into Prometheus rules, the Alertmanager tree, and their tests."""
