"""Values made from templates: random text of an alphabet, and the formats that carry a checksum or a structure."""
import base64, binascii, hashlib, json, re, struct, zlib

D = '0123456789'
LOW = 'abcdefghijklmnopqrstuvwxyz'
UP = LOW.upper()
ALPHABETS = {
    'd': D, 'd1': '123456789', 'low': LOW, 'up': UP, 'hex': D + 'abcdef', 'HEX': D + 'ABCDEF', 'b62': D + LOW + UP,
    'b36': D + LOW, 'up36': D + UP, 'b32': UP + '234567', 'b32low': LOW + '234567', 'b64': D + LOW + UP + '+/',
    'b64x': D + LOW + UP, 'url': D + LOW + UP + '-_', 'bech': 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L',
    'pw': D + LOW + UP + '!*_-.', 'dj': D + LOW + '!#%^&*(-_=+', 'salt': D + LOW + UP + '!#%^&*()-_=+[]{}|;:,.<>/?~',
    'b58': '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz',
}
USERS = ['svc_billing', 'reporting', 'app', 'deployer', 'maria', 'etl-runner', 'backup', 'jdoe', 'sa', 'root']
HOSTS = ['db-7.corp.internal', '10.20.30.41', 'pg.prod.acme-retail.net', 'warehouse.eu-west-1.rds.amazonaws.com', 'node3.lan']
HUMAN = ['Sommer2024!', 'B3rl1n-Nord', 'tr0mpeta_Azul', 'Kestrel!99', 'w1nter-is-C0ming', 'Zxcv#7741', 'P4ris@Nuit', 'gatito*Negro8',
         'M0unt4in_Bike', 'Quack!Duck55', 'l0ngB0at#12', 'Hjelm.2023x', 'Vodka&Lime4', 'cHeese%toast1', 'R4dio-Free7']
PHRASE = ['viola-gravel-9-tundra-Mosaic', 'copper7 lantern orbit Quill', 'tango.umbra.44.Fjord', 'Orchid-22-plinth-saddle-Wren']


def text(rng, alphabet, n):
    """`n` random characters; a digit and a letter are in it whenever the alphabet has both and there is room."""
    chars = ALPHABETS[alphabet]
    while True:
        s = ''.join(rng.choice(chars) for _ in range(n))
        both = any(c in D for c in chars) and any(c not in D for c in chars)
        edge = alphabet in ('pw', 'url') and (s[0] in '-_.' or s[-1] in '-_.!*')
        if edge or both and n >= 8 and not (any(c in D for c in s) and any(c not in D for c in s)):
            continue
        return s


def b64(data, url=False, pad=True):
    out = (base64.urlsafe_b64encode if url else base64.b64encode)(data).decode()
    return out if pad else out.rstrip('=')


def blob(rng, n):
    return bytes(rng.randrange(256) for _ in range(n))


def crc_body(rng):
    """30 characters and their CRC32 in base62, as GitHub and npm make them."""
    body = text(rng, 'b62', 30)
    digits, n = D + UP + LOW, zlib.crc32(body.encode())
    tail = ''
    for _ in range(6):
        tail = digits[n % 62] + tail
        n //= 62
    return body + tail


def jwt(rng, alg, n):
    head = b64(json.dumps({'alg': alg, 'typ': 'JWT'}).encode(), True, False)
    body = b64(json.dumps({'sub': text(rng, 'd', 8), 'iat': rng.randrange(1700000000, 1790000000), 'scope': 'rw'}).encode(), True, False)
    return f'{head}.{body}.{text(rng, "url", 43 if alg == "HS256" else n)}'


def jwe(rng):
    head = b64(json.dumps({'alg': 'RSA-OAEP', 'enc': 'A256GCM'}).encode(), True, False)
    return '.'.join([head, text(rng, 'url', 342), text(rng, 'url', 16), text(rng, 'url', 90), text(rng, 'url', 22)])


def base58check(payload):
    data = payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    n, out = int.from_bytes(data, 'big'), ''
    while n:
        n, r = divmod(n, 58)
        out = ALPHABETS['b58'][r] + out
    return '1' * (len(data) - len(data.lstrip(b'\0'))) + out


def pem(rng, label, n):
    body = b64(blob(rng, n * 3 // 4))
    lead = {'RSA PRIVATE KEY': 'MIIEowIBAAKCAQEA', 'PRIVATE KEY': 'MIIEvQIBADANBgkqhkiG9w0BAQEF', 'EC PRIVATE KEY': 'MHcCAQEEI',
            'OPENSSH PRIVATE KEY': 'b3BlbnNzaC1rZXktdjEAAAAABG5vbmU'}.get(label, 'MIIF')
    body = lead + body
    lines = '\n'.join(body[i:i + 64] for i in range(0, len(body), 64))
    dash = '-' * 5
    return f'{dash}BEGIN {label}{dash}\n{lines}\n{dash}END {label}{dash}'


def pgp(rng):
    label, dash = 'PGP PRIVATE KEY BLOCK', '-' * 5
    body = 'lQOYBF' + b64(blob(rng, 600))
    lines = '\n'.join(body[i:i + 64] for i in range(0, len(body), 64))
    return f'{dash}BEGIN {label}{dash}\n\n{lines}\n={text(rng, "b64x", 4)}\n{dash}END {label}{dash}'


def putty(rng):
    lines = lambda n: '\n'.join(b64(blob(rng, 48)) for _ in range(n))
    return (f'PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: laptop\nPublic-Lines: 2\n{lines(2)}\n'
            f'Private-Lines: 4\n{lines(4)}\nPrivate-MAC: {text(rng, "hex", 64)}')


def ssh2(rng):
    label, dash = 'SSH2 ENCRYPTED PRIVATE KEY', '-' * 4
    lines = '\n'.join(b64(blob(rng, 48)) for _ in range(8))
    return f'{dash} BEGIN {label} {dash}\nComment: "rsa-key"\n{lines}\n{dash} END {label} {dash}'


def bip39(rng, n):
    """Words with a right checksum; the list comes from the `mnemonic` package (BIP-39)."""
    from mnemonic import Mnemonic
    return Mnemonic('english').to_mnemonic(blob(rng, n * 4 // 3))


def basic(rng):
    return b64(f'{rng.choice(USERS)}:{text(rng, "pw", 16)}'.encode())


SPECIAL = {
    'crc': crc_body,
    'uuid': lambda r: re.sub(r'(.{8})(.{4}).(.{3}).(.{3})(.{12})', r'\1-\2-4\3-a\4-\5', text(r, 'hex', 32)),
    'hex8up': lambda r: text(r, 'HEX', 8),
    'jwe': jwe, 'basic': basic, 'pgp': pgp, 'putty': putty, 'ssh2': ssh2,
    'user': lambda r: r.choice(USERS), 'host': lambda r: r.choice(HOSTS),
    'human': lambda r: r.choice(HUMAN), 'phrase': lambda r: r.choice(PHRASE),
    'wif': lambda r: base58check(b'\x80' + blob(r, 32) + b'\x01'),
    'xprv': lambda r: base58check(bytes.fromhex('0488ade4') + b'\0' * 9 + blob(r, 32) + b'\0' + blob(r, 32)),
    'solana': lambda r: '[' + ','.join(str(b) for b in blob(r, 64)) + ']',
    'saml': lambda r: b64(('<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ID="_' + text(r, 'hex', 32)
                           + '"><saml:Assertion><saml:Subject/></saml:Assertion></samlp:Response>').encode()),
    'gcpsa': lambda r: json.dumps({'type': 'service_account', 'project_id': 'acme-' + text(r, 'd', 4), 'private_key_id': text(r, 'hex', 40),
                                   'private_key': pem(r, 'PRIVATE KEY', 1600) + '\n', 'client_email': 'etl@acme.iam.gserviceaccount.com'}),
    'netrc': lambda r: f'machine {r.choice(HOSTS)}\n  login {r.choice(USERS)}\n  password {text(r, "pw", 16)}\n',
    'pypirc': lambda r: f'[distutils]\nindex-servers = corp\n\n[corp]\nrepository = https://{r.choice(HOSTS)}/simple\nusername = {r.choice(USERS)}\npassword = {text(r, "pw", 16)}\n',
    'kube': lambda r: f'apiVersion: v1\nkind: Config\nusers:\n- name: admin\n  user:\n    token: {text(r, "b62", 64)}\n',
    'k8ssecret': lambda r: f'apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ntype: Opaque\ndata:\n  password: {b64(text(r, "pw", 18).encode())}\n',
    'rclone': lambda r: f'[box]\ntype = sftp\nhost = {r.choice(HOSTS)}\nuser = {r.choice(USERS)}\npass = {text(r, "url", 30)}\n',
    'mycnf': lambda r: f'[client]\nuser={r.choice(USERS)}\npassword="{text(r, "pw", 16)}"\nhost={r.choice(HOSTS)}\n',
    's3cfg': lambda r: f'[default]\naccess_key = AKIA{text(r, "b32", 16)}\nsecret_key = {text(r, "b64", 40)}\n',
    'awscred': lambda r: f'[prod]\naws_access_key_id = AKIA{text(r, "b32", 16)}\naws_secret_access_key = {text(r, "b64", 40)}\n',
}


def fill(rng, template):
    """A value, and the pieces of it that hold the secret (the random ones), as [start, end)."""
    out, hot = '', []
    for part in re.split(r'(\{[A-Za-z0-9]+(?::[A-Za-z0-9 ]+)*\})', template):
        if not part.startswith('{') or part == '{':
            out += part
            continue
        name, *args = part[1:-1].split(':')
        if name in ALPHABETS:
            piece = text(rng, name, int(args[0]))
        elif name == 'jwt':
            piece = jwt(rng, args[0], int(args[1]))
        elif name == 'pem':
            piece = pem(rng, args[0], int(args[1]))
        elif name == 'bip39':
            piece = bip39(rng, int(args[0]))
        elif name in SPECIAL:
            piece = SPECIAL[name](rng)
        else:
            out += part
            continue
        cold = name in ('user', 'host') or name in ('low', 'd') and len(piece) < 12
        if not cold:
            hot.append((len(out), len(out) + len(piece)))
        out += piece
    return out, hot
