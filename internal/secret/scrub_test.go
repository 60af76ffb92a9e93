package secret_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/secret"
)

// keys returns a key of each kind, made of random characters.
func keys() map[string]string {
	r := rand.New(rand.NewPCG(7, 7))
	of := func(alphabet string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	const (
		hex   = "0123456789abcdef"
		small = "abcdefghijklmnopqrstuvwxyz0123456789"
		big   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		all   = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		wide  = all + "-_"
		b64   = all + "+/"
	)
	return map[string]string{
		"Anthropic": "sk-ant-api03-" + of(wide, 93), "OpenAI project": "sk-proj-" + of(wide, 120), "OpenAI": "sk-" + of(all, 48),
		"OpenRouter": "sk-or-v1-" + of(hex, 64), "Google": "AIza" + of(wide, 35), "Google OAuth": "ya29." + of(wide, 80),
		"Google client": "GOCSPX-" + of(wide, 28), "Bedrock": "ABSK" + of(b64, 128) + "==", "Bedrock short": "bedrock-api-key-" + of(b64, 60),
		"Groq": "gsk_" + of(all, 52), "xAI": "xai-" + of(all, 80), "Perplexity": "pplx-" + of(all, 48), "Hugging Face": "hf_" + of(all, 34),
		"NVIDIA": "nvapi-" + of(wide, 64), "Cerebras": "csk-" + of(small, 48), "Fireworks": "fw_" + of(all, 22), "Together": "tgp_v1_" + of(wide, 43),
		"Copilot": "tid=" + of(hex, 32) + ";exp=1764000000;sku=copilot_for_business;proxy-ep=proxy.example", "GitHub": "ghp_" + of(all, 36),
		"GitHub fine": "github_pat_" + of(all, 22) + "_" + of(all, 59), "GitLab": "glpat-" + of(wide, 20), "Slack bot": "xoxb-" + of("0123456789", 12) + "-" + of(all, 24),
		"Slack webhook": "https://hooks.slack.com/services/T" + of(big, 8) + "/B" + of(big, 8) + "/" + of(all, 24),
		"Discord":       "MTIzNDU2Nzg5MDEyMzQ1Njc4OT" + "." + of(all, 6) + "." + of(wide, 38), "Telegram": of("123456789", 10) + ":AA" + of(wide, 33),
		"Stripe": "sk_live_" + of(all, 24), "Square": "sq0atp-" + of(wide, 22), "New Relic": "NRAK-" + of(big, 27), "Supabase": "sbp_" + of(hex, 40),
		"Netlify": "nfp_" + of(all, 36), "Fly": "fo1_" + of(wide, 43), "Doppler": "dp.pt." + of(all, 43), "Entra secret": of(all, 3) + "8Q~" + of(all, 34),
		"Azure storage": of(b64, 86) + "==", "Z.ai": of(hex, 32) + "." + of(all, 16), "bcrypt": "$2b$12$" + of(all, 53), "AWS ID": "AKIA" + of(big, 16),
		"AWS secret": of(all, 12) + "/K7x" + of(b64, 24), "JSON token": "eyJ" + of(all, 30) + "." + of(all, 60) + "." + of(wide, 43), "npm": "npm_" + of(all, 36),
		"PyPI": "pypi-" + of(wide, 150), "SendGrid": "SG." + of(wide, 22) + "." + of(wide, 43), "Databricks": "dapi" + of(hex, 32),
		"Airtable": "pat" + of(all, 14) + "." + of(hex, 64), "Dynatrace": "dt0c01." + of(big, 24) + "." + of(big, 64), "Linear OAuth": "lin_oauth_" + of(hex, 64),
		"PayPal": "access_token$production$" + of(small, 16) + "$" + of(hex, 32), "Infisical": "st." + of(hex, 24) + "." + of(hex, 32) + "." + of(hex, 32),
		"Sonar": "squ_" + of(hex, 40), "E2B": "e2b_" + of(hex, 40), "RunPod": "rpa_" + of(big, 42), "ElevenLabs": "sk_" + of(hex, 48), "Neon": "napi_" + of(small, 64),
		"Cohere": of(all, 40), "Mistral": of(all, 32), "Cloudflare": of(wide, 40), "Vercel": of(all, 24),
	}
}

// TestKeysOfEachVendorAreFound: in a text, as a word of its own, with a label and without.
func TestKeysOfEachVendorAreFound(t *testing.T) {
	for name, key := range keys() {
		for _, text := range []string{
			"curl -H 'X-Api-Key: " + key + "' https://api.example.com/1", "SERVICE_TOKEN=" + key, `{"token": "` + key + `"}`,
			"the server answered " + key + " and nothing else", "Authorization: Bearer " + key,
		} {
			got := secret.Scrub(text)
			rest := key[:min(len(key), 8)]
			if strings.Contains(got, key) || strings.Contains(got, key[len(key)/2:]) || strings.Contains(got, rest) && len(rest) == 8 && name != "Slack webhook" {
				t.Errorf("%s: %q is left of %q", name, got, text)
			}
		}
	}
}

// TestKeysOfVendorsThatWeSpeakToAreRedacted: in logs and errors, which have no labels.
func TestKeysOfVendorsThatWeSpeakToAreRedacted(t *testing.T) {
	all := keys()
	for _, name := range []string{
		"Anthropic", "OpenAI project", "OpenAI", "OpenRouter", "Google", "Google OAuth", "Bedrock", "Bedrock short", "Groq", "xAI", "Perplexity",
		"Hugging Face", "NVIDIA", "Cerebras", "Fireworks", "Together", "Copilot", "GitHub", "GitHub fine",
	} {
		text := "invalid x-api-key: " + all[name]
		if got := secret.Redact(text); got != "invalid x-api-key: "+secret.Redacted || !secret.Shown(text) {
			t.Errorf("%s: %q, shown: %v", name, got, secret.Shown(text))
		}
	}
}

func TestPasswordsWithALabelAreFound(t *testing.T) {
	for _, c := range []struct{ text, secret string }{
		{"password=Tr0ub4dor&3zebra", "Tr0ub4dor&3zebra"},
		{"API_KEY=qwertyuiopasdf", "qwertyuiopasdf"},
		{"DB_PASS: monkeybanana9", "monkeybanana9"},
		{"app --password zanzibar77 --verbose", "zanzibar77"},
		{"mysql -u root -pwaltonfox1 shop", "waltonfox1"},
		{`{"client_secret": "foobarbazquux12"}`, "foobarbazquux12"},
		{"export TOKEN=abc-def-ghi-jkl", "abc-def-ghi-jkl"},
		{"my password is hunter2hunter", "hunter2hunter"},
		{"curl -u ann:sesame11 https://x.example", "sesame11"},
		{"git clone https://ann:opensesame@example.com/r.git", "opensesame"},
		{"Authorization: Basic YW5uOnNlc2FtZQ==", "YW5uOnNlc2FtZQ=="},
		{"sshpass -p correcthorse ssh host", "correcthorse"},
		{"redis-cli -a batterystaple ping", "batterystaple"},
		{`secret_key: 'staple-battery'`, "staple-battery"},
		{"Cookie: session=abcdef12345", "abcdef12345"},
		{`aws_secret_access_key = "lowercaseonlysecret"`, "lowercaseonlysecret"},
		{"PGPASSWORD=elephant99 psql", "elephant99"},
		{"Das Passwort ist: password: geheim1234", "geheim1234"},
		{`"apiKey" : "plain-text-key-1"`, "plain-text-key-1"},
		{"--api-key=zyxwvut98", "zyxwvut98"},
		{"X-Auth-Token: 1234abcd5678", "1234abcd5678"},
		{"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\nZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----\ndone", "b3BlbnNzaC1r"},
		{`{"text":"{\"api_key\": \"plain-key-11\"}"}`, "plain-key-11"},
		{`args: ["--token", "sesame-open"]`, "sesame-open"},
		{"<password>sesame11</password>", "sesame11"},
		{"machine x.example login ann password sesame11", "sesame11"},
		{"os.environ['X_TOKEN'] = 'sesame11'", "sesame11"},
		{"setx API_KEY sesame11", "sesame11"},
		{"echo sesame11 | docker login --password-stdin", "sesame11"},
		{"gh secret set NAME --body sesame11", "sesame11"},
		{"- name: DB_PASSWORD\n  value: \"sesame11\"", "sesame11"},
		{`{"name":"DB_PASSWORD","value":"sesame11"}`, "sesame11"},
		{`headers.set("Authorization", "Bearer sesame11")`, "sesame11"},
		{"ALTER USER ann IDENTIFIED BY 'sesame11'", "sesame11"},
		{"$env:API_KEY = \"sesame11\"", "sesame11"},
		{"mot de passe : sesame11", "sesame11"},
		{"contraseña: sesame11", "sesame11"},
		{"Das Passwort lautet sesame11", "sesame11"},
		{"пароль: sesame11", "sesame11"},
		{"密码：sesame11", "sesame11"},
		{"パスワード: sesame11", "sesame11"},
		{"const apiKey: string = 'sesame11'", "sesame11"},
		{"invalid key 6fa459ea-ee8a-3ca4-894e-db77e160355e (401)", "ee8a-3ca4"},
		{"redis://ann:se@same@db.example/0", "same"},
		{"https://0123456789abcdef0123@x.example", "abcdef"},
		{`TOKEN=mlsn.0123456789abcdef0123456789abcdef`, "0123456789"},
		{"x: " + strings.Repeat("{\"a\":1},", 5000) + `"client_secret":"foobarbaz"`, "foobarbaz"},
		{"ann:$apr1$abcdefgh$ABCDEFGHIJKLMNOPQRSTU.", "ABCDEFGHIJ"},
		{`"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----\n"`, "MIIEvQ"},
	} {
		if got := secret.Scrub(c.text); strings.Contains(got, c.secret) || !strings.Contains(got, secret.Redacted) {
			t.Errorf("%q is left of %q", got, c.text)
		}
	}
}

// TestOrdinaryTextStays: what programs and people write about keys, tokens and passwords is no secret.
func TestOrdinaryTextStays(t *testing.T) {
	for _, text := range []string{
		"go test ./internal/live -run 'TestNumberedRulesBothStay2|TestOther' -count=1", "git show 9f2c41d07a5b8e6f1c3d2a4b5c6d7e8f90123456",
		"const token = req.headers.authorization", "password: string;", "token := lexer.Next()", "the token is expired", "func Token(s *Scanner) (token Token, err error)",
		"tokens: 1,234 of 200,000", "secretKey: process.env.SECRET_KEY", "api_key_env: ANTHROPIC_API_KEY", "export TOKEN=$(cat token.txt)", "API_KEY=${API_KEY}",
		"condense recall ~/.claude/projects/-p/1b4e28ba-2fa1-11d2-883f-0016d3cca427.jsonl 9f2c41d07a", "risk-free task-based", "key: value",
		"/src/components/AuthTokenProvider/useAuthTokenProvider.test.tsx", "authorization: required", "monkey = 7", "Passed 12 tests",
		"SHA-256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "http://localhost:8080/path?x=1", "author: Ann", "docker run -p 8080:80 nginx",
		`"minipass": "^7.0.4"`, "password: password,", "creds.token = tokenReg", "  password: readPassword,", "the token is accessible to all", "for _, secret := range []string{a, b} {",
		"passes: [{pass: mask, keep: 5}]", "id-token within a workflow", `log.info("token", "getting list")`, "exclude_key = list_key", "input token: leaving the prompt pays",
		`const header = "-----BEGIN PRIVATE KEY-----"` + "\nif !strings.HasPrefix(text, header) {\n\treturn errors.New(`no -----END PRIVATE KEY-----`)\n}", "./node_modules/.bin/tsc -p .",
	} {
		if got := secret.Scrub(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
