import pytest

import prompts

NAMES = {
    "system": frozenset(),
    "plan": frozenset(
        {
            "max_calls",
            "max_tokens",
            "max_seconds",
            "mode",
            "slo",
            "enabled",
            "window",
            "fleet",
            "diagnosis",
            "missing",
            "memory",
        }
    ),
    "chat": frozenset({"role", "slo", "mode", "enabled", "window", "fleet", "diagnosis", "missing", "memory"}),
}


@pytest.mark.parametrize(("name", "wanted"), NAMES.items())
def test_the_placeholders_are_those_the_code_fills(name, wanted):
    assert prompts.placeholders(name) == wanted
    rendered = prompts.render(name, **dict.fromkeys(wanted, "VALUE"))
    assert "{" not in rendered and "}" not in rendered


def test_a_value_with_braces_is_not_a_placeholder():
    values = dict.fromkeys(NAMES["chat"], "x") | {"diagnosis": "{secret} {0} {diagnosis}"}
    assert "{secret} {0} {diagnosis}" in prompts.render("chat", **values)


@pytest.mark.parametrize("values", [{}, dict.fromkeys(NAMES["chat"] | {"more"}, "x")])
def test_a_missing_or_surplus_value_is_refused(values):
    with pytest.raises(ValueError, match=r"prompts/chat\.md"):
        prompts.render("chat", **values)


def test_the_digest_follows_the_text():
    digests = {prompts.digest(name) for name in NAMES}
    assert len(digests) == len(NAMES)
    assert all(len(digest) == prompts.DIGEST_LENGTH for digest in digests)
