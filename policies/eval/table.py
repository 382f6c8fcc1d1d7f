#!/usr/bin/env python3
"""Puts the figures that score.py wrote between the marks in a page.

usage: table.py FIGURES.jsonl PAGE.md MARK
"""
import json, pathlib, re, sys



def rows(lines):
    yield '| engine | rows | kind | P | R | F1 | benign flagged | encoded rows, R | MB/s with start |'
    yield '|---|---|---|---|---|---|---|---|---|'
    for line in lines:
        r = json.loads(line)
        engine, part = r['label'].split(' | ')
        for kind in ('secret', 'pii', 'injection'):
            if f := r.get(kind):
                coded = f"{f['encoded_R']:.3f} ({f['encoded']})" if f['encoded'] else '-'
                yield (f"| {engine} | {part} ({f['rows']} + {f['benign']} benign) | {kind} | {f['P']:.3f} | {f['R']:.3f} | {f['F1']:.3f} | "
                       f"{100 * f['flagged'] / max(1, f['benign']):.2f} % | {coded} | {r['mb_s']:.2f} |")


def main():
    figures, page = (pathlib.Path(p) for p in sys.argv[1:3])
    marks = [f'<!-- {sys.argv[3]}: {end} -->' for end in ('begin', 'end')]
    table = '\n'.join(rows(figures.read_text().splitlines()))
    print(table)
    text = page.read_text()
    begin, end = (re.escape(m) for m in marks)
    text, n = re.subn(f'{begin}.*?{end}', lambda _: f'{marks[0]}\n{table}\n{marks[1]}', text, flags=re.S)
    if not n:
        sys.exit(f'{page} has no place for the table: put {marks[0]} and {marks[1]} where it belongs')
    page.write_text(text)


main()
