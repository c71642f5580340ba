"""Passwords and tokens are cut from texts, and nothing else is."""

from __future__ import annotations

import json

import pytest

from pgtrial.model.errors import StudyError, one_line
from pgtrial.model.printable import printable, printable_json
from pgtrial.model.tokens import without_tokens
from pgtrial.store.comparison import comparison

_S = "s3cr3tT0ken"


@pytest.mark.parametrize(
    "text",
    [
        f"git:https://{_S}@host/org/x@main",
        f"git:https://{_S}@host/org/x",
        f"https://me:{_S}@host/x",
        f"HTTPS://me:{_S}@host/x",
        f"https://me@corp:{_S}@host/x",
        f"https://me:{_S}:x@host:8443/x",
        f"fatal: unable to access 'https://{_S}@host/x/': The requested URL returned error: 403",
        f"ssh://git:{_S}@host/x",
        f"postgresql://bench:{_S}@db1:5432/shop?sslmode=require",
        f"postgres://:{_S}@db1/shop",
        f"postgresql://db1/shop?password={_S}&sslmode=require",
        f"host=db1 password={_S} dbname=shop",
        f"host=db1 password='{_S} \\'x' dbname=shop",
        f"host=db1 sslpassword={_S}",
        f"host=db1 password = '{_S}'",
        f"PASSWORD '{_S}'",
        f"CREATE ROLE app LOGIN PASSWORD '{_S}' VALID UNTIL 'infinity'",
        f"alter user app with encrypted password\n E'it''s \\\\{_S}'",
        f"CREATE USER MAPPING FOR app SERVER s OPTIONS (user 'app', password '{_S}')",
        f"UPDATE users SET passwd = 'x''{_S}' WHERE id = 1",
        f"https://host/x.git?access_token={_S}@main",
        f"https://host/x?a=b&private_token={_S}#y",
        f"https://host/x?X-Amz-Signature={_S}&X-Amz-Date=1",
        f"PGPASSWORD={_S} psql",
        f"AWS_SECRET_ACCESS_KEY={_S} aws",
        f"Authorization: Bearer {_S}",
        f"http.extraHeader=AUTHORIZATION: basic {_S}",
        f"PRIVATE-TOKEN: {_S}",
    ],
)
def test_a_secret_is_cut_in_whatever_form(text):
    assert _S not in without_tokens(text)
    assert "***" in without_tokens(text)
    assert _S not in str(StudyError(f"it is refused: {text}"))
    assert _S not in one_line(ValueError(text))
    assert _S not in printable(text)
    of_json = printable_json(json.dumps({"what": text, "more": "it's"}))
    assert _S not in of_json
    assert json.loads(of_json)["more"] == "it's"


@pytest.mark.parametrize(
    "text", ["ghp_" + "a1B2" * 9, "github_pat_" + "a1_" * 12, "glpat-" + "a-1" * 8, "AKIA" + "A1B2" * 4]
)
def test_tokens_of_services_are_known_by_their_shape(text):
    assert without_tokens(f"git: {text}: bad credentials") == "git: ***: bad credentials"


@pytest.mark.parametrize(
    "text",
    [
        "git:https://github.com/org/x@main",
        "git:git@github.com:org/x@" + "1" * 40,
        "git:ssh://git@host/x@main",
        "git:.@origin/main",
        "postgresql://bench@db1:5432/shop",
        "postgresql://db1:5432/shop?options=-c%20x",
        "bench@db1:5432/shop",
        "http://127.0.0.1:8123/Zm9vYmFy/",
        "UPDATE users SET password = $1 WHERE token=$2",
        "SELECT * FROM tokens WHERE id = 1",
        "CREATE ROLE app LOGIN PASSWORD NULL",
        "ALTER ROLE app PASSWORD :'secret'",
        "the column password has 'x' as its default",
        "shared_buffers=2GB,jit=off",
        "pgpassfile=/home/me/.pgpass",
    ],
)
def test_what_is_no_secret_stays(text):
    assert without_tokens(text) == text


@pytest.mark.parametrize(
    "source",
    [
        f"git:https://{_S}@host/org/x",
        f"git:https://{_S}@host/org/x@main",
        f"git:https://x:{_S}@host/org/x@main",
        f"git:https://{_S}:x-oauth-basic@host/org/x",
        f"git:https://host/org/x?access_token={_S}@main",
        f"git:https://host/org/x@main?private_token={_S}",
        f"git:ssh://git:{_S}@host/x@main",
    ],
)
def test_the_refusal_of_a_source_does_not_repeat_its_token(source):
    for arm in (f"postgres={source}", f"a=postgres={source}", f"extensions={source}"):
        with pytest.raises(StudyError) as refused:
            comparison(["default", arm], "the command line", None, None, {})
        assert _S not in str(refused.value)
