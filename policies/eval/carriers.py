"""What a value stands in. Each carrier takes (rng, name, value) and gives the text; `named` ones show the name."""
import json, textwrap

WORDS = ('release pipeline moved customer report schema invoice cluster memory timeout branch window queue latency cache vendor '
         'review page index driver region backup ticket kernel export batch signal folder').split()


def prose(rng, n=8):
    return ' '.join(rng.choice(WORDS) for _ in range(n))


def camel(name):
    parts = name.replace('-', '_').split('_')
    return parts[0].lower() + ''.join(p.capitalize() for p in parts[1:])


def _js(v):
    return json.dumps(v, ensure_ascii=False)


NAMED = {
    'env': lambda r, n, v: f'PORT=8080\n{n.upper()}={v}\nLOG_LEVEL=info\n',
    'env-export': lambda r, n, v: f"export {n.upper()}='{v}'\nmake deploy\n",
    'json': lambda r, n, v: json.dumps({'region': 'eu-central-1', n.lower(): v, 'retries': 3}, ensure_ascii=False),
    'json-camel-pretty': lambda r, n, v: json.dumps({'service': {'name': r.choice(WORDS), camel(n): v}, 'enabled': True}, indent=2, ensure_ascii=False),
    'json-in-text': lambda r, n, v: f'Tool returned {json.dumps({n: v}, ensure_ascii=False)} in 12 ms',
    'yaml': lambda r, n, v: f'app:\n  name: {r.choice(WORDS)}\n  {n.lower()}: "{v}"\n  replicas: 2\n',
    'yaml-bare': lambda r, n, v: f'- {n.lower()}: {v}\n  note: {prose(r, 3)}\n',
    'k8s-env': lambda r, n, v: f'env:\n  - name: {n.upper()}\n    value: "{v}"\n  - name: TZ\n    value: UTC\n',
    'compose': lambda r, n, v: f'services:\n  web:\n    environment:\n      - {n.upper()}={v}\n      - MODE=prod\n',
    'toml': lambda r, n, v: f'[upstream]\n{n.lower()} = "{v}"\ntimeout = 30\n',
    'ini': lambda r, n, v: f'; settings\n[main]\n{n.lower()} = {v}\nverbose = no\n',
    'properties': lambda r, n, v: f'app.{n.lower().replace("_", ".")}={v}\napp.title=Desk\n',
    'tf': lambda r, n, v: f'variable "{n.lower()}" {{\n  type    = string\n  default = "{v}"\n}}\n',
    'py': lambda r, n, v: f'import os\n\n{n.upper()} = "{v}"\nclient = Client({n.upper()})\n',
    'py-kwarg': lambda r, n, v: f'client = connect(host="h", {n.lower()}="{v}", timeout=5)\n',
    'py-dict': lambda r, n, v: f"settings['{n}'] = '{v}'\n",
    'js': lambda r, n, v: f"const {camel(n)} = '{v}';\nmodule.exports = {{ {camel(n)} }};\n",
    'js-min': lambda r, n, v: f'!function(e){{var t={{{camel(n)}:"{v}",a:1}};e.x=t}}(window);',
    'go': lambda r, n, v: f'const {camel(n)} = "{v}"\n\nfunc main() {{ run({camel(n)}) }}\n',
    'java': lambda r, n, v: f'private static final String {n.upper()} = "{v}";\n',
    'cs': lambda r, n, v: f'public string {camel(n).capitalize()} {{ get; set; }} = "{v}";\n',
    'php': lambda r, n, v: f"'{n.lower()}' => env('{n.upper()}', '{v}'),\n",
    'ruby': lambda r, n, v: f"config.{n.lower()} = '{v}'\n",
    'rust': lambda r, n, v: f'const {n.upper()}: &str = "{v}";\n',
    'xml': lambda r, n, v: f'<config><mode>live</mode><{camel(n)}>{v}</{camel(n)}></config>',
    'xml-attr': lambda r, n, v: f'<setting name="{n}" value="{v}" />',
    'table': lambda r, n, v: f'| setting | value |\n|---|---|\n| {n} | {v} |\n| mode | live |\n',
    'csv': lambda r, n, v: f'id,owner,{n.lower()},active\n17,ops,{v},true\n',
    'cli-flag': lambda r, n, v: f'deployctl push --{n.lower().replace("_", "-")} {v} --wait\n',
    'cli-flag-eq': lambda r, n, v: f'$ runner --{n.lower().replace("_", "-")}={v} --dry-run\n',
    'log': lambda r, n, v: f'2026-03-0{r.randrange(1, 9)}T10:12:33.120Z DEBUG cfg loaded {n.lower()}={v} mode=live\n',
    'log-json': lambda r, n, v: json.dumps({'ts': 1770000000 + r.randrange(9999), 'level': 'debug', 'msg': 'cfg', 'ctx': {n.lower(): v}}, ensure_ascii=False),
    'diff': lambda r, n, v: f'@@ -3,2 +3,2 @@\n-{n.upper()}=\n+{n.upper()}={v}\n MODE=live\n',
    'dockerfile': lambda r, n, v: f'FROM alpine\nENV {n.upper()}={v}\nRUN make\n',
    'gha': lambda r, n, v: f'    env:\n      {n.upper()}: {v}\n    steps:\n      - run: make\n',
    'chat': lambda r, n, v: f'hey, the {n.lower().replace("_", " ")} is {v} please keep it to yourself',
    'header-line': lambda r, n, v: f'POST /v1/run HTTP/1.1\nHost: api.acme.test\nX-{n.replace("_", "-").title()}: {v}\nAccept: */*\n',
    'trace': lambda r, n, v: f'Traceback (most recent call last):\n  File "app.py", line 9, in run\nValueError: rejected ({n.lower()}={v!r})\n',
    'sql': lambda r, n, v: f"INSERT INTO settings (name, value) VALUES ('{n.lower()}', '{v}');\n",
    'ps1': lambda r, n, v: f'$env:{n.upper()} = "{v}"\nInvoke-Build\n',
    'ipynb': lambda r, n, v: json.dumps({'cells': [{'cell_type': 'code', 'source': [f'{n.lower()} = "{v}"\n', 'run()\n']}]}, ensure_ascii=False),
    'nested-json': lambda r, n, v: json.dumps({'content': [{'type': 'text', 'text': json.dumps({'data': {n.lower(): v}}, ensure_ascii=False)}]}, ensure_ascii=False),
    'kv-list': lambda r, n, v: json.dumps([{'key': n, 'value': v}, {'key': 'mode', 'value': 'live'}], ensure_ascii=False),
}
BARE = {
    'sentence': lambda r, n, v: f'Please try {v} and tell me what comes back.',
    'line': lambda r, n, v: f'{prose(r)}\n{v}\n{prose(r)}\n',
    'only': lambda r, n, v: v,
    'bullet': lambda r, n, v: f'* {prose(r, 3)}\n* {v}\n',
    'json-text': lambda r, n, v: json.dumps({'content': [{'type': 'text', 'text': f'{prose(r, 4)}: {v}'}]}, ensure_ascii=False),
    'html': lambda r, n, v: f'<p>{prose(r, 4)}</p><code>{v}</code>',
    'markdown': lambda r, n, v: f'## {prose(r, 2)}\n\n```\n{v}\n```\n',
    'args': lambda r, n, v: json.dumps({'method': 'tools/call', 'params': {'name': 'note', 'arguments': {'body': f'see {v}'}}}, ensure_ascii=False),
    'comment': lambda r, n, v: f'// TODO {prose(r, 3)}\n// {v}\nrun();\n',
    'array': lambda r, n, v: json.dumps([prose(r, 2), v, prose(r, 2)], ensure_ascii=False),
    'mail': lambda r, n, v: f'Subject: {prose(r, 3)}\n\nHi,\n\n{v}\n\nThanks\n',
    'two-column': lambda r, n, v: f'{r.choice(WORDS)}\t{v}\n{r.choice(WORDS)}\t42\n',
}
# A file's own form keeps its lines.
WHOLE = {
    'only': BARE['only'], 'line': BARE['line'], 'markdown': BARE['markdown'], 'mail': BARE['mail'],
    'file-result': lambda r, n, v: json.dumps({'content': [{'type': 'text', 'text': v}], 'isError': False}, ensure_ascii=False),
    'indented': lambda r, n, v: f'# {prose(r, 2)}\n' + textwrap.indent(v, '    ') + '\n',
}
