from core import *
import base58, jwt, bcrypt, struct, hmac
from cryptography.hazmat.primitives.asymmetric import rsa, ec, ed25519, dsa
from cryptography.hazmat.primitives import serialization as ser
# --- checksummed makers
B62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
def b62(n, k=6):
    s = ''
    while n: s = B62[n % 62] + s; n //= 62
    return s.rjust(k, '0')
def crc(prefix):
    p = rs(30, 'a'); return prefix + p + b62(zlib.crc32(p.encode()))
def pypi(dom='pypi.org'):
    loc = dom.encode(); c = R.choice([b'{"version": 1, "permissions": "user"}', b'[1, ["%s"]]' % ident().encode()])
    m = b'\x02\x01' + bytes([len(loc)]) + loc + b'\x02\x24' + U().encode() + b'\x00\x02' + bytes([len(c)]) + c + b'\x00\x00\x06\x20' + rb(32)
    return 'pypi-' + b64u(m)
def b58c(b): return base58.b58encode_check(b).decode()
def wif(): return b58c(b'\x80' + rb(32) + b'\x01')
def xprv(): return b58c(bytes.fromhex('0488ADE4') + bytes([R.randint(1, 4)]) + rb(4) + R.randint(0, 2**31).to_bytes(4, 'big') + rb(32) + b'\x00' + rb(32))
CH = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
def bech(hrp, data):
    acc = bits = 0; d = []
    for b in data:
        acc = (acc << 8) | b; bits += 8
        while bits >= 5: bits -= 5; d.append((acc >> bits) & 31)
    if bits: d.append((acc << (5 - bits)) & 31)
    def poly(v):
        c = 1
        for x in v:
            tp = c >> 25; c = (c & 0x1ffffff) << 5 ^ x
            for i, g in enumerate([0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]):
                if tp >> i & 1: c ^= g
        return c
    v = [ord(x) >> 5 for x in hrp] + [0] + [ord(x) & 31 for x in hrp]
    p = poly(v + d + [0] * 6) ^ 1
    return hrp + '1' + ''.join(CH[x] for x in d + [(p >> 5 * (5 - i)) & 31 for i in range(6)])
def crc16x(b):
    c = 0
    for x in b:
        c ^= x << 8
        for _ in range(8): c = (c << 1) ^ 0x1021 if c & 0x8000 else c << 1
        c &= 0xffff
    return c
def stellar():
    p = bytes([18 << 3]) + rb(32); return base64.b32encode(p + struct.pack('<H', crc16x(p))).decode()
def mnemo():
    from mnemonic import Mnemonic
    return Mnemonic(pick('english', 'english', 'english', 'spanish')).to_mnemonic(rb(pick(16, 16, 32)))
def jw():
    c = {'sub': U(), 'iss': 'https://' + host(), 'iat': R.randint(17e8, 179e7), 'exp': R.randint(18e8, 19e8), 'scope': pick('admin', 'read write', 'openid profile'), 'name': F.first_name()}
    if R.random() < .3:
        h, p = b64u(J({'alg': 'RS256', 'typ': 'JWT', 'kid': rs(8, 'h')})), b64u(J(c)); return h + '.' + p + '.' + b64u(rb(256))
    return jwt.encode(c, rb(32), algorithm=pick('HS256', 'HS512') if 0 else 'HS256')
def jwt_n8n(**c): return jwt.encode(c, rb(40), algorithm='HS256')
# keys: generated once with os randomness is not deterministic -> build from our RNG
def _prime(bits):
    while True:
        n = R.getrandbits(bits) | 1 | (3 << (bits - 2))
        if all(n % q for q in (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)) and pow(2, n - 1, n) == 1 and (n - 1) % 65537: return n
def rsakey(bits=1024):
    p, q = _prime(bits // 2), _prime(bits // 2); d = pow(65537, -1, (p - 1) * (q - 1))
    return rsa.RSAPrivateNumbers(p, q, d, rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q), rsa.RSAPublicNumbers(65537, p * q)).private_key()
def eckey(): return ec.derive_private_key(R.getrandbits(250) + 1, ec.SECP256R1())
def edkey(): return ed25519.Ed25519PrivateKey.from_private_bytes(rb(32))
PF = ser.PrivateFormat
def pem(k, f, e=None): return k.private_bytes(ser.Encoding.PEM, f, e or ser.NoEncryption()).decode().strip()
def p_rsa(): return pem(rsakey(pick(1024, 1536)), PF.TraditionalOpenSSL)
def p_ec(): return pem(eckey(), PF.TraditionalOpenSSL)
def p_pkcs8(): return pem(R.choice([eckey(), rsakey(), edkey()]), PF.PKCS8)
def wrap64(b, n=64): s = b64(b); return '\n'.join(s[i:i + n] for i in range(0, len(s), n))
def p_enc(): return '-----BEGIN ENCRYPTED PRIVATE KEY-----\n' + wrap64(bytes.fromhex('308201') + rb(1) + bytes.fromhex('306006092a864886f70d01050d3053') + rb(330)) + '\n-----END ENCRYPTED PRIVATE KEY-----'
def p_rsaenc(): return '-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,' + rs(32, 'H') + '\n\n' + wrap64(rb(608)) + '\n-----END RSA PRIVATE KEY-----'
def p_dsa(): return '-----BEGIN DSA PRIVATE KEY-----\n' + wrap64(bytes.fromhex('308201bb02010002818100') + rb(437)) + '\n-----END DSA PRIVATE KEY-----'
def sstr(b): return struct.pack('>I', len(b)) + b
def p_ssh():
    pub, sk = None, edkey(); pb = sk.public_key().public_bytes_raw(); blob = sstr(b'ssh-ed25519') + sstr(pb); ck = rb(4)
    priv = ck + ck + blob + sstr(sk.private_bytes_raw() + pb) + sstr((F.user_name() + '@' + F.word()).encode())
    i = 1
    while len(priv) % 8: priv += bytes([i]); i += 1
    return '-----BEGIN OPENSSH PRIVATE KEY-----\n' + wrap64(b'openssh-key-v1\0' + sstr(b'none') + sstr(b'none') + sstr(b'') + struct.pack('>I', 1) + sstr(blob) + sstr(priv), 70) + '\n-----END OPENSSH PRIVATE KEY-----'
def crc24(b):
    c = 0xB704CE
    for x in b:
        c ^= x << 16
        for _ in range(8):
            c <<= 1
            if c & 0x1000000: c ^= 0x1864CFB
    return (c & 0xffffff).to_bytes(3, 'big')
def p_pgp():
    b = b'\x94\x58\x04' + rb(90) + b'\xb4\x1e' + rb(220)
    return '-----BEGIN PGP PRIVATE KEY BLOCK-----\n' + pick('', 'Comment: ' + F.name() + '\n') + '\n' + wrap64(b) + '\n=' + b64(crc24(b)) + '\n-----END PGP PRIVATE KEY BLOCK-----'
def p_ppk():
    pb = sstr(b'ssh-ed25519') + sstr(rb(32))
    return 'PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: eddsa-key-2025%02d%02d\nPublic-Lines: 2\n%s\nPrivate-Lines: 1\n%s\nPrivate-MAC: %s' % (R.randint(1, 12), R.randint(1, 28), wrap64(pb), b64(sstr(rb(32))), rs(64, 'h'))
def p_ovpn(): return '-----BEGIN OpenVPN Static key V1-----\n' + '\n'.join(rs(32, 'h') for _ in range(16)) + '\n-----END OpenVPN Static key V1-----'
def jwk():
    return J({'kty': 'EC', 'crv': 'P-256', 'kid': rs(8, 'h'), 'x': b64u(rb(32)), 'y': b64u(rb(32)), 'd': '@@'}).replace('@@', M(b64u(rb(32))))
def luks(): return '-'.join(rs(6, 'd') for _ in range(8))
def bitlocker(): return '-'.join('%06d' % (R.randint(1000, 65535) * 11) for _ in range(8))
def filevault(): return '-'.join(rs(4, 'u') for _ in range(6))
def totp(): return rs(pick(16, 32), 'T')
def sha512crypt(): return '$6$' + t('{12:a}') + '$' + ''.join(R.choice('./' + AL) for _ in range(86))
def yes(): return '$y$j9T$' + ''.join(R.choice('./' + AL) for _ in range(22)) + '$' + ''.join(R.choice('./' + AL) for _ in range(43))
def bc(): return '$2%s$%s$' % (pick('b', 'y', 'a'), pick('10', '12', '05')) + ''.join(R.choice('./' + AL) for _ in range(53))
def apr1(): return '$apr1$' + t('{8:a}') + '$' + ''.join(R.choice('./' + AL) for _ in range(22))
def argon(): return '$argon2id$v=19$m=65536,t=3,p=4$' + b64(rb(16)).rstrip('=') + '$' + b64(rb(32)).rstrip('=')
def JC(o): return J(o, separators=(",", ":"))
def slackbot(): return t('xoxb-{12:d}-{13:d}-{24:a}')
def discord():
    return b64u(str(R.randint(10**17, 13 * 10**17))) + '.' + t('G{5:w}') + '.' + t('{38:w}')
def sntrys(): return 'sntrys_' + b64(JC({'iat': R.randint(17e8, 18e8) + .5, 'url': 'https://sentry.io', 'region_url': 'https://us.sentry.io', 'org': word()})).rstrip('=') + '_' + t('{43:b}')
def glc(): return 'glc_' + b64(JC({'o': str(R.randint(10000, 999999)), 'n': ident(), 'k': rs(24, 'a'), 'm': {'r': 'prod-eu-west-2'}}))
def cftunnel(): return b64(JC({'a': rs(32, 'h'), 't': U(), 's': b64(rb(32))}))
def mapbox(): return 'sk.' + b64u(JC({'u': F.user_name(), 'a': 'cl' + rs(23, 'l')})) + '.' + rs(22, 'w')
def grafleg(): return b64(JC({'k': rs(32, 'a'), 'n': word(), 'id': 1}))
# name | label | identifiers | pattern or function name | flags (c = ctx only)
TYPES = '''
aws-secret-key|AWS secret access key|AWS_SECRET_ACCESS_KEY,aws_secret_access_key,awsSecretKey|{40:b}|c
aws-session-token|AWS session token|AWS_SESSION_TOKEN,aws_session_token|IQoJb3JpZ2luX2Vj{320-500:b}|
gcp-api-key|Google Maps API key|GOOGLE_API_KEY,MAPS_KEY,googleApiKey|AIza{35:w}|
google-oauth-secret|Google OAuth client secret|GOOGLE_CLIENT_SECRET,client_secret|GOCSPX-{28:w}|
google-access-token|Google access token|access_token,GOOGLE_TOKEN|ya29.a0A{150-190:w}|
google-refresh-token|Google refresh token|refresh_token,GOOGLE_REFRESH_TOKEN|1//0{2:w}{98:w}|
azure-client-secret|Azure app registration secret|AZURE_CLIENT_SECRET,clientSecret|{3:a}8Q~{34:w}|
azure-devops-pat|Azure DevOps PAT|AZURE_DEVOPS_EXT_PAT,SYSTEM_ACCESSTOKEN|{76:a}AZDO{4:a}|
azure-storage-key|Azure storage account key|AZURE_STORAGE_KEY,storageAccountKey|@azkey|
azure-openai-key|Azure OpenAI key|AZURE_OPENAI_API_KEY,azureOpenAiKey|{32:h}|c
azure-function-key|Azure Functions host key|AZURE_FUNCTION_KEY,x-functions-key|{44:w}AzFu{5:w}Q==|
digitalocean-pat|DigitalOcean token|DIGITALOCEAN_ACCESS_TOKEN,do_token|dop_v1_{64:h}|
digitalocean-oauth|DigitalOcean OAuth token|DO_OAUTH_TOKEN|doo_v1_{64:h}|
digitalocean-refresh|DigitalOcean refresh token|DO_REFRESH|dor_v1_{64:h}|
alibaba-secret|Alibaba Cloud access key secret|ALICLOUD_SECRET_KEY,accessKeySecret|{30:a}|c
tencent-secret|Tencent Cloud SecretKey|TENCENTCLOUD_SECRET_KEY,secretKey|{32:a}|c
ibm-cloud-key|IBM Cloud API key|IBMCLOUD_API_KEY,ibm_api_key|{44:w}|c
yandex-api-key|Yandex Cloud API key|YC_API_KEY,yandex_api_key|AQVN{36:w}|
hetzner-token|Hetzner Cloud token|HCLOUD_TOKEN,hetzner_api_token|{64:a}|c
linode-token|Linode token|LINODE_TOKEN,linode_api_key|{64:h}|c
scaleway-secret|Scaleway secret key|SCW_SECRET_KEY,scaleway_secret|{uuid}|c
cloudflare-token|Cloudflare API token|CLOUDFLARE_API_TOKEN,CF_API_TOKEN|{40:w}|c
cloudflare-global|Cloudflare global API key|CLOUDFLARE_API_KEY,X-Auth-Key|{37:h}|c
cloudflare-origin-ca|Cloudflare origin CA key|CF_ORIGIN_CA_KEY|v1.0-{24:h}-{146:h}|
heroku-key|Heroku API key|HEROKU_API_KEY,heroku_token|HRKU-AA{58:w}|
heroku-legacy|Heroku API key|HEROKU_API_KEY|{uuid}|c
fly-token|Fly.io deploy token|FLY_API_TOKEN|FlyV1 fm2_{180-240:b}|
netlify-token|Netlify access token|NETLIFY_AUTH_TOKEN|nfp_{36:a}|
vercel-token|Vercel token|VERCEL_TOKEN|{24:a}|c
supabase-pat|Supabase access token|SUPABASE_ACCESS_TOKEN|sbp_{40:h}|
supabase-secret|Supabase secret key|SUPABASE_SECRET_KEY|sb_secret_{22:w}_{8:w}|
planetscale-token|PlanetScale service token|PLANETSCALE_SERVICE_TOKEN|pscale_tkn_{43:w}|
planetscale-password|PlanetScale password|PSCALE_PASSWORD,DATABASE_PASSWORD|pscale_pw_{43:w}|
databricks-token|Databricks token|DATABRICKS_TOKEN,databricks_pat|dapi{32:h}|
doppler-token|Doppler token|DOPPLER_TOKEN|dp.pt.{43:a}|
doppler-service|Doppler service token|DOPPLER_TOKEN|dp.st.prd.{43:a}|
vault-service|Vault token|VAULT_TOKEN,vaultToken|hvs.{92:w}|
vault-legacy|Vault token|VAULT_TOKEN|s.{24:a}|c
vault-batch|Vault batch token|VAULT_TOKEN|hvb.{140-180:w}|
terraform-cloud|Terraform Cloud token|TFE_TOKEN,TF_API_TOKEN|{14:a}.atlasv1.{67:w}|
pulumi-token|Pulumi access token|PULUMI_ACCESS_TOKEN|pul-{40:h}|
onepassword-secret-key|1Password secret key|OP_SECRET_KEY|@a3|
bitwarden-machine|Bitwarden Secrets Manager access token|BWS_ACCESS_TOKEN|@bws|
openai-legacy|OpenAI key|OPENAI_API_KEY,openai_key|sk-{20:a}T3BlbkFJ{20:a}|
openai-project|OpenAI project key|OPENAI_API_KEY,openaiApiKey|sk-proj-{74:w}T3BlbkFJ{74:w}|
openai-svcacct|OpenAI service account key|OPENAI_KEY|sk-svcacct-{74:w}T3BlbkFJ{74:w}|
openai-admin|OpenAI admin key|OPENAI_ADMIN_KEY|sk-admin-{74:w}T3BlbkFJ{74:w}|
anthropic-api|Anthropic key|ANTHROPIC_API_KEY,claude_api_key|sk-ant-api03-{93:w}AA|
anthropic-admin|Anthropic admin key|ANTHROPIC_ADMIN_KEY|sk-ant-admin01-{93:w}AA|
anthropic-oauth|Claude Code OAuth token|CLAUDE_CODE_OAUTH_TOKEN|sk-ant-oat01-{93:w}AA|
huggingface|Hugging Face token|HF_TOKEN,HUGGINGFACE_HUB_TOKEN|hf_{34:A}|
replicate|Replicate token|REPLICATE_API_TOKEN|r8_{37:a}|
groq|Groq key|GROQ_API_KEY|gsk_{52:a}|
xai|xAI key|XAI_API_KEY|xai-{80:a}|
perplexity|Perplexity key|PPLX_API_KEY|pplx-{48:a}|
mistral|Mistral API key|MISTRAL_API_KEY|{32:a}|c
cohere|Cohere API key|COHERE_API_KEY,CO_API_KEY|{40:a}|c
deepseek|DeepSeek API key|DEEPSEEK_API_KEY|sk-{32:h}|
openrouter|OpenRouter key|OPENROUTER_API_KEY|sk-or-v1-{64:h}|
elevenlabs|ElevenLabs key|ELEVENLABS_API_KEY,XI_API_KEY|sk_{48:h}|
nvidia|NVIDIA NIM key|NVIDIA_API_KEY|nvapi-{64:w}|
langsmith|LangSmith key|LANGSMITH_API_KEY,LANGCHAIN_API_KEY|lsv2_pt_{32:h}_{10:h}|
langfuse|Langfuse secret key|LANGFUSE_SECRET_KEY|sk-lf-{uuid}|
wandb|Weights & Biases key|WANDB_API_KEY|{40:h}|c
assemblyai|AssemblyAI key|ASSEMBLYAI_API_KEY|{32:h}|c
deepgram|Deepgram key|DEEPGRAM_API_KEY|{40:h}|c
voyage|Voyage AI key|VOYAGE_API_KEY|pa-{43:w}|
jina|Jina key|JINA_API_KEY|jina_{32:h}{28:w}|
tavily|Tavily key|TAVILY_API_KEY|tvly-dev-{32:a}|
firecrawl|Firecrawl key|FIRECRAWL_API_KEY|fc-{32:h}|
e2b|E2B key|E2B_API_KEY|e2b_{40:h}|
apify|Apify token|APIFY_TOKEN|apify_api_{36:a}|
brave-search|Brave Search key|BRAVE_API_KEY|BSA{28:w}|
github-pat|GitHub token|GITHUB_TOKEN,GH_TOKEN,github_pat|@ghp|
github-oauth|GitHub OAuth token|GH_OAUTH,oauth_token|@gho|
github-server|GitHub app installation token|GITHUB_TOKEN|@ghs|
github-refresh|GitHub refresh token|GH_REFRESH_TOKEN|@ghr|
github-fine|GitHub fine-grained token|GITHUB_TOKEN,GH_PAT|github_pat_{22:a}_{59:a}|
gitlab-pat|GitLab token|GITLAB_TOKEN,CI_GITLAB_PAT|glpat-{20:w}|
gitlab-trigger|GitLab trigger token|TRIGGER_TOKEN|glptt-{40:h}|
gitlab-runner|GitLab runner token|RUNNER_TOKEN,CI_SERVER_TOKEN|glrt-{20:w}|
gitlab-deploy|GitLab deploy token|CI_DEPLOY_PASSWORD|gldt-{20:w}|
gitlab-agent|GitLab agent token|KAS_AGENT_TOKEN|glagent-{50:w}|
bitbucket-app|Bitbucket app password|BITBUCKET_APP_PASSWORD|ATBB{32:a}|
atlassian-api|Atlassian API token|JIRA_API_TOKEN,ATLASSIAN_TOKEN|ATATT3xFfGF0{170:w}={8:H}|
sourcegraph|Sourcegraph token|SRC_ACCESS_TOKEN|sgp_{16:h}_{40:h}|
gitea|Gitea token|GITEA_TOKEN|{40:h}|c
circleci|CircleCI token|CIRCLECI_TOKEN,CIRCLE_TOKEN|CCIPAT_{22:B}_{40:h}|
buildkite|Buildkite user token|BUILDKITE_API_TOKEN|bkua_{40:h}|
jenkins|Jenkins API token|JENKINS_API_TOKEN,JENKINS_TOKEN|11{32:h}|c
codecov|Codecov upload token|CODECOV_TOKEN|{uuid}|c
sonar-user|SonarQube token|SONAR_TOKEN|squ_{40:h}|
sonar-project|SonarQube project token|SONAR_TOKEN|sqp_{40:h}|
snyk|Snyk token|SNYK_TOKEN|{uuid}|c
jfrog-key|JFrog API key|ARTIFACTORY_API_KEY,JFROG_KEY|AKCp{69:a}|
dockerhub-pat|Docker Hub token|DOCKERHUB_TOKEN,DOCKER_PASSWORD|dckr_pat_{27:w}|
npm-token|npm token|NPM_TOKEN,NODE_AUTH_TOKEN|@npm|
pypi-token|PyPI token|PYPI_TOKEN,TWINE_PASSWORD|@pypi|
testpypi-token|TestPyPI token|TEST_PYPI_TOKEN|@tpypi|
rubygems|RubyGems key|GEM_HOST_API_KEY|rubygems_{48:h}|
crates-io|crates.io token|CARGO_REGISTRY_TOKEN|cio{32:a}|
nuget|NuGet key|NUGET_API_KEY|oy2{43:l}|
clojars|Clojars deploy token|CLOJARS_PASSWORD|CLOJARS_{60:h}|
launchdarkly|LaunchDarkly SDK key|LAUNCHDARKLY_SDK_KEY,LD_SDK_KEY|sdk-{uuid}|
harness|Harness token|HARNESS_API_KEY|pat.{22:w}.{24:h}.{20:a}|
stripe-live|Stripe live key|STRIPE_SECRET_KEY,stripe_api_key|sk_live_51{97:a}|
stripe-short|Stripe live key|STRIPE_KEY|sk_live_{24:a}|
stripe-restricted|Stripe restricted key|STRIPE_RK|rk_live_51{97:a}|
stripe-webhook|Stripe webhook secret|STRIPE_WEBHOOK_SECRET,endpointSecret|whsec_{32:a}|
square-token|Square access token|SQUARE_ACCESS_TOKEN|EAAA{60:w}|
square-oauth|Square OAuth secret|SQUARE_APP_SECRET|sq0csp-{43:w}|
braintree|Braintree access token|BRAINTREE_ACCESS_TOKEN|access_token$production${16:l}${32:h}|
razorpay-secret|Razorpay key secret|RAZORPAY_KEY_SECRET|{24:a}|c
plaid-secret|Plaid secret|PLAID_SECRET|{30:h}|c
plaid-access|Plaid access token|plaid_access_token|access-production-{uuid}|
shopify-admin|Shopify Admin API token|SHOPIFY_ACCESS_TOKEN|shpat_{32:h}|
shopify-secret|Shopify shared secret|SHOPIFY_API_SECRET|shpss_{32:h}|
mollie|Mollie live key|MOLLIE_API_KEY|live_{30:a}|
flutterwave|Flutterwave secret key|FLW_SECRET_KEY|FLWSECK-{32:h}-X|
paystack|Paystack key|PAYSTACK_SECRET_KEY|sk_live_{40:h}|
easypost|EasyPost key|EASYPOST_API_KEY|EZAK{54:a}|
shippo|Shippo token|SHIPPO_TOKEN|shippo_live_{40:h}|
duffel|Duffel token|DUFFEL_ACCESS_TOKEN|duffel_live_{43:w}|
mercadopago|Mercado Pago access token|MP_ACCESS_TOKEN|APP_USR-{16:d}-{6:d}-{32:h}-{9:d}|
slack-bot|Slack bot token|SLACK_BOT_TOKEN,slack_token|@slackbot|
slack-user|Slack user token|SLACK_USER_TOKEN|xoxp-{12:d}-{12:d}-{13:d}-{32:h}|
slack-app|Slack app-level token|SLACK_APP_TOKEN|xapp-1-A0{9:u}-{13:d}-{64:h}|
slack-webhook|Slack webhook|SLACK_WEBHOOK_URL,slack_hook|https://hooks.slack.com/services/T0{9:u}/B0{9:u}/{24:a}|
discord-bot|Discord bot token|DISCORD_TOKEN,BOT_TOKEN|@discord|
discord-webhook|Discord webhook|DISCORD_WEBHOOK|https://discord.com/api/webhooks/1{18:d}/{68:w}|
telegram-bot|Telegram bot token|TELEGRAM_BOT_TOKEN,TG_TOKEN|{10:9}:AA{33:w}|
teams-webhook|Teams incoming webhook|TEAMS_WEBHOOK|https://brightfarm.webhook.office.com/webhookb2/{uuid}@{uuid}/IncomingWebhook/{32:h}/{uuid}|
gchat-webhook|Google Chat webhook|GCHAT_HOOK|https://chat.googleapis.com/v1/spaces/AAAA{7:w}/messages?key=AIza{35:w}&token={43:w}|
zapier-hook|Zapier catch hook|ZAPIER_HOOK|https://hooks.zapier.com/hooks/catch/{7:9}/{7:l}/|
twilio-auth|Twilio auth token|TWILIO_AUTH_TOKEN,twilio_token|{32:h}|c
facebook-token|Facebook page token|FB_PAGE_TOKEN,FACEBOOK_ACCESS_TOKEN|EAA{170-190:a}ZD|
twitter-bearer|Twitter bearer token|TWITTER_BEARER_TOKEN|AAAAAAAAAAAAAAAAAAAAA{8:a}AAAAAAA{30:a}%3D{50:a}|
notion-new|Notion integration token|NOTION_TOKEN,NOTION_API_KEY|ntn_{11:d}{35:a}|
notion-legacy|Notion secret|NOTION_KEY|secret_{43:a}|
airtable|Airtable token|AIRTABLE_TOKEN|pat{14:a}.{64:h}|
figma|Figma token|FIGMA_TOKEN|figd_{40:w}|
linear|Linear key|LINEAR_API_KEY|lin_api_{40:a}|
asana|Asana token|ASANA_PAT|2/1{15:d}/1{15:d}:{32:h}|
clickup|ClickUp token|CLICKUP_TOKEN|pk_{8:9}_{32:u}|
trello|Trello token|TRELLO_TOKEN|ATTA{64:h}{8:H}|
dropbox|Dropbox access token|DROPBOX_ACCESS_TOKEN|sl.u.{140-160:w}|
postman|Postman key|POSTMAN_API_KEY|PMAK-{24:h}-{34:h}|
grafana-sa|Grafana service account token|GRAFANA_TOKEN|glsa_{32:a}_{8:h}|
grafana-cloud|Grafana Cloud token|GRAFANA_CLOUD_TOKEN|@glc|
sentry-org|Sentry auth token|SENTRY_AUTH_TOKEN|@sntrys|
sentry-user|Sentry user token|SENTRY_AUTH_TOKEN|sntryu_{64:h}|
newrelic-user|New Relic user key|NEW_RELIC_API_KEY|NRAK-{27:u}|
newrelic-license|New Relic license key|NEW_RELIC_LICENSE_KEY|{36:h}NRAL|
datadog-api|Datadog API key|DD_API_KEY,DATADOG_API_KEY|{32:h}|c
datadog-app|Datadog application key|DD_APP_KEY,DD_APPLICATION_KEY|{40:h}|c
honeycomb|Honeycomb ingest key|HONEYCOMB_API_KEY|hcaik_01{56:l}|
rollbar|Rollbar access token|ROLLBAR_ACCESS_TOKEN|{32:h}|c
pagerduty|PagerDuty API key|PAGERDUTY_TOKEN|u+{18:w}|c
dynatrace|Dynatrace token|DT_API_TOKEN|dt0c01.{24:T}.{64:T}|
splunk-hec|Splunk HEC token|SPLUNK_HEC_TOKEN|{uuid}|c
mapbox-secret|Mapbox secret token|MAPBOX_SECRET|@mapbox|
posthog|PostHog personal key|POSTHOG_PERSONAL_API_KEY|phx_{43:a}|
contentful|Contentful management token|CONTENTFUL_MANAGEMENT_TOKEN|CFPAT-{43:w}|
algolia-admin|Algolia admin key|ALGOLIA_ADMIN_KEY|{32:h}|c
sendgrid|SendGrid key|SENDGRID_API_KEY,SMTP_PASS|SG.{22:w}.{43:w}|
mailgun|Mailgun key|MAILGUN_API_KEY|key-{32:h}|
mailgun-new|Mailgun sending key|MAILGUN_KEY|{32:h}-{8:h}-{8:h}|
mailchimp|Mailchimp key|MAILCHIMP_API_KEY|{32:h}-us21|
postmark|Postmark server token|POSTMARK_SERVER_TOKEN|{uuid}|c
brevo|Brevo key|BREVO_API_KEY|xkeysib-{64:h}-{16:a}|
resend|Resend key|RESEND_API_KEY|re_{8:B}_{24:B}|
mandrill|Mandrill key|MANDRILL_KEY|md-{22:w}|
klaviyo|Klaviyo private key|KLAVIYO_PRIVATE_KEY|pk_{34:h}|
hubspot|HubSpot private app token|HUBSPOT_TOKEN|pat-na1-{uuid}|
salesforce-session|Salesforce session id|SF_SESSION_ID,sfdc_sid|00D{12:a}!AQ{94:w}|
okta|Okta API token|OKTA_API_TOKEN|00{40:w}|c
auth0-secret|Auth0 client secret|AUTH0_CLIENT_SECRET|{64:w}|c
fcm-legacy|FCM server key|FCM_SERVER_KEY|AAAA{7:w}:APA91b{134:w}|
onesignal|OneSignal app key|ONESIGNAL_API_KEY|os_v2_app_{103:2}|
tailscale-auth|Tailscale auth key|TS_AUTHKEY|tskey-auth-k{9:a}CNTRL-{32:a}|
tailscale-api|Tailscale API key|TAILSCALE_API_KEY|tskey-api-k{9:a}CNTRL-{32:a}|
ngrok|ngrok authtoken|NGROK_AUTHTOKEN|2{26:a}_{21:a}|c
cloudflare-tunnel|cloudflared tunnel token|TUNNEL_TOKEN|@cftunnel|
influxdb|InfluxDB token|INFLUX_TOKEN|{86:w}==|c
rails-master|Rails master key|RAILS_MASTER_KEY|{32:h}|c
rails-secret-base|Rails secret_key_base|SECRET_KEY_BASE,secret_key_base|{128:h}|c
django-secret|Django secret key|DJANGO_SECRET_KEY,SECRET_KEY|django-insecure-{50:p}|
laravel-app-key|Laravel app key|APP_KEY|@laravel|
age-key|age identity|SOPS_AGE_KEY,AGE_SECRET|@age|
wireguard-key|WireGuard private key|PrivateKey,WG_PRIVATE_KEY|@wg|c
wireguard-psk|WireGuard preshared key|PresharedKey,WG_PSK|@wg|c
eth-private|Ethereum private key|DEPLOYER_PRIVATE_KEY,ETH_PRIVATE_KEY|0x{64:h}|c
btc-wif|Bitcoin WIF key|BTC_WIF,wallet_wif|@wif|
btc-xprv|extended private key|XPRV,wallet_xprv|@xprv|
bip39|seed phrase|MNEMONIC,SEED_PHRASE|@mnemo|c
stellar-seed|Stellar secret seed|STELLAR_SECRET|@stellar|
nostr-nsec|nostr secret key|NOSTR_NSEC|@nsec|
totp-seed|TOTP secret|TOTP_SECRET,mfa_seed|@totp|c
jwt|bearer JWT|ID_TOKEN,JWT,auth_token|@jw|
n8n-jwt|n8n API key|N8N_API_KEY|@n8n|
supabase-service|Supabase service_role key|SUPABASE_SERVICE_ROLE_KEY|@sbsr|
hass|Home Assistant long-lived token|HASS_TOKEN|@hass|
jwt-secret|JWT signing secret|JWT_SECRET,jwtSecret|{48:a}|c
session-secret|session secret|SESSION_SECRET,COOKIE_SECRET|{40:a}|c
encryption-key|encryption key|ENCRYPTION_KEY,dataEncryptionKey|@wg|c
argon2-hash|password hash|password_hash,pwdhash|@argon|
bcrypt-hash|bcrypt password hash|password_hash,encrypted_password|@bc|
bitlocker|BitLocker recovery key|BITLOCKER_RECOVERY|@bitlocker|
'''.strip().split('\n')
FN = dict(azkey=lambda: b64(rb(64)), a3=lambda: t('A3-{6:u}-{6:u}-{5:u}-{5:u}-{5:u}-{5:u}'), bws=lambda: '0.%s.%s:%s' % (U(), rs(30, 'a'), b64(rb(16))),
          ghp=lambda: crc('ghp_'), gho=lambda: crc('gho_'), ghs=lambda: crc('ghs_'), ghr=lambda: 'ghr_' + rs(76, 'a'), npm=lambda: crc('npm_'), pypi=pypi, tpypi=lambda: pypi('test.pypi.org'),
          slackbot=slackbot, discord=discord, glc=glc, sntrys=sntrys, mapbox=mapbox, cftunnel=cftunnel, laravel=lambda: 'base64:' + b64(rb(32)), age=lambda: bech('age-secret-key-', rb(32)).upper(),
          wg=lambda: b64(rb(32)), wif=wif, xprv=xprv, mnemo=mnemo, stellar=stellar, nsec=lambda: bech('nsec', rb(32)), totp=totp, jw=jw,
          n8n=lambda: jwt_n8n(sub=U(), iss='n8n', aud='public-api', iat=R.randint(17e8, 18e8)), sbsr=lambda: jwt_n8n(iss='supabase', ref=rs(20, 'L'), role='service_role', iat=17e8, exp=20e8),
          hass=lambda: jwt_n8n(iss=rs(32, 'h'), iat=R.randint(17e8, 18e8), exp=21e8), argon=argon, bc=bc, bitlocker=bitlocker)
PARSED = []
for l in TYPES:
    n, lab, ids, p, fl = l.split('|')
    PARSED.append((n, lab, ids.split(','), FN[p[1:]] if p[0] == '@' else (lambda p=p: t(p)), 'c' in fl))
