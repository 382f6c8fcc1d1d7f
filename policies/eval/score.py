#!/usr/bin/env python3
"""Precision, recall and F1 of a scanner over labelled rows; by message, with the spans' coverage beside it.

usage: score.py ROWS.jsonl[.gz]... [--half H] [--source S,..] [--leave-out S,..] [--misses FILE] [--types] -- COMMAND...

COMMAND reads {"id","text"} lines and writes {"id","findings":[{"category","start","end"}]} lines, offsets in code points.
A row counts as found when a finding of its kind lies in it; benign rows alone can be false alarms. Encoded rows are
counted apart. `--misses` refuses held-out rows: what is looked at is no longer held out.
"""
import argparse, collections, gzip, json, resource, subprocess, sys

KINDS = ('secret', 'pii', 'injection')


def read(files):
    for file in files:
        with (gzip.open(file, 'rt', encoding='utf8') if file.endswith('.gz') else open(file, encoding='utf8')) as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def answers(command, rows):
    """What the command finds, by row, and the processor time it took, its start included."""
    lines = ''.join(json.dumps({'id': r['id'], 'text': r['text']}, ensure_ascii=False) + '\n' for r in rows)
    spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    start = spent()
    done = subprocess.run(command, input=lines.encode(), stdout=subprocess.PIPE, check=True)
    taken = spent() - start
    found = (json.loads(line) for line in done.stdout.splitlines() if line.strip())
    return {a['id']: a.get('findings', []) for a in found}, taken


def covered(row, findings):
    """How many of the row's spans are wholly under findings."""
    under = set()
    for f in findings:
        under.update(range(f['start'], f['end']))
    return sum(all(i in under for i in range(s, e)) for s, e in row['spans'])


def figures(rows, found, kind):
    """The figures of one kind, or None if no row is of it."""
    of = lambda r: [f for f in found.get(r['id'], []) if f['category'] == kind]
    plain = [r for r in rows if r['kind'] == kind and not r.get('evasion')]
    coded = [r for r in rows if r['kind'] == kind and r.get('evasion')]
    benign = [r for r in rows if r['kind'] == 'benign']
    if not plain:
        return None
    hits, alarms = [r for r in plain if of(r)], [r for r in benign if of(r)]
    spans = [r for r in hits if r.get('spans')]
    precision = len(hits) / max(1, len(hits) + len(alarms))
    recall = len(hits) / len(plain)
    return {
        'rows': len(plain), 'benign': len(benign), 'P': precision, 'R': recall,
        'F1': 2 * precision * recall / max(1e-9, precision + recall), 'flagged': len(alarms),
        'covered': sum(covered(r, of(r)) for r in spans) / max(1, sum(len(r['spans']) for r in spans)),
        'encoded': len(coded), 'encoded_R': sum(bool(of(r)) for r in coded) / max(1, len(coded)),
        'missed': [r for r in plain + coded if not of(r)], 'alarms': alarms,
    }


def main():
    argv = sys.argv[1:]
    if '--' not in argv:
        sys.exit(__doc__)
    cut = argv.index('--')
    p = argparse.ArgumentParser()
    p.add_argument('rows', nargs='+')
    p.add_argument('--half', default='')
    p.add_argument('--source', default='', help='only these; `registry` is every row taken from a package')
    p.add_argument('--leave-out', default='')
    p.add_argument('--kinds', default=','.join(KINDS))
    p.add_argument('--misses', default='')
    p.add_argument('--types', action='store_true')
    p.add_argument('--json', default='', help='add the figures to this file, one line')
    p.add_argument('--label', default='')
    a = p.parse_args(argv[:cut])
    source = lambda r: 'registry' if r.get('via') == 'registry' else r['source']
    only, out = (set(filter(None, s.split(','))) for s in (a.source, a.leave_out))
    rows = [r for r in read(a.rows) if (not a.half or r.get('half') == a.half) and (not only or source(r) in only) and source(r) not in out]
    found, taken = answers(argv[cut + 1:], rows)
    size = sum(len(r['text'].encode()) for r in rows)
    print(f'{len(rows)} rows, {size} bytes, {taken:.2f} s of the processor, {size / 1e6 / taken:.2f} MB/s with start')
    lines, record = [], {'label': a.label, 'rows': len(rows), 'mb_s': size / 1e6 / taken}
    for kind in a.kinds.split(','):
        f = figures(rows, found, kind)
        if f is None:
            continue
        print(f"{kind:9} {f['rows']:5}  P {f['P']:.3f}  R {f['R']:.3f}  F1 {f['F1']:.3f}  benign flagged {f['flagged']}/{f['benign']} ({100 * f['flagged'] / max(1, f['benign']):.2f} %)"
              f"  covered {f['covered']:.3f}  encoded R {f['encoded_R']:.3f} of {f['encoded']}")
        if a.types:
            per = collections.Counter(r['subtype'] for r in f['missed'])
            print('          missed: ' + ' '.join(f'{k}={n}' for k, n in per.most_common()))
        for word, some in (('missed', f.pop('missed')), ('alarm', f.pop('alarms'))):
            lines += [json.dumps({'what': word, 'want': kind, **{k: r.get(k) for k in ('id', 'subtype', 'carrier', 'evasion', 'half', 'text')}, 'got': found.get(r['id'])}, ensure_ascii=False) for r in some]
        record[kind] = f
    if a.misses:
        if any('"half": "held-out"' in line for line in lines):
            sys.exit('--misses is for rows that are tuned on; add --half tuned')
        open(a.misses, 'w').write('\n'.join(lines))
    if a.json:
        open(a.json, 'a').write(json.dumps(record) + '\n')


if __name__ == '__main__':
    main()
