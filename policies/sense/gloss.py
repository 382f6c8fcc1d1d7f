"""Words of other languages as English ones, word by word (proxy/crates/dlp-scan/src/detect/orders/sense/gloss.rs)."""

import functools
import os
import re

from pieces import VOCAB, plain, read

WORDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "words")
LANGUAGES = dict(
    latin="cs da de es fi fr hu id it nl pl pt ro sv tr hr vi".split(),
    greek=["el"],
    cyrillic=["ru", "uk", "bg", "sr"],
    arabic=["ar", "fa"],
    han=["zh"],
    hangul=["ko"],
    kana=["ja"],
    hebrew=["he"],
    devanagari=["hi"],
    bengali=["bn"],
    thai=["th"],
)
UNSPACED = ("han", "kana", "thai")
UNKNOWN = "\ufffd"
SHARED = 4  # a word of another language, or an English one in a text of another, has at least so many bytes
MIXED = 4  # one word of so many that is not English is looked for in all languages of its script
# Signs for vowels and tones belong to the letters before them.
SIGNED = "\u0900-\u0963\u0971-\u097f\u0980-\u09e3\u09f0-\u09f1\u0e01-\u0e3a\u0e40-\u0e4e"
RUN = re.compile(rf"[a-zæœ]+|(?:[^\W\d_a-zæœ]|[{SIGNED}])+")


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
    if "\u0590" <= c <= "\u05ff":
        return "hebrew"
    if "\u0900" <= c <= "\u097f":
        return "devanagari"
    if "\u0980" <= c <= "\u09ff":
        return "bengali"
    if "\u0e00" <= c <= "\u0e7f":
        return "thai"
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


def scripts(words):
    """The script that a text is in, and whether its Han letters are Japanese ones."""
    letters = [script(c) for w in words for c in w]
    foreign = [x for x in letters if x != "latin"]
    japanese = "kana" if foreign.count("kana") * 8 >= foreign.count("han") else "han"
    if not foreign or len(foreign) * 2 < len(letters) - len(foreign):
        return "latin", japanese
    name = max(list(LANGUAGES)[1:], key=foreign.count)
    return (japanese if name in ("han", "kana") else name), japanese


def language(name, words):
    """The language of words of a script, None for English; words of the English vocabulary have to be fewer than its own."""
    if len(LANGUAGES[name]) == 1:
        return LANGUAGES[name][0]
    best, most = None, sum(w in VOCAB for w in words if w.isascii())
    for lang in LANGUAGES[name]:
        n = sum(entry(lang, w) is not None for w in words)
        if n > most:
            best, most = lang, n
    return best


def english(text):
    """A text made plain, its words in English where it is in another language that there is a table of, or in several."""
    words = RUN.findall(text)
    own, japanese = scripts(words)
    lang = language(own, words)
    strange = [w for w in words if not (w.isascii() and w in VOCAB)]
    if not lang and len(strange) * MIXED < len(words):
        return text

    def one(match):
        word = match[0]
        of = next((s for s in map(script, word) if s != "latin"), "latin")
        of = japanese if of in ("han", "kana") else of
        if of in UNSPACED:
            return " " + spell(LANGUAGES[of][0], word) + " "
        found = entry(lang, word) if of == own and lang else None
        if found is not None:
            return found
        if word.isascii() and word in VOCAB and (own != "latin" or not lang or len(word) >= SHARED):
            return word
        others = LANGUAGES[of] if len(word.encode()) >= SHARED else []
        found = next((e for e in (entry(l, word) for l in others) if e is not None), None)
        if found is not None:
            return found
        return word if word.isascii() and lang is None or word.isascii() and own != "latin" else UNKNOWN

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
