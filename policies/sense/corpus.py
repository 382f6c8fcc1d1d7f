"""Sentences that are no orders, out of packages: documentation, docstrings, comments, long strings.

usage: corpus.py WORK     downloads what packages.txt names to WORK/wheels, writes WORK/benign.jsonl: [source, before, sentence, after]

Read as well, where the machine has them: sources of crates (~/.cargo/registry), manual pages, Debian's descriptions of packages.
"""

import ast
import collections
import glob
import gzip
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import zipfile

from sentences import sentences

HERE = os.path.dirname(os.path.abspath(__file__))
CAP = collections.defaultdict(lambda: 700, py=4000)


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
            elif n.endswith(".py"):
                text = read()
                for t in (*strings(text), *comments(text, "#")):
                    yield source, t
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
    dump = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True).stdout
    for i, record in enumerate(dump.split("\n\n")):
        m = re.search(r"(?m)^Description(?:-en)?: (.*(?:\n .*)*)", record)
        if m and i % 9 == 0:
            yield f"deb:{i % 50}", re.sub(r"\n \.?", "\n", m.group(1))


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
    random.seed(5)
    seen, per = set(), collections.Counter()
    with open(os.path.join(work, "benign.jsonl"), "w") as out:
        for source, t in texts(work):
            if per[source] > CAP[source.split(":")[0]]:
                continue
            cut = sentences(t)
            part = lambda k: t[cut[k][0] : cut[k][1]].strip() if 0 <= k < len(cut) else ""
            for k in range(len(cut)):
                s = part(k)
                letters = sum(c.isalpha() or c == " " for c in s)
                if len(s) < 12 or letters < 0.7 * len(s) or s.lower() in seen:
                    continue
                seen.add(s.lower())
                per[source] += 1
                out.write(json.dumps([source, part(k - 1), s, part(k + 1)], ensure_ascii=False) + "\n")
    print(sum(per.values()), "sentences of", len(per), "sources")


if __name__ == "__main__":
    main()
