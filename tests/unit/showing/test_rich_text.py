"""A model's Markdown in a page that does not trust it."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from langchain_autotools.showing.markdown import markdown_html
from tests.support.seen_runs import TEXT_TAG, Read

LINK = '<a href="{0}" target="_blank" rel="noopener noreferrer nofollow">{0}</a>'
CLASS = re.compile(r"(at-heading at-heading-)?\d+|language-[\w+#.-]+|at-(inline_)?math")
MARKUP = "![x](http://evil/?q=1) <img src=x> <script> **a** *a* _b_ ~~c~~ `d` ``` ~~~ | - | [e](https://f) & # - + > 1. 2) \\ \" ' \n\n  \t"
MARKUP += "$$ \\( \\) \\[ \\]"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("It is **warm** and *dry*.\nIndeed.", "<p>It is <strong>warm</strong> and <em>dry</em>.<br>Indeed.</p>"),
        ("~~a~~ `x < 1` snake_case_name 2 * 3 * 4", "<p><del>a</del> <code>x &lt; 1</code> snake_case_name 2 * 3 * 4</p>"),
        ("**bold *and* `b`** \\*not\\*", "<p><strong>bold <em>and</em> <code>b</code></strong> *not*</p>"),
        ("## Rome", '<p class="at-heading at-heading-2"><strong>Rome</strong></p>'),
        ("- a\n- b\n  1. c\n  2. d", '<ul><li>a</li><li>b\n<ol start="1"><li>c</li><li>d</li></ol></li></ul>'),
        ("3. a\n\n   more\n4. b", '<ol start="3"><li><p>a</p>\n<p>more</p></li><li>b</li></ol>'),
        ("> so\n> be it\n\n---", "<blockquote><p>so<br>be it</p></blockquote>\n<hr>"),
        ("```python\nx = '<b>'\n```\nafter", '<pre><code class="language-python">x = &#x27;&lt;b&gt;&#x27;</code></pre>\n<p>after</p>'),
        ("~~~\nstill being written", "<pre><code>still being written</code></pre>"),
        (
            "a | b\n--|--\n`1` | 2",
            "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td><code>1</code></td><td>2</td></tr></tbody></table>",
        ),
        ("See https://a.org/b.", f"<p>See {LINK.format('https://a.org/b')}.</p>"),
        ("[the docs](https://a.org)", f"<p>the docs ({LINK.format('https://a.org')})</p>"),
        ("![chart](https://a.org/c.png)", f"<p>chart ({LINK.format('https://a.org/c.png')})</p>"),
        ("[x](javascript:alert(1)) <b>", "<p>[x](javascript:alert(1)) &lt;b&gt;</p>"),
        ("$$a*b*<c$$ \\(d_e_\\)", '<p><span class="at-math">$$a*b*&lt;c$$</span> <span class="at-inline_math">\\(d_e_\\)</span></p>'),
        ("half a pair \ud83d, a bell \x07", "<p>half a pair \ufffd, a bell</p>"),
    ],
)
def test_what_models_write_is_set(text: str, html: str) -> None:
    """The marks that models use become tags; a link says where it leads, an image is a link, HTML is text."""
    assert markdown_html(text) == html


def test_blocks_stand_in_blocks_six_deep() -> None:
    """What is deeper is a text."""
    assert markdown_html("> " * 8 + "deep").count("<blockquote>") == 6


def test_an_item_may_begin_below_its_mark() -> None:
    """Its lines are its own, although the first one is empty."""
    assert markdown_html("-\n  text\n- b") == "<ul><li><p>text</p></li><li>b</li></ul>"


@given(st.text(st.sampled_from(MARKUP) | st.characters(codec="utf-8"), max_size=200))
@example("> " * 60 + "deep")
@example("- " * 60 + "deep")
@example("**_" * 60 + "deep" + "_**" * 60)
def test_nothing_comes_from_a_text_but_words_and_links(text: str) -> None:
    """Whatever a model writes: only these tags, all closed; no attribute of its own save an address that is shown."""
    read = Read(markdown_html(text))
    assert read.balanced and all(map(TEXT_TAG.fullmatch, read.tags))
    fixed = {("target", "_blank"), ("rel", "noopener noreferrer nofollow")}
    for name, value in read.attributes - fixed:
        assert (name == "href" and str(value).startswith(("http://", "https://")) and str(value) in read.text) or (
            name in ("start", "class") and CLASS.fullmatch(str(value))
        )


@given(st.text(st.characters(categories=("L", "N"), codec="ascii"), max_size=40), st.lists(st.integers(0, 400), max_size=5))
def test_half_a_text_is_shown_too(word: str, cuts: list[int]) -> None:
    """At each moment while it is written, a text is set as far as it goes."""
    text = f"# {word}\n\n- **{word}**\n- [{word}](https://a.org)\n\n```\n{word}\n```\n\n| a | b |\n|---|---|\n| {word} | `{word}` |"
    for cut in cuts:
        assert Read(markdown_html(text[:cut])).balanced
    assert Read(markdown_html(text)).text.count(word) >= 5
