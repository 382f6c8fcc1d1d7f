"""Sentences, as the scanner cuts them (proxy/crates/dlp-scan/src/detect/orders/split.rs)."""

import re

MAX = 360  # bytes
TAGS = {
    "p",
    "div",
    "span",
    "h1",
    "h2",
    "h3",
    "li",
    "ul",
    "td",
    "tr",
    "br",
    "body",
    "html",
    "footer",
    "article",
    "a",
    "b",
    "img",
    "section",
    "font",
}
ABBR = {"e.g", "i.e", "z.B", "p.ej", "no", "No", "vs", "Mr", "Dr", "Ms"}


def tag(inner):
    x = inner[1:] if inner.startswith("/") else inner
    m = re.match(r"[A-Za-z0-9]*", x)
    return m.group(0).lower() in TAGS or inner.startswith("!--") or inner.endswith("--")


def ends(t, i):
    c = t[i]
    if c in "。！？।؟\x1b":
        return True
    if c == "<":
        return tag(t[i + 1 : i + 40])
    if c == ">":
        o = t.rfind("<", max(0, i - 300), i)
        return o >= 0 and tag(t[o + 1 : i])
    if c in ".!?":
        r = t[i + 1 : i + 12].lstrip("\"')”»`")
        if r and not r[0].isspace():
            return False
        w = re.split(r"[ \n(]", t[max(0, i - 12) : i])[-1]
        return w not in ABBR
    if c == "\n":
        if t[i + 1 : i + 2] == "\n":
            return True
        r = t[i + 1 : i + 20].lstrip(" \t/#*->")
        if not r:
            return True
        n = r[0]
        return not n.islower() and not (n.isalpha() and not n.islower() and not n.isupper())
    return False


def sentences(t):
    out, s, size = [], 0, 0
    for i in range(len(t)):
        size += len(t[i].encode("utf8", "replace"))
        if ends(t, i) or size >= MAX:
            out.append((s, i + 1))
            s, size = i + 1, 0
    if s < len(t):
        out.append((s, len(t)))
    return [(a, b) for a, b in out if t[a:b].strip()]


def is_read(sentence):
    """Long enough, and no piece of a program or of data (plain.rs)."""
    signs = sum(c in "{}();=[]|&\\" for c in sentence)
    size = len(sentence.encode("utf8", "replace"))
    return size >= 24 and not (signs > 4 and signs * 14 > size)
