// condense for pi: long tool results are shortened before the model sees them, the model can recall what was left out, and
// after a compaction it reads what was before. All of it is done by the program condense; without it nothing changes.
//
// To install it, copy this file into ~/.pi/agent/extensions/ or .pi/extensions/ of a project.

import { spawn, spawnSync } from "node:child_process";

// ask gives an event to condense hook and returns its answer; undefined if there is none.
function ask(event: object): Promise<any> {
	return new Promise((resolve) => {
		const child = spawn("condense", ["hook", "pi", "--recall"], { stdio: ["pipe", "pipe", "ignore"], timeout: 15_000 });
		let out = "";
		child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
		child.stdin.on("error", () => {}); // it has ended
		child.on("error", () => resolve(undefined));
		child.on("close", () => {
			try {
				resolve(JSON.parse(out).hookSpecificOutput);
			} catch {
				resolve(undefined); // it has nothing to say
			}
		});
		child.stdin.end(JSON.stringify(event));
	});
}

export default function (pi: any) {
	if (spawnSync("condense", ["version"], { timeout: 15_000 }).error) {
		const message =
			"condense: the program condense is not in PATH, so its extension does nothing. Install it with: go install github.com/condensehq/condense/cmd/condense@latest";
		pi.on("session_start", (event: any, ctx: any) => {
			if (event.reason !== "startup") return;
			if (ctx.hasUI) ctx.ui.notify(message, "warning");
			else console.error(message);
		});
		return;
	}
	// What is known of the session: in runs with -p pi refuses ctx to handlers after a compaction.
	let about: object = {};
	pi.on("session_start", (_event: any, ctx: any) => {
		about = { session_id: ctx.sessionManager.getSessionId(), cwd: ctx.cwd, transcript_path: ctx.sessionManager.getSessionFile() };
	});

	pi.on("tool_result", async (event: any) => {
		const answer = await ask({
			hook_event_name: "PostToolUse", ...about,
			tool_name: event.toolName, tool_input: event.input, tool_use_id: event.toolCallId, tool_response: event.content,
		});
		if (answer?.updatedToolOutput) return { content: answer.updatedToolOutput };
	});

	pi.on("session_compact", async () => {
		const answer = await ask({ hook_event_name: "PreCompact", ...about });
		if (!answer?.additionalContext) return;
		try {
			pi.sendMessage({ customType: "condense", content: answer.additionalContext, display: true });
		} catch {
			// a run with -p: the session takes no more messages
		}
	});

	// pi has no MCP: the tool is registered here.
	pi.registerTool({
		name: "recall",
		label: "Recall",
		description:
			"Returns content of this conversation that was left out or shortened, verbatim, by the handle in its stub. Ask for lines, head, tail or grep if a part is enough. Long content comes in pages: call again with the offset that the page gives.",
		parameters: {
			type: "object",
			additionalProperties: false,
			required: ["handle"],
			properties: {
				handle: { type: "string", description: 'the ten digits after "h:" in a stub' },
				lines: { type: "string", description: "only these lines: 40-80, 40- or -80, counted from 1" },
				head: { type: "integer", minimum: 1, description: "only the first lines, or with grep the first matches" },
				tail: { type: "integer", minimum: 1, description: "only the last ones" },
				grep: { type: "string", description: "only lines that match this regular expression (RE2), with their numbers" },
				offset: { type: "integer", minimum: 0, description: "where to go on, as the page before said" },
			},
		},
		async execute(_id: string, params: any) {
			const answer = await ask({ hook_event_name: "Recall", ...about, tool_input: params });
			const texts: string[] = answer?.texts ?? ["[condense recall: it does not answer]"];
			return { content: texts.map((text) => ({ type: "text", text })), details: {} };
		},
	});
}
