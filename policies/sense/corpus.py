"""Sentences that are no orders, out of packages: documentation, docstrings, comments, long strings.

usage: corpus.py WORK     downloads what packages.txt names to WORK/wheels and what DEBS names to WORK/debs, writes
                          WORK/benign.jsonl: [source, before, sentence, after]

Other languages come from Debian's translated manuals and the translations within wheels. Read as well, where the machine has them:
sources of crates (~/.cargo/registry), manual pages, Debian's descriptions of packages and the licences that Debian keeps.
"""

import ast
import collections
import gettext
import glob
import gzip
import hashlib
import html
import io
import json
import os
import random
import re
import subprocess
import sys
import zipfile

from sentences import is_read, sentences

HERE = os.path.dirname(os.path.abspath(__file__))
CAP = collections.defaultdict(lambda: 700, py=4000, help=400, manual=400, licence=10**6)
LANGUAGES = "ar cs da de el es fi fr hu id it ja ko nl pl pt-br ro ru sv tr uk zh".split()
DEBS = [f"manpages-{x}" for x in LANGUAGES] + [f"libreoffice-help-{'zh-cn' if x == 'zh' else x}" for x in LANGUAGES]


def strings(source):
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for n in ast.walk(tree):
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and 30 <= len(n.value) <= 20000 and " " in n.value:
            yield n.value


def comments(source, sign):
    block = []
    for line in source.split("\n"):
        m = re.match(r"\s*" + sign + r" ?(.*)", line)
        if m:
            block.append(m.group(1))
        elif block:
            if sum(map(len, block)) > 30:
                yield "\n".join(block)
            block = []


def translated(name, file):
    """The translations in a catalogue of a language that there is a table of."""
    m = re.search(r"(?:^|/)(\w\w)(?:_\w+)?/LC_MESSAGES/[^/]+\.mo$", name)
    if m and any(x.startswith(m[1]) for x in LANGUAGES):
        try:
            catalogue = gettext.GNUTranslations(io.BytesIO(file()))
        except (OSError, UnicodeDecodeError, ValueError):
            return
        yield from (t for t in catalogue._catalog.values() if isinstance(t, str) and len(t) > 60)


def manuals(folder):
    """Translated manuals of unpacked packages of Debian."""
    for f in sorted(glob.glob(folder + "/*/usr/share/man/*/man[1-8]/*.gz")):
        text = gzip.open(f, "rt", errors="replace").read()[:40_000]
        source = "manual:" + f.split("/man/")[1].split("/")[0].split(".")[0] + hashlib.md5(f.encode()).hexdigest()[:1]
        yield source, re.sub(r"(?m)^\.[A-Za-z]+ ?|^[.']\\\".*|\\f.|\\-", "", text)
    for f in sorted(glob.glob(folder + "/*/usr/share/libreoffice/help/*/text/**/*.html", recursive=True)):
        text = open(f, encoding="utf8", errors="replace").read()
        text = html.unescape(
            re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<head.*?</head>|<script.*?</script>|</?(?:p|li|td|h\d|div)\b[^>]*>", "\n\n", text))
        )
        source = "help:" + f.split("/help/")[1].split("/")[0] + hashlib.md5(f.encode()).hexdigest()[:1]
        yield source, re.sub(r"\n\s*\n\s*", "\n\n", re.sub(r"[ \t]+", " ", text))


def texts(work):
    for wheel in sorted(glob.glob(os.path.join(work, "wheels", "*.whl"))):
        source, z = "py:" + os.path.basename(wheel).split("-")[0], zipfile.ZipFile(wheel)
        names = z.namelist()
        random.shuffle(names)
        for n in names[:1500]:
            if z.getinfo(n).file_size > 400_000:
                continue
            read = lambda: z.read(n).decode("utf8", "replace")
            if n.endswith((".md", ".rst", ".txt", "METADATA")):
                yield source, read()
            elif n.endswith(".mo"):
                yield from (("mo:" + os.path.basename(wheel).split("-")[0], t) for t in translated(n, lambda: z.read(n)))
            elif n.endswith(".py"):
                text = read()
                for t in (*strings(text), *comments(text, "#")):
                    yield source, t
    yield from manuals(os.path.join(work, "debs"))
    for folder in sorted(glob.glob(os.path.expanduser("~/.cargo/registry/src/*/*"))):
        files = glob.glob(folder + "/src/**/*.rs", recursive=True)
        random.shuffle(files)
        for f in glob.glob(folder + "/*.md") + files[:8]:
            text = open(f, errors="replace").read()[:200_000]
            for t in [text] if f.endswith(".md") else comments(text, "//[/!]?"):
                yield "crate:" + os.path.basename(folder), t
    for f in sorted(glob.glob("/usr/share/man/man[1-8]/*.gz") + glob.glob("/usr/share/doc/*/*.gz")):
        text = gzip.open(f, "rt", errors="replace").read()[:20_000]
        yield "sys:" + hashlib.md5(f.encode()).hexdigest()[:2], re.sub(r"(?m)^\.[A-Za-z]+ ?|\\f.|\\-", "", text)
    for f in sorted(glob.glob("/usr/share/common-licenses/*")):
        yield "licence:" + os.path.basename(f), open(f, errors="replace").read()
    dump = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True).stdout
    for i, record in enumerate(dump.split("\n\n")):
        m = re.search(r"(?m)^Description(?:-en)?: (.*(?:\n .*)*)", record)
        if m and i % 9 == 0:
            yield f"deb:{i % 50}", re.sub(r"\n \.?", "\n", m.group(1))


def windows(t, cut, k, every):
    """Sentence `k` between its neighbours, and what of it the scanner may see in its stead: it begins in the middle of a long one."""
    part = lambda k: t[cut[k][0] : cut[k][1]].strip() if 0 <= k < len(cut) else ""
    before, s, after = part(k - 1), part(k), part(k + 1)
    yield before, s, after
    if len(before.encode("utf8", "replace")) >= 350:
        yield before[: len(before) // 2], before[len(before) // 2 :] + " " + s[:180], s[180:]
    begin, end = cut[k]
    if end - begin >= 350 and k + 1 < len(cut):
        end = cut[k + 1][1]
    for at in range(begin + 60, end - 24, 60) if every else ():
        a = t.find(" ", at) + 1
        b = min(end, a + 360)
        if 0 < a < b:
            yield t[max(0, a - 200) : a], t[a:b], t[b : b + 150]


def main():
    work = sys.argv[1]
    os.makedirs(work, exist_ok=True)
    for package in open(os.path.join(HERE, "packages.txt")).read().split():
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "-q",
                "download",
                "--no-deps",
                "--only-binary",
                ":all:",
                "-d",
                os.path.join(work, "wheels"),
                package,
            ]
        )
    debs = os.path.join(work, "debs")
    os.makedirs(debs, exist_ok=True)
    for deb in DEBS:  # not all there are
        subprocess.run(["apt-get", "-qq", "download", deb], cwd=debs)
    for deb in glob.glob(debs + "/*.deb"):
        subprocess.run(["dpkg-deb", "-x", deb, os.path.join(debs, os.path.basename(deb).split("_")[0])], check=True)
    random.seed(5)
    seen, per = set(), collections.Counter()
    with open(os.path.join(work, "benign.jsonl"), "w") as out:
        for source, t in texts(work):
            if per[source] > CAP[source.split(":")[0]]:
                continue
            cut = sentences(t)
            for k in range(len(cut)):
                for beside in windows(t, cut, k, source.startswith("licence")):
                    if is_read(beside[1]) and beside[1].lower() not in seen:
                        seen.add(beside[1].lower())
                        per[source] += 1
                        out.write(json.dumps([source, *beside], ensure_ascii=False) + "\n")
    print(sum(per.values()), "sentences of", len(per), "sources")


if __name__ == "__main__":
    main()
