#!/usr/bin/env python3
"""Independent test set: venv/bin/python make.py  -> rows.jsonl (deterministic)."""
import os, sys
if os.environ.get('PYTHONHASHSEED') != '0':
    os.environ['PYTHONHASHSEED'] = '0'; os.execv(sys.executable, [sys.executable] + sys.argv)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import random; random.seed(20261121)
from core import *
import sec_rows, pii_rows, inj_rows, ben_rows, evade
import core
def embed(x):
    k = R.randint(2, 5); parts = [ben_rows.draw(('mcp', 'binary', 'doc-injection', 'doc-secrets')) for _ in range(k)]; parts.insert(R.randint(0, k), x)
    return pick('\n\n', '\n---\n', '\n\n* * *\n\n').join(parts)
core.EMBED = embed
sec_rows.build(); sec_rows.build_leaf(); pii_rows.build(); inj_rows.build(); ben_rows.build(); ben_rows.build_long(); evade.build_all()
_seen = set()
ROWS[:] = [r for r in ROWS if not (r['text'] in _seen or _seen.add(r['text']))]
R.shuffle(ROWS)
# Looked at, or only counted. An order whose words stand in a row that was looked at is left out of the second.
import zlib
half = lambda r: ('looked-at', 'held-out')[zlib.crc32(str(r.get('base') or r['id']).encode()) % 2]
def words(r):
    s, e = (r.get('spans') or [(0, 0)])[0]
    return r['text'][s:e].replace('\\n', '').replace('\\', '')
known = {words(r) for r in ROWS if r['kind'] == 'injection' and half(r) == 'looked-at'}
for r in ROWS:
    r['half'] = 'known-words' if half(r) == 'held-out' and r['kind'] == 'injection' and words(r) in known else half(r)
out = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'rows.jsonl')
with open(out, 'w', encoding='utf8') as f:
    for r in ROWS: f.write(json.dumps({k: v for k, v in r.items() if not k.startswith('_')}, ensure_ascii=False) + '\n')
json.dump([[a, b, c] for a, b, c in pii_rows.VALID], open(os.path.join(os.path.dirname(out), 'valid.json'), 'w'))
print(len(ROWS), Counter((r['kind'], bool(r.get('evasion'))) for r in ROWS))
