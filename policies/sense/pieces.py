"""A sentence as numbers of pieces, as the scanner makes them (proxy/crates/dlp-scan/src/detect/orders/sense/pieces.rs)."""

import re
import unicodedata
from functools import lru_cache

ADDR, URL, LONG, NUM, UNK = 1, 2, 3, 4, 100
VOCAB: dict[str, int] = {}  # filled by model.py
TRIM = ".,;:!?()[]{}<>\"'`_#-"


BARE = str.maketrans({"ł": "l", "đ": "d", "ø": "o", "ı": "i", "ß": "ss", "ё": "е", "ς": "σ", "أ": "ا", "إ": "ا", "آ": "ا"})


def bare(c):
    """A Latin or Greek letter without its marks; marks by themselves are nothing."""
    if "\u0300" <= c <= "\u036f" or "\u200b" <= c <= "\u200f":
        return ""
    if c < "\u0400" or "\u1e00" <= c <= "\u1eff":
        c = "".join(x for x in unicodedata.normalize("NFD", c) if not unicodedata.combining(x))
    return c.translate(BARE)


def plain(t):
    out, blank = [], False
    for c in t:
        sp = c <= " " or c.isspace() or "\u2500" <= c <= "\u259f"
        if sp and blank or c == "*":
            continue
        blank = sp
        if sp:
            out.append(" ")
            continue
        if c in "’‘":
            out.append("'")
            continue
        if c in "“”":
            out.append('"')
            continue
        if c.isascii():
            out.append(c.lower())
            continue
        out.append("".join(map(bare, c.lower())))
    return "".join(out)


@lru_cache(1 << 17)
def run(w):
    out, i = [], 0
    while i < len(w):
        j = min(len(w), i + 18)
        while j > i:
            v = VOCAB.get(("##" if i else "") + w[i:j])
            if v is not None:
                break
            j -= 1
        if j == i:
            return (UNK,)
        out.append(v)
        i = j
    return tuple(out)


RUN = re.compile(r"[a-z0-9]+|[\x21-\x7e]|[^\x00-\x7f]+")


@lru_cache(1 << 17)
def word(w):
    if "@" in w and "." in w and len(w) > 5:
        return (ADDR,)
    if "://" in w or w.startswith("www."):
        return (URL,)
    core = w.strip(TRIM)
    n = len(core.encode())
    if n > 24:
        return (LONG,)
    if n and sum(c in "0123456789" for c in core) * 2 > n:
        return (NUM,)
    out = []
    for m in RUN.findall(w):
        if not m[0].isascii():
            out.append(UNK)
        elif m[0].isalnum():
            out.extend(run(m))
        else:
            out.append(VOCAB.get(m, UNK))
    return tuple(out)


def read(plain):
    """The pieces of a text made plain."""
    return [piece for w in plain.split(" ") if w for piece in word(w)]
