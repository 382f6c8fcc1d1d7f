"""What looks like a secret, a person's number or an order, and is none. Each takes an rng and gives a text."""
import base64, hashlib, json, random, zlib
from carriers import WORDS, prose
from values import ALPHABETS, SPECIAL, b64, blob, text

uuid = SPECIAL['uuid']
sha = lambda r: text(r, 'hex', 64)


def png(rng, n=900):
    return b64(b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR' + blob(rng, n))


def stamp(rng):
    return f'2026-0{rng.randrange(1, 10)}-{rng.randrange(10, 29)}T{rng.randrange(10, 24)}:{rng.randrange(10, 60)}:{rng.randrange(10, 60)}.{rng.randrange(100, 1000)}Z'


def _edi(r):
    n = lambda k: text(r, 'd', k)
    return (f"UNA:+.? 'UNB+UNOC:3+{n(13)}:14+{n(13)}:14+260301:1012+{n(9)}'UNH+1+ORDERS:D:96A:UN:EAN008'BGM+220+{n(9)}+9'DTM+137:20260301:102'"
            f"LIN+1++{n(13)}:EN'QTY+21:{r.randrange(9, 99)}'PRI+AAA:{r.randrange(9, 99)}.50'UNT+7+1'UNZ+1+{n(9)}'")


def _locale(r):
    a, b = r.randrange(1000, 9999999), r.randrange(10, 99)
    de = f'{a:,}'.replace(',', '.') + f',{b}'
    fr = f'{a:,}'.replace(',', '\u202f') + f',{b}'
    ch = f'{a:,}'.replace(',', "'") + f'.{b}'
    return f'Umsatz {de} EUR\nTotal {fr} €\nSumme CHF {ch}\nइन्द्राज ₹{r.randrange(1, 99)},{r.randrange(10, 99)},{r.randrange(100, 999)}.00\n'


def _minjs(r):
    v = [r.choice('abcdefghijk') + r.choice('tnrei') for _ in range(9)]
    return ('!function(e,t){"object"==typeof exports?module.exports=t():e.' + v[0] + '=t()}(this,function(){var ' + ','.join(f'{x}={r.randrange(9, 9999)}' for x in v)
            + f';function n(e){{return e.token&&e.token.type==={r.randrange(99)}?e.password.length:{v[1]}.key(e.apiKey)}}return{{parse:n,secretKey:function(e){{return e.k}},v:"{r.randrange(9)}.{r.randrange(30)}.{r.randrange(9)}"}}}});'
            + f'//# sourceMappingURL=app.{text(r, "hex", 20)}.js.map')


def _lock(r):
    return '\n'.join(f'"{r.choice(WORDS)}-{r.choice(WORDS)}@^{r.randrange(9)}.{r.randrange(30)}.0":\n  version "{r.randrange(9)}.{r.randrange(30)}.{r.randrange(9)}"\n'
                     f'  resolved "https://registry.yarnpkg.com/{r.choice(WORDS)}/-/{r.choice(WORDS)}-1.2.3.tgz#{text(r, "hex", 40)}"\n  integrity sha512-{b64(blob(r, 64))}\n' for _ in range(3))


def _cargo(r):
    return '\n'.join(f'[[package]]\nname = "{r.choice(WORDS)}"\nversion = "0.{r.randrange(40)}.{r.randrange(9)}"\nsource = "registry+https://github.com/rust-lang/crates.io-index"\nchecksum = "{sha(r)}"\n' for _ in range(3))


def _poetry(r):
    return f'[[package]]\nname = "{r.choice(WORDS)}"\nfiles = [\n' + ''.join(f'    {{file = "{r.choice(WORDS)}-1.{i}-py3-none-any.whl", hash = "sha256:{sha(r)}"}},\n' for i in range(3)) + ']\n'


def _trace(r):
    return ('Exception in thread "main" java.lang.IllegalStateException: token expired before key rotation\n'
            + ''.join(f'\tat com.acme.{r.choice(WORDS)}.{r.choice(WORDS).title()}TokenProvider${text(r, "d", 2)}.{r.choice(WORDS)}({r.choice(WORDS).title()}.java:{r.randrange(20, 900)})\n' for _ in range(5)))


def _diff(r):
    return (f'diff --git a/src/auth.rs b/src/auth.rs\nindex {text(r, "hex", 7)}..{text(r, "hex", 7)} 100644\n--- a/src/auth.rs\n+++ b/src/auth.rs\n@@ -{r.randrange(9, 99)},6 +{r.randrange(9, 99)},7 @@\n'
            f'-    let token = session.token();\n+    let token = session.refresh_token(Duration::from_secs({r.randrange(60, 900)}))?;\n     let api_key = config.api_key.as_deref().unwrap_or_default();\n')


def _access(r):
    return '\n'.join(f'edge-{r.randrange(9)} - - [{r.randrange(10, 28)}/Mar/2026:10:{r.randrange(10, 60)}:{r.randrange(10, 60)} +0000] "GET /v1/{r.choice(WORDS)}/{r.randrange(9999)}?page={r.randrange(40)}&sort=key HTTP/1.1" 200 {r.randrange(99, 99999)} "-" "curl/8.5.0" rt=0.{r.randrange(999):03d}' for _ in range(4))


def _csv(r):
    return 'order_id,sku,qty,unit_price,ts,lat,lon\n' + '\n'.join(f'{r.randrange(10**9, 10**10)},{text(r, "up36", 8)},{r.randrange(1, 40)},{r.randrange(9, 999)}.{r.randrange(10, 99)},{r.randrange(1700000000, 1790000000)},{r.uniform(-80, 80):.6f},{r.uniform(-170, 170):.6f}' for _ in range(5))


def _bad(check, make):
    def neg(r):
        while True:
            v = make(r)
            if not check(v):
                return v
    return neg


luhn = lambda s: sum(int(c) if i % 2 == 0 else sum(divmod(2 * int(c), 10)) for i, c in enumerate(reversed(s))) % 10 == 0

NEGATIVES = {
    'uuid-list': lambda r: '\n'.join(uuid(r) for _ in range(6)),
    'sha-list': lambda r: '\n'.join(f'{sha(r)}  {r.choice(WORDS)}-{r.randrange(9)}.tar.gz' for _ in range(4)),
    'md5-list': lambda r: json.dumps({'files': [{'path': f'{r.choice(WORDS)}.bin', 'md5': text(r, 'hex', 32), 'etag': f'"{text(r, "hex", 32)}-4"'} for _ in range(3)]}),
    'git-log': lambda r: '\n'.join(f'{text(r, "hex", 40)} {prose(r, 5)}' for _ in range(5)),
    'png': lambda r: 'data:image/png;base64,' + png(r),
    'png-content': lambda r: json.dumps({'content': [{'type': 'image', 'data': png(r), 'mimeType': 'image/png'}]}),
    'woff': lambda r: f'@font-face{{src:url(data:font/woff2;base64,{b64(b"wOF2" + blob(r, 400))})}}',
    'pdf-stream': lambda r: f'%PDF-1.7\n4 0 obj\n<</Length 90/Filter/ASCII85Decode>>stream\n{base64.a85encode(blob(r, 90)).decode()}\nendstream',
    'embedding': lambda r: json.dumps({'embedding': [round(r.uniform(-1, 1), 8) for _ in range(24)], 'usage': {'prompt_tokens': r.randrange(99), 'total_tokens': r.randrange(999)}}),
    'yarn-lock': _lock, 'cargo-lock': _cargo, 'poetry-lock': _poetry,
    'npm-lock': lambda r: json.dumps({'node_modules/' + r.choice(WORDS): {'version': '1.2.3', 'resolved': 'https://registry.npmjs.org/a/-/a-1.2.3.tgz', 'integrity': 'sha512-' + b64(blob(r, 64))}}, indent=1),
    'go-sum': lambda r: '\n'.join(f'github.com/acme/{r.choice(WORDS)} v1.{r.randrange(30)}.0 h1:{b64(blob(r, 32))}' for _ in range(3)),
    'nix': lambda r: f'fetchurl {{ url = "https://x.org/a.tgz"; sha256 = "{text(r, "b32low", 52)}"; hash = "sha256-{b64(blob(r, 32))}"; }}',
    'edi': _edi, 'locale-numbers': _locale, 'minified-js': _minjs, 'java-trace': _trace, 'rust-diff': _diff, 'access-log': _access, 'orders-csv': _csv,
    'k8s-events': lambda r: '\n'.join(f'{r.randrange(59)}m  Normal  Pulled  pod/{r.choice(WORDS)}-{text(r, "b36", 9)}-{text(r, "b36", 5)}  Container image "reg.acme.test/{r.choice(WORDS)}@sha256:{sha(r)}" present' for _ in range(3)),
    'traceparent': lambda r: f'traceparent: 00-{text(r, "hex", 32)}-{text(r, "hex", 16)}-01\nx-request-id: {uuid(r)}\ncf-ray: {text(r, "hex", 16)}-FRA\n',
    'otel-json': lambda r: json.dumps({'traceId': text(r, 'hex', 32), 'spanId': text(r, 'hex', 16), 'startTimeUnixNano': str(r.randrange(10**18, 2 * 10**18)), 'attributes': [{'key': 'http.route', 'value': {'stringValue': '/v1/' + r.choice(WORDS)}}]}),
    'pagination': lambda r: json.dumps({'items': [], 'next_page_token': text(r, 'url', 48), 'cursor': text(r, 'b64', 40) + '=', 'sync_token': text(r, 'b62', 30)}),
    'csrf-html': lambda r: f'<input type="hidden" name="csrf_token" value="{text(r, "b62", 40)}"><meta name="csrf-param" content="authenticity_token">',
    'placeholders': lambda r: r.choice(['OPENAI_API_KEY=sk-...\nDB_PASSWORD=<your password>\nTOKEN=${TOKEN}\n', 'api_key: "YOUR_API_KEY"\nsecret: "{{ vault_secret }}"\npassword: changeme\n',
                                        'export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n', 'AWS_SECRET_ACCESS_KEY=****************\nclient_secret=REDACTED\n',
                                        'password = getpass("password: ")\ntoken = os.environ["API_TOKEN"]\n', 'password: !vault-ref secret/data/app#db_password\ntoken: op://Prod/api/token\n']),
    'schema': lambda r: json.dumps({'name': r.choice(WORDS) + '_login', 'description': 'Logs in with an API key or a password', 'inputSchema': {'type': 'object', 'properties': {'api_key': {'type': 'string', 'minLength': 32}, 'password': {'type': 'string', 'format': 'password'}, 'client_secret': {'type': 'string', 'description': 'The secret of the client'}}, 'required': ['api_key']}}),
    'code-names': lambda r: f'fn rotate(&mut self, token: &Token) -> Result<SecretKey> {{\n    let password_hash = hasher.hash(&self.password, SaltString::generate(&mut OsRng))?;\n    let access_token = self.provider.access_token_{r.randrange(9)}(scope);\n    self.cache.insert(token.key(), api_key_id)\n}}\n',
    'public-keys': lambda r: f'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{text(r, "b64", 43)} ops@host\npublic_key = "{text(r, "b64", 43)}="\nage1{text(r, "bech", 58).lower()}\n',
    'certificate': lambda r: '-----BEGIN CERTIFICATE-----\n' + '\n'.join('MII' + b64(blob(r, 45))[3:] for _ in range(10)) + '\n-----END CERTIFICATE-----\n',
    'csp': lambda r: f"Content-Security-Policy: script-src 'nonce-{b64(blob(r, 16))}' 'sha256-{b64(blob(r, 32))}'; report-to csp",
    'sri': lambda r: f'<script src="https://cdn.example.net/a.js" integrity="sha384-{b64(blob(r, 48))}" crossorigin="anonymous"></script>',
    'arns': lambda r: f'arn:aws:secretsmanager:eu-west-1:{text(r, "d", 12)}:secret:prod/{r.choice(WORDS)}-{text(r, "b62", 6)}\narn:aws:kms:us-east-1:{text(r, "d", 12)}:key/{uuid(r)}\nami-0{text(r, "hex", 16)} subnet-{text(r, "hex", 17)}\n',
    'ids': lambda r: json.dumps({'id': 'evt_' + text(r, 'b62', 24), 'object': 'event', 'customer': 'cus_' + text(r, 'b62', 14), 'request': {'id': 'req_' + text(r, 'b62', 14), 'idempotency_key': uuid(r)}}),
    'publishable': lambda r: f'STRIPE_PUBLISHABLE_KEY=pk_live_{text(r, "b62", 24)}\nNEXT_PUBLIC_MAPBOX=pk.eyJ1Ijoi{text(r, "b62", 30)}.{text(r, "b62", 22)}\nVAPID_PUBLIC_KEY=B{text(r, "url", 86)}\n',
    'mongo-ids': lambda r: json.dumps([{'_id': {'$oid': text(r, 'hex', 24)}, 'sort_key': text(r, 'hex', 16), 'partition_key': text(r, 'b36', 20)} for _ in range(3)]),
    'ulid-ksuid': lambda r: '\n'.join('01' + text(r, 'up36', 24) + ' ' + text(r, 'b62', 27) for _ in range(4)),
    'wandb-run': lambda r: f'step {r.randrange(9999)} loss 0.{text(r, "d", 8)} lr 3e-05 tokens {r.randrange(10**9)} tokens/s {r.randrange(10**5)} key=query_{r.randrange(9)}.weight',
    'bad-github': lambda r: 'checksum of ghp_' + text(r, 'b62', 20) + '… does not match, truncated',
    'words-after-key': lambda r: f'The api key is rotated weekly. Password: at least 12 characters. Secret: none. Token: {r.choice(["expired", "missing", "invalid", "required"])}.',
    'css': lambda r: '\n'.join(f'.{r.choice(WORDS)}_{text(r, "b62", 5)} {{ color: #{text(r, "hex", 6)}; --token-primary: #{text(r, "hex", 6)}; }}' for _ in range(3)),
    'base64-json-public': lambda r: 'eyJ' + b64(json.dumps({'page': r.randrange(99), 'sort': 'asc', 'after': prose(r, 3)}).encode())[3:],
    'svg-path': lambda r: '<path d="M' + ' '.join(f'{r.uniform(0, 99):.3f},{r.uniform(0, 99):.3f}' for _ in range(24)) + 'z"/>',
    'protein': lambda r: '>sp|P' + text(r, 'd', 5) + '|HUMAN\n' + ''.join(r.choice('ACDEFGHIKLMNPQRSTVWY') for _ in range(180)),
    'chess': lambda r: '1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. c3 O-O 9. h3 Nb8 10. d4 Nbd7',
    'card-like': _bad(luhn, lambda r: '4' + text(r, 'd', 15)),
    'version-list': lambda r: '\n'.join(f'{r.choice(WORDS)} {r.randrange(200)}.{r.randrange(200)}.{r.randrange(200)}.{r.randrange(200)} (build {r.randrange(10**7)})' for _ in range(4)),
    'epochs': lambda r: json.dumps({'start': r.randrange(1700000000, 1790000000), 'end': r.randrange(1700000000000, 1790000000000), 'ns': r.randrange(17 * 10**17, 18 * 10**17)}),
    'isbn-ean': lambda r: f'ISBN 978-3-{text(r, "d", 2)}-{text(r, "d", 6)}-{text(r, "d", 1)}\nEAN {text(r, "d", 13)}\nGTIN {text(r, "d", 14)}\nSKU {text(r, "d", 9)}\n',
    'tracking': lambda r: f'Parcel 1Z{text(r, "up36", 16)} left the hub; DHL {text(r, "d", 20)}; container MSCU{text(r, "d", 7)}; flight LH{text(r, "d", 3)}; invoice {text(r, "d", 10)}',
    'phone-like': lambda r: f'range 2026-03-0{r.randrange(1, 9)} 10:00-12:30, lot {text(r, "d", 3)}-{text(r, "d", 4)}, part no {text(r, "d", 3)} {text(r, "d", 3)} {text(r, "d", 4)}, pages 415-555',
    'geo': lambda r: json.dumps({'type': 'LineString', 'coordinates': [[round(r.uniform(-180, 180), 7), round(r.uniform(-90, 90), 7)] for _ in range(8)]}),
    'sql-rows': lambda r: ' id | total | updated_at\n----+-------+-----\n' + '\n'.join(f' {r.randrange(10**8, 10**9)} | {r.randrange(10**6)} | {stamp(r)}' for _ in range(4)),
    'decorators': lambda r: f'@app.route("/v1")\n@pytest.mark.parametrize("n", [1,2])\nimport x from "@acme/{r.choice(WORDS)}@1.2.3"\n@dataclass(frozen=True)\n',
    'loopback': lambda r: f'listening on 127.0.0.1:{r.randrange(1024, 65535)} and [::1]:{r.randrange(1024, 65535)}; docs use 192.0.2.{r.randrange(255)} and 00:00:00:00:00:00',
    'measurements': lambda r: '\n'.join(f'{stamp(r)},{r.uniform(0, 99):.4f},{r.uniform(0, 1e6):.2f},{r.randrange(10**11)}' for _ in range(5)),
    'bank-holidays': lambda r: 'Feiertage: 01.01.2026, 03.04.2026, 06.04.2026, 01.05.2026. Deadline 15/04/2026. Released on 1987-06-12 in print.',
    'crypto-hash': lambda r: f'block 0x{sha(r)} parent 0x{sha(r)} tx 0x{sha(r)} gas {r.randrange(10**6)}',
    'jsonrpc': lambda r: json.dumps({'jsonrpc': '2.0', 'id': r.randrange(999), 'result': {'tools': [{'name': r.choice(WORDS), 'description': prose(r, 9), 'inputSchema': {'type': 'object'}}], 'nextCursor': text(r, 'b62', 22)}}),
    'prose': lambda r: '. '.join(prose(r, r.randrange(6, 14)).capitalize() for _ in range(5)) + '.',
    'foreign-prose': lambda r: r.choice(['Die Sitzung beginnt um 14:30 Uhr in Raum 4.12, bitte bringen Sie das Protokoll mit.', 'La réunion du 12/03/2026 est reportée au 19, même heure, salle 204.',
                                         'El informe trimestral se publicó el 04/02/2026 con 1.234.567 registros.', '会议将于下午三点在二楼会议室举行，请准时参加。', 'Заседание перенесено на 15:00, кабинет 318.',
                                         '次回の会議は午後三時からです。資料は事前に配布します。', 'O relatório 2026/14 tem 48 páginas e 12 anexos.']) + f' ({r.randrange(999)})',
}
