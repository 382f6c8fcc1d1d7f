import random, re, json, hashlib, base64, gzip, zlib, string, urllib.parse, html, uuid, io, datetime
from collections import Counter
from faker import Faker
R = random.Random(20261121)
Faker.seed(20261121)
F = Faker('en_US')
S, E = '\ue000', '\ue001'
AL = string.ascii_letters + string.digits
CS = {'a': AL, 'h': '0123456789abcdef', 'H': '0123456789ABCDEF', 'u': string.ascii_uppercase + string.digits,
      'l': string.ascii_lowercase + string.digits, 'd': string.digits, 'w': AL + '_-', 'b': AL + '+/', 'A': string.ascii_letters,
      'U': string.ascii_uppercase, 'L': string.ascii_lowercase, '2': 'abcdefghijklmnopqrstuvwxyz234567', 'T': 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
      '9': '123456789', 'p': AL + '!#%*+@^?=~', 'B': '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'}
PAT = re.compile(r'\{(\d+)(?:-(\d+))?:(.)\}')
def rs(n, cs): return ''.join(R.choice(CS[cs]) for _ in range(n))
def t(p):
    def f(m):
        n = int(m[1]) if not m[2] else R.randint(int(m[1]), int(m[2]))
        return rs(n, m[3])
    return PAT.sub(f, p.replace('{uuid}', U()) if '{uuid}' in p else p)
def U(): return str(uuid.UUID(int=R.getrandbits(128), version=4))
def rb(n): return R.randbytes(n)
def b64(b): return base64.b64encode(b if isinstance(b, bytes) else b.encode()).decode()
def b64u(b): return base64.urlsafe_b64encode(b if isinstance(b, bytes) else b.encode()).decode().rstrip('=')
def M(v): return S + str(v) + E
def J(o, **k): return json.dumps(o, ensure_ascii=False, **k)
def pick(*a): return R.choice(a)
def strip(text):
    """remove sentinels, return text, spans"""
    text = re.sub(r'\\u(e000|e001)', lambda m: chr(int(m[1], 16)), text)
    out, spans, n, st = [], [], 0, None
    for c in text:
        if c == S: st = n
        elif c == E:
            spans.append([st, n]); st = None
        else:
            out.append(c); n += 1
    assert st is None
    return ''.join(out), spans
def word(): return F.word()
def ident(): return pick(*'billing-api checkout-svc ledger media-worker orders-v2 geo-cache mailer frontdoor inventory tiler stats-sink exporter booking notifier reports crm-sync edge-proxy labeler harvest pipeline'.split()) + pick('', '-%d' % R.randint(1, 40), '-eu', '-blue')
def host(): return pick('db', 'cache', 'git', 'mq', 'ci', 'api', 'build', 'stage', 'vault', 'ldap') + str(R.randint(1, 30)) + '.' + pick('corp.', 'int.', 'prod.', '') + pick('northwind.net', 'acmefreight.io', 'brightfarm.eu', 'kestrel-labs.dev', 'oakline.org', 'tidewave.co', 'hexagonal.fr', 'mirador.es', 'lindqvist.se', 'nakamura.jp')
def dt():
    return datetime.datetime(R.randint(2023, 2026), R.randint(1, 12), R.randint(1, 28), R.randint(0, 23), R.randint(0, 59), R.randint(0, 59))
def ts(): return dt().strftime(pick('%Y-%m-%dT%H:%M:%SZ', '%Y-%m-%d %H:%M:%S', '%b %d %H:%M:%S', '%d/%b/%Y:%H:%M:%S +0000'))
def pw():
    k = R.randint(0, 6)
    w = lambda: F.word().capitalize()
    return [lambda: t('{14-20:p}'), lambda: w() + pick('!', '#', '$', '%') + rs(4, 'd') + w(), lambda: t('{12-18:a}'), lambda: t('{24-32:a}'),
            lambda: w() + '-' + w() + '-' + rs(3, 'd') + pick('!', '?', '*'), lambda: t('{10-13:a}') + pick('!', '@', '#', '&', '$') + rs(2, 'd'), lambda: t('{5:a}-{5:a}-{5:a}')][k]()
def pwu():  # url safe
    return pick(t('{12-22:a}'), t('{10-16:w}') + rs(2, 'a'), F.word().capitalize() + rs(5, 'd') + rs(3, 'A'))
# ---------------------------------------------------------------- outer MCP shapes
def dumps(o, fancy=True):
    k = R.random()
    if k < .5: return J(o, separators=(',', ':'))
    if k < .75: return J(o)
    if k < .87: return J(o, indent=R.choice([1, 2, 4]))
    return json.dumps(o)
def rid(): return pick(R.randint(1, 9999), R.randint(1, 99), t('req-{8:h}'), U())
def res(r, **k): return {'jsonrpc': '2.0', 'id': rid(), 'result': dict(r, **k)}
def req(m, p): return {'jsonrpc': '2.0', 'id': rid(), 'method': m, 'params': p}
def note(m, p): return {'jsonrpc': '2.0', 'method': m, 'params': p}
def T(x): return {'type': 'text', 'text': x}
def uri(): return pick('file:///home/%s/%s' % (F.user_name(), F.file_name()), 'repo://%s/blob/main/%s' % (ident(), F.file_name()), 'notes://%d' % R.randint(1, 900), 's3://%s/%s' % (ident(), F.file_name()), 'ticket://OPS-%d' % R.randint(10, 9999))
TOOLS = 'read_file|fs_read|get_ticket|search_notes|run_query|fetch_page|list_rows|slack_history|get_mail|exec|kubectl|browser_snapshot|git_show|confluence_page|drive_download|crm_lookup|create_issue|write_file|post_comment|send_message|upsert_record|http_request'.split('|')
def o_content(x): return res({'content': [T(x)]})
def o_content_err(x): return res({'content': [T(x)], 'isError': True})
def o_two(x): return res({'content': [T(pick('Result %d of %d' % (R.randint(1, 4), R.randint(4, 9)), F.sentence(3), 'Found in %s:' % F.file_name(), F.bs(), 'exit status 0', 'Reading ' + F.file_name(), '1 match', 'OK (%d ms)' % R.randint(2, 900))), T(x)], 'isError': False})
def o_resource(x): return res({'contents': [{'uri': uri(), 'mimeType': pick('text/plain', 'text/markdown', 'application/octet-stream', 'text/x-yaml'), 'text': x}]})
def o_embedded(x): return res({'content': [{'type': 'resource', 'resource': {'uri': uri(), 'mimeType': 'text/plain', 'text': x}, 'annotations': {'audience': ['assistant'], 'priority': .6}}]})
def o_struct(x): return res({'content': [], 'structuredContent': {pick('result', 'data', 'page', 'record', 'document'): {'id': R.randint(1, 9e5), pick('body', 'value', 'raw', 'snippet', 'description'): x, 'updated': ts()}}})
def o_structlist(x): return res({'content': [T('%d items' % R.randint(2, 9))], 'structuredContent': {'items': [{'n': 1, 'text': F.sentence(4)}, {'n': 2, 'text': x}, {'n': 3, 'text': F.sentence(3)}]}})
def o_stdout(x): return res({'content': [T(J({'stdout': x, 'stderr': '', 'exit_code': 0}))]})
def o_stderr(x): return res({'content': [T(J({'stdout': '', 'stderr': x, 'code': R.randint(1, 127)}))], 'isError': True})
def o_args(x): return req('tools/call', {'name': pick(*TOOLS), 'arguments': {pick('content', 'body', 'text', 'message', 'input', 'data', 'query'): x}})
def o_write(x): return req('tools/call', {'name': pick('write_file', 'fs_write', 'create_or_update_file'), 'arguments': {'path': '/' + F.file_path(depth=2).strip('/'), 'content': x, 'overwrite': True}})
def o_issue(x): return req('tools/call', {'name': 'create_issue', 'arguments': {'owner': F.user_name(), 'repo': ident(), 'title': F.sentence(4), 'body': x, 'labels': [pick('bug', 'ops', 'help')]}, '_meta': {'progressToken': R.randint(1, 900)}})
def o_prompt(x): return res({'description': F.sentence(3), 'messages': [{'role': 'user', 'content': T(x)}]})
def o_promptargs(x): return req('prompts/get', {'name': pick('summarise', 'triage', 'code_review', 'draft_reply'), 'arguments': {pick('text', 'code', 'context', 'thread'): x}})
def o_error(x): return {'jsonrpc': '2.0', 'id': rid(), 'error': {'code': pick(-32603, -32000, -32602, -32001), 'message': x}}
def o_errdata(x): return {'jsonrpc': '2.0', 'id': rid(), 'error': {'code': -32603, 'message': pick('Internal error', 'upstream failed', 'Query failed', 'handler threw'), 'data': {'detail': x, 'retryable': False}}}
def o_log(x): return note('notifications/message', {'level': pick('info', 'error', 'debug', 'warning'), 'logger': ident(), 'data': x})
def o_logobj(x): return note('notifications/message', {'level': 'debug', 'data': {'msg': x, 'pid': R.randint(100, 60000), 'ts': ts()}})
def o_progress(x): return note('notifications/progress', {'progressToken': t('{6:h}'), 'progress': R.randint(1, 99), 'total': 100, 'message': x})
def o_sample(x): return req('sampling/createMessage', {'messages': [{'role': 'user', 'content': T(x)}], 'maxTokens': R.choice([256, 512, 1000]), 'includeContext': 'none'})
def o_samplesys(x): return req('sampling/createMessage', {'systemPrompt': x, 'messages': [{'role': 'user', 'content': T(F.sentence(5))}], 'maxTokens': 300})
def o_sampleres(x): return res({'role': 'assistant', 'content': T(x), 'model': pick('sonnet', 'gpt-5-mini', 'local-8b'), 'stopReason': 'endTurn'})
def o_elicit(x): return req('elicitation/create', {'message': x, 'requestedSchema': {'type': 'object', 'properties': {'ok': {'type': 'boolean'}}}})
def o_elicitres(x): return res({'action': 'accept', 'content': {pick('comment', 'answer', 'details', 'value'): x}})
def o_meta(x): return res({'content': [T('done')], '_meta': {pick('com.example/trace', 'io.tool/debug', 'x-note'): x}})
def o_link(x): return res({'content': [{'type': 'resource_link', 'uri': uri(), 'name': F.file_name(), 'description': x}]})
def o_reslist(x): return res({'resources': [{'uri': uri(), 'name': F.file_name(), 'description': x, 'size': R.randint(100, 99999)}]})
def o_schema(x): return res({'tools': [{'name': pick(*TOOLS), 'description': F.sentence(6), 'inputSchema': {'type': 'object', 'properties': {'q': {'type': 'string', pick('description', 'default', 'title'): x}}}}]})
def o_tooldesc(x): return res({'tools': [{'name': pick(*TOOLS), 'description': x, 'inputSchema': {'type': 'object', 'properties': {pick('id', 'path', 'city'): {'type': 'string'}}, 'required': []}}]})
def o_complete(x): return req('completion/complete', {'ref': {'type': 'ref/prompt', 'name': 'draft'}, 'argument': {'name': 'seed', 'value': x}})
def o_completeres(x): return res({'completion': {'values': [F.word(), x], 'total': 2, 'hasMore': False}})
def o_init(x): return res({'protocolVersion': pick('2025-06-18', '2025-03-26', '2025-11-25'), 'capabilities': {'tools': {}}, 'serverInfo': {'name': ident(), 'version': '1.%d.0' % R.randint(0, 9)}, 'instructions': x})
def o_task(x): return note('notifications/tasks/status', {'taskId': U(), 'status': pick('failed', 'working', 'completed'), 'statusMessage': x})
def o_batch(x): return [res({'content': [T('pong')]}), res({'content': [T(x)]})]
def o_promptlist(x): return res({'prompts': [{'name': word(), 'description': x, 'arguments': []}]})
def o_nested(x): return res({'content': [T(J({'ok': True, 'rows': [{'id': R.randint(1, 99), 'payload': J({'note': x})}]}))]})
def o_cancel(x): return note('notifications/cancelled', {'requestId': R.randint(1, 900), 'reason': x})
def o_chat(x): return res({'content': [T(J([{'user': F.user_name(), 'ts': '%d.%06d' % (R.randint(17e8, 18e8), R.randint(0, 999999)), 'text': pick('hi', 'anyone here?', 'morning all', '+1', 'brb')}, {'user': F.user_name(), 'ts': '%d.%06d' % (R.randint(17e8, 18e8), R.randint(0, 999999)), 'text': x}]))]})
DATA = [o_content, o_content, o_two, o_resource, o_embedded, o_struct, o_structlist, o_stdout, o_args, o_write, o_issue, o_prompt, o_promptargs, o_errdata, o_log, o_logobj, o_sample, o_sampleres, o_elicitres, o_meta, o_nested, o_batch, o_chat, o_content_err, o_stderr, o_complete, o_link, o_reslist, o_error, o_progress, o_task, o_samplesys, o_schema, o_elicit]
INJ = [o_content, o_two, o_resource, o_embedded, o_struct, o_structlist, o_prompt, o_error, o_errdata, o_log, o_progress, o_sample, o_elicit, o_meta, o_link, o_reslist, o_schema, o_completeres, o_init, o_task, o_batch, o_promptlist, o_nested, o_chat, o_stdout, o_samplesys, o_issue]
def sse(j): return pick('event: message\n', 'id: %d\nevent: message\n' % R.randint(1, 99)) + 'data: ' + j + '\n\n'
OUT = Counter()
def wrap(x, kind, plain=.33, only=None, no_u=False):
    if only is None and R.random() < plain:
        OUT['plain'] += 1
        return x
    fs = only or (INJ if kind == 'injection' else DATA)
    f = min(R.sample(fs, min(5, len(fs))), key=lambda f: OUT[kind + f.__name__])
    OUT[kind + f.__name__] += 1
    o = f(x)
    if R.random() < .06: return sse(J(o))
    return J(o) if no_u else dumps(o)
ROWS = []
N = Counter()
EMBED = None
def add(kind, subtype, inner, outer=None, **extra):
    """inner: text with sentinels. outer: False = as is"""
    inner = inner if isinstance(inner, str) else inner()
    if outer is False: raw = inner
    else:
        x = inner
        if EMBED and kind != 'benign' and outer is None and not extra.get('evasion') and R.random() < .08:
            x = EMBED(inner); extra['long'] = True
        raw = wrap(x, kind, only=outer)
    text, spans = strip(raw)
    N[kind] += 1
    row = {'id': 'E-%s-%04d' % (kind[:3], N[kind]), 'source': 'indep', 'via': 'own', 'kind': kind, 'subtype': subtype, 'text': text}
    if kind != 'benign':
        assert spans, (subtype, text[:200])
        row['spans'] = spans
    else: assert not spans
    row.update({k: v for k, v in extra.items() if not k.startswith('_')})
    row['_inner'] = inner
    ROWS.append(row)
    return row
USE = Counter()
def least(pool, cap=4, key=None, n=6):
    """pick a carrier used least; refuse above cap"""
    c = [p for p in pool if USE[p if isinstance(p, str) else p.__name__] < cap]
    if not c: raise SystemExit('carriers exhausted: ' + str(pool[0])[:60])
    m = min(USE[p if isinstance(p, str) else p.__name__] for p in c)
    p = R.choice([x for x in c if USE[x if isinstance(x, str) else x.__name__] <= m + 1])
    USE[p if isinstance(p, str) else p.__name__] += 1
    return p
