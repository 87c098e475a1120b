"""The words of which one stands in whatever a rule finds by its surroundings, asked for before any rule is loaded."""

# Without those that are part of any text: where a rule has one of them, more is asked of the text.
_COMMON_TEXT = """
    " $ ' ( * - -g -k -l -n -p -t -u -x -y 0x 7z : :// ={ > ac account add auth backup basic begin box client cmd command
    config conn connect cred default dump eap exp expect false field g- hash host http ike imp is k= key keys mount name
    net neu new pass pic pin priv protocol rar recovery save secret secrets security seed session set su token true u:
    user value was words xh your zip {
"""
COMMON = frozenset(_COMMON_TEXT.split())
# A word that has another one of them in it is left out.
_KEYWORDS_TEXT = """
    "d" "dp" "dq" "k" "p" "q" "qi" ---- --from-literal --user -auth -macopt -oauth -secrets -token .jks .kdb .keystore
    .logon .new( .p12 .pfx .secret .token /hook /incoming /webhook 334 :25 :465 :587 ::: ::add-mask:: ::new <( <<<
    <setting ]: _auth _gitlab_session _key _pin _pw accessor accountkey add_user( addauth adminpw aesgcm akia alias
    analytics( anthropic( api( api.flock.com apikey( appid argon2 asia asscode assword attach auth-pass auth-user-pass
    auth:token auth= authenticate( authentication authenticator authorization authpw authtok auth{ base.decode base64:
    basic( basicauth( bcp bearer betterstack.com betteruptime.com bgp bind( bindpw bip39 bot( bot.run( bot.start(
    bugsnag( buildconfigfield bundle_ certificate-key checkpw chiave cipher clave client( client.run( client.start( code=
    com2sec combination community conda configuration( configure( connect( construct( cookie cqlsh cracked
    create_account( create_superuser( create_user( createaccount( createuser credential crypt curl database( define
    deployer derive doveadm echo element etcdctl events.pagerduty.com exec expdp eyj fernet fetch( freerdp fs.azure
    getconnection( gpg hc-ping.com hmac hooks.airtable.com hooks.chime.aws hooks.glip.com hooks.slack.com
    hooks.zapier.com http-basic hurl hydra identified identify imap_open( impacket impdp init( initialize( integromat.com
    ipa- ipmitool iqojb3jpz2lu isql jdbc:oracle jfrog-art-api jwt. jwt:: jwt= key= key> keychain keyfor( keyring. keyspec
    kinit l2tpd ldap lftp locator log_in( login logon( mailgun( make.com maker.ifttt.com mariadb masterauth mnemonic
    mongo mosquitto_ mysql name= name> ncftp network-key networkkey nexmo( ngrok nmcli nosnch.in ntlm oathtool octokit(
    okta open.feishu.cn open.larksuite.com openai( openssl osql otp outlook.office.com outlook.office365.com pass: passw
    paypal pbkdf2 pdo( pgp_sym phrase pidkey pinecone( pipedream.net placeholder plaid( poly1305 potfile pptpd
    presharedkey printf private- privatekey privkey psk pusher( putty-user-key-file pwd rabbitmqctl racadm raddb radius
    rclone rdesktop redis register replpw requirepass rescue reset- resvalue rfc2898 rman rpcclient salt samba-tool schl
    schtasks scratch sdk( search( secret-id secret-set-value secret::encoded secret_id secretbox secretid secretkey
    secrets. securestring segment( selector sendgrid( set-key setapikey setuser sharedaccesskey sid= sig= sign_in(
    signature= signedstring( signin( signingkey signjwt( signtool signwith( simple_bind smb smtp.start( snmp sql_servers
    sqlcl sqlcmd sqlldr sqlplus ssh-add ssh-keygen sshpass ssws stripe( sudo symmetrickey symmetricsecuritykey( tacacs
    tacplus telegraf( tnsping token( token= tprv twilio( twine typesense( unlock unseal useradd userlist usermod username
    userpw variable= vm. vonage( wallet wandb webhook.office.com webhook.site wget wif winexe winrm x-apikey xauth xprv
    yprv zoom.us zprv {md5} {sha} {smd5} {ssha {{
"""
KEYWORDS = tuple(_KEYWORDS_TEXT.split())
