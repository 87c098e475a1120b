"""The words of which one stands in whatever is found, asked for before any rule is loaded.

Written by `make docs` from the rules, the names and the languages; a test keeps it true.
"""

# Pairs of characters, each with the words that are looked for where a text has the pair, and with a blank written as `^`. Where a
# text is taken apart into pairs, a word may begin with one or in the middle of one: it stands with a pair for either.
_TEXT = r"""
    ^","^",eap^" ^*,^*^,^*" ^-,^-b,^-p,^-t^,^-w,^-y^ ^/,^/p^ ^0,^0x ^<,^<( ^>,^on^> ^u,codice^usa,net^use
    ^y,as^your,confirm^your,is^your "^,"^" "0,"0x "d,"d" "k,"k" "p,"p" "q,"q" &k,&k= '0,'0x *^,^*^ *",^*" --,----
    -a,-auth,jfrog-art-api,secret-answer,x-apikey -b,^-b -c,sentry-cli -d,-data^ -f,--from-literal,-field,wi-fi -h,^-hp
    -i,log-in,secret-id,sess-id,session-id -k,^-k^,^-k=,certificate-key,network-key,set-key,ssh-keygen -l,--from-literal
    -m,-macopt -o,-oauth,log-on -p,^-p,put-parameter -s,-secrets,secret-set-value -t,^-t^,^-t=,-token,samba-tool
    -u,^-u^,--user,-u",-u' -v,-value^ -w,^-w -x,^-x^ -y,^-y^ .a,fs.azure
    .c,api.flock.com,betterstack.com,betteruptime.com,hooks.slack.com,integromat.com,make.com .f,open.feishu.cn
    .g,hooks.glip.com .i,maker.ifttt.com,nosnch.in .j,.jks .k,.kdb,.keystore .l,open.larksuite.com .n,.new(,pipedream.net
    .o,outlook.office.com .p,.p12 .r,bot.run(,client.run( .s,.secret,bot.start(,client.start(,connect.sid .t,.token .u,zoom.us
    .z,hooks.zapier.com //,:// /h,/hook /i,/incoming /p,^/p^,/p: /r,/rp^ /w,/webhook 05,poly1305 0x,^0x,"0x,'0x,:0x,=0x 25,:25
    28,rfc2898 2l,iqojb3jpz2lu 2s,com2sec 2t,l2tpd 30,poly1305 33,334 34,334 36,outlook.office365.com 39,bip39 4^,base64^--d
    46,:465 4:,base64: 58,:587 5},{md5},{smd5} 64,base64^--d,base64^-d,base64: 65,:465 87,:587 89,rfc2898 :^,u:^ :/,:// :0,:0x
    :2,:25 ::,:::,::new,hash:: :a,::add-mask:: :g,config:get :n,::new :t,auth:token <(,^<(,=<( <<,<<< <s,<setting =0,=0x =<,=<(
    ?^,cl?^api ?i,?ifr ?k,?k= ?o,has?o ?t,m?t^kh?u ?u,m?t^kh?u @t,@tcp( @u,@udp( _a,_auth,secret_answer,security_answer
    _b,simple_bind _g,_gitlab_session _h,_header _i,log_in,sess_id,session_id _k,_key _o,log_on _p,_pin,fastcgi_param^
    _s,_gitlab_session,create_superuser(,sql_servers _u,add_user(,create_user( a-,ipa-,samba-tool a=,-data=
    ab,database(,hooks.airtable.com,variable= ac,account,tacacs ad,_header,mariadb,racadm ae,aesgcm af,cassaforte,safe,telegraf(
    ag,garage ah,geheimzahl,pasahitz al,alarm,contrasinal,salasana,salt,unseal,wallet an,tan^,tan: ap,chap,imap,ldap ar,^arg^
    as,hasher,pasw at,gate au,-auth,_auth,auth=,authenticate,authentication,authenticator,authtok,auth{,masterauth,xauth
    av,chiave,clave,palavra-,travis aw,hooks.chime.aws,pawd ay,paypal az,fs.azure a},{sha} b3,iqojb3jpz2lu ba,basic
    bb,rabbitmqctl bc,bcp be,bearer bg,bgp bh,/webhook,webhook.office.com,webhook.site bi,bind(,combination,simple_bind
    bk,pbkdf2 bl,hooks.airtable.com,variable= bs,obscure^ bu,bugsnag(,bundle^config,bundle_ bw,bw^get c(,anthropic(
    c-,hc-ping.com ca,locator cc,accessor,account,sharedaccesskey cd,etcdctl ce,vercel cg,fastcgi_param^
    ch,attach,echo,schl,search( ci,cipher ck,locker,unlock cl,cle^api,client(,hcloud,rclone cm,cmd co,code,conda cp,bcp,tacplus
    cq,cqlsh
    cr,-secrets,.secret,cracked,createuser,cred,scratch,secret^answer,secret^set,secret_id,secretbox,secretid,secretkey,secrets.
    cs,analytics(,symmetricsecuritykey(,tacacs ct,connect^to^,connect(,construct(,selector cu,curl,rescue,securestring
    cy,weryfikacyjny d","d" d(,bind(,plaid( d-,::add-mask:: d5,{md5},{smd5} d=,sid= d_,add_user(
    da,-data^,-data=,addauth,conda,database(,datasource,ldap db,jdbc,mariadb,raddb,wandb dc,buildconfigfield
    dd,addauth,raddb,ssh-add,useradd dg,adgangskode,sendgrid( di,codice^di,codice^mono,diceware,redis
    dk,pidkey,presharedkey,sdk( dl,bundle^config dm,doveadm,racadm do,doctl,door,doveadm,pdo,urandom
    dp,"dp",expdp,freerdp,impdp,mdp dq,"dq" dr,hydra,sqlldr du,dump e(,configure(,engine(,pinecone(,typesense(,vonage(
    e-,certificate-key e.,betteruptime.com,make.com e3,outlook.office365.com e6,base64^-d e=,-value=,name=,signature= e>,name>
    e_,bundle_,create_user( ea,bearer eb,webhook.office.com,webhook.site ee,seed ef,define eg,integromat.com,register,segment(
    eh,placeholder ei,einmal ej,sejf el,-field,pinfield,selector em,element en,senha,senord eo,kodeord ep,pepper eq,sequelize
    es,hesl et,fetch(,reset- eu,createuser,neu ew,diceware ex,exec,winexe
    ey,entry^key,eyj,key1,key2,key=,key>,key[,keychain,keypad,keyring.,lment^key,serial^key f(,telegraf( f2,pbkdf2 fe,safe
    ff,coffre fi,^config^,config^get,config^host,define,potfile fl,api.flock.com fr,coffre,frase,freerdp,fromhex,sifr ft,ftp
    fu,fuerte,tofu^output fx,.pfx fy,identify,netlify g(,signedstring( g-,jfrog-art-api,log-in,log-on g.,hc-ping.com
    g:,config:get g=,sig= g_,log_in,log_on ga,adgangskode,engangskode,garage,gate gc,aesgcm ge,wget gi,engine(,login,register
    gl,glab,hooks.glip.com gm,pragma,segment( gn,sign-in,sign-on,sign_in,signedstring(,signin,signtool,signwith(
    go,argon2,digo^de,digos^de,logon,mongo gp,bgp,gpg gr,sendgrid( gs,engangskode,zugangsdaten
    gu,configuration(,configure^get,configure(,mailgun( gw,wagwoord gä,zugänge h^,xh^ h(,fetch(,search( h-,ssh-add h.,nosnch.in
    h:,auth:token,hash:: h=,auth= ha,chap hc,hcloud hl,geheimzahl,schl hm,hmac ho,echo hp,^-hp hr,anthropic(,phrase
    ht,authtok,http^,oathtool,wachtwoord hu,hurl hx,phx.gen h{,auth{ i","qi" i(,api(,openai( i-,wi-fi
    ia,akia,alias,asia,chiave,serial^key ic,authenticate,authentication,authenticator,basic,licen
    id,identifiant,identified,pidkey,sessid,sid= if,?ifr,identifiant,identified,identify,sifr,wif
    ig,digo^de,digos^de,sig=,signtool ik,apikey(,setapikey im,impacket in,init(,kinit ip,cipher,ipmitool,stripe,zip
    iq,usage^unique ir,nenosiri,wireless is,redis iu,radius iv,derive,priv ix,@unix( iz,authorization,initialize( jd,jdbc
    je,jelsz jf,sejf jk,.jks jw,jwt k^,^-k^ k","k" k(,sdk( k-,network-key k.,betterstack.com,hooks.slack.com,outlook.office.com
    k=,^-k=,&k=,?k= ka,kata^la,kata^sa,zaporka kd,.kdb ke,-token,.token,_key,entry^key,genkey
    ki,akia,cookie,kinit,octokit(,parking kk,networkkey ko,kodeord kt,okta,rdesktop l2,l2tpd l:,-protocol:,serial:^ l?,cl?^api
    l_,sql_servers la,clave,glab,kata^la,plaid(,wlan lc,sqlcl ld,placeholder lg,mailgun( li,alias,licen lm,lment^key,ntlm
    lo,geslo,haslo lp,sqlplus ls,coveralls lt,keyvault,result,salt lu,-value^,resvalue ly,lykilor lé,clé^api
    m.,pipedream.net,vm.,zoom.us m2,com2sec ma,einmal,hmac,imap,rman mb,combination,smb mc,nmcli md,cmd,mdp mh,fromhex
    mi,/incoming mm,community mn,mnemonic mo,mongo,mot^de,nexmo( mp,imp^,impacket mt,smtp mu,community my,mysql n^,^on^>
    n(,bot.run(,client.run(,configuration(,token( n-,session-id,sign-in,sign-on n.,open.feishu.cn,open.larksuite.com n:,tan:
    n=,token= n_,session_id,sign_in na,contrasinal,name=,name>,salasana ne,fernet,neu
    nf,^config^,config^get,config^host,configure^get,pinfield ng,ngrok nh,senha,unhexlify
    ni,@unix(,init(,mnemonic,sessionid,signin nk,genkey nl,unlock nm,nmcli,snmp
    nn,connect^to^,connect(,connect.sid,getconnection(,kennwort np,pininput nr,winrm ns,unseal nt,element nu,nuget,tunnussana
    nv,^env^,printenv,setenv^ nw,kennwort,signwith( ny,weryfikacyjny o(,nexmo(,twilio( o_,mosquitto_ oa,-oauth,oathtool
    ob,obscure^ oc,-protocol:,locator,locker od,code,codice^di,codice^mono og,login,logon
    ok,/hook,cookie,ngrok,octokit(,okta,token(,token= ol,parol oo,door,parool op,op^read,openai(,openssl,{noop}
    ot,bot(,mot^de,otp ox,secretbox oy,deployer oz,lozink p^,eap^",exp^,http^,imp^,op^read p","dp","p" p(,@tcp( p1,.p12 p3,bip39
    p:,/p: p_,pgp_sym pa,ipa-,parol,parool,wpa pc,rpcclient pd,expdp,impdp,pdo,pptpd pe,stripe pf,.pfx pg,gpg ph,phrase
    pi,_pin,api(,appid,cle^api,pinecone(,setapikey,tnsping pl,tacplus,{plain pm,ipmitool pn,vpn pp,appid,pepper,pptpd
    pr,pragma,tprv,xprv,yprv,zprv ps,https^,psk,psw pt,-macopt,crypt,slapta pu,pininput,puk,pusher(,stack^output p},{noop}
    q","dq","q" qc,rabbitmqctl qi,"qi" ql,cqlsh,isql,mysql,osql,sqlcl,sqlldr,sqlplus qu,mosquitto_,sequelize,usage^unique
    r(,create_superuser(,keyfor(,pusher( r-,putty-user-key-file r.,maker.ifttt.com
    ra,contrase,coveralls,cracked,frase,tochararray,urandom rc,datasource,rclone,vercel rd,senord,ssword re,cred rg,^arg^,argon2
    ri,derive,printenv,printf,priv,serial:^ rk,networkkey,parking rl,userlist rm,alarm,rman,terraform^output,usermod,winrm
    rn,fernet,username rp,/rp^,rpcclient rr,terraform^output,tochararray rt,cassaforte rv,tprv,xprv,yprv s(,analytics(
    s-,sess-id s?,has?o s_,sess_id sa,kata^sa sc,rescue,schtasks,scratch sd,zugangsdaten se,secret^set,seed
    sh,hasher,presharedkey,sharedaccesskey si,asia,nenosiri,sessid,sessionid sk,psk,rdesktop,schtasks
    sl,geslo,haslo,hesl,openssl,slapta sm,smb,smtp sn,bugsnag(,snmp so,tresor sp,keyspec sq,isql,osql ss,accessor,{ssha su,sudo
    sv,pasvorto,resvalue sw,answer^to,pasw,psw,secret^answer,security^answer,ssword,ssws sy,symmetrickey sz,jelsz
    t(,bot(,bot.start(,client(,client.start( t-,put-parameter,reset-,secret-answer,secret-id,set-key t=,^-t=
    t_,secret_answer,secret_id ta,tan^ tc,etcdctl,getconnection( tf,potfile,printf ti,secretid tk,secretkey
    tl,doctl,netlify,ntlm tn,tnsping tp,ftp,https^,otp,stack^output tr,contrase,tresor ts,secrets. tt,<setting,attach
    tu,setup^key,setuser,signature=,tunnussana tw,twilio(,twine,wachtwoord tx,setx^
    ty,events.pagerduty.com,security^answer,security-answer tz,pasahitz t},{cleartext} u^,^-u^,tofu^output u",-u" u',-u' u:,u:^
    uc,construct( ud,@udp(,sudo ue,-value=,fuerte ug,nuget ui,buildconfigfield uk,puk ul,result um,dump up,setup^key
    ur,curl,hurl,securestring us,--user,codice^usa,net^use,radius,setuser,useradd,userlist,usermod,username ut,masterauth
    v^,^env^,setenv^ va,keyvault,secret-set-value vi,travis vm,vm. vo,pasvorto,vonage( vp,vpn vr,palavra- w^,bw^get w(,.new(
    wa,wallet,wandb wd,pawd we,answer^to wg,wget wi,twine,wif,wireless wl,wlan wo,wagwoord wp,wpa ws,hooks.chime.aws,ssws wt,jwt
    x^,^-x^,setx^ x-,x-apikey x.,phx.gen xa,xauth xe,exec,winexe xh,xh^ xl,unhexlify xp,exp^ y(,apikey(,symmetricsecuritykey(
    y-,putty-user-key-file,security-answer,sentry-cli y.,events.pagerduty.com y1,key1 y2,key2 y=,key= y>,key> y[,key[
    y_,security_answer yc,keychain yd,hydra ye,deployer yf,keyfor( yg,ssh-keygen yj,eyj yk,lykilor ym,pgp_sym,symmetrickey
    yo,as^your,confirm^your,is^your yp,crypt,keypad,paypal,typesense( yr,keyring. ys,.keystore,keyspec
    za,authorization,hooks.zapier.com,zaporka ze,initialize( zi,lozink,zip zp,zprv {c,{cleartext} {p,{plain {s,{sha},{ssha
    än,zugänge é^,clé^api
"""
_ALL = "\n".join(_TEXT.split()).replace("^", " ").split("\n")
# Counted as the pairs of a text are.
_PAIRS = memoryview("".join([line[:2] for line in _ALL]).encode("latin-1")).cast("H").tolist()
BY_PAIR = dict(zip(_PAIRS, [line[3:] for line in _ALL], strict=True))
PAIRS = frozenset(BY_PAIR)
