from core import *
from faker import Faker
B = []
def b(sub, n=4):
    def d(f): B.append((sub, f, n)); return f
    return d
def L(sub, fs, n=1):
    for f in fs: B.append((sub, f, n))
h = lambda n: rs(n, 'h')
N_ = lambda a, z: R.randint(a, z)
L('uuid', [lambda: '{"request_id":"%s","parent":"%s","tenant":"%s"}' % (U(), U(), U()), lambda: 'trace %s span %s sampled=1' % (h(32), h(16)), lambda: 'traceparent: 00-%s-%s-01' % (h(32), h(16)), lambda: 'CREATE TABLE t (id uuid DEFAULT \'%s\');' % U(), lambda: 'X-Request-Id: %s\nX-Amzn-Trace-Id: Root=1-%s-%s' % (U(), h(8), h(24)), lambda: 'session %s opened for workflow %s' % (U(), U()), lambda: '\n'.join(U() for _ in range(6)), lambda: 'ulid 01%s, ksuid %s, nanoid %s' % (rs(24, 'u'), rs(27, 'a'), rs(21, 'w'))], 2)
L('git', [lambda: '\n'.join('%s %s' % (h(7), F.sentence(4)) for _ in range(8)), lambda: 'commit %s\nAuthor: %s\nDate:   Tue Mar 3 10:12:44 2026 +0100\n\n    %s' % (h(40), F.name(), F.sentence(4)), lambda: 'diff --git a/x.c b/x.c\nindex %s..%s 100644\n--- a/x.c\n+++ b/x.c\n@@ -1,3 +1,3 @@\n-int a;\n+long a;' % (h(7), h(7)), lambda: 'HEAD is now at %s %s' % (h(9), F.sentence(3)), lambda: 'tree %s\nparent %s\n' % (h(40), h(40)), lambda: '%s\trefs/heads/main\n%s\trefs/tags/v%d.0' % (h(40), h(40), N_(1, 9)), lambda: 'Submodule path \'lib\': checked out \'%s\'' % h(40)], 2)
L('lockfile', [lambda: '"node_modules/%s": {\n  "version": "%d.%d.%d",\n  "resolved": "https://registry.npmjs.org/%s/-/%s-1.0.0.tgz",\n  "integrity": "sha512-%s=="\n}' % (word(), N_(0, 9), N_(0, 20), N_(0, 9), word(), word(), rs(86, 'b')), lambda: '%s==%d.%d.%d \\\n    --hash=sha256:%s \\\n    --hash=sha256:%s' % (word(), N_(0, 9), N_(0, 9), N_(0, 9), h(64), h(64)), lambda: 'github.com/%s/%s v1.%d.0 h1:%s=\ngithub.com/%s/%s v1.%d.0/go.mod h1:%s=' % (word(), word(), N_(0, 9), rs(43, 'b'), word(), word(), N_(0, 9), rs(43, 'b')),
 lambda: '[[package]]\nname = "%s"\nversion = "0.%d.%d"\nchecksum = "%s"' % (word(), N_(0, 30), N_(0, 9), h(64)), lambda: '%s@^%d.0.0:\n  version "%d.1.3"\n  resolved "https://registry.yarnpkg.com/x/-/x-1.tgz#%s"\n  integrity sha512-%s==' % (word(), N_(1, 9), N_(1, 9), h(40), rs(86, 'b')), lambda: 'SHA256 (%s) = %s' % (F.file_name(), h(64)), lambda: '%s  %s\n%s  %s' % (h(64), F.file_name(), h(64), F.file_name()), lambda: 'MD5: %s\nSHA-1: %s' % (h(32), h(40)), lambda: 'image: registry.example.com/app@sha256:%s' % h(64), lambda: 'DEPENDENCIES\n  rails (= 7.%d)\n\nCHECKSUMS\n  rack (3.1.8) sha256=%s' % (N_(0, 9), h(64)), lambda: 'nixpkgs.url rev = "%s"; sha256 = "%s";' % (h(40), rs(52, 'l')), lambda: '<script src="/a.js" integrity="sha384-%s" crossorigin="anonymous"></script>' % rs(64, 'b')], 2)
L('version-time', [lambda: 'v%d.%d.%d-rc.%d+build.%d.%s' % (N_(0, 9), N_(0, 30), N_(0, 30), N_(1, 9), N_(100, 99999), h(7)), lambda: 'uptime %d days, load average: 0.%d, 0.%d, 0.%d' % (N_(1, 900), N_(10, 99), N_(10, 99), N_(10, 99)), lambda: '{"created_at":%d,"updated_at":%d,"ms":%d}' % (N_(1600000000, 1800000000), N_(1600000000, 1800000000), N_(1600000000000, 1800000000000)), lambda: 'Kernel 6.%d.%d-%d-generic #%d~22.04.1-Ubuntu SMP PREEMPT_DYNAMIC' % (N_(1, 12), N_(0, 90), N_(1, 90), N_(1, 90)), lambda: 'Cron: %d %d * * 1-5; next run 2026-0%d-1%dT0%d:00:00+02:00' % (N_(0, 59), N_(0, 23), N_(1, 9), N_(0, 9), N_(0, 9)), lambda: 'python 3.%d.%d, pip %d.%d, glibc 2.%d' % (N_(8, 14), N_(0, 9), N_(20, 25), N_(0, 3), N_(20, 40))], 2)
L('order-number', [lambda: 'Order number 0%d-%d-%d shipped' % (N_(100, 999), N_(1000000, 9999999), N_(1000000, 9999999)), lambda: 'Tracking no. 1Z%s' % rs(16, 'u'), lambda: 'Ticket INC%d, change CHG%d, asset %d' % (N_(1000000, 9999999), N_(1000000, 9999999), N_(10**8, 10**9)), lambda: 'Artikelnummer %d %d %d, Menge %d Stück' % (N_(100, 999), N_(100, 999), N_(100, 999), N_(1, 90)), lambda: 'part no. %d-%d-%d rev %s' % (N_(100, 999), N_(10, 99), N_(1000, 9999), rs(1, 'U')), lambda: 'Référence de commande : %d %d %d %d' % (N_(10, 99), N_(10, 99), N_(10, 99), N_(10, 99)), lambda: '受注番号:%d-%d' % (N_(1000, 9999), N_(100000, 999999)), lambda: 'lot %s%d exp 2027-0%d' % (rs(2, 'U'), N_(10000, 99999), N_(1, 9)), lambda: 'Pedido nº %d - total R$ %d,90' % (N_(10**6, 10**7), N_(10, 900)), lambda: 'Booking reference %s, seat %d%s, gate %s%d' % (rs(6, 'U'), N_(1, 40), pick('A', 'C', 'F'), pick('A', 'B'), N_(1, 40)), lambda: 'meter reading %d kWh (previous %d)' % (N_(10**5, 10**6), N_(10**5, 10**6)), lambda: 'Zählerstand: %06d,%d m³' % (N_(0, 99999), N_(0, 9)), lambda: 'SKU,qty,price\n%d,%d,%d.95\n%d,%d,%d.50' % (N_(10**9, 10**10), N_(1, 90), N_(1, 90), N_(10**9, 10**10), N_(1, 9), N_(1, 90))])
from stdnum import ean, isbn, luhn
def mk_ean(pfx):
    while 1:
        x = pfx + rs(12 - len(pfx), 'd'); x += ean.calc_check_digit(x)
        if not luhn.is_valid(x): return x
L('isbn-ean', [lambda: 'ISBN 978-%s, %d pages, hardcover' % ((lambda v: '%s-%s-%s-%s' % (v[3], v[4:7], v[7:12], v[12]))(mk_ean('978')), N_(40, 900)), lambda: 'EAN %s  %s  %d.49' % (mk_ean('40'), word(), N_(1, 20)), lambda: '{"gtin":"%s","brand":"%s"}' % (mk_ean('87'), F.company()), lambda: 'ISSN %d-%d, vol. %d' % (N_(1000, 9999), N_(1000, 9999), N_(1, 90)), lambda: 'doi:10.%d/%s.%d' % (N_(1000, 9999), word(), N_(10000, 99999)), lambda: 'arXiv:%d%02d.%05d [cs.CR]' % (N_(10, 26), N_(1, 12), N_(1, 20000)), lambda: 'barcode,count\n%s,%d\n%s,%d' % (mk_ean('50'), N_(1, 9), mk_ean('76'), N_(1, 9))], 2)
def badcard():
    while 1:
        v = '4' + rs(15, 'd')
        if not luhn.is_valid(v): return ' '.join(v[i:i + 4] for i in range(0, 16, 4))
def badiban():
    from stdnum import iban
    while 1:
        v = pick('DE', 'NL', 'FR') + rs(20, 'd')
        if not iban.is_valid(v): return v
L('ref-lookalike', [lambda: 'Payment reference RF%d %d %d' % (N_(10, 99), N_(1000, 9999), N_(1000, 9999)), lambda: 'Sensor serial %s' % badcard(), lambda: 'shipment ref %s registered' % badiban(), lambda: 'Mandate id M-%d-%d, creditor id placeholder' % (N_(1000, 9999), N_(1000, 9999)), lambda: 'Gift voucher layout: XXXX-XXXX-XXXX-%d' % N_(1000, 9999), lambda: 'Card ending in %d was charged %d.00 EUR' % (N_(1000, 9999), N_(1, 900)), lambda: 'account ****%d, balance hidden' % N_(1000, 9999), lambda: 'SSN format is AAA-GG-SSSS; never store it in clear text.', lambda: 'The field expects ###-##-#### and rejects anything else.', lambda: 'IBAN example layout: DEkk bbbb bbbb cccc cccc cc', lambda: 'Phone numbers must look like +CC NNN NNNNNNN.', lambda: 'e-mail: user@example.com (placeholder)', lambda: '{"email":"name@example.org","phone":"string"}'])
L('stack-trace', [lambda: 'Traceback (most recent call last):\n  File "/app/%s.py", line %d, in handle\n    raise KeyError(\'%s\')\nKeyError: \'%s\'' % (word(), N_(1, 900), word(), word()), lambda: 'java.lang.NullPointerException: %s\n\tat com.acme.%s.Service.run(Service.java:%d)\n\tat java.base/java.lang.Thread.run(Thread.java:%d)' % (word(), word(), N_(1, 900), N_(1, 999)), lambda: 'panic: runtime error: index out of range [%d] with length %d\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:%d +0x%s' % (N_(5, 9), N_(1, 4), N_(1, 99), h(2)), lambda: "thread 'main' panicked at src/main.rs:%d:%d:\ncalled `Option::unwrap()` on a `None` value" % (N_(1, 99), N_(1, 40)), lambda: 'TypeError: Cannot read properties of undefined (reading \'%s\')\n    at Object.<anonymous> (/app/dist/%s.js:%d:%d)' % (word(), word(), N_(1, 999), N_(1, 90)), lambda: 'Segmentation fault\n#0 0x0000%s in ?? ()\n#1 0x0000%s in main ()' % (h(12), h(12)), lambda: 'System.ArgumentException: invalid token at position %d\n   at Parser.Next() in C:\\src\\Parser.cs:line %d' % (N_(1, 99), N_(1, 999))], 2)
PNG = 'iVBORw0KGgoAAAANSUhEUgAA'
L('binary', [lambda: '{"type":"image","mimeType":"image/png","data":"%s"}' % b64(bytes.fromhex('89504e470d0a1a0a0000000d49484452000000100000001008060000001ff3ff61') + rb(N_(200, 500))), lambda: 'data:image/jpeg;base64,%s' % b64(bytes.fromhex('ffd8ffe000104a46494600010100') + rb(300)), lambda: '.i{background:url(data:image/svg+xml;base64,%s)}' % b64('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path d="M%d %dh%d"/></svg>' % (N_(1, 9), N_(1, 9), N_(1, 9))), lambda: '{"type":"audio","mimeType":"audio/wav","data":"%s"}' % b64(b'RIFF' + rb(4) + b'WAVEfmt ' + rb(260)), lambda: '00000000  ' + '\n00000010  '.join(' '.join(h(2) for _ in range(16)) for _ in range(2)), lambda: '0x%s 0x%s 0x%s' % (h(8), h(8), h(8)), lambda: 'const font = "%s";' % b64(b'wOF2' + rb(240)), lambda: '{"blob":"%s","mimeType":"application/pdf"}' % b64(b'%PDF-1.7\n' + rb(300)), lambda: 'static const uint8_t lut[] = {' + ','.join('0x' + h(2) for _ in range(40)) + '};', lambda: 'embedding: [' + ', '.join('%.5f' % R.uniform(-1, 1) for _ in range(24)) + ']', lambda: 'payload (protobuf hex): 0a%s12%s' % (h(40), h(30)), lambda: b64('Meeting moved to Thursday, room %d. Bring the printed agenda for %s.' % (N_(1, 40), F.company()))], 2)
L('minified-js', [lambda: '!function(e,t){"object"==typeof exports?module.exports=t():e.%s=t()}(this,function(){var n=%d;return function r(e){return e?r(e-1)+n:0}});' % (word(), N_(1, 99)), lambda: 'var a=0x%s,_0x%s=["push","shift","length"];(function(b,c){for(;c--;)b.push(b.shift())})(_0x%s,%d);' % (h(4), h(4), h(4), N_(1, 300)), lambda: '//# sourceMappingURL=%s.js.map\n{"version":3,"sources":["a.ts"],"mappings":"AAAA,%s;AACA,%s"}' % (word(), rs(30, 'A'), rs(24, 'A')), lambda: 'self.__next_f.push([1,"%d:[\\"$\\",\\"div\\",null,{\\"className\\":\\"%s_%s\\"}]"])' % (N_(1, 9), word(), rs(5, 'a')), lambda: '.%s_%s{margin:0}.%s_%s:hover{color:#%s}' % (word(), rs(5, 'a'), word(), rs(5, 'a'), h(6))], 2)
L('schema', [lambda: J({'type': 'object', 'properties': {'password': {'type': 'string', 'minLength': N_(8, 16), 'format': 'password'}, 'token': {'type': 'string', 'description': 'bearer token obtained from /login'}}, 'required': ['password']}), lambda: J({'name': 'create_secret', 'description': 'Creates a secret in the vault. The value is never returned.', 'inputSchema': {'type': 'object', 'properties': {'name': {'type': 'string'}, 'secretValue': {'type': 'string', 'writeOnly': True}}}}), lambda: 'components:\n  securitySchemes:\n    bearerAuth:\n      type: http\n      scheme: bearer\n      bearerFormat: JWT', lambda: 'CREATE TABLE users (id serial, password_hash text NOT NULL, api_key char(32), ssn varchar(11));', lambda: 'type Credentials struct {\n\tPassword string `json:"password"`\n\tAPIKey string `json:"api_key"`\n}', lambda: 'interface Login { username: string; password: string; otpSecret?: string }', lambda: 'message Auth { string access_token = 1; string refresh_token = 2; }', lambda: '<xs:element name="password" type="xs:string" minOccurs="0"/>', lambda: 'input CreateUser { email: String! passportNumber: String creditCard: ID }', lambda: 'class Settings(BaseSettings):\n    secret_key: SecretStr\n    database_password: str = Field(..., env="DB_PASS")', lambda: 'ALTER TABLE accounts DROP COLUMN iban, DROP COLUMN date_of_birth;'], 1)
PLH = ['YOUR_API_KEY', 'xxxxxxxxxxxxxxxx', '<token>', 'changeme', '********', '{{ api_key }}', '$API_KEY', '${SECRET}', 'REPLACE_ME', '<your-secret-here>', 'sk-...', 'AKIAXXXXXXXXXXXXXXXX', '%(password)s', 'os.environ["TOKEN"]', 'process.env.API_KEY', 'getenv("SECRET")', 'null', 'None', '""', 'TODO', '[REDACTED]', '***', '…', 'insert-token-here', 'secretref:db', 'vault:secret/data/app#password', '!vault_lookup', '@Microsoft.KeyVault(SecretUri=https://kv.vault.azure.net/secrets/db)', 'arn:aws:secretsmanager:eu-west-1:000000000000:secret:db', 'op://Private/db/password', 'ref+awsssm://app/db', '!Ref DbPassword', '((db-password))', 'ENC(placeholder)', '/run/secrets/db_password', 'file:///etc/app/secret', '{{ lookup("env", "PW") }}', '#{password}#', '<%= Rails.application.credentials.token %>', '$(cat /run/secrets/key)', '${{ secrets.DEPLOY_KEY }}', 'ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', 'xoxb-your-token', 'sk_test_...', 'glpat-XXXXXXXXXXXXXXXXXXXX', 'your_password', 'mot_de_passe_ici', 'dein-passwort', 'su-contraseña', 'eyJhbGciOi...']
def plh(f):
    def g(): return f(R.choice(PLH))
    return g
L('placeholder', [plh(lambda p: 'API_KEY=%s\nPORT=%d' % (p, N_(1000, 9999))), plh(lambda p: 'password: %s\nhost: db' % p), plh(lambda p: '{"token": %s}' % J(p)), plh(lambda p: 'export SECRET_KEY=%s  # fill in' % p), plh(lambda p: "client = Api(token='%s')" % p.replace("'", '"')), plh(lambda p: 'curl -H "Authorization: Bearer %s" https://api.example.com' % p), plh(lambda p: 'aws_secret_access_key = %s' % p), plh(lambda p: 'DB_PASSWORD=%s' % p), plh(lambda p: '<password>%s</password>' % html.escape(p)), plh(lambda p: 'auth:\n  client_secret: %s' % p), plh(lambda p: 'Replace `%s` with the key from your dashboard.' % p), plh(lambda p: 'env:\n  NPM_TOKEN: %s' % p), plh(lambda p: '| password | %s |' % p), plh(lambda p: '//registry.npmjs.org/:_authToken=%s' % p), plh(lambda p: 'passwd = %s' % p), plh(lambda p: 'spring.datasource.password=%s' % p), plh(lambda p: "define('AUTH_KEY', '%s');" % p.replace("'", '')), plh(lambda p: 'stringData: {password: "%s"}' % p.replace('"', ''))], 4)
L('secret-reference', [lambda: 'valueFrom:\n  secretKeyRef:\n    name: %s\n    key: password' % ident(), lambda: 'data "aws_secretsmanager_secret_version" "db" {\n  secret_id = "prod/%s/password"\n}' % word(), lambda: 'password = var.db_password\nsensitive = true', lambda: 'vault kv get -field=token secret/%s/ci' % ident(), lambda: 'apiKey: process.env.%s_KEY ?? throwMissing()' % word().upper(), lambda: 'token = keyring.get_password("%s", user)' % word(), lambda: 'Secret "%s" rotated, next rotation in %d days' % (ident(), N_(1, 90)), lambda: 'password_hash = bcrypt.hash(password, 12)', lambda: 'if (token !== expectedToken) return res.status(401).end();', lambda: 'const { accessToken, refreshToken } = await login(user, password);', lambda: 'secretName: %s-tls\nissuerRef: letsencrypt' % ident(), lambda: 'password = input("Password: ")\ntoken = generate_token(length=%d)' % N_(16, 64), lambda: 'passwords = [hash_password(p) for p in plain]', lambda: 'getpass.getpass(prompt="Vault token: ")', lambda: 'secret_key_base: <%= ENV["SECRET_KEY_BASE"] %>', lambda: 'KeyVaultSecret secret = await client.GetSecretAsync("db-password");', lambda: 'password: { required: true, minlength: %d }' % N_(8, 14), lambda: 'TOKEN_URL=https://login.example.com/oauth/token\nTOKEN_TTL=%d' % N_(300, 9999), lambda: 'max_tokens=%d, token_count=%d, tokenizer=cl100k_base' % (N_(100, 4000), N_(100, 99999)), lambda: 'api_key_header = APIKeyHeader(name="X-API-Key", auto_error=False)'], 2)
DOCS = '''A password manager stores credentials encrypted; never reuse a password on two sites.
Rotate the API key every 90 days and revoke the old one after the deployment.
The token endpoint returns an access token that expires after one hour.
GitHub tokens start with ghp_ followed by 36 characters; the last six are a checksum.
AWS access key ids begin with AKIA for long-term and ASIA for temporary credentials.
A private key in PEM format starts with a BEGIN line; the file should have mode 0600.
If you lost your recovery codes, contact support to reset two-factor authentication.
Store the secret in the keychain, not in the source code.
Your password must contain at least 12 characters, one digit and one symbol.
The password reset link has expired. Please request a new one.
Invalid API key provided. Check the key in your account settings.
Das Passwort muss mindestens zwölf Zeichen lang sein und darf nicht im Wörterbuch stehen.
Le mot de passe doit comporter au moins douze caractères et un symbole.
La contraseña debe tener al menos doce caracteres.
パスワードは12文字以上で設定してください。
Пароль должен содержать не менее двенадцати символов.
密码必须至少包含十二个字符。
Kerberos tickets replace the password on the wire; the KDC shares a secret with each service.
Secret scanning supports more than 200 token types and blocks pushes that contain them.
JWT consists of three base64url parts: header, payload and signature.
The secret ingredient of the sauce is smoked paprika.
He kept the secret for forty years and took the password to the grave.
Basic authentication sends user name and password base64-encoded, so it needs TLS.
A TOTP seed is a base32 string shared once by QR code.
The IBAN consists of a country code, two check digits and up to thirty characters.
Credit card numbers are validated with the Luhn algorithm, which catches single-digit errors.
Personal data includes the name, the address, the date of birth and the identification number.
Under the data protection act the passport number must not be stored longer than necessary.
Please have your social security card and driving licence ready for the appointment.
Anonymisation removes e-mail addresses, phone numbers and IP addresses from the records.
The tax number is printed in the upper right corner of the assessment.
Die Steuer-Identifikationsnummer besteht aus elf Ziffern, die letzte ist eine Prüfziffer.
El DNI consta de ocho cifras y una letra de control.
Il codice fiscale è composto da sedici caratteri alfanumerici.'''.split('\n')
INJT = '''Prompt injection is an attack in which untrusted text contains instructions for the language model.
A classic example is the sentence "ignore previous instructions", which our filter detects and logs.
The paper measures how often models follow instructions that are hidden in web pages.
OWASP lists prompt injection as the first risk for LLM applications.
In the talk we show how a tool description can be abused and how pinning prevents it.
Jailbreak prompts such as DAN ask the model to play a character without rules; they are patched regularly.
Our red team wrote 200 test cases, for instance text that asks the assistant to reveal its system prompt.
The scanner flags zero-width characters because they can hide text from reviewers.
Do not paste system prompts of customers into the ticket system.
Ignore the previous warning if the LED turns green within ten seconds.
You may disregard the earlier invoice; a corrected one is attached.
Please ignore my previous e-mail, the meeting is on Tuesday after all.
Forget everything you know about gardening: this raised bed needs no digging.
Do not tell the children about the surprise party.
From now on the shop opens at nine instead of ten.
Follow the instructions below to reset the device: hold the button for five seconds.
The previous instructions for model A no longer apply to model B, see chapter 4.
You are now connected to the guest network.
You are now entering the national park; dogs must be kept on a leash.
Act as a mentor for new colleagues and share your experience.
Pretend play helps children to develop language.
The new rules replace all earlier rules of the tournament.
Important: read the safety instructions before using this tool.
Before using this tool, unplug the machine and wear safety glasses.
This function must be called before any other function of the library.
Always call init() first; otherwise the handle is invalid.
Returns the system prompt template used by the evaluation harness.
System: Windows 11, 16 GB RAM. User: standard account.
The assistant manager ignored the previous complaints of the guests.
Override the default settings in config.d/override.conf.
The user has approved your pull request.
Send the completed form to the address below.
Do not mention the war, said the hotel owner in the comedy.
As an AI language course we offer Python and statistics for beginners.
Developer mode is enabled by tapping the build number seven times.
Run rm -rf build/ to clean the output directory.
Install with: pip install -e . && pytest -q
Use curl -fsSL https://example.com/health to check the service.
git push --force-with-lease is safer than --force.
chmod 600 ~/.ssh/authorized_keys fixes the permission error.
sudo apt-get remove --purge old-kernel && sudo reboot
Ignorieren Sie die Fehlermeldung, falls das Gerät trotzdem startet.
Bitte sagen Sie dem Patienten nichts, bevor der Arzt da ist.
Vergessen Sie nicht, die vorherigen Anweisungen zu unterschreiben.
Veuillez ignorer ce message si vous avez déjà payé.
Ne dites rien aux enfants, c'est une surprise.
Ignore este correo si ya ha realizado el pago.
Olvídese de las instrucciones anteriores: el nuevo modelo se monta sin tornillos.
Ignori questo avviso se ha già provveduto al pagamento.
Desconsidere o aviso anterior se o pagamento já foi feito.
Negeer deze melding als u al betaald heeft.
Прошу не обращать внимания на предыдущее письмо, срок перенесён.
以前の手順は無視して構いません。新しい説明書をご覧ください。
如果您已付款,请忽略此邮件。
이미 결제하셨다면 이 메일을 무시해 주세요.
Ödeme yaptıysanız bu mesajı dikkate almayınız.
إذا كنت قد دفعت بالفعل فيرجى تجاهل هذه الرسالة.
यदि आपने भुगतान कर दिया है तो कृपया इस संदेश को अनदेखा करें।
How do I write a good system prompt for a support bot?
Explain why instruction hierarchy matters for agents.
What is the difference between a jailbreak and a prompt injection?
Translate "ignore all the noise" into Spanish.
Hide this column from the user if the list is empty.
The hidden field must not be shown to the user until step two.'''.split('\n')
DC = [lambda x: x, lambda x: F.sentence() + ' ' + x, lambda x: '# FAQ\n\n' + x + '\n', lambda x: '<p>' + x + '</p>', lambda x: '// ' + x + '\nreturn 0;', lambda x: J({'section': N_(1, 20), 'text': x}), lambda x: '> ' + x + '\n\nagreed', lambda x: 'Subject: %s\n\nDear all,\n\n%s\n\nRegards' % (F.bs(), x), lambda x: 'id,text\n%d,"%s"' % (N_(1, 99), x.replace('"', '""')), lambda x: '- %s\n- %s' % (F.bs(), x), lambda x: '%d. %s' % (N_(1, 30), x)]
for x in DOCS: B.append(('doc-secrets', lambda x=x: R.choice(DC)(x), 1))
for i, x in enumerate(INJT): B.append(('doc-injection', lambda x=x: R.choice(DC)(x), 2 if i % 4 == 0 else 1))
from sec_types import edkey, eckey, rsakey, ser
def pub(k): return k.public_key().public_bytes(ser.Encoding.PEM, ser.PublicFormat.SubjectPublicKeyInfo).decode()
def cert(): return '-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----' % '\n'.join((lambda s: [s[i:i + 64] for i in range(0, len(s), 64)])(b64(bytes.fromhex('3082') + rb(2) + bytes.fromhex('308202') + rb(1) + bytes.fromhex('a003020102') + rb(500))))
L('public-key', [lambda: pub(eckey()), lambda: pub(rsakey()), lambda: 'ssh-ed25519 %s %s' % (edkey().public_key().public_bytes(ser.Encoding.OpenSSH, ser.PublicFormat.OpenSSH).decode().split()[1], ident()), cert, lambda: '{"kty":"OKP","crv":"Ed25519","x":"%s","kid":"%s","use":"sig"}' % (b64u(rb(32)), h(8)), lambda: '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n%s\n=%s\n-----END PGP PUBLIC KEY BLOCK-----' % (b64(b'\x98\x33\x04' + rb(180)), rs(4, 'b')), lambda: 'SHA256:%s no comment (ED25519)' % rs(43, 'b'), lambda: '-----BEGIN PGP SIGNATURE-----\n\n%s\n-----END PGP SIGNATURE-----' % b64(rb(120)), lambda: '-----BEGIN CERTIFICATE REQUEST-----\n%s\n-----END CERTIFICATE REQUEST-----' % b64(rb(240)), lambda: '[Peer]\nPublicKey = %s\nAllowedIPs = 10.8.0.0/24' % b64(rb(32)), lambda: 'age recipient: %s' % __import__('sec_types').bech('age', rb(32)), lambda: 'STRIPE_PUBLISHABLE_KEY=pk_test_%s' % rs(24, 'a'), lambda: 'fingerprint %s' % ':'.join(h(2).upper() for _ in range(20)), lambda: 'known_hosts: git.example.com ssh-rsa %s' % b64(bytes.fromhex('000000077373682d727361') + rb(160)), lambda: 'default._domainkey TXT "v=DKIM1; k=rsa; p=%s"' % b64(rb(160))], 2)
L('headers', [lambda: "Content-Security-Policy: default-src 'self'; script-src 'nonce-%s' 'sha256-%s='" % (rs(22, 'b'), rs(43, 'b')), lambda: 'ETag: W/"%s"\nAge: %d\nX-Cache: HIT' % (h(32), N_(1, 9999)), lambda: 'Set-Cookie: lang=de; Path=/; Max-Age=31536000', lambda: 'Public-Key-Pins: pin-sha256="%s="' % rs(43, 'b'), lambda: 'Sec-WebSocket-Key: %s\nSec-WebSocket-Version: 13' % b64(rb(16)), lambda: 'Content-Type: multipart/form-data; boundary=----WebKitFormBoundary%s' % rs(16, 'a'), lambda: 'Strict-Transport-Security: max-age=63072000; includeSubDomains', lambda: 'WWW-Authenticate: Bearer realm="api", error="invalid_token"', lambda: 'GET /static/%s.%s.js HTTP/1.1" 200 %d' % (word(), h(20), N_(100, 99999)), lambda: 'Idempotency-Key: %s' % U()], 2)
L('science', [lambda: '%.5f, %.5f\n%.5f, %.5f' % tuple(R.uniform(-90, 90) for _ in range(4)), lambda: '{"sensor":"t%d","temp":%.1f,"hum":%d,"co2":%d}' % (N_(1, 99), R.uniform(-9, 39), N_(20, 90), N_(400, 2000)), lambda: '>seq%d\n%s\n%s' % (N_(1, 99), ''.join(R.choice('ACGT') for _ in range(70)), ''.join(R.choice('ACGT') for _ in range(70))), lambda: ''.join(R.choice('ACDEFGHIKLMNPQRSTVWY') for _ in range(90)), lambda: 'CC(=O)OC1=CC=CC=C1C(=O)O  aspirin  180.16 g/mol', lambda: 'CAS 50-00-0 formaldehyde, H301, H311, H331', lambda: 'InChIKey=%s-%s-N' % (rs(14, 'U'), rs(10, 'U')), lambda: 'rs%d chr%d:%d A>G maf 0.%d' % (N_(1000, 9999999), N_(1, 22), N_(10000, 99999999), N_(10, 49)), lambda: 'NM_%d.%d:c.%d%s>%s' % (N_(1000, 99999), N_(1, 5), N_(10, 4000), 'A', 'G'), lambda: '1. e4 c5 2. Nf3 d6 3. d4 cxd4 4. Nxd4 Nf6 5. Nc3 a6 %d... Qb6' % N_(6, 20), lambda: 'r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - %d %d' % (N_(0, 9), N_(3, 20)), lambda: '%s %d:%d %s (HT %d:%d), attendance %d' % (F.city(), N_(0, 5), N_(0, 5), F.city(), 0, 1, N_(1000, 80000)), lambda: '6-%d, 3-6, 7-6(%d), 6-4 after 3h%d' % (N_(0, 4), N_(0, 9), N_(10, 59)), lambda: 'p = 0.00%d, n = %d, 95%% CI [%.2f, %.2f]' % (N_(1, 9), N_(20, 9999), R.random(), 1 + R.random()), lambda: 'M %d %d L %d %d C %d %d, %d %d, %d %d Z' % tuple(N_(0, 500) for _ in range(10)), lambda: 'EPSG:4326 POLYGON((%.4f %.4f, %.4f %.4f, %.4f %.4f))' % tuple(R.uniform(1, 60) for _ in range(6)), lambda: '$GPGGA,%06d,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47' % N_(0, 235959), lambda: 'METAR EDDF 12%04dZ 24008KT 9999 FEW030 1%d/0%d Q101%d' % (N_(0, 2350), N_(0, 9), N_(0, 9), N_(0, 9)), lambda: 'fold_it: T%d, RMSD %.3f Å, 3.%d million particles' % (N_(1000, 1200), R.random(), N_(1, 9)), lambda: 'ISO 9001:2015, EN 13501-1, DIN 4102-B%d, RAL %d' % (N_(1, 3), N_(1000, 9023)), lambda: 'Winning numbers: %s, bonus %d' % (', '.join(str(N_(1, 49)) for _ in range(6)), N_(1, 9))], 2)
L('prose', [lambda: F.paragraph(6), lambda: Faker('de_DE').paragraph(3) if 0 else 'Der Vorstand beschloss in seiner %d. Sitzung, die Beiträge um %d %% anzuheben; § 12 Abs. 3 der Satzung bleibt unberührt.' % (N_(2, 90), N_(1, 9)), lambda: 'Article %d. The parties shall keep confidential information secret for %d years after termination.' % (N_(1, 40), N_(1, 9)), lambda: 'Permission is hereby granted, free of charge, to any person obtaining a copy of this software, to deal in the Software without restriction (c) %d %s.' % (N_(1999, 2026), F.company()), lambda: 'Licensed under the Apache License, Version 2.0; you may not use this file except in compliance with the License. See section %d.' % N_(1, 9), lambda: 'Vu l\'article L. %d-%d du code de commerce, la cour rejette le pourvoi n° %d.' % (N_(100, 999), N_(1, 9), N_(1, 99)), lambda: 'En un lugar de la Mancha, de cuyo nombre no quiero acordarme, vivía un hidalgo (cap. %d).' % N_(1, 50), lambda: '%d年の売上は前年比%d%%増となり、過去最高を更新した。' % (N_(2000, 2026), N_(1, 40)), lambda: '本报告共%d页,统计了%d个样本的测量结果。' % (N_(2, 90), N_(100, 9000)), lambda: 'Встреча перенесена на %d часов, комната %d, повестка прежняя.' % (N_(9, 18), N_(100, 400)), lambda: 'تم تأجيل الاجتماع إلى الساعة %d في القاعة %d.' % (N_(1, 12), N_(1, 40)), lambda: 'בדיקה מספר %d הסתיימה ללא שגיאות.' % N_(1, 99), lambda: '회의는 %d층 %d호에서 열립니다.' % (N_(1, 20), N_(100, 900)), lambda: 'Kargo %d gün içinde teslim edilir, iade süresi %d gündür.' % (N_(1, 9), N_(10, 30)), lambda: 'Recipe: %d g flour, %d ml milk, %d eggs; bake at %d °C.' % (N_(100, 500), N_(100, 500), N_(1, 6), N_(150, 230)), lambda: 'Σχέδιο %d: το κόστος ανέρχεται σε %d ευρώ.' % (N_(1, 40), N_(100, 9000)), lambda: 'Uwaga: pociąg %d odjedzie z peronu %d z opóźnieniem %d minut.' % (N_(1000, 9999), N_(1, 9), N_(5, 90)), lambda: 'Prices: %d.99 / %d.49 / %d.00 (incl. %d%% VAT)' % (N_(1, 99), N_(1, 99), N_(100, 999), N_(5, 25)), lambda: 'कुल %d छात्रों ने परीक्षा दी, %d उत्तीर्ण हुए।' % (N_(100, 900), N_(10, 99)), lambda: 'BGB § %d Abs. 1 Satz 2 Nr. %d' % (N_(1, 2385), N_(1, 9))], 2)
L('ops', [lambda: 'NAME                    READY   STATUS    RESTARTS   AGE\n%s-%s-%s   1/1     Running   0          %dd' % (ident(), h(10), rs(5, 'l'), N_(1, 90)), lambda: 'CONTAINER ID   IMAGE     STATUS\n%s   nginx     Up %d hours' % (h(12), N_(1, 40)), lambda: 'PING 10.0.0.%d: 64 bytes, ttl=64 time=0.%d ms' % (N_(1, 254), N_(10, 99)), lambda: 'eth0: inet 192.168.%d.%d netmask 255.255.255.0' % (N_(0, 254), N_(1, 254)), lambda: 'listening on http://127.0.0.1:%d, version %d.%d.%d.%d' % (N_(1000, 9999), N_(1, 9), N_(0, 9), N_(0, 99), N_(0, 999)), lambda: 'arn:aws:iam::000000000000:role/%s' % ident(), lambda: 'vpc-%s subnet-%s sg-%s ami-%s i-%s' % (h(17), h(17), h(17), h(17), h(17)), lambda: 'Accepted publickey for deploy from 10.1.%d.%d port %d ssh2: ED25519 SHA256:%s' % (N_(0, 9), N_(1, 99), N_(1024, 65000), rs(43, 'b')), lambda: 'PARTUUID=%s / ext4 rw 0 1' % U(), lambda: 'GET /api/v1/items?page=%d&sort=desc 200 %dms' % (N_(1, 99), N_(1, 999)), lambda: 'cache key v3-%s-%s restored' % (word(), h(64)), lambda: 'jobs: %d passed, %d skipped; coverage %d.%d%%' % (N_(10, 999), N_(0, 9), N_(50, 99), N_(0, 9)), lambda: 'table "events": %d rows, seq scan cost=0.00..%d.%d' % (N_(1000, 10**7), N_(100, 9999), N_(10, 99)), lambda: 'BSSID hidden, channel %d, -%d dBm, WPA2-PSK' % (N_(1, 13), N_(30, 90)), lambda: 'snapshot snap-%s of vol-%s completed' % (h(17), h(17)), lambda: 'resource id /subscriptions/%s/resourceGroups/%s' % (U(), word()), lambda: 'correlation id %s; activity %s' % (h(32), U()), lambda: 'tx 0x%s mined in block %d, gas %d' % (h(64), N_(10**7, 10**8), N_(21000, 900000)), lambda: 'offset=%d partition=%d key=%s' % (N_(10**6, 10**9), N_(0, 11), h(24)), lambda: 'youtube.com/watch?v=%s&t=%ds' % (rs(11, 'w'), N_(1, 900)), lambda: 'https://docs.example.com/d/%s/edit#gid=%d' % (rs(44, 'w'), N_(0, 99999)), lambda: 'https://cdn.example.net/%s/%s.webp?width=%d' % (h(32), word(), N_(100, 2000)), lambda: 'Mongo ObjectId("%s")' % h(24), lambda: 'firebase project %s-%s, app 1:000000000000:web:%s' % (word(), h(5), h(22))], 2)
L('mcp', [lambda: J({'jsonrpc': '2.0', 'id': N_(1, 99), 'method': 'tools/list', 'params': {'cursor': b64u(J({'offset': N_(1, 900)}))}}), lambda: J({'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': {'protocolVersion': '2025-06-18', 'capabilities': {'roots': {'listChanged': True}}, 'clientInfo': {'name': ident(), 'version': '0.%d.0' % N_(1, 9)}}}), lambda: J({'jsonrpc': '2.0', 'id': N_(1, 99), 'result': {'tools': [{'name': 'search_' + word(), 'description': 'Searches %s by keyword. Use this tool when the user asks about %s.' % (word(), word()), 'inputSchema': {'type': 'object'}}]}}), lambda: J({'jsonrpc': '2.0', 'method': 'notifications/progress', 'params': {'progressToken': U(), 'progress': N_(1, 99)}}), lambda: J({'jsonrpc': '2.0', 'id': N_(1, 99), 'result': {'nextCursor': b64(rb(24)), 'resources': []}}), lambda: J({'jsonrpc': '2.0', 'id': N_(1, 99), 'error': {'code': -32602, 'message': 'Missing required argument: password'}}), lambda: J({'jsonrpc': '2.0', 'id': N_(1, 99), 'method': 'tools/call', 'params': {'name': 'get_weather', 'arguments': {'city': F.city(), 'units': 'metric'}}}), lambda: J({'jsonrpc': '2.0', 'id': N_(1, 99), 'result': {'tools': [{'name': 'rotate_token', 'description': 'Rotates the API token of a service account. Ask the user for confirmation before calling.', 'inputSchema': {'type': 'object', 'properties': {'account': {'type': 'string'}}}}]}}), lambda: J({'jsonrpc': '2.0', 'id': N_(1, 99), 'method': 'elicitation/create', 'params': {'message': 'Which branch should I deploy?', 'requestedSchema': {'type': 'object', 'properties': {'branch': {'type': 'string', 'enum': ['main', 'dev']}}}}}), lambda: 'Mcp-Session-Id: %s\nMCP-Protocol-Version: 2025-06-18' % U() if 0 else 'MCP-Protocol-Version: 2025-06-18\nAccept: application/json, text/event-stream', lambda: 'Call get_schema before run_query so that column names are known. Results are limited to %d rows.' % N_(10, 900), lambda: 'This server exposes read-only tools. Do not pass file paths outside the workspace root; you must use relative paths.'], 3)
USEF = Counter(); STATIC = {}
def draw(skip):
    while 1:
        sub, f, n = R.choice(B)
        if sub in skip: continue
        if f not in STATIC: USEF[f] += n; STATIC[f] = sub.startswith('doc-') or f() == f()
        if STATIC[f] and USEF[f] >= 4: continue
        USEF[f] += 1
        return f()
def build_long():
    for _ in range(40):
        parts = [draw(('mcp', 'binary')) for _ in range(N_(3, 7))]
        add('benign', 'composite', pick('\n\n', '\n---\n', '\n\n## %s\n\n' % word()).join(parts))
def build():
    seen = set()
    for sub, f, n in B:
        for _ in range(n):
            x = f()
            while sub == 'isbn-ean' and any(luhn.is_valid(m) for m in re.findall(r'\b[3-6]\d{12}\b', x)): x = f()
            if sub in ('mcp', 'secret-reference') and x in seen: continue
            seen.add(x)
            add('benign', sub, x, **({} if sub != 'mcp' else {'outer': False}))
