from sec_types import *
def snake(n): return re.sub(r'[^a-z0-9]+', '_', n.lower()).strip('_')
def camel(n):
    if n[0].islower() and '_' not in n: return n
    p = snake(n).split('_'); return p[0] + ''.join(x.capitalize() for x in p[1:])
def upper(n): return re.sub(r'([a-z])([A-Z])', r'\1_\2', n).replace('-', '_').upper()
# structured carriers: f(n, v, lab) ; n=identifier, v=marked value
STR = []
def st(f): STR.append(f); return f
def noise_env(): return pick('LOG_LEVEL=%s' % pick('info', 'debug', 'warn'), 'PORT=%d' % R.randint(3000, 9999), 'NODE_ENV=production', 'TZ=Europe/%s' % pick('Berlin', 'Lisbon', 'Oslo'), 'REGION=%s' % pick('us-east-2', 'eu-west-3', 'ap-south-1'), 'WORKERS=%d' % R.randint(1, 16), 'FEATURE_%s=true' % word().upper(), '# ' + F.sentence(4))
_defs = [
 lambda n, v, l: '%s\n%s=%s\n%s\n' % (noise_env(), upper(n), v, noise_env()),
 lambda n, v, l: '%s="%s"' % (upper(n), v),
 lambda n, v, l: "export %s='%s'\nexport PATH=$PATH:/usr/local/go/bin\n" % (upper(n), v),
 lambda n, v, l: '$ printenv | sort\nHOME=/home/%s\nLANG=C.UTF-8\n%s=%s\nSHLVL=1\n_=/usr/bin/printenv' % (F.user_name(), upper(n), v),
 lambda n, v, l: '%s:\n  image: %s:%d.%d\n  environment:\n    - %s=%s\n    - TZ=UTC\n' % (word(), ident(), R.randint(1, 9), R.randint(0, 20), upper(n), v),
 lambda n, v, l: 'services:\n  %s:\n    restart: always\n    environment:\n      %s: "%s"\n' % (word(), upper(n), v),
 lambda n, v, l: 'env:\n  - name: %s\n    value: %s\n  - name: TIER\n    value: backend\n' % (upper(n), v),
 lambda n, v, l: '# values.yaml\nreplicaCount: %d\nconfig:\n  %s: %s\n  timeout: 30s\n' % (R.randint(1, 5), camel(n), v),
 lambda n, v, l: '{\n  "host": "%s",\n  "%s": "%s",\n  "debug": false\n}' % (host(), camel(n), v),
 lambda n, v, l: '{"%s":"%s","ttl":%d}' % (snake(n), v, R.randint(60, 9000)),
 lambda n, v, l: '[%s]\nurl = https://%s\n%s = %s\ntimeout=%d\n' % (word(), host(), snake(n), v, R.randint(5, 90)),
 lambda n, v, l: '[server]\nbind = "0.0.0.0"\n\n[%s]\n%s = "%s"\nenabled = true\n' % (word(), snake(n), v),
 lambda n, v, l: '%s.%s=%s\nspring.jpa.open-in-view=false\n' % (word(), snake(n).replace('_', '.'), v),
 lambda n, v, l: '<appSettings>\n  <add key="%s" value="%s" />\n  <add key="Mode" value="Live" />\n</appSettings>' % (camel(n), v),
 lambda n, v, l: '<config><%s>%s</%s><retries>3</retries></config>' % (camel(n), v, camel(n)),
 lambda n, v, l: "<?php\nreturn [\n    'debug' => false,\n    '%s' => '%s',\n];\n" % (snake(n), v),
 lambda n, v, l: "define('%s', '%s');\ndefine('WP_DEBUG', false);\n" % (upper(n), v),
 lambda n, v, l: 'import requests\n\n%s = "%s"\n\ndef fetch(page):\n    return requests.get(BASE, params={"page": page})\n' % (upper(n), v),
 lambda n, v, l: 'client = Client(%s="%s", timeout=%d)\nprint(client.whoami())\n' % (snake(n), v, R.randint(3, 60)),
 lambda n, v, l: "os.environ['%s'] = '%s'\nrun_job('%s')" % (upper(n), v, ident()),
 lambda n, v, l: 'const %s = "%s";\nexport default new Sdk({ %s });' % (camel(n), v, camel(n)),
 lambda n, v, l: 'module.exports = {\n  %s: \'%s\',\n  retries: 4,\n};' % (camel(n), v),
 lambda n, v, l: 'const cfg = { region: "eu", %s: process.env.X || "%s" }' % (camel(n), v),
 lambda n, v, l: 'package main\n\nconst %s = "%s"\n\nfunc main() { serve(%d) }\n' % (camel(n), v, R.randint(1024, 9999)),
 lambda n, v, l: 'cfg := &Config{\n\tAddr: ":%d",\n\t%s: "%s",\n}' % (R.randint(1024, 9999), camel(n)[0].upper() + camel(n)[1:], v),
 lambda n, v, l: 'private static final String %s = "%s";\n' % (upper(n), v),
 lambda n, v, l: 'var %s = @"%s"; // rotate before release' % (camel(n), v),
 lambda n, v, l: 'let %s: &str = "%s";' % (snake(n), v),
 lambda n, v, l: "%s = '%s'.freeze\nRails.logger.level = :warn" % (upper(n), v),
 lambda n, v, l: 'val %s = "%s"\n' % (camel(n), v),
 lambda n, v, l: 'variable "%s" {\n  type    = string\n  default = "%s"\n}\n' % (snake(n), v),
 lambda n, v, l: 'resource "%s" "main" {\n  name = "%s"\n  %s = "%s"\n}\n' % (pick('helm_release', 'vercel_project', 'aws_lambda_function'), ident(), snake(n), v),
 lambda n, v, l: '%s = "%s"\nreplicas = %d\n' % (snake(n), v, R.randint(1, 9)),
 lambda n, v, l: "INSERT INTO settings (name, value, updated_at) VALUES ('%s', '%s', '%s');" % (snake(n), v, ts()),
 lambda n, v, l: "UPDATE tenants SET %s='%s' WHERE id=%d;" % (snake(n), v, R.randint(1, 900)),
 lambda n, v, l: 'id,service,%s,owner\n%d,%s,%s,%s\n' % (snake(n), R.randint(1, 99), ident(), v, F.first_name()),
 lambda n, v, l: '| setting | value |\n| --- | --- |\n| %s | %s |\n| region | eu-central-1 |' % (snake(n), v),
 lambda n, v, l: '%s %s[%d]: %s=%s loaded from environment' % (ts(), ident(), R.randint(100, 9999), upper(n), v),
 lambda n, v, l: '%s DEBUG %s.client - request headers={Accept=*/*, %s=%s}' % (ts(), word(), n, v),
 lambda n, v, l: 'level=warn ts=%s caller=boot.go:%d msg="deprecated option" %s=%s' % (ts(), R.randint(9, 400), snake(n), v),
 lambda n, v, l: 'Error: 401 from https://%s (using %s "%s")\n    at fetchAll (/app/dist/index.js:%d:17)' % (host(), l, v, R.randint(9, 900)),
 lambda n, v, l: 'Traceback (most recent call last):\n  File "/srv/%s.py", line %d, in <module>\n    connect(%s=\'%s\')\nConnectionError: refused' % (word(), R.randint(3, 400), snake(n), v),
 lambda n, v, l: 'diff --git a/%s b/%s\n@@ -%d,2 +%d,2 @@\n-%s=\n+%s=%s\n' % ('.env', '.env', R.randint(1, 9), R.randint(1, 9), upper(n), upper(n), v),
 lambda n, v, l: '--- a/config/%s.yml\n+++ b/config/%s.yml\n-  %s: %s\n+  %s: <%%= ENV.fetch("X") %%>\n' % (word(), word(), snake(n), v, snake(n)),
 lambda n, v, l: 'docker run -d --name %s -e %s=%s -p %d:80 %s:latest' % (word(), upper(n), v, R.randint(1024, 9999), ident()),
 lambda n, v, l: 'kubectl create secret generic %s --from-literal=%s=%s' % (ident(), snake(n), v),
 lambda n, v, l: 'helm upgrade %s ./chart --set auth.%s=%s --wait' % (ident(), camel(n), v),
 lambda n, v, l: 'gh secret set %s --body "%s"' % (upper(n), v),
 lambda n, v, l: '%s=%s ./deploy.sh %s' % (upper(n), v, pick('prod', 'stage')),
 lambda n, v, l: '1041  cd ~/src/%s\n1042  set %s %s\n1043  make release' % (ident(), upper(n), v),
 lambda n, v, l: '$env:%s = "%s"\nInvoke-Build -Task Publish' % (upper(n), v),
 lambda n, v, l: 'setx %s "%s"' % (upper(n), v),
 lambda n, v, l: 'ENV %s=%s\nRUN make install\n' % (upper(n), v),
 lambda n, v, l: 'pipeline {\n  environment {\n    %s = \'%s\'\n  }\n}' % (upper(n), v),
 lambda n, v, l: 'jobs:\n  publish:\n    runs-on: ubuntu-latest\n    env:\n      %s: %s\n' % (upper(n), v),
 lambda n, v, l: 'variables:\n  GIT_DEPTH: 1\n  %s: "%s"\nstages: [build]' % (upper(n), v),
 lambda n, v, l: '{"Variables":{"%s":"%s","STAGE":"prod"}}' % (upper(n), v),
 lambda n, v, l: '"environment": [{"name": "%s", "value": "%s"}], "cpu": %d' % (upper(n), v, R.choice([256, 512])),
 lambda n, v, l: 'mcpServers:\n  %s:\n    command: npx\n    args: ["-y", "%s-mcp"]\n    env: {%s: "%s"}' % (word(), word(), upper(n), v),
 lambda n, v, l: '{"mcpServers":{"%s":{"command":"uvx","args":["%s"],"env":{"%s":"%s"}}}}' % (word(), ident(), upper(n), v),
 lambda n, v, l: '[Service]\nEnvironment="%s=%s"\nExecStart=/usr/bin/%s\n' % (upper(n), v, ident()),
 lambda n, v, l: '- set_fact:\n    %s: "%s"\n  no_log: false\n' % (snake(n), v),
 lambda n, v, l: "apiVersion: v1\nkind: Secret\nmetadata:\n  name: %s\nstringData:\n  %s: %s\n" % (ident(), snake(n), v),
 lambda n, v, l: '(setenv "%s" "%s")' % (upper(n), v),
 lambda n, v, l: 'options(%s = "%s")\nlibrary(httr)' % (camel(n), v),
 lambda n, v, l: '%s: "%s", # TODO move to the vault' % (snake(n), v),
 lambda n, v, l: "config :%s, %s: \"%s\"" % (word(), snake(n), v),
 lambda n, v, l: 'Console.WriteLine("%s: " + "%s");' % (l, v),
 lambda n, v, l: '# %s\nset -x\n+ %s=%s\n+ ./run\n' % (F.file_name(extension='sh'), upper(n), v),
 lambda n, v, l: '{"key":"%s","value":"%s","enabled":true,"type":"secret"}' % (snake(n), v),
 lambda n, v, l: 'name: %s\nlogin: %s\n%s: %s\nnotes: rotated in %s' % (F.company(), F.user_name(), l, v, F.month_name()),
 lambda n, v, l: '%s\n  %s: %s' % (pick('>>> settings', 'Settings dump', 'App config'), l, v),
 lambda n, v, l: '%s => %s' % (l, v),
 lambda n, v, l: '"%s" -> "%s"' % (camel(n), v),
 lambda n, v, l: '<li><b>%s:</b> <code>%s</code></li>' % (l, v),
 lambda n, v, l: '<input type="hidden" name="%s" value="%s">' % (snake(n), v),
 lambda n, v, l: '<meta name="%s" content="%s"/>' % (snake(n).replace('_', '-'), v),
 lambda n, v, l: 'plist: <key>%s</key>\n<string>%s</string>\n' % (camel(n), v),
 lambda n, v, l: '<string name="%s">%s</string>' % (snake(n), v),
 lambda n, v, l: '{%s: \'%s\', env: \'%s\'}' % (snake(n), v, pick('prod', 'live')),
 lambda n, v, l: 'cat <<EOT > /etc/%s.conf\n%s %s\nEOT' % (ident(), snake(n), v),
 lambda n, v, l: 'HGETALL cfg:%s\n1) "%s"\n2) "%s"' % (ident(), snake(n), v),
 lambda n, v, l: 'etcdctl put /%s/%s %s\nOK' % (ident(), snake(n), v),
 lambda n, v, l: '    %s ............ %s' % (l, v),
]
STR += _defs
for i, f in enumerate(STR): f.__name__ = 'str%d' % i
PROSE = '''Hey {f}, here's the {l} you asked for: {v}
Please don't share this outside the team, but the {l} is {v} for now.
i rotated the {l} this morning, new one is `{v}`
The {l} in the runbook is outdated. Use {v} instead.
> what's the {l} again?
{v}
FYI {f} pasted the {l} into the public channel: {v} - can someone revoke it?
Ticket #{i}: customer sent us their {l} ({v}) in the attachment.
Subject: access for {f}

Hi {f},

as discussed your {l}:
{v}

Regards
Meeting notes {m}: {f} will store the {l} {v} in the vault.
@{u} try again with this {l} → {v}
To reproduce, set the {l} to "{v}" and restart the worker.
Our contractor left the {l} in a comment: {v}.
Login works now. {l} = {v} (expires in {m})
Could you check whether {v} is still a valid {l}?
We found a leaked {l} in the build output: {v}. Severity high.
1. Open the console. 2. Paste the {l} {v}. 3. Press save.
The staging {l} ({v}) also works on prod, which is bad.
btw the {l}, {v}, was never revoked after {f} left.
I set up the integration; {l}: {v}; let me know if it fails.
Step 4 - configure the {l}
    {v}
Step 5 - reboot
My {l} is {v} and I still get a 403, what am I doing wrong?
**{l}** `{v}` (do not commit!!)
Hallo {f}, hier der neue {l}: {v} - bitte nach dem Test wieder löschen.
Der {l} lautet {v}, gültig bis Ende {m}.
Kannst du mal probieren, ob {l} {v} noch geht?
Bonjour {f}, voici le {l} de la préprod : {v}
Le {l} a changé, il faut maintenant utiliser {v}.
Merci de remplacer l'ancien {l} par {v} avant vendredi.
Hola {f}, te paso el {l}: {v}
El {l} que usamos en producción es {v}, no lo publiques.
Ciao {f}, il {l} è {v}, fammi sapere se funziona.
Ecco il nuovo {l} per l'ambiente di test: {v}
Oi {f}, o {l} novo é {v}
Segue o {l} da conta principal: {v}. Apague depois.
Hoi {f}, de {l} is {v}; graag niet doorsturen.
Hej {f}, här kommer {l}: {v}
Cześć {f}, oto {l}: {v} (ważny do końca miesiąca)
Привет, {f}! Вот {l}: {v}
{l} сменили, теперь {v}, старый уже не работает.
你好,这是新的{l}:{v}
{f}さん、{l}は {v} です。よろしくお願いします。
안녕하세요 {f}님, {l} 값은 {v} 입니다.
Merhaba {f}, {l} şu: {v}
مرحبا {f}، هذا هو {l}: {v}
שלום {f}, הנה ה-{l}: {v}
Xin chào {f}, {l} mới là {v}
Halo {f}, ini {l} yang baru: {v}
नमस्ते {f}, नया {l} यह है: {v}
Ahoj {f}, posílám {l}: {v}
Kære {f}, vores {l} er {v}.
Moi {f}, tässä {l}: {v}
[{m} 12, 09:14] {f}: {l} {v}
{f} ({u}): ok so the {l} is {v}, put it in your dotfiles
AI: I found one credential in the repository. {l}: {v}
Screenshot text: "{l}  {v}  Copy  Revoke"
Your {l} has been created. Make sure to copy it now, you will not see it again: {v}
Warning: {l} '{v}' is going to expire in {i} days.
Authentication succeeded with {l} {v} (user {u}).
panic: could not refresh {l} {v}: context deadline exceeded
QA checklist: [x] {l} updated to {v} [ ] smoke test
The customer read out their {l} over the phone, I noted {v}.
Onboarding doc, section 3: "For local development everybody uses the same {l}: {v}".
Reminder to self: {l} {v}
Postmortem {i}: root cause was the {l} {v} hard-coded in the mobile app.
In case the vault is down, the break-glass {l} is {v}
Is {v} the right {l}, or did you mean the other account's?
Found in /tmp/{u}.log -> {l}: {v}
vendor onboarding mail said: "{l}: {v}" and nothing else
Slack export, #{u}: "{l}? {v}" "thx"
Set up CI for {f}: added {l} {v} as a plain variable, should be masked.
Comment on line {i}: why is the {l} {v} in the source?
Transcript: agent says the {l} ends up as {v} in memory.
call log {i}: {f} provided {l} {v}; verified; closed
New {l} for {m}: {v}. Old one stays valid for 24h.
README > Quick start: `export X={v}` where X is your {l}.
This worked for me: curl with {l} {v}, then retry twice.
Wiki page "{m} migration": {l} = {v}, owner {f}
Could not find where else to put it, so here is the {l}... {v}
Pinned by {u}: {l} {v}
I accidentally committed {v} (our {l}) in {i} files, help
Printing the {l} for debugging: {v}
Got it! Using {l} {v} for the next calls.
>> {l}
<< {v}
The old {l} was {v}; removing it now.
Saved note "{f}": {l} / {v}
Tell {f} that {v} is our {l}, thanks
voicemail transcript: the {l} is, quote, {v}, unquote
Support bundle contents: {l} ({v}), {i} log files, 1 core dump.
sticky note on the rack: {l} {v}
For the demo on {m} {i} log in with {l} {v}.
You can find the {l} below.

{v}

-- 
{f}'''
_p = []
for line in PROSE.split('\n'):
    # join continuation: a new template starts where braces with v appear complete
    _p.append(line)
# assemble templates: blocks accumulate until {v} and {l} both seen
PROSES, cur = [], []
TAILS = ('Regards', '-- ', '{f}', 'Step 5 - reboot', '', '{v}', 'as discussed your {l}:', '<< {v}')
for line in _p:
    if cur and (line in TAILS or line.startswith('    ') or not ('{v}' in '\n'.join(cur) and '{l}' in '\n'.join(cur))):
        cur.append(line)
    else:
        if cur: PROSES.append('\n'.join(cur))
        cur = [line]
PROSES.append('\n'.join(cur))
for p in PROSES: assert p.count('{v}') == 1 and '{l}' in p, p
def prose(p, v, l): return p.replace('{f}', F.first_name()).replace('{u}', F.user_name()).replace('{i}', str(R.randint(2, 990))).replace('{m}', F.month_name()).replace('{l}', l).replace('{v}', v)
# ------------------------------------------------------------ native carriers
NAT = []
def nat(sub, ctx=False, n=2):
    def d(f): NAT.append((sub, f, ctx, n)); return f
    return d
def akia(p='AKIA'): return p + rs(16, 'T')
@nat('aws-pair', n=5)
def _():
    i, s = akia(), rs(40, 'b')
    return pick('[default]\naws_access_key_id = %s\naws_secret_access_key = %s\nregion = us-west-2\n', 'User name,Access key ID,Secret access key\nsvc-backup,%s,%s\n', '{"AccessKeyId": "%s", "SecretAccessKey": "%s", "Status": "Active"}', 'provider "aws" {\n  access_key = "%s"\n  secret_key = "%s"\n}', "s3 = boto3.client('s3', aws_access_key_id='%s', aws_secret_access_key='%s')", 'aws configure\nAWS Access Key ID [None]: %s\nAWS Secret Access Key [None]: %s\nDefault region name [None]: eu-west-1') % (M(i), M(s))
@nat('aws-sts', n=3)
def _():
    return pick('{"Credentials":{"AccessKeyId":"%s","SecretAccessKey":"%s","SessionToken":"%s","Expiration":"2026-04-02T11:00:00Z"}}', 'export AWS_ACCESS_KEY_ID=%s\nexport AWS_SECRET_ACCESS_KEY=%s\nexport AWS_SESSION_TOKEN=%s\n') % (M(akia('ASIA')), M(rs(40, 'b')), M(t('IQoJb3JpZ2luX2Vj{340-480:b}==')))
@nat('gcp-service-account', n=3)
def _():
    d = {'type': 'service_account', 'project_id': ident(), 'private_key_id': rs(40, 'h'), 'private_key': M(p_pkcs8() + '\n'), 'client_email': ident() + '@' + ident() + '.iam.gserviceaccount.com', 'client_id': rs(21, 'd'), 'token_uri': 'https://oauth2.googleapis.com/token'}
    return J(d, indent=pick(2, None))
@nat('azure-storage-conn', n=3)
def _(): return pick('AzureWebJobsStorage=', 'connectionString: "', '') + 'DefaultEndpointsProtocol=https;AccountName=%s;AccountKey=%s;EndpointSuffix=core.windows.net' % (word() + 'store', M(b64(rb(64))))
@nat('azure-servicebus-conn', n=2)
def _(): return 'SERVICEBUS="Endpoint=sb://%s.servicebus.windows.net/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=%s"' % (ident(), M(b64(rb(32))))
@nat('azure-cosmos-conn', n=2)
def _(): return '"Cosmos": "AccountEndpoint=https://%s.documents.azure.com:443/;AccountKey=%s;"' % (ident(), M(b64(rb(64))))
@nat('azure-sas-url', n=3)
def _(): return pick('Download: ', 'azcopy copy "', 'blob_url=') + 'https://%sdata.blob.core.windows.net/exports/%s?sv=2023-11-03&st=2026-01-10T08%%3A00%%3A00Z&se=2026-12-31T20%%3A00%%3A00Z&sr=b&sp=r&sig=%s' % (word(), F.file_name(), M(urllib.parse.quote(b64(rb(32)), safe='')))
@nat('aws-presigned', n=3)
def _(): return pick('curl -o dump.gz "%s"', 'Your export is ready: %s', '{"url":"%s","expires":3600}') % ('https://%s.s3.eu-west-1.amazonaws.com/%s?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=%s%%2F20260312%%2Feu-west-1%%2Fs3%%2Faws4_request&X-Amz-Date=20260312T101500Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=%s' % (ident(), F.file_name(), akia(), M(rs(64, 'h'))))
@nat('gcs-signed', n=2)
def _(): return 'GET https://storage.googleapis.com/%s/%s?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=%s%%40%s.iam.gserviceaccount.com%%2F20260220%%2Fauto%%2Fstorage%%2Fgoog4_request&X-Goog-Date=20260220T080910Z&X-Goog-Expires=3600&X-Goog-SignedHeaders=host&X-Goog-Signature=%s' % (ident(), F.file_name(), word(), ident(), M(rs(512, 'h')))
@nat('cloudfront-signed', n=2)
def _(): return 'https://d%s.cloudfront.net/%s?Expires=%d&Signature=%s&Key-Pair-Id=K%s' % (rs(13, 'l'), F.file_name(category='video'), R.randint(17e8, 18e8), M(rs(340, 'a') + '__'), rs(13, 'u'))
def uriform(scheme, hostport, path='', user=None):
    u = user or pick('app', 'svc_' + word(), F.user_name(), 'root', 'admin'); p = pwu()
    return '%s://%s:%s@%s%s' % (scheme, u, M(p), hostport, path)
URI = [('postgres', lambda: uriform(pick('postgres', 'postgresql', 'postgresql+asyncpg'), host() + ':5432', '/' + word() + '?sslmode=require')), ('mysql', lambda: uriform(pick('mysql', 'mysql+pymysql', 'mysql2'), host() + ':3306', '/' + word())),
 ('mongodb', lambda: uriform(pick('mongodb+srv', 'mongodb'), 'cluster0.%s.mongodb.net' % rs(5, 'l'), '/?retryWrites=true')), ('redis', lambda: pick('redis://:%s@%s:6379/0', 'rediss://default:%s@%s:6380') % (M(pwu()), host())),
 ('amqp', lambda: uriform(pick('amqp', 'amqps'), host() + ':5672', '/%2f')), ('clickhouse', lambda: uriform('clickhouse', host() + ':9000', '/default')), ('mariadb', lambda: uriform('mariadb', host(), '/shop')), ('mssql-uri', lambda: uriform('mssql+pyodbc', host() + ':1433', '/erp?driver=ODBC+Driver+18')),
 ('cockroach', lambda: uriform('cockroachdb', host() + ':26257', '/bank')), ('neo4j', lambda: uriform('neo4j+s', host() + ':7687')), ('couchdb', lambda: uriform('https', host() + ':6984', '/_all_dbs')), ('elasticsearch', lambda: uriform('https', host() + ':9200', '/logs-*/_search', 'elastic')),
 ('smtp', lambda: uriform('smtps', 'smtp.' + word() + '.com:465')), ('ftp', lambda: uriform(pick('ftp', 'sftp'), host(), '/incoming')), ('ldap', lambda: uriform('ldaps', host() + ':636', '/dc=corp')), ('git-https', lambda: 'git clone https://%s:%s@git.%s.com/%s.git' % (F.user_name(), M(pwu()), word(), ident())),
 ('neon', lambda: 'postgresql://neondb_owner:%s@ep-%s-%s-%s.eu-central-1.aws.neon.tech/neondb?sslmode=require' % (M('npg_' + rs(12, 'a')), word(), word(), rs(8, 'l'))), ('nats', lambda: uriform('nats', host() + ':4222')), ('mqtt', lambda: uriform('mqtts', host() + ':8883', user='sensor%d' % R.randint(1, 99))), ('proxy', lambda: uriform('http', 'proxy.' + word() + '.net:3128')), ('rtsp', lambda: uriform('rtsp', host() + ':554', '/stream1'))]
URIC = ['DATABASE_URL={v}', 'dsn: "{v}"', "engine = create_engine('{v}')", 'url = {v}', '{"connection":"{v}","pool":5}', 'Could not connect to {v}: timeout', 'conn string for the reporting box is {v}', '<Setting Name="Url">{v}</Setting>', 'psql "{v}" -c "select 1"', '* remote: {v}', 'try { await connect("{v}") } catch {}', 'Verbindung: {v}', 'spring.uri={v}', 'target={v} status=down', 'ok - opened {v}', 'backup source {v} (nightly)', 'const client = new Client("{v}")', 'upstream: {v} # primary', 'BROKER={v}', 'the worker listens on {v}']
for s, g in URI: NAT.append((s + '-uri', (lambda g=g: least(URIC, 4).replace('{v}', g())), False, 2))
@nat('mssql-ado', n=3)
def _(): return pick('<add name="Main" connectionString="%s" providerName="System.Data.SqlClient" />', '"DefaultConnection": "%s"', 'ConnString=%s') % ('Server=tcp:%s,1433;Initial Catalog=%s;User ID=%s;Password=%s;Encrypt=True;' % (host(), word(), F.user_name(), M(pw())))
@nat('oracle-jdbc', n=2)
def _(): return 'jdbc:oracle:thin:%s/%s@//%s:1521/ORCLPDB1' % (word(), M(pwu()), host())
@nat('jdbc-mysql', n=2)
def _(): return 'jdbc.url=jdbc:mysql://%s:3306/%s?user=%s&password=%s&useSSL=true' % (host(), word(), word(), M(pwu()))
@nat('kafka-jaas', n=2)
def _(): return 'sasl.mechanism=PLAIN\nsasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="%s" password="%s";' % (rs(16, 'u'), M(rs(64, 'b')))
@nat('netrc', n=3)
def _(): return pick('machine %s\n  login %s\n  password %s\n', 'machine %s login %s password %s') % (host(), F.user_name(), M(pwu()))
@nat('npmrc', n=3)
def _(): return '@%s:registry=https://npm.%s.com/\n//npm.%s.com/:_authToken=%s\nalways-auth=true\n' % (word(), word(), word(), M(pick(crc('npm_'), U())))
@nat('pypirc', n=2)
def _(): return '[distutils]\nindex-servers = internal\n\n[internal]\nrepository = https://%s/simple\nusername = %s\npassword = %s\n' % (host(), F.user_name(), M(pick(pw(), pypi())))
@nat('pip-conf', n=1)
def _(): return '[global]\nindex-url = https://%s:%s@pypi.%s.io/simple/\n' % (F.user_name(), M(pwu()), word())
@nat('kubeconfig-token', n=2)
def _(): return 'apiVersion: v1\nkind: Config\nclusters:\n- cluster: {server: "https://%s:6443"}\n  name: %s\nusers:\n- name: %s\n  user:\n    token: %s\n' % (host(), word(), F.user_name(), M(jw()))
@nat('kubeconfig-key', n=2)
def _(): return 'users:\n- name: kubernetes-admin\n  user:\n    client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM=\n    client-key-data: %s\n' % M(b64(p_rsa() + '\n'))
@nat('docker-config', n=3)
def _(): return '{"auths":{"%s":{"auth":"%s"}}}' % (pick('https://index.docker.io/v1/', 'ghcr.io', 'registry.%s.com' % word()), M(b64(F.user_name() + ':' + pw())))
@nat('tfstate', n=2)
def _(): return J({'version': 4, 'terraform_version': '1.9.%d' % R.randint(0, 8), 'resources': [{'type': 'aws_db_instance', 'name': word(), 'instances': [{'attributes': {'engine': 'postgres', 'username': 'master', 'password': M(pw().replace('"', '')), 'port': 5432}}]}]}, indent=pick(None, 2))
@nat('htpasswd', n=3)
def _(): return '%s:%s\n' % (F.user_name(), M(pick(apr1(), bc(), '{SHA}' + b64(rb(20)))))
@nat('etc-shadow', n=3)
def _(): return 'daemon:*:19700:0:99999:7:::\n%s:%s:%d:0:99999:7:::\nsshd:!:19700::::::\n' % (pick('root', F.user_name()), M(pick(sha512crypt(), yes())), R.randint(18000, 20500))
@nat('pgpass', n=2)
def _(): return '%s:5432:%s:%s:%s\n' % (host(), word(), word(), M(pwu()))
@nat('my-cnf', True, n=2)
def _(): return '[client]\nuser=%s\npassword=%s\nhost=%s\n' % (word(), M(pw().replace('#', 'x')), host())
@nat('basic-auth-header', n=4)
def _(): return pick('GET /v1/orders HTTP/1.1\nHost: %s\nAuthorization: Basic %s\nAccept: */*', 'curl -H "X-H: %s" -H "Authorization: Basic %s"', '{"host":"%s","headers":{"Authorization":"Basic %s"}}', "proxy %s\nProxy-Authorization: Basic %s") % (host(), M(b64(F.user_name() + ':' + pw())))
@nat('bearer-opaque', n=4)
def _(): return pick('POST /graphql HTTP/2\nhost: %s\nauthorization: Bearer %s\n', 'curl https://%s/me -H "Authorization: Bearer %s"', 'fetch("https://%s", {headers: {Authorization: "Bearer %s"}})', '> GET %s\n> Authorization: Bearer %s\n< 200') % (host(), M(t('{36-64:a}')))
@nat('session-cookie', n=4)
def _(): return pick('Set-Cookie: sessionid=%s; HttpOnly; Path=/; Secure', 'Cookie: theme=dark; PHPSESSID=%s; lang=de', 'set-cookie: connect.sid=s%%3A%s; Path=/', 'Cookie: JSESSIONID=%s; _ga=GA1.2.%d') .replace('%d', rs(9, 'd')).replace('%%', '%').replace('%s', M(pick(rs(32, 'l'), rs(32, 'H'), t('{32:w}.{43:a}'))))
@nat('curl-user', n=3)
def _(): return pick('curl -u %s:%s https://%s/api/v2/items', 'wget --user=%s --password=%s https://%s/f.iso', 'http -a %s:%s https://%s/ping') % (F.user_name(), M(pwu()), host())
@nat('sshpass', n=2)
def _(): return 'sshpass -p %s ssh %s@%s uptime' % (M("'" + pw() + "'")[:] if 0 else "'" + M(pw()) + "'", F.user_name(), host())
@nat('mysql-cli', n=2)
def _(): return pick('mysqldump -h %s -u root -p%s %s > d.sql', 'mysql --host=%s --password=%s %s') % (host(), M(rs(16, 'a')), word())
@nat('sudo-pipe', n=1)
def _(): return "echo '%s' | sudo -S systemctl restart %s" % (M(pw()), ident())
@nat('chpasswd', n=1)
def _(): return "echo 'root:%s' | chpasswd" % M(pw())
@nat('unattend-xml', True, n=1)
def _(): return '<AutoLogon><Password><Value>%s</Value><PlainText>true</PlainText></Password><Username>Administrator</Username></AutoLogon>' % M(pwu())
@nat('wpa-psk', n=2)
def _(): return 'network={\n  ssid="%s"\n  key_mgmt=WPA-PSK\n  psk="%s"\n}\n' % (F.last_name() + '-WiFi', M(pwu()))
@nat('wifi-nm', n=1)
def _(): return '[wifi-security]\nkey-mgmt=wpa-psk\npsk=%s\n' % M(pwu())
@nat('wifi-qr', n=1)
def _(): return 'Guest network QR content: WIFI:T:WPA;S:%s;P:%s;;' % (F.last_name(), M(pwu()))
@nat('wireguard-conf', n=3)
def _(): return '[Interface]\nPrivateKey = %s\nAddress = 10.8.0.%d/24\n\n[Peer]\nPublicKey = %s\nPresharedKey = %s\nAllowedIPs = 10.8.0.0/24\n' % (M(b64(rb(32))), R.randint(2, 99), b64(rb(32)), M(b64(rb(32))))
for s, g in [('rsa-pem', p_rsa), ('ec-pem', p_ec), ('pkcs8-pem', p_pkcs8), ('pkcs8-enc', p_enc), ('rsa-enc-pem', p_rsaenc), ('dsa-pem', p_dsa), ('openssh-key', p_ssh), ('pgp-private', p_pgp), ('openvpn-static', p_ovpn)]:
    def _k(g=g):
        v = g()
        return pick('%s\n', '# cat %s\n%%s\n' % F.file_name(extension='pem'), 'tls.key: |\n%s', 'Here is the key for the jump host:\n\n%s\n\nplease chmod 600', 'key = """%s"""\n') % M(v)
    NAT.append((s, _k, False, 3))
@nat('putty-ppk', n=2)
def _():
    return M(p_ppk())
@nat('jwk-private', n=2)
def _(): return '{"keys":[' + jwk() + ']}'
@nat('age-file', n=2)
def _(): return '# created: 2026-02-%02dT10:00:00Z\n# public key: %s\n%s\n' % (R.randint(1, 28), bech('age', rb(32)), M(bech('age-secret-key-', rb(32)).upper()))
@nat('otpauth', n=3)
def _(): return pick('Scan: ', 'qr: "', '') + 'otpauth://totp/%s:%s?secret=%s&issuer=%s&digits=6' % (word(), F.user_name(), M(rs(32, 'T')), word())
@nat('recovery-codes', n=3)
def _():
    k = R.randint(0, 2)
    c = [M([t('{5:h}-{5:h}'), t('{4:l}-{4:l}'), t('{8:d}')][k]) for _ in range(R.choice([5, 8, 10]))]
    return pick('Two-factor backup codes for your account, each can be used once:\n', 'Recovery codes (keep them safe)\n', 'GitHub recovery codes\n') + '\n'.join(c)
@nat('solana-keypair', n=1)
def _(): return '~/.config/solana/id.json\n' + M(str(list(rb(64))).replace(' ', ''))
@nat('bip39-prose', n=2)
def _(): return pick('Wallet recovery phrase (12/24 words): ', 'write down your mnemonic: ', 'ledger backup, seed words:\n') + M(mnemo())
@nat('ldap-bind', True, n=2)
def _(): return 'bind_dn: cn=svc,ou=apps,dc=%s,dc=com\nbind_pw: %s\n' % (word(), M(pw()))
@nat('cisco-secret', n=3)
def _(): return pick('hostname sw%d\nenable secret 5 %s\nservice timestamps\n', 'hostname rt%d\nusername admin privilege 15 secret 9 %s\n') % (R.randint(1, 99), M(pick('$1$' + t('{4:a}') + '$' + rs(22, 'a'), '$9$' + rs(14, 'a') + '$' + rs(43, 'a'))))
@nat('snmp-community', True, n=1)
def _(): return 'snmp-server community %s RW\nsnmp-server location rack %d' % (M(rs(14, 'a')), R.randint(1, 40))
@nat('pwdump', n=2)
def _(): return 'Administrator:500:%s:::\n' % M('aad3b435b51404eeaad3b435b51404ee:' + rs(32, 'h'))
@nat('k8s-secret-b64', n=3)
def _(): return 'apiVersion: v1\nkind: Secret\nmetadata:\n  name: %s\ntype: Opaque\ndata:\n  password: %s\n  username: YWRtaW4=\n' % (ident(), M(b64(pw() + pw())))
@nat('url-token-param', n=3)
def _(): return pick('GET /feed?format=json&access_token=%s HTTP/1.1" 200', 'https://api.' + word() + '.com/v1/items?limit=5&api_key=%s', 'wss://' + host() + '/socket?token=%s', 'Reset link: https://app.' + word() + '.io/password/reset?reset_token=%s') % M(t('{32-48:a}'))
@nat('x-api-key-header', n=3)
def _(): return pick('curl https://%s/v3/usage -H "x-api-key: %s"', 'POST %s\nX-API-Key: %s\nContent-Length: 12', "axios.get('https://%s', {headers: {'X-Api-Key': '%s'}})") % (host(), M(t('{32-44:a}')))
@nat('s3cfg', True, n=1)
def _(): return '[default]\naccess_key = %s\nsecret_key = %s\nhost_base = s3.%s.net\n' % (rs(20, 'u'), M(rs(40, 'a')), word())
@nat('rclone', True, n=1)
def _(): return '[gdrive]\ntype = drive\nclient_id = %s\nclient_secret = %s\ntoken = {"access_token":"%s","expiry":"2026-08-01"}\n' % (rs(12, 'd'), M('GOCSPX-' + rs(28, 'w')), M('ya29.a0' + rs(160, 'w')))
@nat('maven-settings', True, n=2)
def _(): return '<server>\n  <id>nexus</id>\n  <username>%s</username>\n  <password>%s</password>\n</server>' % (F.user_name(), M(pwu()))
@nat('nuget-config', True, n=1)
def _(): return '<packageSourceCredentials><Internal><add key="Username" value="ci" /><add key="ClearTextPassword" value="%s" /></Internal></packageSourceCredentials>' % M(pwu())
@nat('gradle', True, n=1)
def _(): return 'signing.keyId=%s\nsigning.password=%s\nossrhPassword=%s\n' % (rs(8, 'H'), M(pwu()), M(pwu()))
@nat('bundle-config', n=1)
def _(): return 'BUNDLE_GEMS__CONTRIBSYS__COM: "%s"\nBUNDLE_JOBS: "4"' % M(rs(8, 'h') + ':' + rs(8, 'h'))
@nat('composer-auth', True, n=1)
def _(): return '{"http-basic":{"repo.%s.com":{"username":"%s","password":"%s"}}}' % (word(), rs(32, 'h'), M(rs(32, 'h')))
@nat('git-credentials', n=2)
def _(): return 'https://%s:%s@%s\n' % (F.user_name(), M(pick(crc('ghp_'), t('glpat-{20:w}'), pwu())), pick('github.com', 'gitlab.com', host()))
@nat('wp-config', True, n=2)
def _(): return "define( 'DB_NAME', '%s' );\ndefine( 'DB_PASSWORD', '%s' );\ndefine( 'AUTH_KEY', '%s' );\n" % (word(), M(pw().replace("'", '')), M(t('{64:p}')))
@nat('hf-in-url', n=1)
def _(): return 'git remote set-url origin https://%s:%s@huggingface.co/%s/%s' % (F.user_name(), M('hf_' + rs(34, 'A')), F.user_name(), word())
# ------------------------------------------------------------- name-only generic credentials
GEN = [('password', 'password password PASSWORD db_password DB_PASSWORD adminPassword smtp_password userPassword passwd root_password ldap_password'.split(), pw), ('api-key', 'api_key API_KEY apiKey service_api_key x_api_key internalApiKey WEATHER_API_KEY'.split(), lambda: t(pick('{32:h}', '{40:a}', '{36:a}', '{uuid}'))),
 ('secret', 'client_secret CLIENT_SECRET app_secret hmac_secret webhook_secret signingSecret SECRET oauthClientSecret'.split(), lambda: t(pick('{32:a}', '{48:h}', '{40:w}', '{43:b}='))), ('token', 'auth_token ACCESS_TOKEN refreshToken deploy_token BOT_TOKEN csrf_secret internal_token'.split(), lambda: t(pick('{40:a}', '{32:h}', '{64:h}', '{48:w}'))),
 ('passphrase', 'passphrase KEY_PASSPHRASE gpg_passphrase keystore_passphrase'.split(), lambda: ' '.join(F.words(5)).title().replace(' ', '-') + rs(2, 'd')), ('credential', 'credential db_pwd PWD_ADMIN keystorePass truststore_password vault_pass ansible_become_pass'.split(), pw), ('private-key-hex', 'private_key signing_key PRIVATE_KEY masterKey aes_key'.split(), lambda: rs(64, 'h'))]
PWPROSE = '''the wifi password is {v}
Passwort für den Admin-Zugang: {v}
Das Kennwort lautet {v}
mot de passe : {v}
Le mot de passe du serveur est {v}
La contraseña es {v}
contraseña del portal: {v}
la password del database è {v}
A senha do banco é {v}
senha: {v}
Wachtwoord: {v}
lösenord: {v}
Hasło do panelu: {v}
heslo do systému je {v}
Пароль от админки: {v}
пароль: {v}
密码:{v}
管理后台密码是 {v}
パスワード:{v}
パスワードは {v} です
비밀번호: {v}
şifre: {v}
Parola contului este {v}
كلمة المرور: {v}
סיסמה: {v}
Mật khẩu: {v}
kata sandi: {v}
पासवर्ड: {v}
salasana: {v}
adgangskode: {v}
passord: {v}
jelszó: {v}
κωδικός πρόσβασης: {v}
You can log in as admin with password {v}
user: {u} / pass: {v}
login {u}, pw {v}
Temporary password: {v} (change it at first login)
My password is {v}, please reset it for me.
pwd={v}
creds -> {u}:{v} (password for the NAS)'''.split('\n')
def build():
    # 1) typed tokens: 2 rows each (one structured, one prose) and some a third time
    order = PARSED[:]
    R.shuffle(order)
    for k, (n, lab, ids, g, ctx) in enumerate(order):
        e = {'ctx_only': True} if ctx else {}
        a = least(STR, 7)
        add('secret', n, a(R.choice(ids), M(g()), lab), **e)
        if k % 20 < 14:
            if k % 2: p = least(PROSES, 4); inner = prose(p, M(g()), lab)
            else: inner = least(STR, 7)(R.choice(ids), M(g()), lab)
            add('secret', n, inner, **e)
    for n, f, ctx, cnt in NAT:
        for _ in range(cnt): add('secret', n, f(), **({'ctx_only': True} if ctx else {}))
    for n, ids, g in GEN:
        for _ in range(9): add('secret', 'name-' + n, least(STR, 9)(R.choice(ids), M(g().replace('"', '').replace("'", '')), n.replace('-', ' ')), ctx_only=True)
    for p in PWPROSE: add('secret', 'name-password-prose', p.replace('{v}', M(pw())).replace('{u}', F.user_name()), ctx_only=True)
def leaf(n, v, kind='secret'):
    k = R.randint(0, 7); o = {word(): R.randint(1, 99), n: v, 'active': True}
    return dumps([lambda: res({'content': [], 'structuredContent': o}), lambda: res({'structuredContent': {'users': [o, {word(): 1}]}, 'content': [T('ok')]}), lambda: req('tools/call', {'name': pick(*TOOLS), 'arguments': o}), lambda: res({'action': 'accept', 'content': o}),
        lambda: res({'content': [T('ok')], '_meta': o}), lambda: {'jsonrpc': '2.0', 'id': rid(), 'error': {'code': -32602, 'message': 'Invalid params', 'data': o}}, lambda: note('notifications/message', {'level': 'debug', 'data': o}), lambda: res({'content': [T(J(o))]})][k]())
def build_leaf():
    for n, lab, ids, g, ctx in R.sample(PARSED, 40):
        add('secret', n, leaf(pick(camel, snake)(R.choice(ids)), M(g())), False, **({'ctx_only': True} if ctx else {}))
