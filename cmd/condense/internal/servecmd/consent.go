package servecmd

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/trust"
	"github.com/condensehq/condense/model"
)

// consent returns the value of --account for an agent, whose program is at a path: the user's keys are used only
// after a yes on a terminal, which is remembered for that program and value. A no turns accounts off for this run,
// and without a terminal the configuration decides.
func consent(a *cli.App, agent *agents.Agent, program, value string) string {
	if value != config.AccountClient {
		return value
	}
	store := trust.Open(config.Default().TrustDir())
	sum := sha256.Sum256([]byte(value))
	agreed := trust.Entry{Kind: trust.Account, Digest: hex.EncodeToString(sum[:]), Path: program}
	known, err := store.Trusts(agreed)
	switch {
	case err != nil:
		term.Printf(a.Stderr, "condense: --account %s: it is not known whether you agreed: %v\n", value, err)
	case known:
		return value
	}
	if !term.IsTerminal(a.Stdin) {
		term.Printf(a.Stderr, "condense: --account %s is not used: there is no terminal to ask on. Agree once on one, or set serve.account in a configuration of your own\n", value)
		return ""
	}
	_ = term.PrintText(a.Stderr, accountText("--account "+value, value, agent.Name)) // the question follows
	if !term.Confirm(a.Stdin, a.Stderr, "condense: use it?") {
		term.Printf(a.Stderr, "condense: there will be no accounts in this run\n")
		return config.AccountOff
	}
	if err := store.Add(agreed); err != nil {
		term.Printf(a.Stderr, "condense: your answer is not remembered: %v\n", err)
	}
	return value
}

// The assumed sizes, in tokens: of a conversation that fills its window, of the question and of the longest account.
const (
	accountPrompt   = 200_000
	accountQuestion = 1_100
	accountAnswer   = 6_000
)

// priced are models with typical prices of an agent's models.
var priced = map[string][]string{
	agents.Anthropic: {"claude-haiku-4-5", "claude-sonnet-5", "claude-opus-5-5"},
	agents.OpenAI:    {"gpt-6-luna", "gpt-6-sol"},
}

// accountText says what accounts by the agent's own model do and cost; it is empty for other values.
func accountText(setting, value, agent string) string {
	if value != config.AccountClient {
		return ""
	}
	return "condense: " + setting + " has the agent's own model write an account of the conversation, about once each time that the window fills, with the agent's API key, never the login of a plan.\n" +
		"condense: by the price table, with the conversation in the vendor's cache, one of " + size.Group(accountPrompt) + " tokens costs at most about " + accountCosts(agent) + "\n"
}

// accountCosts describes the cost of an account with models of the agent's vendors.
func accountCosts(agent string) string {
	apis := []string{agents.Anthropic, agents.OpenAI}
	switch agent {
	case "claude-code":
		apis = apis[:1]
	case "codex":
		apis = apis[1:]
	}
	var parts []string
	for _, api := range apis {
		for _, name := range priced[api] {
			parts = append(parts, accountCost(name, accountPrompt, accountPrompt)+" with "+name)
		}
	}
	return strings.Join(parts, ", ")
}

// accountCost returns the cost of an account of so many tokens, of which some are in the vendor's cache.
func accountCost(name string, read, cached int) string {
	m, err := config.Default().Model(name)
	if err != nil {
		return "?"
	}
	u := core.Usage{Calls: 1, InputTokens: read + accountQuestion, CachedTokens: cached, OutputTokens: accountAnswer}
	return size.Dollars(model.Info{Price: m.Price, Tiers: m.Tiers}.Charge(u).USD, 3)
}
