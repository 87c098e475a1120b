"""A corpus of synthetic secrets, put together at run time so that no file ever holds one."""

import random
import string
from typing import NamedTuple

HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
ALNUM = string.ascii_letters + string.digits
WORD = ALNUM + "_-"
BASE64 = ALNUM + "+/"
BASE32 = string.ascii_uppercase + "234567"
DIGITS = string.digits

# kind | the beginning, cut up by ~ so that it is not literal | alphabets with lengths, joined as written
TOKENS = """
github-classic | gh~p_ | ALNUM36
github-oauth | gh~o_ | ALNUM36
github-user | gh~u_ | ALNUM36
github-server | gh~s_ | ALNUM36
github-refresh | gh~r_ | ALNUM76
github-fine-grained | github~_pat_ | ALNUM22 _ ALNUM59
gitlab-personal | gl~pat- | WORD20
gitlab-deploy | gl~dt- | WORD20
gitlab-runner | gl~rt- | WORD20
gitlab-trigger | gl~ptt- | HEX40
gitlab-feed | gl~ft- | WORD20
bitbucket-app | AT~BB | ALNUM32
atlassian-api | ATATT~3xFfGF0 | WORD180 = UPPER8
aws-access | AK~IA | BASE3216
aws-temporary | AS~IA | BASE3216
google-api | AI~za | WORD35
google-oauth | ya~29.a0 | WORD120
google-client-secret | GOC~SPX- | WORD28
google-refresh | 1~//0g | WORD60
azure-client | Abc~8Q~~ | ALNUM34
digitalocean-personal | dop~_v1_ | HEX64
digitalocean-oauth | doo~_v1_ | HEX64
heroku | HRKU~- | ALNUM60
vercel | ver~cel_ | ALNUM40
netlify | nf~p_ | ALNUM40
fly-org | fo1~_ | WORD43
fly-macaroon | fm2~_ | BASE64100
render | rn~d_ | ALNUM32
supabase-personal | sb~p_ | HEX40
supabase-secret | sb_sec~ret_ | WORD31
planetscale-password | psc~ale_pw_ | WORD43
planetscale-token | psc~ale_tkn_ | WORD43
neon | na~pi_ | LOWER64
databricks | da~pi | HEX32
prefect | pn~u_ | ALNUM36
linode | lin_~api_ | ALNUM40
anthropic | sk-~ant-api03- | WORD93 AA
anthropic-oauth | sk-~ant-oat01- | WORD86
openai-legacy | sk~- | ALNUM48
openai-project | sk-~proj- | WORD156
openai-service | sk-~svcacct- | WORD90
openrouter | sk-~or-v1- | HEX64
deepseek | s~k- | HEX32
huggingface | h~f_ | ALNUM34
groq | gs~k_ | ALNUM52
xai | xa~i- | ALNUM80
perplexity | pp~lx- | ALNUM48
replicate | r~8_ | ALNUM37
nvidia | nv~api- | WORD64
pinecone | pc~sk_ | ALNUM66
langsmith | lsv~2_pt_ | HEX32 _ HEX10
tavily | tv~ly- | ALNUM32
firecrawl | f~c- | HEX32
elevenlabs | s~k_ | HEX48
cerebras | cs~k- | LOWER48
npm | np~m_ | ALNUM36
pypi | py~pi-AgEIcHlwaS5vcmc | WORD150
docker-pat | dck~r_pat_ | WORD27
rubygems | ruby~gems_ | HEX48
crates | ci~o | ALNUM32
nuget | oy~2 | LOWER43
artifactory | AK~C | ALNUM64
slack-bot | xo~xb- | DIGITS12 - DIGITS12 - ALNUM24
slack-user | xo~xp- | DIGITS11 - DIGITS11 - DIGITS12 - HEX32
slack-app | xa~pp-1-A0 | UPPER9 - DIGITS13 - HEX64
slack-config | xo~xe.xoxp-1- | ALNUM160
discord-bot | MT~ | ALNUM24 . WORD6 . WORD38
telegram | 123~ | DIGITS6 :AA WORD33
sendgrid | S~G. | WORD22 . WORD43
mailgun | k~ey- | HEX32
mailchimp | ~ | HEX32 -us21
brevo | xkey~sib- | HEX64 - ALNUM16
resend | r~e_ | ALNUM8 _ ALNUM24
twilio-key | S~K | HEX32
stripe-live | sk_~live_ | ALNUM24
stripe-test | sk_~test_ | ALNUM99
stripe-restricted | rk_~live_ | ALNUM24
stripe-webhook | wh~sec_ | ALNUM32
square-access | EA~AA | WORD60
square-secret | sq0~csp- | WORD43
paypal-braintree | access_tok~en$production$ | LOWER16 $ HEX32
shopify-admin | shp~at_ | HEX32
shopify-shared | shp~ss_ | HEX32
razorpay | rzp_~live_ | ALNUM14
flutterwave | FLWSE~CK_TEST- | HEX32 -X
grafana-service | gl~sa_ | ALNUM32 _ HEX8
grafana-cloud | gl~c_ | BASE6480
new-relic-user | NR~AK- | UPPER27
new-relic-license | ~ | HEX36 NRAL
sentry-user | snt~ryu_ | HEX64
sentry-org | snt~rys_ | WORD140
posthog-personal | ph~x_ | ALNUM43
dynatrace | dt0~c01. | UPPER24 . UPPER64
launchdarkly | sd~k- | HEX8 - HEX4 - HEX4 - HEX4 - HEX12
vault-service | hv~s. | WORD90
vault-batch | hv~b. | WORD140
terraform-cloud | ~ | ALNUM14 .atlasv1. ALNUM64
pulumi | pu~l- | HEX40
doppler-personal | dp.~pt. | ALNUM43
doppler-service | dp.~st.prd. | ALNUM43
1password-service | ops_~eyJ | BASE64200
age-identity | AGE-SEC~RET-KEY-1 | BECH58
tailscale | tsk~ey-auth- | ALNUM12 - ALNUM30
circleci | CCI~PAT_ | ALNUM22 _ HEX40
buildkite | bk~ua_ | HEX40
sonarqube | sq~p_ | HEX40
postman | PM~AK- | HEX24 - HEX34
linear | lin_~api_ | ALNUM40
notion | nt~n_ | ALNUM46
notion-legacy | sec~ret_ | ALNUM43
airtable | pa~t | ALNUM14 . HEX64
asana | 1~/ | DIGITS16 : HEX32
figma | fi~gd_ | WORD40
contentful | CF~PAT- | WORD43
mapbox-secret | sk.~eyJ | ALNUM60 . WORD22
facebook | EA~AB | ALNUM120
twitter-bearer | AAAA~AAAAAAAAAAAAAAAAAA | ALNUM80
dropbox | s~l. | WORD130
typeform | tf~p_ | WORD44 _ WORD14
hubspot | pa~t-na1- | HEX8 - HEX4 - HEX4 - HEX4 - HEX12
confluent | cf~lt | BASE6460
snyk | snyk~_uat. | HEX8 . WORD60
azure-devops | ~ | LOWER52 AZDO LOWER4
jwt | ey~J | JWT
riot | RGA~PI- | HEX8 - HEX4 - HEX4 - HEX4 - HEX12
"""

# kind | text with {} where the secret stands | alphabet and length of the secret
PLACED = """
env-password | DB_PASSWORD={} | PASSWORD12
env-export | export STRIPE_WEBHOOK_SECRET={} | ALNUM32
env-quoted | MYSQL_ROOT_PASSWORD="{}" | PASSWORD14
env-token | CI_JOB_TOKEN={} | WORD24
env-api-key | MISTRAL_API_KEY={} | ALNUM32
env-cohere | COHERE_API_KEY={} | ALNUM40
env-datadog | DD_API_KEY={} | HEX32
env-secret-key | SECRET_KEY={} | WORD50
env-jwt-secret | JWT_SECRET={} | ALNUM64
env-passphrase | SIGNING_PASSPHRASE='{}' | PASSWORD18
yaml-password | "  password: {}" | PASSWORD12
yaml-quoted | 'password: "{}"' | PASSWORD12
yaml-api-key | "api_key: {}" | ALNUM32
yaml-client-secret | "client_secret: {}" | WORD36
yaml-secret | "  secretKey: {}" | BASE6440
ini-password | "password = {}" | PASSWORD12
properties | spring.datasource.password={} | PASSWORD12
toml-token | 'token = "{}"' | ALNUM30
json-password | {"user": "ana", "password": "{}"} | PASSWORD10
json-short-password | {"password":"{}"} | LOWER4
json-token | {"accessToken": "{}", "expires": 3600} | WORD40
json-secret | {"client_secret": "{}"} | LOWER24
json-refresh | {"refresh_token":"{}"} | WORD60
json-private | {"apiKey": "{}"} | HEX32
python-literal | PASSWORD = "{}" | PASSWORD12
python-keyword | connect(host="db", password="{}") | PASSWORD12
python-dict | config['secret_key'] = '{}' | WORD32
python-requests | requests.get(url, auth=("ana", "{}")) | PASSWORD12
js-literal | const apiKey = '{}'; | ALNUM32
js-object | "{ password: '{}', port: 5432 }" | PASSWORD12
go-literal | token := "{}" | ALNUM40
ruby-hash | "  :password => '{}'," | PASSWORD12
php-define | define('DB_PASSWORD', '{}'); | PASSWORD12
java-setter | config.setPassword("{}"); | PASSWORD12
csharp | string clientSecret = "{}"; | WORD34
hcl | 'secret_key = "{}"' | BASE6440
xml-element | <password>{}</password> | PASSWORD12
xml-property | <property name="password" value="{}"/> | PASSWORD12
dockerfile-env | ENV API_TOKEN {} | ALNUM30
docker-run | docker run -e POSTGRES_PASSWORD={} postgres | PASSWORD12
flag-password | mongodump --host db --password {} --out x | PASSWORD12
flag-password-equals | app --password={} --verbose | PASSWORD12
flag-token | tool login --token {} | ALNUM32
flag-api-key | tool --api-key {} run | ALNUM32
flag-secret | tool --client-secret={} | WORD32
curl-user | curl -u ana:{} https://example.org/x | PASSWORD12
curl-user-long | curl -s --user "ana:{}" https://example.org | PASSWORD12
mysql-p | mysql -h db -u root -p{} app | LOWER10
sshpass | sshpass -p {} ssh ana@host | PASSWORD12
redis-cli | redis-cli -h cache -a {} ping | ALNUM20
docker-login | docker login -u ana -p {} registry.example.org | PASSWORD12
url-postgres | postgres://ana:{}@db.example.org:5432/app | ALNUM16
url-mysql | mysql://root:{}@localhost/app | ALNUM12
url-mongo | mongodb+srv://ana:{}@cluster0.example.mongodb.net/test | ALNUM16
url-redis | redis://:{}@cache:6379/0 | ALNUM20
url-amqp | amqp://guest:{}@rabbit:5672/ | ALNUM12
url-https | https://deploy:{}@git.example.org/x.git | ALNUM20
url-git-token | https://oauth2:{}@gitlab.example.org/a/b.git | WORD20
url-proxy | export HTTPS_PROXY=http://ana:{}@proxy:3128 | ALNUM12
url-ftp | ftp://ana:{}@files.example.org/x | ALNUM12
url-smtp | smtp://mailer:{}@mail.example.org:587 | ALNUM16
jdbc | jdbc:postgresql://db/app?user=ana&password={} | ALNUM16
jdbc-mysql | jdbc:mysql://db/app?password={}&useSSL=true | ALNUM16
ado-net | Server=db;Database=app;User Id=sa;Password={};Encrypt=true | PASSWORD12
ado-net-pwd | Data Source=db;Uid=sa;Pwd={}; | PASSWORD12
azure-storage | DefaultEndpointsProtocol=https;AccountName=x;AccountKey={}==;EndpointSuffix=core | BASE6486
azure-service-bus | Endpoint=sb://x/;SharedAccessKeyName=k;SharedAccessKey={}= | BASE6443
azure-sas | https://x.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig={}%3D | ALNUM43
aws-secret-env | AWS_SECRET_ACCESS_KEY={} | BASE6440
aws-secret-ini | aws_secret_access_key = {} | BASE6440
aws-secret-json | {"SecretAccessKey": "{}"} | BASE6440
aws-session | AWS_SESSION_TOKEN={} | BASE64200
header-bearer | "Authorization: Bearer {}" | WORD40
header-basic | "Authorization: Basic {}==" | BASIC24
header-token | "Authorization: token {}" | HEX40
header-proxy | "Proxy-Authorization: Basic {}" | BASIC24
header-api-key | "X-Api-Key: {}" | ALNUM32
header-auth-token | "X-Auth-Token: {}" | HEX32
header-private-token | "PRIVATE-TOKEN: {}" | WORD20
header-curl | curl -H "Authorization: Bearer {}" https://api.example.org | ALNUM40
header-js | headers: { 'Authorization': 'Bearer {}' } | ALNUM40
header-vault | "X-Vault-Token: {}" | ALNUM26
header-subscription | "Ocp-Apim-Subscription-Key: {}" | HEX32
cookie-session | "Cookie: theme=dark; sessionid={}; lang=en" | LOWER32
cookie-set | "Set-Cookie: connect.sid={}; Path=/; HttpOnly" | WORD60
cookie-php | "Cookie: PHPSESSID={}" | LOWER26
query-api-key | https://api.example.org/v1/x?api_key={}&page=2 | ALNUM32
query-access-token | https://api.example.org/v1/x?limit=5&access_token={} | WORD40
query-token | GET /hook?token={} HTTP/1.1 | ALNUM24
query-key | https://maps.example.org/api?key={}&v=3 | ALNUM32
query-signature | https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature={} | HEX64
slack-webhook | https://hooks.slack.com/services/{} | WEBHOOK
discord-webhook | https://discord.com/api/webhooks/123456789012345678/{} | WORD68
netrc | machine api.example.org login ana password {} | PASSWORD12
pgpass | db.example.org:5432:app:ana:{} | ALNUM14
git-credentials | https://ana:{}@github.com | ALNUM20
npmrc | //registry.example.org/:_authToken={} | ALNUM36
npmrc-auth | _auth={}== | BASE6430
docker-config | {"auths": {"r.example.org": {"auth": "{}=="}}} | BASIC30
kubeconfig-token | "    token: {}" | WORD60
wireguard | PrivateKey = {}= | BASE6443
htpasswd-apr1 | ana:$apr1${} | HASH31
htpasswd-bcrypt | ana:$2y$05${} | HASH53
shadow-sha512 | root:$6${}:19000:0:99999:7::: | HASH95
sql-identified | CREATE USER 'ana'@'%' IDENTIFIED BY '{}'; | PASSWORD12
sql-role | ALTER ROLE ana WITH PASSWORD '{}'; | PASSWORD12
redis-conf | requirepass {} | ALNUM20
openssl-pass | openssl rsa -in k.pem -passin pass:{} | ALNUM14
keytool | keytool -list -storepass {} | ALNUM12
gpg | gpg --batch --passphrase {} -d x.gpg | PASSWORD14
ansible | ansible_become_password: {} | PASSWORD12
prose-password | The admin password is {} for now | PASSWORD12
prose-colon | "Password: {}" | PASSWORD12
log-line | 2024-05-01 12:00:00 DEBUG auth: password={} user=ana | PASSWORD12
django | SECRET_KEY = 'django-insecure-{}' | WORD50
rails | "  secret_key_base: {}" | HEX128
laravel | APP_KEY=base64:{}= | BASE6443
next-auth | NEXTAUTH_SECRET={} | BASE6432
totp | otpauth://totp/x?secret={}&issuer=y | BASE3232
okta | "Authorization: SSWS 00{}" | WORD40
helm-set | helm upgrade app --set db.password={} | ALNUM14
kubectl-literal | kubectl create secret generic db --from-literal=password={} | PASSWORD12
java-property | -Djavax.net.ssl.keyStorePassword={} | ALNUM12
appsettings | "ConnectionStrings": {"Db": "Server=x;Password={};"} | ALNUM14
sentry-dsn-legacy | https://{}@o1.ingest.sentry.io/42 | HEX32
"""


class Secret(NamedTuple):
    """A text, and the part of it that must not be seen afterwards."""

    kind: str
    text: str
    secret: str


def _random(dice: random.Random, alphabet: str, length: int) -> str:
    while True:
        value = "".join(dice.choices(alphabet, k=length))
        if length < 8 or (len(set(value)) > 4 and value[0].isalnum() and value[-1].isalnum()):
            return value


def _special(dice: random.Random, name: str, length: int) -> str:
    if name == "PASSWORD":
        return _random(dice, string.ascii_letters, length - 3) + _random(dice, DIGITS, 2) + dice.choice("!#*^")
    if name == "BASIC":
        from base64 import b64encode

        return b64encode(f"ana:{_random(dice, ALNUM, length)}".encode()).decode().rstrip("=")
    if name == "JWT":
        return "hbGciOiJIUzI1NiJ9.eyJ" + _random(dice, ALNUM, 60) + "." + _random(dice, WORD, 43)
    if name == "WEBHOOK":
        return "T" + _random(dice, UPPER, 8) + "/B" + _random(dice, UPPER, 8) + "/" + _random(dice, ALNUM, 24)
    if name == "HASH":
        return _random(dice, ALNUM, 8) + "$" + _random(dice, ALNUM, length - 9)
    return _random(dice, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", length)


def _part(dice: random.Random, part: str) -> str:
    for name in ("BASE64", "BASE32", "ALNUM", "LOWER", "UPPER", "WORD", "HEX", "DIGITS"):
        if part.startswith(name) and part[len(name) :].isdigit():
            return _random(dice, globals()[name], int(part[len(name) :]))
    for name in ("PASSWORD", "BASIC", "JWT", "WEBHOOK", "HASH", "BECH"):
        if part.startswith(name):
            return _special(dice, name, int(part[len(name) :] or 0))
    return part


def tokens(seed: int) -> list[Secret]:
    """Make one token of each provider's kind, each in a sentence."""
    dice = random.Random(seed)
    made = []
    for line in TOKENS.strip().splitlines():
        kind, start, shape = (part.strip() for part in line.split("|"))
        start = start.replace("~~", "\0").replace("~", "").replace("\0", "~")
        secret = start + "".join(_part(dice, part) for part in shape.split())
        made.append(
            Secret(
                kind,
                dice.choice(("use {} now", "{}", "key: {}", "x={}", '"{}"', "({})")).replace("{}", secret),
                secret,
            )
        )
    return made


def placed(seed: int) -> list[Secret]:
    """Make one secret in each place where secrets stand."""
    dice = random.Random(seed)
    made = []
    for line in PLACED.strip().splitlines():
        kind, rest = line.split(" | ", 1)
        template, shape = rest.rsplit(" | ", 1)
        template = template.strip()
        if template[0] in "\"'" and template[-1] == template[0] and template.count(template[0]) == 2:
            template = template[1:-1]
        secret = _part(dice, shape.strip())
        made.append(Secret(kind, template.replace("{}", secret), secret))
    return made


def blocks(seed: int) -> list[Secret]:
    """Make key blocks of every make, whole and cut short."""
    dice = random.Random(seed)
    made = []
    for label in ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "PGP "):
        block = " BLOCK" if label == "PGP " else ""
        body = "\n".join(_random(dice, BASE64, 64) for _ in range(6))
        start, stop = (f"-----{edge} {label}PRIVATE KEY{block}-----" for edge in ("BEGIN", "END"))
        made.append(Secret(f"pem-{label.strip().lower() or 'pkcs8'}", f"{start}\n{body}\n{stop}\n", body))
    body = "\n".join(_random(dice, BASE64, 64) for _ in range(3))
    made.append(Secret("pem-cut-short", "-----BEGIN " + f"RSA PRIVATE KEY-----\n{body}", body))
    putty = (
        "PuTTY-User-Key-"
        + f"File-3: ssh-ed25519\nEncryption: none\nComment: x\nPublic-Lines: 1\n{body}\n"
        + f"Private-Lines: 1\n{body}\nPrivate-MAC: {_random(dice, HEX, 64)}"
    )
    made.append(Secret("putty", putty, body))
    return made
