package config

import (
	"fmt"
	"strings"

	"github.com/condensehq/condense/internal/catalog"
)

// Reference returns the reference documentation of configurations as Markdown, made from
// the same table as the checks. Of opts, only Chain matters.
func Reference(opts Options) string {
	var b strings.Builder
	untold := "truncated"
	if len(opts.Chain) > 0 {
		untold = "condensed by `" + strings.Join(opts.Chain, "`, `") + "`"
	}
	b.WriteString(strings.Replace(referenceHead, "UNTOLD", untold, 1))
	for _, section := range []struct {
		at          place
		title, text string
	}{
		{atTop, "Top level", "What stands here holds for every profile and mode that says nothing else.\n"},
		{inProfile, "profiles", "Profiles by name. Names may contain dots and slashes, and differ in case.\n"},
		{inMode, "modes", "Modes by name. `code: sonnet` is short for `code: {profile: sonnet}`. " +
			"A mode that is not declared has the default profile.\n"},
		{inProvider, "providers", "Providers by name, for use in chains. `condense providers` lists the strategies and their settings.\n"},
		{inModel, "models", "Models by name. What an entry does not say, the built-in table adds if it knows the model.\n"},
		{inPrice, "models: price", "The price of a model.\n"},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", section.title, section.text)
		referenceTable(&b, section.at, &opts)
	}
	b.WriteString("\n## Presets of profiles\n")
	for _, p := range presets() {
		referencePreset(&b, p)
	}
	fmt.Fprintf(&b, referenceTail, catalog.Source())
	return b.String()
}

// referenceTable lists the keys of a place. Those that a profile or a mode has from the top
// level are documented there, and only named here.
func referenceTable(b *strings.Builder, at place, opts *Options) {
	var inherited []string
	b.WriteString("| Key | Value | Default | Meaning |\n|---|---|---|---|\n")
	for _, f := range fieldsAt(at) {
		if f.in[0] != at {
			inherited = append(inherited, "`"+f.key+"`")
			continue
		}
		def := "–"
		if v := opts.def(f); v != nil {
			def = "`" + compact(v) + "`"
		}
		allowed := f.allowed()
		if f.example != "" && f.kind != kindBool && f.kind != kindEnum && !strings.Contains(allowed, f.example) {
			allowed += ", as in `" + f.example + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.key, cell(allowed), cell(def), cell(f.doc))
	}
	if len(inherited) > 0 {
		fmt.Fprintf(b, "\nand, to override the [top level](#top-level): %s.\n", strings.Join(inherited, ", "))
	}
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func referencePreset(b *strings.Builder, p preset) {
	fmt.Fprintf(b, "\n### %s\n\n%s Its values, which the profile's own override:\n\n```yaml\n", p.name, p.doc)
	for _, f := range fieldsAt(inProfile) {
		if v, ok := p.values[f.key]; ok {
			fmt.Fprintf(b, "%s: %s\n", f.key, compact(v))
		}
	}
	b.WriteString("```\n\nProviders that it brings, for any chain:\n\n```yaml\n")
	for _, name := range sortedKeys(p.providers) {
		fmt.Fprintf(b, "%s: %s\n", name, compact(p.providers[name]))
	}
	b.WriteString("```\n")
}

const referenceHead = `<!-- Made from the table in config/fields.go: go test ./config -update -->
# Configuration

One file decides when a conversation is condensed, by which providers, and how far. Nothing in it
is required: without a file, conversations are UNTOLD at 80 % of 200,000 tokens.

` + "```yaml" + `
threshold: 80                     # percent of the window
default_profile: sonnet
profiles:
  sonnet:
    model: anthropic/claude-sonnet-4-5
    chain: [lossless, summary]    # tried in this order; truncation is the fallback
  local:
    window: 32768
    threshold: 60
    chain: [tidy]
modes:
  code: sonnet
  ask: local
  architect: {profile: sonnet, threshold: 70}
providers:
  tidy:     {strategy: smart, settings: {preset: balanced}}
  lossless: {strategy: smart, settings: {preset: lossless}}
  summary:  {strategy: native, timeout: 45s, settings: {preset: fresh_start, model: cheap}}
models:
  cheap: {api: anthropic, model: claude-haiku-4-5, api_key_env: ANTHROPIC_API_KEY}
` + "```" + `

## Where values come from

Each layer overrides those above it, key by key; lists are replaced as a whole.

| Layer | Where |
|---|---|
| defaults | built in, listed below |
| the user's file | ` + "`$XDG_CONFIG_HOME/condense/` or `~/.config/condense/`: `condense.*` or `config.*`" + ` |
| the project's file | ` + "`condense.yaml`, `.yml`, `.toml` or `.json`" + ` in the working directory or above it, up to the root of the repository |
| environment | ` + "`CONDENSE_THRESHOLD`, `CONDENSE_PROFILES__CODE__THRESHOLD`" + `: two underscores between names |
| flags | ` + "`threshold`, `profiles.code.threshold`, `profiles.\"gpt-4.1\".threshold`" + ` |

A file named by a flag or by ` + "`CONDENSE_CONFIG`" + ` is the only one read. Two files in one directory are
an error. Outside of a repository only the working directory is looked at.

In the environment, names are written in upper case with an underscore for everything but letters
and digits. They must belong to a profile, mode, provider or model that exists in a file: a variable
that fits none, or two, is an error. Values of variables and flags are written as in YAML; texts
need no quotes, and lists may be written ` + "`a,b`" + `.

` + "`condense config show`" + ` prints what the layers add up to, ` + "`condense config explain`" + ` where each value
comes from.

## Trust

A file that comes with a project chooses strategies, prompts and numbers as it likes. What starts a program
(` + "`plugin`" + ` with its ` + "`folder`" + `, ` + "`sha256`" + `, ` + "`env`" + ` and ` + "`settings`" + `), names an address (` + "`base_url`" + `) or reads a variable or a
file (` + "`api_key_env`" + `, ` + "`api_key_file`" + `, settings that end in ` + "`_file`" + `) needs your trust first, whether the file was found
or named with ` + "`--config`" + `. So does a model's ` + "`price`" + `: one that looks free is asked without a question. Until then
such a provider or model is skipped, one line on standard error says so, and the chain goes on.

    condense trust             shows each of these parts and what it does, and asks (--yes in a script)
    condense trust --list      what you trust
    condense trust --remove FILE

Trust is for one file and for these parts as they are: another threshold asks nothing, another program, address,
variable or setting of a plugin asks again. It is kept in ` + "`condense/trust`" + ` of your own configuration folder, with the
checksums of the plugins that you approved, which are removed by the path of the program; nothing in a project
approves anything. What a project says about a
provider or model of your own file changes neither where that is nor what it is given.

No trust is needed for a model at its vendor's own address with its vendor's own key variable, for files in your own
configuration folder, for variables and flags, and for what ` + "`config init`" + ` and ` + "`config import --write`" + ` have written.

## Inheritance

A value that is absent or -1 inherits:

    mode → its profile → the profile's model → its preset → the profile it extends → … → top level → default

-1 in an environment variable or a flag inherits what the files say.

The window of a model counts where the model is named: a profile that names a model and extends
another one has the window of its model. For ` + "`max_output`" + `, what the section models says about the
model counts there too.

## Units

- Percentages are of the context window: ` + "`70` or `\"70%\"`" + `. Only ` + "`min_gain`" + ` is of what can be removed.
- Tokens are whole numbers: ` + "`4000`, `4k` (4,000), `4Ki` (4,096), `1M`" + `. Some keys take a share of the window: ` + "`2%`" + `.
- Durations have a unit: ` + "`45s`, `2m`" + `.
- 0 means none where a key says so; -1 always means inherit. Other negative numbers are errors.

## What follows from the numbers

    used      = system prompt + tools + messages
    limit     = window × (1 − buffer) − max_output      (if 0: 8,192, at most a fifth of the window)
    condense when  used ≥ threshold % of the window,  or used > limit,  or used > max_context_tokens
    and end at or below target

The smallest of the three is the trigger. A target that is not below the threshold is an error, and
so is a window of which nothing is left. Without a target, a condensation ends in the middle between
what cannot be removed (system prompt, tools, protected messages) and the trigger. With ` + "`auto: false`" + ` only the limit counts.
`

const referenceTail = `
Under Roo's rule numbers mean what they mean to Roo Code:

- a threshold of the profile outside 5 to 100 is ignored, and the inherited one holds (a warning says so);
- ` + "`max_output`" + ` may be negative, and is used as it is; 0 means 8,192 in every window, and -1 inherits;
- the limit may be below zero, and then every request condenses.

Where Roo is silent, a file is not accepted all the same: a threshold of the *top level* outside
5 to 100 (Roo takes -3 as always and 150 as never), a window of 0, and a model whose window is
unknown are errors.

## Secrets

A file holds no secrets. A model names the variable or the file that has its key
(` + "`api_key_env`, `api_key_file`" + `); a key that stands in a configuration is refused, and no message
repeats it.

## Plugins and paths

Paths are relative to the file that names them, those in variables and flags to the working
directory; ` + "`~/`" + ` is the home directory. A plugin is never searched for: ` + "`ours`" + ` is the file ours beside
the configuration, not a program of that name.

## Models

Windows and prices of about 1,200 models are built in (%s). A number that is missing or wrong there
is set in a profile (` + "`window`" + `) or in the section models. A model that is served by others may be named as they name it:
` + "`openrouter/google/gemini-2.5-pro`, `azure/gpt-5`, `us.anthropic.claude-sonnet-4-20250514-v1:0`" + `.

` + "`condense check` and `run`" + ` on a request to an API take the window of the ` + "`model`" + ` that it names, and its ` + "`max_tokens`" + ` as
the longest answer, where neither a flag nor the configuration says something; the output names them.

## Editors

` + "`condense config schema`" + ` writes a JSON schema with every key, limit, strategy and setting. With the
line ` + "`# yaml-language-server: $schema=./condense.schema.json`" + ` at the top of a file, editors complete
names and mark what is wrong while it is typed; ` + "`condense config init`" + ` writes that line.

## When something is wrong

Everything that is wrong is reported at once, with file, line, column, key, what would be right and
what was probably meant. Positions in YAML and JSON are exact, and TOML places a list at its key. Of a file that
YAML cannot read at all, only the first mistake is reported; its line is found in nearly all cases.

A long-running host reads its files again when they change. If they are wrong then, it keeps the
configuration that it has and says so.
`
