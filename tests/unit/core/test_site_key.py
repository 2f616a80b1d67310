"""Sites: what politeness is keyed by. Hosts, registrable domains, and names by rule."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.site_key import SiteKeyRules, SiteKeys, is_site_name, registrable_domain, site_by
from shoal.core.task import Policy
from shoal.core.url import host_of, normalise, site_of

LABELS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True).filter(lambda label: label[2:4] != "--")
SUFFIXES = st.sampled_from(
    ["com", "co.uk", "github.io", "example", "com.br", "xn--p1ai", "ck", "kawasaki.jp", "blogspot.com"]
)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.com", "example.com"),
        ("www.shop.example.com", "example.com"),
        ("www.example.co.uk", "example.co.uk"),
        ("one.github.io", "one.github.io"),
        ("a.two.github.io", "two.github.io"),
        ("github.io", "github.io"),
        ("co.uk", "co.uk"),
        ("www.example.com.", "example.com"),
        ("a.b.unknowntld", "b.unknowntld"),
        ("www.ck", "www.ck"),
        ("a.b.kawasaki.jp", "a.b.kawasaki.jp"),
        ("a.city.kawasaki.jp", "city.kawasaki.jp"),
        (host_of(normalise("https://www.bücher.рф/")), host_of(normalise("https://bücher.рф/"))),
        ("localhost", None),
        ("localhost.", None),
        ("127.0.0.1", None),
        ("[::1]", None),
        ("[2001:db8::1]", None),
    ],
)
def test_the_registrable_domain(host: str, domain: str | None) -> None:
    assert registrable_domain(host) == domain


@given(st.lists(LABELS, min_size=1, max_size=4), SUFFIXES)
def test_a_domain_is_the_end_of_its_host_and_of_all_below_it_and_its_own(labels: list[str], suffix: str) -> None:
    host = ".".join([*labels, suffix])
    domain = registrable_domain(host)
    assert domain is not None
    assert host == domain or host.endswith(f".{domain}")
    assert registrable_domain(domain) == domain
    assert registrable_domain(f"www.{host}") in (domain, f"www.{host}")
    assert registrable_domain(f"{host}.") == domain


@given(st.ip_addresses(), st.sampled_from(["http", "https"]), st.integers(1, 65535))
def test_an_address_is_its_own_site_with_its_port(address: object, scheme: str, port: int) -> None:
    text = f"[{address}]" if ":" in str(address) else str(address)
    url = normalise(f"{scheme}://{text}:{port}/x")
    assert SiteKeys(SiteKeyRules(domain=True)).of(url) == site_of(url)


def test_a_domain_is_one_site_with_all_its_hosts_ports_and_schemes() -> None:
    keys = SiteKeys(SiteKeyRules(domain=True))
    places = ["http://example.com/", "https://www.example.com:8443/x", "https://u:p@a.b.example.com./"]
    assert {keys.of(normalise(url)) for url in places} == {"example.com"}


def test_the_first_rule_that_names_a_host_decides_before_the_domain() -> None:
    keys = SiteKeys(SiteKeyRules(domain=True, named=(("cdn.example.com", "images"), ("*.example.net", "images"))))
    assert keys.of("https://a.cdn.example.com/x") == "images"
    assert keys.of("https://b.example.net/") == "images"
    assert keys.of("https://example.net/") == "example.net"
    assert keys.of("https://www.example.com/") == "example.com"
    assert SiteKeys(SiteKeyRules(named=(("*", "all"),))).of("https://x.example/") == "all"


def test_what_is_remembered_of_hosts_is_bounded() -> None:
    keys = SiteKeys(SiteKeyRules(domain=True), remembered=3)
    assert [keys.of(f"https://a.h{n}.com/") for n in range(10)] == [f"h{n}.com" for n in range(10)]
    assert len(keys._known) <= 3


def test_rules_are_stored_with_the_run_and_one_of_version_0_1_has_none() -> None:
    rules = SiteKeyRules(domain=True, named=(("a.example", "a"),))
    stored = msgspec.json.decode(msgspec.json.encode(Policy(sites=rules)), type=Policy)
    assert stored.sites == rules
    old = msgspec.json.decode(b'{"delay":500,"pool":"default"}', type=Policy)
    assert site_by(old.sites, "https://www.a.example/") == "www.a.example"
    assert b"sites" not in msgspec.json.encode(Policy()), "what is as it was is stored as it was"


@pytest.mark.parametrize("name", ["", "two words", "a/b", "a@b", "x\n", "x" * 201, 5, None])
def test_a_name_of_a_site_is_one_word(name: object) -> None:
    assert not is_site_name(name)
    assert is_site_name("shop.example")


def test_the_list_is_read_only_by_those_who_need_it() -> None:
    program = (
        "import sys\nfrom shoal import Page, Request, Scraper\nfrom shoal.intake.admission import to_task\n"
        "for site in ('host', 'domain'):\n"
        "    x = Scraper('x', site=site)\n    x.page(lambda page: None)\n"
        "    to_task(Request('https://www.a.co.uk/'), x)\n    print('publicsuffixlist' in sys.modules)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "True"]
