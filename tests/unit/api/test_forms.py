"""The forms of a page: what a browser would send, and where to."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from multidict import CIMultiDict

from shoal import FormFile, Page, Request


def page(html: str | bytes, charset: str = "utf-8", url: str = "https://x.example/dir/page?q=1") -> Page:
    body = html.encode(charset) if isinstance(html, str) else html
    return Page(url, body, headers=CIMultiDict({"Content-Type": f"text/html; charset={charset}"}))


def sent(request: Request) -> list[tuple[str, str]]:
    """The fields of a request, from its query or its urlencoded body."""
    said = urlsplit(request.url).query if request.body is None else request.body.decode()  # type: ignore[union-attr]
    return parse_qsl(said, keep_blank_values=True, strict_parsing=bool(said))


def fields(inside: str, values: Any = None, **options: Any) -> list[tuple[str, str]]:
    return sent(page(f"<form>{inside}</form>").form(values=values, **options))


class TestWhatIsSent:
    def test_fields_in_document_order_with_their_own_values(self) -> None:
        assert fields(
            "<input name=a value=1><input name=b><textarea name=c>\nx\ny</textarea><input value=nameless>"
            "<input type=hidden name=d value='2\n3'><input type=range name=e><input type=email name=f value='x\ny'>"
            "<input name=a value=again>"
        ) == [("a", "1"), ("b", ""), ("c", "x\r\ny"), ("d", "2\r\n3"), ("e", "50"), ("f", "xy"), ("a", "again")]

    def test_boxes_that_are_checked(self) -> None:
        assert fields(
            "<input type=checkbox name=a checked><input type=checkbox name=a value=2>"
            "<input type=Checkbox name=b value=3 checked><input type=radio name=r value=1 checked>"
            "<input type=radio name=r value=2 checked><input type=radio name=s value=3>"
        ) == [("a", "on"), ("b", "3"), ("r", "2")]

    @pytest.mark.parametrize(
        ("options", "attributes", "chosen"),
        [
            ("<option>  one  two <option>2", "", ["one two"]),
            ("<option value=''>choose<option value=2 selected>two<option value=3 selected>three", "", ["3"]),
            ("<option disabled>1<option value=2>two", "", ["2"]),
            ("<option disabled selected>1<option>2", "", []),
            ("<optgroup disabled><option>1</optgroup><option>2", "", ["2"]),
            ("<option>1<option selected>2<option selected>3<option selected disabled>4", "multiple", ["2", "3"]),
            ("<option>1", "multiple", []),
            ("", "", []),
        ],
    )
    def test_lists_of_choices(self, options: str, attributes: str, chosen: list[str]) -> None:
        assert fields(f"<select name=s {attributes}>{options}</select>") == [("s", value) for value in chosen]

    def test_disabled_ones_are_left_out_and_so_is_what_is_in_a_disabled_fieldset_except_in_its_first_legend(
        self,
    ) -> None:
        assert fields(
            "<input name=a disabled><fieldset disabled><legend><input name=b value=1></legend><div><input name=c></div>"
            "<legend><input name=d></legend></fieldset><fieldset><input name=e value=2></fieldset>"
            "<datalist><input name=f></datalist>"
        ) == [("b", "1"), ("e", "2")]

    def test_the_charset_and_the_direction_if_they_are_asked_for(self) -> None:
        html = "<form method=post><input type=hidden name=_charset_><input name=a value=x dirname=a.dir></form>"
        assert sent(page(html, "cp1252").form()) == [("_charset_", "cp1252"), ("a", "x"), ("a.dir", "ltr")]

    def test_controls_elsewhere_that_name_the_form_belong_to_it_and_those_inside_that_name_another_do_not(self) -> None:
        html = "<form id=f><input name=a><input name=b form=g><input name=c form=none></form><p><input name=d form=f>"
        assert sent(page(html + "<form id=g></form>").form("#f")) == [("a", ""), ("d", "")]
        assert sent(page(html + "<form id=g></form>").form("#g")) == [("b", "")]

    def test_a_form_between_the_parts_of_a_table_owns_what_follows(self) -> None:
        html = "<table><form action=/f><tr><td><input name=a value=1></td></tr><tr><td><button name=b>x</table>"
        assert page(html).form().url == "https://x.example/f?a=1&b="


class TestTheButton:
    HTML = """<form action=/a><button type=button name=x value=0>x</button><input type=submit name=go value=1>
    <button name=go value=2 formaction=/b formmethod=POST formenctype=text/plain class=other>y</button>
    <input type=image name=i class=image><button disabled name=off value=1 class=off>z</button><input type=reset>
    </form>"""

    def test_the_first_is_pressed_as_by_the_enter_key(self) -> None:
        assert page(self.HTML).form().url == "https://x.example/a?go=1"

    def test_none_is_pressed(self) -> None:
        assert page(self.HTML).form(button=False).url == "https://x.example/a?"

    def test_another_one_which_may_lead_elsewhere_and_otherwise(self) -> None:
        request = page(self.HTML).form(button=".other")
        assert (request.url, request.method, request.body) == ("https://x.example/b", "POST", b"go=2\r\n")
        assert request.headers == {"Content-Type": "text/plain"}

    def test_an_image_says_where_it_was_touched(self) -> None:
        assert page(self.HTML).form(button=".image").url == "https://x.example/a?i.x=0&i.y=0"

    @pytest.mark.parametrize("button", [".off", "[name=x]", "p"])
    def test_what_cannot_be_pressed_is_said_in_a_sentence(self, button: str) -> None:
        with pytest.raises(ValueError, match=r"has no button at .* that can be pressed"):
            page(self.HTML).form(button=button)


class TestValues:
    def test_they_take_the_place_of_what_is_there_and_are_added_where_nothing_is(self) -> None:
        given = {"a": "new", "c": 3, "d": ["x", "y"], "e": None, "new": "n"}
        inside = "<input name=a value=1><input name=b value=2><input name=a value=3><input name=c>"
        inside += "<input name=d><input name=e>"
        expected = [("a", "new"), ("b", "2"), ("c", "3"), ("d", "x"), ("d", "y"), ("new", "n")]
        assert fields(inside, given) == expected

    def test_boxes_are_checked_and_cleared(self) -> None:
        boxes = "<input type=checkbox name=a value=yes><input type=checkbox name=b checked><input type=checkbox name=c>"
        assert fields(boxes, {"a": True, "b": False}) == [("a", "yes")]
        radios = "<input type=radio name=r value=1 checked><input type=radio name=r value=2>"
        assert fields(radios, {"r": "2"}) == [("r", "2")]

    def test_a_value_that_cannot_be_sent_is_named(self) -> None:
        with pytest.raises(ValueError, match="the field 'a' of a form cannot be"):
            fields("<input name=a>", {"a": {"x": 1}})

    def test_files_go_with_a_multipart_form(self) -> None:
        html = "<form method=post enctype=multipart/form-data><input type=file name=f><input type=file name=g></form>"
        request = page(html).form(values={"f": FormFile("a.txt", b"hello", "text/plain")})
        assert isinstance(request.body, bytes)
        assert b'name="f"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nhello\r\n' in request.body
        assert b'name="g"; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n\r\n' in request.body

    def test_of_a_file_a_form_of_another_kind_sends_the_name(self) -> None:
        assert fields("<input type=file name=f>", {"f": FormFile("a.txt", b"hello")}) == [("f", "a.txt")]


class TestWhere:
    def test_where_the_action_leads_by_way_of_the_base(self) -> None:
        html = "<base href=/b/><form action='c?old=1#x'><input name=a value='1 2&'></form>"
        assert page(html).form().url == "https://x.example/b/c?a=1+2%26"

    def test_without_an_action_to_the_page_itself(self) -> None:
        assert page("<base href=/b/><form><input name=a></form>").form().url == "https://x.example/dir/page?a="
        assert page("<form action='' method=post>").form().url == "https://x.example/dir/page?q=1"

    @pytest.mark.parametrize("action", ["mailto:a@b.c", "http://[", "javascript:x()"])
    def test_an_action_that_cannot_be_fetched(self, action: str) -> None:
        with pytest.raises(ValueError, match=r"leads to .*, where it cannot"):
            page(f"<form action='{action}'>").form()

    def test_the_request_is_as_the_options_say(self) -> None:
        request = page("<form method=POST><input name=a></form>").form(
            to="done", data={"n": 1}, group="g", priority=2, dedup=False, headers={"X-A": "1"}, timeout=3
        )
        assert (request.to, request.data, request.group, request.priority) == ("done", {"n": 1}, "g", 2)
        assert (request.dedup, request.timeout, request.method, request.body) == (False, 3, "POST", b"a=")
        assert request.headers == {"X-A": "1", "Content-Type": "application/x-www-form-urlencoded"}


class TestCharset:
    def test_that_of_the_page_or_of_accept_charset(self) -> None:
        html = "<form method=post {}><input name=a value='é☃'></form>"
        assert page(html.format("")).form().body == b"a=%C3%A9%E2%98%83"
        assert page(html.format("").replace("☃", "&#9731;"), "cp1252").form().body == b"a=%E9%26%239731%3B"
        assert page(html.format("accept-charset='none, iso-8859-1'")).form().body == b"a=%E9%26%239731%3B"
        assert page(html.format("").encode("utf-16"), "utf-16").form().body == b"a=%C3%A9%E2%98%83"


class TestWhichForm:
    TWO = "<form action=/search><input name=q></form><form action=/login id=l><input name=user><p id=in></p></form>"

    def test_by_a_selector_of_it_or_of_something_in_it(self) -> None:
        assert page(self.TWO).form("#l").url == "https://x.example/login?user="
        assert page(self.TWO).form("#in").url == "https://x.example/login?user="

    def test_the_only_one_that_has_the_fields(self) -> None:
        assert page(self.TWO).form(values={"user": "me"}).url == "https://x.example/login?user=me"

    @pytest.mark.parametrize(
        ("html", "selector", "said"),
        [
            (TWO, None, "has no forms; name one of form[action='/search'], form[action='/login'] with a selector"),
            (TWO, "#none", "has no form at '#none'; name one of"),
            ("<p>", None, "has no forms; it has none at all"),
            ("<p>", "form", "has no form at 'form'; it has none at all"),
        ],
    )
    def test_else_there_is_a_sentence_that_says_which_there_are(self, html: str, selector: Any, said: str) -> None:
        with pytest.raises(ValueError) as wrong:  # noqa: PT011 - the text is looked at
            page(html).form(selector)
        assert said in str(wrong.value)

    def test_a_page_with_forms_without_end_is_refused(self) -> None:
        with pytest.raises(ValueError, match="more than 20000"):
            page("<form>" + "<input>" * 20_001).form()

    def test_a_page_of_great_depth_costs_no_more_than_a_long_one(self) -> None:
        html = "<form>" + "<div><input name=a>" * 300
        assert len(sent(page(html).form())) == 300
