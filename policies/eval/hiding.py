"""Ways to write a text so that a plain search does not see it. Each takes (rng, text)."""
import base64, binascii, gzip, html, json, urllib.parse, zlib

FULL = {c: chr(0xFEE0 + c) for c in range(0x21, 0x7F)}
HOMOGLYPHS = str.maketrans('aceopxyABCEHKMOPTX', 'асеорхуАВСЕНКМОРТХ')


def _b64(b):
    return base64.b64encode(b).decode()


ENCODINGS = {
    'base64': lambda r, t: _b64(t.encode()),
    'base64-lines': lambda r, t: base64.encodebytes(t.encode()).decode(),
    'base64url': lambda r, t: base64.urlsafe_b64encode(t.encode()).decode().rstrip('='),
    'base64-utf16': lambda r, t: _b64(t.encode('utf-16-le')),
    'double-base64': lambda r, t: _b64(_b64(t.encode()).encode()),
    'data-uri': lambda r, t: 'data:text/plain;base64,' + _b64(t.encode()),
    'base32': lambda r, t: base64.b32encode(t.encode()).decode(),
    'hex': lambda r, t: t.encode().hex(),
    'hex-spaced': lambda r, t: t.encode().hex(' '),
    'hex-0x': lambda r, t: ', '.join(f'0x{b:02x}' for b in t.encode()),
    'hexdump': lambda r, t: '\n'.join(f'{i:08x}  {t.encode()[i:i + 16].hex(" ")}' for i in range(0, len(t.encode()), 16)),
    'percent': lambda r, t: ''.join(f'%{b:02X}' for b in t.encode()),
    'double-percent': lambda r, t: urllib.parse.quote(''.join(f'%{b:02X}' for b in t.encode())),
    'unicode-escape': lambda r, t: ''.join(f'\\u{ord(c):04x}' for c in t),
    'some-escapes': lambda r, t: ''.join(f'\\u{ord(c):04x}' if i % 3 == 0 else c for i, c in enumerate(t)),
    'x-escape': lambda r, t: ''.join(f'\\x{b:02x}' for b in t.encode()),
    'octal-escape': lambda r, t: ''.join(f'\\{b:03o}' for b in t.encode()),
    'html-dec': lambda r, t: ''.join(f'&#{ord(c)};' for c in t),
    'html-hex': lambda r, t: ''.join(f'&#x{ord(c):x};' for c in t),
    'gzip-base64': lambda r, t: _b64(gzip.compress(t.encode(), mtime=0)),
    'zlib-hex': lambda r, t: zlib.compress(t.encode()).hex(),
    'json3': lambda r, t: json.dumps({'a': json.dumps({'b': json.dumps({'c': t})})}),
    'char-codes': lambda r, t: 'String.fromCharCode(' + ','.join(str(ord(c)) for c in t) + ')',
    'reversed': lambda r, t: t[::-1],
    'rot13': lambda r, t: __import__('codecs').encode(t, 'rot13'),
    'zero-width': lambda r, t: '\u200b'.join(t),
    'soft-hyphen': lambda r, t: ''.join(c + ('\u00ad' if i % 4 == 3 else '') for i, c in enumerate(t)),
    'fullwidth': lambda r, t: t.translate(FULL),
    'homoglyph': lambda r, t: t.translate(HOMOGLYPHS),
    'spaced': lambda r, t: ' '.join(t),
    'dashed': lambda r, t: '-'.join(t),
    'line-broken': lambda r, t: '\n'.join(t[i:i + 12] for i in range(0, len(t), 12)),
    'concat': lambda r, t: ' + '.join(json.dumps(t[i:i + 9]) for i in range(0, len(t), 9)),
    'concat-dot': lambda r, t: ' . '.join("'" + t[i:i + 9] + "'" for i in range(0, len(t), 9)),
    'array-chars': lambda r, t: json.dumps(list(t)),
    'quoted-printable': lambda r, t: ''.join(f'={b:02X}' for b in t.encode()),
}
