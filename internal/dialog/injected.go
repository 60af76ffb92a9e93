package dialog

// A block is an element that agents put into user messages, with the author of its content.
type block struct {
	name string
	by   Kind
}

// blocks are all that are known. Sources: Roo-Code and Cline (environment_details), Claude Code (system-reminder,
// commands and their output, notices of tasks and of the editor), Codex (environment_context, user_instructions,
// subagent_notification, skill), Copilot (current_datetime, system_reminder, workspace_info), Gemini CLI (session_context,
// hook_context), and the words that a summary of native repeats.
var blocks = []block{
	{"environment_details", KindEnvironment},
	{"environment_context", KindEnvironment},
	{"system-reminder", KindInjected},
	{"local-command-stdout", KindInjected},
	{"local-command-caveat", KindInjected},
	{"bash-stdout", KindInjected},
	{"bash-stderr", KindInjected},
	{"task-notification", KindInjected},
	{"ide_opened_file", KindInjected},
	{"ide_selection", KindInjected},
	{"ide_diagnostics", KindInjected},
	{"open_files", KindInjected},
	{"manually_added_selection", KindInjected},
	{"file_content", KindInjected},
	{"folder_content", KindInjected},
	{"files", KindInjected},
	{"diagnostics", KindInjected},
	{"url_content", KindInjected},
	{"error_details", KindInjected},
	{"tool_result", KindInjected},
	{"tool_use_error", KindInjected},
	{"permissions instructions", KindInjected},
	{"collaboration_mode", KindInjected},
	{"personality_spec", KindInjected},
	{"apps_instructions", KindInjected},
	{"skills_instructions", KindInjected},
	{"plugins_instructions", KindInjected},
	{"command-output", KindInjected},
	{"local-command-stderr", KindInjected},
	{"notice", KindInjected},
	{"turn_aborted", KindInjected},
	{"system_warning", KindInjected},
	{"command", KindInjected},
	{"user_words", KindInjected},
	{"user-prompt-submit-hook", KindInjected},
	{"session-start-hook", KindInjected},
	{"bash-notification", KindInjected},
	{"agent-notification", KindInjected},
	{"teammate-message", KindInjected},
	{"subagent_notification", KindInjected},
	{"user_shell_command", KindInjected},
	{"model_switch", KindInjected},
	{"system_reminder", KindInjected},
	{"system_notification", KindInjected},
	{"current_datetime", KindEnvironment},
	{"environment_info", KindEnvironment},
	{"workspace_info", KindEnvironment},
	{"reminderInstructions", KindInjected},
	{"editorContext", KindEnvironment},
	{"session_context", KindEnvironment},
	{"hook_context", KindInjected},
	{"user_instructions", KindProjectRules},
	{"INSTRUCTIONS", KindProjectRules},
	{"command-name", KindInjected},
	{"command-message", KindInjected},
	{"skill", KindInjected},                  // Codex
	{"agent-message", KindInjected},          // of another agent
	{"attached_files", KindInjected},         // Kilo, Copilot
	{"new-diagnostics", KindInjected},        // Claude Code
	{"ADDITIONAL_METADATA", KindInjected},    // Antigravity
	{"SYSTEM_MESSAGE", KindInjected},         // Antigravity
	{"EPHEMERAL_MESSAGE", KindInjected},      // Antigravity
	{"conversation_summaries", KindInjected}, // Antigravity
	{"user_information", KindEnvironment},    // Antigravity
	{"command-args", KindUser},
	{"bash-input", KindUser},
	{"feedback", KindUser},
	{"user_message", KindUser},
	{"answer", KindUser},
}

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

// Programs returns the facts about texts that programs put into user messages: the names of elements, and beginnings.
func Programs() (elements, begin []string) {
	for _, b := range blocks {
		if b.by != KindUser {
			elements = append(elements, b.name)
		}
	}
	for _, b := range beginnings {
		begin = append(begin, b.with...)
	}
	return elements, begin
}
