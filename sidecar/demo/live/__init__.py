"""The simulated service played live: `inferslo up --demo`.

Simulated time follows the clock, engines answer over HTTP, and the real sidecar watches them. Only
the world is simulated, and everything that comes out of it says so.
"""
