"""Exit codes of every command; docs/cli.md says what each means."""

OK, PROBLEM, USAGE, FATAL = 0, 1, 2, 3
