import json, re, zlib, base64, gzip, html, urllib.parse, codecs, quopri, unicodedata, importlib, ipaddress, binascii
from collections import Counter, defaultdict
import phonenumbers, jwt, base58
from stdnum import luhn, iban
from stdnum.exceptions import ValidationError
rows = [json.loads(l) for l in open('rows.jsonl', encoding='utf8')]
byid = {r['id']: r for r in rows}; bad = []
def err(r, m): bad.append((r['id'], r['subtype'], m))
def unj(s):
    """undo JSON string escaping repeatedly (values were embedded 0..3 levels deep)"""
    out = {s}
    for _ in range(4):
        try: s = json.loads('"' + re.sub(r'[\x00-\x1f]', lambda m: '\\u%04x' % ord(m[0]), s) + '"')
        except Exception: break
        out.add(s)
    return out
assert len(byid) == len(rows)
dup = [k for k, v in Counter(r['text'] for r in rows).items() if v > 1]
print('duplicate texts', len(dup), [d[:80] for d in dup[:5]])
for r in rows:
    t = r['text']
    if re.search('[\ue000\ue001]|ue00[01]', t): err(r, 'sentinel left')
    if r['kind'] == 'benign':
        if 'spans' in r: err(r, 'benign spans')
    else:
        if not r.get('spans'): err(r, 'no spans')
        last = -1
        for a, b in r['spans']:
            if not (0 <= a < b <= len(t)) or a < last: err(r, 'span %s %s' % (a, b))
            last = b
            v = t[a:b]
            if v != v.strip(' \n') and not r.get('evasion'): err(r, 'span edge ' + repr(v[:20]))
    if r.get('evasion') and r['base'] not in byid: err(r, 'base')
    body = re.sub(r'^(id: \d+\n)?(event: message\n)?data: ', '', t) if t.startswith(('data: ', 'event: message', 'id: ')) and '\ndata: {' in t else t
    if body.lstrip().startswith(('{"jsonrpc', '[{"jsonrpc', '{\n "jsonrpc', '{\n  "jsonrpc', '{\n    "jsonrpc')):
        try: json.loads(body)
        except Exception as e: err(r, 'json ' + str(e))
# --- validity of secrets
B62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
def b62(n):
    s = ''
    while n: s = B62[n % 62] + s; n //= 62
    return s.rjust(6, '0')
nv = Counter()
for r in rows:
    if r['kind'] != 'secret' or r.get('evasion'): continue
    for a, b in r['spans']:
        for v in unj(r['text'][a:b]):
            m = re.fullmatch(r'(ghp|gho|ghs|npm)_([0-9A-Za-z]{30})([0-9A-Za-z]{6})', v)
            if m:
                nv['crc'] += 1
                if b62(zlib.crc32(m[2].encode())) != m[3]: err(r, 'crc')
            if re.fullmatch(r'eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+', v):
                nv['jwt'] += 1; jwt.get_unverified_header(v); jwt.decode(v, options={'verify_signature': False})
            if r['subtype'] in ('btc-wif', 'btc-xprv'): base58.b58decode_check(v); nv['b58'] += 1
        vs = [x for x in unj(r['text'][a:b]) if x.startswith('-----BEGIN') and '\n' in x]
        if vs and 'enc' not in r['subtype'] and r['subtype'] in ('rsa-pem', 'ec-pem', 'pkcs8-pem', 'openssh-key', 'gcp-service-account'):
            from cryptography.hazmat.primitives import serialization as s
            x = vs[0].strip() + '\n'
            try: (s.load_ssh_private_key if 'OPENSSH' in x else s.load_pem_private_key)(x.encode(), None); nv['pem'] += 1
            except Exception as e: err(r, 'pem %r' % e)
# --- validity of PII
VAL = json.load(open('valid.json')); mods = {s: m for s, v, m in VAL if m}
MODS2 = {'de_ust_id': 'de.vat', 'us_routing': 'us.rtn'}
for r in rows:
    if r['kind'] != 'pii' or r.get('evasion'): continue
    s = r['subtype']
    for a, b in r['spans']:
        c = unj(r['text'][a:b]) | {urllib.parse.unquote(r['text'][a:b])}
        if s in mods or s in MODS2:
            m = importlib.import_module('stdnum.' + (mods.get(s) or MODS2[s]))
            if not any(m.is_valid(x) for x in c): err(r, 'invalid %s %r' % (m.__name__, c))
            else: nv['stdnum'] += 1
        elif s.startswith('iban'):
            if not any(iban.is_valid(x) for x in c): err(r, 'iban %r' % c)
            else: nv['iban'] += 1
        elif s.startswith('phone'):
            cc = s[-2:].upper()
            if not phonenumbers.is_valid_number(phonenumbers.parse(sorted(c)[0], cc)): err(r, 'phone %r' % c)
            else: nv['phone'] += 1
        elif s == 'credit_card':
            if not any(luhn.is_valid(re.sub(r'\D', '', x)) for x in c): err(r, 'luhn')
            else: nv['card'] += 1
        elif s.startswith('ipv'): [ipaddress.ip_address(x) for x in c]; nv['ip'] += 1
# --- evasion rows decode back to base value
TAGS = lambda x: ''.join(chr(ord(c) - 0xE0000) if 0xE0000 <= ord(c) < 0xE0080 else c for c in x)
from evade import HG, LEET
INVH = {v: k for k, v in HG.items()}
def decs(x, name):
    x0 = x
    try:
        if name in ('b64', 'blob'): return [base64.b64decode(x).decode()]
        if name == 'b64url': return [base64.urlsafe_b64decode(x + '=' * (-len(x) % 4)).decode()]
        if name == 'b64x2': return [base64.b64decode(base64.b64decode(x)).decode()]
        if name == 'url': return [urllib.parse.unquote(x)]
        if name == 'hex': return [bytes.fromhex(x).decode()]
        if name == 'hexx': return [codecs.escape_decode(x)[0].decode()]
        if name == 'html': return [html.unescape(x)]
        if name == 'zw': return [re.sub('[\u200b\u200c\u2060\u00ad]', '', x)]
        if name == 'full': return [unicodedata.normalize('NFKC', x)]
        if name == 'homo': return [''.join(INVH.get(c, c) for c in x)]
        if name == 'rev': return [x[::-1]]
        if name == 'space': return [x[::2]]
        if name == 'gz': return [gzip.decompress(base64.b64decode(x)).decode()]
        if name == 'b32': return [base64.b32decode(x).decode()]
        if name == 'leet': return [x]
        if name == 'rot13': return [codecs.encode(x, 'rot13')]
        if name == 'qp': return [quopri.decodestring(x.encode()).decode()]
        if name == 'tags': return [TAGS(x)]
        if name == 'arabic': return [x.translate({0x660 + k: 48 + k for k in range(10)})]
        if name == 'concat': return [''.join(re.findall(r'''["']([^"']*)["']''', x))]
        if name == 'array': return [''.join(json.loads('[' + x + ']'))]
        return [x]
    except Exception: return []
enc = Counter()
for r in rows:
    if not r.get('evasion'): continue
    name = r['subtype'].split(':')[1]; enc[(r['kind'], name)] += 1
    base = byid[r['base']]; want = {w.strip() for a, b in base['spans'] for w in unj(base['text'][a:b])}; got = set()
    if name in ('split-blocks', 'blocks'): segs = [''.join(r['text'][a:b] for a, b in r['spans'])]
    else: segs = [r['text'][a:b] for a, b in r['spans']]
    for x in segs:
        for y in unj(x):
            got.update(decs(y, name))
    if not any(w in g or (name == 'leet' and len(w) == len(g)) or w in u for w in want for g in got for u in unj(g)): err(r, 'decode %r want %r got %r' % (name, [w[:50] for w in want], [g[:50] for g in got]))
# --- benign: accidental positives
for r in rows:
    if r['kind'] != 'benign': continue
    t = r['text']
    for m in re.findall(r'[\w.+-]+@[\w-]+\.[a-z]{2,}', t):
        if 'example' not in m: err(r, 'email ' + m)
    for m in re.findall(r'(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])', t):
        try:
            if ipaddress.ip_address(m).is_global: err(r, 'ip ' + m)
        except ValueError: pass
    for m in re.findall(r'\b[A-Z]{2}\d{2}[ A-Z0-9]{11,34}\b', t):
        if iban.is_valid(m): err(r, 'iban ' + m)
    for m in re.findall(r'(?<![\d-])[3-6]\d{3}[ -]?\d{4}[ -]?\d{4}[ -]?\d{1,4}(?![\d-])', t):
        if luhn.is_valid(re.sub(r'\D', '', m)): err(r, 'card ' + m)
    for m in phonenumbers.PhoneNumberMatcher(t, None): err(r, 'phone ' + m.raw_string)
    if re.search(r'\+\d{8,}', t) and 0: pass
print('validated', dict(nv)); print('problems', len(bad))
for b in bad[:40]: print(b)
print(Counter((r['kind'], bool(r.get('evasion'))) for r in rows), 'mean len', sum(len(r['text']) for r in rows) // len(rows))
print({k: len({r['subtype'] for r in rows if r['kind'] == k and not r.get('evasion')}) for k in ('secret', 'pii', 'injection', 'benign')}, 'ctx_only', sum(bool(r.get('ctx_only')) for r in rows))
print('encodings', len({k[1] for k in enc}), dict(enc))
