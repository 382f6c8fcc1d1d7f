"""Writes proxy/crates/dlp-scan/src/check/given.txt: given names out of the lists of Faker (PyPI) and @faker-js/faker (npm), both MIT.

usage: scripts/given-names.py FOLDER     FOLDER is where the packages and the dictionaries are put; needs pip, npm, node and apt-get

Names that are words in one of six languages (Debian's word lists), and places, products and months, are left out; names that are
there already stay. Each Latin one is there without its accents as well, if that is no word.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import unicodedata
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
GIVEN = os.path.join(HERE, "../proxy/crates/dlp-scan/src/check/given.txt")
SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "ARMENIAN", "GEORGIAN", "THAI")
DICTIONARIES = ("wamerican", "wfrench", "wspanish", "witalian", "wportuguese", "wngerman")
WIDTH = 120
# What programs, firms and places are called, and words of languages that the dictionaries do not have.
NO_NAMES = set(
    """abb abd aby adja akar akım alabama alleen america amely angeles april arduino armani bindir brooklyn caronte ceil chanel dakota dax dior holland ireland
    kia lexus loki melbourne nim nox okta petri porsche primus sname toon utama vár warwick annak apa arah aren asal asia austin açık aşan baba baha baris barr baz berlin boston
    bristol bulan bölen cairo chelsea china columbia conn cornell cuba dag dallas danish darwin dell denver dev değer diri dow döner dua
    dublin ede edu ein eller ende ender eres europe exa eylül florence foss france ganda gemini geo geneva georgia georgian gregorian
    gün haskell hiba houston hörn iana iban india ine irl ise israel itri jakarta jan japan jax jordan juli jun june july january
    kalender karta kayıt kaynak kenya kesme koda koko kort kuba lage lincoln london lourdes luk lund lyon madison madrid malta már
    memphis milan nair nairobi nan nat nike nio nisan oba olan olen oma oman oracle orion ortak örn ota oxford özdeş özel özgün paris
    phoenix rand roma rome russia sada samsung samo satu savannah seaborn sev siku simge sini sony stanford sunday suse sydney sys
    taban talen tama tamam tanır tej temel texas toyota troy uygun valencia venice verim verona versie vienna virginia washington
    wayland yani yeni yeşil york zaman zarar över ötör söyler""".split()
)


# The same of those that are there already: a language, places, and a small word.
NEVER = {"ruby", "rails", "san", "santa", "على"}


def run(folder, *command):
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple | set):
        for part in value:
            yield from strings(part)


def of_faker(folder):
    run(folder, sys.executable, "-m", "pip", "download", "-q", "--no-deps", "Faker==40.63.0")
    wheel = next(f for f in os.listdir(folder) if f.startswith("faker-") and f.endswith(".whl"))
    zipfile.ZipFile(os.path.join(folder, wheel)).extractall(os.path.join(folder, "py"))
    sys.path.insert(0, os.path.join(folder, "py"))
    persons = os.path.join(folder, "py/faker/providers/person")
    for locale in sorted(os.listdir(persons)):
        if os.path.isdir(os.path.join(persons, locale)) and not locale.startswith("__"):
            provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
            for name in dir(provider):
                if "first" in name and "name" in name and not callable(getattr(provider, name)):
                    yield from strings(getattr(provider, name))


def of_faker_js(folder):
    run(folder, "npm", "pack", "-s", "@faker-js/faker@10.6.0")
    run(folder, "tar", "xzf", "faker-js-faker-10.6.0.tgz")
    code = """import { allLocales } from './package/dist/index.js';
      const out = [];
      for (const { person } of Object.values(allLocales))
        for (const list of Object.values(person?.first_name ?? {}))
          if (Array.isArray(list)) out.push(...list.map((w) => w.value ?? w));
      console.log(JSON.stringify(out));"""
    said = subprocess.run(["node", "--input-type=module", "-e", code], cwd=folder, check=True, capture_output=True)
    return json.loads(said.stdout)


def words(folder):
    run(folder, "apt-get", "download", *DICTIONARIES)
    for package in filter(lambda f: f.endswith(".deb"), os.listdir(folder)):
        run(folder, "dpkg-deb", "-x", package, "words")
    lists = os.path.join(folder, "words/usr/share/dict")
    for name in os.listdir(lists):
        if os.path.isfile(os.path.join(lists, name)):
            with open(os.path.join(lists, name), encoding="utf8", errors="replace") as f:
                yield from (w for w in f.read().split() if w == w.lower())


def bare(word):
    word = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
    return word.translate(str.maketrans("ıłøđ", "ilod"))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    with open(GIVEN, encoding="utf8") as f:
        kept = set(f.read().split()) - NEVER
    left_out = set(words(folder)) | NO_NAMES | NEVER
    script = lambda w: unicodedata.name(w[0], "?").split()[0]
    listed = {w.lower() for w in (*of_faker(folder), *of_faker_js(folder))}
    listed = {w for w in listed if re.fullmatch(r"[^\W\d_][^\W\d_'’]{2,}", w) and script(w) in SCRIPTS}
    names = (listed - left_out) | kept
    plain = {bare(w) for w in names if script(w) == "LATIN"}
    names |= {w for w in plain if w.isascii() and len(w) > 3} - left_out
    lines, line = [], ""
    for name in sorted(names):
        if line and len(line) + 1 + len(name) > WIDTH:
            lines.append(line)
            line = ""
        line = f"{line} {name}".strip()
    with open(GIVEN, "w", encoding="utf8") as f:
        f.write("\n".join([*lines, line]) + "\n")
    print(f"{len(names)} names")


main()
