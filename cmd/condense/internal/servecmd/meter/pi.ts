// The status line of condense for pi: the size of the conversation, when it will be condensed,
// what the last condensation did and how to undo it. It shows what the program "condense statusline" prints, and
// nothing if no gateway has seen this conversation.
//
// To install it: condense statusline --plugin pi >~/.pi/agent/extensions/condense-meter.ts

import { spawn } from "node:child_process";

const [program, ...fixed]: string[] = JSON.parse(process.env.CONDENSE_STATUSLINE || '["condense", "statusline"]');

// read returns what the program prints about a session; undefined if it prints nothing.
function read(session: string, folder: string): Promise<any> {
	return new Promise((resolve) => {
		const args = [...fixed, "--output", "json", "--session", session, "--dir", folder];
		const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"], timeout: 5_000 });
		let out = "";
		child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
		child.on("error", () => resolve(undefined)); // there is no such program
		child.on("close", () => {
			try {
				resolve(JSON.parse(out));
			} catch {
				resolve(undefined);
			}
		});
	});
}

const every = 2_000; // milliseconds, for what is done with the conversation elsewhere

export default function (pi: any) {
	let timer: any;
	let epoch: number | undefined; // undefined until the first reading
	let soon: string | undefined;
	let reading = false;

	async function show(ctx: any) {
		if (reading) return;
		reading = true;
		try {
			const now = await read(ctx.sessionManager.getSessionId(), ctx.cwd);
			ctx.ui.setStatus("condense", now && ctx.ui.theme.fg(now.soon ? "warning" : "dim", now.line));
			if (now?.soon && !soon) ctx.ui.notify("condenses with the next request: " + now.soon, "warning");
			if (now?.last && epoch !== undefined && now.epoch !== epoch) ctx.ui.notify("condensed " + now.last, "info");
			soon = now?.soon;
			if (now) epoch = now.epoch;
		} catch {
			// the session has ended
		} finally {
			reading = false;
		}
	}

	pi.on("session_start", (_event: any, ctx: any) => {
		if (!ctx.hasUI) return;
		clearInterval(timer);
		epoch = undefined;
		soon = undefined;
		timer = setInterval(() => void show(ctx), every);
		timer.unref();
		void show(ctx);
	});
	pi.on("turn_end", (_event: any, ctx: any) => {
		if (ctx.hasUI) void show(ctx);
	});
	pi.on("session_shutdown", () => clearInterval(timer));
}
