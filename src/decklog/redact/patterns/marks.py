"""What tokens with a provider's mark have in them, in lower case, for a first look at a text."""

_TEXT = """
    ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ v1. glpat- gldt- glrt glcbt- glptt- glft- glagent- glimt- gloas-
    glsoat- glffct- gr1348941 _gitlab_s atbb atctt3x atatt3x gto_ azdo sgp_ akia asia abia acca a3t absk
    bedrock-api amzn.mws aiza ya29. 1//0 gocspx- 6lc 6ld 6le 6lf accountkey shared sig 7q~ 8q~ azse +ast
    acdb jqqj ltai akid ocid1. apikey aqvn t1. _v1_ lin_ scw hrku- cfat_ cfut_ cfk_ v1.0- vercel_ vcp_ vci_
    vca_ vcr_ vck_ nfp_ nfc_ nfo_ nfb_ fo1_ fm1 fm2_ rnd_ railway_ sbp_ sb_secret pscale_ napi_ turso_ dapi
    dkea dose ver:1 upstash pnu_ pnb_ sha256~ sk- hf_ api_org_ gsk_ xai- pplx- r8_ fw_ csk- nvapi- pcsk_
    lsv2_ ls__ tvly- fc- jina_ sk_ pa- e2b_ ak- as- flp_ co_api_ npm_ pypi- dckr_ rubygems_ cio oy2 akc ap
    cmvmd clojars_ x-apikey hex xox xapp- slack office.com webhook mfa. :aa sg. key- -us sib- re_ sk0 sk1
    sk2 sk3 sk4 sk5 sk6 sk7 sk8 sk9 ska skb skc skd ske skf ac0 ac1 ac2 ac3 ac4 ac5 ac6 ac7 ac8 ac9 aca acb
    acc acd ace acf zoom.us live_ test_ apa91b rk_ pk_ ek_ whsec_ eaa sq0 access_token$ paypal shp rzp_
    flwseck flwpubk access- organizations/ aqe ezak eztk shippo_ duffel_ glc_ glsa_ nrak nrii nrjs nriq nrra
    nraa nrbr nrsp nral sntry sentry phx_ phs_ phc_ dt0 hca hcb hcx pylf_ sdk- api- mob- secret- console-
    dd- xaat- xapt- bstk hvs. hvb. hvr. s. b. atlasv1 pul- dp. ops_eyj a3- age-secret st. 00 tskey- sc_ ext_
    scauth_ authress_ ngrok privatekey preshared ccip bkua_ bkct_ bkat_ bkaj_ sqp_ squ_ sqa_ sqb_ snyk_
    codecov 11 semgrep scalr ico- endr+ expo pmak- pmat- rdme_ rootly_ dvc_ unkey_ vtwn_ tr_ signkey- _auth
    ntn_ secret_ pat fig cfpat- sk.eyj pk.eyj tk.eyj aaaaaaaaaaaaaaaaaaaa igq wpl_ap act. sl. cflt tfp_
    zapier ifttt fio-u- skprod sb- _mmk s-s4t2 rgapi- monday sat. hmac= pak_ pat_ key_ tok_ token_ api_ eyj
    xprv yprv zprv tprv -----begin ----begin aws4 bearer basic digest argon2 bcrypt pbkdf2 scrypt
"""
MARKS = tuple(_TEXT.split())
