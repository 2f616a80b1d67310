"""Selector or URL: what a text looks like, by rules that read the text alone and never the page.

`page-2.html` is valid CSS (an element `page-2` of the class `html`), and `//a/@href` is a valid URL (of the host `a`).
Whoever gives such a thing to the wrong method would get nothing, or a request that nobody meant, and no word of why. So
what reads like the other kind is refused there:

- A selector has no `/`, `?`, `%` or `&` outside of brackets and quotes, and does not begin with a digit. One that is a
  single word is the name of an element of HTML (`a.pdf` is one, of a class), or of a custom one (`amp-img`); what has
  the ending of a file and is not one of the everyday elements is a file.
- A URL is anything, unless it has the form of a selector and names an element (`li.next a`, `a[href]`, `a:last-child`),
  or that of XPath. A word alone (`search`, `map`) is a URL.
"""

from __future__ import annotations

import re
from functools import lru_cache

_EVERYDAY = """
a article button dd div dt h1 h2 h3 h4 h5 h6 img li nav ol p section span table td th tr ul
"""
_OTHERS = """
abbr address area aside audio b base bdi bdo blockquote body br canvas caption center cite code col colgroup data
datalist del details dfn dialog dl em embed entry fieldset figcaption figure font footer form frame frameset g head
header hgroup hr html i iframe image input ins item kbd label legend link main map mark menu meta meter noscript object
optgroup option output param path picture pre progress q rp rt ruby s samp script search select slot small source strong
style sub summary sup svg tbody template text textarea tfoot thead time title track tt u use var video wbr
"""
_FILES_AND_HOSTS = """
action ashx asp aspx atom avif cfm cgi css csv do doc docx epub gif gz htm html ico jpeg jpg js jsf json jsonl jsp jspx
md mp3 mp4 odt ogg pdf php php3 php5 phtml pl png ppt pptx rar rss shtml svg tar tsv txt wav webm webp xhtml xls xlsx
xml zip com edu gov info io net org
"""
EVERYDAY = frozenset(_EVERYDAY.split())
"""Elements after which nobody names a file."""
ELEMENTS = EVERYDAY | frozenset(_OTHERS.split())
"""Those of HTML, and some of SVG and of feeds that may have an address."""
ENDINGS = frozenset(_FILES_AND_HOSTS.split())

LONGEST = 500
"""Longer texts are taken for what the method takes: the patterns are to be fast on what strangers write, too."""

_QUOTED = re.compile(r"\\.|/\*.*?\*/|\[(?:\"[^\"]*\"|'[^']*'|[^\]\"'])*\]|\"[^\"]*\"|'[^']*'", re.DOTALL)
"""What a selector may have anything in: escapes, comments, attributes, texts."""
_NEVER_CSS = re.compile(
    r"\d|\.{1,2}$|\.\.|(?:https?|ftps?|file|mailto|tel|sms|javascript|blob|about):|.*[/?%&]", re.IGNORECASE | re.DOTALL
)
_WORD = re.compile(r"(?:.*\s)?([A-Za-z_][\w-]*)((?:\.[\w-]+)*)(?:#[\w.-]*)?", re.DOTALL)
_COMPOUND = re.compile(
    r"(?P<element>[A-Za-z][\w-]*|\*)?"
    r"(?:\.(?P<ending>-?[A-Za-z_][\w-]*)|#-?[A-Za-z_][\w-]*|(?P<more>\[\]|:{1,2}[a-z-]+(?:\(\))?))*"
)
_XPATH = re.compile(r"\(*\.?//([a-z][a-z0-9]*|\*)(?:$|[/\[|)])|.*(?:/@|\[@|\btext\(\)|[a-z]::[a-z*])", re.DOTALL)


@lru_cache(maxsize=4096)
def why_no_selector(text: str) -> str | None:
    """What a text looks like, if it is something else than a CSS selector: "a URL" or "XPath". None = it is one."""
    if len(text) > LONGEST:
        return None
    if _is_xpath(text):
        return "XPath"
    plain = _QUOTED.sub("", text.strip())
    if _NEVER_CSS.match(plain):
        return "a URL"
    word = _WORD.fullmatch(plain)
    if word is None or plain != text.strip():
        return None
    element, ending = word[1].lower(), word[2].rpartition(".")[2].lower()
    if element in EVERYDAY:
        return None
    if ending in ENDINGS:
        return "a URL"
    if element in ELEMENTS or word.start(1) > 0:
        return None
    if "-" in element:
        return "a URL" if not ending and element.rpartition("-")[2].isdigit() else None
    return "a URL"


@lru_cache(maxsize=4096)
def why_no_url(text: str) -> str | None:
    """What a text looks like, if it is something else than a URL: "a CSS selector" or "XPath". None = it may be one."""
    if len(text) > LONGEST:
        return None
    if _is_xpath(text):
        return "XPath"
    plain = _QUOTED.sub(lambda found: "[]" if found[0][0] == "[" else "x", text.strip())
    if re.search(r"[/?%]", plain):
        return None
    plain = re.sub(r"\([^()]*\)", "()", plain)
    read = [_COMPOUND.fullmatch(part) for part in re.split(r"\s*[>+~,]\s*|\s+", plain) if part]
    if not all(found is not None and (found["element"] or "*").lower() in ELEMENTS | {"*"} for found in read):
        return None
    last = read[-1] if read else None
    if last is None or (last["ending"] or "").lower() in ENDINGS:
        return None
    classed = last["ending"] is not None and (last["element"] or "a").lower() in EVERYDAY
    return "a CSS selector" if len(read) > 1 or last["more"] is not None or classed else None


def _is_xpath(text: str) -> bool:
    text = text.strip()
    if not text.startswith(("/", "./", "../", "(")):
        return False
    found = _XPATH.match(text)
    return found is not None and (found[1] is None or found[1] == "*" or found[1] in ELEMENTS or "@" in text)
