"""Words that only the libraries behind the checks use: no user is to read them."""

import re

from pydantic_core._pydantic_core import list_all_errors

_PYYAML = (
    "mapping values are not allowed", "sequence entries are not allowed", "could not find expected",
    "expected <", "expected '<", "but found", "but got", "cannot start any token", "codec can't",
    "unacceptable character", "unexpected end of stream", "chomping",
)  # fmt: skip
# Templates such as "Input should be greater than {gt}", of which the braces may hold anything.
_PYDANTIC = (
    ".*".join(map(re.escape, re.split(r"\{.*?\}", error["message_template_python"])))
    for error in list_all_errors()
    if error["type"] not in ("value_error", "assertion_error")
)
LIBRARY_TEXT = re.compile("|".join([*map(re.escape, _PYYAML), *_PYDANTIC]), re.IGNORECASE)
