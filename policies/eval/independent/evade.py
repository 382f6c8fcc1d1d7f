from core import *
import quopri, codecs
HG = dict(zip('ABCEHKMOPTXaceopxyis', 'АВСЕНКМОРТХасеорхуіѕ'))
LEET = dict(zip('aeiostAEIOST', '431057431057'))
val = lambda inner: re.findall(S + '(.*?)' + E, inner, re.S)
def sub(inner, f): return re.sub(S + '(.*?)' + E, lambda m: M(f(m[1])), inner, flags=re.S)
plain = lambda inner: inner.replace(S, '').replace(E, '')
def gz(x): return b64(gzip.compress(x.encode(), mtime=0))
def chunks(v, n):
    k = max(1, -(-len(v) // n)); return [v[i:i + k] for i in range(0, len(v), k)]
# value level
def v_b64(i, r): return sub(i, b64)
def v_b64url(i, r): return sub(i, b64u)
def v_b64x2(i, r): return sub(i, lambda v: b64(b64(v)))
def v_url(i, r): return sub(i, lambda v: ''.join('%%%02X' % c for c in v.encode()))
def v_hex(i, r): return sub(i, lambda v: v.encode().hex())
def v_hexx(i, r): return sub(i, lambda v: ''.join('\\x%02x' % c for c in v.encode()))
def v_html(i, r): k = R.random() < .5; return sub(i, lambda v: ''.join('&#%d;' % ord(c) if k else '&#x%x;' % ord(c) for c in v))
def v_zw(i, r): z = R.choice('\u200b\u200c\u2060\u00ad'); return sub(i, lambda v: z.join(v))
def v_full(i, r): return sub(i, lambda v: ''.join(chr(ord(c) + 0xFEE0) if '!' <= c <= '~' else c for c in v))
def v_homo(i, r): return sub(i, lambda v: ''.join(HG.get(c, c) for c in v))
def v_rev(i, r): return sub(i, lambda v: v[::-1])
def v_space(i, r): return sub(i, lambda v: ' '.join(v))
def v_gz(i, r): return sub(i, gz)
def v_b32(i, r): return sub(i, lambda v: base64.b32encode(v.encode()).decode())
def v_leet(i, r): return sub(i, lambda v: ''.join(LEET.get(c, c) for c in v))
def v_rot13(i, r): return sub(i, lambda v: codecs.encode(v, 'rot13'))
def v_qp(i, r):
    def q(v):
        s = ''.join('=%02X' % c for c in v.encode()); return '=\n'.join(s[k:k + 72] for k in range(0, len(s), 72))
    return pick('Content-Transfer-Encoding: quoted-printable\n\n', 'Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\nMIME-Version: 1.0\n\n') + sub(i, q)
def v_tags(i, r): return sub(i, lambda v: ''.join(chr(0xE0000 + ord(c)) if ord(c) < 128 else c for c in v))
def v_arabic(i, r): return sub(i, lambda v: v.translate({48 + k: 0x660 + k for k in range(10)}))
def v_concat(i, r):
    p = chunks(val(i)[0], R.randint(2, 5)); n = re.sub(r'\W+', '_', r['subtype']); n += '' if re.search('key|secret|token|pass|pwd', n) or r['kind'] != 'secret' else '_key'
    k = R.randint(0, 4)
    q = lambda x: '"%s"' % x
    if k == 0: return '%s = (%s)' % (n, M(' + '.join(q(x) for x in p)))
    if k == 1: return 'const %s = %s;' % (n, M(' + '.join("'%s'" % x for x in p)))
    if k == 2: return '$%s = %s;' % (n, M(' . '.join("'%s'" % x for x in p)))
    if k == 3: return '%s = (\n    %s\n)\n' % (n, M('\n    '.join(q(x) for x in p)))
    return 'String %s = new StringBuilder().%s.toString();' % (n, M('.'.join('append(%s)' % q(x) for x in p)))
def v_array(i, r):
    p = chunks(val(i)[0], R.randint(2, 4)); return J({'kind': r['subtype'], 'parts': '@@'}).replace('"@@"', '[' + M(','.join(J(x) for x in p)) + ']')
# whole text
def w_b64(i, r): return pick('config.b64:\n', 'echo %s | base64 -d', 'blob=%s', '%s') .replace('config.b64:\n', 'config.b64:\n%s') % M(b64(plain(i)))
def w_hex(i, r): return pick('hexdump -p: %s', '0x%s', 'payload=%s') % M(plain(i).encode().hex())
def w_gz(i, r): return pick('gzip+base64: %s', 'H4: %s', 'data=%s') % M(gz(plain(i)))
def w_url(i, r): return pick('https://example.com/share?text=%s', 'body=%s&submit=1', 'POST form: note=%s') .replace('%s', M(urllib.parse.quote(plain(i), safe='')))
def w_rev(i, r): return M(plain(i)[::-1])
def w_nested(i, r): return J({'a': J({'b': J({'c': i})})})
JSONLVL = ('u-escape', 'split-blocks', 'blob')
SEC = [v_b64, v_b64url, v_b64x2, v_url, v_hex, v_hexx, v_html, v_zw, v_full, v_homo, v_rev, v_space, v_gz, v_b32, v_qp, v_concat, v_array, 'u-escape', 'split-blocks', w_b64, w_gz, w_nested, 'blob']
CTX = [w_b64, w_hex, w_gz, w_url, v_concat, v_zw, v_full, 'u-escape', w_nested, 'blob', v_html]
PII = [v_zw, v_full, v_html, v_url, 'u-escape', v_space, w_b64, w_hex, w_gz, w_url, w_nested, 'blob', v_arabic, v_qp, v_homo, 'split-blocks', w_b64, v_b64]
INJ_ = [v_b64, v_hex, v_url, v_html, v_zw, v_full, v_homo, v_leet, v_rev, v_space, v_rot13, v_tags, 'u-escape', 'split-blocks', v_concat, v_array, w_nested, 'blob', v_gz, v_qp]
def uesc(v): 
    out = ''
    for c in v:
        b = c.encode('utf-16-be'); out += ''.join('\\u%04x' % (b[k] << 8 | b[k + 1]) for k in range(0, len(b), 2))
    return out
def apply(row, m):
    i = row['_inner']; kind = row['kind']; name = m if isinstance(m, str) else m.__name__
    if m == 'u-escape':
        f = R.choice(INJ if kind == 'injection' else DATA); raw = J(f(i)); raw = re.sub(S + '(.*?)' + E, lambda x: M(uesc(x[1])), raw); return raw, False, name
    if m == 'split-blocks':
        pre, v, post = re.match('(.*?)' + S + '(.*?)' + E + '(.*)', i, re.S).groups(); a, b = chunks(v, 2)[:2]
        return dumps(res({'content': [T(pre + M(a)), T(M(b) + post)]})), False, name
    if m == 'blob':
        return dumps(res({'contents': [{'uri': uri(), 'mimeType': 'application/octet-stream', 'blob': M(b64(plain(i)))}]})), False, name
    return m(i, row), None, name
ROMAN = set('en')
def build(kind, pool, methods, n):
    c = [r for r in pool if r['_inner'].count(S) == 1 and len(val(r['_inner'])[0]) >= 5 and not set(val(r['_inner'])[0]) & set('"\\\n\'') and len(r['_inner']) < 900 and r['text'].find('"structuredContent":{"users"') < 0 and not r['_inner'].startswith(('{"jsonrpc', '{\n', '{"jsonrpc')) and 'hidden' not in r['subtype'] and 'encoded' not in r['subtype'] and 'bidi' not in r['subtype']]
    R.shuffle(c); k = 0; used = set()
    while k < n:
        m = methods[k % len(methods)]; nm = m if isinstance(m, str) else m.__name__
        ok = lambda r: r['id'] not in used
        if nm in ('v_leet', 'v_rot13', 'v_homo', 'v_tags', 'v_space'): ok2 = lambda r: kind != 'injection' or r['text'].isascii()
        elif nm == 'v_arabic': ok2 = lambda r: sum(ch.isdigit() for ch in val(r['_inner'])[0]) >= 8
        else: ok2 = lambda r: True
        if nm == 'v_homo': ok3 = lambda r: sum(ch in HG for ch in val(r['_inner'])[0]) >= 4 and r['subtype'] not in ('btc_address',)
        elif nm in ('split-blocks', 'v_array', 'v_concat'): ok3 = lambda r: len(val(r['_inner'])[0]) >= 12 or r.get('ctx_only')
        elif nm == 'v_rev' and kind == 'secret': ok3 = lambda r: not r.get('ctx_only')
        else: ok3 = lambda r: True
        r = next(r for r in c if ok(r) and ok2(r) and ok3(r)); used.add(r['id'])
        inner, outer, name = apply(r, m)
        if outer is None and R.random() < .25 and name not in ('w_nested',): outer = False
        e = {'evasion': True, 'base': r['id'], 'encoding': {'v': 'value:', 'w': 'text:'}.get(name[0] if name[1] == '_' else '', '') + name.split('_')[-1]}
        if r.get('ctx_only'): e['ctx_only'] = True
        add(kind, 'evasion:' + e['encoding'].split(':')[-1], inner, outer if outer is False else None, base_subtype=r['subtype'], **e)
        k += 1
def build_all():
    P = ROWS[:]
    sec = [r for r in P if r['kind'] == 'secret']
    build('secret', [r for r in sec if not r.get('ctx_only')], SEC, 72)
    build('secret', [r for r in sec if r.get('ctx_only')], CTX, 30)
    build('pii', [r for r in P if r['kind'] == 'pii'], PII, 92)
    build('injection', [r for r in P if r['kind'] == 'injection' and r['subtype'] != 'command'], INJ_, 58)
