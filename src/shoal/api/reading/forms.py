"""The forms of a page, submitted as a browser does: which controls are sent, where to, and how (the HTML standard)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from selectolax.lexbor import LexborNode

from shoal.api.form_encoding import (
    MULTIPART,
    PLAIN,
    URLENCODED,
    FormEntry,
    FormFile,
    encoded_form,
    urlencoded,
    values_of,
)
from shoal.api.reading.form_owners import FormOwners
from shoal.api.reading.pseudo_elements import attribute
from shoal.core.charsets.labels import USER_DEFINED, codec_of
from shoal.core.url import Resolver, normalise
from shoal.errors import BadURL

if TYPE_CHECKING:
    from shoal.api.page import Page

MOST_CONTROLS = 20_000
"""A page with more fields and buttons than these is refused."""

_NO_FILE = FormFile("", b"")
_UNSENT = frozenset({"button", "reset", "submit", "image"})
_INITIAL = {"checkbox": "on", "radio": "on", "range": "50", "color": "#000000"}
_LINES = re.compile(r"[\r\n]+")


class Submission(NamedTuple):
    """What is sent when a form is."""

    url: str
    method: Literal["GET", "POST"]
    body: bytes | None
    headers: dict[str, str] | None


class _Field(NamedTuple):
    """A control that takes part. `sent`: what it sends as it stands. `own`: what it sends if it is chosen."""

    name: str
    sent: list[str | FormFile]
    own: str = ""


def submit(
    page: Page, resolver: Resolver, selector: str | None, values: Mapping[str, Any], button: str | Literal[False] | None
) -> Submission:
    """The submission of a form of the page. Raises ValueError if it has no such form or button, or none to choose."""
    controls = page.css("form, button, input, select, textarea")
    if len(controls) > MOST_CONTROLS:
        raise ValueError(f"{page.url} has more than {MOST_CONTROLS} fields and buttons in its forms.")
    owners = FormOwners(controls)
    form = _chosen(page, owners, selector, values)
    pressed = _pressed(page, owners.buttons(form), button)
    charset = _charset(form, page.encoding)
    entries = _entries(owners.controls(form), values, pressed, charset)
    action = _said("action", form, pressed).strip()
    try:
        url = resolver.join(action) if action else normalise(page.url)
        if _said("method", form, pressed).strip().lower() != "post":
            return Submission(normalise(f"{url.partition('?')[0]}?{urlencoded(entries, charset)}"), "GET", None, None)
    except BadURL as error:
        raise ValueError(f"A form of {page.url} leads to {action[:120]!r}, where it cannot: {error.reason}.") from None
    enctype = _said("enctype", form, pressed).strip().lower()
    body, kind = encoded_form(entries, enctype if enctype in (MULTIPART, PLAIN) else URLENCODED, charset)
    return Submission(url, "POST", body, {"Content-Type": kind})


def _chosen(page: Page, owners: FormOwners, selector: str | None, values: Mapping[str, Any]) -> LexborNode:
    if selector is not None:
        found = page.css_first(selector)
        form = None if found is None else owners.form_of(found)
        if form is None:
            raise ValueError(f"{page.url} has no form at {selector!r}; {_those(owners.forms)}.")
        return form
    if len(owners.forms) == 1:
        return owners.forms[0]
    fitting = [form for form in owners.forms if values and values.keys() <= owners.names(form)]
    if len(fitting) == 1:
        return fitting[0]
    wanted = f" with the fields {', '.join(values)}" if values and owners.forms else ""
    raise ValueError(f"{page.url} has {len(fitting) or 'no'} forms{wanted}; {_those(owners.forms)}.")


def _those(forms: list[LexborNode]) -> str:
    """The forms that there are, so that one can be named."""
    if not forms:
        return "it has none at all"
    shown = [f"form[action={attribute(form, 'action') or ''!r}]" for form in forms[:5]]
    return f"name one of {', '.join(shown)}{', …' if len(forms) > 5 else ''} with a selector"


def _pressed(page: Page, buttons: list[LexborNode], button: str | Literal[False] | None) -> LexborNode | None:
    if button is False:
        return None
    if button is None:
        return buttons[0] if buttons else None
    wanted = {node.mem_id for node in page.css(button)}
    for each in buttons:
        if each.mem_id in wanted:
            return each
    raise ValueError(f"The form of {page.url} has no button at {button!r} that can be pressed.")


def _charset(form: LexborNode, of_page: str) -> str:
    asked = (codec_of(label) for label in re.split(r"[\s,]+", attribute(form, "accept-charset") or "") if label)
    codec = next((codec for codec in asked if codec is not None), of_page)
    return "utf-8" if codec == USER_DEFINED or codec.startswith(("utf-16", "utf-32")) else codec


def _entries(
    controls: Iterable[LexborNode], values: Mapping[str, Any], pressed: LexborNode | None, charset: str
) -> list[FormEntry]:
    """The form's entry list, with `values` in the places of the fields they name, and behind them what has none."""
    fields = [field for node in controls for field in _fields(node, pressed, charset)]
    fields = _one_of_each_group(fields)
    given = {
        name: [] if value is False else [_own(fields, name)] if value is True else values_of(name, value)
        for name, value in values.items()
    }
    entries: list[FormEntry] = []
    for name, sent, _ in fields:
        entries += [(name, value) for value in given.get(name, sent)]
        if name in given:
            given[name] = []
    return entries + [(name, value) for name, left in given.items() for value in left]


def _own(fields: list[_Field], name: str) -> str:
    return next((field.own for field in fields if field.name == name and field.own), "on")


def _one_of_each_group(fields: list[_Field]) -> list[_Field]:
    """Of radio buttons of one name that say they are checked, the last one is."""
    last = {field.name: n for n, field in enumerate(fields) if isinstance(field, _Radio) and field.sent}
    return [
        _Field(field.name, [], field.own) if isinstance(field, _Radio) and last.get(field.name, n) != n else field
        for n, field in enumerate(fields)
    ]


class _Radio(_Field):
    """One of a group, of which one is sent."""

    __slots__ = ()


def _fields(node: LexborNode, pressed: LexborNode | None, charset: str) -> list[_Field]:
    """What one control contributes; nothing for buttons that are not pressed and for controls without a name."""
    name = attribute(node, "name") or ""
    kind = (attribute(node, "type") or "").strip().lower() if node.tag in ("input", "button") else node.tag or ""
    is_pressed = pressed is not None and node.mem_id == pressed.mem_id
    if is_pressed and kind == "image":
        prefix = f"{name}." if name else ""
        return [_Field(f"{prefix}x", ["0"]), _Field(f"{prefix}y", ["0"])]
    if not name or ((node.tag == "button" or kind in _UNSENT) and not is_pressed):
        return []
    own = attribute(node, "value")
    fields = [_of_kind(node, name, kind, _INITIAL.get(kind, "") if own is None else own, charset)]
    if direction := attribute(node, "dirname"):
        fields.append(_Field(direction, ["ltr"]))
    return fields


def _of_kind(node: LexborNode, name: str, kind: str, own: str, charset: str) -> _Field:
    checked = "checked" in node.attributes
    match kind:
        case "select":
            return _Field(name, list(_selected(node)))
        case "textarea":
            return _Field(name, [node.text()])
        case "radio":
            return _Radio(name, [own] if checked else [], own)
        case "checkbox":
            return _Field(name, [own] if checked else [], own)
        case "file":
            return _Field(name, [_NO_FILE])
        case "hidden" if name.lower() == "_charset_":
            return _Field(name, [charset])
        case "hidden" | "submit":
            return _Field(name, [own])
    return _Field(name, [own if node.tag == "button" else _LINES.sub("", own)])


def _selected(select: LexborNode) -> list[str]:
    """The values of the chosen options; a list of which one can be chosen has its first one chosen if nothing else."""
    options = select.css("option")
    chosen = [option for option in options if "selected" in option.attributes]
    if "multiple" not in select.attributes:
        usable = (option for option in options if not _is_off(option))
        chosen = chosen[-1:] or [option for option in [next(usable, None)] if option is not None]
    return [_option_value(option) for option in chosen if not _is_off(option)]


def _is_off(option: LexborNode) -> bool:
    group = option.parent
    return "disabled" in option.attributes or (
        group is not None and group.tag == "optgroup" and "disabled" in group.attributes
    )


def _option_value(option: LexborNode) -> str:
    value = attribute(option, "value")
    return " ".join(option.text().split()) if value is None else value


def _said(name: str, form: LexborNode, pressed: LexborNode | None) -> str:
    """An attribute of the form, or of the button that overrides it (`formaction`, …)."""
    own = None if pressed is None else attribute(pressed, f"form{name}")
    return (attribute(form, name) if own is None else own) or ""
