import { $, clear } from "./dom.js";
import { sessionsView } from "./sessions.js";
import { messagesView } from "./messages.js";

// router shows what the address says: the report, the sessions of a number
// (#sessions?strategy=…&budget=…&mode=…&measure=…), or the messages of one (#messages?row=…).
// Going back returns to where the reader was.
export function router(data) {
  const report = $("#report");
  const drill = $("#drill");
  const nav = $("#sections");
  const title = document.title;
  let place = { y: 0, focus: null };
  let turn = 0;

  const show = async () => {
    const mine = ++turn;
    const [view, query] = location.hash.slice(1).split("?");
    const parameters = new URLSearchParams(query);
    const make = { sessions: sessionsView, messages: messagesView }[view];
    if (!make) {
      if (report.hidden) {
        report.hidden = false;
        nav.hidden = false;
        drill.hidden = true;
        clear(drill);
        document.title = title;
        if (place.focus) {
          scrollTo(0, place.y);
          place.focus.focus({ preventScroll: true });
        } else {
          document.getElementById(view)?.scrollIntoView();
        }
      }
      return;
    }
    if (!report.hidden) place = { y: scrollY, focus: document.activeElement };
    const made = await make(data, parameters);
    if (mine !== turn) return; // the reader went on meanwhile
    clear(drill);
    drill.append(made);
    report.hidden = true;
    nav.hidden = true;
    drill.hidden = false;
    scrollTo(0, 0);
    const heading = $("h1", drill);
    document.title = `${heading.textContent} – ${title}`;
    heading.focus({ preventScroll: true });
  };
  addEventListener("hashchange", show);
  show();
}
