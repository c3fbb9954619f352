"""The id of a visitor follows from its cookie, and hides it."""

from __future__ import annotations

from app.session import cookie


def test_the_id_of_a_visitor_hides_the_cookie() -> None:
    token = cookie.new_token()
    visitor = cookie.visitor_id(token)
    assert visitor == cookie.visitor_id(token) != ""
    assert visitor not in token and token not in visitor
    assert visitor != cookie.visitor_id(cookie.new_token())
    assert [cookie.visitor_id(wrong) for wrong in (None, "", "x" * 32, token[:-1], token + "0")] == [""] * 5
