"""Words of other languages as English ones, word by word (proxy/crates/dlp-scan/src/detect/orders/sense/gloss.rs)."""

import functools
import os
import re

from pieces import VOCAB, plain, read

WORDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "words")
LANGUAGES = dict(
    latin="cs da de es fi fr hu id it nl pl pt ro sv tr".split(),
    greek=["el"],
    cyrillic=["ru", "uk"],
    arabic=["ar"],
    han=["zh"],
    hangul=["ko"],
    kana=["ja"],
)
SCRIPT = {lang: name for name, langs in LANGUAGES.items() for lang in langs}
UNKNOWN = "\ufffd"
RUN = re.compile(r"[a-zæœ]+|[^\W\d_a-zæœ]+")


def script(c):
    """What is of no other script is taken for Latin."""
    if "\u0370" <= c <= "\u03ff":
        return "greek"
    if "\u0600" <= c <= "\u06ff":
        return "arabic"
    if "\u0400" <= c <= "\u052f":
        return "cyrillic"
    if "\u3040" <= c <= "\u30ff" or "\uff66" <= c <= "\uff9f":
        return "kana"
    if "\u3005" <= c <= "\u3007" or "\u3400" <= c <= "\u9fff":
        return "han"
    if "\u1100" <= c <= "\u11ff" or "\u3130" <= c <= "\u318f" or "\uac00" <= c <= "\ud7af":
        return "hangul"
    return "latin"


@functools.cache
def table(lang):
    """Whole words, beginnings of words, and the length of the longest."""
    whole, stems = {}, {}
    for line in open(os.path.join(WORDS, lang + ".tsv"), encoding="utf8"):
        form, english = line.rstrip("\n").split("\t")
        stem = form.endswith("*")
        (stems if stem else whole).setdefault(form.rstrip("*"), english)
    return whole, stems, max(map(len, (*whole, *stems)), default=0)


def entry(lang, word):
    whole, stems, most = table(lang)
    if word in whole:
        return whole[word]
    return next((stems[word[:n]] for n in range(min(len(word), most), 0, -1) if word[:n] in stems), None)


def language(text, words):
    """The language of a text made plain, None for English."""
    letters = [script(c) for w in words for c in w]
    foreign = [x for x in letters if x != "latin"]
    name = "latin"
    if foreign and len(foreign) * 2 >= len(letters) - len(foreign):
        name = max(list(LANGUAGES)[1:], key=foreign.count)
        if name in ("han", "kana"):
            name = "kana" if foreign.count("kana") * 8 >= foreign.count("han") else "han"
    if len(LANGUAGES[name]) == 1:
        return LANGUAGES[name][0]
    best, most = None, sum(w in VOCAB for w in words if w.isascii())
    for lang in LANGUAGES[name]:
        n = sum(entry(lang, w) is not None for w in words)
        if n > most:
            best, most = lang, n
    return best


def english(text):
    """A text made plain, its words in English where it is in another language that there is a table of."""
    words = RUN.findall(text)
    lang = language(text, words)
    if not lang:
        return text
    own = SCRIPT[lang]

    def one(match):
        word = match[0]
        if own in ("han", "kana") and any(script(c) != "latin" for c in word):
            return " " + spell(lang, word) + " "
        found = entry(lang, word)
        if found is not None:
            return found
        known = word.isascii() and (own != "latin" or len(word) >= 4 and word in VOCAB)
        return word if known else UNKNOWN

    kept = lambda token: token.isascii() and ("@" in token or "://" in token)
    return " ".join(token if kept(token) else RUN.sub(one, token) for token in text.split(" "))


def spell(lang, run):
    """Words of a script without blanks: the longest entry from each place on."""
    whole, _, most = table(lang)
    out, at = [], 0
    while at < len(run):
        for n in range(min(most, len(run) - at), 0, -1):
            found = whole.get(run[at : at + n])
            if found is not None:
                out.append(found)
                at += n
                break
        else:
            if not out or out[-1] != UNKNOWN:
                out.append(UNKNOWN)
            at += 1
    return " ".join(out)


@functools.lru_cache(1 << 10)
def ids(text):
    """The pieces of a text in any of the languages."""
    return read(english(plain(text)))
