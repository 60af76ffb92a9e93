package dialog

import "strings"

// A block is an element that agents put into user messages, with the author of its content.
type block struct {
	name string
	by   Kind
}

// blocks are all that are known. Sources: Roo-Code and Cline (environment_details), Claude Code (system-reminder,
// commands and their output, notices of tasks and of the editor), Codex (environment_context, user_instructions,
// subagent_notification, skill), Copilot (current_datetime, system_reminder, workspace_info), Gemini CLI (session_context,
// hook_context), and the words that a summary of native repeats.
var blocks = func() (all []block) {
	for _, of := range []struct {
		by    Kind
		names string // with semicolons between them
	}{
		{KindEnvironment, "environment_details;environment_context"},
		{KindInjected, "system-reminder;local-command-stdout;local-command-caveat;bash-stdout;bash-stderr;task-notification;" +
			"ide_opened_file;ide_selection;ide_diagnostics;open_files;manually_added_selection;file_content;" +
			"folder_content;files;diagnostics;url_content;error_details;tool_result;tool_use_error;" +
			"permissions instructions;collaboration_mode;personality_spec;apps_instructions;skills_instructions;" +
			"plugins_instructions;command-output;local-command-stderr;notice;turn_aborted;system_warning;command;" +
			"user_words;user-prompt-submit-hook;session-start-hook;bash-notification;agent-notification;" +
			"teammate-message;subagent_notification;user_shell_command;model_switch;system_reminder;" +
			"system_notification"},
		{KindEnvironment, "current_datetime;environment_info;workspace_info"},
		{KindInjected, "reminderInstructions"},
		{KindEnvironment, "editorContext;session_context"},
		{KindInjected, "hook_context"},
		{KindProjectRules, "user_instructions;INSTRUCTIONS"},
		{KindInjected, "command-name;command-message;skill;agent-message;attached_files;new-diagnostics;ADDITIONAL_METADATA;" +
			"SYSTEM_MESSAGE;EPHEMERAL_MESSAGE;conversation_summaries"},
		{KindEnvironment, "user_information"},
		{KindUser, "command-args;bash-input;feedback;user_message;answer"},
	} {
		for name := range strings.SplitSeq(of.names, ";") {
			all = append(all, block{name, of.by})
		}
	}
	return all
}()

// beginnings are how texts begin that programs put into user messages. The vendors publish
// them, or any recorded session shows them.
var beginnings = []struct {
	by   Kind
	with []string
}{
	{KindProjectRules, []string{agentsMark, "<user_instructions>", "<INSTRUCTIONS>"}}, // Codex
	{KindEnvironment, []string{"<environment_details>", "<environment_context>", "This is the Gemini CLI. We are setting up the context for our chat."}},
	{KindInjected, []string{ // Claude Code, Codex, pi and their kin
		"<system-reminder>", "<command-name>", "<command-message>", "<local-command-", "Caveat: The messages below", "[Request interrupted",
		"<ide_", "<permissions instructions>", "<turn_aborted>", "<system_warning>", "# System Warning", "<task-notification>",
		skillMark, "<execution_context>", "<objective>",
		"<skill>", "<agent-message", "The following is a <SYSTEM_MESSAGE>", "<ADDITIONAL_METADATA>", "<new-diagnostics>",
		"Read the output file to retrieve the result:", "Full transcript available at:", "Stop hook feedback:\n", "SubagentStop hook feedback:\n",
		"[Image: source: ", "[Image: original ", "<teammate-message ",
		"Another language model started to solve this problem and produced a summary of its thinking process.",
		"Warning: apply_patch was requested via ", "Warning: The maximum number of unified exec processes ",
		"[bd prime] If this output is truncated by your host", "# Beads Workflow Context\n", // beads, by a hook
	}},
	{KindInjected, []string{ // Gemini CLI
		"Here is the user's editor context as a JSON object.", "Here is a summary of changes in the user's editor context, in JSON format.",
	}},
	{KindInjected, []string{ // Roo-Code and Cline
		"<file_content ", "<files>", "<slug>", "[ERROR]", "[TASK RESUMPTION]", "[Tool ", "[new_task ",
		"Successfully created new task", "New instructions for task continuation:", "Tool result:", "The tool execution failed", "(see below for",
	}},
}

// Programs returns the facts about texts that programs put into user messages: the names of elements, of those that hold words of
// the user, and beginnings.
func Programs() (elements, users, begin []string) {
	for _, b := range blocks {
		if b.by != KindUser {
			elements = append(elements, b.name)
		} else {
			users = append(users, b.name)
		}
	}
	for _, b := range beginnings {
		begin = append(begin, b.with...)
	}
	return elements, users, begin
}
