"""The first example of every rule, written in each of many forms: how many are found.

    python3 policies/eval/forms.py [--pairs N] target/release/weir

A rule that is found by itself should be found in whatever form people and programs write the same text: behind comment signs, in CSV, in
a literal, encoded. The table says for each form and category which share is, the worst first; `--pairs N` writes N rules of each category
in two forms, one within the other, and counts only what is found in either. Examples are the rules' own, so it says nothing of values
that no rule knows; it shows where reading fails, not rules.
"""
import argparse
import collections
import glob
import html
import io
import itertools
import json
import os
import random
import subprocess
import sys
import textwrap
import urllib.parse
import zipfile

import yaml

from hiding import ENCODINGS, _b64

RULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'rules', '*.yml')
LEAD = 'Notes of the meeting on Tuesday: the build is green, and the release goes out next week. '


def _lines(text, width=50):
    return textwrap.wrap(LEAD + text, width, break_long_words=False, break_on_hyphens=False) or ['']


def _zip(text):
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('notes.txt', text)
    return out.getvalue()


def _halves(between):
    return lambda t: t[:len(t) // 2] + between + t[len(t) // 2:]


FORMS = {
    'sentence': lambda t: f'Hello, here is what you asked for: {t} thanks.',
    'json': lambda t: json.dumps({'note': t}),
    'json-in-json': lambda t: json.dumps({'a': json.dumps({'note': t})}),
    'yaml': lambda t: 'items:\n  - note: |\n      ' + t.replace('\n', '\n      ') + '\n',
    'xml-attribute': lambda t: f'<item note="{html.escape(t)}"/>',
    'cdata': lambda t: f'<doc><item><![CDATA[{t}]]></item></doc>',
    'csv': lambda t: 'id,note\n1,"' + t.replace('"', '""') + '"\n2,"ok"\n',
    'sql': lambda t: "INSERT INTO notes VALUES (1, '" + t.replace("'", "''") + "');",
    'table': lambda t: '| id | note |\n|---|---|\n| 1 | ' + t.replace('\n', ' ') + ' |\n',
    'literal': lambda t: f'char *s = {json.dumps(t)};',
    'literals': lambda t: 'msg = (' + '\n       '.join(json.dumps(line + ' ') for line in _lines(t)) + ')',
    'literals-plus': lambda t: 'msg = ' + ' +\n    '.join(json.dumps(line + ' ') for line in _lines(t)) + ';',
    'variables': lambda t: f'a = {json.dumps(t[:len(t) // 2])}\nb = {json.dumps(t[len(t) // 2:])}\nkey = a + b',
    'link': lambda t: f'https://example.com/cb?x=1&note={urllib.parse.quote(t, safe="")}&y=2',
    'backslashes': lambda t: ''.join('\\' + c if not c.isalnum() else c for c in t),
    'decimal': lambda t: str(list(t.encode())),
    'filled': lambda t: '\n'.join(_lines(t)),
    'filled-crlf': lambda t: '\r\n'.join(_lines(t)),
    'filled-br': lambda t: '<br>\n'.join(_lines(t)),
    'filled-#': lambda t: '\n'.join('# ' + line for line in _lines(t)),
    'filled-//': lambda t: '\n'.join('// ' + line for line in _lines(t)),
    'filled-*': lambda t: '/**\n' + '\n'.join(' * ' + line for line in _lines(t)) + '\n */',
    'filled->': lambda t: '\n'.join('> ' + line for line in _lines(t)),
    'filled-+': lambda t: '\n'.join('+' + line for line in _lines(t)),
    'filled-frame': lambda t: '\n'.join(f'| {line} |' for line in _lines(t)),
    'filled-numbers': lambda t: '\n'.join(f'{n:4}\t{line}' for n, line in enumerate(_lines(t), 1)),
    'filled-log': lambda t: '\n'.join(f'2026-11-29 06:22:30 INFO {line}' for line in _lines(t)),
    'cut': _halves('\n'),
    'cut-crlf': _halves('\r\n'),
    'tags': lambda t: '<p>' + _halves('</span><span>')(t) + '</p>',
    'runs': lambda t: '<w:r><w:t>' + _halves('</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>')(t) + '</w:t></w:r>',
    'colours': _halves('\x1b[31m'),
    'zip-base64': lambda t: _b64(_zip(LEAD + t)),
    'base64-quoted': lambda t: '> ' + '\n> '.join(textwrap.wrap(_b64((LEAD * 2 + t).encode()), 76)),
    **{name: lambda t, write=write: write(None, t) for name, write in ENCODINGS.items()},
}


def examples():
    """(id, category, text) of each rule that has examples."""
    for path in sorted(glob.glob(RULES)):
        with open(path, encoding='utf-8') as file:
            read = yaml.safe_load(file)
        for rule in read['rules']:
            first = (rule.get('examples') or [None])[0]
            text = ''.join(first) if isinstance(first, list) else first
            if isinstance(text, str):
                yield rule['id'], rule.get('category') or read.get('defaults', {}).get('category'), text


def found(weir, rows):
    """For each (key, text): the categories of what is found in the text."""
    rows = list(rows)
    text = '\n'.join(json.dumps({'id': n, 'text': text}) for n, (_, text) in enumerate(rows))
    done = subprocess.run([weir, 'scan', '--jsonl'], input=text, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return {rows[a['id']][0]: {f['category'] for f in a['findings']} for a in answers}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--pairs', type=int, metavar='N', help='two forms, one within the other, of N rules of each category')
    parser.add_argument('weir')
    args = parser.parse_args()

    rules = list(examples())
    plain = found(args.weir, ((rule, rule[2]) for rule in rules))
    rules = [rule for rule in rules if rule[1] in plain[rule]]
    if args.pairs:
        dice = random.Random(1)
        by_category = collections.defaultdict(list)
        for rule in rules:
            by_category[rule[1]].append(rule)
        rules = [r for of in by_category.values() for r in dice.sample(of, min(args.pairs, len(of)))]
    rows = [((rule, (form,)), write(rule[2])) for rule in rules for form, write in FORMS.items()]
    hits = {key: key[0][1] in categories for key, categories in found(args.weir, rows).items()}
    if args.pairs:
        single, hits = hits, {}
        for inner, outer in itertools.product(FORMS, FORMS):
            both = [r for r in rules if single[r, (inner,)] and single[r, (outer,)]]
            texts = (((r, (inner, outer)), FORMS[outer](FORMS[inner](r[2]))) for r in both)
            answers = found(args.weir, texts)
            hits.update({key: key[0][1] in categories for key, categories in answers.items()})
            print(f'\r{inner} in {outer}\033[K', end='', file=sys.stderr)
        print('\r\033[K', end='', file=sys.stderr)

    counts = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for (rule, forms), hit in hits.items():
        count = counts[' in '.join(forms)][rule[1]]
        count[0] += hit
        count[1] += 1
    categories = sorted({category for count in counts.values() for category in count})
    print('| form |', ' | '.join(categories), '|\n|---|' + '---|' * len(categories))
    share = lambda count: count[0] / count[1] if count[1] else 1.0
    for form in sorted(counts, key=lambda form: min(share(count) for count in counts[form].values())):
        cells = (f'{share(counts[form][category]):.3f} ({counts[form][category][1]})' for category in categories)
        print(f'| {form} |', ' | '.join(cells), '|')


if __name__ == '__main__':
    main()
