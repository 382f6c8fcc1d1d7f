#!/usr/bin/env python3
"""Makes the fresh labelled set: rows of {id, kind, subtype, source, half, text, spans, evasion?}, the same for a seed.

usage: generate.py [--seed N] [--each N] [--half tuned|held-out] > rows.jsonl

Needs the packages of requirements.txt. Every secret is made here at run time, so that none stands in the repository.
Halves share neither types nor carriers nor phrases: `tuned` may be looked at, `held-out` only counted.
"""
import argparse, json, pathlib, random, re, zlib
import carriers, hiding, negatives, personal, values

HERE = pathlib.Path(__file__).parent
HALVES = ('tuned', 'held-out')


def half_of(name):
    """Which half a type or a carrier belongs to: by its name alone, so that additions do not move the others."""
    return HALVES[zlib.crc32(name.encode()) & 1]


def table(file, bar=r' \|(?= |$)', most=3):
    for line in (HERE / file).read_text().splitlines():
        if line.strip() and not line.startswith('#'):
            parts = [part.strip() for part in re.split(bar, line.strip(), maxsplit=most)]
            yield parts + [''] * (most + 1 - len(parts))


def pick(rng, group, half):
    return rng.choice(sorted(n for n in group if half_of(n) == half))


def place(text, value, hot):
    """Spans of the value's secret parts in the text; none if the carrier changed how the value is written."""
    at = text.find(value)
    return [[at + s, at + e] for s, e in hot] if at >= 0 else []


def secrets(rng, each):
    for name, template, names, flags in table('secrets.txt'):
        names = [n.strip() for n in names.split(',') if n.strip()]
        whole = 'u' in flags.split() or not names
        half = half_of(name)
        for n in range(each):
            value, hot = values.fill(rng, template)
            var = rng.choice(names or ['value'])
            named = bool(names) and ('c' in flags.split() or rng.random() < 0.6)
            group = carriers.NAMED if named else carriers.WHOLE if whole else carriers.BARE
            carrier = pick(rng, group, half)
            text = group[carrier](rng, var, value)
            row = {'kind': 'secret', 'subtype': name, 'carrier': carrier, 'half': half, 'text': text, 'spans': place(text, value, hot)}
            if 'c' in flags.split():
                row['ctx_only'] = True
            yield row
            if n == 0:
                yield from evasions(rng, row, text, value)


def evasions(rng, base, text, value):
    """The row once more with its value (or, if that names it, all of it) encoded."""
    if len(value) > 400 or base.get('ctx_only') and rng.random() < 0.5:
        return
    how = pick(rng, hiding.ENCODINGS, base['half'])
    whole = base.get('ctx_only') or base['kind'] == 'injection' or text.find(value) < 0
    coded = hiding.ENCODINGS[how](rng, text if whole else value)
    out = coded if whole else text.replace(value, coded)
    if base['kind'] == 'pii' and how in ('reversed', 'rot13', 'homoglyph', 'spaced', 'dashed'):
        return
    yield {**base, 'text': out, 'spans': [], 'evasion': how}


def people(rng, each):
    for name, check, template, words in table('pii.txt'):
        words = [w.strip() for w in words.split(',') if w.strip()]
        half = half_of(name)
        for n in range(each):
            value = personal.fill(rng, check, template)
            word = rng.choice(words) if words else ''
            forms = [
                lambda: f'{word}: {value}', lambda: f'{carriers.prose(rng, 4)}, {word} {value}, {carriers.prose(rng, 3)}',
                lambda: json.dumps({'name': 'J. Doe', word or 'note': value, 'active': True}, ensure_ascii=False),
                lambda: f'| name | {word or "value"} |\n|---|---|\n| J. Doe | {value} |\n',
                lambda: f'name;{word or "value"};city\nDoe;{value};Lund\n', lambda: f'<person><field name="{word or "value"}">{value}</field></person>',
                lambda: f'{word.title()} = {value}\n', lambda: f'Hi, my {word} is {value} - can you check?',
            ]
            form = rng.randrange(len(forms) // 2) * 2 + HALVES.index(half)
            text = forms[form]()
            row = {'kind': 'pii', 'subtype': name, 'carrier': f'form-{form}', 'half': half, 'text': text, 'spans': place(text, value, [(0, len(value))])}
            yield row
            if n == 0 and rng.random() < 0.6:
                yield from evasions(rng, row, text, value)


def orders(rng, each):
    wrap = {
        'tuned': [lambda t: t, lambda t: json.dumps({'content': [{'type': 'text', 'text': 'Result 1 of 3\n' + t}]}, ensure_ascii=False),
                  lambda t: f'<!-- {t} -->\n<p>{carriers.prose(rng)}</p>', lambda t: f'{carriers.prose(rng).capitalize()}. {t} {carriers.prose(rng).capitalize()}.'],
        'held-out': [lambda t: t, lambda t: json.dumps({'name': 'search', 'description': 'Searches pages. ' + t}, ensure_ascii=False),
                     lambda t: f'# {carriers.prose(rng, 3)}\n\n{carriers.prose(rng)}\n\n> {t}\n', lambda t: f'{carriers.prose(rng)}\n\n\n{t}\n'],
    }
    for mark, kind, language, text in table('injections.txt', r'\|', 3):
        half = HALVES['ab'.index(mark)]
        for n, form in enumerate(rng.sample(wrap[half], min(each, 2))):
            row = {'kind': 'injection', 'subtype': f'{kind}-{language}', 'carrier': 'wrap', 'half': half, 'text': form(text), 'spans': []}
            yield row
            if n == 0 and rng.random() < 0.35:
                yield from evasions(rng, row, row['text'], text)


def ordinary(rng, each):
    for name, make in negatives.NEGATIVES.items():
        for _ in range(each * 4):
            yield {'kind': 'benign', 'subtype': name, 'half': half_of(name), 'text': make(rng), 'spans': []}
    for mark, text in table('talk.txt', r'\|', 1):
        yield {'kind': 'benign', 'subtype': 'talk', 'half': HALVES['ab'.index(mark)], 'text': text, 'spans': []}
    for line in (HERE / 'mcp-results.jsonl').read_text().splitlines():
        got = json.loads(line)
        name = f"mcp-{got['server']}-{got['tool']}"
        yield {'kind': 'benign', 'subtype': name, 'half': half_of(got['text']), 'text': got['text'], 'spans': []}


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--seed', type=int, default=20260301)
    p.add_argument('--each', type=int, default=2, help='rows of each type')
    p.add_argument('--half', choices=HALVES)
    a = p.parse_args()
    for part in (secrets, people, orders, ordinary):
        rng = random.Random(f'{a.seed} {part.__name__}')
        for n, row in enumerate(part(rng, a.each)):
            row = {'id': f'fresh-{part.__name__}-{n}', 'source': 'fresh', **row}
            if a.half in (None, row['half']):
                print(json.dumps(row, ensure_ascii=False))


main()
