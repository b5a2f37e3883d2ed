"""The command `inferslo`, also as `python -m inferslo.sidecar`."""

from __future__ import annotations


def main() -> int:
    """Runs the command line; Ctrl-C is no traceback, also while modules are still imported."""
    try:
        from .cli import main as command

        return command()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
