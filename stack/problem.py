"""What pydantic found wrong with a document or an argument, in one line that may be shown to anybody."""

from pydantic import ValidationError

from stack.redaction import SECRET_NAME, redacted

FOUND_MAX = 60


def first_problem(error: ValidationError) -> str:
    """The first of the problems, with its field and the plain value that was found; never a secret or a whole table."""
    problem = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in problem["loc"])
    found = _found(problem["input"]) if "found" not in problem["msg"] and not SECRET_NAME.search(field) else ""
    return " ".join((f"{field}: {problem['msg']}{found}" if field else str(problem["msg"])).split())


def _found(value: object) -> str:
    if not isinstance(value, (str, int, float)):
        return ""
    text = redacted(repr(value))
    return f", found {text if len(text) <= FOUND_MAX else text[: FOUND_MAX - 3] + '...'}"
