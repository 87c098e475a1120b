"""Harmless texts for measuring: look-alikes of secrets, written without looking at the rules."""

import base64
import random
from collections.abc import Iterator

from tests.redact.batches.drawing import ALNUM, BASE64, HEX, LOWER, Shape, chars, filled, listed

SEED = 20_262
_NOUNS = [
    "order",
    "invoice",
    "cart",
    "ledger",
    "shipment",
    "tenant",
    "invitation",
    "widget",
    "parser",
    "cursor",
    "bucket",
    "session",
]
_VERBS = listed("load parse check build fetch rotate refresh store resolve validate", " ")


def _hex(*lengths: int) -> Shape:
    return lambda dice: chars(dice, HEX, dice.choice(lengths))


def _uuid(dice: random.Random) -> str:
    return "-".join(chars(dice, HEX, length) for length in (8, 4, 4, 4, 12))


def _blob(dice: random.Random) -> str:
    return base64.b64encode(bytes([137, 80, 78, 71]) + dice.randbytes(dice.randint(60, 240))).decode()


MAKERS: dict[str, Shape] = {
    "sha1": _hex(40),
    "sha256": _hex(64),
    "md5": _hex(32),
    "short": _hex(7, 8, 10, 12),
    "uuid": _uuid,
    "blob": _blob,
    "sri": lambda dice: base64.b64encode(dice.randbytes(48)).decode(),
    "sri512": lambda dice: base64.b64encode(dice.randbytes(64)).decode(),
    "b32": lambda dice: base64.b64encode(dice.randbytes(32)).decode(),
    "noun": lambda dice: dice.choice(_NOUNS),
    "Noun": lambda dice: dice.choice(_NOUNS).capitalize(),
    "NOUN": lambda dice: dice.choice(_NOUNS).upper(),
    "verb": lambda dice: dice.choice(_VERBS),
    "n": lambda dice: str(dice.randint(1, 9999)),
    "epoch": lambda dice: str(dice.randint(1_600_000_000, 1_800_000_000)),
    "ver": lambda dice: f"{dice.randint(0, 20)}.{dice.randint(0, 40)}.{dice.randint(0, 9)}",
    "slug": lambda dice: f"{dice.choice(_NOUNS)}-{dice.choice(_NOUNS)}-{chars(dice, LOWER, 5)}",
    "chunk": lambda dice: chars(dice, ALNUM, 8),
    "path": lambda dice: "/".join(dice.choices(_NOUNS, k=3)),
    "upper": lambda dice: chars(dice, "ABCDEFGHJKMNPQRSTVWXYZ0123456789", 26),
    "svg": lambda dice: "".join(f"{dice.choice('MLCHVZ')}{dice.randint(0, 99)}.{dice.randint(0, 9)} " for _ in range(14)),
    "key64": lambda dice: chars(dice, BASE64, 43) + "=",
}

_TEXTS = r"""
commit @sha1@ (HEAD -> main, origin/main)
Merge: @short@ @short@
tree @sha1@
index @short@..@short@ 100644
 * [new branch]      feature/@noun@-token-@n@ -> origin/feature/@noun@-token-@n@
Updating @short@..@short@ Fast-forward src/auth/token.py | @n@ +++---
sha256:@sha256@
image: registry.example.org/@noun@@sha256:@sha256@
FROM node:20@sha256:@sha256@ AS build
"integrity": "sha512-@sri512@",
<script src="/a.js" integrity="sha384-@sri@" crossorigin="anonymous"></script>
    {file = "@noun@-@ver@.tar.gz", hash = "sha256:@sha256@"},
@noun@==@ver@ --hash=sha256:@sha256@ --hash=sha256:@sha256@
github.com/acme/@noun@ v@ver@ h1:@key64@
checksum = "@sha256@"
ETag: W/"@md5@"
Content-MD5: @md5@
md5sum: @md5@  dist/@noun@.tar.gz
trace_id=@md5@ span_id=@short@ parent=@short@
X-Request-Id: @uuid@
request_id: @uuid@
correlationId=@uuid@ userId=@n@ route=/api/@noun@
{"id":"@uuid@","type":"@noun@","createdAt":@epoch@}
id: @upper@
<img src="data:image/png;base64,@blob@" alt="@noun@">
background: url(data:image/svg+xml;base64,@blob@) no-repeat;
<path d="@svg@"/>
cache key: @noun@:@md5@
cacheKey = `@noun@:${id}:@short@`
cache_key = f"@noun@:{tenant_id}:@n@"
primary_key = "@noun@_id"
primaryKey: ['@noun@Id', 'tenantId'],
foreign_key: @noun@_id
sort_key="created_at",
partition_key: "/@noun@Id"
keys = sorted(@noun@.keys())
key = (@noun@.id, @noun@.name)
key=lambda row: row.@noun@
for key, value in @noun@.items():
const key = `${@noun@.type}/${@noun@.id}`;
public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI@key64@ ana@laptop
Host key fingerprint is SHA256:@key64@
keyboard: pc105, layout: de
keyframes @noun@-spin { to { transform: rotate(360deg); } }
token_count=@n@ max_tokens=@n@
"usage": {"input_tokens": @n@, "output_tokens": @n@, "cache_read_input_tokens": @n@}
tokens per second: @n@
tokenMap = token_map
tokenizer = load_tokenizer("@noun@-v@n@")
token = next(tokens)
token = self.peek()
token = @verb@_token(@noun@)
token: Token = lexer.next_token()
tokenType: TokenType.Identifier,
tokens = @noun@.split(",")
if token.kind == "IDENT":
while (token != null) { token = reader.next(); }
let token = tokens[@n@];
self.token_store = token_store
csrf_token = get_token(request)
<input type="hidden" name="csrf_token" value="{{ csrf_token() }}">
token, err := @verb@Token(ctx, @noun@)
final Token token = stream.read();
next_page_token = response.next_page_token
pageToken: @noun@.nextPageToken,
password = getpass("Password for @noun@: ")
password = os.environ["@NOUN@_PASSWORD"]
password: process.env.@NOUN@_PASSWORD ?? '',
password = var.@noun@_password
password = data.vault_generic_secret.@noun@.data["password"]
password = random_password.@noun@.result
password: ${@NOUN@_PASSWORD:-}
password: ${env:@NOUN@_PASSWORD}
password: !Ref @Noun@Password
password: !vault |
password: "{{ lookup('env', '@NOUN@_PASSWORD') }}"
password: {{ .Values.@noun@.password | quote }}
PASSWORD=$(pass show @noun@/prod)
@NOUN@_TOKEN=$(gh auth token)
export @NOUN@_PASSWORD="$(cat /run/secrets/@noun@)"
@NOUN@_PASSWORD_FILE=/run/secrets/@noun@_password
secretName: @noun@-tls
secretKeyRef: {name: @noun@-db, key: password}
secret_id = "projects/@n@/secrets/@noun@/versions/latest"
valueFrom: secretKeyRef
secret = client.secrets.get("@noun@")
passwordField.setText("");
password_field = forms.CharField(widget=forms.PasswordInput)
password = models.CharField(max_length=128)
password VARCHAR(255) NOT NULL,
password_digest :string
password: z.string().min(@n@),
password: yup.string().required(t('@noun@.password')),
password: 'Passwort',
"password": "Mot de passe",
"forgotPassword": "Passwort vergessen?",
"login.password.label": "Contraseña",
password.label = Password
passwordHint=At least twelve characters, one of them a digit
errors.password: must be at least 12 characters
Password must contain a sign such as !, $ or %.
error: invalid password for user "@noun@"
FATAL: password authentication failed for user "@noun@"
Permission denied (publickey,password).
def @verb@_password(self, password: str) -> bool:
func (s *Store) @verb@Secret(ctx context.Context, secret string) error {
private String password;
String password = request.getParameter("password");
user.password = params[:password]
@password = password
$this->password = $password;
$password = $_POST['password'];
password = @noun@.password
passwd = pwd.getpwnam("@noun@")
self._password = @verb@_password(password)
assert password != other_password
expect(wrapper.find('#password').exists()).toBe(true)
document.querySelector('input[name="password"]')
git commit -m "Rotate the @noun@ token and its password"
feat(auth): keep the refresh token in the @noun@ store
TODO list: token refresh, password reset, key rotation
The secret of a good @noun@ is a clear name.
see https://example.org/docs/auth#token-@noun@
https://example.org/a/@path@?page=@n@&sort=name#section-@n@
https://@noun@.example.org:8443/@path@
git@github.com:acme/@noun@.git
ssh://git@git.example.org:2222/acme/@noun@.git
postgres://user:pass@localhost:5432/@noun@
postgresql://user:password@host:5432/db
mysql://root:root@localhost/@noun@_test
mongodb://username:password@localhost:27017/
https://user:pass@example.com/
redis://:password@localhost:6379/0
amqp://guest:guest@localhost:5672//
postgres://$DB_USER:$DB_PASSWORD@$DB_HOST/@noun@
postgres://${user}:${password}@${host}/@noun@
aws_access_key_id = AKIAIOSFODNN7EXAMPLE
AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE
aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
AKIAI44QH8DHBEXAMPLE
AWS_SECRET_ACCESS_KEY=your-secret-access-key
API_KEY=<paste your key here>
api_key: "xxxxxxxxxxxxxxxxxxxx"
OPENAI_API_KEY=sk-...
OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxx
GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
token: ghp_YOUR_TOKEN_HERE
Authorization: Bearer <access token>
Authorization: Bearer ${accessToken}
Authorization: Bearer eyJ...
password: changeme
password: "********"
password=<password>
secret=[REDACTED]
flask-sk-extension-@noun@-@slug@
risk-@noun@-sk-@slug@-handler
task-sk-@noun@-@noun@-@noun@-helper
npm i @acme/sk-@noun@-components-react-native
mask_@noun@_pat_@noun@_wildcard_expression
app.@chunk@.js
/static/js/main.@short@.chunk.js
!function(e,t){"object"==typeof exports?module.exports=t():e.@noun@=t()}(this,function(){return 1});
var a=function(e){return e.token||e.key||null},b={token:1,key:2,secret:3};
.@noun@-token__label--active{color:#@short@;padding:0 4px}
--color-@noun@-key: #1f6feb;
:root { --token-spacing: 4px; --key-width: 12rem; }
grid-template-areas: "@noun@ key token";
at @Noun@Service.@verb@Token (/srv/app/src/@noun@.ts:@n@:17)
  File "/srv/app/auth/password.py", line @n@, in @verb@_password
KeyError: '@noun@_token'
TypeError: Cannot read properties of undefined (reading 'accessToken')
pod/@slug@ 1/1 Running 0 @n@m
deployment.apps/@noun@-api-@chunk@ scaled
secret/@noun@-tls created
serviceaccount/@noun@-token-@short@ unchanged
NAME TYPE DATA AGE @noun@-token kubernetes.io/service-account-token 3 @n@d
arn:aws:secretsmanager:eu-west-1:123456789012:secret:@noun@-@chunk@
arn:aws:kms:eu-west-1:123456789012:key/@uuid@
kms_key_id = "@uuid@"
key_id: @short@
keyId=@uuid@
subscription: @uuid@
tenant_id = "@uuid@"
client_id = "@uuid@"
session_id=@uuid@ expired
test_@verb@_token_is_refreshed_after_@n@_seconds PASSED
tests/auth/test_password.py::test_@verb@_@noun@[secret-@n@] PASSED
==> Downloading https://ghcr.io/v2/acme/@noun@/blobs/sha256:@sha256@
Downloaded @noun@ v@ver@ (registry+https://github.com/rust-lang/crates.io-index)
Compiling @noun@ v@ver@ (/work/crates/@noun@)
objectVersion = 56; /* @upper@ in Sources */
-rw-r--r-- 1 root root @n@ Mar 11 08:14 secrets.example.yaml
drwx------ 2 ana ana 4096 Mar 11 08:14 .password-store
@epoch@ INFO auth @verb@ token for tenant @n@ took @n@ ms
level=info msg="token refreshed" expires_in=@n@ user=@noun@
{"level":"info","msg":"password changed","user_id":@n@}
{"token_type":"bearer","expires_in":@n@,"scope":"read:@noun@"}
"passwordPolicy": {"minLength": @n@, "requireDigits": true}
passwordMinLength: @n@
secretRotationDays = @n@
keyLength: 2048
token_ttl = "@n@h"
TOKEN_EXPIRY=@n@s
PASSWORD_RESET_TIMEOUT = 60 * 60 * @n@
auth: enabled
auth_backend = "django.contrib.auth.backends.ModelBackend"
AUTH_USER_MODEL = "@noun@.User"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
credentials: 'include',
credentials: "same-origin"
credentials = load_credentials(@noun@_path)
withCredentials: true
bearerFormat: JWT
securitySchemes: {apiKey: {type: apiKey, in: header, name: X-API-Key}}
name: X-API-Key
@n@ passed, @n@ failed, @n@ skipped in @n@.12s
compass: north, passenger: @noun@, bypass: true
monkey.patch(@noun@) turkey: roasted, donkey=@n@
pattern: ^[a-z0-9-]{3,63}$
path: /@path@ pathspec: src/**
patch: @sha1@
author: ana <ana@example.org>
authority=https://login.example.org/@uuid@
authored 3 days ago by @noun@
"""
_BLOCKS = r"""
const tokenMap = token_map
const @noun@Map = build@Noun@Map(tokenMap)
%%
    token = tokens.pop()
    return token.value
%%
password: str
@noun@: int
created_at: datetime
%%
    secret = @noun@.secret
    if secret is None:
        raise LookupError(f"no secret for {@noun@}")
%%
{
  "scripts": {"token": "node scripts/@verb@-token.js"},
  "version": "@ver@"
}
%%
self.password = password
self.@noun@ = @noun@
self.api_key = api_key
%%
variable "@noun@_password" {
  type      = string
  sensitive = true
}
%%
- name: @NOUN@_PASSWORD
  valueFrom:
    secretKeyRef:
      name: @noun@-db
      key: password
%%
@NOUN@_PASSWORD=
@NOUN@_HOST=db.internal
%%
password:
  min_length: @n@
  max_length: 128
%%
class @Noun@Token(Base):
    token = Column(String(64), unique=True)
    expires_at = Column(DateTime)
%%
@@ -@n@,7 +@n@,7 @@
-    token = old_@verb@(@noun@)
+    token = @verb@_token(@noun@)
%%
export interface @Noun@Credentials {
  password: string;
  apiKey?: string;
}
%%
    return { token, password, secret, key };
}
%%
environment:
  @NOUN@_PASSWORD: ${@NOUN@_PASSWORD:?set it}
  @NOUN@_TOKEN: ${@NOUN@_TOKEN}
"""


def texts(*, seed: int = SEED, each: int = 12) -> Iterator[str]:
    """Draw the batch: as many of each template, and none twice."""
    dice = random.Random(seed)
    sources = [*_TEXTS.strip("\n").splitlines(), *_BLOCKS.strip("\n").split("\n%%\n")]
    for source in sources:
        yield from sorted({filled(source, dice, MAKERS) for _ in range(each)})
