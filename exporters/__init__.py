"""Reads the world: engines, gateways, GPU, host. One file per source."""
