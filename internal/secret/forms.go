package secret

import "regexp"

// A Form is the form of a vendor's keys. Each begins with fixed characters.
type Form struct {
	Begin  string // the fixed characters
	rest   string // what follows, as a regular expression
	Issuer string // the vendor of language models that issues it; empty for any other
	Cloud  bool   // it is for this vendor only; keys of others are accepted by gateways of any kind
}

// Forms are the forms of keys that are known: the one table for redaction, for the search index, and for the rule that no vendor gets
// a key of another. The vendors document them. It need not be complete: values are also found by their label.
var Forms = []Form{
	// Vendors of language models.
	{"sk-ant-", `[A-Za-z0-9_-]{8,}`, "Anthropic", false},
	{"sk-proj-", `[A-Za-z0-9_-]{8,}`, "OpenAI", false},
	{"sk-svcacct-", `[A-Za-z0-9_-]{8,}`, "OpenAI", false},
	{"sk-admin-", `[A-Za-z0-9_-]{8,}`, "OpenAI", false},
	{"sk-or-", `[A-Za-z0-9_-]{13,}`, "OpenRouter", false},
	{"sk-", `[A-Za-z0-9_-]{16,}`, "", false}, // of OpenAI, DeepSeek, Moonshot, LiteLLM and others
	{"ya29.", `[A-Za-z0-9_-]{20,}`, "Google", true},
	{"AIza", `[0-9A-Za-z_-]{30,}`, "Google", false},
	{"AKIA", `[0-9A-Z]{16}`, "Amazon", true},
	{"ASIA", `[0-9A-Z]{16}`, "Amazon", true},
	{"ABSK", `[A-Za-z0-9+/_-]{20,}={0,2}`, "Amazon", false},
	{"bedrock-api-key-", `[A-Za-z0-9+/_-]{10,}={0,2}`, "Amazon", false},
	{"gsk_", `[A-Za-z0-9]{20,}`, "Groq", false},
	{"xai-", `[A-Za-z0-9]{20,}`, "xAI", false},
	{"pplx-", `[A-Za-z0-9]{20,}`, "Perplexity", false},
	{"hf_", `[A-Za-z0-9]{20,}`, "Hugging Face", false},
	{"nvapi-", `[A-Za-z0-9_-]{20,}`, "NVIDIA", false},
	{"csk-", `[A-Za-z0-9]{20,}`, "Cerebras", false},
	{"fw_", `[A-Za-z0-9]{20,}`, "Fireworks", false},
	{"tgp_v1_", `[A-Za-z0-9_-]{20,}`, "Together", false},
	{"ghp_", `[A-Za-z0-9]{20,}`, "GitHub", false},
	{"gho_", `[A-Za-z0-9]{20,}`, "GitHub", false},
	{"ghu_", `[A-Za-z0-9]{20,}`, "GitHub", false},
	{"ghs_", `[A-Za-z0-9]{20,}`, "GitHub", false},
	{"ghr_", `[A-Za-z0-9]{20,}`, "GitHub", false},
	{"github_pat_", `[A-Za-z0-9_]{20,}`, "GitHub", false},
	{"tid=", `[0-9a-f]{16,}(?:;[a-z0-9-]+=[^;\s"']*)*`, "GitHub", false}, // Copilot
	{"r8_", `[A-Za-z0-9]{20,}`, "", false},
	{"jina_", `[A-Za-z0-9_-]{20,}`, "", false},
	{"pcsk_", `[A-Za-z0-9_]{20,}`, "", false},
	{"lsv2_", `(?:pt|sk)_[A-Za-z0-9_]{20,}`, "", false},
	{"tvly-", `[A-Za-z0-9-]{16,}`, "", false},
	{"fc-", `[0-9a-f]{32}`, "", false},
	{"esecret_", `[A-Za-z0-9]{20,}`, "", false},

	// Anything else that agents have at hand.
	{"eyJ", `[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`, "", false}, // a token of JSON
	{"xoxa-", `[A-Za-z0-9-]{10,}`, "", false}, {"xoxb-", `[A-Za-z0-9-]{10,}`, "", false}, {"xoxp-", `[A-Za-z0-9-]{10,}`, "", false},
	{"xoxr-", `[A-Za-z0-9-]{10,}`, "", false}, {"xoxs-", `[A-Za-z0-9-]{10,}`, "", false}, {"xoxe", `[.-][A-Za-z0-9.-]{10,}`, "", false},
	{"xapp-", `[A-Za-z0-9-]{10,}`, "", false}, {"hooks.slack.com/", `(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}`, "", false},
	{"discord.com/api/webhooks/", `\d+/[A-Za-z0-9_-]{20,}`, "", false},
	{"glpat-", `[A-Za-z0-9_-]{16,}`, "", false}, {"glptt-", `[A-Za-z0-9_-]{16,}`, "", false}, {"gldt-", `[A-Za-z0-9_-]{16,}`, "", false},
	{"glrt-", `[A-Za-z0-9_-]{16,}`, "", false}, {"glcbt-", `[A-Za-z0-9_-]{16,}`, "", false}, {"npm_", `[A-Za-z0-9]{20,}`, "", false},
	{"pypi-", `[A-Za-z0-9_-]{16,}`, "", false}, {"rubygems_", `[a-f0-9]{40,}`, "", false}, {"dckr_pat_", `[A-Za-z0-9_-]{20,}`, "", false},
	{"oy2", `[a-z0-9]{43}`, "", false}, {"SG.", `[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`, "", false}, {"key-", `[0-9a-f]{32}`, "", false},
	{"sk_live_", `[A-Za-z0-9]{16,}`, "", false}, {"sk_test_", `[A-Za-z0-9]{16,}`, "", false}, {"rk_live_", `[A-Za-z0-9]{16,}`, "", false},
	{"rk_test_", `[A-Za-z0-9]{16,}`, "", false}, {"whsec_", `[A-Za-z0-9+/=]{16,}`, "", false}, {"sq0", `[a-z]{3}-[A-Za-z0-9_-]{20,}`, "", false},
	{"EAAA", `[A-Za-z0-9_-]{40,}`, "", false}, {"AGE-SECRET-KEY-1", `[0-9A-Z]{40,}`, "", false}, {"GOCSPX-", `[A-Za-z0-9_-]{20,}`, "", false},
	{"1//0", `[A-Za-z0-9_-]{30,}`, "", false}, {"dop_v1_", `[a-f0-9]{40,}`, "", false}, {"doo_v1_", `[a-f0-9]{40,}`, "", false},
	{"dor_v1_", `[a-f0-9]{40,}`, "", false}, {"shpat_", `[a-fA-F0-9]{20,}`, "", false}, {"shpca_", `[a-fA-F0-9]{20,}`, "", false},
	{"shppa_", `[a-fA-F0-9]{20,}`, "", false}, {"shpss_", `[a-fA-F0-9]{20,}`, "", false}, {"hvs.", `[A-Za-z0-9_-]{20,}`, "", false},
	{"hvb.", `[A-Za-z0-9_-]{20,}`, "", false}, {"hvr.", `[A-Za-z0-9_-]{20,}`, "", false}, {"ATATT3", `[A-Za-z0-9_=-]{20,}`, "", false},
	{"ATCTT3", `[A-Za-z0-9_=-]{20,}`, "", false}, {"lin_api_", `[A-Za-z0-9]{20,}`, "", false}, {"ntn_", `[A-Za-z0-9]{20,}`, "", false},
	{"figd_", `[A-Za-z0-9_-]{20,}`, "", false}, {"figo_", `[A-Za-z0-9_-]{20,}`, "", false}, {"figu_", `[A-Za-z0-9_-]{20,}`, "", false},
	{"figr_", `[A-Za-z0-9_-]{20,}`, "", false}, {"dapi", `[a-f0-9]{32}`, "", false}, {"sntrys_", `[A-Za-z0-9+/=_-]{20,}`, "", false},
	{"sntryu_", `[A-Za-z0-9+/=_-]{20,}`, "", false}, {"glsa_", `[A-Za-z0-9_]{20,}`, "", false}, {"glc_", `[A-Za-z0-9+/=_-]{20,}`, "", false},
	{"PMAK-", `[A-Za-z0-9-]{20,}`, "", false}, {"phc_", `[A-Za-z0-9]{20,}`, "", false}, {"phx_", `[A-Za-z0-9]{20,}`, "", false},
	{"NRAK-", `[A-Za-z0-9]{20,}`, "", false}, {"NRJS-", `[a-f0-9]{19,}`, "", false}, {"sbp_", `[a-f0-9]{32,}`, "", false},
	{"sb_secret_", `[A-Za-z0-9_-]{20,}`, "", false}, {"nfp_", `[A-Za-z0-9]{20,}`, "", false}, {"fo1_", `[A-Za-z0-9_-]{20,}`, "", false},
	{"fm2_", `[A-Za-z0-9+/=_-]{20,}`, "", false}, {"dp.", `(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{20,}`, "", false},
	{"vcp_", `[A-Za-z0-9]{20,}`, "", false}, {"HRKU-", `[A-Za-z0-9_-]{20,}`, "", false}, {"pul-", `[a-f0-9]{40}`, "", false},
	{"bkua_", `[a-z0-9]{40}`, "", false}, {"CCIPAT_", `[A-Za-z0-9_]{20,}`, "", false}, {"pscale_", `(?:tkn|oauth|pw)_[A-Za-z0-9_.-]{20,}`, "", false},
	{"re_", `[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}`, "", false}, {"patk", `[A-Za-z0-9]{10}\.[a-f0-9]{64}`, "", false},
	{"ops_eyJ", `[A-Za-z0-9_-]{40,}`, "", false}, {"LTAI", `[A-Za-z0-9]{16,}`, "", false}, {"AKID", `[A-Za-z0-9]{32}`, "", false},
	{"sgp_", `[A-Za-z0-9_]{40,}`, "", false}, {"CFPAT-", `[A-Za-z0-9_-]{40,}`, "", false}, {"xkeysib-", `[a-f0-9-]{40,}`, "", false},
	{"$2a$", `\d\d\$[./A-Za-z0-9]{53}`, "", false}, {"$2b$", `\d\d\$[./A-Za-z0-9]{53}`, "", false}, {"$2y$", `\d\d\$[./A-Za-z0-9]{53}`, "", false},
	{"X-Amz-Signature=", `[0-9a-fA-F]{32,}`, "", false}, {"X-Amz-Security-Token=", `[A-Za-z0-9%/+=_-]{20,}`, "", false},
	{"sig=", `[A-Za-z0-9%/+=_-]{30,}`, "", false}, // a shared access signature of Azure
}

// unfixed are forms that begin with nothing fixed: tokens of Discord and Telegram, secrets of Microsoft Entra, keys of Azure's storage
// and of Z.ai.
const unfixed = `[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}|\d{8,10}:AA[A-Za-z0-9_-]{33}|` +
	`[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}|[A-Za-z0-9+/]{86}==|[0-9a-f]{32}\.[A-Za-z0-9]{16}\b`

func (f *Form) expression() string { return regexp.QuoteMeta(f.Begin) + f.rest }
