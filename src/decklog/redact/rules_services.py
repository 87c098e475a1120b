"""Tokens of services a project talks to: messages, payments, monitoring, vaults, builds, content."""

from decklog.redact.rules import Rule, rule

MESSAGES: tuple[Rule, ...] = (
    rule("slack-token", "xox", r"xox[abceoprsd](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),
    rule("slack-app-token", "xapp-", r"xapp-[A-Za-z0-9-]{16,}"),
    rule(
        "slack-webhook",
        "hooks.slack.com",
        r"(?:services|workflows|triggers)/[A-Za-z0-9_/+-]{20,}",
        keep=r"hooks\.slack\.com/",
    ),
    rule("teams-webhook", "webhook.office.com", r"[\w@/-]{30,}", keep=r"webhook\.office\.com/webhookb2/"),
    rule(
        "discord-webhook", "/api/webhooks/", r"\d{10,}/[\w-]{30,}", keep=r"discord(?:app)?\.com/api/webhooks/"
    ),
    rule("sendgrid-key", "sg.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    rule("mailgun-key", "key- pubkey-", r"(?:pub)?key-[0-9a-f]{32}"),
    rule("brevo-key", "xkeysib- xsmtpsib-", r"x(?:keys|smtps)ib-[0-9a-f]{20,}-[A-Za-z0-9]{10,}"),
    rule("resend-key", "re_", r"re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{20,}|re_[A-Za-z0-9]{24,}", random=True),
    rule("twilio-key", "sk", r"SK[0-9a-f]{32}\b"),
    rule("zoom-webhook", "zoom.us", r"[\w-]{20,}", keep=r"inbots\.zoom\.us/incoming/hook/"),
    rule("messagebird-key", "live_ test_", r"(?:live|test)_[A-Za-z0-9]{25}\b", random=True),
    rule("knock-key", "sk_test_ sk_live_", r"sk_(?:test|live)_[\w-]{20,}"),
)

PAYMENTS: tuple[Rule, ...] = (
    rule("stripe-key", "sk_ rk_ pk_ ek_", r"(?:sk|rk|pk|ek)_(?:live|test|prod)_[A-Za-z0-9_]{10,}"),
    rule("stripe-webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{16,}"),
    rule("square-token", "eaaa sq0", r"(?:EAAA[\w-]{40,}|sq0[a-z]{3}-[\w-]{20,})"),
    rule(
        "paypal-token", "access_token$", r"access_token\$(?:production|sandbox)\$[a-z0-9]{10,}\$[0-9a-f]{32}"
    ),
    rule(
        "paypal-client-secret",
        "paypal",
        r"E[A-Za-z0-9_-]{79}\b",
        keep=r"(?i:paypal[\w .-]{0,20}secret[\"':= ]{1,4})",
    ),
    rule("shopify-token", "shp", r"shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{20,}"),
    rule("razorpay-key", "rzp_", r"rzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    rule("flutterwave-key", "flwseck flwpubk", r"FLW(?:SECK|PUBK)(?:_TEST|_LIVE)?-[\w-]{12,}"),
    rule("plaid-token", "access-", r"access-(?:sandbox|development|production)-[0-9a-f-]{36}"),
    rule("coinbase-key", "organizations/", r"organizations/[0-9a-f-]{36}/apiKeys/[0-9a-f-]{36}"),
    rule("lob-key", "_pub_ live_ test_", r"(?:live|test)_(?:pub_)?[0-9a-f]{35}\b"),
    rule("adyen-key", "aqe", r"AQE[a-z][A-Za-z0-9+/=.-]{40,}", random=True),
    rule("checkout-key", "sk_", r"sk_(?:sbox_)?[a-z0-9]{26,}[*#$=]?", random=True),
    rule("easypost-key", "ezak eztk", r"EZ[AT]K[A-Za-z0-9]{50,}"),
    rule("shippo-token", "shippo_", r"shippo_(?:live|test)_[0-9a-f]{40}"),
    rule("duffel-token", "duffel_", r"duffel_(?:test|live)_[\w=-]{40,}"),
)

MONITORING: tuple[Rule, ...] = (
    rule("grafana-token", "glc_ glsa_ eyjr", r"glc_[A-Za-z0-9+/=]{20,}|glsa_[A-Za-z0-9]{20,}_[0-9A-Fa-f]{8}"),
    rule(
        "new-relic-key",
        "nrak- nrii- nrjs- nrra- nriq- nraa- nrbr- nrsp-",
        r"NR(?:AK|II|JS|IQ|RA|AA|BR|SP)-[A-Za-z0-9_-]{18,}",
    ),
    rule("sentry-token", "sntry", r"sntry[su]_[\w+/=-]{30,}|sntrys_eyJ[\w+/=-]{20,}"),
    rule("posthog-key", "phx_ phc_ phs_", r"ph[xs]_[A-Za-z0-9]{30,}|phc_[A-Za-z0-9]{30,}"),
    rule("dynatrace-token", "dt0", r"dt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    rule("honeycomb-key", "hc", r"hc[abx](?:ik|lk|mk)_[a-z0-9]{20,}"),
    rule("logfire-token", "pylf_", r"pylf_v\d_[a-z]{2,}_\w{20,}"),
    rule(
        "launchdarkly-key",
        "sdk- api- mob-",
        r"(?:sdk|api|mob)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    ),
    rule("statsig-key", "secret- console-", r"(?:secret|console)-[A-Za-z0-9]{40,}"),
    rule("pagerduty-key", "token=", r"[\w+-]{20,32}", keep=r"(?i:Token token=)"),
    rule("axiom-token", "xaat- xapt-", r"xa(?:at|pt)-[0-9a-f-]{36}"),
    rule("better-stack-token", "bstk", r"bstk_[A-Za-z0-9]{20,}"),
)

VAULTS: tuple[Rule, ...] = (
    rule("vault-token", "hvs. hvb. hvr. s. b.", r"hv[sbr]\.[\w-]{20,}|[sb]\.[A-Za-z0-9]{24}\b", random=True),
    rule("pulumi-token", "pul-", r"pul-[0-9a-f]{40}"),
    rule("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    rule("1password-token", "ops_eyj a3-", r"ops_eyJ[\w+/=-]{40,}|A3-[A-Z0-9]{6}-[A-Z0-9-]{24,}"),
    rule(
        "age-key", "age-secret-key-", r"(?i:AGE-SECRET-KEY-(?:PQ-)?1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{40,})"
    ),
    rule("infisical-token", "st.", r"st\.[0-9a-f-]{24,36}\.[0-9a-f]{32}\.[0-9a-f]{32}"),
    rule(
        "okta-token",
        "ssws okta",
        r"00[A-Za-z0-9_-]{40}\b",
        keep=r"(?i:(?:SSWS |okta[\w .-]{0,20}[\"':= ]{1,4}))",
    ),
    rule("tailscale-key", "tskey-", r"tskey-[a-z]+-[A-Za-z0-9-]{16,}"),
    rule("teleport-token", "join-token", r"[0-9a-f]{32}", keep=r"--join-token[= ]", glued=True),
    rule("clerk-key", "sk_live_ sk_test_", r"sk_(?:live|test)_[A-Za-z0-9]{20,}"),
    rule("workos-key", "sk_", r"sk_[A-Za-z0-9_]{24,}", random=True),
    rule("stytch-secret", "secret-test- secret-live-", r"secret-(?:test|live)-[\w=-]{20,}"),
    rule(
        "authress-key",
        "sc_ ext_ scauth_ authress_",
        r"(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[a-z0-9+/_=-]{30,120}",
    ),
    rule(
        "ngrok-key",
        "ngrok",
        r"[\w-]{40,}",
        keep=r"(?i:ngrok[\w .-]{0,30}(?:authtoken|token|key)[\"':= ]{1,4})",
    ),
    rule(
        "wireguard-key",
        "privatekey presharedkey",
        r"[A-Za-z0-9+/]{43}=",
        keep=r"(?i:(?:PrivateKey|PresharedKey)\s*=\s*)",
    ),
)

BUILDS: tuple[Rule, ...] = (
    rule("circleci-token", "ccipat_ ccipr", r"CCIP(?:AT|RJ)_[A-Za-z0-9]{20,}_[0-9a-f]{40}"),
    rule("buildkite-token", "bkua_ bkct_ bkat_ bkaj_", r"bk(?:ua|ct|at|aj)_[A-Za-z0-9]{20,}"),
    rule("sonar-token", "sqp_ squ_ sqa_ sqb_", r"sq[abpu]_[0-9a-f]{40}"),
    rule("snyk-token", "snyk_", r"snyk_(?:uat|sat|[a-z]+)[._][\w.-]{20,}"),
    rule("octopus-key", "api-", r"API-[A-Z0-9]{25,31}\b", random=True),
    rule("infracost-key", "ico-", r"ico-[A-Za-z0-9]{32}"),
    rule("endor-key", "endr+", r"endr\+[\w+-]{16,}"),
    rule("postman-key", "pmak- pmat-", r"PM(?:AK|AT)-[A-Za-z0-9-]{20,}"),
    rule("readme-key", "rdme_", r"rdme_[a-z0-9]{60,}"),
    rule("rootly-key", "rootly_", r"rootly_[0-9a-f]{40,}"),
    rule("devcycle-key", "dvc_", r"dvc_(?:server|mobile|client)_[\w]{20,}"),
    rule("unkey-key", "unkey_", r"unkey_[A-Za-z0-9]{16,}", random=True),
    rule("val-town-token", "vtwn_", r"vtwn_[A-Za-z0-9]{16,}"),
    rule("trigger-key", "tr_", r"tr_(?:dev|prod|stg|pat)_[A-Za-z0-9]{16,}"),
    rule("inngest-key", "signkey-", r"signkey-(?:prod|test|branch|dev)-[0-9a-f]{32,}"),
    rule(
        "npm-registry-auth",
        "_auth",
        r"[\w+/=-]{12,}",
        keep=r"(?m:(?:^|[\s:/])_auth\s*=\s*[\"']?)",
        random=True,
        glued=True,
    ),
)

CONTENT: tuple[Rule, ...] = (
    rule("linear-key", "lin_", r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{20,}"),
    rule("notion-token", "ntn_ secret_", r"ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{43}\b"),
    rule("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{40,}"),
    rule("figma-token", "figd_ figu_ figo_ figor_ figur_", r"fig(?:d|u|o|or|ur)_[\w-]{20,}"),
    rule("contentful-token", "cfpat-", r"CFPAT-[\w-]{30,}"),
    rule("mapbox-token", "sk.eyj pk.eyj tk.eyj", r"[spt]k\.eyJ[\w-]{20,}\.[\w-]{16,}"),
    rule("facebook-token", "eaa", r"EAA[A-Za-z0-9]{30,}", random=True),
    rule("twitter-bearer", "aaaaaaaaaaaaaaaaaaaa", r"A{20,}[A-Za-z0-9%]{30,}"),
    rule("instagram-token", "igq", r"IGQ[\w-]{60,}"),
    rule("linkedin-token", "wpl_ap", r"WPL_AP\d\.[\w.+=-]{12,}"),
    rule("tiktok-token", "act.", r"act\.[A-Za-z0-9!*.-]{40,}", random=True),
    rule("dropbox-token", "sl.", r"sl\.(?:u\.)?[\w-]{60,}"),
    rule("confluent-secret", "cflt", r"cflt[A-Za-z0-9+/]{58,}"),
    rule("typeform-token", "tfp_", r"tfp_[\w.=-]{30,}"),
    rule("hubspot-token", "pat-", r"pat-(?:na|eu|ap)\d-[0-9a-f-]{36}"),
    rule("zapier-webhook", "hooks.zapier.com", r"\d+/\w{5,}", keep=r"hooks\.zapier\.com/hooks/catch/"),
    rule("ifttt-key", "maker.ifttt.com", r"[\w-]{20,}", keep=r"maker\.ifttt\.com/[\w/{}-]*/key/"),
    rule("frame-io-token", "fio-u-", r"fio-u-[\w=-]{40,}"),
    rule("sanity-token", "sk", r"sk[A-Za-z0-9]{80,}"),
    rule("storyblok-token", "sb-", r"sb-[A-Za-z0-9]{30,}", random=True),
    rule("intra42-secret", "s-s4t2", r"s-s4t2(?:ud|af)-[0-9a-f]{64}"),
    rule("riot-key", "rgapi-", r"RGAPI-[0-9a-f-]{36}"),
    rule("harness-token", "pat. sat.", r"(?:pat|sat)\.[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}"),
    rule(
        "prefixed-key",
        "pak_ pat_ key_ tok_ secret_ token_ api_",
        r"(?:pak|pat|key|tok|secret|token|api)_[A-Za-z0-9]{24,}",
        random=True,
    ),
)
