"""Secrets for measuring: written without looking at the rules, and never used to mend one."""

import base64
import random
import string
from collections.abc import Iterator

from tests.redact.batches.drawing import ALNUM, BASE64, HEX, LOWER, Case, Shape, batch, chars, templates

SEED = 20_261
_SIGNS = "!$%^&*()-_=+?.,:~@#"
_NOUNS = [
    "harbor",
    "pepper",
    "velvet",
    "marble",
    "rocket",
    "anchor",
    "walnut",
    "copper",
    "thunder",
    "lantern",
    "meadow",
    "falcon",
]


def _noun(dice: random.Random) -> str:
    return dice.choice(_NOUNS)


def _begins(signs: str) -> Shape:
    """Make passwords that begin with one of some signs."""
    return lambda dice: (
        dice.choice(signs) + chars(dice, ALNUM, 5) + dice.choice(signs + "!") + chars(dice, ALNUM, dice.randint(4, 9))
    )


def _mixed(dice: random.Random) -> str:
    middle = chars(dice, ALNUM + _SIGNS, dice.randint(9, 20))
    return dice.choice(string.ascii_letters) + middle + dice.choice(ALNUM)


def _dotted(dice: random.Random) -> str:
    first = _noun(dice).capitalize() + str(dice.randint(10, 99))
    return dice.choice((f"{first}.{_noun(dice)}.{dice.randint(100, 999)}", f"{chars(dice, LOWER, 4)}.{chars(dice, ALNUM, 7)}9"))


def _human(dice: random.Random) -> str:
    noun = _noun(dice)
    return dice.choice(
        (
            f"{noun.capitalize()}{dice.randint(1960, 2030)}!",
            f"{noun.replace('a', '4').replace('e', '3').replace('o', '0')}_{dice.randint(10, 99)}",
            f"{noun}-{_noun(dice)}-{_noun(dice)}-{dice.randint(2, 99)}",
            f"{noun.upper()}#{dice.randint(100, 99999)}",
        )
    )


def _aws(dice: random.Random) -> str:
    pieces = [chars(dice, ALNUM, 9), chars(dice, BASE64, 12), chars(dice, ALNUM, 17)]
    return "/".join(pieces)


def _django(dice: random.Random) -> str:
    return chars(dice, LOWER + "!@#$%^&*(-_=+)", 50)


def _jwt(dice: random.Random) -> str:
    claims = f'{{"sub":"{dice.randint(10**8, 10**9)}","iat":{dice.randint(10**9, 2 * 10**9)}}}'
    parts = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in ('{"alg":"HS256"}', claims)]
    return ".".join([*parts, chars(dice, ALNUM + "-_", 43)])


def _url_signs(dice: random.Random) -> str:
    return chars(dice, ALNUM, 4) + dice.choice("#?/") + chars(dice, ALNUM, 4) + dice.choice("#?/!") + chars(dice, ALNUM, 4)


def _provider(dice: random.Random) -> str:
    start, alphabet, length = dice.choice(
        (
            ("gh" + "p_", ALNUM, 36),
            ("gh" + "s_", ALNUM, 36),
            ("gl" + "pat-", ALNUM + "-_", 20),
            ("sk-" + "ant-api03-", ALNUM + "-_", 95),
            ("sk-" + "proj-", ALNUM, 48),
            ("xo" + "xb-", string.digits, 24),
            ("sk_" + "live_", ALNUM, 24),
            ("np" + "m_", ALNUM, 36),
            ("AK" + "IA", string.ascii_uppercase + "234567", 16),
            ("h" + "f_", string.ascii_letters, 34),
            ("dop" + "_v1_", HEX, 64),
            ("S" + "G.", ALNUM, 22),
        )
    )
    tail = "." + chars(dice, ALNUM, 43) if start == "SG." else ""
    return start + chars(dice, alphabet, length) + tail


SHAPES: dict[str, Shape] = {
    "sign first": _begins("!$%<{"),
    "shell sign first": _begins("&*("),
    "other sign first": _begins("@#^~+=-?["),
    "mixed": _mixed,
    "dotted": _dotted,
    "human": _human,
    "aws": _aws,
    "django": _django,
    "jwt": _jwt,
    "hex": lambda dice: chars(dice, HEX, dice.choice((24, 32, 40, 64))),
    "base64": lambda dice: base64.b64encode(dice.randbytes(dice.choice((24, 32, 48)))).decode(),
    "alnum": lambda dice: chars(dice, ALNUM, dice.randint(16, 48)),
    "uuid": lambda dice: "-".join(chars(dice, HEX, length) for length in (8, 4, 4, 4, 12)),
    "url signs": _url_signs,
    "plain url": lambda dice: chars(dice, ALNUM, dice.randint(8, 22)),
    "provider": _provider,
}
_SHAPE_OF = {name.replace(" ", "-"): shape for name, shape in SHAPES.items()}
_GROUPS = {
    "passwords": "sign-first sign-first shell-sign-first other-sign-first mixed mixed dotted human human",
    "keys": "aws django hex base64 alnum mixed",
    "tokens": "jwt hex alnum uuid provider",
}
_PASSWORDS = [
    "smtp password",
    "grafana admin password",
    "keystore pass",
    "ldap bind password",
    "vault passphrase",
    "sa password",
    "mysql root password",
    "rabbitmq default pass",
    "replication password",
    "ftp passwd",
    "wifi password",
    "backup passphrase",
    "influxdb admin password",
    "truststore password",
    "imap password",
    "superuser password",
]
_KEYS = [
    "app secret",
    "session secret",
    "jwt secret",
    "secret key base",
    "encryption key",
    "api secret",
    "consumer secret",
    "client secret",
    "rails master key",
    "webhook secret",
    "cookie secret",
    "hmac secret",
    "signing secret",
    "nextauth secret",
]
_TOKENS = [
    "api token",
    "bot token",
    "access token",
    "refresh token",
    "private token",
    "deploy token",
    "registry token",
    "gitlab token",
    "telegram bot token",
    "influx token",
    "ci job token",
    "api key",
    "datadog api key",
    "auth token",
]
NAMES = {
    "": _PASSWORDS,
    **dict.fromkeys(("hex", "base64", "alnum"), _KEYS),
    **dict.fromkeys(("jwt", "uuid", "provider"), _TOKENS),
    "aws": ["aws secret access key", "aws secret key", "s3 secret key", "minio secret key", "secret access key"],
    "django": ["secret key", "django secret key", "app secret key"],
}

_TEMPLATES = templates(
    r"""
env file | UPPER | raw | passwords keys tokens
# production settings
APP_NAME=orders
@NAME@=@VALUE@
LOG_LEVEL=info
WORKERS=4
%%
env file in quotes | UPPER | raw | passwords keys tokens
REGION=eu-central-1
@NAME@="@VALUE@"
TIMEOUT=30
%%
single quotes in an env file | UPPER | raw | passwords keys
@NAME@='@VALUE@'
PORT=8080
%%
YAML | camel | raw | mixed dotted human keys tokens
server:
  host: 10.2.0.4
  @NAME@: @VALUE@
  retries: 3
%%
YAML in quotes | lower | raw | passwords keys tokens
storage:
    bucket: reports
    @NAME@: "@VALUE@"
    prefix: daily/
%%
YAML in single quotes | kebab | raw | passwords keys
mail:
  from: robot@example.org
  @NAME@: '@VALUE@'
  tls: true
%%
JSON | camel | json | passwords keys tokens
{
  "host": "db.internal",
  "@NAME@": "@VALUE@",
  "poolSize": 12
}
%%
JSON on one line | lower | json | passwords keys tokens
{"user":"svc_orders","@NAME@":"@VALUE@","ttl":3600}
%%
TOML | lower | raw | passwords keys tokens
[database]
name = "orders"
@NAME@ = "@VALUE@"
max_open = 20
%%
INI | lower | raw | passwords keys tokens
[mail]
server = smtp.example.org
@NAME@ = @VALUE@
port = 587
%%
Java properties | dotted | raw | passwords keys
spring.application.name=orders
spring.datasource.@NAME@=@VALUE@
spring.datasource.hikari.maximum-pool-size=10
%%
shell export | UPPER | raw | passwords keys tokens
set -euo pipefail
export @NAME@='@VALUE@'
./manage.py migrate --noinput
%%
shell export in double quotes | UPPER | raw | mixed human keys tokens
export PATH="$HOME/bin:$PATH"
export @NAME@="@VALUE@"
make release
%%
variables before a command | UPPER | raw | human alnum hex provider
@NAME@=@VALUE@ npm run start -- --port 3000
%%
Dockerfile | UPPER | raw | mixed human keys tokens
FROM python:3.11-slim
ENV @NAME@=@VALUE@
RUN pip install -r requirements.txt
%%
Dockerfile, old form | UPPER | raw | human keys tokens
WORKDIR /srv/app
ENV @NAME@ @VALUE@
EXPOSE 8000
%%
compose list | UPPER | raw | passwords keys tokens
    environment:
      - TZ=Europe/Berlin
      - @NAME@=@VALUE@
    ports:
      - "5432:5432"
%%
compose map | UPPER | raw | passwords keys tokens
    environment:
      TZ: Europe/Berlin
      @NAME@: "@VALUE@"
    restart: unless-stopped
%%
Terraform variable | lower | raw | passwords keys tokens
resource "aws_db_instance" "main" {
  engine   = "postgres"
  @NAME@ = "@VALUE@"
  multi_az = true
}
%%
Terraform tfvars | lower | raw | passwords keys
region = "eu-west-1"
@NAME@ = "@VALUE@"
instance_count = 3
%%
CI log | UPPER | raw | mixed human keys tokens
2024-03-11T08:14:22Z ##[group]Run deploy
2024-03-11T08:14:22Z env: @NAME@=@VALUE@
2024-03-11T08:14:23Z Deploying 14 files
%%
CI log with a colon | UPPER | raw | mixed human keys tokens
[deploy] step 3/7
[deploy]   @NAME@: @VALUE@
[deploy] step 4/7
%%
traceback | lower | raw | passwords keys tokens
  File "/srv/app/db.py", line 41, in connect
    conn = driver.connect(host="db", @NAME@="@VALUE@", timeout=5)
ConnectionError: could not reach db
%%
repr in an error | lower | raw | passwords keys tokens
pydantic_core.ValidationError: 1 validation error
  input_value={'host': 'db', '@NAME@': '@VALUE@', 'port': 'x'}, input_type=dict
    For further information see the manual
%%
keyword in a call | lower | raw | passwords keys tokens
client = Client("https://api.example.org", @NAME@='@VALUE@', retries=2)
print(client.ping())
%%
curl header | lower | raw | jwt hex alnum provider
curl -sS https://api.example.org/v1/items -H "Authorization: Bearer @VALUE@" -H "Accept: application/json"
echo done
%%
curl user | lower | raw | mixed human alnum
curl -u 'deployer:@VALUE@' https://files.example.org/upload -T build.tgz
echo uploaded
%%
curl header of its own | kebab | raw | hex alnum uuid provider
curl -X POST https://api.example.org/jobs -H 'X-@NAME@: @VALUE@' -d '{"name":"nightly"}'
%%
curl body | lower | json | passwords alnum
curl -d '{"login":"ana","@NAME@":"@VALUE@"}' https://api.example.org/login
%%
URL with a password | lower | raw | plain-url url-signs url-signs mixed dotted
DATABASE_URL=postgres://orders:@VALUE@@db.internal:5432/orders
DEBUG=false
%%
URL in code | lower | raw | plain-url url-signs mixed
engine = create_engine("mysql+pymysql://svc:@VALUE@@10.0.3.7/shop?charset=utf8mb4")
session = Session(engine)
%%
URL of a broker | lower | raw | plain-url url-signs human
  broker_url: amqp://worker:@VALUE@@rabbit:5672//
  task_serializer: json
%%
URL, percent-encoded | lower | url | mixed sign-first
MONGO=mongodb+srv://reader:@VALUE@@cluster0.example.org/app?retryWrites=true
%%
git remote | lower | raw | provider hex
origin	https://x-access-token:@VALUE@@github.com/acme/shop.git (fetch)
origin	https://github.com/acme/shop.git (push)
%%
connection string with semicolons | Pascal | raw | mixed-safe human alnum dotted
Server=tcp:sql.example.org,1433;Database=shop;User ID=app;Password=@VALUE@;Encrypt=True;
Timeout=30
%%
libpq string | lower | raw | human alnum dotted
psql "host=db dbname=shop user=app password=@VALUE@ sslmode=require" -c 'select 1'
%%
Python assignment | UPPER | raw | passwords keys tokens
BASE_DIR = Path(__file__).parent
@NAME@ = "@VALUE@"
INSTALLED_APPS = ["shop", "billing"]
%%
Python dictionary | lower | raw | passwords keys tokens
DATABASES = {"default": {"NAME": "shop", "@NAME@": '@VALUE@', "HOST": "db"}}
ALLOWED = ["*.example.org"]
%%
JavaScript | camel | raw | passwords keys tokens
const region = 'eu-west-1';
const @NAME@ = '@VALUE@';
module.exports = { region };
%%
JavaScript object | camel | raw | passwords keys tokens
const pool = new Pool({ user: 'app', @NAME@: '@VALUE@', max: 10 });
await pool.connect();
%%
TypeScript template string | camel | raw | mixed-safe human keys tokens
export const @NAME@: string = `@VALUE@`;
export const limit = 10;
%%
Go | camel | raw | passwords keys tokens
	cfg := Config{Host: "db"}
	@NAME@ := "@VALUE@"
	return open(cfg)
%%
Go struct | Pascal | raw | passwords keys tokens
	opts := &redis.Options{Addr: "cache:6379", @NAME@: "@VALUE@", DB: 0}
	rdb := redis.NewClient(opts)
%%
Java | camel | raw | passwords keys tokens
    private static final int RETRIES = 3;
    private static final String @NAME@ = "@VALUE@";
    public void run() {
%%
Java setter | Pascal | raw | passwords keys
        source.setUser("app");
        source.set@NAME@("@VALUE@");
        source.setMax(8);
%%
Ruby | lower | raw | passwords keys tokens
  config.host = "db"
  config.@NAME@ = "@VALUE@"
  config.pool = 5
%%
Ruby hash | lower | raw | passwords keys tokens
client = Faraday.new(url: base, @NAME@: "@VALUE@", timeout: 4)
client.get("/health")
%%
PHP | UPPER | raw | passwords keys
define('DB_NAME', 'shop');
define('@NAME@', '@VALUE@');
define('DB_CHARSET', 'utf8');
%%
HTTP header | kebab | raw | jwt hex alnum provider
GET /v2/orders HTTP/1.1
Host: api.example.org
Authorization: Bearer @VALUE@
Accept: */*
%%
HTTP header of its own | kebab | raw | hex alnum uuid provider
> Host: api.example.org
> X-@NAME@: @VALUE@
> User-Agent: worker/2.1
%%
basic authorization | kebab | raw | basic
Authorization: Basic @VALUE@
Content-Type: application/json
%%
cookie | lower | raw | alnum hex jwt
Cookie: theme=dark; sessionid=@VALUE@; lang=de
Accept-Language: de
%%
set-cookie | lower | raw | alnum hex jwt
< Set-Cookie: session=@VALUE@; Path=/; HttpOnly
< Content-Length: 17
%%
SQL | lower | raw | passwords
create database shop;
create user app with password '@VALUE@';
grant all on database shop to app;
%%
MySQL | lower | raw | passwords
CREATE USER 'app'@'%' IDENTIFIED BY '@VALUE@';
FLUSH PRIVILEGES;
%%
kubectl describe | UPPER | raw | passwords keys tokens
    Environment:
      LOG_LEVEL:           info
      @NAME@:  @VALUE@
    Mounts:               <none>
%%
Kubernetes manifest | UPPER | raw | passwords keys tokens
        env:
        - name: @NAME@
          value: "@VALUE@"
        - name: LOG_LEVEL
          value: "debug"
%%
Kubernetes secret data | kebab | raw | base64
kind: Secret
data:
  @NAME@: @VALUE@
type: Opaque
%%
coloured log | UPPER | raw | mixed human keys tokens
\e[32mINFO\e[0m loading settings
\e[36m@NAME@\e[0m=\e[33m@VALUE@\e[0m
\e[32mINFO\e[0m ready
%%
log in JSON | lower | json | passwords keys tokens
{"level":"warn","msg":"login failed {\"user\":\"ana\",\"@NAME@\":\"@VALUE@\"}","ts":1712}
%%
log in JSON twice | lower | json twice | mixed-safe keys tokens
{"event":"{\"body\":\"{\\\"@NAME@\\\":\\\"@VALUE@\\\"}\"}"}
%%
lines in JSON | UPPER | json | mixed human keys tokens
{"stdout":"HOME=/root\n@NAME@=@VALUE@\nSHLVL=1\n","code":0}
%%
XML | camel | xml | passwords keys tokens
<settings>
  <host>db</host>
  <@NAME@>@VALUE@</@NAME@>
</settings>
%%
XML attribute | camel | xml | passwords keys
<connection host="db" @NAME@="@VALUE@" pool="4"/>
%%
command flag | kebab | raw | mixed-safe human keys tokens
helm upgrade shop ./chart --set-string image.tag=1.4.2 --@NAME@ '@VALUE@' --wait
%%
command flag with equals | kebab | raw | human hex alnum provider
./deploy --env=prod --@NAME@=@VALUE@ --verbose
%%
PowerShell | Pascal | raw | passwords keys
$Region = "westeurope"
$@NAME@ = "@VALUE@"
Connect-Thing -Region $Region
%%
diff | UPPER | raw | mixed human keys tokens
@@ -3,4 +3,4 @@
 DEBUG=false
-@NAME@=@VALUE@
+@NAME@=
%%
chat | lower | raw | mixed human
The staging password is @VALUE@
Please rotate it tomorrow.
%%
netrc | lower | raw | human alnum mixed
machine files.example.org login ana password @VALUE@
%%
glued token | lower | raw | provider
uploaded as deploy_@VALUE@
next step: verify
%%
glued token in a path | lower | raw | provider
/tmp/cache-@VALUE@/index.json
%%
token in a query | lower | raw | alnum hex jwt provider
GET /export?format=csv&access_token=@VALUE@&page=2 HTTP/1.1
Host: api.example.org
%%
table of settings | lower | raw | mixed-safe human alnum hex
| setting | value |
| @NAME@ | @VALUE@ |
| region | eu |
%%
Ansible variable file | lower | raw | mixed human keys
ansible_user: deploy
ansible_@NAME@: @VALUE@
ansible_port: 2222
""",
    _GROUPS,
)


def _basic(dice: random.Random) -> str:
    return base64.b64encode(f"svc_{_noun(dice)}:{_mixed(dice)}".encode()).decode()


def _safe(dice: random.Random) -> str:
    """Make a password without the signs that end a value in connection strings, commands and templates."""
    return dice.choice(string.ascii_letters) + chars(dice, ALNUM + "!%^*-_+.,~@#", dice.randint(9, 18)) + dice.choice(ALNUM)


def cases(*, seed: int = SEED, each: int = 3) -> Iterator[Case]:
    """Draw the batch."""
    return batch(_TEMPLATES, {**_SHAPE_OF, "basic": _basic, "mixed-safe": _safe}, NAMES, seed=seed, each=each)
